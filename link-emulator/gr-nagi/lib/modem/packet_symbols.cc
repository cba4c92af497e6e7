/* SPDX-License-Identifier: Apache-2.0 */
#include "packet_symbols.h"

#include <gnuradio/digital/lfsr.h>

#include <algorithm>
#include <array>
#include <bit>
#include <stdexcept>
#include <string>

namespace gr::nagi {

namespace {

std::vector<std::uint8_t> whitening_bytes() {
  gr::digital::lfsr shift_register(0x11, 0x7f, 6);
  std::vector<std::uint8_t> bytes(PacketSymbols::longest);
  for (auto& byte : bytes) {
    for (int bit = 0; bit < 8; ++bit) {
      byte = static_cast<std::uint8_t>((byte << 1) | shift_register.next_bit());
    }
  }
  return bytes;
}

}  // namespace

PacketSymbols::PacketSymbols(const gr::digital::constellation_sptr& constellation,
                             int header_symbols)
    : constellation_(constellation),
      points_(constellation->points()),
      bits_(constellation->bits_per_symbol()),
      header_symbols_(static_cast<std::size_t>(std::max(header_symbols, 0))),
      header_(gr::digital::packet_header_default::make(header_bits, "length", "number", 1)),
      whitening_(whitening_bytes()) {
  if (header_symbols < header_bits) {
    throw std::invalid_argument("a PHY header of " + std::to_string(header_symbols) +
                                " symbols, not of 32 or more");
  }
  if (points_.size() > 16 || points_.size() < 2 || !std::has_single_bit(points_.size())) {
    throw std::invalid_argument("a constellation of " + std::to_string(points_.size()) +
                                " points, not of 2, 4, 8 or 16");
  }
}

std::size_t PacketSymbols::payload_size(std::size_t bytes) const {
  return (bytes * 8 + bits_ - 1) / bits_;
}

void PacketSymbols::append_header(std::size_t bytes, std::uint64_t number,
                                  std::vector<gr_complex>& symbols) {
  std::array<unsigned char, header_bits> bits{};
  header_->set_header_num(static_cast<unsigned>(number & 0xfff));
  header_->header_formatter(static_cast<long>(bytes), bits.data());
  for (std::size_t i = 0; i < header_symbols_; ++i) {
    symbols.emplace_back(bits[i % bits.size()] ? header_sign(i) : -header_sign(i), 0.0f);
  }
}

void PacketSymbols::append_payload(std::span<const std::uint8_t> bytes, std::size_t block,
                                   std::vector<gr_complex>& symbols) const {
  const std::size_t minimum = payload_size(bytes.size());
  const std::size_t end = symbols.size() + (minimum + block - 1) / block * block;
  unsigned waiting = 0;
  unsigned count = 0;
  for (std::size_t next = 0; symbols.size() < end;) {
    for (; count < bits_; count += 8, ++next) {
      const unsigned byte = next < bytes.size() ? bytes[next] : 0u;
      waiting = ((waiting << 8) | (byte ^ whitening_[next % whitening_.size()])) & 0xffff;
    }
    count -= bits_;
    symbols.push_back(points_[(waiting >> count) & ((1u << bits_) - 1)]);
  }
}

/// Without these signs the header's repetitions would look like the preamble's.
float PacketSymbols::header_sign(std::size_t index) const {
  return whitening_[index / 8 % whitening_.size()] >> (7 - index % 8) & 1 ? -1.0f : 1.0f;
}

std::optional<std::size_t> PacketSymbols::parse_header(std::span<const gr_complex> symbols) {
  std::array<float, header_bits> sums{};
  for (std::size_t i = 0; i < header_symbols_; ++i) {
    sums[i % sums.size()] += header_sign(i) * symbols[i].real();
  }
  std::array<unsigned char, header_bits> bits{};
  for (std::size_t i = 0; i < bits.size(); ++i) bits[i] = sums[i] > 0.0f;
  std::vector<gr::tag_t> tags;
  if (!header_->header_parser(bits.data(), tags)) return std::nullopt;
  for (const auto& tag : tags) {
    if (pmt::eqv(tag.key, header_->len_tag_key())) {
      return static_cast<std::size_t>(pmt::to_long(tag.value));
    }
  }
  return std::nullopt;
}

std::vector<std::uint8_t> PacketSymbols::decide(std::span<const gr_complex> symbols,
                                                std::size_t size) const {
  std::vector<std::uint8_t> bytes(size);
  unsigned waiting = 0;
  unsigned count = 0;
  std::size_t next = 0;
  for (std::size_t i = 0; i < size; ++i) {
    for (; count < 8; count += bits_) {
      waiting = ((waiting << bits_) | constellation_->decision_maker(&symbols[next++])) & 0xffff;
    }
    count -= 8;
    bytes[i] = static_cast<std::uint8_t>(waiting >> count) ^ whitening_[i];
  }
  return bytes;
}

}  // namespace gr::nagi
