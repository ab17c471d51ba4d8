#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# docker: limits of containers, and --blkio-weight of docker run and docker update. The kernel's time is real, since in
# virtual time a program of docker's waits for the clock in a loop; so a rate is only shown to be no higher than its limit,
# and shares to be in order. The program docker 26.1 drops --device-read-bps and its like, so that the daemon gets limits
# and weights of disks without it.
# configs: uml-tools-real
# root: trixie
. "$(dirname "$0")/lib/blkio_lib.sh"
. "$HERE/lib/blkio_tools.sh"
the_cgroup v2
# shellcheck source=lib/blkio_container.sh
. "$HERE/lib/blkio_container.sh"

# start_docker: starts the daemon and makes an image; what the daemon writes is in memory
start_docker() {
	local i
	mkdir -p /var/lib/docker
	mount -t tmpfs none /var/lib/docker
	undo+=("umount -l /var/lib/docker")
	dockerd --iptables=false --ip6tables=false --bridge=none >"$TMP/dockerd.log" 2>&1 &
	undo+=("kill $!; wait $!")
	for ((i = 0; i < 300; i++)); do
		! docker version >/dev/null 2>&1 || break
		sleep 0.1
	done
	tar -C "$ROOTFS" -c . | docker import - blkio >/dev/null || bail "docker makes no image: $(tail -n 3 "$TMP/dockerd.log")"
}

# docker_run NAME WEIGHT ARGUMENT...: runs a load in a container with --blkio-weight, whose output is in NAME.json
docker_run() {
	local name=$1 weight=$2
	shift 2
	docker run --rm --name "$name" --network none --device "$DEV" -v /usr:/usr:ro -v "$(dirname "$LOAD"):/load:ro" \
		--blkio-weight "$weight" blkio /load/blkio_load "$@" >"$TMP/$name.json" 2>"$TMP/$name.err" </dev/null ||
		cat "$TMP/$name.err"
}

# docker_limited NAME CONFIG ARGUMENT...: the same, with a part of HostConfig in JSON, such as what limit() prints
docker_limited() {
	local name=$1 config="{$2}"
	shift 2
	jq -n --argjson config "$config" --arg dev "$DEV" --arg load "$(dirname "$LOAD"):/load:ro" --args '
		{Image: "blkio", Cmd: $ARGS.positional, HostConfig: ($config + {NetworkMode: "none", AutoRemove: true,
		 Binds: ["/usr:/usr:ro", $load],
		 Devices: [{PathOnHost: $dev, PathInContainer: $dev, CgroupPermissions: "rwm"}]})}' -- /load/blkio_load "$@" |
		curl -sSf --unix-socket /run/docker.sock -H "Content-Type: application/json" -d @- -o "$TMP/$name.create" \
			"http://localhost/containers/create?name=$name" || return
	docker start -a "$name" >"$TMP/$name.json" 2>"$TMP/$name.err" </dev/null || cat "$TMP/$name.err"
}

# limit KEY VALUE: a limit or weight of the disk, in JSON
limit() { echo "\"$1\": [{\"Path\": \"$DEV\", \"$([[ $1 == *Weight* ]] && echo Weight || echo Rate)\": $2}]"; }

# slow_enough NAME NS: the load took at least that long, but for a thousandth
slow_enough() { in_range $((($(val "$1" end_ns) - $(val "$1" start_ns)) * 1000)) $(($2 * 999)) $((1 << 62)); }

# group_of NAME: prints the directory of a running container's group
group_of() { echo "$CG/system.slice/docker-$(docker inspect -f '{{.Id}}' "$1").scope"; }

# has NAME FILE LINE: the group of the container has the line within ten seconds
has() {
	local i
	for ((i = 0; i < 100; i++)); do
		! grep -qxF -- "$3" "$(group_of "$1" 2>/dev/null)/$2" 2>/dev/null || return 0
		sleep 0.1
	done
	cat "$(group_of "$1")/$2"
	return 1
}

limits() {
	docker_limited reads "$(limit BlkioDeviceReadBps 3000000)" -f "$DEV" -s 64k -n 80
	check "BlkioDeviceReadBps: no more than the rate" slow_enough reads "$(paced 65536 80 3000000)"
	docker_limited writes "$(limit BlkioDeviceWriteBps 3000000)" -f "$DEV" -o w -s 64k -n 80
	check "BlkioDeviceWriteBps: no more than the rate" slow_enough writes "$(paced 65536 80 3000000)"
	docker_limited iops "$(limit BlkioDeviceReadIOps 100)" -f "$DEV" -s 4k -d 4 -n 200
	check "BlkioDeviceReadIOps: no more than the rate" slow_enough iops 1990000000
	docker_limited all "$(limit BlkioDeviceReadBps 3000000), $(limit BlkioDeviceWriteBps 4000000),
		$(limit BlkioDeviceReadIOps 50), $(limit BlkioDeviceWriteIOps 60)" -f "$DEV" -s 4k -t 60 &
	check "all four limits: they are in io.max" has all io.max "$DISK rbps=3000000 wbps=4000000 riops=50 wiops=60"
	docker kill all >/dev/null
	wait $!
}

weights() {
	local runs
	docker_run light 50 -f "$DEV" -s 4k -p rand -d 16 -t 60 &
	runs=$!
	docker_run heavy 300 -f "$DEV" -s 4k -p rand -d 16 -t 60 -S 2 &
	check "--blkio-weight 50: io.weight has it" has light io.weight "default 50"
	check "--blkio-weight 300: io.weight has it" has heavy io.weight "default 300"
	sleep 2
	check "--blkio-weight 50 and 300: the second container does more" more_than light heavy
	docker update --blkio-weight 1000 light >/dev/null
	check "docker update --blkio-weight 1000: io.weight has it" has light io.weight "default 1000"
	sleep 2
	check "docker update --blkio-weight 1000: the first container does more" more_than heavy light
	docker kill light heavy >/dev/null
	wait $runs $!
	docker_limited disk "$(limit BlkioWeightDevice 300)" -f "$DEV" -s 4k -t 60 &
	check "BlkioWeightDevice: io.weight has it" has disk io.weight "$DISK 300"
	docker kill disk >/dev/null
	wait $!
}

# reads_of NAME: prints how many I/Os a running container has read from the disk
reads_of() { sed -n "s/^$DISK .*rios=\([0-9]*\).*/\1/p" "$(group_of "$1")/io.stat"; }

# more_than A B: container B reads more than half as much again as A in three seconds
more_than() {
	local a b
	a=$(reads_of "$1") b=$(reads_of "$2")
	sleep 3
	a=$(($(reads_of "$1") - a)) b=$(($(reads_of "$2") - b))
	echo "$1 $a, $2 $b"
	[ "$a" -gt 0 ] && [ $((2 * b)) -gt $((3 * a)) ]
}

plan 10
null_dev fast memory_backed=1 size=256 completion_nsec=20000
DISK=$(devno "$DEV")
rootfs
start_docker
limits
null_dev slow completion_nsec=4000000 hw_queue_depth=8
DISK=$(devno "$DEV")
weights
