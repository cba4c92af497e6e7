// SPDX-License-Identifier: Apache-2.0
//
// Configuration, events and the interface of the model.
#include "model/medium/medium.hpp"

#include <algorithm>
#include <utility>

namespace nagi::model {

namespace {

std::vector<Position> initial_positions(const MediumConfig& config) {
  std::vector<Position> positions;
  for (const StationConfig& station : config.stations) positions.push_back(station.position);
  return positions;
}

}  // namespace

Medium::Medium(const MediumConfig& config, std::uint64_t seed, std::uint32_t id)
    : config_(config),
      seed_(seed),
      id_(id),
      phy_(config.phy),
      reach_(config.reach, initial_positions(config)) {
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
  output_ = &events;
  Station& station = stations_[from];
  ++station.counters.offered;
  station.counters.offered_bytes += packet.size;
  std::optional<Bytes> in_service;
  if (station.sending) in_service = station.sending->packet.size;
  // A packet that arrives while the air is busy must back off.
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
  output_ = &events;
  while (!events_.empty()) {
    const Event& next = events_.top();
    if (!is_valid(next)) {
      events_.pop();
      continue;
    }
    if (next.at > to || (next.at == to && next.phase == Phase::begin)) break;
    const Phase phase = next.phase;
    now_ = next.at;
    const std::vector<StationIndex> stations = pop_events();
    if (phase == Phase::begin) {
      begin_frames(stations);
    } else if (phase == Phase::end) {
      end_frames(stations);
    } else {
      for (const StationIndex station : stations) {
        if (phase == Phase::move) move(station);
        if (phase == Phase::timeout) time_out(station);
        if (phase == Phase::reservation_check) check_reservation(station);
      }
    }
    plan_marked_stations();
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
  events_.push({at, phase, station, ++stations_[station].versions[index_of(phase)]});
}

std::vector<StationIndex> Medium::pop_events() {
  const Instant at = events_.top().at;
  const Phase phase = events_.top().phase;
  std::vector<StationIndex> stations;
  while (!events_.empty() && events_.top().at == at && events_.top().phase == phase) {
    if (is_valid(events_.top())) {
      stations.push_back(events_.top().station);
      cancel(events_.top().station, phase);
    }
    events_.pop();
  }
  return stations;
}

void Medium::mark_for_planning(StationIndex station) {
  if (std::exchange(stations_[station].awaits_planning, true)) return;
  stations_to_plan_.push_back(station);
}

void Medium::plan_marked_stations() {
  for (const StationIndex station : stations_to_plan_) {
    stations_[station].awaits_planning = false;
    plan_access(station);
  }
  stations_to_plan_.clear();
}

}  // namespace nagi::model
