# SPDX-License-Identifier: Apache-2.0
"""Attack the sandbox of guests by a scheme.

The code of a module runs in the guest kernel, and so in a process of this machine, whose system
calls the code can make.
"""

from __future__ import annotations

import errno
import os
import re
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from marks import in_virtual_time
from nagi.labs import guest, guest_kernel
from nagi.labs.guest import Guest
from nagi_contracts import paths
from test_virtual_lab import no_guest_left  # noqa: F401 - a fixture

pytestmark = in_virtual_time

# A system call of this machine, not of the guest: each line on the console is its name and result.
_MODULE = """\
#include <linux/fcntl.h>
#include <linux/module.h>
#include <linux/printk.h>
#include <linux/sched.h>
#include <linux/socket.h>
#include <linux/un.h>

static long call(long number, long a, long b, long c, long d, long e)
{
    register long r10 asm("r10") = d;
    register long r8 asm("r8") = e;
    register long r9 asm("r9") = 0;
    long result;

    asm volatile("syscall" : "=a"(result)
                 : "a"(number), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9)
                 : "rcx", "r11", "memory");
    return result;
}

static char page[4096];
static int pair[2];

static long fork_with(long flags)
{
    long child = call(56, flags | 17 /* SIGCHLD */, 0, 0, 0, 0);

    if (child == 0)
        call(60, 0, 0, 0, 0, 0);
    return child;
}

#define TRY(name, ...) pr_emerg("tried %s = %ld\\n", name, call(__VA_ARGS__))

static int __init attack(void)
{
ATTACKS
    return -ECANCELED;
}

module_init(attack);
MODULE_LICENSE("GPL");
"""
_SYSTEM_CALLS = {  # by their numbers on x86-64
    "read": 0, "open": 2, "ioctl": 16, "socket": 41, "connect": 42, "socketpair": 53, "clone": 56,
    "ptrace": 101, "chroot": 161, "mount": 165, "init_module": 175, "keyctl": 250, "unshare": 272,
    "perf_event_open": 298, "open_by_handle_at": 304, "setns": 308, "process_vm_readv": 310,
    "bpf": 321, "userfaultfd": 323, "io_uring_setup": 425, "pidfd_open": 434, "clone3": 435,
    "getpid": 39,
}  # fmt: skip
_UNIX, _INET, _INET6, _NETLINK, _PACKET, _VSOCK = 1, 2, 10, 16, 17, 40
_STREAM, _DATAGRAM, _RAW = 1, 2, 3
_NEW_USER = 0x10000000
_TIOCSTI = 0x5412


def _attempt(name: str, system_call: str, *arguments: int | str) -> str:
    """Return the line of C that makes a system call and prints its result under `name`."""
    given = [f'(long)"{each}"' if isinstance(each, str) else str(each) for each in arguments]
    given += ["0"] * (5 - len(given))
    return f'    TRY("{name}", {_SYSTEM_CALLS[system_call]}, {", ".join(given)});'


def _results(attempts: list[str], directory: Path) -> dict[str, int]:
    """Return what system calls of a module gave: its file descriptor or 0, or minus an error."""
    sources, built, own = directory / "sources", directory / "built", directory / "own"
    for each in (sources, built, own):
        each.mkdir()
    source = sources / "attack.c"
    source.write_text(_MODULE.replace("ATTACKS", "\n".join(attempts)))
    kernel = guest_kernel.require_installed()
    builder = paths.load_module(paths.GUEST / "kernel.py")
    builder.stage_module_sources([source], built)
    build = builder.build_module_command(Path(kernel.build), built)
    subprocess.run(build, env=builder.make_module_environment(), check=True)
    script = f"""\
mount -t proc proc /proc
insmod {guest.MOUNT_POINT}/attack/nagi_attack.ko
exec /usr/bin/python3 -IS -c 'import ctypes; ctypes.CDLL(None).reboot(0x4321fedc)'
"""
    shown = {guest.MOUNT_POINT / "attack": built}
    assert Guest(own, shown, script, 1, guest.list_processors()[0]).run(60, lambda: False).in_time
    said = (own / guest.CONSOLE).read_text(errors="replace")
    tried = [line.partition("tried ")[2] for line in said.splitlines() if "tried " in line]
    assert tried, said
    return {name: int(result) for name, _, result in (line.partition(" = ") for line in tried)}


@pytest.fixture
def listener(tmp_path: Path) -> Iterator[Path]:
    """Listen at a Unix socket that anybody may connect to, and give its path."""
    path = tmp_path / "planted.sock"
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(path))
        path.chmod(0o777)
        server.listen()
        yield path


def test_a_module_of_the_guest_kernel_reaches_nothing_of_this_machine(
    tmp_path: Path, listener: Path
) -> None:
    planted = tmp_path / "secret"
    planted.write_text("the user's own")
    planted.chmod(0o600)
    files = {
        "a planted file": _attempt("a planted file", "open", str(planted)),
        "the checkout": _attempt("the checkout", "open", str(Path(__file__).resolve())),
        "passwords": _attempt("passwords", "open", "/etc/shadow"),
        "a root by /proc": _attempt("a root by /proc", "open", f"/proc/{os.getpid()}/root/"),
        "writing to /usr": _attempt("writing to /usr", "open", "/usr/bin/nagi-was-here", 0o101),
        "settings": _attempt("settings", "open", "/proc/sys/kernel/core_pattern", 0o1),
    }
    forbidden = {
        **{
            f"socket {family} {kind}": _attempt(f"socket {family} {kind}", "socket", family, kind)
            for family in (_UNIX, _INET, _INET6, _NETLINK, _PACKET, _VSOCK)
            for kind in (_STREAM, _DATAGRAM, _RAW)
        },
        "a planted socket": (
            f'    static struct sockaddr_un address = {{AF_UNIX, "{listener}"}};\n'
            '    TRY("a planted socket", 42, call(41, 1, 1, 0, 0, 0), (long)&address, '
            "sizeof address, 0, 0);"
        ),
        "a datagram pair": '    TRY("a datagram pair", 53, 1, 2, 0, (long)pair, 0);',
        "a child in a namespace": (
            f'    pr_emerg("tried a child in a namespace = %ld\\n", fork_with({_NEW_USER}));'
        ),
        "bpf": '    TRY("bpf", 321, 0, (long)page, 72, 0, 0);',
        "io_uring": '    TRY("io_uring", 425, 1, (long)page, 0, 0, 0);',
        "perf": '    TRY("perf", 298, (long)page, 0, -1, -1, 0);',
        **{
            name: _attempt(name, *call)
            for name, call in {
                "a user namespace": ("unshare", _NEW_USER),
                "clone3": ("clone3", 0, 0),
                "another's namespace": ("setns", 0, 0),
                "a mount": ("mount", "none", "/tmp", "tmpfs"),
                "chroot": ("chroot", "/usr"),
                "tracing": ("ptrace", 16, 1),
                "another's memory": ("process_vm_readv", 1, 0, 0, 0, 0),
                "a key": ("keyctl", 0, -3, 1),
                "userfaultfd": ("userfaultfd", 1),
                "a pidfd": ("pidfd_open", 1),
                "a file by its handle": ("open_by_handle_at", -100),
                "a module": ("init_module", 0, 0, ""),
                "typing into a terminal": ("ioctl", 0, _TIOCSTI, "x"),
            }.items()
        },
    }
    control = {
        "itself": _attempt("itself", "getpid"),
        "a library": _attempt("a library", "open", "/usr/bin/env"),
    }
    attempts = {**control, **files, **forbidden}
    found = _results(list(attempts.values()), tmp_path)
    assert found.keys() == attempts.keys()
    assert {name for name in control if found[name] < 0} == set(), "the module makes no calls"
    assert {name: found[name] for name in files if found[name] >= 0} == {}
    assert {name: found[name] for name in forbidden if found[name] != -errno.ENOSYS} == {}


def test_what_a_module_leaves_for_the_reader_of_records_is_removed(tmp_path: Path) -> None:
    """Check links that replace records.

    Formerly, nagi copied the target of such a link into the run.
    """
    planted = tmp_path / "secret"
    planted.write_text("the user's own")
    own = tmp_path / "own"
    console = guest.WRITABLE / guest.CONSOLE
    attempts = [
        f'    TRY("a link", 88, (long)"{planted}", (long)"{guest.WRITABLE}/x.jsonl", 0, 0, 0);',
        f'    TRY("a directory", 88, (long)"/", (long)"{guest.WRITABLE}/spool", 0, 0, 0);',
        f'    TRY("a pipe", 133, (long)"{guest.WRITABLE}/pipe", 010666, 0, 0, 0);',
        f'    TRY("no console", 87, (long)"{console}", 0, 0, 0, 0);',
        f'    TRY("a console", 88, (long)"{planted}", (long)"{console}", 0, 0, 0);',
    ]
    found = _results(attempts, tmp_path)
    assert set(found.values()) == {0}, "the module could do it"
    assert not any(path.is_symlink() for path in own.rglob("*"))
    assert sorted(path.name for path in own.iterdir()) == [guest.CONSOLE, "init"]
    assert planted.read_text() == "the user's own"


def test_a_guest_sees_what_the_manual_lists(tmp_path: Path) -> None:
    """Compare the files that a guest sees with docs/virtual-lab.md."""
    own = tmp_path / "own"
    own.mkdir()
    script = """\
cd /; ls -A1 /etc /home /mnt /mnt/nagi /root /run /tmp /var /var/tmp
mount -t proc proc /proc
grep -v : /etc/passwd; cut -d: -f1,3 /etc/passwd
exec /usr/bin/python3 -IS -c 'import ctypes; ctypes.CDLL(None).reboot(0x4321fedc)'
"""
    assert Guest(own, {}, script, 1, guest.list_processors()[0]).run(60, lambda: False).in_time
    said = (own / guest.CONSOLE).read_text()
    listed = {
        directory: set(names.split())
        for directory, names in re.findall(r"^(/\S*):\n((?:[\w.-]+\n)*)", said, re.M)
    }
    manual = (paths.ROOT / "docs" / "virtual-lab.md").read_text()
    etc = {name for name in listed.pop("/etc") if f"`/etc/{name}`" not in manual}
    assert etc == set()
    assert listed == {
        **{empty: set() for empty in ("/home", "/root", "/run", "/tmp", "/var/tmp")},
        "/mnt": {"nagi"},
        "/mnt/nagi": {"lib", "own"},
        "/var": {"tmp"},
    }
    assert "root:0\nnobody:65533\n" in said


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can leave its groups")
def test_a_guest_has_none_of_its_starter_s_groups(tmp_path: Path) -> None:
    """Check that processes in the sandbox have no supplementary group of their starter.

    With group 4, a guest could read a file of that group, which the sandbox shows as a file of the
    unknown group.
    """
    report = "import os; print(open('/proc/self/status').read())"
    code = (
        "import os, subprocess\n"
        "from nagi.sandbox import Sandbox\n"
        "os.setgroups([4, 27])\n"
        f"started = Sandbox(None).start(['python3', '-c', {report!r}], {{}}, subprocess.PIPE)\n"
        "print(started.communicate()[0].decode())\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    (groups,) = re.findall(r"^Groups:(.*)", done.stdout, re.M)
    assert groups.split() in ([], ["0"])
