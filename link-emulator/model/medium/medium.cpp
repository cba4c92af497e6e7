// SPDX-License-Identifier: Apache-2.0
#include "model/medium/medium.hpp"

#include <algorithm>
#include <bit>
#include <utility>

namespace nagi::model {

namespace {

std::vector<Position> positions_of(const MediumConfig& config) {
  std::vector<Position> all;
  for (const StationConfig& station : config.stations) all.push_back(station.position);
  return all;
}

std::size_t kind_of(const AirFrame& frame) { return static_cast<std::size_t>(frame.kind); }

}  // namespace

Medium::Medium(const MediumConfig& config, std::uint64_t seed, std::uint32_t id)
    : config_(config),
      seed_(seed),
      id_(id),
      phy_(config.phy),
      reach_(config.reach, positions_of(config)) {
  stations_.reserve(config.stations.size());
  for (StationIndex index = 0; index < config.stations.size(); ++index) {
    Station& station = stations_.emplace_back(phy_);
    station.queue = make_queue(config.queue, Stream(seed, id, index, Purpose::queue));
    station.cw = config.cw_min;
  }
  for (StationIndex index = 0; index < config.stations.size(); ++index) {
    const std::vector<Move>& trace = config_.stations[index].trace;
    if (!trace.empty()) schedule(index, Phase::move, Instant{trace.front().at});
  }
}

void Medium::offer(StationIndex from, const Packet& packet, Instant at, MediumEvents& events) {
  advance(at, events);
  out_ = &events;
  Station& station = stations_[from];
  ++station.counters.offered;
  station.counters.offered_bytes += packet.size;
  std::optional<Bytes> in_service;
  if (station.sending) in_service = station.sending->packet.size;
  // What comes while the air is busy waits for the air like all others.
  if (!station.sending && !station.access.has_backoff() && !station.access.is_idle(at)) {
    back_off(from);
  }
  station.queue->enqueue(packet, at, in_service, queue_events_);
  serve_queue(from);
  station.counters.max_waiting =
      std::max<std::uint64_t>(station.counters.max_waiting, station.queue->packets());
  plan_access(from);
}

void Medium::advance(Instant to, MediumEvents& events) {
  out_ = &events;
  while (!events_.empty()) {
    const Event& next = events_.top();
    if (!is_valid(next)) {
      events_.pop();
      continue;
    }
    if (next.at > to || (next.at == to && next.phase == Phase::begin)) break;
    const Phase phase = next.phase;
    now_ = next.at;
    const std::vector<StationIndex> all = take_events();
    if (phase == Phase::begin) {
      begin_frames(all);
    } else if (phase == Phase::end) {
      end_frames(all);
    } else {
      for (const StationIndex station : all) {
        if (phase == Phase::move) move(station);
        if (phase == Phase::timeout) time_out(station);
        if (phase == Phase::reservation_check) check_reservation(station);
      }
    }
    settle_touched();
  }
  now_ = std::max(now_, to);
}

std::optional<Instant> Medium::next_delivery() const {
  std::optional<Instant> earliest;
  if (!data_ends_.empty()) earliest = *data_ends_.begin();
  if (!events_.empty()) {
    const Instant next = std::max(events_.top().at, now_) + phy_.data({});
    if (!earliest || next < *earliest) earliest = next;
  }
  return earliest;
}

std::size_t Medium::held(StationIndex station) const {
  return stations_[station].queue->packets() + (stations_[station].sending ? 1 : 0);
}

void Medium::schedule(StationIndex station, Phase phase, Instant at) {
  events_.push({at, phase, station, ++stations_[station].turns[index_of(phase)]});
}

std::vector<StationIndex> Medium::take_events() {
  const Instant at = events_.top().at;
  const Phase phase = events_.top().phase;
  std::vector<StationIndex> all;
  while (!events_.empty() && events_.top().at == at && events_.top().phase == phase) {
    if (is_valid(events_.top())) {
      all.push_back(events_.top().station);
      cancel(events_.top().station, phase);
    }
    events_.pop();
  }
  return all;
}

void Medium::touch(StationIndex station) {
  if (std::exchange(stations_[station].is_touched, true)) return;
  touched_.push_back(station);
}

void Medium::settle_touched() {
  for (const StationIndex station : touched_) {
    stations_[station].is_touched = false;
    plan_access(station);
  }
  touched_.clear();
}

/// Sees to it that a station sends when it may.
void Medium::plan_access(StationIndex index) {
  Station& station = stations_[index];
  if (station.response || station.transmitting) return;
  cancel(index, Phase::begin);
  if (!station.sending && !station.access.has_backoff()) return;
  if (const auto at = station.access.next()) schedule(index, Phase::begin, std::max(*at, now_));
}

void Medium::serve_queue(StationIndex index) {
  Station& station = stations_[index];
  if (!station.sending) {
    if (const auto packet = station.queue->dequeue(now_, queue_events_)) {
      Sending next;
      next.packet = *packet;
      next.number = station.packets++;
      station.sending = next;
    }
  }
  station.counters.marked += std::exchange(queue_events_.marks, 0);
  for (const QueueEvents::Drop& drop : queue_events_.drops) {
    ++(drop.fate == Fate::aqm_drop ? station.counters.aqm_drops : station.counters.queue_overflows);
    out_->departures.push_back({index, {drop.packet, drop.fate, now_}});
  }
  queue_events_.drops.clear();
}

void Medium::back_off(StationIndex index) {
  Station& station = stations_[index];
  const std::uint64_t draw = Stream(seed_, id_, index, Purpose::backoff).draw(station.draws++);
  const auto bits = static_cast<unsigned>(std::bit_width(station.cw));
  station.access.back_off(bits == 0 ? 0 : draw >> (64U - bits), now_);
}

void Medium::move(StationIndex index) {
  Station& station = stations_[index];
  const std::vector<Move>& trace = config_.stations[index].trace;
  reach_.move(index, trace[station.next_move].to);
  if (++station.next_move < trace.size()) {
    schedule(index, Phase::move, Instant{trace[station.next_move].at});
  }
}

bool Medium::uses_rts(const Packet& packet) const {
  return packet.next_hop != everybody && config_.rts_threshold &&
         packet.size + data_overhead > *config_.rts_threshold;
}

AirFrame Medium::data_frame(StationIndex index) const {
  const Sending& sending = *stations_[index].sending;
  const bool is_broadcast = sending.packet.next_hop == everybody;
  AirFrame frame;
  frame.kind = FrameKind::data;
  frame.from = index;
  frame.to = sending.packet.next_hop.value_or(nobody);
  frame.end =
      Instant{is_broadcast ? phy_.broadcast(sending.packet.size) : phy_.data(sending.packet.size)};
  frame.reserves = is_broadcast ? Duration{} : phy_.sifs() + phy_.ack();
  frame.packet = sending.number;
  frame.attempt = sending.attempt;
  frame.data = sending.packet;
  return frame;
}

AirFrame Medium::first_of_exchange(StationIndex index) const {
  AirFrame frame = data_frame(index);
  if (!uses_rts(frame.data)) return frame;
  frame.kind = FrameKind::rts;
  frame.end = Instant{phy_.rts()};
  frame.reserves = 3 * phy_.sifs() + phy_.cts() + phy_.data(frame.data.size) + phy_.ack();
  return frame;
}

/// What a station sends now. Frames that are not on the air yet have as their end how long they
/// take.
std::optional<AirFrame> Medium::next_frame(StationIndex index) {
  Station& station = stations_[index];
  if (station.response) {
    station.access.end_exchange(now_);
    return std::exchange(station.response, std::nullopt);
  }
  station.access.end_backoff();
  if (!station.sending) return std::nullopt;
  return first_of_exchange(index);
}

void Medium::begin_frames(const std::vector<StationIndex>& begins) {
  std::vector<FrameSlot> begun;
  for (const StationIndex index : begins) {
    auto frame = next_frame(index);
    if (!frame) continue;
    put_on_air(*frame);
    begun.push_back(*stations_[index].transmitting);
  }
  for (const FrameSlot slot : begun) hear(slot);
  for (const FrameSlot slot : begun) {
    for (const Heard& heard : on_air_[slot].heard) listen(slot, heard);
  }
}

void Medium::put_on_air(AirFrame frame) {
  Station& station = stations_[frame.from];
  const Duration takes = frame.end.time_since_epoch();
  frame.start = now_;
  frame.end = now_ + takes;
  frame.number = station.frames++;
  if (frame.to == everybody) frame.outcome = FrameOutcome::received;
  // What it is just receiving is lost to it.
  if (station.reception) {
    note(station.reception->frame, frame.from, FrameOutcome::receiver_busy);
    station.reception.reset();
  }
  FrameSlot slot = 0;
  if (free_.empty()) {
    slot = static_cast<FrameSlot>(on_air_.size());
    on_air_.emplace_back();
  } else {
    slot = free_.back();
    free_.pop_back();
  }
  on_air_[slot].frame = frame;
  on_air_[slot].heard = reach_.of(frame.from);
  station.transmitting = slot;
  station.access.begin_busy(now_);
  station.counters.on_air += takes;
  if (frame.kind == FrameKind::data) data_ends_.insert(frame.end);
  schedule(frame.from, Phase::end, frame.end);
}

/// A frame that begins is a signal wherever it is heard.
void Medium::hear(FrameSlot slot) {
  for (const Heard& heard : on_air_[slot].heard) {
    Station& station = stations_[heard.by];
    station.signals.push_back({slot, heard.power, heard.interferes});
    if (!heard.senses) continue;
    // A packet that found the air idle, and has lost it before its turn, backs off.
    if (station.sending && !station.transmitting && station.awaited == Awaited::nothing &&
        !station.response && !station.access.has_backoff() && station.access.next()) {
      back_off(heard.by);
    }
    station.access.begin_busy(now_);
    touch(heard.by);
  }
}

/// What a frame that begins does to what a station receives, and whether that receives it.
void Medium::listen(FrameSlot slot, const Heard& heard) {
  Station& station = stations_[heard.by];
  const AirFrame& frame = on_air_[slot].frame;
  if (heard.interferes && station.reception && station.reception->frame != slot) {
    disturb(station, heard.by);
  }
  if (!heard.decodes) return;
  if (station.transmitting) {
    note(slot, heard.by, FrameOutcome::receiver_busy);
    return;
  }
  const auto disturbed = disturbance(station, slot, heard.power, reach_.capture_ratio());
  if (station.reception && station.reception->frame != slot) {
    const AirFrame& other = on_air_[station.reception->frame].frame;
    const bool stronger = other.start == frame.start && heard.power > station.reception->power;
    if (!stronger) {
      note(slot, heard.by, disturbed.value_or(cause(frame, other)));
      return;
    }
    note(station.reception->frame, heard.by, cause(other, frame));
  }
  if (disturbed && reach_.preamble_ratio() &&
      disturbance(station, slot, heard.power, reach_.preamble_ratio())) {  // it is not found
    note(slot, heard.by, *disturbed);
    return;
  }
  station.reception = {slot, heard.power, disturbed};
  station.reception_began = now_;
  if (disturbed) note(slot, heard.by, *disturbed);
}

void Medium::disturb(Station& station, StationIndex index) {
  Reception& reception = *station.reception;
  if (reception.disturbed) return;
  reception.disturbed =
      disturbance(station, reception.frame, reception.power, reach_.capture_ratio());
  if (reception.disturbed) note(reception.frame, index, *reception.disturbed);
}

/// Why a frame's power is not `ratio` times what else is heard at a station.
std::optional<FrameOutcome> Medium::disturbance(const Station& station, FrameSlot slot,
                                                double power, std::optional<double> ratio) const {
  const AirFrame& frame = on_air_[slot].frame;
  double others = reach_.noise().value_or(0);
  const Signal* strongest = nullptr;
  for (const Signal& signal : station.signals) {
    if (signal.frame == slot || !signal.interferes) continue;
    others += signal.power;
    if (strongest == nullptr || signal.power > strongest->power) strongest = &signal;
    if (reach_.noise()) continue;
    const AirFrame& other = on_air_[signal.frame].frame;
    const bool captured = ratio && other.start >= frame.start && power >= *ratio * signal.power;
    if (!captured) return cause(frame, other);
  }
  if (!reach_.noise() || power >= *ratio * others) return std::nullopt;
  if (strongest == nullptr) return FrameOutcome::out_of_reach;
  return cause(frame, on_air_[strongest->frame].frame);
}

FrameOutcome Medium::cause(const AirFrame& frame, const AirFrame& other) const {
  return reach_.between(other.from, frame.from).senses ? FrameOutcome::collided
                                                       : FrameOutcome::hidden_terminal;
}

/// What became of a frame, if it was for that station.
void Medium::note(FrameSlot slot, StationIndex receiver, FrameOutcome outcome) {
  if (on_air_[slot].frame.to == receiver) on_air_[slot].frame.outcome = outcome;
}

void Medium::end_frames(const std::vector<StationIndex>& senders) {
  std::vector<FrameSlot> ended;
  for (const StationIndex sender : senders) {
    Station& station = stations_[sender];
    const FrameSlot slot = *std::exchange(station.transmitting, std::nullopt);
    ended.push_back(slot);
    station.access.end_busy(now_);
    touch(sender);
    if (on_air_[slot].frame.kind == FrameKind::data) data_ends_.erase(data_ends_.find(now_));
    for (const Heard& heard : on_air_[slot].heard) {
      Station& hearer = stations_[heard.by];
      std::erase_if(hearer.signals, [slot](const Signal& each) { return each.frame == slot; });
      if (!heard.senses) continue;
      hearer.access.end_busy(now_);
      touch(heard.by);
      const bool is_only_sensed = !hearer.transmitting && !hearer.reception;
      if (config_.eifs_after == EifsAfter::signals && is_only_sensed) hearer.access.note_error();
    }
  }
  for (const FrameSlot slot : ended) {
    for (const Heard& heard : on_air_[slot].heard) {
      const auto& reception = stations_[heard.by].reception;
      if (reception && reception->frame == slot) finish_reception(heard.by, on_air_[slot]);
    }
    finish_sending(on_air_[slot].frame.from, on_air_[slot].frame);
    const AirFrame& frame = on_air_[slot].frame;
    StationCounters& counters = stations_[frame.from].counters;
    ++counters.frames[kind_of(frame)];
    ++counters.by_outcome[kind_of(frame)][static_cast<std::size_t>(frame.outcome)];
    out_->frames.push_back(frame);
    free_.push_back(slot);
  }
}

void Medium::finish_reception(StationIndex index, const OnAir& ended) {
  Station& station = stations_[index];
  const AirFrame frame = ended.frame;
  bool correct = !station.reception->disturbed;
  const FrameSlot slot = station.reception->frame;
  station.reception.reset();
  const bool is_mine = frame.to == index || frame.to == everybody;
  if (correct && is_mine && is_lost(index, frame)) {
    correct = false;
    note(slot, index, FrameOutcome::channel_error);
  }
  // Whatever a station receives in place of the answer that it awaits ends its waiting.
  if (station.awaited != Awaited::nothing && frame.start >= station.asked) {
    const bool is_answer =
        correct && frame.to == index &&
        frame.kind == (station.awaited == Awaited::cts ? FrameKind::cts : FrameKind::ack);
    if (!is_answer) fail(index);
  }
  if (!correct) {
    station.access.note_error();
    return;
  }
  note(slot, index, FrameOutcome::received);
  station.access.note_correct();
  if (frame.to == everybody) {
    deliver(index, frame);
  } else if (frame.to == index) {
    answer(index, frame);
    if (frame.kind == FrameKind::rts && !station.response) {
      note(slot, index, FrameOutcome::not_answered);
    }
  } else {
    heed(index, frame);
  }
}

bool Medium::is_lost(StationIndex index, const AirFrame& frame) {
  if (std::holds_alternative<NoLoss>(config_.loss)) return false;
  const std::uint64_t pair = frame.from * stations_.size() + index;
  PairLoss& loss = losses_[pair];
  if (!loss.model) {
    const auto number = static_cast<std::uint32_t>(pair);
    loss.model = make_loss(
        config_.loss, {config_.phy.data_rate, Bytes{}, Stream(seed_, id_, number, Purpose::loss),
                       Stream(seed_, id_, number, Purpose::loss_state)});
  }
  Transmission transmission;
  transmission.packet.size = frame.kind == FrameKind::data  ? frame.data.size + data_overhead
                             : frame.kind == FrameKind::rts ? rts_bytes
                                                            : ack_bytes;
  transmission.start = frame.start;
  transmission.end = frame.end;
  return loss.model->loses(loss.index++, transmission);
}

/// A frame for this station has been received.
void Medium::answer(StationIndex index, const AirFrame& frame) {
  Station& station = stations_[index];
  AirFrame next;
  switch (frame.kind) {
    case FrameKind::rts:
      if (station.awaited != Awaited::nothing || station.access.reserved_until() > now_) return;
      next = frame;
      next.kind = FrameKind::cts;
      next.end = Instant{phy_.cts()};
      next.reserves = frame.reserves - phy_.sifs() - phy_.cts();
      break;
    case FrameKind::data:
      deliver(index, frame);
      next = frame;
      next.kind = FrameKind::ack;
      next.end = Instant{phy_.ack()};
      next.reserves = {};
      break;
    case FrameKind::cts:
      if (station.awaited != Awaited::cts) return;
      station.awaited = Awaited::nothing;
      station.access.end_exchange(now_);
      cancel(index, Phase::timeout);
      station.sending->short_retries = 0;
      next = data_frame(index);
      break;
    case FrameKind::ack:
      if (station.awaited == Awaited::ack) finish_packet(index, Fate::delivered);
      return;
  }
  if (next.kind != FrameKind::data) {
    next.from = index;
    next.to = frame.from;
    next.outcome = FrameOutcome::out_of_reach;
  }
  station.response = next;
  station.access.begin_exchange(now_);
  schedule(index, Phase::begin, now_ + phy_.sifs());
}

/// A frame for another station reserves the air.
void Medium::heed(StationIndex index, const AirFrame& frame) {
  Station& station = stations_[index];
  const Instant until = now_ + frame.reserves;
  if (until <= station.access.reserved_until()) return;
  station.access.reserve(until);
  station.reserving_rts = Instant::min();
  if (frame.kind != FrameKind::rts || !config_.resets_nav) return;
  station.reserving_rts = now_;
  schedule(index, Phase::reservation_check,
           now_ + 2 * phy_.sifs() + phy_.cts() + phy_.preamble() + 2 * phy_.slot());
}

/// Nothing has followed an RTS: 10.3.2.4 permits to take the air for free.
void Medium::check_reservation(StationIndex index) {
  Station& station = stations_[index];
  const bool has_followed = station.reception_began >= station.reserving_rts &&
                            station.reception_began + phy_.preamble() <= now_;
  if (station.reserving_rts == Instant::min() || has_followed) return;
  station.access.end_reservation(now_);
  touch(index);
}

void Medium::deliver(StationIndex index, const AirFrame& frame) {
  Station& station = stations_[index];
  Station& sender = stations_[frame.from];
  // Of a packet that is sent again as its ACK was lost, only the first counts.
  const auto [last, is_first] = station.last_received.try_emplace(frame.from, frame.packet);
  if (!is_first && std::exchange(last->second, frame.packet) == frame.packet) return;
  if (!sender.sending->delivered) sender.sending->delivered = now_;
  out_->deliveries.push_back({frame.from, index, frame.data, now_});
}

void Medium::await(StationIndex index, Awaited what) {
  Station& station = stations_[index];
  station.awaited = what;
  station.asked = now_;
  station.access.begin_exchange(now_);
  schedule(index, Phase::timeout, now_ + phy_.response_timeout());
}

void Medium::finish_sending(StationIndex index, const AirFrame& frame) {
  if (frame.kind == FrameKind::rts) {
    await(index, Awaited::cts);
  } else if (frame.kind == FrameKind::data && frame.to == everybody) {
    stations_[index].sending->delivered = now_;
    stations_[index].access.begin_exchange(now_);
    finish_packet(index, Fate::delivered);
  } else if (frame.kind == FrameKind::data) {
    await(index, Awaited::ack);
  }
}

/// By now an answer must have begun. If something has, its end shows what it is.
void Medium::time_out(StationIndex index) {
  const Station& station = stations_[index];
  if (station.reception && station.reception_began + phy_.preamble() <= now_ &&
      station.reception_began >= station.asked) {
    return;
  }
  fail(index);
}

/// No answer came.
void Medium::fail(StationIndex index) {
  Station& station = stations_[index];
  Sending& sending = *station.sending;
  const bool is_long = station.awaited == Awaited::ack && uses_rts(sending.packet);
  const bool is_over = is_long ? ++sending.long_retries >= config_.long_retry_limit
                               : ++sending.short_retries >= config_.short_retry_limit;
  if (is_over) {
    finish_packet(index, sending.delivered ? Fate::delivered : Fate::retry_limit);
    return;
  }
  station.awaited = Awaited::nothing;
  cancel(index, Phase::timeout);
  station.access.end_exchange(now_);
  ++sending.attempt;
  station.cw = std::min(2 * station.cw + 1, config_.cw_max);
  back_off(index);
  touch(index);
}

void Medium::finish_packet(StationIndex index, Fate fate) {
  Station& station = stations_[index];
  const Sending done = *std::exchange(station.sending, std::nullopt);
  station.awaited = Awaited::nothing;
  cancel(index, Phase::timeout);
  station.access.end_exchange(now_);
  if (fate == Fate::delivered) {
    ++station.counters.delivered;
    station.counters.delivered_bytes += done.packet.size;
  } else {
    ++station.counters.given_up;
  }
  out_->departures.push_back({index, {done.packet, fate, done.delivered.value_or(now_)}});
  station.cw = config_.cw_min;
  back_off(index);
  serve_queue(index);
  touch(index);
}

}  // namespace nagi::model
