// SPDX-License-Identifier: Apache-2.0
#include "daemon/shared_medium.hpp"

#include <linux/if_ether.h>

#include <algorithm>
#include <string_view>
#include <tuple>
#include <utility>

#include "io/ip_header.hpp"
#include "model/medium/medium_json.hpp"

namespace nagi::daemon {

namespace {

using model::AirFrame;
using model::StationIndex;
using nlohmann::json;

constexpr std::int64_t late_event_ns = 1'000'000;
constexpr std::array<std::string_view, 5> kind_names = {"", "rts", "cts", "data", "ack"};
constexpr std::array<std::string_view, model::frame_outcomes> outcome_names = {
    "received",      "channel_errors", "collided",    "hidden_terminal",
    "receiver_busy", "out_of_reach",   "not_answered"};

MacAddress mac_at(const std::uint8_t* bytes) {
  MacAddress mac{};
  std::copy_n(bytes, mac.size(), mac.begin());
  return mac;
}

/// The key of a packet: its slot, which the model uses, and its index, which records use.
std::uint64_t tag_of(io::Slot slot, std::uint32_t index) {
  return std::uint64_t{index} << 32 | slot;
}
std::uint32_t index_of(const model::Packet& packet) {
  return static_cast<std::uint32_t>(packet.tag >> 32);
}

}  // namespace

SharedMedium::SharedMedium(std::uint8_t first_number, const MediumSettings& settings,
                           std::uint64_t seed, std::vector<io::Port*> ports, const Shared& shared)
    : first_number_(first_number),
      settings_(settings),
      model_(settings.config, seed, settings.id),
      ports_(std::move(ports)),
      time_(shared.time),
      all_ports_(shared.ports),
      pool_(shared.ports.pool()),
      recorder_(shared.recorder),
      macs_(settings.stations.size()),
      accounts_(settings.stations.size()),
      due_(settings.stations.size()) {
  if (!settings_.monitor.empty()) {
    monitor_ = std::make_unique<Monitor>(settings_.monitor, settings_.config.phy, settings_.name);
  }
  for (StationIndex station = 0; station < settings_.stations.size(); ++station) {
    if (const auto& mac = settings_.stations[station].mac) {
      macs_[station] = *mac;
      stations_by_mac_[*mac] = station;
    }
  }
}

void SharedMedium::advance(Instant now, const std::vector<int>& readable) {
  arrivals_.clear();
  for (StationIndex station = 0; station < ports_.size(); ++station) {
    const io::Port& port = *ports_[station];
    if (port.is_cheap_to_read() ||
        std::ranges::find(readable, port.descriptor()) != readable.end()) {
      read_arrivals(station);
    }
  }
  std::ranges::stable_sort(
      arrivals_, {}, [](const Arrival& entry) { return std::tuple(entry.at, entry.station); });
  for (const Arrival& arrival : arrivals_) offer(arrival);
  if (now > model_.now()) model_.advance(now, events_);
  for (const auto& delivery : events_.deliveries) copy(delivery);
  events_.deliveries.clear();
}

void SharedMedium::read_arrivals(StationIndex station) {
  bool has_more = true;
  while (has_more) {
    batch_.clear();
    has_more = all_ports_.receive(*ports_[station], batch_);
    for (const io::Arrival& arrival : batch_) {
      arrivals_.push_back({time_.from_monotonic(arrival.monotonic_ns), station, arrival});
    }
  }
}

void SharedMedium::offer(const Arrival& arrival) {
  StationAccount& account = accounts_[arrival.station];
  const Instant at = std::max(arrival.at, model_.now());
  account.arrival_lateness.add((at - arrival.at).count());
  const io::Frame& frame = arrival.arrival.frame;
  std::uint8_t* bytes = pool_.data(frame.slot) + frame.offset;
  if (frame.length < ETH_HLEN) {
    pool_.give_back(frame.slot);
    return;
  }
  const io::IpHeader header({bytes, frame.length});
  const std::uint32_t index = account.arrived++;
  ++arrived_;
  pool_.note<HeldFrame>(frame.slot) = {at, frame, index,
                                       recorder_.has_packets() ? header.identity() : 0};
  model::Packet packet;
  packet.size = {frame.length - ETH_HLEN};
  packet.tag = tag_of(frame.slot, index);
  packet.ecn = model::Ecn{header.ecn()};
  packet.flow = settings_.distinguishes_flows() ? header.flow() : 0;
  packet.next_hop = next_hop(bytes, arrival.station);
  model_.offer(arrival.station, packet, at, events_);
}

/// Return the destination station of a frame, and learn the address of its sender.
StationIndex SharedMedium::next_hop(const std::uint8_t* frame, StationIndex from) {
  const MacAddress source = mac_at(frame + ETH_ALEN);
  macs_[from] = source;
  stations_by_mac_[source] = from;
  if ((frame[0] & 1U) != 0) return model::everybody;
  const auto destination = stations_by_mac_.find(mac_at(frame));
  return destination == stations_by_mac_.end() || destination->second == from ? model::nobody
                                                                              : destination->second;
}

void SharedMedium::copy(const model::MediumEvents::Delivery& delivery) {
  const HeldFrame& held = held_frame(pool_, delivery.packet);
  io::Frame frame = held.frame;
  frame.slot = pool_.take();
  frame.offset = 0;
  std::ranges::copy(bytes_of(pool_, held.frame), pool_.data(frame.slot));
  if (delivery.packet.marked) io::IpHeader({pool_.data(frame.slot), frame.length}).mark();
  due_[delivery.to].push_back({delivery.from, frame, delivery.at, held.frame.slot});
}

std::size_t SharedMedium::hand_over() {
  std::size_t frames = 0;
  for (StationIndex station = 0; station < due_.size(); ++station) {
    frames += due_[station].size();
    hand_over_at(station);
  }
  return frames;
}

void SharedMedium::hand_over_at(StationIndex station) {
  std::vector<Due>& due = due_[station];
  if (due.empty()) return;
  frames_.clear();
  for (const Due& entry : due) frames_.push_back(entry.frame);
  const Instant started = time_.now();
  ports_[station]->send(frames_);
  for (const Due& entry : due) {
    const std::int64_t late = (started - entry.at).count();
    pool_.note<HeldFrame>(entry.original).late_ns = late;
    accounts_[entry.from].transit_error.add(late);
    if (late > late_event_ns) ++accounts_[entry.from].late_events;
  }
  due.clear();
}

void SharedMedium::record_results() {
  for (const AirFrame& frame : events_.frames) record(frame);
  events_.frames.clear();
  for (const auto& [from, departure] : events_.departures) {
    const HeldFrame& held = held_frame(pool_, departure.packet);
    recorder_.record_departure(number(from), held, departure, held.late_ns);
    if (departure.fate != model::Fate::delivered) {
      recorder_.record_drop(number(from), departure, time_.realtime_ns(departure.at),
                            bytes_of(pool_, held.frame));
    }
    pool_.give_back(held.frame.slot);
  }
  events_.departures.clear();
}

void SharedMedium::record(const AirFrame& frame) {
  recorder_.record_frame(number(frame.from), frame, index_of(frame.data));
  if (!monitor_) return;
  const auto mac = [this](StationIndex station) {
    return station < macs_.size() ? macs_[station]
                                  : (station == model::everybody ? broadcast_mac : MacAddress{});
  };
  std::span<const std::uint8_t> data;
  if (frame.kind == model::FrameKind::data) {
    data = bytes_of(pool_, held_frame(pool_, frame.data).frame);
  }
  monitor_->add(frame, mac(frame.to), mac(frame.from), data, time_.realtime_ns(frame.end));
}

void SharedMedium::finish(runtime::Notices& notices) {
  hand_over();
  record_results();
  for (StationIndex station = 0; station < ports_.size(); ++station) {
    model_.for_each_held(station, [&](const model::Packet& packet) {
      recorder_.record_held(number(station), held_frame(pool_, packet), packet);
    });
  }
  if (monitor_) monitor_->close(notices);
}

json SharedMedium::account(const std::function<json(io::Port&)>& account_of) const {
  json stations = json::array();
  for (StationIndex station = 0; station < ports_.size(); ++station) {
    const model::StationCounters& count = model_.counters(station);
    const StationAccount& station_account = accounts_[station];
    json frames = json::object();
    for (std::size_t kind = 1; kind < kind_names.size(); ++kind) {
      json& kind_account = frames[std::string(kind_names[kind])];
      kind_account = {{"sent", count.frames[kind]}};
      for (std::size_t outcome = 0; outcome < outcome_names.size(); ++outcome) {
        kind_account[std::string(outcome_names[outcome])] = count.by_outcome[kind][outcome];
      }
    }
    stations.push_back(
        {{"name", settings_.stations[station].name},
         {"port", account_of(*ports_[station])},
         {"packets",
          {{"offered", count.offered},
           {"delivered", count.delivered},
           {"queue_overflows", count.queue_overflows},
           {"aqm_drops", count.aqm_drops},
           {"given_up", count.given_up},
           {"held", model_.held(station)},
           {"marked", count.marked}}},
         {"bytes",
          {{"offered", count.offered_bytes.count}, {"delivered", count.delivered_bytes.count}}},
         {"max_waiting_packets", count.max_waiting},
         {"on_air_ns", count.on_air.count()},
         {"frames", frames},
         {"arrival_lateness_ns", runtime::account_of(station_account.arrival_lateness)},
         {"transit_error_ns", runtime::account_of(station_account.transit_error)},
         {"late_events", station_account.late_events}});
  }
  return {{"name", settings_.name},
          {"id", settings_.id},
          {"config", model::to_json(settings_.config)},
          {"stations", stations}};
}

}  // namespace nagi::daemon
