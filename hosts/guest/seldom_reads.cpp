// SPDX-License-Identifier: Apache-2.0
//
// Preloaded into the receivers' iperf in a guest of the virtual lab, where a system call costs as
// much as the way of a segment through the guest's kernel. It makes two of them seldom, one cheap,
// and leaves one out:
//
// - iperf reads the clock whenever it has received something, for reports that nobody reads. One
//   reading in 64 is one; the others repeat it.
// - It is woken for every segment. After iperf's header it is woken when 16 kB are there, or the
//   connection ends. ACKs do not wait for it: the kernel acknowledges at once while less than that
//   is unread (__tcp_ack_snd_check() in net/ipv4/tcp_input.c).
// - What it receives then is dropped in the kernel, not copied (MSG_TRUNC).
// - It waits for its header as long as TCP tries to send it, and not 4 s (SO_RCVTIMEO): where many
//   flows begin at once, a handshake and a first segment may be lost for longer.
#include <sys/socket.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

namespace {
constexpr int readings = 64;
constexpr int least_bytes = 16'000;
constexpr size_t header_bytes = 65'536;  // longer reads are of what follows it
}  // namespace

extern "C" int clock_gettime(clockid_t clock, timespec* time) noexcept {
  struct Reading {
    int left = 0;
    timespec time{};
  };
  static thread_local Reading realtime;
  if (clock != CLOCK_REALTIME) return static_cast<int>(syscall(SYS_clock_gettime, clock, time));
  if (realtime.left-- == 0) {
    realtime.left = readings - 1;
    syscall(SYS_clock_gettime, clock, &realtime.time);
  }
  *time = realtime.time;
  return 0;
}

extern "C" int setsockopt(int connection, int level, int option, const void* value,
                          socklen_t bytes) noexcept {
  if (level == SOL_SOCKET && option == SO_RCVTIMEO) return 0;
  return static_cast<int>(syscall(SYS_setsockopt, connection, level, option, value, bytes));
}

extern "C" ssize_t recv(int connection, void* buffer, size_t count, int flags) {
  static thread_local int woken_seldom = -1;
  if (count > header_bytes) {
    flags |= MSG_TRUNC;
    if (connection != woken_seldom) {
      setsockopt(connection, SOL_SOCKET, SO_RCVLOWAT, &least_bytes, sizeof least_bytes);
      woken_seldom = connection;
    }
  }
  return syscall(SYS_recvfrom, connection, buffer, count, flags, nullptr, nullptr);
}
