# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
# Sourced by blkio_lib.sh: the ioband tracepoints, in a trace instance of its own.
TRACEFS=/sys/kernel/tracing
TRACE=			# the instance, once trace_start has made it

has_trace() { [ -d $TRACEFS/events/ioband ]; }

# trace_start [EVENT...]: begins to record EVENTs, all five events by default
trace_start() {
	local event
	mountpoint -q $TRACEFS || mount -t tracefs none $TRACEFS
	has_trace || return 1
	TRACE=$TRACEFS/instances/blkio-$$
	[ -d "$TRACE" ] || mkdir "$TRACE"
	echo 0 >"$TRACE/tracing_on"
	echo >"$TRACE/trace"
	echo "${TRACE_KB:-65536}" >"$TRACE/buffer_size_kb"
	[ $# != 0 ] || set -- admit hold release return complete
	echo 0 >"$TRACE/events/enable"
	for event; do
		echo 1 >"$TRACE/events/ioband/ioband_$event/enable"
	done
	echo 1 >"$TRACE/tracing_on"
}

# trace_stop FILE: writes what was recorded to FILE; no event may have been lost
trace_stop() {
	echo 0 >"$TRACE/tracing_on"
	grep ' ioband_' "$TRACE/trace" >"$1" || true
	! grep -hE '^(overrun|dropped events): [1-9]' "$TRACE"/per_cpu/cpu*/stats ||
		bail "the trace buffer was too small"
	echo >"$TRACE/trace"
}

trace_end() {
	[ -z "$TRACE" ] || [ ! -d "$TRACE" ] || {
		echo 0 >"$TRACE/tracing_on"
		rmdir "$TRACE"
	}
}

# cgid GROUP: the number of the group in the trace
cgid() { stat -c %i "$CG/$1"; }
