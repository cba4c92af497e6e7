// SPDX-License-Identifier: Apache-2.0
#include "ends.hpp"

#include <linux/net_tstamp.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <ctime>

#include "io/input_error.hpp"
#include "io/stop_signals.hpp"

namespace nagi::applications {
namespace {

constexpr std::int64_t second = 1'000'000'000;

std::int64_t read_clock(clockid_t clock) {
  timespec time{};
  clock_gettime(clock, &time);
  return time.tv_sec * second + time.tv_nsec;
}

struct Resolved {
  sockaddr_storage address{};
  socklen_t length = 0;
};

Resolved resolve(const std::string& address, std::uint16_t port) {
  addrinfo hints{};
  hints.ai_flags = AI_NUMERICHOST | AI_NUMERICSERV;
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* results = nullptr;
  if (getaddrinfo(address.c_str(), std::to_string(port).c_str(), &hints, &results) != 0) {
    throw InputError("'" + address + "' is no IP address");
  }
  Resolved resolved;
  resolved.length = results->ai_addrlen;
  std::copy_n(reinterpret_cast<const char*>(results->ai_addr), results->ai_addrlen,
              reinterpret_cast<char*>(&resolved.address));
  freeaddrinfo(results);
  return resolved;
}

const sockaddr* generic(const Resolved& resolved) {
  return reinterpret_cast<const sockaddr*>(&resolved.address);
}

io::Descriptor open_socket(const Resolved& resolved, int kind) {
  io::Descriptor opened(socket(resolved.address.ss_family, kind | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (opened.get() < 0) io::throw_errno("socket");
  return opened;
}

void set_option(int descriptor, int level, int option, int value, const char* option_name) {
  if (setsockopt(descriptor, level, option, &value, sizeof value) != 0)
    io::throw_errno(option_name);
}

void set_congestion_control(int descriptor, const std::string& name) {
  if (name.empty()) return;
  if (setsockopt(descriptor, IPPROTO_TCP, TCP_CONGESTION, name.data(),
                 static_cast<socklen_t>(name.size())) != 0) {
    throw InputError("congestion control '" + name +
                     "' cannot be used: " + std::generic_category().message(errno));
  }
}

void bind_to(int descriptor, const std::string& address, std::uint16_t port) {
  const Resolved local = resolve(address, port);
  if (bind(descriptor, generic(local), local.length) != 0) {
    io::throw_errno("cannot use " + address + " port " + std::to_string(port));
  }
}

bool is_broken(int error) {
  return error == ECONNRESET || error == EPIPE || error == ETIMEDOUT || error == EHOSTUNREACH ||
         error == ENETUNREACH;
}

}  // namespace

std::int64_t now_ns() { return read_clock(CLOCK_MONOTONIC); }
std::int64_t realtime_ns() { return read_clock(CLOCK_REALTIME); }

nlohmann::json seconds_or_null(const std::optional<std::int64_t>& ns) {
  return ns ? nlohmann::json(seconds(*ns)) : nlohmann::json();
}

std::int64_t after(std::int64_t start_ns, std::uint64_t span_ns) {
  return span_ns >= static_cast<std::uint64_t>(never - start_ns)
             ? never
             : start_ns + static_cast<std::int64_t>(span_ns);
}

Waiter::Waiter() : signals_(io::stop_signals()) {}

bool Waiter::wait(std::vector<pollfd>& watched, std::int64_t until_ns) {
  watched.push_back({signals_.get(), POLLIN, 0});
  timespec span{};
  if (until_ns != never) {
    const std::int64_t remaining_ns = std::max<std::int64_t>(0, until_ns - now_ns());
    span = {remaining_ns / second, remaining_ns % second};
  }
  const int events =
      ppoll(watched.data(), watched.size(), until_ns == never ? nullptr : &span, nullptr);
  const bool got_signal = watched.back().revents != 0;
  watched.pop_back();
  if (events < 0 && errno != EINTR) io::throw_errno("ppoll");
  if (got_signal) throw Stopped{};
  return events > 0;
}

short Waiter::wait(int descriptor, short events, std::int64_t until_ns) {
  std::vector<pollfd> watched = {{descriptor, events, 0}};
  return wait(watched, until_ns) ? watched[0].revents : short{0};
}

void Waiter::sleep(std::int64_t until_ns) {
  std::vector<pollfd> none;
  while (now_ns() < until_ns) wait(none, until_ns);
}

io::Descriptor listen_tcp(const Ends& ends) {
  io::Descriptor listener = open_socket(resolve(ends.address, ends.port), SOCK_STREAM);
  set_option(listener.get(), SOL_SOCKET, SO_REUSEADDR, 1, "SO_REUSEADDR");
  set_congestion_control(listener.get(), ends.congestion_control);
  bind_to(listener.get(), ends.address, ends.port);
  if (listen(listener.get(), SOMAXCONN) != 0) io::throw_errno("listen");
  return listener;
}

io::Descriptor accept_tcp(int listener, Waiter& waiter) {
  while (true) {
    waiter.wait(listener, POLLIN);
    io::Descriptor accepted(accept4(listener, nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
    if (accepted.get() >= 0) return accepted;
    if (errno != EAGAIN && errno != ECONNABORTED && errno != EINTR) io::throw_errno("accept");
  }
}

io::Descriptor begin_connecting(const Ends& ends) {
  const Resolved server = resolve(ends.address, ends.port);
  io::Descriptor client = open_socket(server, SOCK_STREAM);
  set_congestion_control(client.get(), ends.congestion_control);
  if (!ends.from.empty()) {
    set_option(client.get(), IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, 1, "IP_BIND_ADDRESS_NO_PORT");
    bind_to(client.get(), ends.from, 0);
  }
  if (connect(client.get(), generic(server), server.length) != 0 && errno != EINPROGRESS) {
    io::throw_errno("cannot connect to " + ends.address);
  }
  return client;
}

bool is_connected(int socket) {
  int error = 0;
  socklen_t length = sizeof error;
  getsockopt(socket, SOL_SOCKET, SO_ERROR, &error, &length);
  if (error == 0) return true;
  if (is_broken(error) && error != ECONNRESET) return false;
  errno = error;
  io::throw_errno("cannot connect");
}

Connecting finish_connecting(int socket, Waiter& waiter, std::int64_t until_ns) {
  if (waiter.wait(socket, POLLOUT, until_ns) == 0) return Connecting::timed_out;
  return is_connected(socket) ? Connecting::done : Connecting::given_up;
}

std::int64_t send_filler(int socket, std::uint64_t count, bool acknowledged) {
  static std::vector<char> filler = [] {
    std::vector<char> letters(max_filler);
    for (std::size_t i = 0; i < letters.size(); ++i) letters[i] = static_cast<char>('a' + i % 26);
    return letters;
  }();
  iovec vector{filler.data(), std::min(count, max_filler)};
  msghdr message{};
  message.msg_iov = &vector;
  message.msg_iovlen = 1;
  alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(std::uint32_t))> control{};
  if (acknowledged) {
    message.msg_control = control.data();
    message.msg_controllen = control.size();
    cmsghdr* part = CMSG_FIRSTHDR(&message);
    part->cmsg_level = SOL_SOCKET;
    part->cmsg_type = SO_TIMESTAMPING;
    part->cmsg_len = CMSG_LEN(sizeof(std::uint32_t));
    const std::uint32_t flags = SOF_TIMESTAMPING_TX_ACK;
    std::memcpy(CMSG_DATA(part), &flags, sizeof flags);
  }
  const ssize_t sent = sendmsg(socket, &message, MSG_NOSIGNAL);
  if (sent >= 0) return sent;
  if (errno == EAGAIN || errno == EINTR) return 0;
  if (is_broken(errno)) return -1;
  io::throw_errno("send");
}

std::int64_t drop_received(int socket, std::size_t max_bytes) {
  const ssize_t received = recv(socket, nullptr, max_bytes, MSG_TRUNC);
  if (received >= 0) return received;
  if (errno == EAGAIN || errno == EINTR) return -2;
  if (is_broken(errno)) return -1;
  io::throw_errno("recv");
}

std::uint64_t readable_bytes(int socket) {
  int count = 0;
  if (ioctl(socket, FIONREAD, &count) != 0) io::throw_errno("FIONREAD");
  return static_cast<std::uint64_t>(count);
}

namespace {

tcp_info info_of(int socket) {
  tcp_info info{};
  socklen_t length = sizeof info;
  if (getsockopt(socket, IPPROTO_TCP, TCP_INFO, &info, &length) != 0) io::throw_errno("TCP_INFO");
  return info;
}

}  // namespace

bool has_ended(int socket) { return info_of(socket).tcpi_state != TCP_ESTABLISHED; }
std::uint32_t smoothed_rtt_us(int socket) { return info_of(socket).tcpi_rtt; }

void set_break_at_close(int socket, bool breaks) {
  const linger at_once{breaks ? 1 : 0, 0};
  setsockopt(socket, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
}

io::Descriptor udp_server(const Ends& ends) {
  io::Descriptor server = open_socket(resolve(ends.address, ends.port), SOCK_DGRAM);
  bind_to(server.get(), ends.address, ends.port);
  set_option(server.get(), SOL_SOCKET, SO_TIMESTAMPNS, 1, "SO_TIMESTAMPNS");
  return server;
}

io::Descriptor udp_client(const Ends& ends) {
  const Resolved server = resolve(ends.address, ends.port);
  io::Descriptor client = open_socket(server, SOCK_DGRAM);
  if (!ends.from.empty()) bind_to(client.get(), ends.from, 0);
  if (connect(client.get(), generic(server), server.length) != 0) {
    io::throw_errno("cannot connect to " + ends.address);
  }
  return client;
}

nlohmann::json result_of(const char* application, const char* role) {
  return {{"schema_version", 1},
          {"application", application},
          {"role", role},
          {"began_realtime_s", seconds(realtime_ns())}};
}

}  // namespace nagi::applications
