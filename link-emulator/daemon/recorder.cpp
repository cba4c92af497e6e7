// SPDX-License-Identifier: Apache-2.0
#include "daemon/recorder.hpp"

#include <algorithm>
#include <array>
#include <limits>
#include <vector>

#include "daemon/packet_record.hpp"
#include "daemon/transmission_record.hpp"
#include "service/service.hpp"

namespace nagi::daemon {

namespace {

const char* describe_drop(model::Fate fate) {
  switch (fate) {
    case model::Fate::queue_overflow:
      return "queue overflow";
    case model::Fate::aqm_drop:
      return "AQM drop";
    case model::Fate::retry_limit:
      return "given up";
    default:
      return "channel loss";
  }
}

/// Return the record of a packet that is held.
PacketRecord make_held_record(std::uint8_t direction, const HeldFrame& held,
                              const model::Packet& packet) {
  const auto next_hop = packet.next_hop ? next_hop_code(*packet.next_hop) : std::uint16_t{0};
  return {.arrived_ns = held.arrived.time_since_epoch().count(),
          .index = held.index,
          .identity = held.identity,
          .flow = packet.flow,
          .bytes = static_cast<std::uint16_t>(packet.size.count),
          .direction = direction,
          .fate = fate_held,
          .ecn = static_cast<std::uint8_t>(packet.ecn),
          .flags = flags_of(packet),
          .next_hop = next_hop};
}

/// Create a file of records of one size, and write its header. Return null if `path` is empty.
template <class Header>
std::unique_ptr<io::BackgroundFile> make_record_file(const std::string& path) {
  if (path.empty()) return nullptr;
  auto file = runtime::make_file<io::BackgroundFile>(path);
  const Header header;
  file->append(std::as_bytes(std::span(&header, 1)));
  return file;
}

std::unique_ptr<io::PcapngFile> make_drop_file(const Config& config) {
  if (config.drops.empty()) return nullptr;
  std::vector<std::string> names;
  for (const LinkConfig& link : config.links) {
    names.push_back(link.name + ".forward");
    names.push_back(link.name + ".backward");
  }
  for (const MediumSettings& medium : config.media) {
    for (const StationSettings& station : medium.stations) {
      names.push_back(medium.name + "." + station.name);
    }
  }
  return runtime::make_file<io::PcapngFile>(config.drops, "nagi-link", names,
                                            io::PcapngFile::headers);
}

}  // namespace

void Recorder::start() {
  for (io::BackgroundFile* file : {packets_.get(), transmissions_.get()}) {
    if (file != nullptr) file->start();
  }
  if (drops_) drops_->file().start();
}

Recorder::Recorder(const Config& config)
    : packets_path_(config.packets),
      transmissions_path_(config.transmissions),
      drops_path_(config.drops),
      packets_(make_record_file<PacketRecordHeader>(packets_path_)),
      transmissions_(make_record_file<TransmissionRecordHeader>(transmissions_path_)),
      drops_(make_drop_file(config)) {}

void Recorder::record_departure(std::uint8_t direction, const HeldFrame& held,
                                const model::Departure& departure, std::int64_t late_ns) {
  if (!packets_) return;
  PacketRecord record = make_held_record(direction, held, departure.packet);
  record.left_ns = departure.at.time_since_epoch().count();
  record.fate = fate_code(departure.fate);
  record.flags = flags_of(departure.packet, departure.is_copy);
  record.late_ns = static_cast<std::int32_t>(
      std::min<std::int64_t>(late_ns, std::numeric_limits<std::int32_t>::max()));
  packets_->append(std::as_bytes(std::span(&record, 1)));
}

void Recorder::record_held(std::uint8_t direction, const HeldFrame& held,
                           const model::Packet& packet) {
  if (!packets_) return;
  const PacketRecord record = make_held_record(direction, held, packet);
  packets_->append(std::as_bytes(std::span(&record, 1)));
}

void Recorder::record_drop(std::uint8_t direction, const model::Departure& departure,
                           std::int64_t realtime_ns, std::span<const std::uint8_t> frame) {
  if (!drops_) return;
  drops_->add(direction, realtime_ns, frame.data(), static_cast<std::uint32_t>(frame.size()),
              describe_drop(departure.fate));
}

void Recorder::record_transmission(std::uint8_t direction, const model::Transmission& transmission,
                                   const HeldFrame& held, Outcome outcome, std::int16_t snr) {
  if (!transmissions_) return;
  const TransmissionRecord record = {transmission.start.time_since_epoch().count(),
                                     transmission.end.time_since_epoch().count(),
                                     static_cast<std::uint32_t>(transmission.number),
                                     held.index,
                                     direction,
                                     outcome,
                                     snr,
                                     static_cast<std::uint8_t>(transmission.attempt),
                                     0,
                                     0,
                                     transmission.mode};
  transmissions_->append(std::as_bytes(std::span(&record, 1)));
}

void Recorder::record_frame(std::uint8_t station, const model::AirFrame& frame,
                            std::uint32_t index) {
  if (!transmissions_) return;
  constexpr std::array outcome_codes = {
      Outcome::received,      Outcome::lost,         Outcome::collided,    Outcome::hidden_terminal,
      Outcome::receiver_busy, Outcome::out_of_reach, Outcome::not_answered};
  TransmissionRecord record;
  record.start_ns = frame.start.time_since_epoch().count();
  record.end_ns = frame.end.time_since_epoch().count();
  record.number = static_cast<std::uint32_t>(frame.number);
  record.index = index;
  record.direction = station;
  record.outcome = outcome_codes.at(static_cast<std::size_t>(frame.outcome));
  record.attempt = static_cast<std::uint8_t>(frame.attempt);
  record.kind = static_cast<std::uint8_t>(frame.kind);
  record.receiver =
      static_cast<std::uint8_t>(frame.to);  // model::everybody becomes 255, model::nobody 254
  transmissions_->append(std::as_bytes(std::span(&record, 1)));
}

void Recorder::close(runtime::Notices& notices) {
  const auto close_one = [&notices](const std::string& path, io::BackgroundFile& file) {
    const std::string error = runtime::close_file(path, file);
    if (!error.empty()) notices.add(error);
  };
  if (packets_) close_one(packets_path_, *packets_);
  if (transmissions_) close_one(transmissions_path_, *transmissions_);
  if (drops_) close_one(drops_path_, drops_->file());
}

std::uint64_t Recorder::lost() const {
  return (packets_ ? packets_->lost() : 0) + (drops_ ? drops_->file().lost() : 0) +
         (transmissions_ ? transmissions_->lost() : 0);
}

}  // namespace nagi::daemon
