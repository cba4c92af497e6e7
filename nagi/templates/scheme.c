// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0
// A TCP congestion control of your own: Reno with a parameter for the window after a loss.
//
// nagi compiles this file for the lab in use: an eBPF object for netns and real hosts, a kernel module for the
// virtual lab. The kernel detects losses and retransmits segments; the functions below set the window, in
// segments. hosts/tcp/glue/hooks.h of nagi lists these functions and when each is called.
//
// The eBPF verifier requires loops with known bounds, and allows no floating point and no calls of functions
// that are not inline. Kernel modules have no floating point either.
#include "glue/scheme.h"

#include "glue/control.h"
#include "glue/loss_is_congestion.h"  // every loss counts as congestion
#include "glue/reno_growth.h"         // slow start and congestion avoidance

// Name, default, minimum, maximum, unit, meaning. An experiment sets it by `parameters: {scheme.c: {keep: 70}}`.
NAGI_PARAMETER(keep, 50, 1, 100, "%", "share of the window that remains after a loss");

// The reaction to an ACK in recovery that shows another loss: NAGI_NEWRENO retransmits that segment at once.
#define NAGI_RECOVERY_OF NAGI_NEWRENO

// The state of a connection: all zeros at its start, at most 64 bytes.
struct nagi_own {
  __u32 min_rtt_us;
};

NAGI_INLINE void own_start(const struct nagi_connection* connection) { (void)connection; }

// Update the state. Called at every ACK, before the other functions.
NAGI_INLINE void own_ack(const struct nagi_connection* connection, const struct nagi_ack* ack) {
  if (ack->rtt_us && (connection->own->min_rtt_us == 0 || ack->rtt_us < connection->own->min_rtt_us))
    connection->own->min_rtt_us = ack->rtt_us;
}

// Reduce the window. Called at three duplicate ACKs and at congestion marks.
NAGI_INLINE void own_congestion(const struct nagi_connection* connection) {
  struct nagi_window* window = &connection->control->window;
  __u32 left = nagi_max((__u64)window->cwnd * keep / 100, NAGI_MIN_THRESHOLD);

  nagi_window_set(window, left, left);
}

// Reduce the window. Called when the retransmission timer expires.
NAGI_INLINE enum nagi_verdict own_timeout(const struct nagi_connection* connection) {
  struct nagi_window* window = &connection->control->window;

  nagi_window_set(window, 1, nagi_half(window->cwnd, connection->tp->packets_out));
  return NAGI_CONGESTION;
}

// Add the state to an event, for reports.
NAGI_INLINE void own_describe(const struct nagi_connection* connection, struct nagi_event* event) {
  event->min_rtt_us = connection->own->min_rtt_us;
}

#include "glue/hooks.h"

NAGI_SCHEME(scheme);  // the name of the file
