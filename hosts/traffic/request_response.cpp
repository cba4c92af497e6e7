// SPDX-License-Identifier: Apache-2.0
//
// Requests and responses in turn over one connection. A request begins with the size of its
// response: 8 bytes, big endian.
#include <endian.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

#include "applications.hpp"
#include "io/input_error.hpp"

namespace nagi::applications {

using nlohmann::json;

namespace {

constexpr std::uint64_t head_bytes = 8;

void send_at_once(int socket) {
  const int on = 1;
  if (setsockopt(socket, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on) != 0) {
    io::throw_errno("TCP_NODELAY");
  }
}

/// Send `count` bytes. Return false if the connection is broken.
bool send_all(int socket, Waiter& waiter, std::uint64_t count) {
  while (count > 0) {
    const std::int64_t accepted = send_filler(socket, count);
    if (accepted < 0) return false;
    count -= static_cast<std::uint64_t>(accepted);
    if (count > 0) waiter.wait(socket, POLLOUT);
  }
  return true;
}

/// Receive `count` bytes. Store the first bytes in `head`, and discard the others. Return false if
/// the data has ended or the connection is broken.
bool receive_all(int socket, Waiter& waiter, std::uint64_t count, std::span<char> head = {}) {
  std::uint64_t received = 0;
  while (received < count) {
    std::int64_t result = 0;  // as that of drop_received()
    if (received < head.size()) {
      const ssize_t size = recv(socket, head.data() + received, head.size() - received, 0);
      result = size >= 0 ? size : errno == EAGAIN || errno == EINTR ? -2 : -1;
    } else {
      result = drop_received(socket, count - received);
    }
    if (result == 0 || result == -1) return false;
    if (result == -2) {
      waiter.wait(socket, POLLIN);
    } else {
      received += static_cast<std::uint64_t>(result);
    }
  }
  return true;
}

}  // namespace

json request_response_client(const Ends& ends, const RequestResponse& settings) {
  Waiter waiter;
  json result = result_of("request_response", "client");
  settings.sizes.check();
  if (settings.request_bytes < head_bytes) throw InputError("--request: give 8 bytes or more");
  Draws sizes(settings.seed.seed, settings.seed.stream + "/sizes");
  Draws pauses(settings.seed.seed, settings.seed.stream + "/pauses");
  json requests = json::array();
  json connect_s;
  const char* ended = "stopped";
  const std::int64_t start = now_ns();
  const io::Descriptor socket = begin_connecting(ends);
  std::int64_t request_time = 0;
  std::uint64_t size = 0;
  bool is_open = false;  // the last request has no response yet
  try {
    if (finish_connecting(socket.get(), waiter, never) != Connecting::done) {
      ended = "given up";
    } else {
      connect_s = seconds(now_ns() - start);
      send_at_once(socket.get());
      for (std::uint64_t count = 0; count < settings.count; ++count) {
        size = settings.sizes.draw(sizes);
        const std::uint64_t head = htobe64(size);
        request_time = now_ns();
        is_open = true;
        // The last response acknowledged all data sent before, so the kernel's buffer has room.
        const bool has_response =
            send(socket.get(), &head, sizeof head, MSG_NOSIGNAL | MSG_MORE) ==
                static_cast<ssize_t>(sizeof head) &&
            send_all(socket.get(), waiter, settings.request_bytes - head_bytes) &&
            receive_all(socket.get(), waiter, size);
        if (!has_response) {
          ended = "connection broken";
          break;
        }
        is_open = false;
        requests.push_back({seconds(request_time - start), size, seconds(now_ns() - request_time)});
        if (settings.pause_ns > 0) {
          const double pause = pauses.exponential(static_cast<double>(settings.pause_ns));
          waiter.sleep(now_ns() + static_cast<std::int64_t>(pause));
        }
        if (count + 1 == settings.count) ended = "complete";
      }
    }
  } catch (const Stopped&) {
    set_break_at_close(socket.get(), true);
  }
  if (is_open) requests.push_back({seconds(request_time - start), size, nullptr});
  result.update({{"connect_s", connect_s}, {"requests", requests}, {"ended", ended}});
  return result;
}

json request_response_server(const Ends& ends, const RequestResponse& settings) {
  Waiter waiter;
  json result = result_of("request_response", "server");
  std::uint64_t responses = 0;
  std::uint64_t sent = 0;
  const char* ended = "stopped";
  const io::Descriptor listener = listen_tcp(ends);
  try {
    const io::Descriptor connection = accept_tcp(listener.get(), waiter);
    send_at_once(connection.get());
    try {
      std::array<char, head_bytes> head{};
      while (receive_all(connection.get(), waiter, settings.request_bytes, head)) {
        std::uint64_t size = 0;
        std::memcpy(&size, head.data(), sizeof size);
        size = be64toh(size);
        if (!send_all(connection.get(), waiter, size)) break;
        ++responses;
        sent += size;
      }
      ended = "complete";
    } catch (const Stopped&) {
      set_break_at_close(connection.get(), true);
    }
  } catch (const Stopped&) {
  }
  result.update({{"responses", responses}, {"sent_bytes", sent}, {"ended", ended}});
  return result;
}

}  // namespace nagi::applications
