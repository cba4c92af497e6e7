// SPDX-License-Identifier: Apache-2.0
#include "daemon/radio_socket.hpp"

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <system_error>

#include "io/input_error.hpp"

namespace nagi::daemon {

namespace {

struct Head {
  std::uint32_t number = 0;
  std::uint32_t mode = 0;
  std::int64_t begin_ns = 0;
  std::int64_t end_ns = 0;
};
static_assert(sizeof(Head) == 24);

struct AnswerHead {
  std::uint32_t number = 0;
  std::uint8_t outcome = 0;
  std::uint8_t reserved = 0;
  std::int16_t snr = 0;
};
static_assert(sizeof(AnswerHead) == 8);

constexpr std::size_t longest_answer = 1 << 16;
constexpr int buffered_bytes = 1 << 22;  // more than any radio has in flight

bool is_radio_outcome(Outcome outcome) {
  return outcome <= Outcome::payload_error || outcome == Outcome::receiver_busy ||
         outcome == Outcome::not_sent || outcome == Outcome::not_received;
}

}  // namespace

RadioSocket::RadioSocket(int descriptor, std::string name)
    : socket_(descriptor), name_(std::move(name)), buffer_(longest_answer) {
  int type = 0;
  socklen_t length = sizeof type;
  if (getsockopt(descriptor, SOL_SOCKET, SO_TYPE, &type, &length) != 0 || type != SOCK_SEQPACKET) {
    throw InputError(
        name_ + ": descriptor " + std::to_string(descriptor) +
        " is no socket to a radio; start nagi-sdr, which makes this socket and starts nagi-link");
  }
  fcntl(descriptor, F_SETFD, FD_CLOEXEC);
  setsockopt(descriptor, SOL_SOCKET, SO_SNDBUF, &buffered_bytes, sizeof buffered_bytes);
}

void RadioSocket::send(const model::Transmission& transmission, std::span<const std::byte> packet) {
  Head head{static_cast<std::uint32_t>(transmission.number), transmission.mode,
            transmission.start.time_since_epoch().count(),
            transmission.end.time_since_epoch().count()};
  std::array<iovec, 2> parts = {iovec{&head, sizeof head},
                                iovec{const_cast<std::byte*>(packet.data()), packet.size()}};
  msghdr message{};
  message.msg_iov = parts.data();
  message.msg_iovlen = parts.size();
  if (sendmsg(descriptor(), &message, MSG_DONTWAIT | MSG_NOSIGNAL) >= 0) return;
  const char* reason = errno == EAGAIN ? ": the radio's process does not read its packets"
                                       : ": the radio's process has ended";
  throw std::system_error(errno, std::generic_category(), name_ + reason);
}

std::optional<RadioSocket::Answer> RadioSocket::receive() {
  const ssize_t length = recv(descriptor(), buffer_.data(), buffer_.size(), MSG_DONTWAIT);
  if (length < 0 && (errno == EAGAIN || errno == EINTR)) return std::nullopt;
  // The kernel resets the connection if the radio closes it with unread messages.
  if (length == 0 || (length < 0 && errno == ECONNRESET)) {
    throw std::system_error(EPIPE, std::generic_category(),
                            name_ + ": the radio's process has ended");
  }
  if (length < 0) throw std::system_error(errno, std::generic_category(), name_);
  AnswerHead head;
  const auto bytes = static_cast<std::size_t>(length);
  if (bytes >= sizeof head) std::memcpy(&head, buffer_.data(), sizeof head);
  if (bytes < sizeof head || !is_radio_outcome(Outcome{head.outcome})) {
    throw std::system_error(EPROTO, std::generic_category(),
                            name_ + ": the radio's process sent no valid answer");
  }
  return Answer{head.number, Outcome{head.outcome}, head.snr,
                std::span(buffer_).subspan(sizeof head, bytes - sizeof head)};
}

}  // namespace nagi::daemon
