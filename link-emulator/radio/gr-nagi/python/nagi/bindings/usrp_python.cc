/* SPDX-License-Identifier: Apache-2.0 */
//
// Python bindings of radios that are UHD devices. They are a separate module, because they need
// UHD's library.
#include <pybind11/complex.h>
#include <pybind11/numpy.h>
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <uhd/version.hpp>

#include "usrp_channel.h"

namespace py = pybind11;
using namespace gr::nagi;

namespace {

PreambleShape shape_of(const std::vector<gr_complex>& samples, std::size_t repeat_begin,
                       std::size_t repeat_lag, std::size_t repeat_length, std::size_t spread,
                       double threshold) {
  return {samples, repeat_begin, repeat_lag, repeat_length, spread, threshold};
}

void bind_errors(py::module& m) {
  static const py::handle type =
      py::exception<UsrpError>(m, "UsrpError", PyExc_RuntimeError).release();
  py::register_exception_translator([](std::exception_ptr thrown) {
    try {
      if (thrown) std::rethrow_exception(thrown);
    } catch (const UsrpError& error) {
      py::object made = type(error.what());
      made.attr("stage") = error.stage;
      made.attr("cure") = error.cure;
      PyErr_SetObject(type.ptr(), made.ptr());
    }
  });
}

void bind_devices(py::module& m) {
  py::class_<Usrp, std::shared_ptr<Usrp>>(m, "Usrp", "A device of UHD: opened, checked and tuned.")
      .def(py::init([](const std::string& device, const std::string& subdev,
                       const std::string& clock_source, const std::string& time_source) {
             return std::make_shared<Usrp>(UsrpSettings{device, subdev, clock_source, time_source});
           }),
           py::arg("device"), py::arg("subdev") = "", py::arg("clock_source") = "",
           py::arg("time_source") = "", py::call_guard<py::gil_scoped_release>(),
           "Open the device. Raises UsrpError, which has a stage and a cure.")
      .def_property_readonly("description", &Usrp::description)
      .def_property_readonly("name", &Usrp::name)
      .def_property_readonly("firmware", &Usrp::firmware)
      .def("set_rate", &Usrp::set_rate, py::arg("rate_hz"))
      .def("set_time_at_pulse", &Usrp::set_time_at_pulse)
      .def(
          "tune",
          [](Usrp& usrp, bool is_output, std::size_t channel, double frequency_hz,
             double lo_offset_hz, double gain_db, const std::string& antenna) {
            const FrontEnd end{channel, frequency_hz, lo_offset_hz, gain_db, antenna};
            return is_output ? usrp.tune_output(end) : usrp.tune_input(end);
          },
          py::arg("is_output"), py::arg("channel"), py::arg("frequency_hz"),
          py::arg("lo_offset_hz") = 0.0, py::arg("gain_db"), py::arg("antenna") = "",
          "Set frequency in Hz, gain in dB and antenna of an output or input. Return the gain that "
          "the device applies, in dB. Raises UsrpError.");
  m.def("find_usrps", &find_usrps, py::arg("arguments"),
        "Return the addresses of the devices that UHD finds.");
  m.def("images_directory", &images_directory,
        "Return the directory of firmware and FPGA images. Raises UsrpError if there is none.");
  m.def("uhd_version", &uhd::get_version_string);
}

void bind_streams(py::module& m) {
  py::class_<BurstSender, std::shared_ptr<BurstSender>>(m, "BurstSender")
      .def(py::init<std::shared_ptr<Usrp>, std::size_t, double>(), py::arg("usrp"),
           py::arg("channel"), py::arg("backoff_db"))
      .def("set_backoff", &BurstSender::set_backoff, py::arg("backoff_db"),
           "Set the back-off of later bursts, in dB: full scale over mean power.")
      .def("measure_margin", &BurstSender::measure_margin, py::call_guard<py::gil_scoped_release>(),
           "Return how long before its instant a burst must be handed over, in ns.");
  py::class_<SampleStream, std::shared_ptr<SampleStream>>(m, "SampleStream")
      .def(py::init<std::shared_ptr<Usrp>, std::size_t>(), py::arg("usrp"), py::arg("channel"))
      .def(
          "power", [](SampleStream& stream, double seconds) { return stream.mean_power(seconds); },
          py::arg("seconds"), py::call_guard<py::gil_scoped_release>(),
          "Return the mean power of the next samples, relative to full scale.");
  py::class_<HalfDuplex, std::shared_ptr<HalfDuplex>>(m, "HalfDuplex").def(py::init<>());
}

void bind_search(py::module& m) {
  py::class_<PreambleShape>(m, "Preamble")
      .def(py::init(&shape_of), py::arg("samples"), py::arg("repeat_begin"), py::arg("repeat_lag"),
           py::arg("repeat_length"), py::arg("spread"), py::arg("threshold"));
  m.def("common_clock_positions", &UsrpChannel::common_clock_positions, py::arg("preamble"));
  m.def("preamble_length", [](const PreambleShape& shape) { return shape.samples.size(); });
  py::class_<BurstSearch>(m, "BurstSearch")
      .def(py::init<PreambleShape, std::size_t, double>(), py::arg("preamble"),
           py::arg("positions"), py::arg("max_false_alarms"))
      .def_property_readonly("threshold", &BurstSearch::threshold)
      .def_static("false_alarms", &BurstSearch::false_alarms, py::arg("preamble"),
                  py::arg("positions"), py::arg("threshold"))
      .def(
          "find",
          [](const BurstSearch& search,
             const py::array_t<gr_complex, py::array::c_style | py::array::forcecast>& samples)
              -> std::optional<std::pair<double, double>> {
            const auto found =
                search.find({samples.data(), static_cast<std::size_t>(samples.size())});
            if (!found) return std::nullopt;
            return std::pair{found->begin, found->share};
          },
          py::arg("samples"),
          "Return the start of the preamble and its share of the energy, or None.");
}

py::dict as_dict(const ChannelCounts& counts) {
  py::dict found;
  found["bursts"] = counts.sent.bursts;
  found["late"] = counts.sent.late;
  found["underflows"] = counts.sent.underflows;
  found["tx_sequence_errors"] = counts.sent.sequence_errors;
  found["clipped_samples"] = counts.sent.clipped_samples;
  found["overflows"] = counts.received.overflows;
  found["rx_sequence_errors"] = counts.received.sequence_errors;
  found["lost_samples"] = counts.received.lost_samples;
  found["not_sent"] = counts.not_sent;
  found["not_received"] = counts.not_received;
  found["receiver_busy"] = counts.receiver_busy;
  return found;
}

void bind_channel(py::module& m) {
  py::class_<Synchronisation>(m, "Synchronisation")
      .def_readonly("probes", &Synchronisation::probes)
      .def_readonly("found", &Synchronisation::found)
      .def_readonly("delay_samples", &Synchronisation::delay_samples)
      .def_readonly("drift_ppm", &Synchronisation::drift_ppm)
      .def_readonly("snr_db", &Synchronisation::snr_db);
  py::class_<UsrpChannel, gr::block, gr::basic_block, std::shared_ptr<UsrpChannel>>(
      m, "usrp_channel", "One direction of a link over the air; see lib/usrp/usrp_channel.h.")
      .def(py::init([](std::shared_ptr<BurstSender> sender, std::shared_ptr<SampleStream> stream,
                       std::shared_ptr<HalfDuplex> half_duplex, const PreambleShape& preamble,
                       std::int64_t epoch_monotonic_ns, std::int64_t lead_ns, bool common_clock,
                       std::size_t guard, std::size_t direction, double max_false_alarms) {
             const UsrpChannelSettings settings{
                 epoch_monotonic_ns, lead_ns, common_clock, guard, direction, max_false_alarms};
             return gnuradio::get_initial_sptr(new UsrpChannel(
                 std::move(sender), std::move(stream), std::move(half_duplex), preamble, settings));
           }),
           py::arg("sender"), py::arg("stream"), py::arg("half_duplex"), py::arg("preamble"),
           py::arg("epoch_monotonic_ns"), py::arg("lead_ns"), py::arg("common_clock"),
           py::arg("guard"), py::arg("direction"), py::arg("max_false_alarms") = 1e-6)
      .def("synchronise", &UsrpChannel::synchronise, py::arg("probes"), py::arg("within_s"),
           py::call_guard<py::gil_scoped_release>())
      .def("close", &UsrpChannel::close, py::call_guard<py::gil_scoped_release>())
      .def("set_lead", &UsrpChannel::set_lead, py::arg("lead_ns"))
      .def("counts", [](const UsrpChannel& channel) { return as_dict(channel.counts()); })
      .def("error", &UsrpChannel::error);
}

}  // namespace

PYBIND11_MODULE(nagi_usrp_python, m) {
  py::module::import("gnuradio.gr");
  bind_errors(m);
  bind_devices(m);
  bind_streams(m);
  bind_search(m);
  bind_channel(m);
}
