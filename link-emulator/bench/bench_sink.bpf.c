// SPDX-License-Identifier: Apache-2.0
//
// Programs for the ingress of an interface. bench_count counts the frames of bench-source and drops
// them. bench_note also records the arrival time of each frame. Other frames pass.
#include "bench_sink.h"

// clang-format off: the helpers' headers need the kernel's first
#include <linux/bpf.h>
#include <linux/if_ether.h>
#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>
// clang-format on

#include "frame_stamp.h"

/* TCX_PASS and TCX_DROP, which Debian 12's headers lack */
enum verdict { pass = 0, drop = 2 };

struct {
  __uint(type, BPF_MAP_TYPE_ARRAY);
  __uint(map_flags, BPF_F_MMAPABLE);
  __uint(max_entries, 1);
  __type(key, __u32);
  __type(value, struct bench_totals);
} totals SEC(".maps");

struct {
  __uint(type, BPF_MAP_TYPE_ARRAY);
  __uint(map_flags, BPF_F_MMAPABLE);
  __uint(max_entries, 1);
  __type(key, __u32);
  __type(value, struct bench_arrival);
} arrivals SEC(".maps");

/* Return the stamp of a frame, or null if bench-source did not send the frame. */
static __always_inline const struct bench_stamp* stamp_of(struct __sk_buff* frame) {
  const char* data = (const char*)(long)frame->data;
  const struct bench_stamp* stamp = (const void*)(data + BENCH_STAMP_OFFSET);
  if ((const void*)(stamp + 1) > (const void*)(long)frame->data_end) return 0;
  if (((const struct ethhdr*)data)->h_proto != bpf_htons(ETH_P_IP)) return 0;
  return stamp->mark == BENCH_FRAME_MARK ? stamp : 0;
}

static __always_inline struct bench_totals* count(struct __sk_buff* frame) {
  __u32 only = 0;
  struct bench_totals* total = bpf_map_lookup_elem(&totals, &only);
  if (!total) return 0;
  __sync_fetch_and_add(&total->frames, 1);
  __sync_fetch_and_add(&total->bytes, frame->len);
  return total;
}

SEC("tc")
int bench_count(struct __sk_buff* frame) {
  if (!stamp_of(frame)) return pass;
  count(frame);
  return drop;
}

SEC("tc")
int bench_note(struct __sk_buff* frame) {
  const struct bench_stamp* stamp = stamp_of(frame);
  if (!stamp) return pass;
  struct bench_totals* total = count(frame);
  if (!total) return drop;
  __u32 number = stamp->number;
  struct bench_arrival* arrival = bpf_map_lookup_elem(&arrivals, &number);
  if (!arrival) {
    __sync_fetch_and_add(&total->beyond, 1);
  } else if (arrival->at_ns != 0) {
    __sync_fetch_and_add(&total->duplicates, 1);
  } else {
    arrival->at_ns = bpf_ktime_get_ns();
    arrival->sent_ns = stamp->sent_monotonic_ns;
  }
  return drop;
}

char bench_license[] SEC("license") = "Apache-2.0";
