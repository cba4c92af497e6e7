// SPDX-License-Identifier: Apache-2.0
//
// Writes the seccomp filter of a guest's sandbox to a file, as a BPF program for bubblewrap's
// option --seccomp. The build runs this program once.
//
// The filter permits only the system calls that User-mode Linux makes to run a guest. All other
// calls fail with ENOSYS. This matters because a user's scheme in C is a module of the guest
// kernel, and so can make system calls of this machine. Under the filter, a scheme cannot open a
// socket (except pairs of connected Unix stream sockets), make namespaces, mount, trace other
// processes, use keys or load BPF. It can open the files that the sandbox shows (nagi/sandbox.py).
//
// The filter does not apply to system calls of the guest's own programs, because the guest kernel
// traps these calls (SECCOMP_RET_TRAP has precedence over SECCOMP_RET_ERRNO, seccomp(2)) and
// executes them itself.
#include <asm/termbits.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/sched.h>
#include <seccomp.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/socket.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <initializer_list>

namespace {

void require_success(int result, const char* what) {
  if (result < 0) {
    std::fprintf(stderr, "sandbox_filter: %s: %s\n", what, std::strerror(-result));
    std::exit(1);
  }
}

/// Permit a system call: with any arguments, or only if `arguments` match.
void permit(scmp_filter_ctx filter, const char* name,
            std::initializer_list<scmp_arg_cmp> arguments = {}) {
  const int number = seccomp_syscall_resolve_name(name);
  if (number == __NR_SCMP_ERROR) require_success(-ENOENT, name);
  require_success(
      seccomp_rule_add_array(filter, SCMP_ACT_ALLOW, number,
                             static_cast<unsigned>(arguments.size()), arguments.begin()),
      name);
}

constexpr const char* memory[] = {
    "brk", "madvise", "memfd_create", "mmap", "mprotect", "mremap", "munmap",
};
// System calls for programs, threads and signals. `clone` and `prctl` have conditions, below.
constexpr const char* processes[] = {
    "arch_prctl",      "execve",
    "execveat",        "exit",
    "exit_group",      "futex",
    "getegid",         "geteuid",
    "getgid",          "getpgrp",
    "getpid",          "getppid",
    "getrusage",       "gettid",
    "getuid",          "kill",
    "personality",     "prlimit64",
    "restart_syscall", "rseq",
    "rt_sigaction",    "rt_sigpending",
    "rt_sigprocmask",  "rt_sigreturn",
    "rt_sigsuspend",   "sched_getaffinity",
    "sched_yield",     "seccomp",
    "set_robust_list", "set_tid_address",
    "setpgid",         "setsid",
    "sigaltstack",     "signalfd4",
    "sysinfo",         "tgkill",
    "uname",           "vfork",
    "wait4",           "waitid",
};
constexpr const char* clocks[] = {
    "clock_getres",  "clock_gettime", "clock_nanosleep",  "getitimer",
    "gettimeofday",  "nanosleep",     "setitimer",        "time",
    "timer_create",  "timer_delete",  "timer_getoverrun", "timer_gettime",
    "timer_settime", "getrandom",
};
// System calls for descriptors. Messages are only possible over pairs of sockets.
constexpr const char* descriptors[] = {
    "close",         "close_range", "dup",         "dup2",       "dup3",     "epoll_create",
    "epoll_create1", "epoll_ctl",   "epoll_pwait", "epoll_wait", "eventfd2", "fcntl",
    "lseek",         "pipe",        "pipe2",       "poll",       "ppoll",    "pread64",
    "preadv",        "pselect6",    "pwrite64",    "pwritev",    "read",     "readv",
    "recvmsg",       "select",      "sendmsg",     "write",      "writev",
};
// System calls by which hostfs accesses the files that the sandbox shows.
constexpr const char* files[] = {
    "access",     "chdir",      "chmod",    "chown",      "creat",     "faccessat", "faccessat2",
    "fallocate",  "fchdir",     "fchmod",   "fchmodat",   "fchown",    "fchownat",  "fdatasync",
    "flock",      "fstat",      "fstatfs",  "fsync",      "ftruncate", "futimesat", "getcwd",
    "getdents",   "getdents64", "getxattr", "lchown",     "lgetxattr", "link",      "linkat",
    "llistxattr", "lstat",      "mkdir",    "mkdirat",    "mknod",     "mknodat",   "newfstatat",
    "open",       "openat",     "readlink", "readlinkat", "rename",    "renameat",  "renameat2",
    "rmdir",      "stat",       "statfs",   "statx",      "symlink",   "symlinkat", "sync",
    "truncate",   "umask",      "unlink",   "unlinkat",   "utime",     "utimensat", "utimes",
};
constexpr scmp_datum_t new_namespaces = CLONE_NEWUSER | CLONE_NEWNET | CLONE_NEWNS | CLONE_NEWPID |
                                        CLONE_NEWIPC | CLONE_NEWUTS | CLONE_NEWCGROUP;
constexpr unsigned long processes_settings[] = {PR_SET_NO_NEW_PRIVS, PR_SET_NAME, PR_SET_PDEATHSIG,
                                                PR_CAPBSET_READ};
// Requests for the settings and the size of a terminal, and for pseudo-terminals. No request can
// insert input into a terminal.
constexpr unsigned long requests[] = {TCGETS,   TCSETS,      TCSETSW,    TCSETSF, TIOCGWINSZ,
                                      TIOCGPTN, TIOCGPTPEER, TIOCSPTLCK, FIONBIO};

}  // namespace

int main(int count, char** arguments) {
  if (count != 2) {
    std::fputs("usage: sandbox_filter FILE\n", stderr);
    return 2;
  }
  scmp_filter_ctx filter = seccomp_init(SCMP_ACT_ERRNO(ENOSYS));
  if (filter == nullptr) require_success(-ENOMEM, "seccomp_init");
  // A guest's program may make 32-bit and x32 system calls. The guest kernel executes them as well,
  // so they must not kill the program (the default).
  require_success(seccomp_attr_set(filter, SCMP_FLTATR_ACT_BADARCH, SCMP_ACT_ERRNO(ENOSYS)),
                  "foreign architectures");
  // A binary tree is fast. Every system call of the guest passes the filter.
  require_success(seccomp_attr_set(filter, SCMP_FLTATR_CTL_OPTIMIZE, 2), "a binary tree");
  for (const char* name : memory) permit(filter, name);
  for (const char* name : processes) permit(filter, name);
  for (const char* name : clocks) permit(filter, name);
  for (const char* name : descriptors) permit(filter, name);
  for (const char* name : files) permit(filter, name);
  permit(filter, "clone", {SCMP_A0_64(SCMP_CMP_MASKED_EQ, new_namespaces, 0)});
  // Only stream sockets are permitted: a datagram socket of a pair could send to any address.
  permit(filter, "socketpair",
         {SCMP_A0_64(SCMP_CMP_EQ, AF_UNIX),
          SCMP_A1_64(SCMP_CMP_MASKED_EQ, ~static_cast<scmp_datum_t>(SOCK_CLOEXEC | SOCK_NONBLOCK),
                     SOCK_STREAM)});
  for (const unsigned long setting : processes_settings)
    permit(filter, "prctl", {SCMP_A0_64(SCMP_CMP_EQ, setting)});
  for (const unsigned long request : requests)
    permit(filter, "ioctl", {SCMP_A1_64(SCMP_CMP_EQ, request)});
  const int file = open(arguments[1], O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  require_success(file < 0 ? -errno : seccomp_export_bpf(filter, file), arguments[1]);
  seccomp_release(filter);
  return 0;
}
