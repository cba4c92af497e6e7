# SPDX-License-Identifier: Apache-2.0
"""Compile a user's own scheme, for tests of several components."""

from __future__ import annotations

import subprocess
import sysconfig
import textwrap
from pathlib import Path

OWN_SCHEME = """
#include <linux/bpf.h>
#include <linux/types.h>
#include <bpf/bpf_helpers.h>
char _license[] SEC("license") = "GPL";
struct sock;
struct tcp_sock {{ __u32 snd_cwnd; __u32 srtt_us; }} __attribute__((preserve_access_index));
struct tcp_congestion_ops {{
    __u32 (*ssthresh)(struct sock *);
    void (*cong_avoid)(struct sock *, __u32, __u32);
    __u32 (*undo_cwnd)(struct sock *);
    char name[16];
}};
SEC("struct_ops/thresh") __u32 own_thresh(unsigned long long *ctx)
{{ return ((struct tcp_sock *)ctx[0])->snd_cwnd / 2; }}
SEC("struct_ops/avoid") void own_avoid(unsigned long long *ctx)
{{ {body} }}
SEC("struct_ops/undo") __u32 own_undo(unsigned long long *ctx)
{{ return ((struct tcp_sock *)ctx[0])->snd_cwnd; }}
SEC("{section}") struct tcp_congestion_ops own = {{
    .ssthresh = (void *)own_thresh,
    .cong_avoid = (void *)own_avoid,
    .undo_cwnd = (void *)own_undo,
    .name = "own",
}};
"""


def compile_scheme(directory: Path, source: str) -> Path:
    """Compile `source` to an eBPF object."""
    given, made = directory / "own.c", directory / "own.o"
    given.write_text(textwrap.dedent(source))
    headers = f"/usr/include/{sysconfig.get_config_var('MULTIARCH')}"
    command = f"clang --target=bpf -O2 -g -idirafter {headers} -c -o"
    subprocess.run([*command.split(), str(made), str(given)], check=True)
    return made
