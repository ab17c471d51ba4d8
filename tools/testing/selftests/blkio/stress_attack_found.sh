#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# configs: uml-vt
# timeout: 300
# environment: ATTACK_WITHOUT
# Attacks on limits, generated from seeds: some that once exceeded their limits; see stress_attack.sh.
# The seeds are for threads and stores through a mapping, where one limit on a disk below dm is above several groups
# with a debt each; for a task that causes only metadata, on a loop device; for reads through the page cache by several
# tasks below one limit; for direct I/O that becomes more bios than was expected; for two groups above one limit on a disk
# below loop; and for a task that starts others.
ATTACK_SEED=207,313,468,478,527,602,645,786,963,1194,1197,1219,1494,1499,1566,1742,1756
. "$(dirname "$0")/stress_attack.sh"
