/* SPDX-License-Identifier: Apache-2.0 */
//
// Python bindings of all blocks except the modems. The headers are the reference.
#include <gnuradio/nagi/channel.h>
#include <gnuradio/nagi/channel_model.h>
#include <gnuradio/nagi/framing.h>
#include <gnuradio/nagi/interference.h>
#include <gnuradio/nagi/link.h>
#include <gnuradio/nagi/loss_probe.h>
#include <gnuradio/nagi/medium_port.h>
#include <gnuradio/nagi/packet_cutter.h>
#include <gnuradio/nagi/packet_deframer.h>
#include <gnuradio/nagi/packet_framer.h>
#include <gnuradio/nagi/packet_port.h>
#include <gnuradio/nagi/snr_evm_probe.h>
#include <pybind11/complex.h>
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <string_view>
#include <variant>

#include "docstrings.h"

namespace py = pybind11;
using namespace gr::nagi;
using namespace py::literals;

/// Add the bindings of the modems to `m`; defined in modem_python.cc.
void bind_modems(py::module& m);

namespace {

/// A Python class of a block. Its constructor in Python is the block's `make`.
template <class Block>
using block_class = py::class_<Block, gr::block, gr::basic_block, std::shared_ptr<Block>>;

py::bytes to_python(const std::vector<std::uint8_t>& bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

std::span<const std::uint8_t> from_python(std::string_view bytes) {
  return {reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size()};
}

py::object content_to_python(const std::optional<framing::content>& content) {
  if (!content) return py::none();
  return py::make_tuple(content->sequence, to_python(content->payload));
}

void bind_medium_port(py::module& m) {
  block_class<medium_port>(m, "medium_port", doc::medium_port)
      .def(py::init(&medium_port::make), "fd"_a)
      .def("closed", &medium_port::closed, doc::medium_port_closed)
      .def("error", &medium_port::error, doc::medium_port_error)
      .def("closed_descriptor", &medium_port::closed_descriptor,
           doc::medium_port_closed_descriptor);
}

using Taps = std::vector<std::pair<double, double>>;
using SnrSteps = std::vector<std::pair<std::int64_t, double>>;

/// Define the Python constructor of `c`. `make` creates the object from the keyword arguments.
template <class Class, class Make>
void def_channel_init(Class& c, Make make) {
  constexpr double no_noise = std::numeric_limits<double>::infinity();
  c.def(py::init([make](std::uint64_t seed, std::uint32_t direction, double sample_rate,
                        double snr_db, const std::string& fading, double doppler_hz,
                        double k_factor_db, Taps taps, double frequency_offset_hz,
                        SnrSteps snr_steps, std::int64_t snr_period_ns, double shadowing_db,
                        double shadowing_decorrelation_s, double phase_noise_hz,
                        double sample_clock_offset_ppm, double sample_clock_drift_ppm_s) {
          return make(channel_config{.seed = seed,
                                     .direction = direction,
                                     .sample_rate = sample_rate,
                                     .snr_db = snr_db,
                                     .fading = fading_from_name(fading),
                                     .doppler_hz = doppler_hz,
                                     .k_factor_db = k_factor_db,
                                     .taps = std::move(taps),
                                     .frequency_offset_hz = frequency_offset_hz,
                                     .snr_steps = std::move(snr_steps),
                                     .snr_period_ns = snr_period_ns,
                                     .shadowing_db = shadowing_db,
                                     .shadowing_decorrelation_s = shadowing_decorrelation_s,
                                     .phase_noise_hz = phase_noise_hz,
                                     .sample_clock_offset_ppm = sample_clock_offset_ppm,
                                     .sample_clock_drift_ppm_s = sample_clock_drift_ppm_s});
        }),
        "seed"_a, "direction"_a, "sample_rate"_a, "snr_db"_a = no_noise, "fading"_a = "none",
        "doppler_hz"_a = 0.0, "k_factor_db"_a = 0.0, "taps"_a = Taps{},
        "frequency_offset_hz"_a = 0.0, "snr_steps"_a = SnrSteps{}, "snr_period_ns"_a = 0,
        "shadowing_db"_a = 0.0, "shadowing_decorrelation_s"_a = 1.0, "phase_noise_hz"_a = 0.0,
        "sample_clock_offset_ppm"_a = 0.0, "sample_clock_drift_ppm_s"_a = 0.0);
}

template <class Change>
void change_channel(channel& block, Change change) {
  channel_config config = block.config();
  change(config);
  block.set_config(config);
}

/// Define `set_NAME` and `NAME`, which change and return a setting while a flowgraph runs.
template <class Value>
void def_channel_setting(block_class<channel>& c, const std::string& name,
                         Value channel_config::* setting) {
  c.def(
      name.c_str(), [setting](const channel& self) { return self.config().*setting; },
      "What it is now.");
  c.def(("set_" + name).c_str(),
        [setting](channel& self, Value value) {
          change_channel(self, [&](channel_config& config) { config.*setting = std::move(value); });
        },
        py::arg(name.c_str()), "From the next burst on.");
}

void bind_channel(py::module& m) {
  block_class<channel> block(m, "channel", doc::channel);
  def_channel_init(block, &channel::make);
  def_channel_setting(block, "snr_db", &channel_config::snr_db);
  def_channel_setting(block, "doppler_hz", &channel_config::doppler_hz);
  def_channel_setting(block, "k_factor_db", &channel_config::k_factor_db);
  def_channel_setting(block, "taps", &channel_config::taps);
  def_channel_setting(block, "frequency_offset_hz", &channel_config::frequency_offset_hz);
  def_channel_setting(block, "shadowing_db", &channel_config::shadowing_db);
  def_channel_setting(block, "phase_noise_hz", &channel_config::phase_noise_hz);
  def_channel_setting(block, "sample_clock_offset_ppm", &channel_config::sample_clock_offset_ppm);
  block.def(
      "set_fading",
      [](channel& self, const std::string& fading) {
        change_channel(self, [&](channel_config& c) { c.fading = fading_from_name(fading); });
      },
      "fading"_a, "Set the fading from the next burst on: none, rayleigh or rician.");
  py::class_<channel_model> model(m, "channel_model", doc::channel_model);
  def_channel_init(model, [](const channel_config& config) { return channel_model(config); });
  model
      .def(
          "apply",
          [](const channel_model& self, std::uint64_t number, std::int64_t begin_ns,
             std::string_view samples) {
            const auto* first = reinterpret_cast<const gr_complex*>(samples.data());
            const std::vector<gr_complex> sent(first, first + samples.size() / sizeof *first);
            const auto received = self.apply(number, begin_ns, sent);
            return py::bytes(reinterpret_cast<const char*>(received.data()),
                             received.size() * sizeof(gr_complex));
          },
          "number"_a, "begin_ns"_a, "samples"_a,
          "Return the received burst. Samples are bytes in the format of numpy's complex64.")
      .def("gain", &channel_model::gain, "tap"_a, "time_s"_a, doc::channel_model_gain)
      .def("longest_delay", &channel_model::longest_delay, doc::channel_model_longest_delay)
      .def("clock_slip", &channel_model::clock_slip, "at_ns"_a, doc::channel_model_clock_slip)
      .def("clock_offset", &channel_model::clock_offset, "at_ns"_a,
           doc::channel_model_clock_offset);
}

void bind_interference(py::module& m) {
  block_class<interference>(m, "interference", doc::interference)
      .def(py::init([](std::uint64_t seed, std::uint32_t direction, double sample_rate,
                       std::vector<double> levels_db, std::int64_t margin_ns) {
             return interference::make({.seed = seed,
                                        .direction = direction,
                                        .sample_rate = sample_rate,
                                        .levels_db = std::move(levels_db),
                                        .margin_ns = margin_ns});
           }),
           "seed"_a, "direction"_a, "sample_rate"_a, py::kw_only(), "levels_db"_a,
           "margin_ns"_a = 2'000'000);
}

/// One code rate for all modes, or one per mode.
using CodeRates = std::variant<std::string, std::vector<std::string>>;

std::vector<std::string> listed(const CodeRates& rates) {
  if (const auto* one = std::get_if<std::string>(&rates)) return {*one};
  return std::get<std::vector<std::string>>(rates);
}

template <class Block>
void def_framing_init(block_class<Block>& c) {
  c.def(py::init([](const CodeRates& code_rate, bool whiten, std::size_t max_payload) {
          return Block::make(listed(code_rate), whiten, max_payload);
        }),
        "code_rate"_a = "none", py::kw_only(), "whiten"_a = true, "max_payload"_a = 2048);
}

void bind_framing(py::module& m) {
  m.def(
      "framed_bytes",
      [](std::size_t payload_bytes, const std::string& code_rate) {
        return framed_bytes(payload_bytes, code_rate_from_name(code_rate));
      },
      "payload_bytes"_a, "code_rate"_a = "none", doc::framed_bytes);
  py::class_<framing>(m, "framing", doc::framing)
      .def(py::init([](const std::string& code_rate, bool whiten, std::size_t max_payload) {
             return std::make_unique<framing>(code_rate_from_name(code_rate), whiten, max_payload);
           }),
           "code_rate"_a = "none", py::kw_only(), "whiten"_a = true, "max_payload"_a = 2048)
      .def(
          "frame",
          [](framing& self, std::uint32_t sequence, std::string_view payload) {
            return to_python(self.frame(sequence, from_python(payload)));
          },
          "sequence"_a, "payload"_a, doc::framing_frame)
      .def(
          "deframe",
          [](framing& self, std::string_view framed) {
            return content_to_python(self.deframe(from_python(framed)));
          },
          "framed"_a, "Return (sequence, payload), or None if the frame is damaged.")
      .def(
          "deframe_soft",
          [](framing& self, const std::vector<float>& soft_bits) {
            return content_to_python(self.deframe_soft(soft_bits));
          },
          "soft_bits"_a,
          "Return (sequence, payload) from soft decisions, or None if the frame is damaged. There "
          "is one value per bit: positive for 1, and larger in magnitude if more certain.");
  block_class<packet_framer> framer(m, "packet_framer", doc::packet_framer);
  def_framing_init(framer);
  block_class<packet_deframer> deframer(m, "packet_deframer", doc::packet_deframer);
  def_framing_init(deframer);
}

void bind_link(py::module& m) {
  using gr::nagi::link;  // not the function link() of unistd.h
  block_class<link>(m, "link", doc::link)
      .def(py::init(&link::make), "config_json"_a, "seed"_a, "id"_a, "direction"_a = "forward",
           "carries"_a = "ip")
      .def("offered", &link::offered, doc::link_offered)
      .def("delivered", &link::delivered, doc::link_delivered)
      .def("queue_overflows", &link::queue_overflows, doc::link_queue_overflows)
      .def("channel_losses", &link::channel_losses, doc::link_channel_losses)
      .def("marked", &link::marked, doc::link_marked)
      .def("held", &link::held, doc::link_held);
}

void bind_packet_port(py::module& m) {
  block_class<packet_port>(m, "packet_port", doc::packet_port)
      .def(py::init(&packet_port::make), "interface"_a, "kind"_a = "af_packet")
      .def("received", &packet_port::received, doc::packet_port_received)
      .def("sent", &packet_port::sent, doc::packet_port_sent)
      .def("send_failures", &packet_port::send_failures, doc::packet_port_send_failures)
      .def("discarded", &packet_port::discarded, doc::packet_port_discarded);
}

void bind_snr_evm_probe(py::module& m) {
  block_class<snr_evm_probe>(m, "snr_evm_probe", doc::snr_evm_probe)
      .def(py::init(&snr_evm_probe::make), "points"_a)
      .def("packets", &snr_evm_probe::packets, doc::snr_evm_probe_packets)
      .def("evm_percent", &snr_evm_probe::evm_percent, doc::snr_evm_probe_evm_percent)
      .def("snr_db", &snr_evm_probe::snr_db, doc::snr_evm_probe_snr_db);
}

void bind_loss_probe(py::module& m) {
  block_class<loss_probe>(m, "loss_probe", doc::loss_probe)
      .def(py::init(&loss_probe::make))
      .def("received", &loss_probe::received, doc::loss_probe_received)
      .def("not_detected", &loss_probe::not_detected, doc::loss_probe_not_detected)
      .def("header_errors", &loss_probe::header_errors, doc::loss_probe_header_errors)
      .def("payload_errors", &loss_probe::payload_errors, doc::loss_probe_payload_errors);
}

void bind_packet_cutter(py::module& m) {
  py::class_<packet_cutter, gr::sync_block, gr::block, gr::basic_block,
             std::shared_ptr<packet_cutter>>(m, "packet_cutter", doc::packet_cutter)
      .def(py::init(&packet_cutter::make), "length_tag"_a, "max_packet"_a, "window"_a)
      .def("outlet", &packet_cutter::outlet, doc::packet_cutter_outlet)
      .def("packets", &packet_cutter::packets, doc::packet_cutter_packets);
}

}  // namespace

PYBIND11_MODULE(nagi_python, m) {
  // The first module has the constellations and the base classes of the equalizers. The second
  // module has all other base classes.
  py::module::import("gnuradio.digital");
  py::module::import("gnuradio.gr");
  bind_medium_port(m);
  bind_channel(m);
  bind_framing(m);
  bind_interference(m);
  bind_link(m);
  bind_loss_probe(m);
  bind_modems(m);
  bind_packet_port(m);
  bind_snr_evm_probe(m);
  bind_packet_cutter(m);
}
