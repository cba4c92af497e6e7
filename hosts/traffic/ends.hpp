// SPDX-License-Identifier: Apache-2.0
//
// Sockets of the two ends of an application, clocks, and waiting. Instants are nanoseconds of
// CLOCK_MONOTONIC, but where a name says otherwise.
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

/// Where an end listens, or connects to.
struct Ends {
  std::string address;
  std::uint16_t port = 0;
  std::string from;                ///< local address of a client; empty: the kernel's choice
  std::string congestion_control;  ///< of TCP connections; empty: the kernel's default
};

inline constexpr std::int64_t never = std::numeric_limits<std::int64_t>::max();

std::int64_t now_ns();
std::int64_t realtime_ns();
inline double seconds(std::int64_t ns) { return static_cast<double>(ns) / 1e9; }

/// In seconds; null if there is none.
nlohmann::json seconds_or_null(const std::optional<std::int64_t>& ns);

/// The instant `span_ns` after `start_ns`, or never.
std::int64_t after(std::int64_t start_ns, std::uint64_t span_ns);

/// A signal to stop came (stop_signals.hpp).
struct Stopped {};

/// Waits. Both functions throw Stopped.
class Waiter {
 public:
  Waiter();
  /// Until one of `watched` has an event, which is then in its `revents`, or `until_ns`. Returns
  /// whether one has.
  bool wait(std::vector<pollfd>& watched, std::int64_t until_ns = never);
  /// The same of one descriptor; returns its events.
  short wait(int descriptor, short events, std::int64_t until_ns = never);
  void sleep(std::int64_t until_ns);

 private:
  io::Descriptor signals_;
};

io::Descriptor listen_tcp(const Ends& ends);
/// The next connection; not blocking.
io::Descriptor accept_tcp(int listener, Waiter& waiter);

/// A TCP connection that has been asked for; not blocking.
io::Descriptor begin_connecting(const Ends& ends);

/// Whether a connection came about that begin_connecting() asked for; false: the kernel has given
/// up. Throws std::system_error if the other end refuses.
bool is_connected(int socket);

enum class Connecting { done, timed_out, given_up };
/// The outcome of begin_connecting(): how often a lost SYN is repeated is the kernel's to say
/// (net.ipv4.tcp_syn_retries); `given_up` when it does no more. Throws std::system_error if the
/// other end refuses.
Connecting finish_connecting(int socket, Waiter& waiter, std::int64_t until_ns);

inline constexpr std::uint64_t max_filler = 256 * 1024;
/// Sends up to `count` bytes of filler, max_filler at most; returns how many the kernel took, 0 if
/// it takes none now, -1 if the connection is broken: reset, or given up by the kernel.
/// `acknowledged`: with the wish to be told when they are.
std::int64_t send_filler(int socket, std::uint64_t count, bool acknowledged = false);

/// Receives and drops up to `most` bytes; returns how many, 0 at the end of the data, -1 if the
/// connection is broken, -2 if there are none now.
std::int64_t drop_received(int socket, std::size_t most);

/// Bytes that can be read.
std::uint64_t readable_bytes(int socket);

/// Whether no more data will come: the other end has closed, or the connection is broken.
bool has_ended(int socket);

/// Smoothed RTT in us.
std::uint32_t smoothed_rtt_us(int socket);

/// Sets whether close() resets the connection and drops what was not sent, also where the kernel
/// closes it because the program was killed.
void set_break_at_close(int socket, bool breaks);

io::Descriptor udp_server(const Ends& ends);
io::Descriptor udp_client(const Ends& ends);

/// What every result begins with.
nlohmann::json result_of(const char* application, const char* role);

}  // namespace nagi::applications
