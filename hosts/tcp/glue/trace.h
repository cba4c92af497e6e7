// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0
//
// The tracepoint of a module, nagi:nagi_SCHEME. Its fields have the same names as the fields of struct nagi_event
// (event.h). Kbuild defines the macro NAGI_EVENT as the name of the tracepoint. The kernel's headers include this
// file several times.
#undef TRACE_SYSTEM
#define TRACE_SYSTEM nagi

#if !defined(NAGI_GLUE_TRACE_H) || defined(TRACE_HEADER_MULTI_READ)
#define NAGI_GLUE_TRACE_H

#include <linux/tracepoint.h>

#include "event.h"

// clang-format off
TRACE_EVENT(NAGI_EVENT,
	TP_PROTO(const struct nagi_event *event),
	TP_ARGS(event),
	TP_STRUCT__entry(
		__field(__u64, at_ns)
		__field(__u64, bandwidth)
		__field(__u32, una)
		__field(__u32, next)
		__field(__u32, flight)
		__field(__u32, cwnd_before)
		__field(__u32, cwnd)
		__field(__u32, ssthresh_before)
		__field(__u32, ssthresh)
		__field(__u32, rtt_us)
		__field(__u32, min_rtt_us)
		__field(__u32, backlog_milli)
		__field(__u16, local_port)
		__field(__u16, remote_port)
		__field(__u8, kind)
		__field(__u8, verdict)
	),
	TP_fast_assign(
		__entry->at_ns = event->at_ns;
		__entry->bandwidth = event->bandwidth;
		__entry->una = event->una;
		__entry->next = event->next;
		__entry->flight = event->flight;
		__entry->cwnd_before = event->cwnd_before;
		__entry->cwnd = event->cwnd;
		__entry->ssthresh_before = event->ssthresh_before;
		__entry->ssthresh = event->ssthresh;
		__entry->rtt_us = event->rtt_us;
		__entry->min_rtt_us = event->min_rtt_us;
		__entry->backlog_milli = event->backlog_milli;
		__entry->local_port = event->local_port;
		__entry->remote_port = event->remote_port;
		__entry->kind = event->kind;
		__entry->verdict = event->verdict;
	),
	TP_printk("%s at_ns=%llu local_port=%u remote_port=%u verdict=%s una=%u next=%u flight=%u "
		  "cwnd_before=%u cwnd=%u ssthresh_before=%u ssthresh=%u rtt_us=%u "
		  "min_rtt_us=%u bandwidth=%llu backlog_milli=%u",
		  __print_symbolic(__entry->kind,
				   { NAGI_STARTED, "started" },
				   { NAGI_THREE_DUPLICATES, "three_duplicates" },
				   { NAGI_PARTIAL_ACK, "partial_ack" },
				   { NAGI_TIMEOUT, "timeout" },
				   { NAGI_CONGESTION_MARK, "congestion_mark" },
				   { NAGI_FALLBACK, "fallback" },
				   { NAGI_SAMPLE, "sample" }),
		  __entry->at_ns, __entry->local_port, __entry->remote_port,
		  __print_symbolic(__entry->verdict,
				   { NAGI_NO_VERDICT, "none" },
				   { NAGI_CONGESTION, "congestion" },
				   { NAGI_CHANNEL, "channel" },
				   { NAGI_UNDECIDED, "undecided" }),
		  __entry->una, __entry->next, __entry->flight, __entry->cwnd_before,
		  __entry->cwnd, __entry->ssthresh_before, __entry->ssthresh, __entry->rtt_us,
		  __entry->min_rtt_us, __entry->bandwidth, __entry->backlog_milli)
);
// clang-format on

#endif

#undef TRACE_INCLUDE_PATH
#undef TRACE_INCLUDE_FILE
#define TRACE_INCLUDE_PATH glue
#define TRACE_INCLUDE_FILE trace
#include <trace/define_trace.h>
