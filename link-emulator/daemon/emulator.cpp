// SPDX-License-Identifier: Apache-2.0
#include "daemon/emulator.hpp"

#include <linux/if_ether.h>

#include <algorithm>
#include <cstring>
#include <limits>

#include "io/ip_header.hpp"
#include "model/text.hpp"

namespace nagi::daemon {

namespace {

using io::read_clock;
using model::Bytes;
using model::Instant;
using nlohmann::json;

constexpr std::int64_t late_event_ns = 1'000'000;
constexpr std::size_t most_kept_out = 1024;
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
runtime::Expected expected_of(const Config& config) {
  double frames = 0;
  runtime::Expected expected;
  for (const LinkConfig& link : config.links) {
    for (const model::DirectionConfig* direction : {&link.a_to_b, &link.b_to_a}) {
      const auto rate = model::mean_rate(direction->rate);
      expected.rates.push_back(rate);
      const auto* delay = std::get_if<model::Duration>(&direction->delay);
      if (!rate || delay == nullptr) continue;
      frames += static_cast<double>(rate->bits_per_second) /
                static_cast<double>(runtime::usual_frame_bits) *
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
      const auto& carrier = back ? link.carrier_b_to_a : link.carrier_a_to_b;
      if (made->model.is_radio()) {
        made->carrier = std::make_unique<Carrier>(
            carrier.value_or(-1), "link " + link.name + (back ? ", b_to_a" : ", a_to_b"));
      }
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
    packets_ = runtime::make_file<io::BackgroundFile>(config_.packets);
    const PacketRecordHeader header;
    packets_->append(std::as_bytes(std::span(&header, 1)));
  }
  if (!config_.transmissions.empty()) {
    transmissions_ = runtime::make_file<io::BackgroundFile>(config_.transmissions);
    const TransmissionRecordHeader header;
    transmissions_->append(std::as_bytes(std::span(&header, 1)));
  }
  if (!config_.drops.empty()) {
    std::vector<std::string> names;
    for (const LinkConfig& link : config_.links) {
      names.push_back(link.name + ".a_to_b");
      names.push_back(link.name + ".b_to_a");
    }
    drops_ = runtime::make_file<io::PcapngFile>(config_.drops, "nagi-link", names,
                                                io::PcapngFile::headers);
  }
}

std::vector<int> Emulator::descriptors() const {
  std::vector<int> all = ports_.descriptors();
  for (const Lane* lane : lanes_) {
    if (lane->carrier) all.push_back(lane->carrier->descriptor());
  }
  return all;
}

model::Duration Emulator::patience() const {
  if (!is_free_to_ask()) return {};  // only poll says which ports have frames
  model::Duration least = model::Duration::max();
  for (const Lane* lane : lanes_) {
    if (lane->carrier) return {};  // its packets begin at their instants, not ahead of them
    least = std::min(least, lane->model.least_delay());
  }
  return least;
}

runtime::Served Emulator::serve(const std::vector<int>& readable) {
  // The clock is read before the ports are: whatever arrived earlier is then in them, and the model
  // may move up to this instant.
  const Instant now = time_.now();
  runtime::Served served;
  served.now_ns = time_.monotonic_ns(now);
  for (Lane* lane : lanes_) {
    const std::uint64_t arrived = lane->arrived;
    const bool may_have_frames =
        lane->in.is_free_to_ask() || lane->carrier ||
        std::ranges::find(readable, lane->in.descriptor()) != readable.end();
    bring_on(*lane, may_have_frames ? take_in(*lane, now) : now);
    settle(*lane);
    served.frames += lane->arrived - arrived + lane->due.size();
  }
  for (Lane* lane : lanes_) send(*lane);

  std::optional<Instant> next;
  for (const Lane* lane : lanes_) {
    const auto delivery = lane->model.next_delivery();
    served.quiet = served.quiet && !delivery;
    if (lane->model.awaits_outcome()) continue;  // its carrier wakes us
    if (delivery && (!next || *delivery < *next)) next = delivery;
  }
  if (next) served.next_delivery_ns = time_.monotonic_ns(*next);
  return served;
}

runtime::Served Emulator::serve_ahead() {
  const Instant now = time_.now();
  runtime::Served served;
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
  if (lane.carrier) listen(lane);
  while (!lane.kept_out.empty() && take_in(lane, lane.kept_out.front())) {
    lane.kept_out.pop_front();
  }
  // What cannot be taken yet is read all the same: waiting frames would not let this process sleep.
  bool more = true;
  for (int batch = 0; more && batch < most_batches && lane.kept_out.size() < most_kept_out;
       ++batch) {
    arrivals_.clear();
    more = ports_.receive(lane.in, arrivals_);
    for (const io::Arrival& arrival : arrivals_) {
      if (!lane.kept_out.empty() || !take_in(lane, arrival)) lane.kept_out.push_back(arrival);
    }
  }
  return more || !lane.kept_out.empty() ? lane.model.now() : now;
}

bool Emulator::take_in(Lane& lane, const io::Arrival& arrival) {
  // The kernel stamps a frame before it queues it; we may see it only after that.
  const Instant stamped = time_.from_monotonic(arrival.monotonic_ns);
  const Instant at = std::max(stamped, lane.model.now());
  if (lane.carrier) {
    lane.model.advance(at, departures_);
    if (lane.model.awaits_outcome()) return false;
  }
  lane.arrival_lateness.add((at - stamped).count());
  const io::Frame& frame = arrival.frame;
  const io::IpHeader header({pool_.data(frame.slot) + frame.offset, frame.length});
  pool_.note<Held>(frame.slot) = {at, frame, static_cast<std::uint32_t>(lane.arrived++),
                                  packets_ ? header.identity() : 0};
  lane.model.offer({ip_bytes(frame), frame.slot, header.is_ecn_capable()}, at, departures_);
  return true;
}

std::span<std::byte> Emulator::packet_of(const model::Packet& packet) const {
  const Held& held = pool_.note<Held>(slot_of(packet));
  std::byte* frame = reinterpret_cast<std::byte*>(pool_.data(held.frame.slot)) + held.frame.offset;
  return std::span(frame, held.frame.length).last(packet.size.count);
}

/// Hears what became of the packets that the radio carries.
void Emulator::listen(Lane& lane) {
  auto next =
      std::ranges::find_if(lane.carried, [](const Carried& carried) { return !carried.outcome; });
  while (const auto answer = lane.carrier->receive()) {
    if (next == lane.carried.end() ||
        static_cast<std::uint32_t>(next->sending.number) != answer->number) {
      throw std::system_error(EPROTO, std::generic_category(),
                              "the radio answers for transmission " +
                                  std::to_string(answer->number) + ", which was not its turn");
    }
    receive(lane, *next, *answer);
    lane.model.tell(next->outcome != Outcome::received);
    ++next;
  }
}

/// What the far end gets is what the radio made of the packet, not what was sent.
void Emulator::receive(Lane& lane, Carried& carried, const Carrier::Answer& answer) {
  carried.outcome = answer.outcome;
  carried.snr = answer.snr;
  if (answer.outcome != Outcome::received) return;
  const std::span<std::byte> packet = packet_of(carried.sending.packet);
  if (std::ranges::equal(packet, answer.packet)) return;
  ++lane.undetected_errors;
  if (packet.size() == answer.packet.size()) {
    std::ranges::copy(answer.packet, packet.begin());
  } else {
    carried.outcome = Outcome::payload_error;
  }
}

/// Gives the radio what has begun.
void Emulator::carry(Lane& lane) {
  for (const model::Sending& sending : lane.model.begun()) {
    lane.carrier->send(sending, packet_of(sending.packet));
    lane.carried.push_back({sending, std::nullopt});
  }
  lane.model.begun().clear();
}

/// Notes what has become of transmissions.
void Emulator::conclude(Lane& lane) {
  for (const model::Sending& sending : lane.model.decided()) {
    Outcome outcome = sending.lost ? Outcome::lost : Outcome::received;
    std::int16_t snr = no_snr;
    if (lane.carrier) {
      outcome = *lane.carried.front().outcome;
      snr = lane.carried.front().snr;
      lane.carried.pop_front();
    }
    record(lane, sending, outcome, snr);
    ++lane.ended_by[static_cast<std::size_t>(outcome)];
  }
  lane.model.decided().clear();
}

void Emulator::record(const Lane& lane, const model::Sending& sending, Outcome outcome,
                      std::int16_t snr) {
  if (!transmissions_) return;
  const TransmissionRecord record = {sending.start.time_since_epoch().count(),
                                     sending.end.time_since_epoch().count(),
                                     static_cast<std::uint32_t>(sending.number),
                                     pool_.note<Held>(slot_of(sending.packet)).index,
                                     lane.number,
                                     outcome,
                                     snr,
                                     static_cast<std::uint8_t>(sending.attempt)};
  transmissions_->append(std::as_bytes(std::span(&record, 1)));
}

void Emulator::settle(Lane& lane) {
  if (lane.model.is_watched()) {
    carry(lane);
    conclude(lane);
  }
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

Emulator::Lane& Emulator::lane_of(const model::ObjectReader& request) {
  const std::string name = request.text("link");
  const std::string way = request.text("way");
  const auto link = std::ranges::find(links_, name, &Link::name);
  if (link == links_.end()) {
    std::string known;
    for (const Link& each : links_) known += (known.empty() ? "" : ", ") + each.name;
    throw model::ConfigError(request.at("link"), "there is no link " + model::shortened(name),
                             "links: " + known);
  }
  if (way != "a_to_b" && way != "b_to_a") {
    throw model::ConfigError(request.at("way"), "unknown way " + model::shown(way),
                             R"("a_to_b" or "b_to_a")");
  }
  return way == "a_to_b" ? *link->a_to_b : *link->b_to_a;
}

json Emulator::answer(const json& request) {
  model::ObjectReader reader(request, json::json_pointer());
  const std::string command = reader.text("command");
  if (command == "set") return {{"ok", true}, {"config", change(std::move(reader))}};
  reader.only({"command"});
  if (command == "show") return {{"ok", true}, {"account", account(false)}};
  if (command == "stop") {
    stopped_ = true;
    return {{"ok", true}};
  }
  throw model::ConfigError(reader.at("command"), "unknown command " + model::shown(command),
                           R"("show", "set" or "stop")");
}

json Emulator::change(model::ObjectReader request) {
  request.only({"command", "link", "way", "config"});
  Lane& lane = lane_of(request);
  const json& wanted = request.any("config");
  const auto where = request.at("config");
  const model::DirectionConfig config = model::changed(lane.config, wanted, where);
  if (std::holds_alternative<model::RadioConfig>(config.loss) != lane.model.is_radio()) {
    throw model::ConfigError(
        where / "loss",
        lane.model.is_radio() ? "this direction is a radio" : "this direction is no radio",
        "a link stays what it was started as; leave its loss as it is");
  }

  const Instant now = std::max(take_in(lane, time_.now()), lane.model.now());
  lane.model.change(config, now, departures_);
  settle(lane);
  lane.config = config;
  lane.changes.push_back({now, model::to_json(config)});
  return lane.changes.back().config;
}

void Emulator::finish() {
  ports_.note_oversized();
  for (const Lane* lane : lanes_)
    lane->model.for_each_held([&](const model::Packet& packet) {
      record(*lane, pool_.note<Held>(slot_of(packet)), packet, 0,
             static_cast<std::uint8_t>((fate_code(model::Fate::delivered, packet) & ~fate_mask) |
                                       fate_held),
             0);
    });
  for (const Lane* lane : lanes_) {
    for (const Carried& carried : lane->carried) {
      record(*lane, carried.sending, carried.outcome.value_or(Outcome::unanswered), carried.snr);
    }
  }
  const auto close = [this](const std::string& path, io::BackgroundFile& file) {
    const std::string trouble = runtime::close_file(path, file);
    if (!trouble.empty()) notices_.add(trouble);
  };
  if (packets_) close(config_.packets, *packets_);
  if (transmissions_) close(config_.transmissions, *transmissions_);
  if (drops_) close(config_.drops, drops_->file());
}

json Emulator::account_of(const Lane& lane) {
  const model::DirectionCounters& count = lane.model.counters();
  json changes = json::array();
  for (const Change& change : lane.changes) {
    changes.push_back({{"at_ns", change.at.time_since_epoch().count()}, {"config", change.config}});
  }
  json account = {
      {"config", model::to_json(lane.config)},
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
      {"arrival_lateness_ns", runtime::account_of(lane.arrival_lateness)},
      {"transit_error_ns", runtime::account_of(lane.transit_error)},
      {"late_events", lane.late_events}};
  if (lane.model.is_watched()) account["transmissions"] = transmissions_of(lane);
  return account;
}

json Emulator::transmissions_of(const Lane& lane) {
  auto ended_by = lane.ended_by;
  std::uint64_t sent = 0;
  for (const Carried& carried : lane.carried) {
    ++ended_by[static_cast<std::size_t>(carried.outcome.value_or(Outcome::unanswered))];
  }
  for (const std::uint64_t ended : ended_by) sent += ended;
  const auto count = [&ended_by](Outcome outcome) {
    return ended_by[static_cast<std::size_t>(outcome)];
  };
  return {{"sent", sent},
          {"received", count(Outcome::received)},
          {"not_detected", count(Outcome::not_detected)},
          {"header_errors", count(Outcome::header_error)},
          {"payload_errors", count(Outcome::payload_error)},
          {"lost", count(Outcome::lost)},
          {"undetected_errors", lane.undetected_errors}};
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
  json account = runtime::account_head("nagi-link", config_, privileges_, complete);
  account.update(
      {{"epoch_realtime_ns", time_.epoch_realtime_ns()},
       {"started_realtime_ns", started_realtime_ns_},
       {"ended_realtime_ns", read_clock(CLOCK_REALTIME)},
       {"records_lost", (packets_ ? packets_->lost() : 0) + (drops_ ? drops_->file().lost() : 0) +
                            (transmissions_ ? transmissions_->lost() : 0)},
       {"notices", notices_.all()},
       {"links", links}});
  return account;
}

}  // namespace nagi::daemon
