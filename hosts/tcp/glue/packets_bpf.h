// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0
//
// Packet processing of a scheme as eBPF programs: at ingress and egress of the root cgroup, and in sock_ops.
// nagi-tcp attaches the programs by links, which end with nagi-tcp. See packets.h.
#ifndef NAGI_GLUE_PACKETS_BPF_H
#define NAGI_GLUE_PACKETS_BPF_H

#include "packets.h"

#define NAGI_PASS 1
#define NAGI_DROP 0
#define NAGI_SOL_TCP 6
#define NAGI_TCP_CONGESTION 13
#define NAGI_MAX_OPTIONS 40

struct {
  __uint(type, BPF_MAP_TYPE_SK_STORAGE);
  __uint(map_flags, BPF_F_NO_PREALLOC);
  __type(key, int);
  __type(value, struct nagi_shared);
} nagi_shared_of SEC(".maps");

NAGI_INLINE struct nagi_shared* nagi_shared(struct sock* sk) {
  return bpf_sk_storage_get(&nagi_shared_of, sk, 0, 0);
}

NAGI_INLINE void nagi_share(struct sock* sk) {
  struct nagi_shared* shared =
      bpf_sk_storage_get(&nagi_shared_of, sk, 0, BPF_SK_STORAGE_GET_F_CREATE);

  if (shared) own_share(shared);
}

#if defined(NAGI_SEES_ARRIVALS) || defined(NAGI_KEEPS_ACKS)

/// Return the shared state of the packet's connection, or NULL if the connection does not run this scheme.
NAGI_INLINE struct nagi_shared* nagi_shared_of_packet(struct __sk_buff* skb) {
  struct bpf_sock* sk = skb->sk;

  if (!sk) return 0;
  sk = bpf_sk_fullsock(sk);
  return sk ? bpf_sk_storage_get(&nagi_shared_of, sk, 0, 0) : 0;
}

struct nagi_headers {
  __u32 tcp_at;  // offset of the TCP header, bytes
  __u32 end;     // offset of the end of the TCP header, bytes
  __u8 flags;
};

/// Read `packet` and `headers` from `skb`. Return whether it is TCP over IPv4 with complete headers.
NAGI_INLINE _Bool nagi_read_packet(struct __sk_buff* skb, struct nagi_packet* packet,
                                   struct nagi_headers* headers) {
  __u8 ip[20];
  __u8 tcp[16];
  __u32 length;

  if (bpf_skb_load_bytes(skb, 0, ip, sizeof(ip)) || ip[0] >> 4 != 4 || ip[9] != 6) return 0;
  headers->tcp_at = (ip[0] & 15) * 4;
  if (bpf_skb_load_bytes(skb, headers->tcp_at, tcp, sizeof(tcp))) return 0;
  headers->end = headers->tcp_at + (tcp[12] >> 4) * 4;
  headers->flags = tcp[13];
  length = ip[2] << 8 | ip[3];
  if (length < headers->end) return 0;
  packet->now_us = bpf_ktime_get_ns() / 1000;
  packet->sequence = (__u32)tcp[4] << 24 | tcp[5] << 16 | tcp[6] << 8 | tcp[7];
  packet->acknowledgement = (__u32)tcp[8] << 24 | tcp[9] << 16 | tcp[10] << 8 | tcp[11];
  packet->payload = length - headers->end;
  packet->arrived = 0;
  packet->option = 0;
  packet->has_option = 0;
  return 1;
}

#endif

#ifdef NAGI_SEES_ARRIVALS

NAGI_INLINE void nagi_read_option(struct __sk_buff* skb, const struct nagi_headers* headers,
                                  struct nagi_packet* packet) {
  __u32 at = headers->tcp_at + 20;
  __u8 option[NAGI_OPTION_BYTES];
  int i;

  for (i = 0; i < NAGI_MAX_OPTIONS; i++) {
    if (at + 2 > headers->end || bpf_skb_load_bytes(skb, at, option, 2) || option[0] == 0) return;
    if (option[0] == 1) {
      at++;
      continue;
    }
    if (option[0] == NAGI_OPTION_KIND && option[1] == NAGI_OPTION_BYTES) {
      if (bpf_skb_load_bytes(skb, at, option, sizeof(option))) return;
      packet->option = option[2] << 8 | option[3];
      packet->has_option = 1;
      return;
    }
    if (option[1] < 2) return;
    at += option[1];
  }
}

SEC("cgroup_skb/ingress")
int nagi_packet_in(struct __sk_buff* skb) {
  struct nagi_shared* shared = nagi_shared_of_packet(skb);
  struct nagi_headers headers;
  struct nagi_packet packet;

  if (!shared || !nagi_read_packet(skb, &packet, &headers)) return NAGI_PASS;
  nagi_read_option(skb, &headers, &packet);
  own_arrival(shared, &packet);
  return NAGI_PASS;
}

#endif

#ifdef NAGI_KEEPS_ACKS

#define NAGI_MAX_KEPT 4096
#define NAGI_RETRY_NS 50000

struct nagi_kept {
  struct bpf_timer timer;
  __u32 writes;  // number of begun and ended writes: odd while the ACK is being written
  struct nagi_kept_ack ack;
};

struct {
  __uint(type, BPF_MAP_TYPE_HASH);
  __uint(max_entries, NAGI_MAX_KEPT);
  __type(key, __u64);  // the socket's cookie
  __type(value, struct nagi_kept);
} nagi_kept_by_socket SEC(".maps");

/// ACKs whose timer has expired, for nagi-tcp to send.
struct {
  __uint(type, BPF_MAP_TYPE_RINGBUF);
  __uint(max_entries, 1 << 18);
} nagi_kept_acks SEC(".maps");

/// Give the kept ACK to nagi-tcp when its timer expires. Try again later if the ACK is being written, or if the ring
/// buffer is full.
static int nagi_kept_expires(void* map, __u64* key, struct nagi_kept* kept) {
  __u32 writes = kept->writes;
  struct nagi_kept_ack* ack;

  (void)map;
  (void)key;
  if (kept->ack.length == 0) return 0;
  ack = writes & 1 ? 0 : bpf_ringbuf_reserve(&nagi_kept_acks, sizeof(*ack), 0);
  if (!ack) {
    bpf_timer_start(&kept->timer, NAGI_RETRY_NS, 0);
    return 0;
  }
  *ack = kept->ack;
  if (kept->writes != writes) {  // another processor has overwritten the ACK meanwhile
    bpf_ringbuf_discard(ack, 0);
    bpf_timer_start(&kept->timer, NAGI_RETRY_NS, 0);
    return 0;
  }
  kept->ack.length = 0;
  bpf_ringbuf_submit(ack, 0);
  return 0;
}

/// Return the kept ACK of a socket; NULL if the map is full. Its length is 0 if no ACK is kept back.
NAGI_INLINE struct nagi_kept* nagi_kept_of(__u64 cookie) {
  struct nagi_kept* kept = bpf_map_lookup_elem(&nagi_kept_by_socket, &cookie);
  static const struct nagi_kept empty;

  if (kept) return kept;
  bpf_map_update_elem(&nagi_kept_by_socket, &cookie, &empty, BPF_NOEXIST);
  kept = bpf_map_lookup_elem(&nagi_kept_by_socket, &cookie);
  if (!kept) return 0;
  bpf_timer_init(&kept->timer, &nagi_kept_by_socket, 1 /* CLOCK_MONOTONIC */);
  return kept;
}

SEC("cgroup_skb/egress")
int nagi_packet_out(struct __sk_buff* skb) {
  struct nagi_shared* shared = nagi_shared_of_packet(skb);
  struct nagi_headers headers;
  struct nagi_packet packet;
  struct bpf_tcp_sock* tcp;
  struct bpf_sock* sk;
  struct nagi_kept* kept;
  __u64 cookie;
  __u32 length;

  if (!shared || !nagi_read_packet(skb, &packet, &headers)) return NAGI_PASS;
  cookie = bpf_get_socket_cookie(skb);
  if (headers.flags & 5) {  // FIN, RST
    bpf_map_delete_elem(&nagi_kept_by_socket, &cookie);
    return NAGI_PASS;
  }
  sk = skb->sk;
  if (!sk) return NAGI_PASS;
  tcp = bpf_tcp_sock(sk);
  if (!tcp || headers.flags & 2 || !(headers.flags & 16)) return NAGI_PASS;
  packet.arrived = tcp->data_segs_in;
  kept = nagi_kept_of(cookie);
  if (!kept) return NAGI_PASS;
  if (kept->ack.length == 0) own_expire(shared);
  if (packet.payload != 0) own_lets_go(shared, &packet);
  if (packet.payload != 0 || !own_keeps(shared, &packet)) {
    kept->ack.length = 0;
    bpf_timer_cancel(&kept->timer);
    return NAGI_PASS;
  }
  length = headers.end;
  if (length < 40 || length > NAGI_ACK_BYTES) return NAGI_PASS;
  kept->writes++;
  if (bpf_skb_load_bytes(skb, 0, kept->ack.packet, length)) length = 0;
  kept->writes++;
  if (length == 0) return NAGI_PASS;
  if (kept->ack.length == 0) {
    bpf_timer_set_callback(&kept->timer,
                           nagi_kept_expires);  // a cancelled timer loses its callback
    bpf_timer_start(&kept->timer, (__u64)own_timer_us() * 1000, 0);
  }
  kept->ack.length = length;
  return NAGI_DROP;
}

#endif

#ifdef NAGI_WRITES_OPTION

/// The scheme's name in the kernel; nagi-tcp sets it.
const volatile char nagi_name[16] = "";
/// Number of ACKs whose other options left no room for this option.
__u64 nagi_options_left_out = 0;

/// Return whether the socket runs this scheme.
NAGI_INLINE _Bool nagi_runs_scheme(struct bpf_sock_ops* ops) {
  char name[16] = {0};
  int i;

  if (bpf_getsockopt(ops, NAGI_SOL_TCP, NAGI_TCP_CONGESTION, name, sizeof(name))) return 0;
  for (i = 0; i < 16; i++) {
    if (name[i] != nagi_name[i]) return 0;
    if (name[i] == 0) return 1;
  }
  return 1;
}

SEC("sockops")
int nagi_socket(struct bpf_sock_ops* ops) {
  struct nagi_shared* shared;
  struct bpf_sock* sk;

  switch (ops->op) {
    case BPF_SOCK_OPS_ACTIVE_ESTABLISHED_CB:
    case BPF_SOCK_OPS_PASSIVE_ESTABLISHED_CB:
      if (nagi_runs_scheme(ops))
        bpf_sock_ops_cb_flags_set(ops,
                                  ops->bpf_sock_ops_cb_flags | BPF_SOCK_OPS_WRITE_HDR_OPT_CB_FLAG);
      break;
    case BPF_SOCK_OPS_HDR_OPT_LEN_CB:
      // The option goes only on ACKs without data, so it does not change the estimate of the MSS.
      if (ops->args[0] == BPF_WRITE_HDR_TCP_CURRENT_MSS || ops->skb_tcp_flags & 7 || ops->skb_len)
        break;
      if (bpf_reserve_hdr_opt(ops, NAGI_OPTION_BYTES, 0))
        __sync_fetch_and_add(&nagi_options_left_out, 1);
      break;
    case BPF_SOCK_OPS_WRITE_HDR_OPT_CB:
      sk = ops->sk;
      shared = sk ? bpf_sk_storage_get(&nagi_shared_of, sk, 0, 0) : 0;
      if (shared) {
        __u16 content = own_option(shared);
        __u8 option[NAGI_OPTION_BYTES] = {NAGI_OPTION_KIND, NAGI_OPTION_BYTES, content >> 8,
                                          content & 255};

        bpf_store_hdr_opt(ops, option, sizeof(option), 0);
      }
      break;
  }
  return 1;
}

#endif

#endif
