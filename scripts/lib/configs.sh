# SPDX-License-Identifier: GPL-2.0
# Sourced after lib.sh: says what each kernel configuration consists of, where it is built, and how it boots.
# shellcheck shell=bash

# Prints the names of the kernels that can boot: those of scripts/build, uml-vt with other roots, and what scripts/bench
# and scripts/check-deb make.
config_names() {
	echo uml-vt uml-demo uml-base uml-debug uml-tools uml-tools-long uml-tools-real
	echo qemu qemu-tools qemu-trace qemu-kcsan qemu-rt qemu-cluster qemu-plain qemu-deb
}

# config_known NAME: dies if there is no such kernel
config_known() {
	# shellcheck disable=SC2046 # names are words
	one_of kernel "$1" $(config_names)
}

# config_built NAME: dies if there is no such kernel, or if it is not built
config_built() {
	config_known "$1"
	[ -f "$(config_image "$1")" ] || die "no kernel $(config_image "$1")" "scripts/build $1"
}

config_fragments() {
	case $1 in
	uml-vt|uml-tools|uml-tools-long|uml-tools-real) echo base fs uml vt containers ;;
	uml-demo)  echo base uml vt ;;
	uml-base)  echo base uml smp ;;
	uml-debug) echo base uml smp debug ;;
	qemu)      echo base fs qemu ;;
	qemu-tools) echo base qemu containers modules ;;
	qemu-trace) echo base qemu trace ;;
	qemu-kcsan) echo base qemu kcsan ;;
	qemu-rt) echo base qemu rt ;;
	qemu-cluster) echo base qemu cluster ;;
	*) die "no such configuration: '$1'" "one of uml-vt uml-demo uml-base uml-debug qemu qemu-tools qemu-trace qemu-kcsan qemu-rt qemu-cluster" ;;
	esac
}

# Prints the options that a configuration asks for, without those that a longterm kernel does not have
# (patches/BASE/kernel.pin). Options of ioband are left out of a tree that does not have block/ioband.
config_wanted() {
	local f
	for f in $(config_fragments "$1"); do cat "$TOP/kconfig/$f.config"; done |
		if [ -n "${PIN_LACKS:-}" ]; then sed -E "/^(# )?($PIN_LACKS)[ =]/d"; else cat; fi |
		if [ -d "$BUILD/tree/block/ioband" ]; then cat; else sed '/IOBAND/d'; fi
}

# config_missing WANTED GOT: prints options of the file WANTED that are not so in the file GOT. Of an option that two
# fragments set the last one counts; an option that is to be off may also be unknown.
config_missing() {
	sed -n 's/^# \(CONFIG_[A-Z0-9_]*\) is not set$/\1=n/p; /^CONFIG_.*=/p' "$1" |
		awk -F= '{ last[$1] = $0 } END { for (name in last) if (last[name] !~ /=n$/) print last[name] }' |
		sort | grep -vxFf "$2" || true
}

config_arch()   { case $1 in uml-*) echo um ;; *) echo x86_64 ;; esac }
config_target() { case $1 in uml-*) echo linux ;; *) echo bzImage ;; esac }
# uml-tools and uml-tools-long are the kernel of uml-vt with a Debian root, see scripts/debian-root; uml-tools-real is the
# same in real time.
config_obj()    { echo "$BUILD/obj-${1/#uml-tools*/uml-vt}"; }
# qemu-deb is the kernel that scripts/check-deb installed.
config_image() {
	case $1 in
	uml-*)    echo "$(config_obj "$1")/linux" ;;
	qemu-deb) echo "$BUILD"/deb/root/boot/vmlinuz-* ;;
	*)        echo "$(config_obj "$1")/arch/x86/boot/bzImage" ;;
	esac
}
# The configuration with KCSAN is built by clang.
config_cc()     { case $1 in qemu-kcsan) echo clang-19 ;; *) echo gcc ;; esac }

# Guest memory in MiB.
config_memory() { case $1 in uml-debug) echo 2048 ;; *) echo 1024 ;; esac }

config_bootargs() {
	case $1 in
	uml-tools-real) echo "seccomp=on" ;;
	uml-vt|uml-demo|uml-tools*) echo "seccomp=on time-travel=inf-cpu scsi_debug.add_host=0 scsi_debug.host_max_queue=64 scsi_debug.fake_rw=1" ;;
	uml-base|uml-debug) echo "seccomp=on ncpus=2" ;;
	qemu*)              echo "" ;;
	esac
}

# Prints the names of the KUnit suites of the series.
kunit_suites() { sed -n 's/^\t\.name = "\(ioband_[a-z]*\)",$/\1/p' "$TOP"/block/ioband/tests/*_kunit.c "$TOP"/kernel/cgroup/*_kunit.c; }
