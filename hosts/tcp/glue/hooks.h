// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0
//
// The functions that the kernel calls. They call the hooks of the scheme. A scheme's file includes this header
// after it has defined NAGI_RECOVERY_OF (NAGI_TAHOE, NAGI_RENO or NAGI_NEWRENO), `struct nagi_own`, and these
// hooks:
//
//   hook                             called                                     task
//   own_start(connection)            when the connection begins                 set state that must not begin as 0
//   own_ack(connection, ack)         at every ACK, before the other hooks       update estimates
//   own_grow(connection, segments)   at an ACK of new data outside of recovery  grow the window
//   own_duplicates(connection)       at three duplicate ACKs                    set the window; return the verdict
//   own_congestion(connection)       at a congestion mark                       set the window
//   own_timeout(connection)          when the retransmission timer expires      set the window; return the verdict
//   own_describe(connection, event)  for every event                            add the scheme's state to the event
//
// Headers define those hooks that several schemes share: window_alone.h, reno_growth.h, loss_is_congestion.h,
// westwood.h. A scheme that processes packets defines further hooks; see packets.h. A scheme that needs a feature
// of the other end defines NAGI_FALLS_BACK and
//
//   own_falls_back(connection)       at every ACK   return true once, at the ACK that shows that the other end
//                                                   lacks the feature
#ifndef NAGI_GLUE_HOOKS_H
#define NAGI_GLUE_HOOKS_H

#include "control.h"

#define NAGI_SAMPLE_MS 10

struct nagi_private {
  struct nagi_control control;
  struct nagi_own own;
#if defined(NAGI_SHARED) && defined(__KERNEL__)
  struct nagi_shared shared;
#ifdef NAGI_KEEPS_ACKS
  struct nagi_kept* kept;
#endif
#endif
};
_Static_assert(sizeof(struct nagi_private) <= 104, "more than the kernel's icsk_ca_priv holds");

NAGI_INLINE struct nagi_private* nagi_private(struct sock* sk) {
  return (struct nagi_private*)nagi_icsk(sk)->icsk_ca_priv;
}

#ifdef NAGI_SHARED
#ifdef __KERNEL__
#include "packets_module.h"
#else
#include "packets_bpf.h"
#endif
#else
NAGI_INLINE struct nagi_shared* nagi_shared(struct sock* sk) {
  (void)sk;
  return (struct nagi_shared*)0;
}

NAGI_INLINE void nagi_share(struct sock* sk) { (void)sk; }
#endif

NAGI_INLINE struct nagi_connection nagi_connection(struct sock* sk) {
  struct nagi_private* private = nagi_private(sk);
  struct nagi_connection connection = {.control = &private->control,
                                       .own = &private->own,
                                       .shared = nagi_shared(sk),
                                       .tp = nagi_tcp_sock(sk)};

  return connection;
}

/// Report an event to nagi-tcp if it records events. `before` is the window before the event.
NAGI_INLINE void nagi_report_event(struct sock* sk, const struct nagi_connection* connection,
                                   enum nagi_event_kind kind, enum nagi_verdict verdict,
                                   struct nagi_window before) {
  const struct tcp_sock* tp = connection->tp;
  struct nagi_event storage;
  struct nagi_event* event;

  if (!NAGI_LISTENING) return;
  event = nagi_event_begin(&storage);
  if (!event) return;
  event->bandwidth = 0;
  event->una = tp->snd_una;
  event->next = tp->snd_nxt;
  event->flight = tp->packets_out;
  event->cwnd_before = before.cwnd;
  event->cwnd = connection->control->window.cwnd;
  event->ssthresh_before = before.ssthresh;
  event->ssthresh = connection->control->window.ssthresh;
  event->rtt_us = tp->srtt_us >> 3;
  event->min_rtt_us = 0;
  event->backlog_milli = 0;
  event->local_port = nagi_local_port(sk);
  event->remote_port = nagi_remote_port(sk);
  event->kind = kind;
  event->verdict = verdict;
  event->unused = 0;
  own_describe(connection, event);
  nagi_event_end(event);
}

/// Set the pacing rate as the kernel's own reno does (tcp_update_pacing_rate): twice the rate of the window in
/// the first half of slow start, else 1.2 times that rate. Without the fq queueing discipline the rate paces
/// nothing, but it determines the size of skbs.
NAGI_INLINE void nagi_set_pacing_rate(struct sock* sk, const struct nagi_connection* connection) {
  const struct nagi_window* window = &connection->control->window;
  const struct tcp_sock* tp = connection->tp;
  __u32 percent = window->cwnd < window->ssthresh / 2 ? 200 : 120;
  __u64 rate = (__u64)tp->mss_cache * percent * (8 * 1000000 / 100) *
               nagi_max(window->cwnd, tp->packets_out);

  if (tp->srtt_us) rate /= tp->srtt_us;
  sk->sk_pacing_rate = rate < sk->sk_max_pacing_rate ? rate : sk->sk_max_pacing_rate;
}

/// Set the kernel's window from the scheme's window; see control.h.
NAGI_INLINE void nagi_apply_window(struct sock* sk, const struct nagi_connection* connection) {
  const struct nagi_control* control = connection->control;
  struct tcp_sock* tp = connection->tp;
  __u32 outstanding = nagi_outstanding(tp);
  __u32 window = control->window.cwnd;

  if (control->phase == NAGI_HOLDING)
    window = nagi_min(window, outstanding);
  else if (control->phase == NAGI_RECOVERY && tp->lost_out > tp->retrans_out)
    window = nagi_max(window, outstanding + 1);
  tp->snd_cwnd = window;
  tp->snd_ssthresh = control->window.ssthresh;
  nagi_set_pacing_rate(sk, connection);
}

/// Initialise the state of a connection when the scheme begins to control it.
NAGI_INLINE void nagi_on_start(struct sock* sk) {
  struct nagi_connection connection;
  struct nagi_control* control;

  nagi_share(sk);
  connection = nagi_connection(sk);
  control = connection.control;
  nagi_window_set(&control->window, nagi_max(connection.tp->snd_cwnd, 1),
                  connection.tp->snd_ssthresh);
  control->started = 1;
  control->una = connection.tp->snd_una;
  control->sample_end = connection.tp->snd_nxt;
  own_start(&connection);
  nagi_report_event(sk, &connection, NAGI_STARTED, NAGI_NO_VERDICT, control->window);
}

/// Enter recovery at three duplicate ACKs. `reduced` is true if a congestion mark has already reduced the window
/// in this round trip.
NAGI_INLINE void nagi_three_duplicates(struct sock* sk, const struct nagi_connection* connection,
                                       _Bool reduced) {
  struct nagi_window before = connection->control->window;
  enum nagi_verdict verdict = reduced ? NAGI_NO_VERDICT : own_duplicates(connection);

  connection->control->phase = NAGI_RECOVERY;
  connection->control->count = 0;
  nagi_report_event(sk, connection, NAGI_THREE_DUPLICATES, verdict, before);
}

/// Handle a change of the kernel's state. The kernel enters Recovery while it processes an ACK and then calls
/// nagi_on_ack for that ACK. It enters Loss when the retransmission timer expires.
NAGI_INLINE void nagi_on_state(struct sock* sk, __u8 state) {
  struct nagi_connection connection = nagi_connection(sk);
  struct nagi_control* control = connection.control;
  struct nagi_window before = control->window;

  if (!control->started) {
    // A SYN was lost: there is no window to reduce yet.
  } else if (state == TCP_CA_Recovery) {
    control->entered = control->kernel_state == TCP_CA_CWR ? NAGI_REDUCED : NAGI_ENTERED;
  } else if (state == TCP_CA_Loss) {
    enum nagi_verdict verdict;
    _Bool was_awaited = NAGI_RECOVERY_OF == NAGI_TAHOE && control->phase == NAGI_HOLDING;

    verdict = own_timeout(&connection);
    // The threshold stays unchanged after a repeated timeout of the same segment (RFC 5681, 3.1), and
    // after a timeout for which the scheme has waited.
    if (was_awaited || nagi_icsk(sk)->icsk_retransmits > 0)
      control->window.ssthresh = before.ssthresh;
    control->phase = NAGI_TIMED_OUT;
    control->entered = NAGI_NOT_ENTERED;
    connection.tp->snd_cwnd = control->window.cwnd;
    connection.tp->snd_ssthresh = control->window.ssthresh;
    nagi_report_event(sk, &connection, NAGI_TIMEOUT, was_awaited ? NAGI_NO_VERDICT : verdict,
                      before);
  } else if (state == TCP_CA_CWR) {
    own_congestion(&connection);
    nagi_report_event(sk, &connection, NAGI_CONGESTION_MARK, NAGI_CONGESTION, before);
  }
  control->kernel_state = state;
}

/// Handle an ACK that does not end recovery: the segment at snd_una was also lost.
NAGI_INLINE void nagi_partial_ack(struct sock* sk, const struct nagi_connection* connection) {
  struct nagi_control* control = connection->control;
  const struct tcp_sock* tp = connection->tp;
  struct nagi_window before = control->window;

  if (NAGI_RECOVERY_OF == NAGI_RENO) {
    control->phase = NAGI_HOLDING;
    control->count = 0;
  } else if (NAGI_RECOVERY_OF == NAGI_TAHOE) {
    __u64 srtt_us = tp->srtt_us >> 3;

    own_grow(connection, 1);
    // At the second partial ACK: wait for the timeout if the repair would take longer (tahoe.c).
    if (control->count++ == 1 && nagi_outstanding(tp) * srtt_us > srtt_us + tp->rttvar_us)
      control->phase = NAGI_HOLDING;
  }
  nagi_report_event(sk, connection, NAGI_PARTIAL_ACK, NAGI_NO_VERDICT, before);
}

/// Report a sample of the state, at most once per round trip and once per NAGI_SAMPLE_MS.
NAGI_INLINE void nagi_sample(struct sock* sk, const struct nagi_connection* connection,
                             const struct nagi_ack* ack) {
  struct nagi_control* control = connection->control;
  __u32 now_ms = ack->now_us / 1000;

  if (!NAGI_LISTENING || nagi_after(control->sample_end, connection->tp->snd_una) ||
      now_ms - control->sampled_ms < NAGI_SAMPLE_MS)
    return;
  control->sample_end = connection->tp->snd_nxt;
  control->sampled_ms = now_ms;
  nagi_report_event(sk, connection, NAGI_SAMPLE, NAGI_NO_VERDICT, control->window);
}

/// Handle an ACK. The kernel calls this after it has processed the ACK and before it sends anything.
NAGI_INLINE void nagi_on_ack(struct sock* sk, const struct rate_sample* sample) {
  struct nagi_connection connection = nagi_connection(sk);
  struct nagi_control* control = connection.control;
  const struct tcp_sock* tp = connection.tp;
  struct nagi_ack ack = {
      .now_us = tp->tcp_mstamp,
      .delivered = sample->acked_sacked,
      .rtt_us = sample->rtt_us > 0 ? sample->rtt_us : 0,
      .advances = nagi_after(tp->snd_una, control->una),
  };
  _Bool in_recovery =
      control->kernel_state == TCP_CA_Recovery && nagi_after(tp->high_seq, tp->snd_una);

  if (!control->started) return;
  control->una = tp->snd_una;
  own_ack(&connection, &ack);
#ifdef NAGI_FALLS_BACK
  if (own_falls_back(&connection))
    nagi_report_event(sk, &connection, NAGI_FALLBACK, NAGI_NO_VERDICT, control->window);
#endif
  if (control->entered) {
    nagi_three_duplicates(sk, &connection, control->entered == NAGI_REDUCED);
    control->entered = NAGI_NOT_ENTERED;
  } else if (control->phase == NAGI_TIMED_OUT) {
    if (ack.advances) own_grow(&connection, 1);
    if (control->kernel_state != TCP_CA_Loss) control->phase = NAGI_OPEN;
  } else if (!in_recovery) {
    if (control->phase != NAGI_OPEN) {
      control->phase = NAGI_OPEN;
      if (NAGI_RECOVERY_OF == NAGI_TAHOE) own_grow(&connection, 1);
    } else if (ack.advances && nagi_is_window_used(tp, &control->window)) {
      own_grow(&connection, ack.delivered);
    }
  } else if (ack.advances) {
    nagi_partial_ack(sk, &connection);
  } else if (NAGI_RECOVERY_OF == NAGI_RENO && control->phase == NAGI_HOLDING) {
    control->count += ack.delivered;
    if (control->count >= 3) nagi_three_duplicates(sk, &connection, 0);
  }
  nagi_apply_window(sk, &connection);
  nagi_sample(sk, &connection, &ack);
}

/// Return ssthresh, in segments. The kernel calls nagi_threshold and nagi_window_size when it reduces its window or
/// undoes a reduction. After that, nagi_on_ack or nagi_on_state sets the final values.
NAGI_INLINE __u32 nagi_threshold(struct sock* sk) {
  const struct nagi_control* control = &nagi_private(sk)->control;

  return control->started ? control->window.ssthresh : nagi_tcp_sock(sk)->snd_ssthresh;
}

/// Return cwnd, in segments.
NAGI_INLINE __u32 nagi_window_size(struct sock* sk) {
  const struct nagi_control* control = &nagi_private(sk)->control;

  return control->started ? control->window.cwnd : nagi_tcp_sock(sk)->snd_cwnd;
}

#endif
