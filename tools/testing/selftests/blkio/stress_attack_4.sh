#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# configs: uml-vt
# timeout: 300
# environment: ATTACK_WITHOUT
# Attacks on limits, generated from seeds: those of cgroup v1 among seeds 1-200; see stress_attack.sh.
ATTACK_SEED=1-200 ATTACK_ONLY=v1
. "$(dirname "$0")/stress_attack.sh"
