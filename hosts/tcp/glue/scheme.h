// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0
//
// What the file of a scheme includes first. It gives
//
//   NAGI_PARAMETER(name, default, least, most, unit, meaning)
//       a number that whoever loads the scheme may set, before it runs, to something in the range;
//   struct tcp_sock and its kin, with the fields that schemes look at, by their names in the kernel.
//
// A scheme is written for two machines: the eBPF programs of a running kernel (bpf.h), and a module for
// a guest kernel that has no eBPF struct_ops. For the module a header `module.h` beside bpf.h has to
// define the same names by the kernel's own headers, and nothing else changes:
//
//   bpf.h                              module.h
//   minimal struct tcp_sock, ...       #include <net/tcp.h>
//   NAGI_PARAMETER: rodata, BTF tag    static unsigned int, module_param(), MODULE_PARM_DESC()
//   nagi_is_window_limited(tp)         tp->is_cwnd_limited
//   nagi_tell(): ring buffer           nothing, or a tracepoint
//   NAGI_SCHEME(name): SEC() programs  static functions, a struct tcp_congestion_ops with .owner, and
//                                      module_init / module_exit that (un)register it
#ifndef NAGI_GLUE_SCHEME_H
#define NAGI_GLUE_SCHEME_H

#ifdef NAGI_BPF
#include "bpf.h"
#else
#error "define NAGI_BPF: schemes are built as eBPF programs so far; see glue/scheme.h for a module"
#endif

#endif
