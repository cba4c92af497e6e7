// SPDX-License-Identifier: Apache-2.0
//
// bench_pace runs once for every frame that the kernel makes. Before the first frame of a batch, it
// waits until the batch is due. bench_redirect, at the ingress of the loopback interface, redirects
// the frame to the ingress of another interface.
#include "bench_injector.h"

// clang-format off: the helpers' headers need the kernel's first
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>
// clang-format on

#define GIVEN_UP_NS 1000000
#define MAX_CLOCK_READS 5000 /* per batch; they take about 0.2 ms */

struct {
  __uint(type, BPF_MAP_TYPE_ARRAY);
  __uint(map_flags, BPF_F_MMAPABLE);
  __uint(max_entries, 1);
  __type(key, __u32);
  __type(value, struct bench_schedule);
} schedule SEC(".maps");

SEC("xdp")
int bench_pace(struct xdp_md* frame __attribute__((unused))) {
  __u32 only = 0;
  struct bench_schedule* state = bpf_map_lookup_elem(&schedule, &only);
  if (!state) return XDP_ABORTED;
  ++state->frames;
  if (state->left_of_batch != 0) {
    --state->left_of_batch;
    return XDP_PASS;
  }
  state->left_of_batch = state->batch - 1;
  __u64 due = state->due_ns;
  __u64 now = bpf_ktime_get_ns();
  for (int reads = 1; now < due && reads < MAX_CLOCK_READS; ++reads) now = bpf_ktime_get_ns();
  if (now > due + GIVEN_UP_NS) {
    due = now;
    ++state->delays;
  }
  state->due_ns = due + state->gap_ns;
  return XDP_PASS;
}

SEC("tc")
int bench_redirect(struct __sk_buff* frame __attribute__((unused))) {
  __u32 only = 0;
  struct bench_schedule* state = bpf_map_lookup_elem(&schedule, &only);
  return state ? bpf_redirect((__u32)state->interface, BPF_F_INGRESS) : 0;
}

char bench_license[] SEC("license") = "Apache-2.0";
