// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0
//
// A scheme's file includes this header first. It provides
//
//   NAGI_PARAMETER(name, default, minimum, maximum, unit, meaning)
//       a whole number in the given range, which can be set when the scheme is loaded;
//   struct tcp_sock and related structures, with the fields that schemes use, named as in the kernel.
//
// A scheme compiles for two environments: eBPF programs of a running kernel (bpf.h), and a module for a guest
// kernel that has no eBPF struct_ops (module.h). Both define the same names:
//
//   bpf.h                              module.h
//   minimal struct tcp_sock, ...       #include <net/tcp.h>
//   NAGI_PARAMETER: rodata, BTF tag    a module parameter; the module refuses a value out of range
//   nagi_is_window_limited(tp)         tp->is_cwnd_limited
//   nagi_has_timestamp(tp)             tp->rx_opt.saw_tstamp
//   events: ring buffer                the tracepoint nagi:nagi_SCHEME (trace.h)
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
