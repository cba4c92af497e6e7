// SPDX-License-Identifier: Apache-2.0
//
// Sends all frames that come in at an interface to the AF_XDP socket of their queue.
// clang-format off: the helpers' headers need the kernel's first
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>
// clang-format on

struct {
  __uint(type, BPF_MAP_TYPE_XSKMAP);
  __uint(max_entries, 1);
  __type(key, __u32);
  __type(value, __u32);
} sockets SEC(".maps");

SEC("xdp")
int bench_forward(struct xdp_md* frame) {
  return bpf_redirect_map(&sockets, frame->rx_queue_index, XDP_PASS);
}

char bench_license[] SEC("license") = "Apache-2.0";
