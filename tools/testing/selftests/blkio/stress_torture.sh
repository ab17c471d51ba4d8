#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# Torture, generated from seeds: each round has groups, disks and loads that verify their data, while limits, weights,
# groups, tasks, schedulers and queues change, disks fail and are pulled, and memory runs short; see torture.py and
# torture_changes.py. TORTURE_SEED=N is the first round (1); more rounds follow until TORTURE_SECONDS=S have passed (one
# round only). TORTURE_WITHOUT=CHANGE,... leaves out changes: functions of torture_changes.py and torture_faults.py.
# environment: TORTURE_SEED TORTURE_SECONDS TORTURE_WITHOUT
# timeout: 900
# shellcheck source=lib/stress_lib.sh
. "$(dirname "$0")/lib/stress_lib.sh"

rounds() {
	PATH=$PATH PYTHONHASHSEED=0 python3 -B "$HERE/lib/torture.py" --folder "$TMP" --keep "${GUEST_OUT:-$TMP}" \
		--seconds "${TORTURE_SECONDS:-0}" --without "${TORTURE_WITHOUT:-}" ${VIRTUAL:+--virtual} "${TORTURE_SEED:-1}" 2>&1 ||
		echo "# torture.py: status $?"
}

# In virtual time a round covers much virtual time in little real time.
VIRTUAL=
[ "${IOBAND_GUEST:-}" != uml-vt ] || VIRTUAL=1
mountpoint -q /sys/kernel/config || mount -t configfs none /sys/kernel/config
[ -d $NULLB ] || modprobe null_blk nr_devices=0 2>/dev/null || true
[ -d $NULLB ] || skip_all "the kernel has no null_blk with configfs"
# With KCSAN, data races in functions of ioband are reported; a report is a splat.
KCSAN=/sys/kernel/debug/kcsan
if [ -e $KCSAN ]; then
	echo whitelist >$KCSAN
	awk '$2 ~ /^[tT]$/ && $3 ~ /^_*(ioband|dirty)_/ { print "!" $3 }' /proc/kallsyms |
		sort -u | while read -r name; do echo "$name" >$KCSAN || true; done
	echo on >$KCSAN
fi
# A root over 9p loses files while tasks that read them are killed: these files are copied to memory first.
if [ -n "${BLKIO_BIN:-}" ]; then
	cp -r "$BLKIO_BIN" "$TMP/bin"
	PATH=$TMP/bin:$PATH
fi
leaks_begin
seen=0
broken=
lingers=
while IFS= read -r line; do
	case $line in
	'ok '*) tap ok "${line#ok }" ;;
	'not ok '*) tap_failed=$((tap_failed + 1)); tap "not ok" "${line#not ok }" ;;
	'# BFQ may keep'*) echo "$line"; lingers=1 ;;
	'# torture.py: status 1') ;;
	'# watchdog: the end') broken=1; break ;;	# tasks that hang keep the pipe open
	'# torture.py: status'*) echo "$line"; broken=1 ;;
	*) echo "$line" ;;
	esac
	seen=$tap_nr
done < <(rounds)
echo "# clock: $(cut -d . -f 1 /proc/uptime) s"
if [ -n "$broken" ]; then
	# A task that hangs would make the clean-up hang as well.
	echo "1..$((seen + 1))"
	echo "Bail out! a round has not ended"
	trap - EXIT
	exit 1
fi
if [ -n "$lingers" ]; then
	trap - EXIT
else
	leak_point
fi
check "the kernel log has no splats" no_splat
plan "$tap_nr"
