/* SPDX-License-Identifier: Apache-2.0 */
#include "packet_symbols.h"

#include <gnuradio/digital/lfsr.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <limits>
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

PacketSymbols::PacketSymbols(const std::vector<gr::digital::constellation_sptr>& constellations,
                             int header_symbols)
    : header_symbols_(static_cast<std::size_t>(std::max(header_symbols, 0))),
      header_(gr::digital::packet_header_default::make(header_bits, "length", "number", 1)),
      whitening_(whitening_bytes()) {
  if (header_symbols < header_bits) {
    throw std::invalid_argument("the PHY header has " + std::to_string(header_symbols) +
                                " symbols; it needs 32 or more");
  }
  if (constellations.empty() || constellations.size() > max_modes) {
    throw std::invalid_argument(std::to_string(constellations.size()) +
                                " modes are given; a modem has 1 to 16");
  }
  for (const auto& constellation : constellations) modes_.push_back(mode_of(constellation));
}

PacketSymbols::Mode PacketSymbols::mode_of(const gr::digital::constellation_sptr& constellation) {
  std::vector<gr_complex> points = constellation->points();
  if (points.size() > 64 || points.size() < 2 || !std::has_single_bit(points.size())) {
    throw std::invalid_argument("a constellation has " + std::to_string(points.size()) +
                                " points; it must have 2, 4, 8, 16, 32 or 64");
  }
  float distance = std::numeric_limits<float>::infinity();
  for (std::size_t i = 0; i < points.size(); ++i) {
    for (std::size_t k = 0; k < i; ++k) {
      distance = std::min(distance, std::abs(points[i] - points[k]));
    }
  }
  return {constellation, std::move(points), constellation->bits_per_symbol(), distance / 2};
}

std::size_t PacketSymbols::payload_size(const Header& header) const {
  const unsigned bits = modes_[header.mode].bits;
  return (header.bytes * 8 + bits - 1) / bits;
}

void PacketSymbols::append_header(const Header& header, std::uint64_t number,
                                  std::vector<gr_complex>& symbols) {
  std::array<unsigned char, header_bits> bits{};
  header_->set_header_num(static_cast<unsigned>(header.mode << 8 | (number & 0xff)));
  header_->header_formatter(static_cast<long>(header.bytes), bits.data());
  for (std::size_t i = 0; i < header_symbols_; ++i) {
    symbols.emplace_back(bits[i % bits.size()] ? header_sign(i) : -header_sign(i), 0.0f);
  }
}

void PacketSymbols::append_payload(std::span<const std::uint8_t> bytes, std::size_t mode,
                                   std::size_t block, std::vector<gr_complex>& symbols) const {
  const auto& [constellation, points, bits, distance] = modes_[mode];
  const std::size_t minimum = payload_size({bytes.size(), mode});
  const std::size_t end = symbols.size() + (minimum + block - 1) / block * block;
  unsigned waiting = 0;
  unsigned count = 0;
  for (std::size_t next = 0; symbols.size() < end;) {
    for (; count < bits; count += 8, ++next) {
      const unsigned byte = next < bytes.size() ? bytes[next] : 0u;
      waiting = ((waiting << 8) | (byte ^ whitening_[next % whitening_.size()])) & 0xffff;
    }
    count -= bits;
    symbols.push_back(points[(waiting >> count) & ((1u << bits) - 1)]);
  }
}

/// Return the sign of header symbol `index`. Without these signs, the repetitions of the header
/// would resemble the repetition in the preamble.
float PacketSymbols::header_sign(std::size_t index) const {
  return whitening_[index / 8 % whitening_.size()] >> (7 - index % 8) & 1 ? -1.0f : 1.0f;
}

std::array<float, PacketSymbols::header_bits> PacketSymbols::header_sums(
    std::span<const gr_complex> symbols, std::span<const float> weights) const {
  std::array<float, header_bits> sums{};
  for (std::size_t i = 0; i < header_symbols_; ++i) {
    sums[i % sums.size()] += weights[i % weights.size()] * header_sign(i) * symbols[i].real();
  }
  return sums;
}

std::optional<PacketSymbols::Header> PacketSymbols::parse_header(
    std::span<const gr_complex> symbols, std::span<const float> weights) {
  const auto sums = header_sums(symbols, weights);
  std::array<unsigned char, header_bits> bits{};
  for (std::size_t i = 0; i < bits.size(); ++i) bits[i] = sums[i] > 0.0f;
  std::vector<gr::tag_t> tags;
  if (!header_->header_parser(bits.data(), tags)) return std::nullopt;
  Header header{};
  for (const auto& tag : tags) {
    if (pmt::eqv(tag.key, header_->len_tag_key())) {
      header.bytes = static_cast<std::size_t>(pmt::to_long(tag.value));
    } else if (pmt::symbol_to_string(tag.key) == "number") {
      header.mode = static_cast<std::size_t>(pmt::to_long(tag.value)) >> 8;
    }
  }
  return header.mode < modes_.size() ? std::optional(header) : std::nullopt;
}

double PacketSymbols::header_noise(std::span<const gr_complex> symbols,
                                   std::span<const float> weights) const {
  const auto sums = header_sums(symbols, weights);
  double signal = 0;
  double noise = 0;
  for (std::size_t i = 0; i < header_symbols_; ++i) {
    const float sent = sums[i % sums.size()] > 0.0f ? header_sign(i) : -header_sign(i);
    const float weight = weights[i % weights.size()];
    signal += weight;
    noise += weight * std::norm(symbols[i] - sent);
  }
  return noise / std::max(signal, 1e-30);
}

std::vector<std::uint8_t> PacketSymbols::decide(std::span<const gr_complex> symbols,
                                                const Header& header) const {
  const Mode& mode = modes_[header.mode];
  std::vector<std::uint8_t> bytes(header.bytes);
  unsigned waiting = 0;
  unsigned count = 0;
  std::size_t next = 0;
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    for (; count < 8; count += mode.bits) {
      const unsigned value = mode.constellation->decision_maker(&symbols[next++]);
      waiting = ((waiting << mode.bits) | value) & 0xffff;
    }
    count -= 8;
    bytes[i] = static_cast<std::uint8_t>(waiting >> count) ^ whitening_[i];
  }
  return bytes;
}

std::vector<float> PacketSymbols::soft_bits(std::span<const gr_complex> symbols,
                                            std::span<const float> weights,
                                            const Header& header) const {
  const Mode& mode = modes_[header.mode];
  constexpr std::size_t most_bits = 6;
  constexpr float far = std::numeric_limits<float>::infinity();
  std::vector<float> soft(header.bytes * 8);
  for (std::size_t i = 0, first = 0; i < symbols.size(); ++i, first += mode.bits) {
    // The smallest squared distance, by bit and by the value of the bit.
    std::array<std::array<float, 2>, most_bits> nearest;
    for (auto& distances : nearest) distances = {far, far};
    for (std::size_t value = 0; value < mode.points.size(); ++value) {
      const float distance = std::norm(symbols[i] - mode.points[value]);
      for (unsigned bit = 0; bit < mode.bits; ++bit) {
        float& least = nearest[bit][value >> (mode.bits - 1 - bit) & 1];
        least = std::min(least, distance);
      }
    }
    const float weight = weights[i % weights.size()];
    for (unsigned bit = 0; bit < mode.bits && first + bit < soft.size(); ++bit) {
      const std::size_t position = first + bit;
      const float ratio = weight * (nearest[bit][0] - nearest[bit][1]);
      soft[position] = whitening_[position / 8] >> (7 - position % 8) & 1 ? -ratio : ratio;
    }
  }
  return soft;
}

}  // namespace gr::nagi
