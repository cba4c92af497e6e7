// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0
//
// A scheme as a kernel module, for kernels without eBPF struct_ops, such as User-mode Linux.
// hosts/tcp/module/Kbuild builds it for Linux 6.1 and newer. The module registers as nagi_SCHEME; the scheme's
// parameters are module parameters. Events go to the tracepoint nagi:nagi_SCHEME instead of a ring buffer.
#ifndef NAGI_GLUE_MODULE_H
#define NAGI_GLUE_MODULE_H

#include <linux/module.h>
#include <linux/moduleparam.h>
#include <linux/timekeeping.h>
#include <linux/version.h>
#include <net/tcp.h>

#include "../arithmetic/integers.h"
#include "event.h"

#if BITS_PER_LONG != 64
#error "nagi's schemes divide 64-bit numbers, as only 64-bit kernels can: build for a 64-bit kernel"
#endif

#define CREATE_TRACE_POINTS
#include "trace.h"

// A parameter is set when the module is loaded, and is read-only afterwards. The module refuses a value out of
// range.
#define NAGI_PARAMETER(name, value, minimum, maximum, unit, meaning)                               \
  static unsigned int name = value;                                                                \
  static int nagi_set_##name(const char* text, const struct kernel_param* parameter) {             \
    int error = param_set_uint_minmax(text, parameter, minimum, maximum);                          \
                                                                                                   \
    if (error)                                                                                     \
      pr_err("%s: %s=%s: give %s= a whole number from %u to %u %s\n", KBUILD_MODNAME, #name, text, \
             #name, minimum, maximum, unit);                                                       \
    return error;                                                                                  \
  }                                                                                                \
  static const struct kernel_param_ops nagi_ops_##name = {                                         \
      .set = nagi_set_##name,                                                                      \
      .get = param_get_uint,                                                                       \
  };                                                                                               \
  module_param_cb(name, &nagi_ops_##name, &name, 0444);                                            \
  __MODULE_PARM_TYPE(name, "uint");                                                                \
  MODULE_PARM_DESC(name, meaning " (" unit ", " #minimum " to " #maximum ", default " #value ")")

NAGI_INLINE struct tcp_sock* nagi_tcp_sock(struct sock* sk) { return tcp_sk(sk); }

NAGI_INLINE struct inet_connection_sock* nagi_icsk(struct sock* sk) { return inet_csk(sk); }

NAGI_INLINE int nagi_is_window_limited(const struct tcp_sock* tp) { return tp->is_cwnd_limited; }

NAGI_INLINE int nagi_has_timestamp(const struct tcp_sock* tp) { return tp->rx_opt.saw_tstamp; }

#define NAGI_TRACE_(prefix, event) prefix##event
#define NAGI_TRACE(prefix, event) NAGI_TRACE_(prefix, event)
#define NAGI_LISTENING NAGI_TRACE(NAGI_TRACE(trace_, NAGI_EVENT), _enabled)()

NAGI_INLINE struct nagi_event* nagi_event_begin(struct nagi_event* storage) {
  storage->at_ns = ktime_get_mono_fast_ns();
  return storage;
}

NAGI_INLINE void nagi_event_end(struct nagi_event* event) { NAGI_TRACE(trace_, NAGI_EVENT)(event); }

NAGI_INLINE __u16 nagi_remote_port(const struct sock* sk) { return ntohs(sk->sk_dport); }

NAGI_INLINE __u16 nagi_local_port(const struct sock* sk) { return sk->sk_num; }

#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 10, 0)
#define NAGI_ACK_ARGUMENTS struct sock *sk, const struct rate_sample *sample
#else
#define NAGI_ACK_ARGUMENTS struct sock *sk, u32 ack, int flag, const struct rate_sample *sample
#endif

#ifdef NAGI_SHARED
#define NAGI_REGISTER_HOOKS() register_pernet_subsys(&nagi_namespaces)
#define NAGI_UNREGISTER_HOOKS() unregister_pernet_subsys(&nagi_namespaces)
#else
#define NAGI_REGISTER_HOOKS() 0
#define NAGI_UNREGISTER_HOOKS() (void)0
#endif

#ifdef NAGI_KEEPS_ACKS
#define NAGI_RELEASE .release = nagi_on_release,
#else
#define NAGI_RELEASE
#endif

/// Define the structure that names a scheme's functions. A scheme's file uses this once, at its end.
#define NAGI_SCHEME(scheme)                                                      \
  static void nagi_cong_control(NAGI_ACK_ARGUMENTS) { nagi_on_ack(sk, sample); } \
                                                                                 \
  static struct tcp_congestion_ops nagi_ops = {                                  \
      NAGI_RELEASE.init = nagi_on_start, .set_state = nagi_on_state,             \
      .cong_control = nagi_cong_control, .ssthresh = nagi_threshold,             \
      .undo_cwnd = nagi_window_size,     .flags = TCP_CONG_NON_RESTRICTED,       \
      .name = "nagi_" #scheme,           .owner = THIS_MODULE,                   \
  };                                                                             \
  static int __init nagi_load(void) {                                            \
    int error = NAGI_REGISTER_HOOKS();                                           \
                                                                                 \
    if (error) return error;                                                     \
    error = tcp_register_congestion_control(&nagi_ops);                          \
    if (error) NAGI_UNREGISTER_HOOKS();                                          \
    return error;                                                                \
  }                                                                              \
  static void __exit nagi_unload(void) {                                         \
    tcp_unregister_congestion_control(&nagi_ops);                                \
    NAGI_UNREGISTER_HOOKS();                                                     \
  }                                                                              \
  module_init(nagi_load);                                                        \
  module_exit(nagi_unload);                                                      \
  MODULE_LICENSE("GPL");                                                         \
  MODULE_DESCRIPTION("nagi's TCP congestion control " #scheme);                  \
  /* The kernel loads a missing congestion control by this alias. */             \
  MODULE_ALIAS("tcp_nagi_" #scheme)

#endif
