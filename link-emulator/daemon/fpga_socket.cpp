// SPDX-License-Identifier: Apache-2.0
#include "daemon/fpga_socket.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>

#include <cerrno>
#include <system_error>
#include <utility>

#include "io/input_error.hpp"

namespace nagi::daemon::fpga {

namespace {

constexpr int timeout_ms = 60'000;  // an answer usually takes milliseconds

[[noreturn]] void refuse_message() {
  throw std::system_error(EPROTO, std::generic_category(),
                          "invalid message between nagi-link and nagi-fpga");
}

}  // namespace

std::span<const std::byte> MessageReader::bytes(std::size_t count) {
  if (count > left_.size()) refuse_message();
  const std::span<const std::byte> first = left_.first(count);
  left_ = left_.subspan(count);
  return first;
}

void MessageReader::require_end() const {
  if (!left_.empty()) refuse_message();
}

MessageWriter::MessageWriter(Kind kind) { part(Header{kind, 0}); }

MessageWriter& MessageWriter::bytes(std::span<const std::byte> bytes) {
  bytes_.insert(bytes_.end(), bytes.begin(), bytes.end());
  return *this;
}

std::span<const std::byte> MessageWriter::message() {
  const auto bytes = static_cast<std::uint32_t>(bytes_.size() - sizeof(Header));
  std::memcpy(bytes_.data() + offsetof(Header, bytes), &bytes, sizeof bytes);
  return bytes_;
}

Socket::Socket(int descriptor, std::string name) : socket_(descriptor), name_(std::move(name)) {
  int type = 0;
  socklen_t length = sizeof type;
  if (getsockopt(descriptor, SOL_SOCKET, SO_TYPE, &type, &length) != 0 || type != SOCK_STREAM) {
    throw InputError(name_ + ": descriptor " + std::to_string(descriptor) +
                     " is no socket between nagi-link and an FPGA's core; `nagi run` makes one");
  }
  fcntl(descriptor, F_SETFD, FD_CLOEXEC);
}

void Socket::send(MessageWriter& message) {
  std::span<const std::byte> left = message.message();
  while (!left.empty()) {
    const ssize_t sent = ::send(descriptor(), left.data(), left.size(), MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR) continue;
    if (sent < 0) throw std::system_error(errno, std::generic_category(), name_);
    left = left.subspan(static_cast<std::size_t>(sent));
  }
}

bool Socket::read(std::span<std::byte> bytes, bool has_time_limit) {
  std::size_t read = 0;
  while (read < bytes.size()) {
    if (has_time_limit) {
      pollfd readable{descriptor(), POLLIN, 0};
      if (poll(&readable, 1, timeout_ms) == 0) {
        throw std::system_error(ETIMEDOUT, std::generic_category(), name_ + ": no answer");
      }
    }
    const ssize_t length = recv(descriptor(), &bytes[read], bytes.size() - read, 0);
    if (length < 0 && errno == EINTR) continue;
    // The kernel resets the connection if the other end closes it with unread data.
    const bool has_ended = length == 0 || (length < 0 && errno == ECONNRESET);
    if (has_ended && read == 0) return false;
    if (has_ended) refuse_message();
    if (length < 0) throw std::system_error(errno, std::generic_category(), name_);
    read += static_cast<std::size_t>(length);
  }
  return true;
}

std::optional<std::span<const std::byte>> Socket::receive(Kind& kind, bool has_time_limit) {
  Header header;
  if (!read(std::as_writable_bytes(std::span(&header, 1)), has_time_limit)) return std::nullopt;
  if (header.bytes > max_message_bytes) refuse_message();
  kind = header.kind;
  received_.resize(header.bytes);
  if (!read(received_, has_time_limit)) refuse_message();
  return received_;
}

}  // namespace nagi::daemon::fpga
