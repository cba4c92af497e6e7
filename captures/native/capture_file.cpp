// SPDX-License-Identifier: Apache-2.0
#include "native/capture_file.hpp"

#include <algorithm>
#include <array>
#include <limits>
#include <string_view>

#include "native/decode.hpp"

namespace nagi::captures {

namespace {

constexpr std::uint32_t section_block = 0x0a0d0d0a;  // identical in either byte order
constexpr std::uint32_t interface_block = 1;
constexpr std::uint32_t old_packet_block = 2;
constexpr std::uint32_t simple_packet_block = 3;
constexpr std::uint32_t packet_block = 6;
constexpr std::uint32_t byte_order_magic = 0x1a2b3c4d;
constexpr std::uint32_t shortest_block = 12;
constexpr std::uint32_t longest_options = 64 * 1024;
constexpr std::size_t max_interfaces = 65'536;

constexpr std::uint16_t option_resolution = 9;
constexpr std::uint16_t option_offset = 14;

constexpr const char* cure =
    "give a capture made by tcpdump -w (pcap or pcapng, plain or compressed by gzip or zstd)";

/// A file format that is not read, and the bytes with which such a file begins.
struct Format {
  std::string_view begins;
  const char* problem;
  const char* cure;
};
constexpr const char* convert = "convert it first: editcap -F pcap FILE NEW";
constexpr auto other_formats = std::to_array<Format>({
    {"snoop\0\0\0", "is a snoop capture, which is not read", convert},
    {"GMBU", "is a capture of Microsoft Network Monitor, which is not read", convert},
    {"RTSS", "is a capture of Microsoft Network Monitor, which is not read", convert},
    {"TRSNIFF data    \x1a", "is a Sniffer capture, which is not read", convert},
    {"XCP\0", "is a NetXRay capture, which is not read", convert},
    {"\xfd"
     "7zXZ\0",
     "is compressed by xz, which is not read", "uncompress it: xz -d"},
    {"BZh", "is compressed by bzip2, which is not read", "uncompress it: bzip2 -d"},
    {"\x04\x22\x4d\x18", "is compressed by lz4, which is not read", "uncompress it: lz4 -d"},
    {"PK\x03\x04", "is a ZIP archive", "take the capture out of it: unzip"},
    {"7z\xbc\xaf\x27\x1c", "is a 7-Zip archive", "take the capture out of it: 7z x"},
});

constexpr std::uint32_t padded(std::uint32_t length) { return (length + 3) & ~3U; }

}  // namespace

void CaptureFile::open() {
  const std::uint8_t* first = source_.peek(4);
  if (first == nullptr) {
    if (!source_.failure().empty()) throw CaptureError(source_.failure(), cure);
    throw CaptureError("is no capture: it is too short", cure);
  }
  const std::uint32_t magic = read_32(first);
  if (magic == section_block) {
    classic_ = false;
    const std::uint8_t* section = source_.peek(12);
    if (section == nullptr) throw CaptureError("is no capture: it is too short", cure);
    const std::uint32_t order = read_32(section + 8);
    if (order != byte_order_magic && order != __builtin_bswap32(byte_order_magic)) {
      throw CaptureError("is no capture: a pcapng file without byte order", cure);
    }
    return;
  }
  switch (magic) {
    case 0xa1b2c3d4:
      break;
    case 0xd4c3b2a1:
      swapped_ = true;
      break;
    case 0xa1b23c4d:
      fraction_ns_ = 1;
      break;
    case 0x4d3cb2a1:
      fraction_ns_ = 1;
      swapped_ = true;
      break;
    case 0xa1b2cd34:
      record_header_ = 24;
      break;
    case 0x34cdb2a1:
      record_header_ = 24;
      swapped_ = true;
      break;
    default:
      refuse();
  }
  const std::uint8_t* header = source_.peek(24);
  if (header == nullptr) throw CaptureError("is no capture: it is too short", cure);
  link_type_ = read_32(header + 20) & 0xffff;  // the higher bits describe frame check sequences
  if (!is_decoded_link_type(link_type_)) {
    throw CaptureError("has link type " + std::to_string(link_type_) + " (" +
                           link_type_name(link_type_) + "), which is not read",
                       "capture on an Ethernet, \"any\" or tunnel interface");
  }
  source_.advance(24);
}

/// Throw a CaptureError that names the format of a file that is no capture, if it is known.
void CaptureFile::refuse() {
  for (const Format& format : other_formats) {
    const std::uint8_t* first = source_.peek(format.begins.size());
    if (first != nullptr &&
        std::equal(format.begins.begin(), format.begins.end(), first,
                   [](char a, std::uint8_t b) { return static_cast<std::uint8_t>(a) == b; })) {
      throw CaptureError(format.problem, format.cure);
    }
  }
  throw CaptureError("is no capture", cure);
}

bool CaptureFile::report_cut_off(const char* where) {
  if (!source_.failure().empty()) {
    damage_ = source_.failure() + " after packet " + std::to_string(records_);
  } else if (source_.left() != 0) {
    damage_ = std::string("cut off ") + where + std::to_string(records_ + 1);
  } else {
    return false;  // end of the file
  }
  damage_ += ", at byte " + std::to_string(source_.offset());
  if (source_.compressed()) damage_ += " uncompressed";
  return false;
}

bool CaptureFile::report_damage(const std::string& problem) {
  damage_ = "damaged: packet " + std::to_string(records_ + 1) + " " + problem + ", at byte " +
            std::to_string(source_.offset());
  if (source_.compressed()) damage_ += " uncompressed";
  return false;
}

bool CaptureFile::next_pcapng(Record& record) {
  if (!damage_.empty()) return false;
  while (true) {
    const std::uint8_t* head = source_.peek(8);
    if (head == nullptr) return report_cut_off("in the block after packet ");
    const std::uint32_t type = read_32(head);
    if (type == section_block) {
      if (!read_section()) return false;
      continue;
    }
    const std::uint32_t length = read_32(head + 4);
    if (length < shortest_block || length % 4 != 0) {
      return report_damage("or the block before it has an invalid length of " +
                           std::to_string(length) + " bytes");
    }
    if (type == interface_block) {
      if (!read_interface(length)) return false;
    } else if (type == packet_block || type == simple_packet_block || type == old_packet_block) {
      bool has_packet = false;
      if (!read_packet(type, length, record, has_packet)) return false;
      if (has_packet) return true;
    } else if (!source_.skip(length)) {
      return source_.failure().empty() ? report_damage("is missing: cut off in the block before it")
                                       : report_cut_off("");
    }
  }
}

bool CaptureFile::read_section() {
  const std::uint8_t* head = source_.peek(28);
  if (head == nullptr) return report_cut_off("in the section header before packet ");
  std::uint32_t order = 0;
  __builtin_memcpy(&order, head + 8, sizeof(order));
  if (order != byte_order_magic && order != __builtin_bswap32(byte_order_magic)) {
    return report_damage("is in a section without byte order");
  }
  swapped_ = order != byte_order_magic;
  const std::uint32_t length = read_32(head + 4);
  if (length < 28 || length % 4 != 0) {
    return report_damage("is in a section with a header of " + std::to_string(length) + " bytes");
  }
  interfaces_.clear();
  if (!source_.skip(length))
    return report_damage("is missing: cut off in the section header before it");
  return true;
}

bool CaptureFile::read_interface(std::uint32_t length) {
  if (length < 20) return report_damage("comes after an interface block that is too short");
  if (interfaces_.size() == max_interfaces) return report_damage("comes after too many interfaces");
  const std::uint32_t looked_at = std::min(length - 4, longest_options);
  const std::uint8_t* head = source_.peek(looked_at);
  if (head == nullptr) return report_cut_off("in the interface block before packet ");
  Interface interface;
  interface.link_type = read_16(head + 8);
  interface.snap_length = read_32(head + 12);
  for (std::uint32_t at = 16; at + 4 <= looked_at;) {
    const std::uint16_t code = read_16(head + at);
    const std::uint16_t bytes = read_16(head + at + 2);
    at += 4;
    if (code == 0 || at + bytes > looked_at) break;
    if (code == option_resolution && bytes == 1) interface.resolution = head[at];
    if (code == option_offset && bytes == 8) {
      std::uint64_t seconds = 0;
      __builtin_memcpy(&seconds, head + at, sizeof(seconds));
      interface.offset_s =
          static_cast<std::int64_t>(swapped_ ? __builtin_bswap64(seconds) : seconds);
    }
    at += padded(bytes);
  }
  interface.units_to_ns = 0;
  if (interface.resolution <= 9) {
    interface.units_to_ns = 1;
    for (int i = interface.resolution; i < 9; ++i) interface.units_to_ns *= 10;
  }
  interfaces_.push_back(interface);
  if (!source_.skip(length))
    return report_damage("is missing: cut off in the interface block before it");
  return true;
}

bool CaptureFile::read_packet(std::uint32_t type, std::uint32_t length, Record& record,
                              bool& has_packet) {
  const std::uint32_t header = type == simple_packet_block ? 12 : 28;
  if (length < header + 4) {
    return report_damage("is in a block of " + std::to_string(length) + " bytes");
  }
  const std::uint8_t* head = source_.peek(header);
  if (head == nullptr) return report_cut_off("inside the header of packet ");
  std::uint32_t number = 0;
  std::uint32_t captured = 0;
  std::uint64_t units = 0;
  if (type == simple_packet_block) {
    record.length = read_32(head + 8);
    captured = std::min(record.length, length - header - 4);
    if (!interfaces_.empty() && interfaces_[0].snap_length != 0) {
      captured = std::min(captured, interfaces_[0].snap_length);
    }
  } else {
    number = type == packet_block ? read_32(head + 8) : read_16(head + 8);
    units = static_cast<std::uint64_t>(read_32(head + 12)) << 32 | read_32(head + 16);
    captured = read_32(head + 20);
    record.length = read_32(head + 24);
    if (captured > length - header - 4) {
      return report_damage("claims " + std::to_string(captured) + " bytes in a block of " +
                           std::to_string(length));
    }
  }
  if (captured > longest_packet) {
    return report_damage("claims " + std::to_string(captured) + " bytes");
  }
  if (number >= interfaces_.size()) {
    return report_damage("is of interface " + std::to_string(number) + ", which is not described");
  }
  const Interface& interface = interfaces_[number];
  // The end of the block (options and a copy of the length) is checked only if the block is short.
  const std::uint32_t looked_at =
      std::min(length, static_cast<std::uint32_t>(ByteSource::longest_piece));
  head = source_.peek(looked_at);
  if (head == nullptr) return report_cut_off("inside packet ");
  if (looked_at == length && read_32(head + length - 4) != length) {
    return report_damage("is in a block whose two lengths differ");
  }
  // A simple packet has no time. It gets the time of the packet before it.
  record.has_time = type != simple_packet_block;
  if (record.has_time) last_time_ns_ = to_nanoseconds(interface, units);
  record.failed_check = type == packet_block && looked_at == length &&
                        has_failed_check(head + header + padded(captured), head + length - 4);
  record.time_ns = last_time_ns_;
  record.captured = captured;
  record.data = head + header;
  record.link_type = interface.link_type;
  if (looked_at == length) {
    source_.advance(length);
  } else {
    return report_damage("is in a block of " + std::to_string(length) + " bytes");
  }
  ++records_;
  has_packet = true;
  return true;
}

/// Return whether the options of a packet, in [at, end), say that its frame has a wrong FCS.
bool CaptureFile::has_failed_check(const std::uint8_t* at, const std::uint8_t* end) const {
  constexpr std::uint16_t option_flags = 2;
  constexpr std::uint32_t wrong_check = 1U << 24;
  while (end - at >= 4) {
    const std::uint16_t code = read_16(at);
    const std::uint16_t bytes = read_16(at + 2);
    at += 4;
    if (code == 0 || end - at < bytes) return false;
    if (code == option_flags && bytes == 4) return (read_32(at) & wrong_check) != 0;
    if (end - at < static_cast<std::ptrdiff_t>(padded(bytes))) return false;
    at += padded(bytes);
  }
  return false;
}

std::int64_t CaptureFile::to_nanoseconds(const Interface& interface, std::uint64_t units) {
  __extension__ using Wide = __int128;
  Wide time = 0;
  if (interface.units_to_ns != 0) [[likely]] {
    time = static_cast<Wide>(units) * interface.units_to_ns;
  } else if ((interface.resolution & 0x80) != 0) {  // a power of two
    const int bits = interface.resolution & 0x7f;
    time = bits < 100 ? (static_cast<Wide>(units) * 1'000'000'000) >> bits : 0;
  } else {
    std::uint64_t rest = units;
    for (int i = 9; i < interface.resolution && rest != 0; ++i) rest /= 10;
    time = rest;
  }
  time += static_cast<Wide>(interface.offset_s) * 1'000'000'000;
  constexpr Wide latest = std::numeric_limits<std::int64_t>::max() / 2;
  return static_cast<std::int64_t>(std::clamp(time, -latest, latest));
}

}  // namespace nagi::captures
