// SPDX-License-Identifier: Apache-2.0
#include "native/trace.hpp"

#include <cstdint>
#include <string>
#include <utility>

#include "native/capture_file.hpp"
#include "native/decode.hpp"
#include "native/flows.hpp"
#include "native/python/columns.hpp"
#include "native/python/module.hpp"
#include "native/python/signals.hpp"

namespace nagi::captures::python {

nb::dict trace(const nb::bytes& path, std::uint32_t connection, unsigned direction, bool tunnels) {
  Tracer tracer(connection, direction);
  {
    const std::string name(path.c_str(), path.size());
    const nb::gil_scoped_release free;
    CaptureFile file(name);
    Decoder decoder(tunnels);
    Engine engine{Options{}};
    Record record;
    Packet packet;
    for (std::int64_t passed = 1; file.next(record); ++passed) {
      if (passed % packets_between_signals == 0) check_signals();
      if (decoder.decode(record, packet) == Unused::none) tracer.add(packet, engine.add(packet));
    }
  }
  Trace& trace = tracer.trace();
  nb::dict segments;
  segments["time_ns"] = array(std::move(trace.segments.time_ns));
  segments["begin"] = array(std::move(trace.segments.begin));
  segments["end"] = array(std::move(trace.segments.end));
  segments["kind"] = array(std::move(trace.segments.kind));
  segments["flags"] = array(std::move(trace.segments.flags));
  nb::dict acknowledgements;
  acknowledgements["time_ns"] = array(std::move(trace.acknowledgements.time_ns));
  acknowledgements["number"] = array(std::move(trace.acknowledgements.number));
  acknowledgements["window_end"] = array(std::move(trace.acknowledgements.window_end));
  acknowledgements["duplicate"] = array(std::move(trace.acknowledgements.duplicate));
  nb::dict sacks;
  sacks["time_ns"] = array(std::move(trace.sacks.time_ns));
  sacks["begin"] = array(std::move(trace.sacks.begin));
  sacks["end"] = array(std::move(trace.sacks.end));
  const auto samples = [](Trace::Samples& from, const char* value) {
    nb::dict columns;
    columns["time_ns"] = array(std::move(from.time_ns));
    columns[value] = array(std::move(from.value));
    return columns;
  };
  nb::dict result;
  result["segments"] = segments;
  result["acknowledgements"] = acknowledgements;
  result["sacks"] = sacks;
  result["rtt_sequence"] = samples(trace.rtt_sequence, "rtt_ns");
  result["rtt_timestamps"] = samples(trace.rtt_timestamps, "rtt_ns");
  result["in_flight"] = samples(trace.in_flight, "bytes");
  return result;
}

}  // namespace nagi::captures::python
