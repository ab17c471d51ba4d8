#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# Attacks on limits, generated from seeds: ATTACK_SEED is N, N-M or several of these with commas between them (1-20);
# ATTACK_ONLY=v1 or v2 runs only those of one hierarchy. Each attack is a tree of groups with limits and unprivileged
# tasks that try to exceed them; see attack.py. No group may exceed its bound, and groups outside must not be delayed.
# ATTACK_WITHOUT=ROUTE,... skips attacks by one of these routes, for example one that is known to hang the machine.
# environment: ATTACK_SEED ATTACK_ONLY ATTACK_WITHOUT
# timeout: 300
. "$(dirname "$0")/lib/blkio_lib.sh"

run_attacks() { python3 -B "$HERE/lib/attack.py" ${ATTACK_ONLY:+--only "$ATTACK_ONLY"} --without "${ATTACK_WITHOUT:-}" "$@" "${ATTACK_SEED:-1-20}" 2>&1; }

mountpoint -q $TRACEFS || mount -t tracefs none $TRACEFS
has_trace || skip_all "the kernel has no ioband tracepoints"
mountpoint -q /sys/kernel/config || mount -t configfs none /sys/kernel/config
[ -d $NULLB ] || modprobe null_blk nr_devices=0 2>/dev/null || true
[ -d $NULLB ] || skip_all "the kernel has no null_blk with configfs"
chmod 755 "$TMP"
undo+=("umount -l $TMP/cgroup-*")
plan "$(run_attacks --list | wc -l)"
while IFS= read -r line; do
	case $line in
	'ok '*) tap ok "${line#ok }" ;;
	'not ok '*) tap_failed=$((tap_failed + 1)); tap "not ok" "${line#not ok }" ;;
	*) echo "$line" ;;
	esac
done < <(run_attacks --folder "$TMP" ${GUEST_OUT:+--keep "$GUEST_OUT"} || echo "# attack.py failed")
