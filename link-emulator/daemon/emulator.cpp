// SPDX-License-Identifier: Apache-2.0
#include "daemon/emulator.hpp"

#include <linux/if_ether.h>

#include <algorithm>
#include <limits>

#include "io/ip_header.hpp"

namespace nagi::daemon {

namespace {

using io::read_clock;
using model::Bytes;
using model::Instant;
using nlohmann::json;

constexpr std::int64_t late_event_ns = 1'000'000;
constexpr int most_batches = 8;  // read from one port before the others have their turn

io::Slot slot_of(const model::Packet& packet) { return static_cast<io::Slot>(packet.tag); }

Bytes ip_bytes(const io::Frame& frame) {
  return {frame.length > ETH_HLEN ? frame.length - ETH_HLEN : 0U};
}

std::vector<std::string> interfaces_of(const Config& config) {
  std::vector<std::string> all;
  for (const LinkConfig& link : config.links) all.insert(all.end(), {link.a, link.b});
  return all;
}

/// As far as the configuration says.
Expected expected_of(const Config& config) {
  double frames = 0;
  Expected expected;
  for (const LinkConfig& link : config.links) {
    for (const model::DirectionConfig* direction : {&link.a_to_b, &link.b_to_a}) {
      const auto rate = model::mean_rate(direction->rate);
      expected.rates.push_back(rate);
      const auto* delay = std::get_if<model::Duration>(&direction->delay);
      if (!rate || delay == nullptr) continue;
      frames += static_cast<double>(rate->bits_per_second) / static_cast<double>(usual_frame_bits) *
                std::chrono::duration<double>(*delay).count();
      const auto* packets = std::get_if<model::Packets>(&direction->queue);
      if (packets != nullptr) frames += static_cast<double>(packets->count);
    }
  }
  constexpr double most = 1e9;
  expected.frames_in_flight = static_cast<std::size_t>(std::min(frames, most));
  return expected;
}

const char* cause_of(model::Fate fate) {
  return fate == model::Fate::queue_overflow ? "queue overflow" : "channel loss";
}

}  // namespace

Emulator::Emulator(const Config& config)
    : config_(config),
      time_(config.epoch_realtime_ns),
      started_realtime_ns_(read_clock(CLOCK_REALTIME)),
      ports_(config, interfaces_of(config), expected_of(config), notices_),
      pool_(ports_.pool()) {
  open_files();
  for (const LinkConfig& link : config.links) {
    io::Port& a = ports_.open(link.a);
    io::Port& b = ports_.open(link.b);
    const auto lane = [&](model::Way way) {
      const bool back = way == model::Way::b_to_a;
      auto made = std::make_unique<Lane>(static_cast<std::uint8_t>(lanes_.size()),
                                         back ? link.b_to_a : link.a_to_b, config.seed, link.id,
                                         way, back ? b : a, back ? a : b);
      if (config.virtual_time) {
        made->ahead = std::make_unique<io::TimedSender>(made->out.interface(), pool_);
      }
      return made;
    };
    links_.push_back({link.name, link.id, &a, &b, lane(model::Way::a_to_b), nullptr});
    lanes_.push_back(links_.back().a_to_b.get());
    links_.back().b_to_a = lane(model::Way::b_to_a);
    lanes_.push_back(links_.back().b_to_a.get());
  }
}

void Emulator::open_files() {
  if (!config_.packets.empty()) {
    packets_ = make_file<io::BackgroundFile>(config_.packets);
    const PacketRecordHeader header;
    packets_->append(std::as_bytes(std::span(&header, 1)));
  }
  if (!config_.drops.empty()) {
    std::vector<std::string> names;
    for (const LinkConfig& link : config_.links) {
      names.push_back(link.name + ".a_to_b");
      names.push_back(link.name + ".b_to_a");
    }
    drops_ = make_file<PcapngFile>(config_.drops, "nagi-link", names, PcapngFile::headers);
  }
}

model::Duration Emulator::patience() const {
  if (!is_free_to_ask()) return {};  // only poll says which ports have frames
  model::Duration least = model::Duration::max();
  for (const Lane* lane : lanes_) least = std::min(least, lane->model.least_delay());
  return least;
}

Served Emulator::serve(const std::vector<int>& readable) {
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
    served.frames += lane->arrived - arrived + lane->due.size();
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

Served Emulator::serve_ahead() {
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
  const Held& held = pool_.note<Held>(slot_of(departure.packet));
  if (departure.packet.marked) {
    io::IpHeader({pool_.data(held.frame.slot) + held.frame.offset, held.frame.length}).mark();
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
    more = ports_.receive(lane.in, arrivals_);
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
  const io::IpHeader header({pool_.data(frame.slot) + frame.offset, frame.length});
  pool_.note<Held>(frame.slot) = {at, frame, static_cast<std::uint32_t>(lane.arrived++),
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
  const Held& held = pool_.note<Held>(slot);
  if (drops_) {
    drops_->add(lane.number, time_.realtime_ns(departure.at), pool_.data(slot) + held.frame.offset,
                held.frame.length, cause_of(departure.fate));
  }
  record(lane, held, departure.packet, departure.at.time_since_epoch().count(),
         fate_code(departure.fate, departure.packet), 0);
  pool_.give_back(slot);
}

void Emulator::send(Lane& lane) {
  if (lane.due.empty()) return;
  frames_.clear();
  leaving_.clear();
  // After a long delay a note is in no cache any more.
  for (const model::Departure& departure : lane.due) {
    __builtin_prefetch(&pool_.note<Held>(slot_of(departure.packet)));
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

json Emulator::answer(const json& request) {
  model::ObjectReader reader(request, json::json_pointer());
  const std::string command = reader.text("command");
  if (command == "set") return {{"ok", true}, {"config", change(std::move(reader))}};
  reader.finish();
  if (command == "show") return {{"ok", true}, {"account", account(false)}};
  if (command == "stop") {
    stopped_ = true;
    return {{"ok", true}};
  }
  throw model::ConfigError(reader.at("command"), "unknown command \"" + command + "\"",
                           R"("show", "set" or "stop")");
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
      record(*lane, pool_.note<Held>(slot_of(packet)), packet, 0,
             static_cast<std::uint8_t>((fate_code(model::Fate::delivered, packet) & ~fate_mask) |
                                       fate_held),
             0);
    });
  const auto close = [this](const std::string& path, io::BackgroundFile& file) {
    const std::string trouble = close_file(path, file);
    if (!trouble.empty()) notices_.add(trouble);
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
  return ports_.account_of(port, count);
}

json Emulator::account(bool complete) {
  json links = json::array();
  for (const Link& link : links_) {
    links.push_back({{"name", link.name},
                     {"id", link.id},
                     {"a", account_of(*link.a)},
                     {"b", account_of(*link.b)},
                     {"a_to_b", account_of(*link.a_to_b)},
                     {"b_to_a", account_of(*link.b_to_a)}});
  }
  json account = account_head("nagi-link", config_, privileges_, complete);
  account.update(
      {{"epoch_realtime_ns", time_.epoch_realtime_ns()},
       {"started_realtime_ns", started_realtime_ns_},
       {"ended_realtime_ns", read_clock(CLOCK_REALTIME)},
       {"records_lost", (packets_ ? packets_->lost() : 0) + (drops_ ? drops_->file().lost() : 0)},
       {"notices", notices_.all()},
       {"links", links}});
  return account;
}

}  // namespace nagi::daemon
