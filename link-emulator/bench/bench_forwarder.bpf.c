// SPDX-License-Identifier: Apache-2.0
//
// Redirects all frames that arrive at an interface to the AF_XDP socket of their queue.
#include "io/xsk_map.bpf.h"

SEC("xdp")
int bench_forward(struct xdp_md* frame) {
  return bpf_redirect_map(&sockets, frame->rx_queue_index, XDP_PASS);
}

char bench_license[] SEC("license") = "Apache-2.0";
