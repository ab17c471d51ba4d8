#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# configs: uml-debug
# timeout: 1800
# Random writes to all control files while I/O runs: WRITES (100000) in all, half
# on v1 and half on v2, from SEED. Each gets the errno it should, what the files
# say is what was written, the kernel keeps quiet.
# shellcheck source=smp_lib.sh
. "$(dirname "$0")/smp_lib.sh"

WRITES=${WRITES:-100000}
SEED=${SEED:-$((0x10ba4d))}

# fuzz OPTION... GROUP...: half of the writes
fuzz() {
	python3 "$HERE/smp_fuzz.py" --count $((WRITES / 2)) --seed "$SEED" --dev "$(devno /dev/smpnull)" \
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

# no_rules GROUP...
no_rules() {
	local name
	for name; do
		[ -z "$(cat "$CG/$name"/{io.max,blkio.throttle.*_device} 2>/dev/null)" ] || return 1
	done
}

# hierarchy GROUP...: the groups that are written to; loads run in the same
hierarchy() {
	local paths=() name i=0 names=()
	for name; do paths+=("$CG/$name"); done
	smp_null smpnull2
	addpart "$DEV" 1 2048 2048
	# slow enough to leave the CPUs to the fuzzer
	smp_null smpnull completion_nsec=20000000
	for name; do
		verify "$name" "load$i" -b 8192 -d 8 -o $((i * 8 * MiB)) -s $((8 * MiB)) -S "$i" "$DEV"
		names+=("load$i")
		i=$((i + 1))
	done
	check "$CGV: right errno and right state, seed $SEED" fuzz "${paths[@]}"
	lift_all "$@"
	stop "${names[@]}"
	check "$CGV: all I/O ended well" intact "${names[@]}"
	check "$CGV: no rule is left" no_rules "$@"
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
nothing_leaked
check "the kernel kept quiet" no_splat
