// SPDX-License-Identifier: Apache-2.0
//
// The kernel reports the acknowledgement of the last byte as a time stamp in the error queue of the
// socket: SOF_TIMESTAMPING_TX_ACK, Documentation/networking/timestamping.rst.
#include "sized_transfer.hpp"

#include <linux/errqueue.h>
#include <linux/net_tstamp.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <ctime>  // required by errqueue.h

namespace nagi::applications {
namespace {

/// Make the kernel identify acknowledged bytes by their position in the stream. The kernel reports
/// only bytes whose send call requests a report.
void number_bytes(int socket) {
  const int flags =
      SOF_TIMESTAMPING_SOFTWARE | SOF_TIMESTAMPING_OPT_ID | SOF_TIMESTAMPING_OPT_TSONLY;
  if (setsockopt(socket, SOL_SOCKET, SO_TIMESTAMPING, &flags, sizeof flags) != 0) {
    io::throw_errno("SO_TIMESTAMPING");
  }
}

/// Return whether the error queue reports byte `number` (modulo 2^32) as acknowledged.
bool is_acknowledged(int socket, std::uint32_t number) {
  while (true) {
    alignas(cmsghdr) std::array<char, 512> control{};
    msghdr message{};
    message.msg_control = control.data();
    message.msg_controllen = control.size();
    if (recvmsg(socket, &message, MSG_ERRQUEUE) < 0) return false;
    for (cmsghdr* part = CMSG_FIRSTHDR(&message); part != nullptr;
         part = CMSG_NXTHDR(&message, part)) {
      const bool is_error = (part->cmsg_level == SOL_IP && part->cmsg_type == IP_RECVERR) ||
                            (part->cmsg_level == SOL_IPV6 && part->cmsg_type == IPV6_RECVERR);
      if (!is_error) continue;
      sock_extended_err error{};
      std::memcpy(&error, CMSG_DATA(part), sizeof error);
      if (error.ee_origin == SO_EE_ORIGIN_TIMESTAMPING && error.ee_info == SCM_TSTAMP_ACK &&
          error.ee_data == number) {
        return true;
      }
    }
  }
}

}  // namespace

SizedTransfer::SizedTransfer(const Ends& ends, std::uint64_t size_bytes)
    : start_ns_(now_ns()), size_(size_bytes), socket_(begin_connecting(ends)) {}

pollfd SizedTransfer::watched() const {
  const bool is_sent = connect_ns_ && sent_ == size_;
  return {socket_.get(), static_cast<short>(is_sent ? 0 : POLLOUT), 0};
}

void SizedTransfer::handle(short events) {
  if (!connect_ns_) {
    if (!is_connected(socket_.get())) return finish("given up");
    connect_ns_ = now_ns() - start_ns_;
    number_bytes(socket_.get());
  }
  const auto last_byte = static_cast<std::uint32_t>(size_ - 1);
  if ((events & POLLERR) != 0 && is_acknowledged(socket_.get(), last_byte)) {
    completion_ns_ = now_ns() - start_ns_;
    return finish("complete");
  }
  if ((events & POLLHUP) != 0) return finish("connection broken");
  if (sent_ == size_ || (events & POLLOUT) == 0) return;
  // Only the report about the last byte is needed, so only sends that may include it request one.
  const std::uint64_t remaining = size_ - sent_;
  const std::int64_t accepted = send_filler(socket_.get(), remaining, remaining <= max_filler);
  if (accepted < 0) return finish("connection broken");
  sent_ += static_cast<std::uint64_t>(accepted);
  if (sent_ == size_) shutdown(socket_.get(), SHUT_WR);
}

void SizedTransfer::give_up(const char* reason) {
  set_break_at_close(socket_.get(), true);
  finish(reason);
}

void SizedTransfer::finish(const char* reason) {
  ended_ = reason;
  socket_ = io::Descriptor();
}

}  // namespace nagi::applications
