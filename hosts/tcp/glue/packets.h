// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0
//
// Schemes with a part at the receiver. The kernel tells congestion controls of ACKs that come in, and of
// nothing else; so the packets of a connection are looked at where they pass. Only those of connections that
// run the scheme are, at either end: a receiver's connections have it from their route.
//
// Such a scheme defines NAGI_SHARED and `struct nagi_shared`, what its congestion control and its packets
// have in common, and
//
//   own_share(shared)             the connection begins; it is all zeros
//
// and as it needs them, each with its macro:
//
//   NAGI_SEES_ARRIVALS  own_arrival(shared, packet)  every packet that comes in, before TCP has it
//   NAGI_KEEPS_ACKS     own_keeps(shared, packet)    whether an ACK without data is kept back; one that was
//                                                    kept back before is superseded
//                       own_lets_go(shared, packet)  a packet with data leaves, and acknowledges, too
//                       own_expire(shared)           the timer has gone off, and the ACK leaves
//                       own_timer_us()               how long an ACK is kept back at most
//   NAGI_WRITES_OPTION  own_option(shared)           what the TCP option on ACKs without data says
//
//   bpf.h, packets_bpf.h                         module.h, packets_module.h
//   a map of socket storage                      the connection's icsk_ca_priv
//   programs at the cgroup's ingress and egress  hooks of netfilter, LOCAL_IN and LOCAL_OUT
//   a timer of eBPF; nagi-tcp sends the ACK      a timer of the kernel, which sends it
//   sock_ops programs write the option           LOCAL_OUT appends it
#ifndef NAGI_GLUE_PACKETS_H
#define NAGI_GLUE_PACKETS_H

#include "../arithmetic/integers.h"
#include "kept_ack.h"

// The option is {kind, length, two bytes}; the kind is for experiments (RFC 4727).
#define NAGI_OPTION_KIND 253
#define NAGI_OPTION_BYTES 4

struct nagi_packet {
  __u64 now_us;
  __u32 sequence;
  __u32 acknowledgement;
  __u32 payload;  // bytes
  __u32 arrived;  // segments with data that the connection has received; of packets that leave
  __u16 option;   // what its option says
  _Bool has_option;
};

#endif
