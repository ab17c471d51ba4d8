#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# configs: uml-vt
# timeout: 300
# environment: ATTACK_WITHOUT
# Attacks on limits, generated from seeds: some that once exceeded their limits; see stress_attack.sh.
# The seeds are for threads and stores through a mapping, where one limit on a disk below dm is above several groups
# with a debt each; and for a task that causes only metadata, on a loop device.
ATTACK_SEED=468,527,602,963,1219,1494,1566,1756
. "$(dirname "$0")/stress_attack.sh"
