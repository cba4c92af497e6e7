// SPDX-License-Identifier: Apache-2.0
#include "datagrams/datagram.hpp"

#include <endian.h>
#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <ctime>
#include <utility>

#include "io/input_error.hpp"

namespace nagi::applications {

namespace {

/// Return the length of the headers per datagram of a socket, in bytes: UDP, and IPv4 or IPv6
/// without options.
std::uint64_t headers_of(int socket) {
  sockaddr_storage address{};
  socklen_t length = sizeof address;
  if (getsockname(socket, reinterpret_cast<sockaddr*>(&address), &length) != 0) {
    io::throw_errno("getsockname");
  }
  return (address.ss_family == AF_INET6 ? 40 : 20) + 8;
}

}  // namespace

Datagrams::Datagrams(io::Descriptor socket, std::uint64_t payload_bytes)
    : socket_(std::move(socket)), headers_(headers_of(socket_.get())) {
  if (payload_bytes < min_datagram || payload_bytes > max_datagram) {
    throw InputError("a payload of " + std::to_string(payload_bytes) + " bytes is not possible; " +
                     "give " + std::to_string(min_datagram) + " to " +
                     std::to_string(max_datagram));
  }
  content_.assign(payload_bytes, 'n');
}

void Datagrams::send(Kind kind, std::uint64_t number, Waiter& waiter) {
  const std::uint32_t mark = htobe32(static_cast<std::uint32_t>(kind));
  number = htobe64(number);
  std::memcpy(content_.data(), &mark, sizeof mark);
  std::memcpy(content_.data() + 4, &number, sizeof number);
  while (true) {
    const std::uint64_t stamp = htobe64(static_cast<std::uint64_t>(realtime_ns()));
    std::memcpy(content_.data() + 12, &stamp, sizeof stamp);
    if (::send(socket_.get(), content_.data(), content_.size(), 0) >= 0) break;
    if (errno == EMSGSIZE) {
      throw InputError("a datagram of " + std::to_string(content_.size()) +
                       " bytes does not fit the path's MTU; lower --payload");
    }
    if (errno != EAGAIN && errno != ENOBUFS && errno != EINTR) io::throw_errno("send");
    waiter.wait(socket_.get(), POLLOUT, now_ns() + 1'000'000);
  }
}

std::optional<ReceivedDatagram> receive_datagram(int socket) {
  std::array<unsigned char, min_datagram> head{};
  while (true) {
    alignas(cmsghdr) std::array<char, 128> control{};
    iovec vector{head.data(), head.size()};
    ReceivedDatagram datagram{};
    msghdr message{};
    message.msg_name = &datagram.sender;
    message.msg_namelen = sizeof datagram.sender;
    message.msg_iov = &vector;
    message.msg_iovlen = 1;
    message.msg_control = control.data();
    message.msg_controllen = control.size();
    const ssize_t size = recvmsg(socket, &message, MSG_TRUNC);
    if (size < 0) {
      if (errno == EAGAIN || errno == EINTR) return std::nullopt;
      io::throw_errno("recvmsg");
    }
    std::uint32_t mark = 0;
    std::memcpy(&mark, head.data(), sizeof mark);
    datagram.kind = Kind{be32toh(mark)};
    const bool is_ours = datagram.kind == Kind::data || datagram.kind == Kind::probe ||
                         datagram.kind == Kind::question;
    if (static_cast<std::size_t>(size) < head.size() || !is_ours) continue;
    std::uint64_t number = 0;
    std::uint64_t stamp = 0;
    std::memcpy(&number, head.data() + 4, sizeof number);
    std::memcpy(&stamp, head.data() + 12, sizeof stamp);
    datagram.number = be64toh(number);
    datagram.sent_ns = static_cast<std::int64_t>(be64toh(stamp));
    datagram.bytes = static_cast<std::uint64_t>(size);
    datagram.sender_length = message.msg_namelen;
    for (cmsghdr* part = CMSG_FIRSTHDR(&message); part != nullptr;
         part = CMSG_NXTHDR(&message, part)) {
      if (part->cmsg_level != SOL_SOCKET || part->cmsg_type != SCM_TIMESTAMPNS) continue;
      timespec time{};
      std::memcpy(&time, CMSG_DATA(part), sizeof time);
      datagram.received_ns = time.tv_sec * 1'000'000'000 + time.tv_nsec;
    }
    if (datagram.received_ns == 0) datagram.received_ns = realtime_ns();
    return datagram;
  }
}

}  // namespace nagi::applications
