# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
# Sourced by tool_explain*.sh after blkio_lib.sh: runs tools/cgroup/ioband_explain.py and looks at its answers.
EXPLAIN=$HERE/../../../cgroup/ioband_explain.py
[ -e "$EXPLAIN" ] || skip_all "tools/cgroup is not installed"

# explain OPTION...: puts the answer as JSON into $TMP/json; as text into $TMP/text if the first option is "text"
explain() {
	if [ "$1" = text ]; then
		shift
		python3 -B "$EXPLAIN" "$@" >"$TMP/text"
	else
		python3 -B "$EXPLAIN" --json "$@" >"$TMP/json"
	fi
}

coproc JUDGE {
	exec python3 -u -B -c '
import json, sys
def on(group, disk):
    return next(one for one in d["disks"] if (one["cgroup"], one["disk"]) == (group, disk))
def said(text):
    return any(text in one for one in d.get("says", []) + d.get("wrong", []) + sum((one["says"] for one in d.get("disks", [])), []))
for line in sys.stdin:
    file, number, text = line.rstrip("\n").split("\t")
    passed = False
    try:
        d = json.load(open(file))
        below0 = next((target["place"]["nodes"][0] for target in d.get("targets", []) if target["place"] and target["place"]["nodes"]), {})
        passed = eval(text)
    except Exception as trouble:
        print(repr(trouble))
    if not passed:
        shown = json.dumps({key: d[key] for key in d if key not in ("report", "hierarchy")})
        for i in range(0, min(len(shown), 3600), 180): print(shown[i:i + 180])
    print("passed" if passed else "failed")
'
}

# says EXPRESSION: is a Python expression about the last answer, d, true? In it on("GROUP", "DISK") is the answer
# about a group on a disk, said(TEXT) is true if a sentence has TEXT, number is the number of DEV, and below0 the first
# disk of the first target
says() {
	local line
	printf '%s\t%s\t%s\n' "$TMP/json" "$(devno "$DEV")" "${1//[$'\n\t']/ }" >&"${JUDGE[1]}"
	while IFS= read -r line <&"${JUDGE[0]}"; do
		case $line in
		passed) return 0 ;;
		failed) return 1 ;;
		*) printf '%s\n' "$line" ;;
		esac
	done
	return 1
}

# typed NUMBER: runs command NUMBER of the last answer, which has to succeed
typed() {
	local line
	line=$(python3 -c 'import json, sys; print(json.load(open(sys.argv[1]))["type"][int(sys.argv[2]) - 1])' "$TMP/json" "$1")
	echo "$line"
	eval "$line"
}

# refused_with STATUS TEXT OPTION...: the tool ends with STATUS and an error that has TEXT, and without a traceback
refused_with() {
	local status=0 wanted=$1 text=$2
	shift 2
	python3 -B "$EXPLAIN" "$@" >"$TMP/text" 2>"$TMP/stderr" || status=$?
	cat "$TMP/stderr"
	[ "$status" = "$wanted" ] && grep -qF -- "$text" "$TMP/stderr" && ! grep -q Traceback "$TMP/stderr"
}
