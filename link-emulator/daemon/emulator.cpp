// SPDX-License-Identifier: Apache-2.0
#include "daemon/emulator.hpp"

#include <linux/if_ether.h>
#include <spdlog/spdlog.h>
#include <sys/resource.h>

#include <algorithm>
#include <system_error>

#include "daemon/version.hpp"
#include "io/af_packet.hpp"
#include "io/offloads.hpp"

namespace nagi::daemon {

namespace {

using model::Bytes;
using model::Instant;
using nlohmann::json;

constexpr std::int64_t oldest_epoch_ns = 86'400LL * 1'000'000'000;
constexpr int most_batches = 8;  // read from one port before the others have their turn

Bytes ip_bytes(const io::Frame& frame) {
  return {frame.length > ETH_HLEN ? frame.length - ETH_HLEN : 0U};
}

double seconds(const timeval& time) {
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) / 1e6;
}

json account_of(const Histogram& histogram) {
  json buckets = json::array();
  for (const auto& [upper, number] : histogram.buckets()) buckets.push_back({upper, number});
  return {{"count", histogram.count()},
          {"median", histogram.quantile(0.5)},
          {"p99", histogram.quantile(0.99)},
          {"max", histogram.most()},
          {"histogram", buckets}};
}

}  // namespace

Emulator::Emulator(const Config& config)
    : config_(config),
      time_(config.epoch_realtime_ns),
      started_realtime_ns_(read_clock(CLOCK_REALTIME)) {
  const std::int64_t age = started_realtime_ns_ - time_.epoch_realtime_ns();
  if (age < 0 || age > oldest_epoch_ns) {
    throw InputError("epoch_realtime_ns: the epoch must lie in the last 24 hours; it is " +
                     std::to_string(age / 1'000'000'000) + " s ago");
  }
  std::size_t slot_bytes = 0;
  for (const LinkConfig& link : config.links) {
    for (const std::string& interface : {link.a, link.b}) {
      slot_bytes = std::max(slot_bytes, io::longest_frame(interface));
    }
  }
  pool_ = std::make_unique<io::FramePool>((slot_bytes + 63) / 64 * 64);
  for (const LinkConfig& link : config.links) {
    settle_offloads(link.a);
    settle_offloads(link.b);
    io::Port& a = open(link.a);
    io::Port& b = open(link.b);
    links_.push_back(
        {link.name, link.id, &a, &b,
         std::make_unique<Lane>(link.a_to_b, config.seed, link.id, model::Way::a_to_b, a, b),
         std::make_unique<Lane>(link.b_to_a, config.seed, link.id, model::Way::b_to_a, b, a)});
    lanes_.push_back(links_.back().a_to_b.get());
    lanes_.push_back(links_.back().b_to_a.get());
  }
}

Emulator::~Emulator() {
  for (const SwitchedOff& off : switched_off_) {
    try {
      io::set_offload(off.interface, off.offload, true);
    } catch (const std::system_error& error) {
      spdlog::warn("could not switch {} of {} on again: {}", off.offload, off.interface,
                   error.what());
    }
  }
}

void Emulator::settle_offloads(const std::string& interface) {
  for (const std::string& offload : io::offloads_on(interface)) {
    if (config_.offloads == OffloadPolicy::refuse) {
      throw InputError("interface " + interface + ": " + offload +
                       " is on and would spoil the emulation; switch it off: ethtool -K " +
                       interface + " " + offload + " off");
    }
    io::set_offload(interface, offload, false);
    switched_off_.push_back({interface, offload});
    spdlog::info("switched {} of {} off; it comes back at the end", offload, interface);
  }
  for (const std::string& offload : io::offloads_on(interface)) {
    throw InputError("interface " + interface + ": " + offload +
                     " would not be switched off; use another interface or driver");
  }
}

io::Port& Emulator::open(const std::string& interface) {
  ports_.push_back(io::open_af_packet(interface, *pool_));
  return *ports_.back();
}

std::vector<int> Emulator::descriptors() const {
  std::vector<int> all;
  for (const auto& port : ports_) all.push_back(port->descriptor());
  return all;
}

std::optional<std::int64_t> Emulator::serve(const std::vector<int>& readable) {
  time_.refresh();
  // The clock is read before the sockets are: whatever arrived earlier is then in them, and the
  // model may move up to this instant.
  const Instant now = time_.now();
  for (Lane* lane : lanes_) {
    Instant known = now;
    if (std::ranges::find(readable, lane->in.descriptor()) != readable.end()) {
      known = take_in(*lane, now);
    }
    if (known > lane->model.now()) lane->model.advance(known, departures_);
    settle(*lane);
  }
  for (Lane* lane : lanes_) send(*lane);

  std::optional<Instant> next;
  for (const Lane* lane : lanes_) {
    const auto event = lane->model.next_event();
    if (event && (!next || *event < *next)) next = event;
  }
  if (!next) return std::nullopt;
  return time_.monotonic_ns(*next);
}

Instant Emulator::take_in(Lane& lane, Instant now) {
  bool more = true;
  for (int batch = 0; more && batch < most_batches; ++batch) {
    arrivals_.clear();
    try {
      more = lane.in.receive(arrivals_);
    } catch (const std::system_error& error) {
      more = false;
      notices_.emplace_back(error.what());
      spdlog::warn("{}", notices_.back());
    }
    for (const io::Arrival& arrival : arrivals_) {
      // The kernel stamps a frame before it queues it; we may see it only after that.
      const Instant stamped = time_.from_realtime(arrival.realtime_ns);
      const Instant at = std::max(stamped, lane.model.now());
      lane.arrival_lateness.add((at - stamped).count());
      const io::Slot slot = arrival.frame.slot;
      if (slot >= frames_.size()) frames_.resize(slot + 1);
      frames_[slot] = arrival.frame;
      lane.model.offer({ip_bytes(arrival.frame), slot}, at, departures_);
    }
  }
  return more ? lane.model.now() : now;
}

void Emulator::settle(Lane& lane) {
  for (const model::Departure& departure : departures_) {
    const auto slot = static_cast<io::Slot>(departure.packet.tag);
    if (departure.fate == model::Fate::delivered) {
      lane.outgoing.push_back(frames_[slot]);
      lane.due.push_back(departure.at);
    } else {
      pool_->give_back(slot);
    }
  }
  departures_.clear();
}

void Emulator::send(Lane& lane) {
  if (lane.outgoing.empty()) return;
  lane.out.send(lane.outgoing);
  const Instant sent = time_.now();
  for (const Instant due : lane.due) lane.transit_error.add((sent - due).count());
  for (const io::Frame& frame : lane.outgoing) pool_->give_back(frame.slot);
  lane.outgoing.clear();
  lane.due.clear();
}

json Emulator::account_of(const Lane& lane) {
  const model::DirectionCounters& count = lane.model.counters();
  return {{"config", model::to_json(lane.config)},
          {"packets",
           {{"offered", count.offered},
            {"delivered", count.delivered},
            {"queue_overflows", count.queue_overflows},
            {"channel_losses", count.channel_losses},
            {"held", lane.model.held()}}},
          {"bytes",
           {{"offered", count.offered_bytes.count}, {"delivered", count.delivered_bytes.count}}},
          {"server",
           {{"packets", count.transmitted},
            {"bytes", count.transmitted_bytes.count},
            {"busy_ns", count.transmitting.count()}}},
          {"most_waiting_packets", count.most_waiting},
          {"arrival_lateness_ns", daemon::account_of(lane.arrival_lateness)},
          {"transit_error_ns", daemon::account_of(lane.transit_error)}};
}

json Emulator::account_of(io::Port& port) const {
  const io::PortCounters count = port.counters();
  json switched_off = json::array();
  for (const SwitchedOff& off : switched_off_) {
    if (off.interface == port.interface()) switched_off.push_back(off.offload);
  }
  return {{"interface", port.interface()},
          {"received", count.received},
          {"sent", count.sent},
          {"socket_drops", count.socket_drops},
          {"oversized", count.oversized},
          {"checksum_missing", count.checksum_missing},
          {"send_failures", count.send_failures},
          {"offloads_switched_off", switched_off}};
}

json Emulator::account(bool complete) {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  json links = json::array();
  for (const Link& link : links_) {
    links.push_back({{"name", link.name},
                     {"id", link.id},
                     {"a", account_of(*link.a)},
                     {"b", account_of(*link.b)},
                     {"a_to_b", account_of(*link.a_to_b)},
                     {"b_to_a", account_of(*link.b_to_a)}});
  }
  return {{"schema_version", 1},
          {"program", "nagi-link"},
          {"version", program_version},
          {"io", "af_packet"},
          {"scheduling", scheduling_},
          {"complete", complete},
          {"seed", config_.seed},
          {"epoch_realtime_ns", time_.epoch_realtime_ns()},
          {"started_realtime_ns", started_realtime_ns_},
          {"ended_realtime_ns", read_clock(CLOCK_REALTIME)},
          {"cpu",
           {{"user_s", seconds(usage.ru_utime)},
            {"system_s", seconds(usage.ru_stime)},
            {"max_resident_bytes", usage.ru_maxrss * 1024}}},
          {"notices", notices_},
          {"links", links}};
}

}  // namespace nagi::daemon
