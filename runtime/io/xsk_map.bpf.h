// SPDX-License-Identifier: Apache-2.0
//
// The map from the queues of an interface to their AF_XDP sockets, for XDP programs.
#pragma once

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
