// SPDX-License-Identifier: Apache-2.0
//
// bench-sink: records the arrivals of bench-source's frames at an interface. It reports as JSON the
// number of frames, their order, their rate, and their delays.
//
// A BPF program at the interface's ingress (tcx, Linux 6.6) records each arrival in an array,
// indexed by the frame's number, and drops the frame. Meanwhile, this process sleeps, because on a
// machine with two cores a busy receiver would take time from the measured programs. Other frames
// pass. The program prints "ready", and runs until SIGTERM or SIGINT, or for --seconds.
//
// Definitions. One-way delay: arrival minus sending, both by CLOCK_MONOTONIC. Reordered: a frame
// that arrives after a frame with a larger number (RFC 4737, 3). Rate: frames and bytes of IP that
// arrive after the first counted arrival up to the last, divided by the time between the two.
// Arrivals in the first --settle seconds are not counted for the rate.

#include "bench_sink.h"

#include <net/if.h>
#include <poll.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <limits>
#include <span>
#include <system_error>
#include <vector>

#include "bench_sink.bpf.hpp"
#include "command.hpp"
#include "io/bpf_object.hpp"
#include "io/stop_signals.hpp"
#include "numbered_frame.hpp"
#include "shared_array.hpp"

namespace nagi::bench {
namespace {

struct Request {
  std::string interface;
  std::uint32_t frames = 1'000'000;
  bool count_only = false;
  double settle = 0;
  double seconds = 3600;
};

/// Return the q-quantile: the smallest value that at least the share q of all values does not
/// exceed.
std::int64_t quantile(const std::vector<std::int64_t>& sorted, double q) {
  const auto rank = static_cast<std::size_t>(std::ceil(q * static_cast<double>(sorted.size())));
  return sorted[std::clamp<std::size_t>(rank, 1, sorted.size()) - 1];
}

void print_delays(std::span<const bench_arrival> arrivals) {
  std::vector<std::int64_t> delays;
  for (const bench_arrival& arrival : arrivals) {
    if (arrival.at_ns != 0) delays.push_back(arrival.at_ns - arrival.sent_ns);
  }
  if (delays.empty()) return;
  std::sort(delays.begin(), delays.end());
  std::printf(
      ", \"delay_ns\": {\"min\": %lld, \"p50\": %lld, \"p90\": %lld, \"p99\": %lld, "
      "\"p99_9\": %lld, \"max\": %lld}",
      static_cast<long long>(delays.front()), static_cast<long long>(quantile(delays, 0.5)),
      static_cast<long long>(quantile(delays, 0.9)), static_cast<long long>(quantile(delays, 0.99)),
      static_cast<long long>(quantile(delays, 0.999)), static_cast<long long>(delays.back()));
}

void print_arrivals(std::span<const bench_arrival> arrivals, const bench_totals& totals,
                    double settle) {
  constexpr std::int64_t never = std::numeric_limits<std::int64_t>::max();
  std::uint64_t distinct = 0;
  std::uint64_t reordered = 0;
  std::int64_t first = never;
  std::int64_t last = 0;
  std::int64_t earliest_later = never;  // the earliest arrival of a frame with a larger number
  for (std::size_t i = arrivals.size(); i-- > 0;) {
    const std::int64_t at = arrivals[i].at_ns;
    if (at == 0) continue;
    ++distinct;
    if (at > earliest_later) ++reordered;
    earliest_later = std::min(earliest_later, at);
    first = std::min(first, at);
    last = std::max(last, at);
  }
  std::printf(", \"distinct\": %llu, \"reordered\": %llu",
              static_cast<unsigned long long>(distinct),
              static_cast<unsigned long long>(reordered));
  if (distinct == 0) return;
  const std::int64_t begin = first + static_cast<std::int64_t>(settle * 1e9);
  std::int64_t begun = never;
  std::uint64_t counted = 0;
  for (const bench_arrival& arrival : arrivals) {
    if (arrival.at_ns < begin) continue;
    ++counted;
    begun = std::min<std::int64_t>(begun, arrival.at_ns);
  }
  // All frames have the same size.
  const double frame_bytes = static_cast<double>(totals.bytes) / static_cast<double>(totals.frames);
  if (counted > 1) {
    const double seconds = static_cast<double>(last - begun) / 1e9;
    std::printf(", \"seconds\": %.9f, \"ip_bits_per_second\": %.1f", seconds,
                static_cast<double>(counted - 1) * (frame_bytes - ETH_HLEN) * 8 / seconds);
  }
  std::printf(", \"first_arrival_ns\": %lld, \"last_arrival_ns\": %lld",
              static_cast<long long>(first), static_cast<long long>(last));
  print_delays(arrivals);
}

int run(const Request& request) {
  const io::Descriptor stop = io::stop_signals();
  const unsigned interface = if_nametoindex(request.interface.c_str());
  if (interface == 0) io::throw_errno("interface " + request.interface);
  const char* program = request.count_only ? "bench_count" : "bench_note";
  const std::uint32_t capacity = request.count_only ? 1 : request.frames;
  io::BpfObject object(bpf::bench_sink);
  object.resize_map("arrivals", capacity);
  object.leave_out(request.count_only ? "bench_note" : "bench_count");
  object.load();
  const SharedArray<bench_totals> totals(object.map("totals"), 1);
  const SharedArray<bench_arrival> arrivals(object.map("arrivals"), capacity);
  {
    const io::Descriptor link = io::attach(object.program(program), interface, io::tcx_ingress, 0);
    std::printf("ready\n");
    std::fflush(stdout);
    pollfd asked{stop.get(), POLLIN, 0};
    if (poll(&asked, 1, static_cast<int>(std::min(request.seconds, 2e6) * 1e3)) < 0) {
      io::throw_errno("waiting");
    }
  }
  const bench_totals& counted = totals.entries()[0];
  std::printf("{\"frames\": %llu, \"bytes\": %llu, \"duplicates\": %llu, \"not_noted\": %llu",
              static_cast<unsigned long long>(counted.frames),
              static_cast<unsigned long long>(counted.bytes),
              static_cast<unsigned long long>(counted.duplicates),
              static_cast<unsigned long long>(counted.beyond));
  if (!request.count_only) print_arrivals(arrivals.entries(), counted, request.settle);
  std::printf("}\n");
  return 0;
}

}  // namespace
}  // namespace nagi::bench

int main(int argc, char** argv) {
  nagi::bench::Request request;
  CLI::App app{"bench-sink: records the arrivals of bench-source's frames"};
  app.add_option("interface", request.interface, "interface at which the frames arrive")
      ->required();
  app.add_option("--frames", request.frames, "maximum number of arrivals to record")
      ->capture_default_str()
      ->check(CLI::Range(1, 100'000'000));
  app.add_flag("--count-only", request.count_only,
               "only count frames, without times and order, which costs least");
  app.add_option("--settle", request.settle, "seconds of arrivals before the rate is measured")
      ->capture_default_str()
      ->check(CLI::Range(0.0, 1e6));
  app.add_option("--seconds", request.seconds, "maximum duration")
      ->capture_default_str()
      ->check(CLI::Range(0.0, 1e6));
  return nagi::bench::run_command(app, "bench-sink", argc, argv,
                                  [&] { return nagi::bench::run(request); });
}
