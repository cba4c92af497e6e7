// SPDX-License-Identifier: Apache-2.0
#include "model/link.hpp"

#include <algorithm>
#include <cassert>

namespace nagi::model {

Direction::Direction(const DirectionConfig& config, std::uint64_t seed, std::uint32_t link, Way way)
    : config_(config),
      loss_(make_loss(config.loss, config.rate, Stream{seed, link, way, Purpose::loss})) {}

void Direction::offer(Packet packet, Instant at, std::vector<Departure>& departures) {
  assert(at >= now_);
  advance(at, departures);
  ++counters_.offered;
  counters_.offered_bytes += packet.size;

  if (config_.loss_at == LossPlace::ingress) {
    std::uint64_t nothing_carried = 0;
    if (lost(packet, at, at + air_time(packet, nothing_carried))) {
      drop(packet, Fate::channel_loss, at, departures);
      return;
    }
  }
  if (!in_service_) {
    carried_ = 0;
    start_transmission(packet, at);
    advance(at, departures);  // a link without a rate is through with it at once
  } else if (queue_has_room(packet)) {
    waiting_.push_back(packet);
    waiting_bytes_ += packet.size;
    counters_.most_waiting = std::max<std::uint64_t>(counters_.most_waiting, waiting_.size());
  } else {
    drop(packet, Fate::queue_overflow, at, departures);
  }
}

void Direction::advance(Instant to, std::vector<Departure>& departures) {
  assert(to >= now_);
  while (in_service_ && in_service_->end <= to) end_transmission(departures);
  while (!on_the_way_.empty() && on_the_way_.front().at <= to) {
    const OnTheWay& arriving = on_the_way_.front();
    ++counters_.delivered;
    counters_.delivered_bytes += arriving.packet.size;
    departures.push_back({arriving.packet, Fate::delivered, arriving.at});
    on_the_way_.pop_front();
  }
  now_ = to;
}

std::optional<Instant> Direction::next_event() const {
  std::optional<Instant> next;
  if (in_service_) next = in_service_->end;
  if (!on_the_way_.empty() && (!next || on_the_way_.front().at < *next)) {
    next = on_the_way_.front().at;
  }
  return next;
}

std::size_t Direction::held() const {
  return waiting_.size() + (in_service_ ? 1U : 0U) + on_the_way_.size();
}

bool Direction::queue_has_room(Packet packet) const {
  if (const auto* packets = std::get_if<Packets>(&config_.queue)) {
    return waiting_.size() < packets->count;
  }
  if (const auto* bytes = std::get_if<Bytes>(&config_.queue)) {
    return waiting_bytes_ + packet.size <= *bytes;
  }
  return true;
}

bool Direction::lost(Packet packet, Instant start, Instant end) {
  return loss_ && loss_->loses({loss_index_++, packet.size, start, end});
}

Duration Direction::air_time(Packet packet, std::uint64_t& carried) const {
  if (!config_.rate) return Duration{};
  const std::uint64_t rate = config_.rate->bits_per_second;
  const std::uint64_t bit_nanoseconds =
      (packet.size + config_.overhead).count * 8 * 1'000'000'000 + carried;
  carried = bit_nanoseconds % rate;
  return Duration{static_cast<std::int64_t>(bit_nanoseconds / rate)};
}

void Direction::start_transmission(Packet packet, Instant at) {
  in_service_ = InService{packet, at, at + air_time(packet, carried_)};
}

void Direction::end_transmission(std::vector<Departure>& departures) {
  const InService sent = *in_service_;
  in_service_.reset();
  ++counters_.transmitted;
  counters_.transmitted_bytes += sent.packet.size + config_.overhead;
  counters_.transmitting += sent.end - sent.start;

  if (config_.loss_at == LossPlace::egress && lost(sent.packet, sent.start, sent.end)) {
    drop(sent.packet, Fate::channel_loss, sent.end, departures);
  } else {
    on_the_way_.push_back({sent.packet, sent.end + config_.delay});
  }
  if (!waiting_.empty()) {
    const Packet next = waiting_.front();
    waiting_.pop_front();
    waiting_bytes_ -= next.size;
    start_transmission(next, sent.end);
  }
}

void Direction::drop(Packet packet, Fate fate, Instant at, std::vector<Departure>& departures) {
  ++(fate == Fate::queue_overflow ? counters_.queue_overflows : counters_.channel_losses);
  departures.push_back({packet, fate, at});
}

}  // namespace nagi::model
