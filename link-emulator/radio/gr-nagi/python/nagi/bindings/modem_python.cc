/* SPDX-License-Identifier: Apache-2.0 */
//
// Python bindings of the parts of the packet modems. The headers are the reference.
#include <gnuradio/nagi/ofdm_equalizer_tracking.h>
#include <gnuradio/nagi/packet_demux.h>
#include <gnuradio/nagi/packet_mux.h>
#include <gnuradio/nagi/repeatable_fft.h>
#include <gnuradio/nagi/single_carrier_demod.h>
#include <gnuradio/nagi/single_carrier_mod.h>
#include <pybind11/complex.h>
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include "docstrings.h"

namespace py = pybind11;
using namespace gr::nagi;

namespace {

template <class Block>
using block_class = py::class_<Block, gr::block, gr::basic_block, std::shared_ptr<Block>>;

void bind_packet_mux(py::module& m) {
  block_class<packet_mux>(m, "packet_mux", doc::packet_mux)
      .def(py::init([](std::vector<gr::digital::constellation_sptr> constellations,
                       int header_symbols, int block, int longest, int guard, int tail) {
             return packet_mux::make({.constellations = std::move(constellations),
                                      .header_symbols = header_symbols,
                                      .block = block,
                                      .longest = longest,
                                      .guard = guard,
                                      .tail = tail});
           }),
           py::kw_only(), py::arg("constellations"), py::arg("header_symbols"), py::arg("block"),
           py::arg("longest"), py::arg("guard"), py::arg("tail"));
}

void bind_packet_demux(py::module& m) {
  block_class<packet_demux>(m, "packet_demux", doc::packet_demux)
      .def(py::init([](std::vector<gr::digital::constellation_sptr> constellations,
                       std::vector<int> demodulators, bool soft_bits, int header_symbols,
                       int longest, std::vector<gr_complex> preamble, int repeat_begin,
                       int repeat_lag, int repeat_length, int spread, double threshold,
                       int item_samples, int item_prefix, int item_symbols, int header_items,
                       int overlap, double snr_offset_db, std::string channel_key,
                       std::vector<int> weights) {
             return packet_demux::make({.constellations = std::move(constellations),
                                        .demodulators = std::move(demodulators),
                                        .soft_bits = soft_bits,
                                        .header_symbols = header_symbols,
                                        .longest = longest,
                                        .preamble = std::move(preamble),
                                        .repeat_begin = repeat_begin,
                                        .repeat_lag = repeat_lag,
                                        .repeat_length = repeat_length,
                                        .spread = spread,
                                        .threshold = threshold,
                                        .item_samples = item_samples,
                                        .item_prefix = item_prefix,
                                        .item_symbols = item_symbols,
                                        .header_items = header_items,
                                        .overlap = overlap,
                                        .snr_offset_db = snr_offset_db,
                                        .channel_key = std::move(channel_key),
                                        .weights = std::move(weights)});
           }),
           py::kw_only(), py::arg("constellations"), py::arg("demodulators") = std::vector{0},
           py::arg("soft_bits") = false, py::arg("header_symbols"), py::arg("longest"),
           py::arg("preamble"), py::arg("repeat_begin"), py::arg("repeat_lag"),
           py::arg("repeat_length"), py::arg("spread"), py::arg("threshold"),
           py::arg("item_samples"), py::arg("item_prefix"), py::arg("item_symbols"),
           py::arg("header_items"), py::arg("overlap"), py::arg("snr_offset_db"),
           py::arg("channel_key"), py::arg("weights"));
}

void bind_single_carrier(py::module& m) {
  block_class<single_carrier_mod>(m, "single_carrier_mod", doc::single_carrier_mod)
      .def(py::init(&single_carrier_mod::make), py::kw_only(), py::arg("preamble"),
           py::arg("samples_per_symbol"), py::arg("rolloff"), py::arg("span"));
  block_class<single_carrier_demod>(m, "single_carrier_demod", doc::single_carrier_demod)
      .def(py::init([](gr::digital::constellation_sptr constellation,
                       std::vector<gr_complex> preamble, int samples_per_symbol, double rolloff,
                       int span, double bandwidth, double timing_gain) {
             return single_carrier_demod::make({.constellation = std::move(constellation),
                                                .preamble = std::move(preamble),
                                                .samples_per_symbol = samples_per_symbol,
                                                .rolloff = rolloff,
                                                .span = span,
                                                .bandwidth = bandwidth,
                                                .timing_gain = timing_gain});
           }),
           py::kw_only(), py::arg("constellation"), py::arg("preamble"),
           py::arg("samples_per_symbol"), py::arg("rolloff"), py::arg("span"), py::arg("bandwidth"),
           py::arg("timing_gain") = 0.01);
}

void bind_repeatable_fft(py::module& m) {
  py::class_<repeatable_fft, gr::sync_block, gr::block, gr::basic_block,
             std::shared_ptr<repeatable_fft>>(m, "repeatable_fft", doc::repeatable_fft)
      .def(py::init(&repeatable_fft::make), py::arg("size"), py::arg("forward"),
           py::arg("scale") = 1.0);
}

void bind_ofdm_equalizer_tracking(py::module& m) {
  using gr::digital::ofdm_equalizer_1d_pilots;
  py::class_<ofdm_equalizer_tracking, ofdm_equalizer_1d_pilots,
             std::shared_ptr<ofdm_equalizer_tracking>>(m, "ofdm_equalizer_tracking",
                                                       doc::ofdm_equalizer_tracking)
      .def(
          py::init([](gr::digital::constellation_sptr constellation, int fft_len,
                      std::vector<std::vector<int>> occupied_carriers,
                      std::vector<std::vector<int>> pilot_carriers,
                      std::vector<std::vector<gr_complex>> pilot_symbols, int symbols_skipped,
                      int delay_spread, double alpha, double timing_gain) {
            return ofdm_equalizer_tracking::make({.constellation = std::move(constellation),
                                                  .fft_len = fft_len,
                                                  .occupied_carriers = std::move(occupied_carriers),
                                                  .pilot_carriers = std::move(pilot_carriers),
                                                  .pilot_symbols = std::move(pilot_symbols),
                                                  .symbols_skipped = symbols_skipped,
                                                  .delay_spread = delay_spread,
                                                  .alpha = alpha,
                                                  .timing_gain = timing_gain});
          }),
          py::kw_only(), py::arg("constellation"), py::arg("fft_len"), py::arg("occupied_carriers"),
          py::arg("pilot_carriers"), py::arg("pilot_symbols"), py::arg("symbols_skipped"),
          py::arg("delay_spread"), py::arg("alpha"), py::arg("timing_gain") = 0.3);
}

}  // namespace

void bind_modems(py::module& m);
void bind_modems(py::module& m) {
  bind_packet_mux(m);
  bind_packet_demux(m);
  bind_single_carrier(m);
  bind_ofdm_equalizer_tracking(m);
  bind_repeatable_fft(m);
}
