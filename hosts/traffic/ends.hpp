// SPDX-License-Identifier: Apache-2.0
//
// Sockets, clocks and waiting for clients and servers. Instants are nanoseconds of CLOCK_MONOTONIC,
// unless a name states another clock.
#pragma once

#include <poll.h>

#include <cstddef>
#include <cstdint>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "io/descriptor.hpp"

namespace nagi::applications {

/// The address at which a server listens, or to which a client connects.
struct Ends {
  std::string address;
  std::uint16_t port = 0;
  std::string from;                ///< local address of a client; if empty, the kernel chooses it
  std::string congestion_control;  ///< name of TCP's congestion control; if empty, the default
};

inline constexpr std::int64_t never = std::numeric_limits<std::int64_t>::max();

std::int64_t now_ns();
std::int64_t realtime_ns();
inline double seconds(std::int64_t ns) { return static_cast<double>(ns) / 1e9; }

/// Convert nanoseconds to seconds, or to null if there is no value.
nlohmann::json seconds_or_null(const std::optional<std::int64_t>& ns);

/// Return the instant `span_ns` after `start_ns`; `never` if it is out of range.
std::int64_t after(std::int64_t start_ns, std::uint64_t span_ns);

/// Exception: a signal to stop has arrived (stop_signals.hpp).
struct Stopped {};

/// Waits for events and times. All functions throw Stopped.
class Waiter {
 public:
  Waiter();
  /// Wait until one of the descriptors `watched` has an event, or until `until_ns`. Return whether
  /// there is an event. The events are in the fields `revents`.
  bool wait(std::vector<pollfd>& watched, std::int64_t until_ns = never);
  /// Wait until a descriptor has one of `events`, or until `until_ns`. Return the events; 0 if
  /// there are none.
  short wait(int descriptor, short events, std::int64_t until_ns = never);
  void sleep(std::int64_t until_ns);

 private:
  io::Descriptor signals_;
};

/// Listen for TCP connections. The socket is non-blocking.
io::Descriptor listen_tcp(const Ends& ends);
/// Accept the next connection. Its socket is non-blocking.
io::Descriptor accept_tcp(int listener, Waiter& waiter);

/// Begin to open a TCP connection. Its socket is non-blocking.
io::Descriptor begin_connecting(const Ends& ends);

/// Return whether the connection of begin_connecting() is open; false if the kernel has given up.
/// Throws std::system_error if the server refuses the connection.
bool is_connected(int socket);

enum class Connecting { done, timed_out, given_up };
/// Wait for the outcome of begin_connecting() until `until_ns`, and return it. It is `given_up`
/// after the kernel has repeated a lost SYN as often as net.ipv4.tcp_syn_retries allows. Throws
/// std::system_error if the server refuses the connection.
Connecting finish_connecting(int socket, Waiter& waiter, std::int64_t until_ns);

inline constexpr std::uint64_t max_filler = 256 * 1024;
/// Send up to `count` bytes of filler, at most max_filler. Return the number of bytes that the
/// kernel accepted, 0 if it accepts none now, or -1 if the connection was reset or given up. If
/// `acknowledged` is true, the kernel reports when the bytes are acknowledged.
std::int64_t send_filler(int socket, std::uint64_t count, bool acknowledged = false);

/// Receive and discard up to `max_bytes` bytes. Return the number of bytes, 0 at the end of the
/// data, -1 if the connection is broken, or -2 if no data waits.
std::int64_t drop_received(int socket, std::size_t max_bytes);

/// Return the number of bytes that can be read.
std::uint64_t readable_bytes(int socket);

/// Return whether no more data will arrive, because the other end has closed the connection, or
/// because the connection is broken.
bool has_ended(int socket);

/// Return the smoothed RTT in microseconds.
std::uint32_t smoothed_rtt_us(int socket);

/// Set whether closing the socket resets the connection and discards unsent data. This also applies
/// if the kernel closes the socket because the program was killed.
void set_break_at_close(int socket, bool breaks);

/// Open a UDP socket for a server. The kernel adds its time to received datagrams.
io::Descriptor udp_server(const Ends& ends);
/// Open a UDP socket that is connected to the server.
io::Descriptor udp_client(const Ends& ends);

/// Return a result with the keys that all results have.
nlohmann::json result_of(const char* application, const char* role);

}  // namespace nagi::applications
