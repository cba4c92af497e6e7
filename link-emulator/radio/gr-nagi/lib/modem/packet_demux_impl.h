/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <gnuradio/nagi/packet_demux.h>

#include <deque>

#include "packet_symbols.h"
#include "preamble_detector.h"

namespace gr {
namespace nagi {

class packet_demux_impl : public packet_demux {
 public:
  struct Items {
    std::size_t samples;
    std::size_t prefix;
    std::size_t symbols;
    std::size_t header;
    std::size_t overlap;
  };
  struct Quality {
    double offset_db;
    pmt::pmt_t key;
    std::vector<std::size_t> weights;
    bool soft_bits;
  };

  packet_demux_impl(PacketSymbols symbols, PreambleDetector detector, Items items, Quality quality,
                    std::vector<std::size_t> demodulators, std::size_t longest);

 private:
  enum class Stage { header, payload, done };

  struct Burst {
    pmt::pmt_t meta;
    pmt::pmt_t samples;
    Detection detection{};
    Stage stage = Stage::header;
    bool handed_on = false;  // true if the burst was sent to the demodulator of `stage`
    pmt::pmt_t channel;      // state of the channel after the header
    PacketSymbols::Header header{};
    double header_noise = 0;  // relative to the power of the signal
    pmt::pmt_t result;        // PDU to publish when the burst is done
  };

  void take(const pmt::pmt_t& message);
  void take_header(const pmt::pmt_t& message);
  void take_payload(const pmt::pmt_t& message, std::size_t demodulator);
  void advance();
  void hand_on(Burst& burst);
  Burst& awaiting_header();
  Burst& awaiting_payload(std::size_t demodulator);
  pmt::pmt_t cut(const Burst& burst, std::size_t first, std::size_t count, double frequency) const;
  double payload_frequency(const Burst& burst, std::size_t count) const;
  std::vector<float> power_gains(const pmt::pmt_t& channel) const;
  std::vector<float> power_gains(const pmt::pmt_t& before, const pmt::pmt_t& after,
                                 std::size_t count) const;
  double snr_db(const Burst& burst, std::span<const gr_complex> symbols,
                std::span<const float> weights) const;

  PacketSymbols symbols_;
  PreambleDetector detector_;
  Items items_;
  Quality quality_;
  std::vector<std::size_t> demodulators_;  // index of the demodulator, by mode
  std::size_t longest_;
  std::deque<Burst> bursts_;  // in order of arrival; a burst waits until all earlier ones are done
};

}  // namespace nagi
}  // namespace gr
