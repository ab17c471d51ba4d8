#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# configs: uml-vt
# timeout: 300
# environment: ATTACK_WITHOUT
# Attacks on limits, generated from seeds: some that once exceeded their limits; see attack.sh.
# They have threads and stores through a mapping below one limit of a disk below dm, each group with
# a debt of its own; and a task that causes nothing but metadata, on a loop device.
ATTACK_SEED=468,527,602,963,1219,1494,1566,1756
. "$(dirname "$0")/attack.sh"
