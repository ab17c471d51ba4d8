#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# configs: uml-vt
# timeout: 300
# environment: ATTACK_WITHOUT
# Attacks by seed: some that got more than their limits once; see attack.sh.
# Threads and stores through a mapping below one limit of a disk below dm, each group with
# a debt of its own; metadata that is all a task asks for, on loop.
ATTACK_SEED=468,527,602,963,1219,1494,1566,1756
. "$(dirname "$0")/attack.sh"
