// SPDX-License-Identifier: Apache-2.0
//
// bench-sink: notes when each of bench-source's frames arrives at an interface, and says in JSON
// what arrived: how many, in what order, at what rate, and how long after they were sent.
//
// A BPF program at the interface's ingress (tcx, Linux 6.6) does the noting, into an array indexed
// by the frame's number, and drops the frame. This process sleeps meanwhile: on a machine of two
// cores a receiver that works takes the time of those it measures. Frames that are not
// bench-source's pass. Prints "ready", then works until SIGTERM or SIGINT, or for --seconds.
//
// Definitions. One-way delay: arrival minus sending, both CLOCK_MONOTONIC. Reordered: a frame that
// arrives after one with a larger number (RFC 4737, 3). Rate: frames and bytes of IP that arrive
// after the first noted arrival up to the last, divided by the time between the two; arrivals in
// the first --settle seconds are not noted for it.

#include <net/if.h>
#include <poll.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <limits>
#include <span>
#include <system_error>
#include <vector>

#include "command.hpp"
#include "io/bpf_program.hpp"
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

struct Totals {
  std::uint64_t frames;
  std::uint64_t bytes;  // of frames
  std::uint64_t duplicates;
  std::uint64_t beyond;  // frames whose number has no place in the array
};

struct Arrival {
  std::int64_t at_ns;  // 0: has not arrived
  std::int64_t sent_ns;
};

/// The program at the interface. `arrivals`: its array, or -1 to count only.
io::Descriptor load_program(int totals, int arrivals) {
  constexpr int verdict_pass = 0;  // TCX_PASS
  constexpr int verdict_drop = 2;  // TCX_DROP
  enum : int {
    result = BPF_REG_0,
    first = BPF_REG_1,
    second = BPF_REG_2,
    third = BPF_REG_3,
    packet = BPF_REG_6,
    number = BPF_REG_7,
    total = BPF_REG_8,
    sent = BPF_REG_9,
    frame = BPF_REG_10
  };
  io::Assembler code;
  const auto pass = code.label();
  const auto drop = code.label();
  const auto beyond = code.label();
  const auto duplicate = code.label();

  // Is it one of ours?
  code.move(sent, first);  // the context, for as long as it is needed
  code.load(BPF_W, packet, sent, offsetof(__sk_buff, data));
  code.load(BPF_W, third, sent, offsetof(__sk_buff, data_end));
  code.move(second, packet);
  code.add_value(second, stamp_offset + sizeof(Stamp));
  code.jump_if(BPF_JGT, second, third, pass);
  code.load(BPF_H, second, packet, offsetof(ethhdr, h_proto));
  code.jump_if_value(BPF_JNE, second, htons(ETH_P_IP), pass);
  code.load(BPF_W, second, packet, stamp_offset + offsetof(Stamp, mark));
  code.jump_if_value(BPF_JNE, second, static_cast<std::int32_t>(frame_mark), pass);

  code.load_map_value(total, totals, 0);
  code.move_value(second, 1);
  code.atomic_add(total, offsetof(Totals, frames), second);
  code.load(BPF_W, second, sent, offsetof(__sk_buff, len));
  code.atomic_add(total, offsetof(Totals, bytes), second);

  if (arrivals >= 0) {
    code.load(BPF_W, number, packet, stamp_offset + offsetof(Stamp, number));
    code.load(BPF_DW, sent, packet, stamp_offset + offsetof(Stamp, sent_monotonic_ns));
    code.store(BPF_W, frame, -4, number);
    code.load_map(first, arrivals);
    code.move(second, frame);
    code.add_value(second, -4);
    code.call(BPF_FUNC_map_lookup_elem);
    code.jump_if_value(BPF_JEQ, result, 0, beyond);
    code.move(packet, result);  // now the array's entry
    code.load(BPF_DW, second, packet, offsetof(Arrival, at_ns));
    code.jump_if_value(BPF_JNE, second, 0, duplicate);
    code.call(BPF_FUNC_ktime_get_ns);
    code.store(BPF_DW, packet, offsetof(Arrival, at_ns), result);
    code.store(BPF_DW, packet, offsetof(Arrival, sent_ns), sent);
  }
  code.place(drop);
  code.leave(verdict_drop);
  code.place(pass);
  code.leave(verdict_pass);
  if (arrivals >= 0) {
    for (const auto& [where, counter] :
         {std::pair{beyond, offsetof(Totals, beyond)}, {duplicate, offsetof(Totals, duplicates)}}) {
      code.place(where);
      code.move_value(second, 1);
      code.atomic_add(total, counter, second);
      code.leave(verdict_drop);
    }
  }
  return code.load(BPF_PROG_TYPE_SCHED_CLS, "bench_sink");
}

/// The q-quantile: the smallest value that at least q of all values do not exceed.
std::int64_t quantile(const std::vector<std::int64_t>& sorted, double q) {
  const auto rank = static_cast<std::size_t>(std::ceil(q * static_cast<double>(sorted.size())));
  return sorted[std::clamp<std::size_t>(rank, 1, sorted.size()) - 1];
}

void print_delays(std::span<const Arrival> arrivals) {
  std::vector<std::int64_t> delays;
  for (const Arrival& arrival : arrivals) {
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

void print_arrivals(std::span<const Arrival> arrivals, const Totals& totals, double settle) {
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
  for (const Arrival& arrival : arrivals) {
    if (arrival.at_ns < begin) continue;
    ++counted;
    begun = std::min(begun, arrival.at_ns);
  }
  const double frame_bytes =
      static_cast<double>(totals.bytes) / static_cast<double>(totals.frames);  // they are all alike
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
  const SharedArray<Totals> totals("totals", 1);
  const SharedArray<Arrival> arrivals("arrivals", request.count_only ? 1 : request.frames);
  {
    const io::Descriptor program =
        load_program(totals.map(), request.count_only ? -1 : arrivals.map());
    const io::Descriptor link = io::attach(program.get(), interface, io::tcx_ingress, 0);
    std::printf("ready\n");
    std::fflush(stdout);
    pollfd asked{stop.get(), POLLIN, 0};
    if (poll(&asked, 1, static_cast<int>(std::min(request.seconds, 2e6) * 1e3)) < 0) {
      io::throw_errno("waiting");
    }
  }
  const Totals& counted = totals.entries()[0];
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
  CLI::App app{"bench-sink: notes the arrival of bench-source's frames"};
  app.add_option("interface", request.interface, "where they arrive")->required();
  app.add_option("--frames", request.frames, "how many arrivals it can note")
      ->capture_default_str()
      ->check(CLI::Range(1, 100'000'000));
  app.add_flag("--count-only", request.count_only, "costs least: no times, no order");
  app.add_option("--settle", request.settle, "seconds before the rate is measured")
      ->capture_default_str()
      ->check(CLI::Range(0.0, 1e6));
  app.add_option("--seconds", request.seconds, "the longest it works")
      ->capture_default_str()
      ->check(CLI::Range(0.0, 1e6));
  return nagi::bench::run_command(app, "bench-sink", argc, argv,
                                  [&] { return nagi::bench::run(request); });
}
