// SPDX-License-Identifier: Apache-2.0
#include "daemon/monitor.hpp"

#include <linux/if_ether.h>

#include <array>
#include <chrono>
#include <utility>

#include "service/service.hpp"

namespace nagi::daemon {

namespace {

using model::AirFrame;
using model::FrameKind;

constexpr std::uint16_t radiotap_link_type = 127;  // LINKTYPE_IEEE802_11_RADIOTAP
constexpr std::uint16_t radiotap_bytes = 22;
constexpr std::uint32_t radiotap_fields = 0b1111;  // TSFT, flags, rate, channel
constexpr std::uint8_t short_preamble_flag = 0x02;
constexpr std::uint8_t bad_fcs_flag = 0x40;
constexpr std::uint16_t cck = 0x20;
constexpr std::uint16_t ofdm = 0x40;
constexpr std::uint16_t at_2_ghz = 0x80;
constexpr std::uint16_t at_5_ghz = 0x100;
// Frame Control of IEEE 802.11-2020, 9.2.4.1: type and subtype, then flags.
constexpr std::uint8_t retry_flag = 0x08;
constexpr MacAddress network = {0x02, 0x6E, 0x67, 0xFF, 0xFF, 0xFF};  // BSSID
constexpr std::array<std::uint8_t, 6> llc_and_snap = {0xAA, 0xAA, 0x03, 0, 0, 0};
// Length of the part of a frame that is captured: all headers up to the TCP payload.
constexpr std::uint32_t snap_bytes = 192;

/// Return the first byte of a frame: protocol version, type and subtype.
std::uint8_t frame_control(FrameKind kind) {
  switch (kind) {
    case FrameKind::rts:
      return 0xB4;
    case FrameKind::cts:
      return 0xC4;
    case FrameKind::ack:
      return 0xD4;
    case FrameKind::data:
      break;
  }
  return 0x08;
}

std::chrono::microseconds in_us(Duration duration) {
  return std::chrono::ceil<std::chrono::microseconds>(duration);
}

}  // namespace

Monitor::Monitor(std::string path, const model::PhyConfig& phy, const std::string& medium)
    : path_(std::move(path)),
      phy_(phy),
      times_(phy),
      file_(runtime::make_file<io::PcapngFile>(path_, "nagi-link", std::vector{medium}, snap_bytes,
                                               io::WhenBehind::lose, radiotap_link_type)) {}

template <class Number>
void Monitor::put(Number value) {
  for (std::size_t i = 0; i < sizeof value; ++i) {
    bytes_.push_back(static_cast<std::uint8_t>(value >> (8 * i)));  // little-endian
  }
}

void Monitor::append(std::span<const std::uint8_t> bytes) {
  bytes_.insert(bytes_.end(), bytes.begin(), bytes.end());
}

void Monitor::put_radiotap(const AirFrame& frame) {
  const bool is_ofdm = phy_.table->service_and_tail_bits != 0;
  const bool is_5_ghz = phy_.table->name == "802.11a";
  const bool at_data_rate = frame.kind == FrameKind::data && frame.to != model::everybody;
  const Bitrate rate = at_data_rate ? phy_.data_rate : phy_.basic_rate;
  const auto began = frame.start.time_since_epoch() + times_.preamble();
  put(std::uint16_t{0});  // version, padding
  put(radiotap_bytes);
  put(radiotap_fields);
  put(static_cast<std::uint64_t>(in_us(began).count()));
  put(static_cast<std::uint8_t>(
      (phy_.short_preamble ? short_preamble_flag : 0) |
      (frame.outcome == model::FrameOutcome::received ? 0 : bad_fcs_flag)));
  put(static_cast<std::uint8_t>(rate.bits_per_second / 500'000));
  put(std::uint16_t{is_5_ghz ? std::uint16_t{5180} : std::uint16_t{2412}});
  put(static_cast<std::uint16_t>((is_ofdm ? ofdm : cck) | (is_5_ghz ? at_5_ghz : at_2_ghz)));
}

void Monitor::add(const AirFrame& frame, const MacAddress& receiver, const MacAddress& sender,
                  std::span<const std::uint8_t> ethernet, std::int64_t realtime_ns) {
  bytes_.clear();
  put_radiotap(frame);
  const bool is_retry = frame.kind == FrameKind::data && frame.attempt > 1;
  put(frame_control(frame.kind));
  put(std::uint8_t{is_retry ? retry_flag : std::uint8_t{0}});
  put(static_cast<std::uint16_t>(in_us(frame.reserves).count()));
  append(receiver);
  if (frame.kind == FrameKind::rts || frame.kind == FrameKind::data) append(sender);
  if (frame.kind == FrameKind::data) {
    append(network);
    put(static_cast<std::uint16_t>(frame.packet << 4));  // sequence control
    append(llc_and_snap);
    append(ethernet.subspan(2 * ETH_ALEN));  // from the EtherType on
  }
  file_->add(0, realtime_ns, bytes_.data(), static_cast<std::uint32_t>(bytes_.size()));
}

void Monitor::close(runtime::Notices& notices) {
  const std::string error = runtime::close_file(path_, file_->file());
  if (!error.empty()) notices.add(error);
}

}  // namespace nagi::daemon
