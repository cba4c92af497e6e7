// SPDX-License-Identifier: Apache-2.0
#include "model/link.hpp"

#include <algorithm>
#include <cassert>

namespace nagi::model {

Direction::Direction(const DirectionConfig& config, std::uint64_t seed, std::uint32_t link, Way way)
    : seed_(seed), link_(link), way_(way), config_(config), server_(config.rate) {
  make_models(Instant{});
}

void Direction::make_models(Instant from) {
  const auto stream = [this](Purpose purpose) { return Stream{seed_, link_, way_, purpose}; };
  const auto* constant_rate = std::get_if<Bitrate>(&config_.rate);
  loss_ =
      make_loss(config_.loss, constant_rate ? std::optional<Bitrate>(*constant_rate) : std::nullopt,
                {stream(Purpose::loss), stream(Purpose::loss_state)}, from);
  delay_.emplace(config_.delay, config_.jitter, stream(Purpose::jitter));
  if (!config_.mark) {
    average_.reset();
  } else if (average_) {
    average_->change(*config_.mark);
  } else {
    average_.emplace(*config_.mark);
  }
}

void Direction::change(const DirectionConfig& config, Instant at,
                       std::vector<Departure>& departures) {
  assert(at >= now_);
  advance(at, departures);
  config_ = config;
  make_models(at);
  const Instant end = server_.change(config_.rate, at);
  if (in_service_) in_service_->end = end;
  advance(at, departures);  // without a rate, all that waits goes at once
}

void Direction::offer(Packet packet, Instant at, std::vector<Departure>& departures) {
  assert(at >= now_);
  advance(at, departures);
  ++counters_.offered;
  counters_.offered_bytes += packet.size;

  if (config_.loss_at == LossPlace::ingress &&
      lost(packet, at, at + server_.air_time(framed(packet), at))) {
    drop(packet, Fate::channel_loss, at, departures);
    return;
  }
  mark(packet, at);
  if (in_service_ && !queue_has_room(packet)) {
    drop(packet, Fate::queue_overflow, at, departures);
    return;
  }
  counters_.marked += packet.marked ? 1 : 0;
  if (in_service_) {
    waiting_.push_back(packet);
    waiting_bytes_ += packet.size;
    counters_.most_waiting = std::max<std::uint64_t>(counters_.most_waiting, waiting_.size());
  } else {
    start_transmission(packet, at, false);
    advance(at, departures);  // a link without a rate is through with it at once
  }
}

void Direction::advance(Instant to, std::vector<Departure>& departures) {
  assert(to >= now_);
  if (is_watched() || !undecided_.empty() || !repetitions_.empty()) {
    advance_watched(to, departures);
    return;
  }
  while (in_service_ && in_service_->end <= to) end_transmission(departures);
  while (!on_the_way_.empty() && on_the_way_.front().at <= to) deliver(departures);
  now_ = to;
}

void Direction::advance_watched(Instant to, std::vector<Departure>& departures) {
  const auto never = Instant::max();
  for (;;) {
    const Instant end = in_service_ ? in_service_->end : never;
    const Instant decided = undecided_.empty() ? never : decision(undecided_.front());
    const Instant again = repetitions_.empty() ? never : repetitions_.front().at;
    const Instant next = std::min({end, decided, again});
    if (next > to || next == never) break;
    if (next == end) {
      end_transmission(departures);
    } else if (next == again && again < decided) {
      repeat(departures);
    } else if (!outcomes_.empty()) {
      Sending sent = undecided_.front();
      sent.lost = outcomes_.front();
      undecided_.pop_front();
      outcomes_.pop_front();
      conclude(sent, departures);
    } else {
      to = next;
      break;
    }
  }
  while (!on_the_way_.empty() && on_the_way_.front().at <= to) deliver(departures);
  now_ = std::max(now_, to);
}

void Direction::repeat(std::vector<Departure>& departures) {
  const Repetition due = repetitions_.front();
  repetitions_.pop_front();
  if (in_service_) {
    again_.push_back(due.sending);
    return;
  }
  start_transmission(due.sending, due.at, false);
  while (in_service_ && in_service_->end <= due.at) end_transmission(departures);
}

/// When the outcome is needed at the latest.
Instant Direction::decision(const Sending& sent) const {
  const Duration least = delay_->least();
  return sent.end + (config_.arq ? std::min(least, config_.arq->feedback) : least);
}

void Direction::take_under_way(std::vector<Departure>& departures) {
  if (!on_the_way_.empty()) taken_until_ = on_the_way_.back().at;
  while (!on_the_way_.empty()) deliver(departures);
}

void Direction::deliver(std::vector<Departure>& departures) {
  const OnTheWay& arriving = on_the_way_.front();
  ++counters_.delivered;
  counters_.delivered_bytes += arriving.packet.size;
  departures.push_back({arriving.packet, Fate::delivered, arriving.at});
  on_the_way_.pop_front();
}

std::optional<Instant> Direction::next_event() const {
  std::optional<Instant> next;
  if (in_service_) next = in_service_->end;
  const auto sooner = [&next](Instant at) {
    if (!next || at < *next) next = at;
  };
  if (!undecided_.empty()) sooner(decision(undecided_.front()));
  if (!repetitions_.empty()) sooner(repetitions_.front().at);
  if (!on_the_way_.empty()) sooner(on_the_way_.front().at);
  return next;
}

std::optional<Instant> Direction::next_delivery() const {
  if (is_watched()) return next_event();  // before all that it may lead to
  std::optional<Instant> next;
  if (in_service_) {
    const Duration least = delay_->least();
    // A transmission that an outage stops for good has no end.
    next = in_service_->end > Instant::max() - least ? Instant::max() : in_service_->end + least;
  }
  if (!on_the_way_.empty() && (!next || on_the_way_.front().at < *next)) {
    next = on_the_way_.front().at;
  }
  return next;
}

std::size_t Direction::held() const {
  const auto given_up =
      std::ranges::count_if(landed_, [](const auto& landed) { return landed.second.given_up; });
  return waiting_.size() + (in_service_ ? 1U : 0U) + on_the_way_.size() + undecided_.size() +
         repetitions_.size() + again_.size() + landed_.size() - static_cast<std::size_t>(given_up);
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

void Direction::mark(Packet& packet, Instant at) {
  if (!average_) return;
  if (!in_service_) {
    const Duration air = std::max(server_.air_time(framed(packet), at), Duration{1});
    average_->idle(static_cast<std::uint64_t>((at - idle_since_) / air));
  }
  const bool over = average_->is_over({waiting_.size()}, waiting_bytes_);
  packet.marked = over && packet.ecn_capable;
}

void Direction::start_transmission(Packet packet, Instant at, bool at_once) {
  start_transmission(Sending{.packet = packet, .order = orders_++}, at, at_once);
}

void Direction::start_transmission(Sending sending, Instant at, bool at_once) {
  sending.number = numbers_++;
  sending.start = at;
  sending.end = server_.begin(framed(sending.packet), at, at_once);
  in_service_ = sending;
  if (is_radio()) begun_.push_back(sending);
}

void Direction::start_next(Instant at) {
  if (!again_.empty()) {
    const Sending next = again_.front();
    again_.pop_front();
    start_transmission(next, at, true);
  } else if (!waiting_.empty()) {
    const Packet next = waiting_.front();
    waiting_.pop_front();
    waiting_bytes_ -= next.size;
    start_transmission(next, at, true);
  }
}

void Direction::end_transmission(std::vector<Departure>& departures) {
  Sending sent = *in_service_;
  in_service_.reset();
  idle_since_ = sent.end;
  ++counters_.transmitted;
  counters_.transmitted_bytes += framed(sent.packet);
  counters_.transmitting += sent.end - sent.start;

  if (is_radio()) {
    undecided_.push_back(sent);
  } else {
    sent.lost = config_.loss_at == LossPlace::egress && lost(sent.packet, sent.start, sent.end);
    conclude(sent, departures);
  }
  start_next(sent.end);
}

/// It is decided whether a transmission was lost.
void Direction::conclude(Sending sent, std::vector<Departure>& departures) {
  if (is_watched()) decided_.push_back(sent);
  if (!sent.lost) {
    land(sent, false);
  } else if (config_.arq && sent.attempt <= config_.arq->retries) {
    ++sent.attempt;
    repetitions_.push_back({sent, sent.end + config_.arq->feedback});
  } else {
    drop(sent.packet, Fate::channel_loss, sent.end, departures);
    land(sent, true);
  }
}

/// A packet is at the far end, or not expected there any more.
void Direction::land(const Sending& sent, bool given_up) {
  if (!config_.keep_order || (!config_.arq && landed_.empty())) {
    next_landing_ = sent.order + 1;
    if (!given_up) send_on_its_way(sent);
    return;
  }
  landed_[sent.order] = {sent.packet, sent.end + delay_->of(sent.number, sent.end), given_up};
  for (auto first = landed_.begin(); first != landed_.end() && first->first == next_landing_;
       first = landed_.erase(first)) {
    const Landed& landed = first->second;
    landed_until_ = std::max(landed_until_, landed.at);
    if (!landed.given_up) send_on_its_way({landed.packet, landed_until_});
    ++next_landing_;
  }
}

void Direction::send_on_its_way(const Sending& sent) {
  OnTheWay going{sent.packet, sent.end + delay_->of(sent.number, sent.end)};
  if (config_.keep_order) going.at = std::max(going.at, taken_until_);
  send_on_its_way(going);
}

void Direction::send_on_its_way(OnTheWay going) {
  if (on_the_way_.empty() || on_the_way_.back().at <= going.at) {
    on_the_way_.push_back(going);
  } else if (config_.keep_order) {
    on_the_way_.push_back({going.packet, on_the_way_.back().at});
  } else {
    on_the_way_.insert(std::ranges::upper_bound(on_the_way_, going.at, {}, &OnTheWay::at), going);
  }
}

void Direction::drop(Packet packet, Fate fate, Instant at, std::vector<Departure>& departures) {
  ++(fate == Fate::queue_overflow ? counters_.queue_overflows : counters_.channel_losses);
  departures.push_back({packet, fate, at});
}

}  // namespace nagi::model
