// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0
//
// TCP-Real: Zhang and Tsaoussidis, "TCP-Real: Improving Real-time Capabilities of TCP over Heterogeneous
// Networks", NOSSDAV 2001, section 2.2. The receiver decides: from the rate at which a wave of segments arrives
// it chooses the level of the next wave (arithmetic/waves.h). It sends the level to the sender in a TCP option
// of four bytes on every ACK without data. The sender reacts as follows:
//
//   every ACK:              cwnd = 2 x level
//   three duplicate ACKs:   retransmit; only the receiver changes the window
//   timeout:                retransmit; cwnd = 2 until the next option, but only if no duplicate ACK has arrived
//                           since the timer was set, so that no option can have arrived either
//
// Recovery is that of Reno ("TCP-Real extends TCP-Reno"); reno.c also describes the differences that the kernel
// forces there. If the receiver sends no option, the sender behaves as Reno and reports the event
// NAGI_FALLBACK.
//
// The paper does not say at which level a connection begins, and on a path that does not change the rule keeps
// that level. The parameters initial_level and initial_threshold set it; their defaults are half of the maximum.
// Section 2.1 of the paper backs off at every timeout, section 2.2 (implementation) only at timeouts without
// duplicate ACKs. This file follows section 2.2.
#define NAGI_SHARED
#define NAGI_SEES_ARRIVALS
#define NAGI_WRITES_OPTION
#define NAGI_FALLS_BACK

#include "glue/scheme.h"

#include "arithmetic/waves.h"
#include "glue/control.h"
#include "glue/packets.h"

NAGI_PARAMETER(initial_level, 12, 1, 1000, "levels", "wave level at which a receiver begins");
NAGI_PARAMETER(initial_threshold, 12, 1, 1000, "levels",
               "initial threshold: wave level above which the weights of large waves apply");
NAGI_PARAMETER(max_level, 24, 1, 1000, "levels", "largest wave level; a level is two segments");
NAGI_PARAMETER(cwnd_after_rto, 2, 1, 1000, "segments",
               "window after a timeout without duplicate ACKs");

#define NAGI_RECOVERY_OF NAGI_RENO

struct nagi_shared {
  struct nagi_waves waves;  // of the data that this end receives
  __u16 peer_level;         // level that the other end has sent; 0 before the first option
};

struct nagi_own {
  __u8 has_level;        // the other end has sent a level
  __u8 has_fallen_back;  // an ACK arrived before any level
  __u8 saw_duplicate;    // a duplicate ACK has arrived since the retransmission timer was set
};

NAGI_INLINE struct nagi_waves_limits waves_limits(void) {
  struct nagi_waves_limits limits = {.initial_level = initial_level,
                                     .initial_threshold = initial_threshold,
                                     .max_level = max_level};

  return limits;
}

NAGI_INLINE void own_share(struct nagi_shared* shared) {
  struct nagi_waves_limits limits = waves_limits();

  nagi_waves_start(&shared->waves, &limits);
}

NAGI_INLINE void own_arrival(struct nagi_shared* shared, const struct nagi_packet* packet) {
  struct nagi_waves_limits limits = waves_limits();

  if (packet->has_option) shared->peer_level = packet->option;
  if (packet->payload != 0)
    nagi_waves_arrival(&shared->waves, packet->sequence, packet->payload, packet->now_us, &limits);
}

NAGI_INLINE __u16 own_option(const struct nagi_shared* shared) {
  return nagi_waves_level(&shared->waves);
}

NAGI_INLINE void own_start(const struct nagi_connection* connection) { (void)connection; }

NAGI_INLINE void own_ack(const struct nagi_connection* connection, const struct nagi_ack* ack) {
  struct nagi_window* window = &connection->control->window;
  __u32 level = connection->shared ? connection->shared->peer_level : 0;

  connection->own->saw_duplicate = !ack->advances;
  if (level == 0) return;
  connection->own->has_level = 1;
  window->cwnd = nagi_min(nagi_wave_window(level), connection->tp->snd_cwnd_clamp);
}

NAGI_INLINE _Bool own_falls_back(const struct nagi_connection* connection) {
  if (connection->own->has_level || connection->own->has_fallen_back) return 0;
  connection->own->has_fallen_back = 1;
  return 1;
}

NAGI_INLINE void own_grow(const struct nagi_connection* connection, __u32 segments) {
  if (!connection->own->has_level) nagi_grow(connection, segments);
}

NAGI_INLINE void own_congestion(const struct nagi_connection* connection) {
  if (!connection->own->has_level) nagi_halve(connection);
}

NAGI_INLINE enum nagi_verdict own_duplicates(const struct nagi_connection* connection) {
  own_congestion(connection);
  return connection->own->has_level ? NAGI_UNDECIDED : NAGI_CONGESTION;
}

NAGI_INLINE enum nagi_verdict own_timeout(const struct nagi_connection* connection) {
  struct nagi_window* window = &connection->control->window;
  enum nagi_verdict verdict = NAGI_CONGESTION;

  if (!connection->own->has_level) {
    nagi_halve(connection);
    nagi_window_set(window, 1, window->ssthresh);
  } else if (connection->own->saw_duplicate) {
    verdict = NAGI_UNDECIDED;
  } else {
    window->cwnd = nagi_min(window->cwnd, cwnd_after_rto);
  }
  connection->own->saw_duplicate = 0;
  return verdict;
}

NAGI_INLINE void own_describe(const struct nagi_connection* connection, struct nagi_event* event) {
  (void)connection;
  (void)event;
}

#include "glue/hooks.h"

NAGI_SCHEME(real);
