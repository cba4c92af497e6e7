// SPDX-License-Identifier: Apache-2.0
//
// Writes the monotonic time in front of every received frame, if there is room, and redirects the
// frame to the AF_XDP socket of its queue. Frames of queues without such a socket are dropped.
#include "stamp.h"

#include "xsk_map.bpf.h"

SEC("xdp")
int nagi_to_socket(struct xdp_md* frame) {
  __u64 now = bpf_ktime_get_ns();
  if (bpf_xdp_adjust_meta(frame, -(int)sizeof(struct nagi_stamp)) == 0) {
    struct nagi_stamp* stamp = (void*)(long)frame->data_meta;
    if ((void*)(stamp + 1) <= (void*)(long)frame->data) {  // the verifier requires this check
      stamp->magic = NAGI_STAMP_MAGIC;
      stamp->monotonic_ns = now;
    }
  }
  return bpf_redirect_map(&sockets, frame->rx_queue_index, XDP_DROP);
}

char nagi_license[] SEC("license") = "Apache-2.0";
