#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# configs: uml-vt
# timeout: 300
# environment: ATTACK_WITHOUT
# Attacks on limits, generated from seeds: those of cgroup v2 among seeds 71-140; see stress_attack.sh.
ATTACK_SEED=71-140 ATTACK_ONLY=v2
. "$(dirname "$0")/stress_attack.sh"
