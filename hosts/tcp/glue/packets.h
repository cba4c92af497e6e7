// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0
//
// Hooks for schemes that also run at the receiver. The kernel informs congestion controls only about incoming ACKs.
// So these schemes process the packets of a connection where the packets enter and leave the host. They process only
// packets of connections that run the scheme, at the sender and at the receiver. At the receiver, a connection gets
// the scheme from its route.
//
// Such a scheme defines NAGI_SHARED, `struct nagi_shared` (the state that its congestion control and its packets
// share), and
//
//   own_share(shared)             called when the connection begins: initialise the state, which is all zeros
//
// It also defines the macros, and with each macro the hooks, that it needs:
//
//   NAGI_SEES_ARRIVALS  own_arrival(shared, packet)  called for every incoming packet, before TCP processes it
//   NAGI_KEEPS_ACKS     own_keeps(shared, packet)    return whether to keep back an ACK without data; the ACK
//                                                    replaces an ACK that was kept back before
//                       own_lets_go(shared, packet)  called when a packet with data leaves, because this packet
//                                                    acknowledges as well
//                       own_expire(shared)           called when the timer has expired and the kept ACK leaves
//                       own_timer_us()               return the longest time to keep back an ACK, microseconds
//   NAGI_WRITES_OPTION  own_option(shared)           return the content of the TCP option on ACKs without data
//
// eBPF programs and modules implement this differently:
//
//                         bpf.h, packets_bpf.h                         module.h, packets_module.h
//   shared state          a map of socket storage                      the connection's icsk_ca_priv
//   access to packets     programs at the cgroup's ingress and egress  netfilter hooks LOCAL_IN and LOCAL_OUT
//   timer of a kept ACK   a timer of eBPF; nagi-tcp sends the ACK      a timer of the kernel; the kernel sends it
//   TCP option            sock_ops programs write the option           LOCAL_OUT appends it
#ifndef NAGI_GLUE_PACKETS_H
#define NAGI_GLUE_PACKETS_H

#include "../arithmetic/integers.h"
#include "kept_ack.h"

// The option has four bytes: kind, length, and two bytes of content. The kind is one for experiments (RFC 4727).
#define NAGI_OPTION_KIND 253
#define NAGI_OPTION_BYTES 4

struct nagi_packet {
  __u64 now_us;
  __u32 sequence;
  __u32 acknowledgement;
  __u32 payload;  // bytes
  __u32
      arrived;  // segments with data that the connection has received; set for outgoing packets only
  __u16 option;  // content of the TCP option, if has_option
  _Bool has_option;
};

#endif
