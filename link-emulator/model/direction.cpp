// SPDX-License-Identifier: Apache-2.0
#include "model/direction.hpp"

#include <algorithm>
#include <cassert>

namespace nagi::model {

Direction::Direction(const DirectionConfig& config, std::uint64_t seed, std::uint32_t link,
                     DirectionName name)
    : seed_(seed),
      link_(link),
      name_(name),
      config_(config),
      queue_(make_queue(config.queue, stream(Purpose::queue))),
      server_(config.rate) {
  make_models(Instant{});
}

void Direction::make_models(Instant from) {
  const auto* constant_rate = std::get_if<Bitrate>(&config_.rate);
  loss_ = make_loss(config_.loss,
                    {constant_rate ? std::optional(*constant_rate) : std::nullopt, config_.overhead,
                     stream(Purpose::loss), stream(Purpose::loss_state), from,
                     ChannelKey{seed_, 2 * link_ + static_cast<std::uint32_t>(name_)}});
  delay_.emplace(config_.delay, config_.jitter,
                 JitterStreams{stream(Purpose::jitter), stream(Purpose::jitter_repeat),
                               stream(Purpose::jitter_redraw)});
  effects_.clear();
  const auto add = [this]<class Config>(const std::optional<Config>& effect) {
    if (!effect) return;
    effects_.push_back(std::make_unique<typename Config::Model>(*effect, stream(Config::purpose)));
  };
  std::apply([&add](const auto&... effects) { (add(effects), ...); }, config_.effects);
  adaptation_.reset();
  if (config_.rate_adaptation) {
    adaptation_.emplace(*config_.rate_adaptation, stream(Purpose::rate_adaptation));
  }
  const std::unique_ptr<MarkingRule> previous = std::move(marking_);
  if (!config_.mark) return;
  marking_ = make_marking(*config_.mark);
  if (previous) marking_->resume(*previous);
}

void Direction::change(const DirectionConfig& config, Instant at,
                       std::vector<Departure>& departures) {
  assert(at >= now_);
  advance(at, departures);
  const bool keeps_end = config_.rate_adaptation || config.rate_adaptation;
  config_ = config;
  make_models(at);
  auto queue = make_queue(config.queue, stream(Purpose::queue));
  for (const Waiting& waiting : queue_->take_all()) queue->adopt(waiting);
  queue_ = std::move(queue);
  const Instant end = server_.change(config_.rate, at);
  if (in_service_ && !keeps_end) in_service_->end = end;
  advance(at, departures);  // if the new rate is unlimited, all waiting packets leave now
}

void Direction::offer(Packet packet, Instant at, std::vector<Departure>& departures) {
  assert(at >= now_);
  advance(at, departures);
  ++counters_.offered;
  counters_.offered_bytes += packet.size;

  if (config_.loss_at == LossPoint::ingress && loss_ &&
      is_lost({.packet = packet, .start = at, .end = at + server_.air_time(framed(packet), at)})) {
    drop(packet, Fate::channel_loss, at, departures);
    return;
  }
  const bool is_idle = !in_service_;
  if (is_marked_on_arrival(packet, at)) try_to_mark(packet, queue_events_);
  queue_->enqueue(packet, at, is_idle ? std::nullopt : std::optional(in_service_->packet.size),
                  queue_events_);
  // A mark does not count if the marked packet is dropped.
  if (packet.marked && !queue_events_.drops.empty()) queue_events_.marks = 0;
  process_queue_events(at, departures);
  if (is_idle) {
    start_next(at, false, departures);
    advance(at, departures);  // without a rate limit the packet leaves now
  }
  counters_.max_waiting = std::max<std::uint64_t>(counters_.max_waiting, queue_->packets());
}

bool Direction::has_feedback() const {
  return reports_transmissions() || radio_.has_ended() || !repetitions_.is_empty();
}

void Direction::advance(Instant to, std::vector<Departure>& departures) {
  assert(to >= now_);
  if (has_feedback()) {
    advance_by_events(to, departures);
    return;
  }
  while (in_service_ && in_service_->end <= to) {
    const Instant end = in_service_->end;
    end_transmission(departures);
    start_next(end, true, departures);
  }
  deliver_until(to, departures);
  now_ = to;
}

bool Direction::can_start() const {
  return !in_service_ && (repetitions_.has_repetition() || queue_->packets() > 0);
}

void Direction::advance_by_events(Instant to, std::vector<Departure>& departures) {
  const auto never = Instant::max();
  for (;;) {
    const Instant end = in_service_ ? in_service_->end : never;
    const Instant outcome = radio_.has_ended() ? needed_at(radio_.first_ended()) : never;
    const Instant feedback = repetitions_.next_feedback().value_or(never);
    const Instant start = can_start() ? now_ : never;
    const Instant next = std::min({end, outcome, feedback, start});
    if (next > to || next == never) break;
    now_ = std::max(now_, next);
    if (next == end) {
      end_transmission(departures);
    } else if (next == outcome) {
      if (!radio_.has_outcome()) {
        deliver_until(now_, departures);
        return;
      }
      resolve(radio_.resolve_first(), departures);
    } else if (next == feedback) {
      repetitions_.learn_next();
    } else {
      start_next(now_, now_ == idle_since_, departures);
    }
  }
  deliver_until(to, departures);
  now_ = std::max(now_, to);
}

Instant Direction::needed_at(const Transmission& transmission) const {
  const Duration min = delay_->min();
  return transmission.end + (config_.arq ? std::min(min, config_.arq->feedback) : min);
}

void Direction::take_in_flight(std::vector<Departure>& departures) {
  while (!in_flight_.is_empty()) deliver_next(departures);
}

void Direction::deliver_until(Instant to, std::vector<Departure>& departures) {
  while (!in_flight_.is_empty() && in_flight_.next() <= to) deliver_next(departures);
}

void Direction::deliver_next(std::vector<Departure>& departures) {
  const Arrival arrival = in_flight_.take_next();
  for (unsigned i = 0; i < arrival.copies; ++i) {
    departures.push_back({arrival.packet, Fate::delivered, arrival.at, true});
  }
  ++counters_.delivered;
  counters_.delivered_bytes += arrival.packet.size;
  counters_.duplicated += arrival.copies;
  counters_.corrupted += arrival.packet.corrupted ? 1 : 0;
  counters_.reordered += arrival.keeps_order ? 0 : 1;
  departures.push_back({arrival.packet, Fate::delivered, arrival.at});
}

std::optional<Instant> Direction::next_event() const {
  std::optional<Instant> next;
  const auto consider = [&next](Instant at) {
    if (!next || at < *next) next = at;
  };
  if (in_service_) consider(in_service_->end);
  if (can_start()) consider(now_);
  if (radio_.has_ended()) consider(needed_at(radio_.first_ended()));
  if (const auto feedback = repetitions_.next_feedback()) consider(*feedback);
  if (!in_flight_.is_empty()) consider(in_flight_.next());
  return next;
}

std::optional<Instant> Direction::next_delivery() const {
  if (reports_transmissions()) return next_event();  // no delivery precedes the next event
  std::optional<Instant> next;
  if (in_service_) {
    const Duration min = delay_->min();
    // During an outage without end a transmission has no end.
    next = in_service_->end > Instant::max() - min ? Instant::max() : in_service_->end + min;
  }
  if (!in_flight_.is_empty() && (!next || in_flight_.next() < *next)) next = in_flight_.next();
  return next;
}

std::size_t Direction::held() const {
  std::size_t resequenced = 0;
  resequencer_.for_each([&resequenced](const Packet& /*any*/) { ++resequenced; });
  return queue_->packets() + (in_service_ ? 1U : 0U) + in_flight_.size() + radio_.size() +
         repetitions_.size() + resequenced;
}

void Direction::for_each_held(const std::function<void(const Packet&)>& visit) const {
  in_flight_.for_each(visit);
  resequencer_.for_each(visit);
  radio_.for_each(visit);
  repetitions_.for_each(visit);
  if (in_service_) visit(in_service_->packet);
  queue_->for_each(visit);
}

bool Direction::is_lost(const Transmission& transmission) {
  return loss_ && loss_->loses(loss_index_++, transmission);
}

bool Direction::is_marked_on_arrival(const Packet& packet, Instant at) {
  if (!marking_) return false;
  if (!in_service_) {
    const Bytes typical = marking_->typical_packet() + config_.overhead;
    const Duration air = std::max(server_.air_time(typical, at), Duration{1});
    marking_->idle(static_cast<std::uint64_t>((at - idle_since_) / air));
  }
  return marking_->marks({queue_->packets()}, queue_->bytes()) && packet.may_be_marked();
}

void Direction::start(Transmission transmission, Instant at, bool back_to_back) {
  transmission.number = transmissions_++;
  transmission.start = at;
  if (adaptation_) {
    transmission.mode = adaptation_->choose(at, transmission.attempt, transmission.number);
    transmission.end = at + adaptation_->mode(transmission.mode).air_time(transmission.packet.size);
  } else {
    transmission.end = server_.begin(framed(transmission.packet), at, back_to_back);
  }
  in_service_ = transmission;
  if (is_radio()) radio_.start(transmission);
}

/// Start the next transmission. `back_to_back` is true if the previous transmission ended at `at`.
void Direction::start_next(Instant at, bool back_to_back, std::vector<Departure>& departures) {
  if (repetitions_.has_repetition()) {
    start(repetitions_.take_repetition(), at, back_to_back);
    return;
  }
  const std::optional<Packet> packet = queue_->dequeue(at, queue_events_);
  process_queue_events(at, departures);
  if (packet) start({.packet = *packet, .order = orders_++}, at, back_to_back);
}

void Direction::end_transmission(std::vector<Departure>& departures) {
  Transmission sent = *in_service_;
  in_service_.reset();
  idle_since_ = sent.end;
  ++counters_.transmitted;
  counters_.transmitted_bytes += framed(sent);
  counters_.transmitting += sent.end - sent.start;

  if (is_radio()) {
    radio_.end(sent);
  } else {
    sent.lost = config_.loss_at == LossPoint::egress && is_lost(sent);
    resolve(sent, departures);
  }
}

/// Process the outcome of a transmission: deliver, repeat or drop the packet.
void Direction::resolve(const Transmission& transmission, std::vector<Departure>& departures) {
  if (reports_transmissions()) resolved_.push_back(transmission);
  if (adaptation_) adaptation_->report(transmission, transmission.end + config_.arq->feedback);
  if (!transmission.lost) {
    pass_to_receiver(transmission, false);
  } else if (config_.arq && transmission.attempt <= config_.arq->retries) {
    repetitions_.add(transmission, transmission.end + config_.arq->feedback);
  } else {
    drop(transmission.packet, Fate::channel_loss, transmission.end, departures);
    pass_to_receiver(transmission, true);
  }
}

/// Pass to the receiver a packet, or the information that the sender gave it up. The receiver keeps
/// the order.
void Direction::pass_to_receiver(const Transmission& transmission, bool given_up) {
  const auto release = [this](const Resequencer::Received& received) {
    if (received.given_up) {
      in_flight_.hold_until(received.at);
    } else {
      schedule_delivery(received.packet, received.order, received.at);
    }
  };
  if (given_up && !config_.arq) {
    resequencer_.skip(transmission.order, transmission.end, release);
    return;
  }
  const Instant at = transmission.end + delay_->next(transmission.number, transmission.end);
  if (config_.keep_order) {
    resequencer_.receive({transmission.packet, transmission.order, at, given_up}, release);
    return;
  }
  if (!given_up) schedule_delivery(transmission.packet, transmission.order, at);
  resequencer_.skip(transmission.order, at, release);
}

void Direction::schedule_delivery(const Packet& packet, std::uint64_t order, Instant at) {
  Arrival arrival{.packet = packet, .at = at};
  for (const auto& effect : effects_) effect->apply(order, arrival);
  in_flight_.send(arrival, config_.keep_order);
}

void Direction::process_queue_events(Instant at, std::vector<Departure>& departures) {
  counters_.marked += queue_events_.marks;
  for (const auto& [packet, fate] : queue_events_.drops) drop(packet, fate, at, departures);
  queue_events_.drops.clear();
  queue_events_.marks = 0;
}

void Direction::drop(const Packet& packet, Fate fate, Instant at,
                     std::vector<Departure>& departures) {
  ++(fate == Fate::queue_overflow ? counters_.queue_overflows
     : fate == Fate::aqm_drop     ? counters_.aqm_drops
                                  : counters_.channel_losses);
  departures.push_back({packet, fate, at});
}

}  // namespace nagi::model
