// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0
//
// TCP-Real: Zhang and Tsaoussidis, "TCP-Real: Improving Real-time Capabilities of TCP over Heterogeneous
// Networks", NOSSDAV 2001, section 2.2. The receiver decides: by the rate at which a wave of segments comes
// in it chooses the level of the next one (arithmetic/waves.h), and tells it to the sender by a TCP option of
// four bytes on every ACK without data. At the sender
//
//   every ACK:              cwnd = 2 x level
//   three duplicate ACKs:   retransmit; the window is the receiver's to change
//   a timeout:              retransmit; cwnd = 2 until the next option, but only if no duplicate ACK has come
//                           since the timer was set, so that no option can have come either
//
// Recovery is Reno's ("TCP-Real extends TCP-Reno"); see reno.c, also for what the kernel forces there. A
// sender whose receiver sends no option is Reno, and says so by an event.
//
// What the paper leaves open: where a connection begins (initial_level, initial_threshold; the middle), since
// on a path without changes the rule keeps the level as it is. Section 2.1 backs off at every timeout, section
// 2.2, on the implementation, only without duplicate ACKs: the latter holds.
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
               "wave level above which its weights are those of large waves, at first");
NAGI_PARAMETER(max_level, 24, 1, 1000, "levels", "largest wave level; a level is two segments");
NAGI_PARAMETER(cwnd_after_rto, 2, 1, 1000, "segments",
               "window after a timeout without duplicate ACKs");

#define NAGI_RECOVERY_OF NAGI_RENO

struct nagi_shared {
  struct nagi_waves waves;  // of data that comes in
  __u16 told_level;         // by the other end; 0: not yet
};

struct nagi_own {
  __u8 has_level;        // the other end has told a level
  __u8 has_fallen_back;  // an ACK of data came without one
  __u8 saw_duplicate;    // since the retransmission timer was set
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

  if (packet->has_option) shared->told_level = packet->option;
  if (packet->payload != 0)
    nagi_waves_arrival(&shared->waves, packet->sequence, packet->payload, packet->now_us, &limits);
}

NAGI_INLINE __u16 own_option(const struct nagi_shared* shared) {
  return nagi_waves_level(&shared->waves);
}

NAGI_INLINE void own_start(const struct nagi_connection* of) { (void)of; }

NAGI_INLINE void own_ack(const struct nagi_connection* of, const struct nagi_ack* ack) {
  struct nagi_window* window = &of->control->window;
  __u32 level = of->shared ? of->shared->told_level : 0;

  of->own->saw_duplicate = !ack->advances;
  if (level == 0) return;
  of->own->has_level = 1;
  window->cwnd = nagi_min(nagi_wave_window(level), of->tp->snd_cwnd_clamp);
}

NAGI_INLINE _Bool own_falls_back(const struct nagi_connection* of) {
  if (of->own->has_level || of->own->has_fallen_back) return 0;
  of->own->has_fallen_back = 1;
  return 1;
}

NAGI_INLINE void own_grow(const struct nagi_connection* of, __u32 segments) {
  if (!of->own->has_level) nagi_grow(of, segments);
}

NAGI_INLINE void own_congestion(const struct nagi_connection* of) {
  if (!of->own->has_level) nagi_halve(of);
}

NAGI_INLINE enum nagi_verdict own_duplicates(const struct nagi_connection* of) {
  own_congestion(of);
  return of->own->has_level ? NAGI_UNDECIDED : NAGI_CONGESTION;
}

NAGI_INLINE enum nagi_verdict own_timeout(const struct nagi_connection* of) {
  struct nagi_window* window = &of->control->window;
  enum nagi_verdict verdict = NAGI_CONGESTION;

  if (!of->own->has_level) {
    nagi_halve(of);
    nagi_window_set(window, 1, window->ssthresh);
  } else if (of->own->saw_duplicate) {
    verdict = NAGI_UNDECIDED;
  } else {
    window->cwnd = nagi_min(window->cwnd, cwnd_after_rto);
  }
  of->own->saw_duplicate = 0;
  return verdict;
}

NAGI_INLINE void own_describe(const struct nagi_connection* of, struct nagi_event* event) {
  (void)of;
  (void)event;
}

#include "glue/hooks.h"

NAGI_SCHEME(real);
