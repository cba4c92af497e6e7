// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0
//
// A scheme as eBPF programs that the kernel calls through struct tcp_congestion_ops (struct_ops).
// Kernel structures are declared with only those fields that schemes use. The loader takes the real
// offsets of the fields from the running kernel's type information (CO-RE), so one object runs on all
// kernels.
#ifndef NAGI_GLUE_BPF_H
#define NAGI_GLUE_BPF_H

#include <linux/bpf.h>
#include <linux/types.h>

#include <bpf/bpf_core_read.h>
#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>

#include "../arithmetic/integers.h"
#include "event.h"

// The kernel accepts congestion controls only under a licence that is compatible with its own.
char nagi_license[] SEC("license") = "GPL";

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

struct sock_common {
  __be16 skc_dport;
  __u16 skc_num;
};

struct sock {
  struct sock_common __sk_common;
  unsigned long sk_pacing_rate;
  unsigned long sk_max_pacing_rate;
};

struct inet_connection_sock {
  __u8 icsk_retransmits;
  __u64 icsk_ca_priv[13];
};

struct tcp_options_received {
  __u32 rcv_tsval;
  __u16 saw_tstamp : 1;
};

struct tcp_sock {
  __u32 snd_una;
  __u32 snd_nxt;
  __u32 high_seq;
  __u32 snd_cwnd;
  __u32 snd_cwnd_clamp;
  __u32 snd_ssthresh;
  __u32 packets_out;
  __u32 sacked_out;
  __u32 lost_out;
  __u32 retrans_out;
  __u32 max_packets_out;
  __u32 mss_cache;
  __u32 srtt_us;  // eight times the smoothed round-trip time
  __u32 rttvar_us;
  __u64 tcp_mstamp;                    // arrival time of the segment being processed, microseconds
  struct tcp_options_received rx_opt;  // options of the segment being processed
  __u8 is_cwnd_limited : 1;
};

struct rate_sample {
  long rtt_us;  // negative if the ACK yields no measurement
  __u32 acked_sacked;
};

#pragma clang attribute pop

enum {
  TCP_CA_Open,
  TCP_CA_Disorder,
  TCP_CA_CWR,
  TCP_CA_Recovery,
  TCP_CA_Loss,
};

// The compiler does not relocate this structure: libbpf matches the members of a struct_ops by name.
struct tcp_congestion_ops {
  __u32 (*ssthresh)(struct sock* sk);
  void (*set_state)(struct sock* sk, __u8 new_state);
  void (*cong_control)(struct sock* sk, __u32 ack, int flag, const struct rate_sample* rs);
  __u32 (*undo_cwnd)(struct sock* sk);
  char name[16];
  __u32 flags;
  void (*init)(struct sock* sk);
};
// Every network namespace may use the scheme without privileges.
#define TCP_CONG_NON_RESTRICTED 1

// A parameter is read-only data that nagi-tcp sets before it loads the object. The tag holds the range,
// the unit and the meaning; nagi-tcp reads it from the object's own type information.
#define NAGI_PARAMETER(name, value, minimum, maximum, unit, meaning) \
  const volatile __u32 name __attribute__((                          \
      btf_decl_tag("nagi_parameter|" #minimum "|" #maximum "|" unit "|" meaning))) = value

/// Number of arguments that this kernel passes to cong_control: 2 (sk, rs) before Linux 6.10, since then
/// 4 (sk, ack, flag, rs). nagi-tcp sets it.
const volatile __u32 nagi_arguments = 4;
/// True if nagi-tcp records events. If false, the verifier removes the code that reports them.
const volatile _Bool nagi_listening = 0;

struct {
  __uint(type, BPF_MAP_TYPE_RINGBUF);
  __uint(max_entries, 1 << 18);
} nagi_events SEC(".maps");
/// Number of events that were lost because the ring buffer was full.
__u64 nagi_events_lost = 0;

NAGI_INLINE struct tcp_sock* nagi_tcp_sock(struct sock* sk) { return (struct tcp_sock*)sk; }

NAGI_INLINE struct inet_connection_sock* nagi_icsk(struct sock* sk) {
  return (struct inet_connection_sock*)sk;
}

NAGI_INLINE int nagi_is_window_limited(const struct tcp_sock* tp) {
  return BPF_CORE_READ_BITFIELD(tp, is_cwnd_limited);
}

/// Return whether the segment being processed has a timestamp (rx_opt.rcv_tsval).
NAGI_INLINE int nagi_has_timestamp(const struct tcp_sock* tp) {
  return BPF_CORE_READ_BITFIELD(tp, rx_opt.saw_tstamp);
}

/// True if nagi_report_event (hooks.h) has anything to do.
#define NAGI_LISTENING nagi_listening

/// Return an event in the ring buffer with its time set, or NULL if the ring buffer is full. Modules, which
/// have no ring buffer, return `storage` instead.
NAGI_INLINE struct nagi_event* nagi_event_begin(struct nagi_event* storage) {
  struct nagi_event* event = bpf_ringbuf_reserve(&nagi_events, sizeof(*event), 0);

  (void)storage;
  if (!event) {
    __sync_fetch_and_add(&nagi_events_lost, 1);
    return event;
  }
  event->at_ns = bpf_ktime_get_ns();
  return event;
}

NAGI_INLINE void nagi_event_end(struct nagi_event* event) { bpf_ringbuf_submit(event, 0); }

NAGI_INLINE __u16 nagi_remote_port(const struct sock* sk) {
  return bpf_ntohs(sk->__sk_common.skc_dport);
}

NAGI_INLINE __u16 nagi_local_port(const struct sock* sk) { return sk->__sk_common.skc_num; }

/// Return the rate sample among the arguments of cong_control. The verifier requires constant offsets. Without
/// the assembly, the compiler would merge both accesses into one with a variable offset.
NAGI_INLINE const struct rate_sample* nagi_rate_sample(unsigned long long* arguments) {
  unsigned long long sample;

  if (nagi_arguments == 2)
    asm volatile("%0 = *(u64 *)(%1 + 8)" : "=r"(sample) : "r"(arguments));
  else
    asm volatile("%0 = *(u64 *)(%1 + 24)" : "=r"(sample) : "r"(arguments));
  return (const struct rate_sample*)sample;
}

/// Define the programs of a scheme and the structure that names them. A scheme's file uses this once, at its
/// end.
#define NAGI_PROGRAM(name) SEC("struct_ops/" #name) name(unsigned long long* arguments)
#define NAGI_SOCK ((struct sock*)arguments[0])
#define NAGI_SCHEME(scheme)                                                                \
  void NAGI_PROGRAM(scheme##_init) { nagi_on_start(NAGI_SOCK); }                           \
  void NAGI_PROGRAM(scheme##_state) { nagi_on_state(NAGI_SOCK, arguments[1]); }            \
  void NAGI_PROGRAM(scheme##_ack) { nagi_on_ack(NAGI_SOCK, nagi_rate_sample(arguments)); } \
  __u32 NAGI_PROGRAM(scheme##_thresh) { return nagi_threshold(NAGI_SOCK); }                \
  __u32 NAGI_PROGRAM(scheme##_undo) { return nagi_window_size(NAGI_SOCK); }                \
                                                                                           \
  SEC(".struct_ops")                                                                       \
  struct tcp_congestion_ops scheme = {                                                     \
      .init = (void*)scheme##_init,                                                        \
      .set_state = (void*)scheme##_state,                                                  \
      .cong_control = (void*)scheme##_ack,                                                 \
      .ssthresh = (void*)scheme##_thresh,                                                  \
      .undo_cwnd = (void*)scheme##_undo,                                                   \
      .flags = TCP_CONG_NON_RESTRICTED,                                                    \
      .name = "nagi_" #scheme,                                                             \
  }

#endif
