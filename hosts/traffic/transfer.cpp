// SPDX-License-Identifier: Apache-2.0
//
// When the last byte has been acknowledged the kernel says so by a time stamp of that byte, in the
// socket's error queue: SOF_TIMESTAMPING_TX_ACK, Documentation/networking/timestamping.rst.
#include <linux/errqueue.h>
#include <linux/net_tstamp.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <ctime>  // errqueue.h needs it
#include <vector>

#include "applications.hpp"

namespace nagi::applications {
namespace {

using nlohmann::json;

/// Bytes that are sent with a wish for it have the kernel say when they were acknowledged, by their
/// place in the stream.
void number_bytes(int socket) {
  const int flags =
      SOF_TIMESTAMPING_SOFTWARE | SOF_TIMESTAMPING_OPT_ID | SOF_TIMESTAMPING_OPT_TSONLY;
  if (setsockopt(socket, SOL_SOCKET, SO_TIMESTAMPING, &flags, sizeof flags) != 0) {
    io::throw_errno("SO_TIMESTAMPING");
  }
}

/// Whether the error queue says that byte `wanted` (modulo 2^32) has been acknowledged.
bool is_acknowledged(int socket, std::uint32_t wanted) {
  while (true) {
    alignas(cmsghdr) std::array<char, 512> control{};
    msghdr message{};
    message.msg_control = control.data();
    message.msg_controllen = control.size();
    if (recvmsg(socket, &message, MSG_ERRQUEUE) < 0) {
      if (errno == EAGAIN || errno == EINTR) return false;
      io::throw_errno("MSG_ERRQUEUE");
    }
    for (const cmsghdr* part = CMSG_FIRSTHDR(&message); part != nullptr;
         part = CMSG_NXTHDR(&message, const_cast<cmsghdr*>(part))) {
      const bool is_error = (part->cmsg_level == SOL_IP && part->cmsg_type == IP_RECVERR) ||
                            (part->cmsg_level == SOL_IPV6 && part->cmsg_type == IPV6_RECVERR);
      if (!is_error) continue;
      sock_extended_err error{};
      std::memcpy(&error, CMSG_DATA(part), sizeof error);
      if (error.ee_origin == SO_EE_ORIGIN_TIMESTAMPING && error.ee_info == SCM_TSTAMP_ACK &&
          error.ee_data == wanted) {
        return true;
      }
    }
  }
}

}  // namespace

json transfer_client(const Ends& ends, const Transfer& settings) {
  Waiter waiter;
  json result = result_of("transfer", "client");
  const std::int64_t start = now_ns();
  const std::int64_t deadline = after(start, settings.max_duration_ns);
  json connect_s;
  json completion_s;
  const char* ended = "stopped";
  std::uint64_t sent = 0;
  const io::Descriptor socket = begin_connecting(ends);
  try {
    const Connecting connected = finish_connecting(socket.get(), waiter, deadline);
    if (connected != Connecting::done) {
      ended = connected == Connecting::timed_out ? "maximum duration" : "given up";
    } else {
      connect_s = seconds(now_ns() - start);
      ended = "maximum duration";
      number_bytes(socket.get());
      const auto last = static_cast<std::uint32_t>(settings.size_bytes - 1);
      while (true) {
        const bool all = sent == settings.size_bytes;
        const auto wanted = static_cast<short>(all ? 0 : POLLOUT);
        const short events = waiter.wait(socket.get(), wanted, deadline);
        if (events == 0) break;
        if ((events & POLLERR) != 0 && is_acknowledged(socket.get(), last)) {
          completion_s = seconds(now_ns() - start);
          ended = "complete";
          break;
        }
        if ((events & POLLHUP) != 0) {
          ended = "connection broken";
          break;
        }
        if (all || (events & POLLOUT) == 0) continue;
        const std::uint64_t left = settings.size_bytes - sent;
        // Nobody needs to know when bytes long before the last were acknowledged.
        const std::int64_t taken = send_filler(socket.get(), left, left <= max_filler);
        if (taken < 0) {
          ended = "connection broken";
          break;
        }
        sent += static_cast<std::uint64_t>(taken);
        if (sent == settings.size_bytes) shutdown(socket.get(), SHUT_WR);
      }
    }
  } catch (const Stopped&) {
    ended = "stopped";
  }
  if (completion_s.is_null()) break_at_close(socket.get());
  result.update({{"size_bytes", settings.size_bytes},
                 {"connect_s", connect_s},
                 {"completed", !completion_s.is_null()},
                 {"completion_s", completion_s},
                 {"ended", ended}});
  return result;
}

json transfer_server(const Ends& ends) {
  Waiter waiter;
  json result = result_of("transfer", "server");
  std::uint64_t received = 0;
  json accepted_s;
  json first_s;
  json last_s;
  const char* ended = "stopped";
  const std::int64_t start = now_ns();
  const io::Descriptor listener = listen_tcp(ends);
  try {
    const io::Descriptor connection = accept_tcp(listener.get(), waiter);
    accepted_s = seconds(now_ns() - start);
    while (true) {
      waiter.wait(connection.get(), POLLIN);
      const std::int64_t count = drop_received(connection.get(), 1 << 20);
      if (count == 0 || count == -1) {
        ended = count == 0 ? "complete" : "connection broken";
        break;
      }
      if (count > 0) {
        last_s = seconds(now_ns() - start);
        if (first_s.is_null()) first_s = last_s;
        received += static_cast<std::uint64_t>(count);
      }
    }
  } catch (const Stopped&) {
    ended = "stopped";
  }
  result.update({{"received_bytes", received},
                 {"accepted_s", accepted_s},
                 {"first_byte_s", first_s},
                 {"last_byte_s", last_s},
                 {"ended", ended}});
  return result;
}

}  // namespace nagi::applications
