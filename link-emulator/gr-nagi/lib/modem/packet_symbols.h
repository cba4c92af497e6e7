/* SPDX-License-Identifier: Apache-2.0 */
//
// A packet as symbols, and back: what transmitter and receiver of every modem have in common.
//
// The PHY header is gr-digital's packet_header_default (12 bits of length, 12 of number, CRC-8) in
// BPSK, as often as its symbols hold it: no code protects it, and a packet with FEC should not be
// lost for its header. The payload is whitened with x^7 + x^4 + 1 (IEEE 802.11-2020, 17.3.5.5) so
// that a packet of zeros keeps its mean power and its transitions, then mapped, most significant
// bit first.
#pragma once

#include <gnuradio/digital/constellation.h>
#include <gnuradio/digital/packet_header_default.h>
#include <gnuradio/gr_complex.h>

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace gr::nagi {

class PacketSymbols {
 public:
  /// The longest packet that the header's 12 bits can announce, in bytes.
  static constexpr std::size_t longest = 4095;
  static constexpr int header_bits = 32;

  /// `header_symbols` >= 32. Throws std::invalid_argument if it is less, or if the constellation
  /// has not 2, 4, 8 or 16 points.
  PacketSymbols(const gr::digital::constellation_sptr& constellation, int header_symbols);

  std::size_t header_size() const { return header_symbols_; }
  /// Symbols of a payload of so many bytes.
  std::size_t payload_size(std::size_t bytes) const;

  /// Appends the header of packet `number`.
  void append_header(std::size_t bytes, std::uint64_t number, std::vector<gr_complex>& symbols);
  /// Appends a payload, filled up with whitened zeros to a multiple of `block` symbols.
  void append_payload(std::span<const std::uint8_t> bytes, std::size_t block,
                      std::vector<gr_complex>& symbols) const;

  /// The payload's length in bytes, if the header's CRC is right.
  std::optional<std::size_t> parse_header(std::span<const gr_complex> symbols);

  /// The symbols' nearest neighbours as bytes. `symbols` has payload_size(size) items.
  std::vector<std::uint8_t> decide(std::span<const gr_complex> symbols, std::size_t size) const;

  /// The ideal point nearest to a symbol.
  gr_complex nearest(const gr_complex& symbol) const {
    return points_[constellation_->decision_maker(&symbol)];
  }

 private:
  float header_sign(std::size_t index) const;

  gr::digital::constellation_sptr constellation_;
  std::vector<gr_complex> points_;
  unsigned bits_;  // in a symbol
  std::size_t header_symbols_;
  gr::digital::packet_header_default::sptr header_;
  std::vector<std::uint8_t> whitening_;
};

}  // namespace gr::nagi
