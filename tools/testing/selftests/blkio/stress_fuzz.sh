#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# configs: uml-debug
# args: log_buf_len=1M
# timeout: 1800
# Random writes to all control files while I/O runs: WRITES (100000) in all, half of them on v1 and half on v2, from
# SEED. Each write has the right errno, the files show what was written, and the kernel logs no splat.
# shellcheck source=lib/stress_lib.sh
. "$(dirname "$0")/lib/stress_lib.sh"

WRITES=${WRITES:-100000}
SEED=${SEED:-$((0x10ba4d))}

# fuzz OPTION... GROUP...: half of the writes
fuzz() {
	python3 "$HERE/lib/stress_fuzz.py" --count $((WRITES / 2)) --seed "$SEED" --dev "$(devno /dev/smpnull)" \
		--dev "$(devno /dev/smpnull2)" --partition "$(devno /dev/smpnull2p1)" "$@"
}

lift_all() {
	local name dev
	for name; do
		for dev in /dev/smpnull /dev/smpnull2; do
			cap "$name" "$dev" rbps=max wbps=max riops=max wiops=max
		done
	done
}

# no_rules GROUP...: no group has a limit
no_rules() {
	local name
	for name; do
		[ -z "$(cat "$CG/$name"/{io.max,blkio.throttle.*_device} 2>/dev/null)" ] || return 1
	done
}

# hierarchy GROUP...: the groups whose files are written to, and in which the loads run
hierarchy() {
	local paths=() name i=0 names=()
	for name; do paths+=("$CG/$name"); done
	smp_null smpnull2
	addpart "$DEV" 1 2048 2048
	# a disk so slow that the loads leave the CPUs to the fuzzer
	smp_null smpnull completion_nsec=20000000
	for name; do
		verify "$name" "load$i" -b 8192 -d 8 -o $((i * 8 * MiB)) -s $((8 * MiB)) -S "$i" "$DEV"
		names+=("load$i")
		i=$((i + 1))
	done
	check "$CGV: all writes have the right errno and the right effect, seed $SEED" fuzz "${paths[@]}"
	lift_all "$@"
	stop "${names[@]}"
	check "$CGV: all I/O ended without an error" intact "${names[@]}"
	check "$CGV: no limit is left in the end" no_rules "$@"
	null_end smpnull
	null_end smpnull2
}

plan 8
leaks_begin
mount_cgroup v2
group a a/b c
hierarchy a a/b c
umount_cgroup
mount_cgroup v1
group a a/b c
hierarchy a a/b c
umount_cgroup
leak_point
check "the kernel log has no splats" no_splat
