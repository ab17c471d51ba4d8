#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# configs: uml-debug
# timeout: 900
# Everything around the load changes while it runs: limits, groups, tasks, schedulers, queue settings. No I/O is lost,
# all data is right, and no bio is held in the end. SECONDS_EACH (3) is the time for each kind of change.
# shellcheck source=lib/stress_lib.sh
. "$(dirname "$0")/lib/stress_lib.sh"

# shellcheck source=lib/stress_changes.sh
. "$HERE/lib/stress_changes.sh"

plan 30
leaks_begin

mount_cgroup v2
group a a/x a/y b b/z
ALL="a a/x a/y b b/z"
WHERE="a/x a/y b/z b/z"
scenario "v2, rules" "$WHERE" "rules $ALL" "look $ALL"
scenario "v2, schedulers and frozen queues" "$WHERE" "rules a a/x b" "elevator" "queue" "hw_queues"
scenario "v2, groups and tasks" "$WHERE" "rules a a/y b" "groups a/" "groups b/" "migrate a/x a/y b/z" "cpus"
scenario "v2, all of it" "$WHERE" "rules $ALL" "elevator" "queue" "groups a/" "migrate a/x a/y b/z" "cpus" "look $ALL"
umount_cgroup

mount_cgroup v1
group a b a/x
ALL="a b a/x /"
WHERE="a b a/x /"
scenario "v1, rules" "$WHERE" "rules $ALL" "reset $ALL" "look $ALL"
scenario "v1, schedulers and frozen queues" "$WHERE" "rules a b" "elevator" "queue" "hw_queues"
scenario "v1, groups and tasks" "$WHERE" "rules $ALL" "groups a/" "migrate $ALL" "cpus" "elevator"
umount_cgroup

leak_point
check "the kernel log has no splats" no_splat
