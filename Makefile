# SPDX-License-Identifier: GPL-2.0
# ioband: exact I/O limits and weights for cgroups, as a patch series for Linux. "make" explains the targets.
CONFIG ?= uml-vt
LONGTERM = $(patsubst patches/%/kernel.pin,%,$(wildcard patches/*/kernel.pin))
ifdef BASE
export BASE
endif

help:
	@echo 'make demo            limits and weights on a real kernel: asked, got, mainline and earlier systems; pictures'
	@echo '                     (the first time it builds a kernel)'
	@echo 'make check           tests of the sources, and of kernels in guests; ends with "N passed, N failed" (about an hour)'
	@echo 'make check-all       the same with what takes long: x86-64 in qemu, other machines (before a series is sent)'
	@echo 'make quick           the tests that fail most often (five minutes)'
	@echo 'make check-tools     the tests with systemd, crun, runc, podman, docker, libvirt and LXC in Debian 12 and 13 (ten minutes)'
	@echo 'make bench           ioband against mainline in the same kernel (40 minutes)'
	@echo 'make lab             the share engine against model devices at their real speed, in user space (five minutes)'
	@echo 'make shell           an interactive shell in the patched kernel'
	@echo 'make vm              a virtual machine with a Debian root and systemd, to try things in (KVM if it is there)'
	@echo 'make deb             Debian packages of the patched kernel, from the configuration of this machine, or CONFIG=FILE'
	@echo 'make check-disk DISK=/dev/...  limits and weights on a disk of this machine, which must run ioband; only reads,'
	@echo '                     unless ERASE=yes; READ=yes: also if in use or with data; prints a report (two minutes)'
	@echo 'make check-deb       installs such packages in a Debian root, boots what they installed (half an hour)'
	@echo 'make check-vm        drives make vm as its user would (ten minutes without KVM)'
	@echo 'make check-cluster   limits on clustered md: two guests with the same disks (four minutes)'
	@echo 'make tree DIR=...    the patched kernel tree in DIR, or the patches applied to the tree that is there'
	@echo 'make check-longterm  the tests in virtual time on each of the other kernels $(LONGTERM), which BASE=6.12 chooses'
	@echo '                     for demo, selftest, shell and tree as well (an hour)'
	@echo 'make patches         writes the new files in patches/ anew from the sources'
	@echo 'make lab-long        make lab with 20 seeds each, and its tables (an hour and a half)'
	@echo 'make selftest        the tests of one kernel: CONFIG=$(CONFIG) (uml-vt uml-debug qemu), one test: T=name'
	@echo 'make torture         2,000 seeds of attacks on limits, others: FIRST=1 LAST=2000 (half an hour); then random worlds'
	@echo '                     for HOURS=24 of virtual time (half an hour); PARTS="debug kcsan": for MINUTES=60 and 10'
	@echo 'make mutants         do the tests notice the faults of scripts/faults, one at a time? (an hour)'
	@echo 'make clean           removes build/ (except downloads) and out/; make distclean: the downloads too'
	@echo
	@echo 'What is missing on the machine is fetched and installed, as root or with sudo. A kernel source of your'
	@echo 'own: KERNEL=/path/to/linux. Build outputs are in build/, results and logs in out/.'

demo:
	@scripts/deps build test plot
	@scripts/build uml-demo
	@scripts/demo

check:
	@scripts/deps build
	@scripts/check

check-all:
	@scripts/deps build
	@scripts/check --all

# what fails most often, and soonest
QUICK = abi_v1 abi_v2 limit_default limit_split limit_burst dirty_escape limit_window limit_hierarchy \
	limit_live_change limit_wakeups weight_open weight_tree weight_sync limit_meta abi_stats
quick:
	@scripts/deps build test
	@scripts/apply
	@scripts/series check >/dev/null
	@scripts/mutants --check
	@scripts/lab link >/dev/null
	@scripts/build uml-vt
	@points=$$(scripts/kunit uml-vt) || { echo "$$points"; exit 1; }; echo "$$points" | tail -n 1
	@scripts/selftest uml-vt $(QUICK)

check-longterm:
	@scripts/deps build test
	@for base in $(LONGTERM); do scripts/check-longterm $$base || exit; done

check-tools:
	@scripts/deps build test
	@scripts/build uml-vt
	@scripts/debian-root
	@scripts/debian-root trixie
	@scripts/selftest uml-tools-long
	@scripts/selftest uml-tools-real

bench:
	@scripts/deps build test qemu plot
	@scripts/bench

lab:
	@scripts/deps build
	@scripts/apply
	@scripts/lab

lab-long: lab
	@scripts/lab --seeds 20
	@scripts/lab --table readers
	@scripts/lab --table cpus
	@scripts/lab --table yardsticks

shell:
	@scripts/deps build test
	@scripts/shell

vm:
	@scripts/deps build qemu
	@scripts/vm

deb:
	@scripts/deps build deb
	@scripts/deb '$(if $(filter file,$(origin CONFIG)),,$(CONFIG))'

check-disk:
	@scripts/deps build
	@DISK='$(DISK)' ERASE='$(ERASE)' READ='$(READ)' EACH='$(or $(EACH),10)' scripts/check-disk

check-deb:
	@scripts/deps build test qemu deb
	@scripts/check-deb

check-cluster:
	@scripts/deps build test qemu root
	@scripts/check-cluster

check-vm:
	@scripts/deps build qemu
	@scripts/vm-check

tree:
	@test -n '$(DIR)' || { echo 'error: where to? make tree DIR=/path' >&2; exit 1; }
	@scripts/deps build
	@scripts/apply '$(DIR)'

patches:
	@scripts/deps build
	@scripts/series export

selftest:
	@scripts/deps build test $(if $(filter qemu,$(CONFIG)),qemu)
	@scripts/build $(CONFIG)
	@scripts/selftest $(CONFIG) $(T) $(if $(T),-v)

torture:
	@scripts/deps build test
	@scripts/build uml-vt
	@$(if $(filter debug,$(PARTS)),scripts/build uml-debug)
	@$(if $(filter kcsan,$(PARTS)),scripts/deps qemu static && scripts/build qemu-kcsan)
	@scripts/torture $(if $(FIRST),--first $(FIRST)) $(if $(LAST),--last $(LAST)) $(if $(HOURS),--hours $(HOURS)) \
		$(if $(MINUTES),--minutes $(MINUTES)) $(PARTS)

mutants:
	@scripts/deps build test
	@scripts/mutants $(T)

clean:
	rm -rf out build/obj-* build/linux build/tree* build/am build/commits* build/selftests build/mutants build/lab \
		$(foreach base,$(LONGTERM),$(addprefix build/$(base)/,obj-* linux tree* am patches selftests))

distclean:
	rm -rf out build

.PHONY: help demo check check-all quick check-cluster check-deb check-disk check-longterm check-tools check-vm bench deb vm lab lab-long shell tree patches selftest torture mutants clean distclean
