/* SPDX-License-Identifier: Apache-2.0 */
//
// Conversion of packets to symbols and back, common to the transmitters and receivers of all
// modems.
//
// The PHY header is that of gr-digital's packet_header_default (12 bits of length, 12 bits of
// number, CRC-8) in BPSK. The bits repeat until all header symbols are filled, because no code
// protects the header, and a coded packet should not be lost because of its header. The upper 4
// bits of the number are the mode, which identifies the modulation of the payload to the receiver.
// The payload is whitened with x^7 + x^4 + 1 (IEEE 802.11-2020, 17.3.5.5), so that a packet of
// zeros keeps its mean power and its transitions. The whitened bits are mapped to symbols, most
// significant bit first.
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
  /// The longest packet, in bytes, that the 12 bits of the header's length can express.
  static constexpr std::size_t longest = 4095;
  static constexpr int header_bits = 32;

  static constexpr std::size_t max_modes = 16;

  struct Header {
    std::size_t bytes;
    std::size_t mode;
  };

  /// Configure one constellation per mode. Throws std::invalid_argument if `header_symbols` is less
  /// than 32, if there are no modes or more than 16, or if a constellation does not have 2, 4, 8,
  /// 16, 32 or 64 points.
  PacketSymbols(const std::vector<gr::digital::constellation_sptr>& constellations,
                int header_symbols);

  std::size_t header_size() const { return header_symbols_; }
  std::size_t modes() const { return modes_.size(); }
  /// Return the number of symbols of a payload.
  std::size_t payload_size(const Header& header) const;

  /// Append the header of packet `number` to `symbols`.
  void append_header(const Header& header, std::uint64_t number, std::vector<gr_complex>& symbols);
  /// Append a payload to `symbols`, padded with whitened zeros to a multiple of `block` symbols.
  void append_payload(std::span<const std::uint8_t> bytes, std::size_t mode, std::size_t block,
                      std::vector<gr_complex>& symbols) const;

  /// Return the header if its CRC is correct and its mode exists, or nullopt. `weights` are defined
  /// as for soft_bits().
  std::optional<Header> parse_header(std::span<const gr_complex> symbols,
                                     std::span<const float> weights);
  /// Return the noise power of a header relative to the power of its signal. The noise is the
  /// deviation of the header's symbols from the symbols of its decided bits.
  double header_noise(std::span<const gr_complex> symbols, std::span<const float> weights) const;

  /// Return the payload's bytes by hard decisions: each symbol is mapped to its nearest point.
  /// `symbols` has payload_size(header) items.
  std::vector<std::uint8_t> decide(std::span<const gr_complex> symbols, const Header& header) const;
  /// Return the payload's bits as max-log-likelihood ratios. A ratio is positive for 1. The unit is
  /// the noise of a symbol of weight 1. `weights` are the power gains of the channel for the first
  /// symbols; they repeat for the symbols after these.
  std::vector<float> soft_bits(std::span<const gr_complex> symbols, std::span<const float> weights,
                               const Header& header) const;

  /// Return the ideal point nearest to a symbol.
  gr_complex nearest(const gr_complex& symbol, std::size_t mode) const {
    return modes_[mode].points[modes_[mode].constellation->decision_maker(&symbol)];
  }
  /// Return half the smallest distance between two points of the mode's constellation.
  float decision_distance(std::size_t mode) const { return modes_[mode].decision_distance; }

 private:
  struct Mode {
    gr::digital::constellation_sptr constellation;
    std::vector<gr_complex> points;
    unsigned bits;  // per symbol
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
