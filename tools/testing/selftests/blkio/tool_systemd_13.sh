#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# tool_systemd.sh with Debian 13's systemd.
# configs: uml-tools-long
# root: trixie
. "$(dirname "$0")/tool_systemd.sh"
