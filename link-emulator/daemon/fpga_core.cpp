// SPDX-License-Identifier: Apache-2.0
#include "daemon/fpga_core.hpp"

#include <algorithm>
#include <cerrno>
#include <system_error>
#include <utility>

#include "daemon/held_frame.hpp"
#include "io/input_error.hpp"
#include "model/direction_json.hpp"
#include "runtime/version.hpp"

namespace nagi::daemon {

using model::Departure;
using model::DirectionName;
using nlohmann::json;

namespace {

constexpr std::size_t max_collected = 128;  // arrivals
constexpr Duration max_ahead = std::chrono::milliseconds(1);
constexpr std::int64_t latest_ns = fpga::never / 2;  // later instants count as never

Instant instant(std::int64_t ns) { return Instant{Duration{ns}}; }
std::int64_t nanoseconds(Instant at) { return at.time_since_epoch().count(); }

std::span<const std::byte> bytes_of_text(const std::string& text) {
  return std::as_bytes(std::span(text));
}

std::string text_of(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

Duration whole_ticks(Duration duration) {
  return duration - Duration{duration.count() % fpga::tick_ns};
}

/// Return the least duration of a packet's transmission. The transmission takes longer if work of
/// the previous packet remains.
Duration min_air_time(const model::DirectionConfig& config, const model::Packet& packet) {
  const auto* rate = std::get_if<Bitrate>(&config.rate);
  if (rate == nullptr) return {};
  const auto bits = static_cast<unsigned __int128>((packet.size + config.overhead).count) * 8;
  const auto ns = static_cast<std::int64_t>(bits * 1'000'000'000 / rate->bits_per_second);
  return Duration{std::max<std::int64_t>(ns - 1, 0)};
}

model::Fate fate_of(std::uint8_t code) {
  constexpr std::array fates = {model::Fate::delivered, model::Fate::queue_overflow,
                                model::Fate::channel_loss};
  if (code >= fates.size()) {
    throw std::system_error(EPROTO, std::generic_category(), "unknown fate of a packet");
  }
  return fates.at(code);
}

}  // namespace

FpgaCore::FpgaCore(int socket, std::string name, const FpgaSettings& settings, io::FramePool& pool)
    : name_(std::move(name)),
      min_arrivals_(settings.virtual_time ? max_collected : 1),
      socket_(socket, name_),
      pool_(pool) {
  for (std::size_t i = 0; i < states_.size(); ++i) {
    states_[i].config = settings.directions.at(i);
    const auto* delay = std::get_if<Duration>(&states_[i].config.delay);
    if (delay == nullptr)
      throw InputError(name_ + ": an FPGA needs a constant delay; give `delay_ns`");
    // Use whole ticks, so that this part of the delay does not change how the core rounds.
    if (settings.virtual_time) states_[i].ahead = whole_ticks(std::min(*delay, max_ahead));
    states_[i].delay = *delay - states_[i].ahead;
    states_[i].config.delay = states_[i].delay;
  }
  const json request_json = {{"version", runtime::program_version},
                             {"protocol", fpga::protocol_version},
                             {"link", settings.link},
                             {"seed", settings.seed},
                             {"forward", model::to_json(states_[0].config)},
                             {"backward", model::to_json(states_[1].config)}};
  fpga::MessageWriter request(fpga::Kind::configure);
  request.bytes(bytes_of_text(request_json.dump()));
  ask(request, fpga::Kind::configure);
}

void FpgaCore::report_end() const {
  throw std::system_error(EPIPE, std::generic_category(), name_ + ": nagi-fpga ended");
}

std::span<const std::byte> FpgaCore::ask(fpga::MessageWriter& request, fpga::Kind kind) {
  socket_.send(request);
  fpga::Kind answered{};
  const auto answer = socket_.receive(answered, true);
  if (!answer) report_end();
  if (answered == fpga::Kind::refused) throw InputError(name_ + ": " + text_of(*answer));
  if (answered != kind) {
    throw std::system_error(EPROTO, std::generic_category(),
                            name_ + ": nagi-fpga sent another message than the answer");
  }
  return *answer;
}

void FpgaCore::offer(DirectionName direction, const model::Packet& packet, Instant at) {
  DirectionState& state = state_of(direction);
  state.held.emplace_back(packet);
  ++state.count;
  state.last_arrival = at;
  waiting_.push_back({at, direction, slot_of(packet)});
}

void FpgaCore::advance(DirectionName direction, Instant to) {
  DirectionState& state = state_of(direction);
  state.may_advance_to = std::max(state.may_advance_to, to);
  const Instant known = std::min(states_[0].may_advance_to, states_[1].may_advance_to);
  if (known <= now_) return;
  const bool may_deliver = std::ranges::any_of(states_, [&](const DirectionState& either) {
    return (either.count > 0 && earliest(either) <= known) ||
           (!either.in_flight.empty() && either.in_flight.front().at <= known);
  });
  if (may_deliver || waiting_.size() >= min_arrivals_) advance_core(known);
}

void FpgaCore::catch_up() {
  const Instant known = std::min(states_[0].may_advance_to, states_[1].may_advance_to);
  if (known > now_) advance_core(known);
}

Instant FpgaCore::earliest(const DirectionState& state) const {
  const auto first =
      std::ranges::find_if(state.held, [](const auto& packet) { return packet.has_value(); });
  const HeldFrame& frame = held_frame(pool_, **first);
  const Instant end =
      std::max(frame.arrived, state.last_end) + min_air_time(state.config, **first) + state.delay;
  // The core's next event includes this packet, or precedes it.
  const bool is_in_core = frame.arrived <= now_;
  return fpga::next_tick(is_in_core ? std::max(end, next_) : end);
}

void FpgaCore::advance_core(Instant to) {
  std::ranges::stable_sort(waiting_, {}, &Arrival::at);
  const auto later = std::ranges::upper_bound(waiting_, to, {}, &Arrival::at);
  fpga::MessageWriter request(fpga::Kind::advance);
  request.part(
      fpga::AdvanceHead{nanoseconds(to), static_cast<std::uint32_t>(later - waiting_.begin()), 0});
  for (auto arrival = waiting_.begin(); arrival != later; ++arrival) {
    const io::Frame& frame = pool_.note<HeldFrame>(arrival->slot).frame;
    request.part(fpga::ArrivalHead{nanoseconds(arrival->at),
                                   static_cast<std::uint16_t>(frame.length),
                                   static_cast<std::uint8_t>(arrival->direction),
                                   {}});
    request.bytes(std::as_bytes(bytes_of(pool_, frame)));
  }
  waiting_.erase(waiting_.begin(), later);

  fpga::MessageReader answer(ask(request, fpga::Kind::advance));
  const auto head = answer.part<fpga::AdvancedHead>();
  for (std::uint32_t i = 0; i < head.departures; ++i) {
    const auto departure = answer.part<fpga::DepartureHead>();
    take_departure(departure, answer.bytes(departure.length), to);
  }
  answer.require_end();
  now_ = to;
  next_ = instant(std::clamp(head.next_ns, nanoseconds(to), latest_ns));
}

void FpgaCore::take_departure(const fpga::DepartureHead& head, std::span<const std::byte> frame,
                              Instant to) {
  const std::size_t position = head.direction < states_.size()
                                   ? head.index - states_.at(head.direction).first
                                   : std::size_t{0};
  if (head.direction >= states_.size() || position >= states_.at(head.direction).held.size() ||
      !states_.at(head.direction).held[position]) {
    throw std::system_error(EPROTO, std::generic_category(),
                            name_ + ": the core reports a packet that it did not receive");
  }
  if (head.arrived_ns < 0 || head.left_ns < head.arrived_ns || instant(head.left_ns) > to) {
    throw std::system_error(
        EPROTO, std::generic_category(),
        name_ + ": the core reports a departure before the arrival, or in the future");
  }
  DirectionState& state = states_.at(head.direction);
  model::Packet packet = *state.held[position];
  state.held[position].reset();
  --state.count;
  while (!state.held.empty() && !state.held.front()) {
    state.held.pop_front();
    ++state.first;
  }

  HeldFrame& held = held_frame(pool_, packet);
  const model::Fate fate = fate_of(head.fate);
  if (fate == model::Fate::delivered) {
    const std::span<std::uint8_t> held_bytes = bytes_of(pool_, held.frame);
    if (frame.size() != held_bytes.size()) {
      throw std::system_error(EPROTO, std::generic_category(),
                              name_ + ": the core changed the length of a frame");
    }
    std::ranges::copy(frame, std::as_writable_bytes(held_bytes).begin());
  }
  // The core determines these values of the record.
  held.arrived = instant(head.arrived_ns);
  held.index = head.index;
  held.identity = head.identity;
  packet.size = {head.ip_bytes};
  packet.ecn = model::Ecn{head.ecn};
  packet.marked = head.marked != 0;
  const Instant left = instant(head.left_ns);
  if (fate == model::Fate::delivered) {
    state.last_end = std::max(state.last_end, left - state.delay);
    state.in_flight.push_back({packet, fate, left + state.ahead});
  } else {
    state.departures.push_back({packet, fate, left});
  }
}

void FpgaCore::take_departures(DirectionName direction, std::vector<Departure>& departures) {
  DirectionState& state = state_of(direction);
  while (!state.in_flight.empty() && state.in_flight.front().at <= now_) {
    state.departures.push_back(state.in_flight.front());
    state.in_flight.pop_front();
  }
  departures.insert(departures.end(), state.departures.begin(), state.departures.end());
  state.departures.clear();
}

void FpgaCore::take_in_flight(DirectionName direction, std::vector<Departure>& departures) {
  DirectionState& state = state_of(direction);
  take_departures(direction, departures);
  departures.insert(departures.end(), state.in_flight.begin(), state.in_flight.end());
  state.in_flight.clear();
}

std::optional<Instant> FpgaCore::next_delivery(DirectionName direction) const {
  const DirectionState& state = state_of(direction);
  if (!state.in_flight.empty()) return fpga::next_tick(state.in_flight.front().at);
  if (state.count == 0) return std::nullopt;
  return earliest(state) + state.ahead;
}

Instant FpgaCore::now(DirectionName direction) const {
  return std::max(now_, state_of(direction).last_arrival);
}

std::size_t FpgaCore::held(DirectionName direction) const {
  return state_of(direction).count + state_of(direction).in_flight.size();
}

void FpgaCore::for_each_held(DirectionName direction,
                             const std::function<void(const model::Packet&)>& visit) const {
  for (const auto& packet : state_of(direction).held) {
    if (packet) visit(*packet);
  }
  for (const Departure& departure : state_of(direction).in_flight) visit(departure.packet);
}

const model::DirectionCounters& FpgaCore::counters(DirectionName direction) {
  fpga::MessageWriter request(fpga::Kind::count);
  fpga::MessageReader answer(ask(request, fpga::Kind::count));
  for (DirectionState& state : states_) {
    const auto& count = state.counted = answer.part<fpga::CountsOf>();
    // The loop below adds arrivals that were not sent to the core yet.
    model::DirectionCounters& counters = state.counters;
    counters.offered = count.offered;
    counters.offered_bytes = {count.offered_bytes};
    counters.delivered = count.delivered - state.in_flight.size();
    counters.delivered_bytes = {count.delivered_bytes};
    for (const Departure& departure : state.in_flight) {
      counters.delivered_bytes.count -= departure.packet.size.count;
    }
    counters.queue_overflows = count.queue_overflows + count.memory_overflows;
    counters.channel_losses = count.channel_losses;
    counters.marked = count.marked;
    counters.transmitted = count.transmitted;
    counters.transmitted_bytes = {count.transmitted_bytes};
    counters.transmitting = Duration{count.transmitting_ns};
    counters.max_waiting = count.max_waiting;
  }
  answer.require_end();
  for (const Arrival& arrival : waiting_) {
    model::DirectionCounters& counters = state_of(arrival.direction).counters;
    ++counters.offered;
    counters.offered_bytes += {pool_.note<HeldFrame>(arrival.slot).frame.length};
  }
  return state_of(direction).counters;
}

json FpgaCore::account(DirectionName direction) const {
  const fpga::CountsOf& counted = state_of(direction).counted;
  return {{"tick_ns", fpga::tick_ns},
          {"memory_overflows", counted.memory_overflows},
          {"late_releases", counted.late_releases},
          {"max_late_ns", counted.max_late_ns}};
}

void FpgaDirection::offer(model::Packet packet, Instant at, std::vector<Departure>& departures) {
  core_->offer(name_, packet, at);
  core_->take_departures(name_, departures);
}

void FpgaDirection::advance(Instant to, std::vector<Departure>& departures) {
  core_->advance(name_, to);
  core_->take_departures(name_, departures);
}

}  // namespace nagi::daemon
