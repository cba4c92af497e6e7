/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <gnuradio/nagi/link.h>

#include <mutex>
#include <optional>
#include <unordered_map>
#include <vector>

#include "model/direction.hpp"
#include "pdu.h"
#include "timed_thread.h"

namespace gr {
namespace nagi {

class link_impl : public link {
 public:
  link_impl(const ::nagi::model::DirectionConfig& config, std::uint64_t seed, std::uint32_t id,
            ::nagi::model::DirectionName direction, bool carries_ethernet);

  bool start() override;
  bool stop() override;

  std::uint64_t offered() const override { return counters().offered; }
  std::uint64_t delivered() const override { return counters().delivered; }
  std::uint64_t queue_overflows() const override { return counters().queue_overflows; }
  std::uint64_t channel_losses() const override { return counters().channel_losses; }
  std::uint64_t marked() const override { return counters().marked; }
  std::uint64_t held() const override;

 private:
  using Departures = std::vector<::nagi::model::Departure>;

  ::nagi::model::DirectionCounters counters() const;
  ::nagi::Instant instant(std::int64_t monotonic_ns) const;
  std::int64_t monotonic_ns(::nagi::Instant instant) const;
  void offer(const pmt::pmt_t& message);
  std::optional<std::int64_t> advance(std::int64_t now_ns);
  void publish(const Departures& departures);

  const bool carries_ethernet_;
  const bool reads_headers_;
  std::int64_t epoch_ns_ = 0;  // CLOCK_MONOTONIC; 0 before the first start()

  // The mutex is locked while PDUs are published as well, so that PDUs leave in the model's order.
  mutable std::mutex mutex_;
  ::nagi::model::Direction model_;
  std::unordered_map<std::uint64_t, Pdu> held_;  // by the packet's tag
  std::uint64_t next_tag_ = 0;

  TimedThread thread_;  // declared last, because the thread uses the members above
};

}  // namespace nagi
}  // namespace gr
