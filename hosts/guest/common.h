// SPDX-License-Identifier: Apache-2.0
//
// Headers that most files of a kernel include, for compile.sh. Kbuild includes the first three in every file.
#include <linux/compiler-version.h>
#include <linux/kconfig.h>
#include <linux/compiler_types.h>

#define KBUILD_MODNAME "kernel"  // in messages of functions that are in headers
#include <linux/fs.h>
#include <linux/hrtimer.h>
#include <linux/interrupt.h>
#include <linux/kobject.h>
#include <linux/mm.h>
#include <linux/module.h>
#include <linux/netdevice.h>
#include <linux/nsproxy.h>
#include <linux/proc_fs.h>
#include <linux/sched.h>
#include <linux/seq_file.h>
#include <linux/skbuff.h>
#include <linux/slab.h>
#include <linux/syscalls.h>
#include <linux/uaccess.h>
#include <net/ip.h>
#include <net/sock.h>
#include <net/tcp.h>
#undef KBUILD_MODNAME
