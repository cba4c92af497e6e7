// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0
// A TCP congestion control of your own: Reno with a window that a loss multiplies by a parameter.
//
// nagi compiles this file for the lab it runs in: an eBPF object for netns and real hosts, a kernel module
// for the virtual lab. The kernel detects losses and sends segments again; the functions below set the
// window, in segments. What they may define, and when they are called, is in hosts/tcp/glue/hooks.h of nagi.
//
// eBPF's verifier wants loops with bounds that it can see, no floating point, and no calls of functions
// that are not inline. Kernel modules have no floating point either.
#include "glue/scheme.h"

#include "glue/control.h"
#include "glue/loss_is_congestion.h"  // every loss is taken for congestion
#include "glue/reno_growth.h"         // slow start and congestion avoidance

// name, default, minimum, maximum, unit, meaning. An experiment sets it: `parameters: {scheme.c: {keep: 70}}`
NAGI_PARAMETER(keep, 50, 1, 100, "%", "share of the window that a loss leaves");

// What an ACK in recovery does that shows another loss: NAGI_NEWRENO sends that segment again at once.
#define NAGI_RECOVERY_OF NAGI_NEWRENO

// State of a connection, all zeros at its start; at most 64 bytes.
struct nagi_own {
  __u32 min_rtt_us;
};

NAGI_INLINE void own_start(const struct nagi_connection* of) { (void)of; }

// Every ACK, before anything is decided.
NAGI_INLINE void own_ack(const struct nagi_connection* of, const struct nagi_ack* ack) {
  if (ack->rtt_us && (of->own->min_rtt_us == 0 || ack->rtt_us < of->own->min_rtt_us))
    of->own->min_rtt_us = ack->rtt_us;
}

// A loss after three duplicate ACKs, or a congestion mark.
NAGI_INLINE void own_congestion(const struct nagi_connection* of) {
  struct nagi_window* window = &of->control->window;
  __u32 left = nagi_max((__u64)window->cwnd * keep / 100, NAGI_MIN_THRESHOLD);

  nagi_window_set(window, left, left);
}

// The retransmission timer.
NAGI_INLINE enum nagi_verdict own_timeout(const struct nagi_connection* of) {
  struct nagi_window* window = &of->control->window;

  nagi_window_set(window, 1, nagi_half(window->cwnd, of->tp->packets_out));
  return NAGI_CONGESTION;
}

// What there is to say of the state, in events and reports.
NAGI_INLINE void own_describe(const struct nagi_connection* of, struct nagi_event* event) {
  event->min_rtt_us = of->own->min_rtt_us;
}

#include "glue/hooks.h"

NAGI_SCHEME(scheme);  // the name of the file
