// SPDX-License-Identifier: Apache-2.0
//
// Reads the records of a capture file in order and in bounded memory. The formats are pcap
// (draft-ietf-opsawg-pcap; also the variant of Alexey Kuznetzov with longer record headers) and
// pcapng (draft-ietf-opsawg-pcapng), in either byte order, uncompressed or compressed by gzip or
// zstd.
//
// A file that is no capture raises CaptureError. Of a damaged file, the records before the damage
// are read; damage() then says what is wrong and at which byte.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "native/byte_source.hpp"

namespace nagi::captures {

/// The longest captured packet that is accepted, which is also libpcap's limit.
constexpr std::uint32_t longest_packet = 262'144;

/// One captured frame.
struct Record {
  std::int64_t time_ns = 0;            // since the epoch
  const std::uint8_t* data = nullptr;  // valid until the next record is read
  std::uint32_t captured = 0;          // bytes at `data`
  std::uint32_t length = 0;            // bytes on the wire
  std::uint32_t link_type = 0;         // LINKTYPE_ value
  bool has_time = true;                // if false, time_ns is the time of the record before
  bool failed_check = false;           // the capturing program reports a wrong FCS
};

class CaptureFile {
 public:
  /// Open a capture. Throws CaptureError if the file is no capture or cannot be read.
  explicit CaptureFile(const std::string& path) : source_(path) { open(); }
  CaptureFile(const std::uint8_t* data, std::size_t size) : source_(data, size) { open(); }

  /// Read the next record. Return false at the end, and where the file is damaged.
  bool next(Record& record) {
    if (classic_) [[likely]] {
      return next_pcap(record);
    }
    return next_pcapng(record);
  }
  /// Return one sentence about the damage of the file, or an empty text if it is not damaged. Valid
  /// after next() returned false.
  [[nodiscard]] const std::string& damage() const { return damage_; }
  /// Return the number of records read.
  [[nodiscard]] std::uint64_t records() const { return records_; }

 private:
  struct Interface {
    std::uint32_t link_type = 0;
    std::uint32_t snap_length = 0;
    std::uint64_t units_to_ns = 1000;  // ns per unit of time; 0 if that is not a whole number
    std::uint8_t resolution = 6;       // if_tsresol
    std::int64_t offset_s = 0;
  };

  void open();
  [[noreturn]] void refuse();
  bool next_pcapng(Record& record);
  bool read_section();
  bool read_interface(std::uint32_t length);
  bool read_packet(std::uint32_t type, std::uint32_t length, Record& record, bool& has_packet);
  [[nodiscard]] bool has_failed_check(const std::uint8_t* at, const std::uint8_t* end) const;
  static std::int64_t to_nanoseconds(const Interface& interface, std::uint64_t units);
  /// Set the damage if the file does not end before a record but at `where`, and return false.
  bool report_cut_off(const char* where);
  /// Set the damage to a problem with the next packet, and return false.
  bool report_damage(const std::string& problem);

  /// Read a number of 16 bits in the byte order of the file.
  [[nodiscard]] std::uint16_t read_16(const std::uint8_t* at) const {
    std::uint16_t value = 0;
    __builtin_memcpy(&value, at, sizeof(value));
    return swapped_ ? __builtin_bswap16(value) : value;
  }
  /// Read a number of 32 bits in the byte order of the file.
  [[nodiscard]] std::uint32_t read_32(const std::uint8_t* at) const {
    std::uint32_t value = 0;
    __builtin_memcpy(&value, at, sizeof(value));
    return swapped_ ? __builtin_bswap32(value) : value;
  }

  bool next_pcap(Record& record) {
    const std::uint8_t* header = source_.peek(record_header_);
    if (header == nullptr) [[unlikely]] {
      return report_cut_off("inside the header of packet ");
    }
    const std::uint32_t captured = read_32(header + 8);
    if (captured > longest_packet) [[unlikely]] {
      return report_damage("claims " + std::to_string(captured) + " bytes");
    }
    header = source_.peek(record_header_ + captured);
    if (header == nullptr) [[unlikely]] {
      return report_cut_off("inside packet ");
    }
    record.time_ns = static_cast<std::int64_t>(read_32(header)) * 1'000'000'000 +
                     static_cast<std::int64_t>(read_32(header + 4)) * fraction_ns_;
    record.captured = captured;
    record.length = read_32(header + 12);
    record.data = header + record_header_;
    record.link_type = link_type_;
    source_.advance(record_header_ + captured);
    ++records_;
    return true;
  }

  ByteSource source_;
  std::string damage_;
  std::uint64_t records_ = 0;
  bool classic_ = true;                // pcap, not pcapng
  bool swapped_ = false;               // the byte order is not that of this machine
  std::uint32_t record_header_ = 16;   // bytes of a record's header in pcap
  std::uint32_t link_type_ = 0;        // of pcap
  std::int64_t fraction_ns_ = 1000;    // unit of the fraction of a second in pcap
  std::vector<Interface> interfaces_;  // of the current section
  std::int64_t last_time_ns_ = 0;
};

}  // namespace nagi::captures
