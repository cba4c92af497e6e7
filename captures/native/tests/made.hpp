// SPDX-License-Identifier: Apache-2.0
//
// Packets and capture files for tests, built byte by byte.
#pragma once

#include <bit>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <vector>

#include "native/capture_file.hpp"
#include "native/decode.hpp"

namespace nagi::captures::made {

using Bytes = std::vector<std::uint8_t>;

inline void add(Bytes& to, const Bytes& more) { to.insert(to.end(), more.begin(), more.end()); }

/// Appends integers in one byte order.
class Writer {
 public:
  explicit Writer(bool big = false) : big_(big) {}
  template <typename T>
  Writer& put(T value) {
    for (std::size_t i = 0; i < sizeof(T); ++i) {
      const std::size_t place = big_ ? sizeof(T) - 1 - i : i;
      bytes.push_back(static_cast<std::uint8_t>(static_cast<std::uint64_t>(value) >> (8 * place)));
    }
    return *this;
  }
  Writer& put(const Bytes& more) {
    add(bytes, more);
    return *this;
  }
  Bytes bytes;

 private:
  bool big_;
};

struct Segment {
  std::uint32_t sequence = 0;
  std::uint32_t acknowledgement = 0;
  std::uint32_t payload = 0;
  std::uint8_t flags = flag_ack;
  std::uint16_t window = 1000;
  bool back = false;   // from 10.0.0.2 to 10.0.0.1
  Bytes options = {};  // a multiple of four
  std::uint16_t port = 40000;
};

inline Bytes stamps(std::uint32_t tsval, std::uint32_t tsecr) {
  return Writer(true).put(Bytes{1, 1, 8, 10}).put(tsval).put(tsecr).bytes;
}

inline Bytes tcp(const Segment& segment) {
  Writer out(true);
  out.put<std::uint16_t>(segment.back ? 5001 : segment.port);
  out.put<std::uint16_t>(segment.back ? segment.port : 5001);
  out.put(segment.sequence).put(segment.acknowledgement);
  const auto words = static_cast<std::uint8_t>(5 + segment.options.size() / 4);
  out.put<std::uint8_t>(static_cast<std::uint8_t>(words << 4)).put(segment.flags);
  out.put(segment.window).put<std::uint32_t>(0).put(segment.options);
  return out.put(Bytes(segment.payload, 'x')).bytes;
}

inline Bytes ipv4(const Bytes& inside, bool back = false, std::uint8_t protocol = 6,
                  const Bytes& options = {}, std::uint16_t fragment = 0, int total = -1) {
  Writer out(true);
  const std::size_t header = 20 + options.size();
  out.put<std::uint8_t>(static_cast<std::uint8_t>(0x40 + header / 4)).put<std::uint8_t>(0);
  out.put<std::uint16_t>(
      static_cast<std::uint16_t>(total >= 0 ? total : static_cast<int>(header + inside.size())));
  out.put<std::uint16_t>(77).put(fragment).put<std::uint8_t>(64).put(protocol);
  out.put<std::uint16_t>(0);
  out.put<std::uint32_t>(back ? 0x0a000002 : 0x0a000001);
  out.put<std::uint32_t>(back ? 0x0a000001 : 0x0a000002);
  return out.put(options).put(inside).bytes;
}

inline Bytes ethernet(const Bytes& inside, std::uint16_t type = 0x0800) {
  return Writer(true).put(Bytes(12, 2)).put(type).put(inside).bytes;
}

inline Bytes frame(const Segment& segment) { return ethernet(ipv4(tcp(segment), segment.back)); }

struct PcapOptions {
  bool big = false;
  bool nano = true;
  std::uint32_t link_type = 1;
  std::uint32_t snap = 65535;
};

inline Bytes pcap_header(const PcapOptions& options) {
  Writer out(options.big);
  out.put<std::uint32_t>(options.nano ? 0xa1b23c4d : 0xa1b2c3d4);
  out.put<std::uint16_t>(2).put<std::uint16_t>(4).put<std::uint64_t>(0);
  return out.put(options.snap).put(options.link_type).bytes;
}

inline Bytes pcap_record(const PcapOptions& options, std::int64_t time_ns, const Bytes& packet) {
  Writer out(options.big);
  const std::int64_t fraction = time_ns % 1'000'000'000;
  out.put(static_cast<std::uint32_t>(time_ns / 1'000'000'000));
  out.put(static_cast<std::uint32_t>(options.nano ? fraction : fraction / 1000));
  Bytes cut = packet;
  if (cut.size() > options.snap) cut.resize(options.snap);
  out.put(static_cast<std::uint32_t>(cut.size())).put(static_cast<std::uint32_t>(packet.size()));
  return out.put(cut).bytes;
}

struct Timed {
  std::int64_t time_ns;
  Bytes packet;
};

inline Bytes pcap(const std::vector<Timed>& packets, const PcapOptions& options = {}) {
  Bytes file = pcap_header(options);
  for (const Timed& each : packets) add(file, pcap_record(options, each.time_ns, each.packet));
  return file;
}

/// Return a pcapng block with its body padded.
inline Bytes block(bool big, std::uint32_t type, Bytes body) {
  body.resize((body.size() + 3) / 4 * 4);
  const auto length = static_cast<std::uint32_t>(body.size() + 12);
  return Writer(big).put(type).put(length).put(body).put(length).bytes;
}
inline Bytes section(bool big) {
  return block(big, 0x0a0d0d0a,
               Writer(big)
                   .put<std::uint32_t>(0x1a2b3c4d)
                   .put<std::uint16_t>(1)
                   .put<std::uint16_t>(0)
                   .put<std::int64_t>(-1)
                   .bytes);
}
/// `resolution` is if_tsresol (-1: absent), `offset` is if_tsoffset (0: absent).
inline Bytes interface(bool big, std::uint16_t link_type, int resolution = -1,
                       std::int64_t offset = 0, std::uint32_t snap = 0) {
  Writer out(big);
  out.put(link_type).put<std::uint16_t>(0).put(snap);
  out.put<std::uint16_t>(2).put<std::uint16_t>(4).put(Bytes{'e', 't', 'h', '0'});
  if (resolution >= 0) {
    out.put<std::uint16_t>(9).put<std::uint16_t>(1);
    out.put(Bytes{static_cast<std::uint8_t>(resolution), 0, 0, 0});
  }
  if (offset != 0) out.put<std::uint16_t>(14).put<std::uint16_t>(8).put(offset);
  out.put<std::uint32_t>(0);
  return block(big, 1, out.bytes);
}
inline Bytes enhanced(bool big, std::uint32_t number, std::uint64_t units, const Bytes& packet,
                      std::uint32_t length = 0) {
  Writer out(big);
  out.put(number).put(static_cast<std::uint32_t>(units >> 32));
  out.put(static_cast<std::uint32_t>(units)).put(static_cast<std::uint32_t>(packet.size()));
  out.put(length != 0 ? length : static_cast<std::uint32_t>(packet.size())).put(packet);
  return block(big, 6, out.bytes);
}

/// The contents of a file.
struct Read {
  std::vector<std::int64_t> times;
  std::vector<std::uint32_t> lengths;
  std::vector<std::uint32_t> captured;
  std::vector<std::uint32_t> link_types;
  std::string damage;
};
inline Read read(const Bytes& file) {
  CaptureFile capture(file.data(), file.size());
  Read all;
  Record record;
  while (capture.next(record)) {
    all.times.push_back(record.time_ns);
    all.lengths.push_back(record.length);
    all.captured.push_back(record.captured);
    all.link_types.push_back(record.link_type);
  }
  all.damage = capture.damage();
  return all;
}

inline Bytes operator+(Bytes left, const Bytes& right) {
  add(left, right);
  return left;
}

}  // namespace nagi::captures::made
