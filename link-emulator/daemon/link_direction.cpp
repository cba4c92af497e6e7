// SPDX-License-Identifier: Apache-2.0
#include "daemon/link_direction.hpp"

#include <linux/if_ether.h>

#include <algorithm>
#include <utility>
#include <variant>

#include "io/ip_header.hpp"

namespace nagi::daemon {

namespace {

using nlohmann::json;

constexpr std::int64_t late_event_ns = 1'000'000;
constexpr std::size_t max_postponed = 1024;
constexpr int max_batches = 8;  // number of reads from one port before the next port

Bytes ip_bytes(const io::Frame& frame) {
  return {frame.length > ETH_HLEN ? frame.length - ETH_HLEN : 0U};
}

}  // namespace

LinkDirection::LinkDirection(std::uint8_t number, const model::DirectionConfig& config,
                             std::unique_ptr<model::Direction> model,
                             std::unique_ptr<RadioSocket> socket, io::Port& in, io::Port& out,
                             const Shared& shared)
    // Braces guarantee the order of evaluation.
    : LinkDirection{number, config, model.get(), nullptr, std::move(model), std::move(socket),
                    in,     out,    shared} {}

LinkDirection::LinkDirection(std::uint8_t number, const model::DirectionConfig& config,
                             std::unique_ptr<FpgaDirection> core, io::Port& in, io::Port& out,
                             const Shared& shared)
    : LinkDirection{number,  config, nullptr, core.get(), std::move(core),
                    nullptr, in,     out,     shared} {}

LinkDirection::LinkDirection(std::uint8_t number, const model::DirectionConfig& config,
                             model::Direction* local, FpgaDirection* core,
                             std::unique_ptr<model::DirectionModel> model,
                             std::unique_ptr<RadioSocket> socket, io::Port& in, io::Port& out,
                             const Shared& shared)
    : number_(number),
      config_(config),
      model_(std::move(model)),
      local_(local),
      core_(core),
      in_(in),
      out_(out),
      time_(shared.time),
      ports_(shared.ports),
      pool_(shared.ports.pool()),
      recorder_(shared.recorder),
      transmissions_(number, std::move(socket), pool_, recorder_) {}

Instant LinkDirection::read_arrivals(Instant now) {
  if (local_ != nullptr) transmissions_.take_outcomes(*local_);
  while (!postponed_.empty() && offer_arrival(postponed_.front())) postponed_.pop_front();
  // Frames that the model cannot accept yet are also read, because waiting frames would keep this
  // process awake.
  has_unread_ = true;
  for (int batch = 0; has_unread_ && batch < max_batches && postponed_.size() < max_postponed;
       ++batch) {
    arrivals_.clear();
    has_unread_ = ports_.receive(in_, arrivals_);
    for (const io::Arrival& arrival : arrivals_) {
      if (!postponed_.empty() || !offer_arrival(arrival)) postponed_.push_back(arrival);
    }
  }
  return has_unread_ || !postponed_.empty() ? model_->now() : now;
}

bool LinkDirection::offer_arrival(const io::Arrival& arrival) {
  // The kernel stamps a frame before it queues it, so the model may be ahead of the timestamp.
  const Instant stamped = time_.from_monotonic(arrival.monotonic_ns);
  Instant at = std::max(stamped, model_->now());
  if (local_ == nullptr) at = fpga::next_tick(at);
  if (socket() != nullptr) {
    model_->advance(at, departures_);
    if (awaits_outcome()) return false;
  }
  arrival_lateness_.add((at - stamped).count());
  const io::Frame& frame = arrival.frame;
  const io::IpHeader header({pool_.data(frame.slot) + frame.offset, frame.length});
  pool_.note<HeldFrame>(frame.slot) = {at, frame, static_cast<std::uint32_t>(arrived_++),
                                       recorder_.has_packets() ? header.identity() : 0};
  const std::uint32_t flow = local_ != nullptr && local_->distinguishes_flows() ? header.flow() : 0;
  model_->offer({ip_bytes(frame), frame.slot, model::Ecn{header.ecn()}, flow}, at, departures_);
  return true;
}

void LinkDirection::advance(Instant known) {
  // A model in an FPGA checks this itself.
  if (local_ == nullptr || known > local_->now()) model_->advance(known, departures_);
}

Duration LinkDirection::lookahead() const {
  if (core_ != nullptr) return core_->ahead();
  // A radio must start each transmission at its time, so no packet can be taken ahead of time.
  return local_ == nullptr || socket() != nullptr ? Duration{} : local_->min_delay();
}

void LinkDirection::take_in_flight() {
  if (local_ != nullptr) local_->take_in_flight(departures_);
  if (core_ != nullptr) core_->take_in_flight(departures_);
}

void LinkDirection::process_departures() {
  model_->take_departures(departures_);
  if (local_ != nullptr) transmissions_.process(*local_);
  for (const model::Departure& departure : departures_) {
    if (departure.is_copy) {
      due_.push_back(copy_of(departure));
    } else if (departure.fate == model::Fate::delivered) {
      due_.push_back(departure);
    } else {
      drop(departure);
    }
  }
  departures_.clear();
}

void LinkDirection::drop(const model::Departure& departure) {
  const HeldFrame& held = held_frame(pool_, departure.packet);
  recorder_.record_drop(number_, departure, time_.realtime_ns(departure.at),
                        bytes_of(pool_, held.frame));
  recorder_.record_departure(number_, held, departure, 0);
  pool_.give_back(held.frame.slot);
}

model::Departure LinkDirection::copy_of(const model::Departure& departure) {
  const HeldFrame original = held_frame(pool_, departure.packet);
  const io::Slot slot = pool_.take();
  HeldFrame& held = pool_.note<HeldFrame>(slot);
  held = original;
  held.frame.slot = slot;
  held.frame.offset = 0;
  std::ranges::copy(bytes_of(pool_, original.frame), pool_.data(slot));
  model::Departure copy = departure;
  copy.packet.tag = slot;
  return copy;
}

const HeldFrame& LinkDirection::prepare_frame(const model::Departure& departure) {
  const HeldFrame& held = held_frame(pool_, departure.packet);
  if (departure.packet.marked || departure.packet.corrupted) {
    io::IpHeader header({pool_.data(held.frame.slot) + held.frame.offset, held.frame.length});
    if (departure.packet.marked) header.mark();
    if (departure.packet.corrupted) header.corrupt();
  }
  return held;
}

void LinkDirection::note_handed_over(const HeldFrame& held, const model::Departure& departure,
                                     std::int64_t late_ns) {
  transit_error_.add(late_ns);
  if (late_ns > late_event_ns) ++late_events_;
  recorder_.record_departure(number_, held, departure, late_ns);
}

void LinkDirection::note_handed_over_ahead(const HeldFrame& held,
                                           const model::Departure& departure) {
  recorder_.record_departure(number_, held, departure, 0);
}

json LinkDirection::change(const json& changes, const json::json_pointer& where) {
  if (local_ == nullptr) {
    throw ConfigError(where, "a link in an FPGA cannot change while it runs",
                      "start nagi-link with another configuration");
  }
  const model::DirectionConfig config = model::apply_changes(config_, changes, where);
  if (std::holds_alternative<model::RadioLoss>(config.loss) != local_->is_radio()) {
    throw ConfigError(
        where / "loss",
        local_->is_radio() ? "this direction is a radio" : "this direction is not a radio",
        "start nagi-link again with another configuration, or keep the loss model");
  }

  const Instant now = std::max(read_arrivals(time_.now()), model_->now());
  local_->change(config, now, departures_);
  process_departures();
  config_ = config;
  changes_.push_back({now, model::to_json(config)});
  return changes_.back().config;
}

void LinkDirection::finish() {
  process_departures();
  model_->for_each_held([this](const model::Packet& packet) {
    recorder_.record_held(number_, held_frame(pool_, packet), packet);
  });
  transmissions_.finish();
}

json LinkDirection::account() const {
  const model::DirectionCounters& count = model_->counters();
  json changes = json::array();
  for (const Change& change : changes_) {
    changes.push_back({{"at_ns", change.at.time_since_epoch().count()}, {"config", change.config}});
  }
  json account = {
      {"config", model::to_json(config_)},
      {"changes", changes},
      {"packets",
       {{"offered", count.offered},
        {"delivered", count.delivered},
        {"queue_overflows", count.queue_overflows},
        {"aqm_drops", count.aqm_drops},
        {"channel_losses", count.channel_losses},
        {"held", model_->held()},
        {"marked", count.marked},
        {"corrupted", count.corrupted},
        {"duplicated", count.duplicated},
        {"reordered", count.reordered}}},
      {"bytes",
       {{"offered", count.offered_bytes.count}, {"delivered", count.delivered_bytes.count}}},
      {"server",
       {{"packets", count.transmitted},
        {"bytes", count.transmitted_bytes.count},
        {"busy_ns", count.transmitting.count()}}},
      {"max_waiting_packets", count.max_waiting},
      {"arrival_lateness_ns", runtime::account_of(arrival_lateness_)},
      {"transit_error_ns", runtime::account_of(transit_error_)},
      {"late_events", late_events_}};
  if (core_ != nullptr) account["core"] = core_->account();
  if (local_ != nullptr && local_->reports_transmissions())
    account["transmissions"] = transmissions_.account();
  return account;
}

}  // namespace nagi::daemon
