/* SPDX-License-Identifier: Apache-2.0 */
//
// A packet as symbols, and back: what transmitter and receiver of every modem have in common.
//
// The PHY header is gr-digital's packet_header_default (12 bits of length, 12 of number, CRC-8) in
// BPSK, as often as its symbols hold it: no code protects it, and a packet with a code should not
// be lost for its header. Of the number's bits the upper 4 are the mode, which tells the receiver
// the payload's modulation. The payload is whitened with x^7 + x^4 + 1 (IEEE 802.11-2020, 17.3.5.5)
// so that a packet of zeros keeps its mean power and its transitions, then mapped, most significant
// bit first.
#pragma once

#include <gnuradio/digital/constellation.h>
#include <gnuradio/digital/packet_header_default.h>
#include <gnuradio/gr_complex.h>

#include <array>
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

  static constexpr std::size_t max_modes = 16;

  struct Header {
    std::size_t bytes;
    std::size_t mode;
  };

  /// A constellation for each mode. `header_symbols` >= 32. Throws std::invalid_argument if it is
  /// less, if there are no modes or more than 16, or if a constellation has not 2 to 64 points.
  PacketSymbols(const std::vector<gr::digital::constellation_sptr>& constellations,
                int header_symbols);

  std::size_t header_size() const { return header_symbols_; }
  std::size_t modes() const { return modes_.size(); }
  /// Symbols of a payload.
  std::size_t payload_size(const Header& header) const;

  /// Appends the header of packet `number`.
  void append_header(const Header& header, std::uint64_t number, std::vector<gr_complex>& symbols);
  /// Appends a payload, filled up with whitened zeros to a multiple of `block` symbols.
  void append_payload(std::span<const std::uint8_t> bytes, std::size_t mode, std::size_t block,
                      std::vector<gr_complex>& symbols) const;

  /// What the header says, if its CRC is right and there is such a mode. `weights`: as for
  /// soft_bits().
  std::optional<Header> parse_header(std::span<const gr_complex> symbols,
                                     std::span<const float> weights);
  /// Power of what a header's symbols deviate by from its bits, over that of the symbols.
  double header_noise(std::span<const gr_complex> symbols, std::span<const float> weights) const;

  /// The symbols' nearest neighbours as bytes. `symbols` has payload_size(header) items.
  std::vector<std::uint8_t> decide(std::span<const gr_complex> symbols, const Header& header) const;
  /// The payload's bits as max-log-likelihood ratios: positive for 1, in units of the noise of a
  /// symbol of weight 1. `weights`, power gains of the channel, are those of the first symbols, and
  /// repeat.
  std::vector<float> soft_bits(std::span<const gr_complex> symbols, std::span<const float> weights,
                               const Header& header) const;

  /// The ideal point nearest to a symbol.
  gr_complex nearest(const gr_complex& symbol, std::size_t mode) const {
    return modes_[mode].points[modes_[mode].constellation->decision_maker(&symbol)];
  }
  /// Half the distance of the nearest points.
  float decision_distance(std::size_t mode) const { return modes_[mode].decision_distance; }

 private:
  struct Mode {
    gr::digital::constellation_sptr constellation;
    std::vector<gr_complex> points;
    unsigned bits;  // in a symbol
    float decision_distance;
  };
  static Mode mode_of(const gr::digital::constellation_sptr& constellation);

  std::array<float, header_bits> header_sums(std::span<const gr_complex> symbols,
                                             std::span<const float> weights) const;
  float header_sign(std::size_t index) const;

  std::vector<Mode> modes_;
  std::size_t header_symbols_;
  gr::digital::packet_header_default::sptr header_;
  std::vector<std::uint8_t> whitening_;
};

}  // namespace gr::nagi
