// SPDX-License-Identifier: Apache-2.0
#include "io/timed_sender.hpp"

#include <linux/if_packet.h>
#include <linux/net_tstamp.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

#include "io/interface.hpp"

namespace nagi::io {

namespace {
constexpr std::size_t batch = 64;  // frames per system call
// Frames that wait for their times count as unsent. The buffer must hold the frames of a long path.
constexpr int send_buffer_bytes = 1 << 30;
}  // namespace

TimedSender::TimedSender(const std::string& interface, FramePool& pool)
    // With protocol 0, the socket receives no frames.
    : pool_(pool), socket_(::socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC, 0)) {
  if (socket_.get() < 0) throw_errno("cannot open a packet socket");
  sockaddr_ll address{};
  address.sll_family = AF_PACKET;
  address.sll_ifindex = static_cast<int>(index_of(interface));
  // bind() takes the addresses of all families as sockaddr.
  if (bind(socket_.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
    throw_errno("cannot send on " + interface);
  }
  const sock_txtime by_monotonic{CLOCK_MONOTONIC, 0};
  if (setsockopt(socket_.get(), SOL_SOCKET, SO_TXTIME, &by_monotonic, sizeof by_monotonic) != 0) {
    throw_errno("cannot send frames at given times on " + interface);
  }
  if (setsockopt(socket_.get(), SOL_SOCKET, SO_SNDBUFFORCE, &send_buffer_bytes,
                 sizeof send_buffer_bytes) != 0) {
    throw_errno("cannot enlarge the send buffer for " + interface);
  }
}

std::uint64_t TimedSender::send(std::span<const Timed> frames) {
  struct Control {
    alignas(cmsghdr) std::array<std::byte, CMSG_SPACE(sizeof(std::uint64_t))> bytes{};
  };
  std::array<mmsghdr, batch> messages{};
  std::array<iovec, batch> parts{};
  std::array<Control, batch> controls{};
  std::uint64_t failures = 0;
  while (!frames.empty()) {
    const std::size_t count = std::min(batch, frames.size());
    for (std::size_t i = 0; i < count; ++i) {
      const Frame& frame = frames[i].frame;
      parts[i] = {pool_.data(frame.slot) + frame.offset, frame.length};
      msghdr& message = messages[i].msg_hdr;
      message = {};
      message.msg_iov = &parts[i];
      message.msg_iovlen = 1;
      message.msg_control = controls[i].bytes.data();
      message.msg_controllen = controls[i].bytes.size();
      cmsghdr* control = CMSG_FIRSTHDR(&message);
      control->cmsg_level = SOL_SOCKET;
      control->cmsg_type = SCM_TXTIME;
      control->cmsg_len = CMSG_LEN(sizeof(std::uint64_t));
      const auto at = static_cast<std::uint64_t>(frames[i].monotonic_ns);
      std::memcpy(CMSG_DATA(control), &at, sizeof at);
    }
    for (std::size_t done = 0; done < count;) {
      const int sent =
          sendmmsg(socket_.get(), messages.data() + done, static_cast<unsigned>(count - done), 0);
      if (sent < 0 && errno == EINTR) continue;
      if (sent <= 0) {  // the first remaining frame cannot be sent
        ++failures;
        ++done;
      } else {
        done += static_cast<std::size_t>(sent);
      }
    }
    for (std::size_t i = 0; i < count; ++i) pool_.give_back(frames[i].frame.slot);
    frames = frames.subspan(count);
  }
  return failures;
}

}  // namespace nagi::io
