#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# configs: uml-vt
# Swap on v2: a page that is swapped out is charged to the group that owns it, whichever group needs the memory. Swap is
# never held. If other groups cause it, the owner pays from what it has in hand, and has no debt; the rest is charged to
# the group of the task that asks for memory.
. "$(dirname "$0")/lib/blkio_lib.sh"
. "$HERE/lib/blkio_writeback.sh"

RATE=$MiB
# 62.5 ms
BURST=$((64 * KiB))
OUT=$((16 * MiB))	# what a task asks to be swapped out

# owner GROUP: a task that has 32 MiB and touches none of its pages again before touch(); returns when the task has
# them
owner() {
	local i
	in_group "$1" python3 - "$TMP/ready" "$TMP/touch" "$TMP/touched" <<'EOF' &
import os, sys, time
ready, touch, touched = sys.argv[1:]
pages = bytearray(32 << 20)
for i in range(0, len(pages), 4096):
    pages[i] = i >> 12 & 255
open(ready, 'w').close()
while not os.path.exists(touch):
    time.sleep(0.1)
begin = time.monotonic()
for i in range(0, len(pages), 4096):
    if pages[i] != i >> 12 & 255:
        sys.exit(f'page {i >> 12} is not what it was')
with open(touched, 'w', encoding='ascii') as file:
    print(int((time.monotonic() - begin) * 1000), file=file)
EOF
	OWNER=$!
	for ((i = 0; i < 300; i++)); do
		[ ! -e "$TMP/ready" ] || break
		sleep 0.1
	done
	rm "$TMP/ready"
}

# owner_ends GROUP: ends that task
owner_ends() {
	echo 1 >"$CG/$1/cgroup.kill"
	wait "$OWNER" || true
}

# reclaim ASKER GROUP: a task of ASKER has OUT bytes of GROUP swapped out; prints for how many ms that task waits
reclaim() {
	local begin
	begin=$(now_ms)
	in_group "$1" python3 -c '
import sys
try:
    open(sys.argv[1], "w").write(sys.argv[2])
except BlockingIOError:
    pass        # not all of it could be
' "$CG/$2/memory.reclaim" "$OUT" || return 1
	echo $(($(now_ms) - begin))
}

# swapped ASKER GROUP: sets BY_GROUP and BY_ASKER, the bytes charged to each, TOOK_MS, and DEBT_USEC of GROUP
swapped() {
	local from_group from_asker
	owner "$2"
	from_group=$(wbytes "$2") from_asker=$(wbytes "$1")
	TOOK_MS=$(reclaim "$1" "$2") || return 1
	DEBT_USEC=$(debt_usec "$2")
	sync
	BY_GROUP=$(($(wbytes "$2") - from_group)) BY_ASKER=$(($(wbytes "$1") - from_asker))
	echo "charged to the owner $BY_GROUP, to the one who asks $BY_ASKER bytes, who waits for $TOOK_MS ms"
	# the rest of the reclaimed pages are pages of the program
	in_range $((BY_GROUP + BY_ASKER)) $((OUT * 3 / 4)) $((OUT * 5 / 4))
}

# nr_owed GROUP: the number of I/Os that passed as a debt of the group
nr_owed() { sed -n "s/^$(devno "$DEV") .*nr_owed=\([0-9]*\).*/\1/p" "$CG/$1/io.stat" | grep . || echo 0; }

# Pages are swapped in by a group that also reads at its limit: no read of swap is held, eight pages at a time are a
# debt, and both together get no more than the limit.
swapped_in() {
	local from begin took reader elapsed owed
	swapped b a || return 1
	cap a "$DEV" rbps=$RATE
	from=$(rbytes a) owed=$(nr_owed a) begin=$(now_ms)
	in_group a dd if="$DEV" of=/dev/null bs=64k iflag=direct status=none 2>/dev/null &
	reader=$!
	touch "$TMP/touch"
	wait "$OWNER" || return 1
	elapsed=$(($(now_ms) - begin)) from=$(($(rbytes a) - from))
	kill $reader
	wait $reader || true
	read -r took <"$TMP/touched"
	echo "the owner's pages are back in $took ms"
	# the last read may still be a debt
	within "$from" $((elapsed * RATE / 1000)) 20000 || return 1
	in_range $(($(nr_owed a) - owed)) $((BY_GROUP / 8 / 4096)) $((BY_GROUP / 4096))
}

# The limit applies to the owner, and the asker is outside of it.
from_outside() {
	swapped b a || return 1
	in_range "$BY_GROUP" 1 $((2 * BURST)) || return 1
	in_range "$TOOK_MS" 0 100 || return 1
	in_range "$DEBT_USEC" 0 0
}

# The same over time, at 4 times the limit, while the owner itself writes as much as it can: it gets its limit.
from_outside_for_long() {
	local rounds=20 gap_s=0.25 i
	owner a
	start_soon
	load a writer -f "$BESIDE" -o w -s 4k -t 5 -L 1M
	for ((i = 0; i < rounds; i++)); do
		OUT=$MiB reclaim b a >/dev/null || return 1
		sleep $gap_s
	done
	wait_loads
	within "$(val writer bytes)" $((5 * RATE)) 20000
}

# The limit applies to both: the asker waits for what both write.
from_inside() {
	swapped P/b P/a || return 1
	equal "$BY_ASKER" 0 || return 1
	in_range "$TOOK_MS" $((BY_GROUP * 900 / RATE)) $((BY_GROUP * 1000 / RATE + 100))
}

# One limit applies to the owner and one to both: the asker is charged with what the owner has no room for.
from_beside() {
	cap P/a "$DEV" wbps=$((RATE / 4))
	swapped P/b P/a || return 1
	in_range "$BY_GROUP" 0 $((2 * BURST)) || return 1
	in_range "$TOOK_MS" $((BY_ASKER * 900 / RATE)) $(((BY_GROUP + BY_ASKER) * 1000 / RATE + 100)) || return 1
	cap P/a "$DEV" wbps=max
}

# Pages of a group without limits that the kernel wants swapped out are no group's debt.
unlimited() {
	swapped a b || return 1
	equal "$BY_ASKER" 0 || return 1
	in_range "$TOOK_MS" 0 100
}

plan 6
null_dev nb0 size=300 mbps=400 memory_backed=1
mount_cgroup v2
# the limits are on the disk below the swap and what is beside it, since nobody can write to a swap device
disk=$DEV
dm_dev beside "0 20480 linear $disk 0" || bail "no dm"
BESIDE=$DEV
dm_dev swap "0 $(($(sectors "$disk") - 20480)) linear $disk 20480"
mkswap "$DEV" >/dev/null
swapon "$DEV"
undo+=("swapoff $DEV")
DEV=$disk
echo +memory >"$CG/cgroup.subtree_control"
group a b P P/a P/b
echo "+io +memory" >"$CG/P/cgroup.subtree_control"
cap a "$DEV" wbps=$RATE
check "swap out by a task to which the limit does not apply: the owner has no debt" from_outside
owner_ends a
check "swap out by such a task over time: the owner gets its limit" from_outside_for_long
owner_ends a
cap a "$DEV" wbps=max
check "swap out of a group without a limit: no debt" unlimited
owner_ends b
cap P "$DEV" wbps=$RATE
check "swap out by a task below the same limit: that task waits for what both write" from_inside
owner_ends P/a
check "swap out by a task below one of two limits: the owner has no debt, the task is charged with the rest" from_beside
owner_ends P/a
check "swap in beside reads at the limit: both together get the limit" swapped_in
