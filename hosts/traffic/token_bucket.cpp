// SPDX-License-Identifier: Apache-2.0
//
// A sender that a token bucket limits. It sends permitted data as soon as TCP can send.
// TCP_NOTSENT_LOWAT prevents data from waiting in the kernel until TCP can send it. A token is
// therefore consumed when its bytes leave. If TCP is slower than the bucket, the bucket becomes
// full, and further tokens are lost.
#include "arithmetic/token_bucket.hpp"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <algorithm>

#include "applications.hpp"
#include "io/input_error.hpp"
#include "sink.hpp"

namespace nagi::applications {

using nlohmann::json;

namespace {

void set_tcp(int socket, int option, int value) {
  if (setsockopt(socket, IPPROTO_TCP, option, &value, sizeof value) != 0) {
    io::throw_errno("setsockopt");
  }
}

/// Return the smoothed RTT in ns, but at least 1 ms (RTTs of the loopback interface are shorter).
std::int64_t rtt_of(int socket) {
  return std::max(1000U, smoothed_rtt_us(socket)) * std::int64_t{1000};
}

}  // namespace

json token_bucket_client(const Ends& ends, const TokenBucketSettings& settings) {
  Waiter waiter;
  json result = result_of("token_bucket", "client");
  const std::uint64_t depth = settings.depth_bytes / settings.token_bytes;
  if (depth == 0) throw InputError("--depth is smaller than --token; give a larger --depth");
  json samples = json::array();
  json connect_s;
  std::uint64_t consumed = 0;
  std::uint64_t lost = 0;
  double sum_of_rtts = 0;
  std::uint64_t tokens_in_samples = 0;
  const char* ended = "stopped";
  std::int64_t start = now_ns();
  const io::Descriptor socket = begin_connecting(ends);
  const double tokens_per_ns =
      static_cast<double>(settings.tokens) / static_cast<double>(settings.interval_ns);
  try {
    if (finish_connecting(socket.get(), waiter, never) != Connecting::done) {
      ended = "given up";
    } else {
      set_tcp(socket.get(), TCP_NODELAY, 1);
      set_tcp(socket.get(), TCP_NOTSENT_LOWAT, 1);
      connect_s = seconds(now_ns() - start);
      start = now_ns();
      TokenBucket bucket({depth, settings.tokens, settings.interval_ns}, start);
      std::uint64_t unsent = 0;  // bytes of the last token that the kernel has not accepted yet
      std::int64_t rtt_start = start;
      std::int64_t rtt = rtt_of(socket.get());
      std::uint64_t consumed_before = 0;  // tokens consumed before this RTT
      while (true) {
        const std::int64_t now = now_ns();
        bucket.advance(now);
        lost = bucket.lost();
        while (now >= rtt_start + rtt) {
          const std::uint64_t tokens = consumed - consumed_before;
          samples.push_back({seconds(rtt_start - start), seconds(rtt), tokens});
          sum_of_rtts += static_cast<double>(rtt);
          tokens_in_samples += tokens;
          consumed_before = consumed;
          rtt_start += rtt;
          rtt = rtt_of(socket.get());
        }
        bool can_send = true;
        while (can_send && (unsent > 0 || bucket.level() > 0)) {
          const std::uint64_t requested = unsent > 0 ? unsent : settings.token_bytes;
          const std::int64_t accepted = send_filler(socket.get(), requested);
          if (accepted < 0) {
            ended = "connection broken";
            break;
          }
          can_send = accepted > 0;
          if (can_send && unsent == 0) {
            bucket.take(1);
            ++consumed;
          }
          if (can_send) unsent = requested - static_cast<std::uint64_t>(accepted);
        }
        if (ended != std::string_view("stopped")) break;
        const auto awaited_events = static_cast<short>(can_send ? 0 : POLLOUT);
        const short events =
            waiter.wait(socket.get(), awaited_events, std::min(bucket.next_ns(), rtt_start + rtt));
        if ((events & (POLLERR | POLLHUP)) != 0) {
          ended = "connection broken";
          break;
        }
      }
    }
  } catch (const Stopped&) {
    set_break_at_close(socket.get(), true);
  }
  const auto count = static_cast<double>(samples.size());
  const bool has_samples = !samples.empty();
  result.update(
      {{"connect_s", connect_s},
       {"tokens_consumed", consumed},
       {"tokens_lost", lost},
       {"token_bytes", settings.token_bytes},
       {"rtts", samples},
       {"tokens_per_rtt",
        has_samples ? json(static_cast<double>(tokens_in_samples) / count) : json()},
       {"permitted_per_rtt", has_samples ? json(sum_of_rtts * tokens_per_ns / count) : json()},
       {"ended", ended}});
  return result;
}

json token_bucket_server(const Ends& ends) { return one_connection("token_bucket", ends); }

}  // namespace nagi::applications
