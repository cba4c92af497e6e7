// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0
//
// Packet processing of a scheme as a kernel module: netfilter hooks in every network namespace. The state that
// packets share with the congestion control is in the connection's icsk_ca_priv. See packets.h.
#ifndef NAGI_GLUE_PACKETS_MODULE_H
#define NAGI_GLUE_PACKETS_MODULE_H

#include <linux/hrtimer.h>
#include <linux/netfilter.h>
#include <linux/netfilter_ipv4.h>
#include <linux/skbuff.h>
#include <net/net_namespace.h>

#include "packets.h"

#if !IS_ENABLED(CONFIG_NETFILTER)
#error "schemes that run at the receiver need netfilter: build for a kernel with CONFIG_NETFILTER"
#endif

static struct tcp_congestion_ops nagi_ops;

NAGI_INLINE struct nagi_shared* nagi_shared(struct sock* sk) { return &nagi_private(sk)->shared; }

NAGI_INLINE void nagi_share(struct sock* sk) {
  memset(nagi_shared(sk), 0, sizeof(struct nagi_shared));
  own_share(nagi_shared(sk));
}

/// Return the socket of the packet, or NULL if its connection does not run this scheme.
static struct sock* nagi_sock_of(struct sk_buff* skb) {
  struct sock* sk = skb->sk;

  if (!sk || !sk_fullsock(sk) || sk->sk_family != AF_INET || sk->sk_protocol != IPPROTO_TCP ||
      sk->sk_state == TCP_LISTEN || inet_csk(sk)->icsk_ca_ops != &nagi_ops ||
      !nagi_private(sk)->control.started)
    return NULL;
  return sk;
}

/// Read `packet` from `skb`. Return the TCP header, or NULL if the header is incomplete.
static struct tcphdr* nagi_read_packet(struct sk_buff* skb, struct nagi_packet* packet) {
  const struct iphdr* ip = ip_hdr(skb);
  unsigned int at = ip->ihl * 4;
  struct tcphdr* tcp;

  if (!pskb_may_pull(skb, at + sizeof(*tcp))) return NULL;
  tcp = (struct tcphdr*)(skb_network_header(skb) + at);
  if (!pskb_may_pull(skb, at + tcp->doff * 4)) return NULL;
  ip = ip_hdr(skb);
  tcp = (struct tcphdr*)(skb_network_header(skb) + at);
  if (ntohs(ip->tot_len) < at + tcp->doff * 4) return NULL;
  *packet = (struct nagi_packet){
      .now_us = ktime_get_ns() / 1000,
      .sequence = ntohl(tcp->seq),
      .acknowledgement = ntohl(tcp->ack_seq),
      .payload = ntohs(ip->tot_len) - at - tcp->doff * 4,
  };
  return tcp;
}

#ifdef NAGI_SEES_ARRIVALS

static void nagi_read_option(const struct tcphdr* tcp, struct nagi_packet* packet) {
  const u8* at = (const u8*)(tcp + 1);
  const u8* end = (const u8*)tcp + tcp->doff * 4;

  while (at + 2 <= end && at[0] != TCPOPT_EOL) {
    if (at[0] == TCPOPT_NOP) {
      at++;
      continue;
    }
    if (at[0] == NAGI_OPTION_KIND && at[1] == NAGI_OPTION_BYTES && at + NAGI_OPTION_BYTES <= end) {
      packet->option = at[2] << 8 | at[3];
      packet->has_option = 1;
      return;
    }
    if (at[1] < 2) return;
    at += at[1];
  }
}

static unsigned int nagi_packet_in(void* unused, struct sk_buff* skb,
                                   const struct nf_hook_state* state) {
  struct sock* sk = nagi_sock_of(skb);
  struct nagi_packet packet;
  struct tcphdr* tcp;

  if (!sk) return NF_ACCEPT;
  tcp = nagi_read_packet(skb, &packet);
  if (!tcp) return NF_ACCEPT;
  nagi_read_option(tcp, &packet);
  own_arrival(nagi_shared(sk), &packet);
  return NF_ACCEPT;
}

#endif

#ifdef NAGI_KEEPS_ACKS

/// The ACK that is kept back; `skb` is NULL if there is none.
struct nagi_kept {
  struct hrtimer timer;
  spinlock_t lock;
  struct sk_buff* skb;
  struct net* net;
};

/// Send the kept ACK when its timer expires.
static enum hrtimer_restart nagi_kept_expires(struct hrtimer* timer) {
  struct nagi_kept* kept = container_of(timer, struct nagi_kept, timer);
  struct sk_buff* skb;

  spin_lock(&kept->lock);
  skb = kept->skb;
  kept->skb = NULL;
  spin_unlock(&kept->lock);
  if (skb) dst_output(kept->net, skb->sk, skb);
  return HRTIMER_NORESTART;
}

/// Return the kept ACK of a connection, or NULL without memory.
static struct nagi_kept* nagi_kept_of(struct sock* sk) {
  struct nagi_private* private = nagi_private(sk);
  struct nagi_kept* kept = private->kept;

  if (kept) return kept;
  kept = kzalloc(sizeof(*kept), GFP_ATOMIC);
  if (!kept) return NULL;
  spin_lock_init(&kept->lock);
#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 13, 0)
  hrtimer_init(&kept->timer, CLOCK_MONOTONIC, HRTIMER_MODE_REL_SOFT);
  kept->timer.function = nagi_kept_expires;
#else
  hrtimer_setup(&kept->timer, nagi_kept_expires, CLOCK_MONOTONIC, HRTIMER_MODE_REL_SOFT);
#endif
  kept->net = sock_net(sk);
 private
  ->kept = kept;
  return kept;
}

/// Discard the kept ACK when the connection ends or changes its scheme.
static void nagi_on_release(struct sock* sk) {
  struct nagi_kept* kept = nagi_private(sk)->kept;

  if (!kept) return;
  hrtimer_cancel(&kept->timer);
  kfree_skb(kept->skb);
  kfree(kept);
  nagi_private(sk)->kept = NULL;
}

/// Keep back an outgoing packet if the scheme decides so. Return whether it was kept back. The ACK that was kept back
/// before is discarded, because `packet` acknowledges at least the same data.
static bool nagi_keep(struct sock* sk, struct sk_buff* skb, struct nagi_packet* packet) {
  struct nagi_shared* shared = nagi_shared(sk);
  struct nagi_kept* kept = nagi_kept_of(sk);
  struct sk_buff* superseded;
  bool keeps;

  if (!kept || !skb_dst_force(skb)) return false;
  packet->arrived = tcp_sk(sk)->data_segs_in;
  spin_lock_bh(&kept->lock);
  superseded = kept->skb;
  if (!superseded) own_expire(shared);
  if (packet->payload != 0) own_lets_go(shared, packet);
  keeps = packet->payload == 0 && own_keeps(shared, packet);
  kept->skb = keeps ? skb : NULL;
  spin_unlock_bh(&kept->lock);
  if (!keeps)
    hrtimer_try_to_cancel(&kept->timer);
  else if (!superseded)
    hrtimer_start(&kept->timer, ns_to_ktime((u64)own_timer_us() * NSEC_PER_USEC),
                  HRTIMER_MODE_REL_SOFT);
  kfree_skb(superseded);
  return keeps;
}

#endif

#ifdef NAGI_WRITES_OPTION

/// Append the option to an ACK without data, unless other options leave no room in the header.
static void nagi_write_option(struct sock* sk, struct sk_buff* skb) {
  u16 content = own_option(nagi_shared(sk));
  struct tcphdr* tcp;
  struct iphdr* ip;
  u8* option;
  u32 length;

  if (tcp_hdr(skb)->doff > 15 - NAGI_OPTION_BYTES / 4) return;
  if (skb_tailroom(skb) < NAGI_OPTION_BYTES &&
      pskb_expand_head(skb, 0, NAGI_OPTION_BYTES, GFP_ATOMIC))
    return;
  option = skb_put(skb, NAGI_OPTION_BYTES);
  option[0] = NAGI_OPTION_KIND;
  option[1] = NAGI_OPTION_BYTES;
  option[2] = content >> 8;
  option[3] = content & 255;
  ip = ip_hdr(skb);
  tcp = tcp_hdr(skb);
  tcp->doff += NAGI_OPTION_BYTES / 4;
  length = ntohs(ip->tot_len) + NAGI_OPTION_BYTES;
  ip->tot_len = htons(length);
  ip_send_check(ip);
  length -= ip->ihl * 4;
  if (skb->ip_summed == CHECKSUM_PARTIAL) {
    tcp->check = ~tcp_v4_check(length, ip->saddr, ip->daddr, 0);
  } else {
    tcp->check = 0;
    tcp->check = tcp_v4_check(length, ip->saddr, ip->daddr, csum_partial(tcp, length, 0));
  }
}

#endif

#if defined(NAGI_KEEPS_ACKS) || defined(NAGI_WRITES_OPTION)

static unsigned int nagi_packet_out(void* unused, struct sk_buff* skb,
                                    const struct nf_hook_state* state) {
  struct sock* sk = nagi_sock_of(skb);
  struct nagi_packet packet;
  struct tcphdr* tcp;

  if (!sk) return NF_ACCEPT;
  tcp = nagi_read_packet(skb, &packet);
  if (!tcp || tcp->syn || tcp->fin || tcp->rst || !tcp->ack) return NF_ACCEPT;
#ifdef NAGI_WRITES_OPTION
  if (packet.payload == 0) nagi_write_option(sk, skb);
#endif
#ifdef NAGI_KEEPS_ACKS
  if (nagi_keep(sk, skb, &packet)) return NF_STOLEN;
#endif
  return NF_ACCEPT;
}

#endif

static const struct nf_hook_ops nagi_hooks[] = {
#ifdef NAGI_SEES_ARRIVALS
    {.hook = nagi_packet_in,
     .pf = NFPROTO_IPV4,
     .hooknum = NF_INET_LOCAL_IN,
     .priority = NF_IP_PRI_FIRST},
#endif
#if defined(NAGI_KEEPS_ACKS) || defined(NAGI_WRITES_OPTION)
    {.hook = nagi_packet_out,
     .pf = NFPROTO_IPV4,
     .hooknum = NF_INET_LOCAL_OUT,
     .priority = NF_IP_PRI_LAST},
#endif
};

static int __net_init nagi_enter_namespace(struct net* net) {
  return nf_register_net_hooks(net, nagi_hooks, ARRAY_SIZE(nagi_hooks));
}

static void __net_exit nagi_leave_namespace(struct net* net) {
  nf_unregister_net_hooks(net, nagi_hooks, ARRAY_SIZE(nagi_hooks));
}

static struct pernet_operations nagi_namespaces = {
    .init = nagi_enter_namespace,
    .exit = nagi_leave_namespace,
};

#endif
