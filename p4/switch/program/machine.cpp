// SPDX-License-Identifier: Apache-2.0
//
// Passes packets between parser, pipelines and deparser, in the order of bmv2's simple_switch.
#include "program/machine.hpp"

#include <algorithm>
#include <cstring>

#include "program/state.hpp"

namespace nagi::p4 {

namespace {

/// Number of the stream of random numbers, which no link uses.
constexpr std::uint32_t random_stream = 0x5034;

constexpr std::uint32_t unlimited = 0xffffffff;

std::size_t scratch_bytes(const Compiled& program, std::size_t slot_bytes) {
  std::size_t maximum = 0;
  for (const Calculation& calculation : program.calculations) {
    std::size_t bits = 0;
    for (const CalculationInput& input : calculation.inputs) {
      bits += input.kind == CalculationInput::Kind::header
                  ? 8 * program.types[program.headers[input.header].type].max_bytes
                  : input.field.bits;
    }
    maximum = std::max(maximum, bits / 8 + 1);
  }
  return maximum + std::max(slot_bytes, io::FramePool::registered_slot_bytes);
}

}  // namespace

void PacketReturn::operator()(Packet* packet) const noexcept {
  ++packet->home_->counts.discarded;
  packet->home_->take_back(packet);
}

std::size_t Packet::size() const { return home_->size_of(*this); }

State::State(std::unique_ptr<Compiled> compiled, io::FramePool& pool, Settings machine_settings)
    : program(std::move(compiled)),
      frames(pool),
      settings(std::move(machine_settings)),
      profiles(program->profiles.size()),
      value_sets(program->value_sets.size()),
      value_set_keys(program->value_set_uses.size()),
      random_(settings.seed, random_stream, model::DirectionName::forward, model::Purpose::program),
      scratch_(scratch_bytes(*program, pool.slot_bytes())) {
  for (TableState& table : program->table_states) tables.emplace_back(std::move(table));
  for (const RegisterArray& array : program->registers) {
    registers.emplace_back(std::vector<std::uint64_t>(array.size * array.cell.limbs));
  }
  for (const CounterArray& array : program->counters) {
    counters.emplace_back(std::vector<Count>(array.is_direct ? 0 : array.size));
  }
  for (const MeterArray& array : program->meters) {
    meters.emplace_back(std::vector<MeterCell>(array.is_direct ? 0 : array.size));
  }
}

PacketPtr State::take_packet() {
  if (idle_.empty()) {
    all_packets_.emplace_back(new Packet(*this));
    all_packets_.back()->words_ = std::make_unique<std::uint64_t[]>(program->words);
    if (idle_.capacity() < all_packets_.size()) idle_.reserve(2 * all_packets_.size());
    idle_.push_back(all_packets_.back().get());
  }
  Packet* packet = idle_.back();
  idle_.pop_back();
  packet->frame_ = {};
  packet->parsed_ = 0;
  packet->truncated_ = unlimited;
  packet->length_ = 0;
  packet->rounds_ = 0;
  packet->recirculate_ = 0;
  return PacketPtr(packet);
}

void State::take_back(Packet* packet) noexcept {
  frames.give_back(packet->frame_.slot);
  idle_.push_back(packet);  // does not allocate, because take_packet() has reserved the capacity
}

PacketPtr State::copy(const Packet& packet, bool with_fields) {
  PacketPtr other = take_packet();
  // Copy the whole frame, because truncate() does not apply to copies.
  const std::uint32_t bytes = packet.frame_.length;
  other->frame_ = {frames.take(), 0, bytes};
  std::memcpy(frames.data(other->frame_.slot),
              frames.data(packet.frame_.slot) + packet.frame_.offset, bytes);
  if (with_fields) {
    std::copy_n(packet.words_.get(), program->words, other->words_.get());
    other->parsed_ = packet.parsed_;
  } else {
    std::copy_n(program->blank.data(), program->words, other->words_.get());
  }
  other->ingress_port_ = packet.ingress_port_;
  other->arrived_ = packet.arrived_;
  other->length_ = packet.length_;
  other->rounds_ = packet.rounds_;
  other->received_us_ = packet.received_us_;
  ++counts.copies;
  return other;
}

void State::reset_metadata(std::uint64_t* words) const {
  for (const auto& [first, count] : program->metadata) std::fill_n(words + first, count, 0);
}

void State::set_metadata(const std::uint64_t* from, std::uint64_t* to, std::uint64_t list,
                         Instance instance) const {
  reset_metadata(to);
  const auto entry = program->field_lists.find(list);
  if (entry != program->field_lists.end()) {
    for (const Field& field : entry->second.fields) {
      std::copy_n(from + field.word, field.limbs, to + field.word);
      to[field.written] = 1;
    }
  }
  set(to, program->standard.instance_type, static_cast<std::uint64_t>(instance));
}

void State::enqueue(PacketPtr packet, Port port, std::vector<Queued>& queued) const {
  const auto priority =
      static_cast<std::uint32_t>(get(packet->words_.get(), program->standard.priority));
  queued.push_back({port, priority, std::move(packet)});
}

std::size_t State::multicast(Packet& packet, std::uint32_t group, std::vector<Queued>& queued) {
  const auto entry = groups.live.find(group);
  if (entry == groups.live.end()) return 0;
  std::size_t count = 0;
  for (const Copies& copies : entry->second) {
    for (const Port port : copies.ports) {
      set(packet.words_.get(), program->standard.egress_rid, copies.rid);
      enqueue(copy(packet, true), port, queued);
      ++count;
    }
  }
  return count;
}

void State::clone(const Packet& packet, const Requests& requests, bool at_ingress,
                  std::uint64_t now_us, std::vector<Queued>& queued) {
  const auto mirror = mirrors.live.find(requests.clone_session);
  if (mirror == mirrors.live.end()) {
    ++counts.clones_without_session;
    return;
  }
  PacketPtr other = copy(packet, !at_ingress);
  std::uint64_t* words = other->words_.get();
  if (at_ingress) {
    // The clone starts like the packet at its arrival. The parser may read only its bytes and port.
    other->length_ = packet.arrived_;
    set(words, program->standard.ingress_port, packet.ingress_port_);
    const Counters before = counts;
    parse(*other);
    counts.parser_errors = before.parser_errors;  // the error was already counted
    requests_ = requests;                         // ignore requests of the second parsing
  }
  set_metadata(packet.words_.get(), words, requests.clone_list,
               at_ingress ? Instance::ingress_clone : Instance::egress_clone);
  now_us_ = now_us;
  if (mirror->second.max_bytes) other->truncated_ = *mirror->second.max_bytes;
  if (mirror->second.group) {
    const std::size_t before = queued.size();
    multicast(*other, *mirror->second.group, queued);
    for (std::size_t i = before; i < queued.size(); ++i) {
      queued[i].packet->truncated_ = other->truncated_;
    }
  }
  if (mirror->second.port) {
    enqueue(std::move(other), *mirror->second.port, queued);
  } else {
    ++counts.replicated;
    take_back(other.release());
  }
}

void State::store_digest(const Packet& packet, std::uint64_t list, std::uint64_t now_us) {
  const auto entry = program->learn_lists.find(list);
  if (entry == program->learn_lists.end()) return;
  if (stored_digests_.size() >= settings.digests) {
    ++counts.digests_lost;
    return;
  }
  stored_digests_.push_back({list, now_us, digest_words_.size()});
  for (const Field& field : entry->second.fields) {
    const std::uint64_t* from = packet.words_.get() + field.word;
    digest_words_.insert(digest_words_.end(), from, from + field.limbs);
  }
}

std::vector<Digest> State::take_digests() {
  std::vector<Digest> digests;
  digests.reserve(stored_digests_.size());
  for (const StoredDigest& one : stored_digests_) {
    const LearnList& list = program->learn_lists.at(one.list);
    Digest digest{list.name, one.at_us, {}};
    std::size_t at = one.words;
    for (const Field& field : list.fields) {
      digest.values.push_back(bytes_of_words(digest_words_.data() + at, field.bits));
      at += field.limbs;
    }
    digests.push_back(std::move(digest));
  }
  stored_digests_.clear();
  digest_words_.clear();
  return digests;
}

void State::ingress(Port port, io::Frame frame, std::uint64_t now_us, std::vector<Queued>& queued) {
  ++counts.received;
  drops.clear();
  PacketPtr packet = take_packet();
  packet->frame_ = frame;
  packet->ingress_port_ = port;
  packet->arrived_ = frame.length;
  packet->length_ = frame.length;
  packet->received_us_ = now_us;
  std::uint64_t* words = packet->words_.get();
  std::copy_n(program->blank.data(), program->words, words);
  const StandardFields& standard = program->standard;
  set(words, standard.ingress_port, port);
  set(words, standard.packet_length, frame.length);
  set(words, standard.ingress_time, now_us);
  run_ingress(std::move(packet), now_us, queued, DropCause::ingress);
}

void State::run_ingress(PacketPtr packet, std::uint64_t now_us, std::vector<Queued>& queued,
                        DropCause cause) {
  const StandardFields& standard = program->standard;
  for (;;) {
    std::uint64_t* words = packet->words_.get();
    now_us_ = now_us;
    requests_ = {};
    const bool malformed = parse(*packet) != program->errors.none;
    const bool good = verify_checksums(*packet);
    if (!good) ++counts.checksum_errors;
    set(words, standard.checksum_error, good ? 0 : 1);
    // The program decides whether to drop a packet. Record the most likely reason for that.
    if (malformed) cause = DropCause::malformed;
    if (!malformed && !good) cause = DropCause::checksum;
    requests_.exit = false;
    run(program->ingress, *packet);
    const Requests requests = requests_;
    if (requests.failed) return drop(std::move(packet), DropCause::assertion);
    if (requests.clone_session != none) clone(*packet, requests, true, now_us, queued);
    if (requests.digest != 0) store_digest(*packet, requests.digest, now_us);
    if (requests.resubmit_list == 0) break;
    if (packet->rounds_ >= settings.rounds) return drop(std::move(packet), DropCause::rounds);
    ++counts.resubmitted;
    PacketPtr again = copy(*packet, false);
    --counts.copies;  // the copy replaces the packet
    again->rounds_ = packet->rounds_ + 1;
    again->length_ = packet->arrived_;
    set_metadata(words, again->words_.get(), requests.resubmit_list, Instance::resubmitted);
    set(again->words_.get(), standard.packet_length, packet->arrived_);
    take_back(packet.release());
    packet = std::move(again);
  }
  std::uint64_t* words = packet->words_.get();
  const auto group = static_cast<std::uint32_t>(get(words, standard.multicast_group));
  if (group != 0) {
    set(words, standard.instance_type, static_cast<std::uint64_t>(Instance::replication));
    if (multicast(*packet, group, queued) == 0) {
      return drop(std::move(packet), DropCause::no_group);
    }
    ++counts.replicated;
    take_back(packet.release());
    return;
  }
  const auto port = static_cast<Port>(get(words, standard.egress_spec));
  if (port == settings.drop_port) return drop(std::move(packet), cause);
  set(words, standard.instance_type, static_cast<std::uint64_t>(Instance::normal));
  enqueue(std::move(packet), port, queued);
}

std::optional<io::Frame> State::egress(PacketPtr packet, Port port, const QueueTimes& times,
                                       std::uint64_t now_us, std::vector<Queued>& queued) {
  drops.clear();
  const StandardFields& standard = program->standard;
  std::uint64_t* words = packet->words_.get();
  set(words, standard.egress_time, now_us);
  set(words, standard.enqueued, times.enqueued_us);
  set(words, standard.enqueue_depth, times.depth_at_enqueue);
  set(words, standard.queue_time, times.delta_us);
  set(words, standard.dequeue_depth, times.depth_at_dequeue);
  set(words, standard.queue_id, times.queue_id);
  set(words, standard.egress_port, port);
  // Set egress_spec to any value except the drop port, so that the packet is not dropped by
  // default.
  set(words, standard.egress_spec, std::uint64_t{settings.drop_port} + 1);
  set(words, standard.packet_length, packet->length_);
  now_us_ = now_us;
  requests_ = {};
  run(program->egress, *packet);
  const Requests requests = requests_;
  const auto dropped = [&](DropCause cause) -> std::optional<io::Frame> {
    drop(std::move(packet), cause);
    return std::nullopt;
  };
  if (requests.failed) return dropped(DropCause::assertion);
  if (requests.clone_session != none) clone(*packet, requests, false, now_us, queued);
  if (get(words, standard.egress_spec) == settings.drop_port) return dropped(DropCause::egress);
  requests_ = {};
  const bool fits = deparse(*packet);
  if (requests_.failed) return dropped(DropCause::assertion);
  if (!fits) return dropped(DropCause::too_long);
  if (packet->recirculate_ != 0) {
    if (packet->rounds_ >= settings.rounds) return dropped(DropCause::rounds);
    ++counts.recirculated;
    PacketPtr again = take_packet();
    std::swap(again->frame_, packet->frame_);
    again->ingress_port_ = packet->ingress_port_;
    again->received_us_ = packet->received_us_;
    again->rounds_ = packet->rounds_ + 1;
    again->arrived_ = again->frame_.length;
    again->length_ = again->frame_.length;
    std::copy_n(program->blank.data(), program->words, again->words_.get());
    set_metadata(words, again->words_.get(), packet->recirculate_, Instance::recirculated);
    set(again->words_.get(), standard.packet_length, again->frame_.length);
    idle_.push_back(packet.release());
    run_ingress(std::move(again), now_us, queued, DropCause::recirculated);
    return std::nullopt;
  }
  ++counts.sent;
  io::Frame frame = packet->frame_;
  frame.length = std::min(frame.length, packet->truncated_);
  idle_.push_back(packet.release());
  return frame;
}

Compiled::Compiled() = default;
Compiled::~Compiled() = default;

Program::Program(std::unique_ptr<Compiled> compiled) : compiled_(std::move(compiled)) {}
Program::Program(Program&&) noexcept = default;
Program& Program::operator=(Program&&) noexcept = default;
Program::~Program() = default;

Description Program::describe() const { return description_of(*compiled_); }

Machine::Machine(Program program, io::FramePool& pool, Settings settings)
    : state_(std::make_unique<State>(std::move(program.compiled_), pool, std::move(settings))) {}
Machine::~Machine() = default;

void Machine::ingress(Port port, io::Frame frame, std::uint64_t now_us,
                      std::vector<Queued>& queued) {
  state_->ingress(port, frame, now_us, queued);
}

std::optional<io::Frame> Machine::egress(PacketPtr packet, Port port, const QueueTimes& times,
                                         std::uint64_t now_us, std::vector<Queued>& queued) {
  return state_->egress(std::move(packet), port, times, now_us, queued);
}

Counters& Counters::operator+=(const Counters& other) {
  received += other.received;
  copies += other.copies;
  resubmitted += other.resubmitted;
  recirculated += other.recirculated;
  sent += other.sent;
  for (std::size_t i = 0; i < dropped.size(); ++i) dropped[i] += other.dropped[i];
  replicated += other.replicated;
  discarded += other.discarded;
  parser_errors += other.parser_errors;
  checksum_errors += other.checksum_errors;
  clones_without_session += other.clones_without_session;
  digests_lost += other.digests_lost;
  outside_array += other.outside_array;
  return *this;
}

const std::string& Machine::text() const { return state_->program->text; }
const std::string& Machine::file() const { return state_->program->file; }
bool Machine::is_idle() const { return state_->is_idle(); }
Control& Machine::control() { return state_->control; }
Description Machine::describe() const { return description_of(*state_->program); }
const Counters& Machine::counters() const { return state_->counts; }
const std::vector<DropCause>& Machine::drops() const { return state_->drops; }
std::vector<Digest> Machine::take_digests() { return state_->take_digests(); }

}  // namespace nagi::p4
