// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0
//
// Integers for the arithmetic of schemes. The headers in this directory use integers only, no division of
// negative numbers and no kernel types, so that they compile into eBPF programs, kernel modules and C++ tests.
#ifndef NAGI_ARITHMETIC_INTEGERS_H
#define NAGI_ARITHMETIC_INTEGERS_H

#include <linux/types.h>

// Functions are always inline, because the verifier permits access to a connection's memory only in the main function
// of an eBPF program.
#define NAGI_INLINE static inline __attribute__((always_inline, unused))

NAGI_INLINE __u32 nagi_min(__u32 a, __u32 b) { return a < b ? a : b; }
NAGI_INLINE __u32 nagi_max(__u32 a, __u32 b) { return a > b ? a : b; }

/// Return whether sequence number `a` comes after `b`, modulo 2^32.
NAGI_INLINE int nagi_after(__u32 a, __u32 b) { return (__s32)(b - a) < 0; }

#endif
