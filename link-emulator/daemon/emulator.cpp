// SPDX-License-Identifier: Apache-2.0
#include "daemon/emulator.hpp"

#include <linux/if_ether.h>
#include <spdlog/spdlog.h>
#include <sys/resource.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <limits>
#include <system_error>

#include "daemon/version.hpp"
#include "io/input_error.hpp"
#include "io/interface.hpp"
#include "io/ip_header.hpp"
#include "io/offloads.hpp"

namespace nagi::daemon {

namespace {

using io::read_clock;
using model::Bytes;
using model::Instant;
using nlohmann::json;

constexpr std::int64_t oldest_epoch_ns = 86'400LL * 1'000'000'000;
constexpr std::int64_t late_event_ns = 1'000'000;
constexpr int most_batches = 8;  // read from one port before the others have their turn
constexpr std::size_t slots_at_start = 4096;
constexpr std::uint64_t frame_bits = 8 * 1000;  // of usual frames, to reckon how many there will be

io::Slot slot_of(const model::Packet& packet) { return static_cast<io::Slot>(packet.tag); }

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

/// About how many frames a configuration keeps on their way at once, as far as it says; frames
/// beyond that are copied, which costs time but loses nothing.
std::size_t frames_in_flight(const Config& config) {
  constexpr double most = 65536;  // 134 MB
  double frames = 0;
  for (const LinkConfig& link : config.links) {
    for (const model::DirectionConfig* direction : {&link.a_to_b, &link.b_to_a}) {
      const auto rate = model::mean_rate(direction->rate);
      const auto* delay = std::get_if<model::Duration>(&direction->delay);
      if (!rate || delay == nullptr) continue;
      frames += static_cast<double>(rate->bits_per_second) / static_cast<double>(frame_bits) *
                std::chrono::duration<double>(*delay).count();
      const auto* packets = std::get_if<model::Packets>(&direction->queue);
      if (packets != nullptr) frames += static_cast<double>(packets->count);
    }
  }
  return static_cast<std::size_t>(std::min(frames, most));
}

/// How many frames a port holds while this process does not run: those of 50 ms at the highest rate
/// asked for, as long as the kernel may give the processor to others. Each takes 2 KB.
std::uint32_t receive_ring(const Config& config) {
  constexpr std::uint64_t least = 4096;  // 160 ms of 25,000 packets/s
  constexpr std::uint64_t without_rate = 8192;
  constexpr std::uint64_t most = 32768;
  std::uint64_t frames = least;
  for (const LinkConfig& link : config.links) {
    for (const model::DirectionConfig* direction : {&link.a_to_b, &link.b_to_a}) {
      const auto rate = model::mean_rate(direction->rate);
      frames = std::max(frames, rate ? rate->bits_per_second / 20 / frame_bits : without_rate);
    }
  }
  return static_cast<std::uint32_t>(std::bit_ceil(std::min(frames, most)));
}

const char* cause_of(model::Fate fate) {
  return fate == model::Fate::queue_overflow ? "queue overflow" : "channel loss";
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
  const std::uint32_t ring = receive_ring(config);
  const std::size_t registered =
      io::registered_slots(config.links.size() * 2, ring, frames_in_flight(config), config.io);
  pool_ = std::make_unique<io::FramePool>((slot_bytes + 63) / 64 * 64, registered);
  pool_->reserve(slots_at_start);
  opener_.emplace(*pool_, config.io, ring);
  open_files();
  for (const LinkConfig& link : config.links) {
    settle_offloads(link.a);
    settle_offloads(link.b);
    io::Port& a = open(link.a);
    io::Port& b = open(link.b);
    const auto lane = [&](model::Way way) {
      const bool back = way == model::Way::b_to_a;
      auto made = std::make_unique<Lane>(static_cast<std::uint8_t>(lanes_.size()),
                                         back ? link.b_to_a : link.a_to_b, config.seed, link.id,
                                         way, back ? b : a, back ? a : b);
      if (config.virtual_time) {
        made->ahead = std::make_unique<io::TimedSender>(made->out.interface(), *pool_);
      }
      return made;
    };
    links_.push_back({link.name, link.id, &a, &b, lane(model::Way::a_to_b), nullptr});
    lanes_.push_back(links_.back().a_to_b.get());
    links_.back().b_to_a = lane(model::Way::b_to_a);
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

void Emulator::notice(const std::string& text) {
  notices_.push_back(text);
  spdlog::warn("{}", text);
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
  const auto opening = [&] {
    try {
      return opener_->open(interface);
    } catch (const std::system_error& error) {
      if (error.code().value() != EBUSY) throw;
      throw InputError("interface " + interface + ": another program takes its packets (" +
                       error.what() + "); end that one, or give another interface");
    }
  };
  io::Opened opened = opening();
  if (!opened.fallback.empty()) {
    notice(interface +
           " uses AF_PACKET, which takes more time a packet than AF_XDP: " + opened.fallback);
  }
  ports_.push_back(std::move(opened.port));
  return *ports_.back();
}

void Emulator::open_files() {
  const auto made = [](const std::string& path, auto&& make) {
    try {
      return make();
    } catch (const std::system_error& error) {
      throw InputError(path + ": cannot write it: " + error.code().message() +
                       "; give a path in a directory that exists and is yours");
    }
  };
  if (!config_.packets.empty()) {
    packets_ = made(config_.packets,
                    [&] { return std::make_unique<io::BackgroundFile>(config_.packets); });
    const PacketRecordHeader header;
    packets_->append(std::as_bytes(std::span(&header, 1)));
  }
  if (!config_.drops.empty()) {
    std::vector<std::string> names;
    for (const LinkConfig& link : config_.links) {
      names.push_back(link.name + ".a_to_b");
      names.push_back(link.name + ".b_to_a");
    }
    drops_ = made(config_.drops, [&] {
      return std::make_unique<DropLog>(config_.drops, std::string("nagi-link ") + program_version,
                                       names);
    });
  }
}

std::vector<int> Emulator::descriptors() const {
  std::vector<int> all;
  for (const auto& port : ports_) all.push_back(port->descriptor());
  return all;
}

bool Emulator::is_free_to_ask() const {
  return std::ranges::all_of(ports_, [](const auto& port) { return port->is_free_to_ask(); });
}

model::Duration Emulator::patience() const {
  if (!is_free_to_ask()) return {};  // only poll says which ports have frames
  model::Duration least = model::Duration::max();
  for (const Lane* lane : lanes_) least = std::min(least, lane->model.least_delay());
  return least;
}

Emulator::Served Emulator::serve(const std::vector<int>& readable) {
  // The clock is read before the ports are: whatever arrived earlier is then in them, and the model
  // may move up to this instant.
  const Instant now = time_.now();
  Served served;
  served.now_ns = time_.monotonic_ns(now);
  for (Lane* lane : lanes_) {
    const std::uint64_t arrived = lane->arrived;
    const bool may_have_frames =
        lane->in.is_free_to_ask() ||
        std::ranges::find(readable, lane->in.descriptor()) != readable.end();
    bring_on(*lane, may_have_frames ? take_in(*lane, now) : now);
    settle(*lane);
    if (lane->arrived != arrived || !lane->due.empty()) served.idle = false;
  }
  for (Lane* lane : lanes_) send(*lane);

  std::optional<Instant> next;
  for (const Lane* lane : lanes_) {
    const auto delivery = lane->model.next_delivery();
    if (delivery && (!next || *delivery < *next)) next = delivery;
    served.quiet = served.quiet && !delivery;
  }
  if (next) served.next_delivery_ns = time_.monotonic_ns(*next);
  return served;
}

Emulator::Served Emulator::serve_ahead() {
  const Instant now = time_.now();
  Served served;
  served.now_ns = time_.monotonic_ns(now);
  for (Lane* lane : lanes_) {
    bring_on(*lane, take_in(*lane, now));
    lane->model.take_under_way(departures_);
    settle(*lane);
    send_ahead(*lane, now);
    served.quiet = served.quiet && lane->model.held() == 0;
  }
  return served;
}

void Emulator::bring_on(Lane& lane, Instant known) {
  if (known > lane.model.now()) lane.model.advance(known, departures_);
}

const Emulator::Held& Emulator::leaving(const model::Departure& departure) {
  const Held& held = pool_->note<Held>(slot_of(departure.packet));
  if (departure.packet.marked) {
    io::IpHeader({pool_->data(held.frame.slot) + held.frame.offset, held.frame.length}).mark();
  }
  return held;
}

void Emulator::send_ahead(Lane& lane, Instant now) {
  if (lane.due.empty()) return;
  timed_.clear();
  for (const model::Departure& departure : lane.due) {
    const Held& held = leaving(departure);
    timed_.push_back({held.frame, time_.monotonic_ns(departure.at)});
    const std::int64_t late = std::max<std::int64_t>((now - departure.at).count(), 0);
    if (late > 0) lane.transit_error.add(late);
    if (late > late_event_ns) ++lane.late_events;
    record(lane, held, departure.packet, departure.at.time_since_epoch().count(),
           fate_code(departure.fate, departure.packet), late);
  }
  const std::uint64_t failed = lane.ahead->send(timed_);
  lane.sent_ahead += timed_.size() - failed;
  lane.not_sent_ahead += failed;
  lane.due.clear();
}

Instant Emulator::take_in(Lane& lane, Instant now) {
  bool more = true;
  for (int batch = 0; more && batch < most_batches; ++batch) {
    arrivals_.clear();
    try {
      more = lane.in.receive(arrivals_);
    } catch (const std::system_error& error) {
      more = false;
      notice(error.what());
    }
    for (const io::Arrival& arrival : arrivals_) take_in(lane, arrival);
  }
  return more ? lane.model.now() : now;
}

void Emulator::take_in(Lane& lane, const io::Arrival& arrival) {
  // The kernel stamps a frame before it queues it; we may see it only after that.
  const Instant stamped = time_.from_monotonic(arrival.monotonic_ns);
  const Instant at = std::max(stamped, lane.model.now());
  lane.arrival_lateness.add((at - stamped).count());
  const io::Frame& frame = arrival.frame;
  const io::IpHeader header({pool_->data(frame.slot) + frame.offset, frame.length});
  pool_->note<Held>(frame.slot) = {at, frame, static_cast<std::uint32_t>(lane.arrived++),
                                   packets_ ? header.identity() : 0};
  lane.model.offer({ip_bytes(frame), frame.slot, header.is_ecn_capable()}, at, departures_);
}

void Emulator::settle(Lane& lane) {
  for (const model::Departure& departure : departures_) {
    if (departure.fate == model::Fate::delivered) {
      lane.due.push_back(departure);
    } else {
      drop(lane, departure);
    }
  }
  departures_.clear();
}

void Emulator::drop(const Lane& lane, const model::Departure& departure) {
  const io::Slot slot = slot_of(departure.packet);
  const Held& held = pool_->note<Held>(slot);
  if (drops_) {
    drops_->add(lane.number, time_.realtime_ns(departure.at), pool_->data(slot) + held.frame.offset,
                held.frame.length, cause_of(departure.fate));
  }
  record(lane, held, departure.packet, departure.at.time_since_epoch().count(),
         fate_code(departure.fate, departure.packet), 0);
  pool_->give_back(slot);
}

void Emulator::send(Lane& lane) {
  if (lane.due.empty()) return;
  frames_.clear();
  leaving_.clear();
  // After a long delay a note is in no cache any more.
  for (const model::Departure& departure : lane.due) {
    __builtin_prefetch(&pool_->note<Held>(slot_of(departure.packet)));
  }
  for (const model::Departure& departure : lane.due) {
    const Held& held = leaving(departure);
    frames_.push_back(held.frame);
    if (packets_) leaving_.push_back(held);
  }
  // A frame is handed over when the kernel is done with those before it. What the kernel then does
  // with it, the far end's receiving included, is no longer ours.
  const Instant begun = time_.now();
  lane.out.send(frames_);
  const double each =
      static_cast<double>((time_.now() - begun).count()) / static_cast<double>(frames_.size());
  double waited = 0;
  for (std::size_t i = 0; i < lane.due.size(); ++i) {
    const model::Departure& departure = lane.due[i];
    const auto late = (begun - departure.at).count() + static_cast<std::int64_t>(waited);
    waited += each;
    lane.transit_error.add(late);
    if (late > late_event_ns) ++lane.late_events;
    if (packets_) {
      record(lane, leaving_[i], departure.packet, departure.at.time_since_epoch().count(),
             fate_code(departure.fate, departure.packet), late);
    }
  }
  lane.due.clear();
}

void Emulator::record(const Lane& lane, const Held& held, const model::Packet& packet,
                      std::int64_t left_ns, std::uint8_t fate, std::int64_t late_ns) {
  if (!packets_) return;
  const PacketRecord record = {held.arrived.time_since_epoch().count(),
                               left_ns,
                               held.index,
                               held.identity,
                               static_cast<std::int32_t>(std::min<std::int64_t>(
                                   late_ns, std::numeric_limits<std::int32_t>::max())),
                               static_cast<std::uint16_t>(packet.size.count),
                               lane.number,
                               fate};
  packets_->append(std::as_bytes(std::span(&record, 1)));
}

Emulator::Lane& Emulator::lane_of(model::ObjectReader& request) {
  const std::string name = request.text("link");
  const std::string way = request.text("way");
  const auto link = std::ranges::find(links_, name, &Link::name);
  if (link == links_.end()) {
    std::string known;
    for (const Link& each : links_) known += (known.empty() ? "" : ", ") + each.name;
    throw model::ConfigError(request.at("link"), "there is no link " + name, "links: " + known);
  }
  if (way != "a_to_b" && way != "b_to_a") {
    throw model::ConfigError(request.at("way"), "unknown way \"" + way + "\"",
                             R"("a_to_b" or "b_to_a")");
  }
  return way == "a_to_b" ? *link->a_to_b : *link->b_to_a;
}

json Emulator::change(model::ObjectReader request) {
  Lane& lane = lane_of(request);
  const json& wanted = request.any("config");
  const auto where = request.at("config");
  request.finish();
  const model::DirectionConfig config = model::changed(lane.config, wanted, where);

  const Instant now = std::max(take_in(lane, time_.now()), lane.model.now());
  lane.model.change(config, now, departures_);
  settle(lane);
  lane.config = config;
  lane.changes.push_back({now, model::to_json(config)});
  return lane.changes.back().config;
}

void Emulator::finish() {
  for (const Lane* lane : lanes_)
    lane->model.for_each_held([&](const model::Packet& packet) {
      record(*lane, pool_->note<Held>(slot_of(packet)), packet, 0,
             static_cast<std::uint8_t>((fate_code(model::Fate::delivered, packet) & ~fate_mask) |
                                       fate_held),
             0);
    });
  const auto close = [this](const std::string& path, io::BackgroundFile& file) {
    const std::string trouble = file.close();
    if (file.lost() != 0 || !trouble.empty()) {
      notice(path + " is not complete" + (trouble.empty() ? "" : ": " + trouble) + "; " +
             std::to_string(file.lost()) + " records were lost");
    }
  };
  if (packets_) close(config_.packets, *packets_);
  if (drops_) close(config_.drops, drops_->file());
}

json Emulator::account_of(const Lane& lane) {
  const model::DirectionCounters& count = lane.model.counters();
  json changes = json::array();
  for (const Change& change : lane.changes) {
    changes.push_back({{"at_ns", change.at.time_since_epoch().count()}, {"config", change.config}});
  }
  return {{"config", model::to_json(lane.config)},
          {"changes", changes},
          {"packets",
           {{"offered", count.offered},
            {"delivered", count.delivered},
            {"queue_overflows", count.queue_overflows},
            {"channel_losses", count.channel_losses},
            {"held", lane.model.held()},
            {"marked", count.marked}}},
          {"bytes",
           {{"offered", count.offered_bytes.count}, {"delivered", count.delivered_bytes.count}}},
          {"server",
           {{"packets", count.transmitted},
            {"bytes", count.transmitted_bytes.count},
            {"busy_ns", count.transmitting.count()}}},
          {"most_waiting_packets", count.most_waiting},
          {"arrival_lateness_ns", daemon::account_of(lane.arrival_lateness)},
          {"transit_error_ns", daemon::account_of(lane.transit_error)},
          {"late_events", lane.late_events}};
}

json Emulator::account_of(io::Port& port) const {
  io::PortCounters count = port.counters();
  for (const Lane* lane : lanes_) {
    if (&lane->out != &port) continue;
    count.sent += lane->sent_ahead;
    count.send_failures += lane->not_sent_ahead;
  }
  json switched_off = json::array();
  for (const SwitchedOff& off : switched_off_) {
    if (off.interface == port.interface()) switched_off.push_back(off.offload);
  }
  return {{"interface", port.interface()},
          {"io", port.kind()},
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
  return {
      {"schema_version", 1},
      {"program", "nagi-link"},
      {"version", program_version},
      {"scheduling", privileges_.scheduling},
      {"memory_locked", privileges_.memory_locked},
      {"cpu_pinned", privileges_.cpu ? json(*privileges_.cpu) : json(nullptr)},
      {"spin_ns", config_.spin_ns},
      {"virtual_time", config_.virtual_time},
      {"complete", complete},
      {"seed", config_.seed},
      {"epoch_realtime_ns", time_.epoch_realtime_ns()},
      {"started_realtime_ns", started_realtime_ns_},
      {"ended_realtime_ns", read_clock(CLOCK_REALTIME)},
      {"cpu",
       {{"user_s", seconds(usage.ru_utime)},
        {"system_s", seconds(usage.ru_stime)},
        {"max_resident_bytes", usage.ru_maxrss * 1024}}},
      {"records_lost", (packets_ ? packets_->lost() : 0) + (drops_ ? drops_->file().lost() : 0)},
      {"notices", notices_},
      {"links", links}};
}

}  // namespace nagi::daemon
