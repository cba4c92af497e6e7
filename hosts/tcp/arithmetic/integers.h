// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0
//
// What the arithmetic of the schemes is written in: integers alone, no division of negative numbers,
// no kernel types. The same headers are compiled into eBPF programs, kernel modules and C++ tests.
#ifndef NAGI_ARITHMETIC_INTEGERS_H
#define NAGI_ARITHMETIC_INTEGERS_H

#include <linux/types.h>

// eBPF programs reach a connection's memory only by instructions of their own function.
#define NAGI_INLINE static inline __attribute__((always_inline, unused))

NAGI_INLINE __u32 nagi_min(__u32 a, __u32 b) { return a < b ? a : b; }
NAGI_INLINE __u32 nagi_max(__u32 a, __u32 b) { return a > b ? a : b; }

/// Whether sequence number `a` comes after `b`, across the wrap.
NAGI_INLINE int nagi_after(__u32 a, __u32 b) { return (__s32)(b - a) < 0; }

#endif
