// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0
//
// What the file of a scheme includes first. It gives
//
//   NAGI_PARAMETER(name, default, minimum, maximum, unit, meaning)
//       a number that whoever loads the scheme may set, before it runs, to something in the range;
//   struct tcp_sock and its kin, with the fields that schemes look at, by their names in the kernel.
//
// A scheme is written for two machines: the eBPF programs of a running kernel (bpf.h), and a module for
// a guest kernel that has no eBPF struct_ops (module.h). Both define the same names:
//
//   bpf.h                              module.h
//   minimal struct tcp_sock, ...       #include <net/tcp.h>
//   NAGI_PARAMETER: rodata, BTF tag    a module's parameter; out of its range, the module is refused
//   nagi_is_window_limited(tp)         tp->is_cwnd_limited
//   nagi_has_timestamp(tp)             tp->rx_opt.saw_tstamp
//   nagi_tell(): ring buffer           the tracepoint nagi:nagi_SCHEME (trace.h)
//   NAGI_SCHEME(name): SEC() programs  functions, and a module that registers and unregisters them
#ifndef NAGI_GLUE_SCHEME_H
#define NAGI_GLUE_SCHEME_H

#ifdef NAGI_BPF
#include "bpf.h"
#elif defined(__KERNEL__)
#include "module.h"
#else
#error "define NAGI_BPF for an eBPF object; a module is built by `make module`"
#endif

#endif
