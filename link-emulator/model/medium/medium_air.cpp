// SPDX-License-Identifier: Apache-2.0
//
// Frames on the air: their begin, their signals at other stations, interference, and their end.
#include <utility>

#include "model/medium/medium.hpp"

namespace nagi::model {

namespace {

std::size_t kind_index(const AirFrame& frame) { return static_cast<std::size_t>(frame.kind); }

}  // namespace

/// Put the next frame of each station in `begins` on the air, and start its reception at the
/// stations that it reaches.
void Medium::begin_frames(const std::vector<StationIndex>& begins) {
  std::vector<FrameSlot> begun;
  for (const StationIndex index : begins) {
    auto frame = next_frame(index);
    if (!frame) continue;
    put_on_air(*frame);
    begun.push_back(*stations_[index].transmitting);
  }
  for (const FrameSlot slot : begun) add_signal(slot);
  for (const FrameSlot slot : begun) {
    for (const Heard& heard : on_air_[slot].heard) start_reception(slot, heard);
  }
}

/// Start the transmission of a frame, whose `end` is still its duration.
void Medium::put_on_air(AirFrame frame) {
  Station& station = stations_[frame.from];
  const Duration duration = frame.end.time_since_epoch();
  frame.start = now_;
  frame.end = now_ + duration;
  frame.number = station.frames++;
  if (frame.to == everybody) frame.outcome = FrameOutcome::received;
  // A station that begins to send loses the frame that it is receiving.
  if (station.reception) {
    record_outcome(station.reception->frame, frame.from, FrameOutcome::receiver_busy);
    station.reception.reset();
  }
  FrameSlot slot = 0;
  if (free_slots_.empty()) {
    slot = static_cast<FrameSlot>(on_air_.size());
    on_air_.emplace_back();
  } else {
    slot = free_slots_.back();
    free_slots_.pop_back();
  }
  on_air_[slot].frame = frame;
  on_air_[slot].heard = reach_.heard_from(frame.from);
  station.transmitting = slot;
  station.access.begin_busy(now_);
  station.counters.on_air += duration;
  if (frame.kind == FrameKind::data) data_ends_.insert(frame.end);
  schedule(frame.from, Phase::end, frame.end);
}

/// Add a frame that begins to the signals of every station that it reaches.
void Medium::add_signal(FrameSlot slot) {
  for (const Heard& heard : on_air_[slot].heard) {
    Station& station = stations_[heard.receiver];
    station.signals.push_back({slot, heard.power, heard.interferes});
    if (!heard.senses) continue;
    // A packet that found the air idle, but could not be sent before the air became busy, backs
    // off.
    if (station.sending && !station.transmitting && station.awaited == Awaited::nothing &&
        !station.response && !station.access.has_backoff() && station.access.next()) {
      back_off(heard.receiver);
    }
    station.access.begin_busy(now_);
    mark_for_planning(heard.receiver);
  }
}

/// Process a frame that begins, at a station that its signal reaches: it may disturb the current
/// reception, and the station may start to receive it.
void Medium::start_reception(FrameSlot slot, const Heard& heard) {
  Station& station = stations_[heard.receiver];
  const AirFrame& frame = on_air_[slot].frame;
  if (heard.interferes && station.reception && station.reception->frame != slot) {
    add_interference(station, heard.receiver);
  }
  if (!heard.decodes) return;
  if (station.transmitting) {
    record_outcome(slot, heard.receiver, FrameOutcome::receiver_busy);
    return;
  }
  const auto error = find_disturbance(station, slot, heard.power, reach_.capture_ratio());
  if (station.reception && station.reception->frame != slot) {
    const AirFrame& other = on_air_[station.reception->frame].frame;
    const bool stronger = other.start == frame.start && heard.power > station.reception->power;
    if (!stronger) {
      record_outcome(slot, heard.receiver, error.value_or(collision_kind(frame, other)));
      return;
    }
    record_outcome(station.reception->frame, heard.receiver, collision_kind(other, frame));
  }
  if (error && reach_.preamble_ratio() &&
      find_disturbance(station, slot, heard.power,
                       reach_.preamble_ratio())) {  // the preamble is not found
    record_outcome(slot, heard.receiver, *error);
    return;
  }
  station.reception = {slot, heard.power, error};
  station.reception_began = now_;
  if (error) record_outcome(slot, heard.receiver, *error);
}

/// Check whether the signals at a station disturb its reception.
void Medium::add_interference(Station& station, StationIndex index) {
  Reception& reception = *station.reception;
  if (reception.error) return;
  reception.error =
      find_disturbance(station, reception.frame, reception.power, reach_.capture_ratio());
  if (reception.error) record_outcome(reception.frame, index, *reception.error);
}

/// Return the outcome of a frame whose power is less than `ratio` times the other signals and the
/// noise at a station, or nothing if the power suffices. Without `ratio`, any other signal that
/// interferes disturbs the frame.
std::optional<FrameOutcome> Medium::find_disturbance(const Station& station, FrameSlot slot,
                                                     double power,
                                                     std::optional<double> ratio) const {
  const AirFrame& frame = on_air_[slot].frame;
  double interference = reach_.noise().value_or(0);
  const Signal* strongest = nullptr;
  for (const Signal& signal : station.signals) {
    if (signal.frame == slot || !signal.interferes) continue;
    interference += signal.power;
    if (strongest == nullptr || signal.power > strongest->power) strongest = &signal;
    if (reach_.noise()) continue;
    const AirFrame& other = on_air_[signal.frame].frame;
    const bool captured = ratio && other.start >= frame.start && power >= *ratio * signal.power;
    if (!captured) return collision_kind(frame, other);
  }
  if (!reach_.noise() || power >= *ratio * interference) return std::nullopt;
  if (strongest == nullptr) return FrameOutcome::out_of_reach;
  return collision_kind(frame, on_air_[strongest->frame].frame);
}

/// Return the outcome of `frame` if `other` disturbs it.
FrameOutcome Medium::collision_kind(const AirFrame& frame, const AirFrame& other) const {
  return reach_.between(other.from, frame.from).senses ? FrameOutcome::collided
                                                       : FrameOutcome::hidden_terminal;
}

/// Record the outcome of a frame at `receiver` if the frame is addressed to it.
void Medium::record_outcome(FrameSlot slot, StationIndex receiver, FrameOutcome outcome) {
  if (on_air_[slot].frame.to == receiver) on_air_[slot].frame.outcome = outcome;
}

/// End the transmissions of `senders`: their signals end, receptions are finished, and the frames
/// are counted and reported.
void Medium::end_frames(const std::vector<StationIndex>& senders) {
  std::vector<FrameSlot> ended;
  for (const StationIndex sender : senders) {
    Station& station = stations_[sender];
    const FrameSlot slot = *std::exchange(station.transmitting, std::nullopt);
    ended.push_back(slot);
    station.access.end_busy(now_);
    mark_for_planning(sender);
    if (on_air_[slot].frame.kind == FrameKind::data) data_ends_.erase(data_ends_.find(now_));
    for (const Heard& heard : on_air_[slot].heard) {
      Station& hearer = stations_[heard.receiver];
      std::erase_if(hearer.signals, [slot](const Signal& signal) { return signal.frame == slot; });
      if (!heard.senses) continue;
      hearer.access.end_busy(now_);
      mark_for_planning(heard.receiver);
      const bool is_only_sensed = !hearer.transmitting && !hearer.reception;
      if (config_.eifs_after == EifsAfter::signals && is_only_sensed) hearer.access.note_error();
    }
  }
  for (const FrameSlot slot : ended) {
    for (const Heard& heard : on_air_[slot].heard) {
      const auto& reception = stations_[heard.receiver].reception;
      if (reception && reception->frame == slot) finish_reception(heard.receiver, on_air_[slot]);
    }
    finish_sending(on_air_[slot].frame.from, on_air_[slot].frame);
    const AirFrame& frame = on_air_[slot].frame;
    StationCounters& counters = stations_[frame.from].counters;
    ++counters.frames[kind_index(frame)];
    ++counters.by_outcome[kind_index(frame)][static_cast<std::size_t>(frame.outcome)];
    output_->frames.push_back(frame);
    free_slots_.push_back(slot);
  }
}

}  // namespace nagi::model
