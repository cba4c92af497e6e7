// SPDX-License-Identifier: Apache-2.0
//
// bench-injector: makes frames arrive at an interface, as if its driver had received them, and
// reports the result as JSON. A source that writes each frame would need more processor time than
// the measured program. This program therefore uses the kernel's test of XDP programs
// (BPF_PROG_TEST_RUN with live frames, Linux 5.18), which creates frames evenly from recycled
// memory. A BPF program at the ingress of the loopback interface redirects the frames to the
// interface. All frames are equal. During a run, the loopback interface cannot be used for anything
// else.
//
// The schedule consists of absolute instants, one per batch. A batch that is more than a
// millisecond late shifts all later batches. The offered rate therefore never exceeds the requested
// rate. Exit status: 0 on success, 1 if the kernel refuses an operation, 2 if the command line is
// invalid.

#include "bench_injector.h"

#include <bpf/bpf.h>
#include <linux/if_link.h>
#include <net/if.h>
#include <sys/mman.h>
#include <sys/time.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <limits>
#include <vector>

#include "bench_injector.bpf.hpp"
#include "command.hpp"
#include "io/bpf_object.hpp"
#include "io/clock.hpp"
#include "offered_load.hpp"
#include "shared_array.hpp"

namespace nagi::bench {
namespace {

int run(const OfferedLoad& load) {
  Ends ends;
  ends.destination_mac = load.destination;
  ends.source_mac = {0x02, 0, 0, 0, 0, 1};
  std::vector<std::uint8_t> frame(load.frame_bytes);
  write_frame(frame.data(), frame.size(), ends);

  const unsigned interface = if_nametoindex(load.interface.c_str());
  if (interface == 0) io::throw_errno("interface " + load.interface);
  io::BpfObject object(bpf::bench_injector);
  object.load();
  const SharedArray<bench_schedule> schedules(object.map("schedule"), 1);
  bench_schedule& schedule = schedules.entries()[0];
  schedule.batch = load.burst;
  schedule.interface = interface;
  const io::Descriptor link =
      io::attach(object.program("bench_redirect"), if_nametoindex("lo"), io::tcx_ingress, 0);

  struct sigaction action{};
  action.sa_handler = [](int) {};
  sigaction(SIGALRM, &action, nullptr);  // the signal only interrupts the system call
  const auto started = io::read_clock(CLOCK_MONOTONIC);
  schedule.due_ns = static_cast<std::uint64_t>(started);
  if (load.rate > 0) {
    schedule.gap_ns = static_cast<std::uint64_t>(load.burst * 1e9 / load.rate);
  }
  const auto microseconds = static_cast<std::int64_t>(load.seconds * 1e6);
  const itimerval length{{0, 1000}, {microseconds / 1'000'000, microseconds % 1'000'000}};
  setitimer(ITIMER_REAL, &length, nullptr);

  LIBBPF_OPTS(bpf_test_run_opts, options);
  options.data_in = frame.data();
  options.data_size_in = static_cast<std::uint32_t>(frame.size());
  options.repeat = std::numeric_limits<int>::max();
  options.flags = BPF_F_TEST_XDP_LIVE_FRAMES;
  options.batch_size = load.burst;
  if (bpf_prog_test_run_opts(object.program("bench_pace"), &options) != 0 && errno != EINTR) {
    io::throw_errno("making frames");
  }
  const double seconds = static_cast<double>(io::read_clock(CLOCK_MONOTONIC) - started) / 1e9;
  std::printf("{\"frames\": %llu, \"seconds\": %.6f, \"rate\": %.1f, \"delays\": %llu}\n",
              static_cast<unsigned long long>(schedule.frames), seconds,
              static_cast<double>(schedule.frames) / seconds,
              static_cast<unsigned long long>(schedule.delays));
  return 0;
}

}  // namespace
}  // namespace nagi::bench

int main(int argc, char** argv) {
  nagi::bench::OfferedLoad load;
  load.burst = 32;
  CLI::App app{"bench-injector: makes UDP/IPv4 frames arrive at an interface at an even rate"};
  nagi::bench::add_options(app, load);
  return nagi::bench::run_command(app, "bench-injector", argc, argv,
                                  [&] { return nagi::bench::run(load); });
}
