// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0
//
// What the kernel calls. A scheme's file includes this after it has defined NAGI_RECOVERY_OF (NAGI_TAHOE,
// NAGI_RENO or NAGI_NEWRENO), `struct nagi_own`, and
//
//   own_start(of)            the connection begins; the state is all zeros
//   own_ack(of, ack)         every ACK, before anything is decided: estimators
//   own_grow(of, segments)   new data was acknowledged, and outside of recovery
//   own_duplicates(of)       three duplicate ACKs: set the window; returns the verdict
//   own_congestion(of)       a congestion mark: set the window
//   own_timeout(of)          the retransmission timer: set the window; returns the verdict
//   own_describe(of, event)  what there is to say of the scheme's own state
//
// Where schemes do alike, a header defines some of these for them: window_alone.h, reno_growth.h,
// loss_is_congestion.h, westwood.h. A scheme that looks at packets defines more: packets.h. One that needs
// something of the other end defines NAGI_FALLS_BACK and
//
//   own_falls_back(of)       whether, as it turns out with this ACK, the other end lacks it; once
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

/// Tells listeners, if there are any, of an event that found the window at `before`.
NAGI_INLINE void nagi_tell(struct sock* sk, const struct nagi_connection* of,
                           enum nagi_event_kind kind, enum nagi_verdict verdict,
                           struct nagi_window before) {
  const struct tcp_sock* tp = of->tp;
  struct nagi_event room;
  struct nagi_event* event;

  if (!NAGI_LISTENING) return;
  event = nagi_event_begin(&room);
  if (!event) return;
  event->bandwidth = 0;
  event->una = tp->snd_una;
  event->next = tp->snd_nxt;
  event->flight = tp->packets_out;
  event->cwnd_before = before.cwnd;
  event->cwnd = of->control->window.cwnd;
  event->ssthresh_before = before.ssthresh;
  event->ssthresh = of->control->window.ssthresh;
  event->rtt_us = tp->srtt_us >> 3;
  event->min_rtt_us = 0;
  event->backlog_milli = 0;
  event->local_port = nagi_local_port(sk);
  event->remote_port = nagi_remote_port(sk);
  event->kind = kind;
  event->verdict = verdict;
  event->unused = 0;
  own_describe(of, event);
  nagi_event_end(event);
}

/// The kernel's own reno sets it so (tcp_update_pacing_rate): twice the rate of the window in the first
/// half of slow start, else 1.2 times. Without the fair queueing discipline nothing is paced by it, but
/// the size of skbs follows from it.
NAGI_INLINE void nagi_set_pacing_rate(struct sock* sk, const struct nagi_connection* of) {
  const struct nagi_window* window = &of->control->window;
  const struct tcp_sock* tp = of->tp;
  __u32 percent = window->cwnd < window->ssthresh / 2 ? 200 : 120;
  __u64 rate = (__u64)tp->mss_cache * percent * (8 * 1000000 / 100) *
               nagi_max(window->cwnd, tp->packets_out);

  if (tp->srtt_us) rate /= tp->srtt_us;
  sk->sk_pacing_rate = rate < sk->sk_max_pacing_rate ? rate : sk->sk_max_pacing_rate;
}

/// Makes the kernel send as the scheme's window says; see control.h.
NAGI_INLINE void nagi_apply(struct sock* sk, const struct nagi_connection* of) {
  const struct nagi_control* control = of->control;
  struct tcp_sock* tp = of->tp;
  __u32 outstanding = nagi_outstanding(tp);
  __u32 window = control->window.cwnd;

  if (control->phase == NAGI_HOLDING)
    window = nagi_min(window, outstanding);
  else if (control->phase == NAGI_RECOVERY && tp->lost_out > tp->retrans_out)
    window = nagi_max(window, outstanding + 1);
  tp->snd_cwnd = window;
  tp->snd_ssthresh = control->window.ssthresh;
  nagi_set_pacing_rate(sk, of);
}

NAGI_INLINE void nagi_on_start(struct sock* sk) {
  struct nagi_connection of;
  struct nagi_control* control;

  nagi_share(sk);
  of = nagi_connection(sk);
  control = of.control;
  nagi_window_set(&control->window, nagi_max(of.tp->snd_cwnd, 1), of.tp->snd_ssthresh);
  control->started = 1;
  control->una = of.tp->snd_una;
  control->sample_end = of.tp->snd_nxt;
  own_start(&of);
  nagi_tell(sk, &of, NAGI_STARTED, NAGI_NO_VERDICT, control->window);
}

/// `reduced`: the window has been reduced in this round trip, for a congestion mark.
NAGI_INLINE void nagi_three_duplicates(struct sock* sk, const struct nagi_connection* of,
                                       _Bool reduced) {
  struct nagi_window before = of->control->window;
  enum nagi_verdict verdict = reduced ? NAGI_NO_VERDICT : own_duplicates(of);

  of->control->phase = NAGI_RECOVERY;
  of->control->count = 0;
  nagi_tell(sk, of, NAGI_THREE_DUPLICATES, verdict, before);
}

/// The kernel's state changes: it enters recovery while it looks at an ACK, for which on_ack is called
/// next, and the state Loss when the retransmission timer goes off.
NAGI_INLINE void nagi_on_state(struct sock* sk, __u8 state) {
  struct nagi_connection of = nagi_connection(sk);
  struct nagi_control* control = of.control;
  struct nagi_window before = control->window;

  if (!control->started) {
    // A SYN was lost: nothing to reduce yet.
  } else if (state == TCP_CA_Recovery) {
    control->entered = control->kernel_state == TCP_CA_CWR ? NAGI_REDUCED : NAGI_ENTERED;
  } else if (state == TCP_CA_Loss) {
    enum nagi_verdict verdict;
    _Bool waited = NAGI_RECOVERY_OF == NAGI_TAHOE && control->phase == NAGI_HOLDING;

    verdict = own_timeout(&of);
    // A timer that goes off again for the same segment changes no threshold (RFC 5681, 3.1), nor
    // does one that the scheme has waited for.
    if (waited || nagi_icsk(sk)->icsk_retransmits > 0) control->window.ssthresh = before.ssthresh;
    control->phase = NAGI_TIMED_OUT;
    control->entered = NAGI_NOT_ENTERED;
    of.tp->snd_cwnd = control->window.cwnd;
    of.tp->snd_ssthresh = control->window.ssthresh;
    nagi_tell(sk, &of, NAGI_TIMEOUT, waited ? NAGI_NO_VERDICT : verdict, before);
  } else if (state == TCP_CA_CWR) {
    own_congestion(&of);
    nagi_tell(sk, &of, NAGI_CONGESTION_MARK, NAGI_CONGESTION, before);
  }
  control->kernel_state = state;
}

/// An ACK in recovery that does not end it: the segment at snd_una was lost, too.
NAGI_INLINE void nagi_partial_ack(struct sock* sk, const struct nagi_connection* of) {
  struct nagi_control* control = of->control;
  const struct tcp_sock* tp = of->tp;
  struct nagi_window before = control->window;

  if (NAGI_RECOVERY_OF == NAGI_RENO) {
    control->phase = NAGI_HOLDING;
    control->count = 0;
  } else if (NAGI_RECOVERY_OF == NAGI_TAHOE) {
    __u64 srtt_us = tp->srtt_us >> 3;

    own_grow(of, 1);
    if (control->count++ == 1 && nagi_outstanding(tp) * srtt_us > srtt_us + tp->rttvar_us)
      control->phase = NAGI_HOLDING;
  }
  nagi_tell(sk, of, NAGI_PARTIAL_ACK, NAGI_NO_VERDICT, before);
}

NAGI_INLINE void nagi_sample(struct sock* sk, const struct nagi_connection* of,
                             const struct nagi_ack* ack) {
  struct nagi_control* control = of->control;
  __u32 now_ms = ack->now_us / 1000;

  if (!NAGI_LISTENING || nagi_after(control->sample_end, of->tp->snd_una) ||
      now_ms - control->sampled_ms < NAGI_SAMPLE_MS)
    return;
  control->sample_end = of->tp->snd_nxt;
  control->sampled_ms = now_ms;
  nagi_tell(sk, of, NAGI_SAMPLE, NAGI_NO_VERDICT, control->window);
}

/// Every ACK, after the kernel has looked at it and before it sends anything.
NAGI_INLINE void nagi_on_ack(struct sock* sk, const struct rate_sample* sample) {
  struct nagi_connection of = nagi_connection(sk);
  struct nagi_control* control = of.control;
  const struct tcp_sock* tp = of.tp;
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
  own_ack(&of, &ack);
#ifdef NAGI_FALLS_BACK
  if (own_falls_back(&of)) nagi_tell(sk, &of, NAGI_FALLBACK, NAGI_NO_VERDICT, control->window);
#endif
  if (control->entered) {
    nagi_three_duplicates(sk, &of, control->entered == NAGI_REDUCED);
    control->entered = NAGI_NOT_ENTERED;
  } else if (control->phase == NAGI_TIMED_OUT) {
    if (ack.advances) own_grow(&of, 1);
    if (control->kernel_state != TCP_CA_Loss) control->phase = NAGI_OPEN;
  } else if (!in_recovery) {
    if (control->phase != NAGI_OPEN) {
      control->phase = NAGI_OPEN;
      if (NAGI_RECOVERY_OF == NAGI_TAHOE) own_grow(&of, 1);
    } else if (ack.advances && nagi_is_used(tp, &control->window)) {
      own_grow(&of, ack.delivered);
    }
  } else if (ack.advances) {
    nagi_partial_ack(sk, &of);
  } else if (NAGI_RECOVERY_OF == NAGI_RENO && control->phase == NAGI_HOLDING) {
    control->count += ack.delivered;
    if (control->count >= 3) nagi_three_duplicates(sk, &of, 0);
  }
  nagi_apply(sk, &of);
  nagi_sample(sk, &of, &ack);
}

/// The kernel asks for these when it reduces, or takes a reduction back; on_ack and on_state say what
/// holds in the end.
NAGI_INLINE __u32 nagi_threshold(struct sock* sk) {
  const struct nagi_control* control = &nagi_private(sk)->control;

  return control->started ? control->window.ssthresh : nagi_tcp_sock(sk)->snd_ssthresh;
}

NAGI_INLINE __u32 nagi_window_size(struct sock* sk) {
  const struct nagi_control* control = &nagi_private(sk)->control;

  return control->started ? control->window.cwnd : nagi_tcp_sock(sk)->snd_cwnd;
}

#endif
