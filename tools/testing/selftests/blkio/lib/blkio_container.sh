# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
# Sourced by the tests of container runtimes after blkio_tools.sh: bundles whose root has the programs of the guest,
# containers that run one load each, and points about limits and weights of crun, runc and podman.
ROOTFS=$TMP/rootfs
case $CGV in v1) WEIGHT=blkio.weight ;; v2) WEIGHT=io.weight ;; esac
# without this podman needs IPv4
printf '[containers]\ndefault_sysctls = []\n' >"$TMP/containers.conf"
export CONTAINERS_CONF=$TMP/containers.conf

# rootfs: makes the root of a container; its contents are mounted from the root of the guest
rootfs() {
	mkdir -p "$ROOTFS"/{usr,load,proc,sys,dev,tmp,etc,run,var}
	ln -s usr/bin usr/lib usr/lib64 usr/sbin "$ROOTFS"
}

# oci_device KEY VALUE: the entry of DISK in config.json
oci_device() { echo "{\"major\": ${DISK%:*}, \"minor\": ${DISK#*:}, \"$1\": $2}"; }

# bundle NAME BLOCKIO OPTION...: the bundle of a container that runs a load
bundle() {
	local name=$1 block=$2 args
	shift 2
	args=$(jq -nc --args '$ARGS.positional' -- /load/blkio_load "$@")
	mkdir -p "$TMP/$name"
	ln -sfn "$ROOTFS" "$TMP/$name/rootfs"
	jq -n --argjson args "$args" --argjson block "$block" --arg root "$ROOTFS" --arg load "$(dirname "$LOAD")" --arg name "$name" '
		def bound($from; $to; $how): {destination: $to, source: $from, type: "bind", options: ["rbind", $how]};
		{ociVersion: "1.0.2", root: {path: $root}, hostname: $name,
		 process: {cwd: "/", user: {uid: 0, gid: 0}, env: ["PATH=/usr/bin"], args: $args},
		 mounts: [{destination: "/proc", type: "proc", source: "proc"}, bound("/usr"; "/usr"; "ro"), bound($load; "/load"; "ro"),
			  bound("/dev"; "/dev"; "rw")],
		 linux: {cgroupsPath: ("/" + $name), namespaces: [{type: "pid"}, {type: "mount"}, {type: "uts"}, {type: "ipc"}],
			 resources: {devices: [{allow: true, access: "rwm"}], blockIO: $block}}}' >"$TMP/$name/config.json"
}

# runtime RUNTIME NAME: runs the container to its end; the output of the load is in NAME.json
runtime() {
	"$1" --root "$TMP/state-$1" run -b "$TMP/$2" "$2" >"$TMP/$2.json" 2>"$TMP/$2.err" </dev/null || cat "$TMP/$2.err"
}

# all_asked DIR: waits for up to ten seconds until the group has its four limits
all_asked() {
	local i
	for ((i = 0; i < 100; i++)); do
		case $CGV in
		v2) ! grep -xF "$DISK rbps=3000000 wbps=4000000 riops=50 wiops=60" "$1/io.max" 2>/dev/null || return 0 ;;
		v1) [ "$(cat "$1"/blkio.throttle.{read,write}_{bps,iops}_device 2>/dev/null)" != \
			"$(printf "$DISK %s\n" 3000000 50 4000000 60)" ] || return 0 ;;
		esac
		sleep 0.1
	done
	return 1
}

# limits RUNTIME: points about 80 I/Os of 64 KiB at 3 MB/s, 200 I/Os at 100 IOPS, and limits after "update"
limits() {
	local runtime=$1 all
	bundle "$runtime" "{\"throttleReadBpsDevice\": [$(oci_device rate 3000000)]}" -f "$DEV" -s 64k -n 80
	runtime "$runtime" "$runtime"
	check "$runtime, throttleReadBpsDevice: a container has the rate" took "$runtime" "$(paced 65536 80 3000000)"
	bundle "$runtime" "{\"throttleWriteIOPSDevice\": [$(oci_device rate 100)]}" -f "$DEV" -o w -s 4k -d 8 -t 2
	runtime "$runtime" "$runtime"
	check "$runtime, throttleWriteIOPSDevice: a container has the rate" within "$(val "$runtime" ios)" 200 10000
	all="{\"throttleReadBpsDevice\": [$(oci_device rate 3000000)], \"throttleWriteBpsDevice\": [$(oci_device rate 4000000)],
		\"throttleReadIOPSDevice\": [$(oci_device rate 50)], \"throttleWriteIOPSDevice\": [$(oci_device rate 60)]}"
	bundle "$runtime" "$all" -f "$DEV" -s 4k -t 30
	runtime "$runtime" "$runtime" &
	check "$runtime, all four limits: they are in the files of the group" all_asked "$CG/$runtime"
	"$runtime" --root "$TMP/state-$runtime" update --blkio-weight 600 "$runtime"
	check "$runtime update --blkio-weight: the new weight is set" equal "$(sed 's/default //' "$CG/$runtime/$WEIGHT")" 600
	"$runtime" --root "$TMP/state-$runtime" kill "$runtime" KILL
	wait $!
}

# weights RUNTIME: two containers with weights 1:3
weights() {
	local runtime=$1
	shared "$runtime, weight 100 and 300: shares" "$runtime" '{"weight": 100}' '{"weight": 300}'
	shared "$runtime, weightDevice 100 and 300: shares" "$runtime" \
		"{\"weightDevice\": [$(oci_device weight 100)]}" "{\"weightDevice\": [$(oci_device weight 300)]}"
}

# shared TEXT RUNTIME BLOCKIO BLOCKIO: a point: of two containers the second gets PERMILLE (750) of all I/O
shared() {
	bundle light "$3" -f "$DEV" -s 4k -p rand -d 16 -t 6
	bundle heavy "$4" -f "$DEV" -s 4k -p rand -d 16 -t 6 -S 2
	runtime "$2" light &
	runtime "$2" heavy
	wait
	check "$1" parts light heavy "${PERMILLE:-750}"
}

# contained NAME OPTION... -- OPTION...: ENGINE runs a container of IMAGE with a load, whose output is in NAME.json
contained() {
	local name=$1 options=()
	shift
	while [ "$1" != -- ]; do options+=("$1"); shift; done
	shift
	"${ENGINE[@]}" run --rm --name "$name" --network none --log-driver none -v /usr:/usr:ro -v "$(dirname "$LOAD"):/load:ro" \
		--device "$DEV" "${options[@]}" "${IMAGE[@]}" /load/blkio_load "$@" >"$TMP/$name.json" 2>"$TMP/$name.err" ||
		cat "$TMP/$name.err"
}

# engine_limits TEXT: the points of the four options of limits
engine_limits() {
	contained reads --device-read-bps "$DEV:3mb" -- -f "$DEV" -s 64k -n 80
	check "$1 --device-read-bps: a container has the rate" took reads "$(paced 65536 80 3145728)"
	contained writes --device-write-bps "$DEV:3mb" -- -f "$DEV" -o w -s 64k -n 80
	check "$1 --device-write-bps: a container has the rate" took writes "$(paced 65536 80 3145728)"
	contained rops --device-read-iops "$DEV:50" -- -f "$DEV" -s 4k -d 4 -t 2
	check "$1 --device-read-iops: a container has the rate" within "$(val rops ios)" 100 10000
	contained wops --device-write-iops "$DEV:100" -- -f "$DEV" -o w -s 4k -d 4 -t 2
	check "$1 --device-write-iops: a container has the rate" within "$(val wops ios)" 200 10000
}

# engine_shares TEXT OPTION OPTION: two containers with weights 1:3
engine_shares() {
	start_soon
	contained light "$2" -- -f "$DEV" -s 4k -p rand -d 16 -t 6 -w 1 &
	contained heavy "$3" -- -f "$DEV" -s 4k -p rand -d 16 -t 6 -w 1 -S 2
	wait $!
	check "$1" parts light heavy 750
}

# engine_weights TEXT: the points of the options of weights
engine_weights() {
	engine_shares "$1 --blkio-weight 100 and 300: shares" --blkio-weight=100 --blkio-weight=300
	engine_shares "$1 --blkio-weight-device: shares" "--blkio-weight-device=$DEV:100" "--blkio-weight-device=$DEV:300"
}

# containers: the 18 points of all runtimes and of podman
containers() {
	null_dev fast memory_backed=1 size=256 completion_nsec=20000
	DISK=$(devno "$DEV")
	rootfs
	limits crun
	limits runc
	ENGINE=(podman --root "$TMP/podman" --runroot "$TMP/podman-run" --storage-driver vfs --cgroup-manager cgroupfs
		--runtime "$(command -v crun)" --events-backend none)
	IMAGE=(--rootfs "$ROOTFS")
	engine_limits podman
	null_dev slow completion_nsec=4000000 hw_queue_depth=8
	DISK=$(devno "$DEV")
	weights crun
	weights runc
	engine_weights podman
}
