// SPDX-License-Identifier: Apache-2.0
//
// Bulk data: the client sends as much data as TCP accepts. Client and server have no time limits of
// their own, only those of TCP in the kernel. So the application survives the loss of the handshake
// or of the first segments, which can take seconds.
#include <sys/socket.h>

#include "applications.hpp"

namespace nagi::applications {

using nlohmann::json;

namespace {

// The receiver wakes when this number of bytes can be read or when its buffer is full
// (tcp_epollin_ready() in net/ipv4/tcp.c). It does not wake for every segment. ACKs are not
// delayed: while fewer bytes are unread, the kernel acknowledges at once (__tcp_ack_snd_check() in
// tcp_input.c).
constexpr int wake_bytes = 16'000;
constexpr std::size_t max_read_bytes = 1 << 20;

}  // namespace

json bulk_client(const Ends& ends) {
  Waiter waiter;
  json result = result_of("bulk", "client");
  const std::int64_t start = now_ns();
  std::uint64_t sent = 0;
  std::optional<std::int64_t> connect_ns;
  const char* ended = "stopped";
  const io::Descriptor socket = begin_connecting(ends);
  // If this program is killed, the kernel must not send the data that it still buffers.
  set_break_at_close(socket.get(), true);
  try {
    if (finish_connecting(socket.get(), waiter, never) == Connecting::given_up) {
      ended = "given up";
    } else {
      connect_ns = now_ns() - start;
      while (true) {
        const std::int64_t accepted = send_filler(socket.get(), max_filler);
        if (accepted < 0) {
          ended = "connection broken";
          break;
        }
        sent += static_cast<std::uint64_t>(accepted);
        waiter.wait(socket.get(), POLLOUT);
      }
    }
  } catch (const Stopped&) {
    set_break_at_close(socket.get(), false);
  }
  result.update({{"sent_bytes", sent},
                 {"connect_s", seconds_or_null(connect_ns)},
                 {"duration_s", seconds(now_ns() - start)},
                 {"ended", ended}});
  return result;
}

json bulk_server(const Ends& ends) {
  Waiter waiter;
  json result = result_of("bulk", "server");
  const std::int64_t start = now_ns();
  std::uint64_t received = 0;
  std::optional<std::int64_t> accepted_ns;
  const char* ended = "stopped";
  const io::Descriptor listener = listen_tcp(ends);
  try {
    const io::Descriptor connection = accept_tcp(listener.get(), waiter);
    accepted_ns = now_ns() - start;
    if (setsockopt(connection.get(), SOL_SOCKET, SO_RCVLOWAT, &wake_bytes, sizeof wake_bytes) !=
        0) {
      io::throw_errno("SO_RCVLOWAT");
    }
    while (true) {
      waiter.wait(connection.get(), POLLIN);
      const std::int64_t count = drop_received(connection.get(), max_read_bytes);
      if (count == 0) {
        ended = "complete";
        break;
      }
      if (count == -1) {
        ended = "connection broken";
        waiter.sleep(never);  // the client was killed; the agent then also stops this server
      }
      if (count > 0) received += static_cast<std::uint64_t>(count);
    }
  } catch (const Stopped&) {
  }
  result.update({{"received_bytes", received},
                 {"accepted_s", seconds_or_null(accepted_ns)},
                 {"duration_s", seconds(now_ns() - start)},
                 {"ended", ended}});
  return result;
}

}  // namespace nagi::applications
