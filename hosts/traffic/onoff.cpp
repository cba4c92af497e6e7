// SPDX-License-Identifier: Apache-2.0
//
// A source that is alternately on and off, beginning with on. Its rate is constant while it is on.
#include <sys/socket.h>

#include <optional>

#include "applications.hpp"
#include "datagrams/datagram.hpp"
#include "datagrams/datagram_sink.hpp"
#include "sink.hpp"

namespace nagi::applications {

using nlohmann::json;

namespace {

/// The periods in which a source is on.
class Periods {
 public:
  explicit Periods(const OnOff& settings)
      : settings_(settings), draws_(settings.seed.seed, settings.seed.stream + "/periods") {}

  /// Return the time since the source's start, in ns, at which the source has been on for `on_ns`.
  double at(double on_ns) {
    while (on_before_ + period_ < on_ns || period_ == 0) {
      on_before_ += period_;
      begin_ += period_ + (count_ == 0 ? 0 : draw(settings_.off_ns));
      period_ = draw(settings_.on_ns);
      ++count_;
    }
    return begin_ + on_ns - on_before_;
  }

  [[nodiscard]] std::uint64_t count() const { return count_; }

 private:
  double draw(std::uint64_t mean_ns) {
    const auto mean = static_cast<double>(mean_ns);
    return settings_.distribution == "pareto" ? draws_.pareto(mean, settings_.shape)
                                              : draws_.exponential(mean);
  }

  const OnOff& settings_;
  Draws draws_;
  double begin_ = 0;      // start of the period, in ns
  double period_ = 0;     // length of the period, in ns
  double on_before_ = 0;  // time on before the period, in ns
  std::uint64_t count_ = 0;
};

}  // namespace

json onoff_client(const Ends& ends, const OnOff& settings) {
  Waiter waiter;
  const bool is_udp = settings.transport == "udp";
  json result = result_of("onoff", "client");
  Periods periods(settings);
  const std::uint64_t payload = settings.payload_bytes;
  std::uint64_t units = 0;  // units of data that the source has generated
  std::uint64_t sent = 0;   // bytes of payload
  const char* ended = "stopped";
  io::Descriptor socket;
  std::optional<Datagrams> sending;
  if (is_udp) {
    sending.emplace(udp_client(ends), payload);
  } else {
    socket = begin_connecting(ends);
  }
  // Time that the source takes to generate one unit of data while it is on.
  const std::uint64_t bytes = sending ? sending->packet_bytes() : payload;
  const double unit_ns = static_cast<double>(bytes) * 8e9 / static_cast<double>(settings.rate_bps);
  try {
    if (!is_udp && finish_connecting(socket.get(), waiter, never) != Connecting::done) {
      ended = "given up";
    } else {
      const std::int64_t start = now_ns();
      while (true) {
        const double since = periods.at(static_cast<double>(units) * unit_ns);
        const std::int64_t next = start + static_cast<std::int64_t>(since);
        if (is_udp) {
          waiter.sleep(next);
          sending->send(waiter);
          ++units;
          sent += payload;
          continue;
        }
        // Data that TCP does not accept now is not lost; it is sent later.
        if (now_ns() >= next) {
          ++units;
          continue;
        }
        const std::uint64_t waiting = units * payload - sent;
        const short requested = waiting > 0 ? POLLOUT : short{0};
        const short events = waiter.wait(socket.get(), requested, next);
        if ((events & (POLLERR | POLLHUP)) != 0) {
          ended = "connection broken";
          break;
        }
        if ((events & POLLOUT) == 0) continue;
        const std::int64_t accepted = send_filler(socket.get(), waiting);
        if (accepted > 0) sent += static_cast<std::uint64_t>(accepted);
      }
    }
  } catch (const Stopped&) {
    if (!is_udp) set_break_at_close(socket.get(), true);
  }
  result.update({{"periods", periods.count()},
                 {"offered_bytes", units * payload},
                 {"sent_bytes", sent},
                 {"packets_sent", is_udp ? json(units) : json()},
                 {"ended", ended}});
  return result;
}

json onoff_server(const Ends& ends, const OnOff& settings) {
  if (settings.transport == "udp") return datagrams("onoff", ends, "", 0);
  return one_connection("onoff", ends);
}

}  // namespace nagi::applications
