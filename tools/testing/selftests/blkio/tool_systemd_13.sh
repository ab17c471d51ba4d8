#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# tool_systemd.sh with the systemd of Debian 13.
# configs: uml-tools-long
# root: trixie
. "$(dirname "$0")/tool_systemd.sh"
