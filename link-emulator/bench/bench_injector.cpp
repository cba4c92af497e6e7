// SPDX-License-Identifier: Apache-2.0
//
// bench-injector: has frames arrive at an interface, as if its driver had received them, and says
// in JSON what became of it. A source that writes its frames costs its processor more than what is
// measured costs another; here the kernel's own test of XDP programs (BPF_PROG_TEST_RUN with live
// frames, Linux 5.18) makes frames of recycled memory, evenly, and a program at the loopback
// interface's ingress hands them to the interface. All of them are alike; loopback is used up for
// the time.
//
// The schedule is of absolute instants, a batch each. A batch that is more than a millisecond late
// shifts the rest: the rate offered never exceeds the rate asked for. Exit status: 0 done, 1 the
// kernel refused, 2 bad arguments.

#include <linux/if_link.h>
#include <net/if.h>
#include <sys/mman.h>
#include <sys/time.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <limits>
#include <vector>

#include "command.hpp"
#include "io/bpf_program.hpp"
#include "io/clock.hpp"
#include "offered_load.hpp"
#include "shared_array.hpp"

namespace nagi::bench {
namespace {

constexpr std::int32_t given_up_ns = 1'000'000;
constexpr std::int32_t most_looks = 5000;  // at the clock, for one batch: some 0.2 ms

/// Between this process and the program.
struct Schedule {
  std::uint64_t frames;
  std::uint64_t left_of_batch;
  std::uint64_t due_ns;
  std::uint64_t gap_ns;  // between batches
  std::uint64_t delays;  // of more than a millisecond
};

/// Runs once for every frame: waits, before the first of a batch, until it is due, and lets the
/// frame pass.
io::Descriptor load_pacer(int schedule, std::uint32_t batch) {
  enum : int {
    now = BPF_REG_0,
    looks = BPF_REG_6,
    state = BPF_REG_7,
    due = BPF_REG_8,
    value = BPF_REG_1
  };
  io::Assembler code;
  const auto first = code.label();
  const auto look = code.label();
  const auto go = code.label();
  const auto in_time = code.label();
  code.load_map_value(state, schedule, 0);
  code.load(BPF_DW, value, state, offsetof(Schedule, frames));
  code.add_value(value, 1);
  code.store(BPF_DW, state, offsetof(Schedule, frames), value);
  code.load(BPF_DW, value, state, offsetof(Schedule, left_of_batch));
  code.jump_if_value(BPF_JEQ, value, 0, first);
  code.add_value(value, -1);
  code.store(BPF_DW, state, offsetof(Schedule, left_of_batch), value);
  code.leave(XDP_PASS);

  code.place(first);
  code.move_value(value, static_cast<std::int32_t>(batch - 1));
  code.store(BPF_DW, state, offsetof(Schedule, left_of_batch), value);
  code.load(BPF_DW, due, state, offsetof(Schedule, due_ns));
  code.move_value(looks, most_looks);
  code.place(look);
  code.call(BPF_FUNC_ktime_get_ns);
  code.jump_if(BPF_JGE, now, due, go);
  code.add_value(looks, -1);
  code.jump_if_value(BPF_JNE, looks, 0, look);
  code.place(go);
  code.move(value, due);
  code.add_value(value, given_up_ns);
  code.jump_if(BPF_JLE, now, value, in_time);
  code.move(due, now);
  code.load(BPF_DW, value, state, offsetof(Schedule, delays));
  code.add_value(value, 1);
  code.store(BPF_DW, state, offsetof(Schedule, delays), value);
  code.place(in_time);
  code.load(BPF_DW, value, state, offsetof(Schedule, gap_ns));
  code.add(due, value);
  code.store(BPF_DW, state, offsetof(Schedule, due_ns), due);
  code.leave(XDP_PASS);
  return code.load(BPF_PROG_TYPE_XDP, "bench_pacer");
}

/// Whatever arrives at loopback then arrives at the interface.
io::Descriptor load_redirection(unsigned interface) {
  io::Assembler code;
  code.move_value(BPF_REG_1, static_cast<std::int32_t>(interface));
  code.move_value(BPF_REG_2, BPF_F_INGRESS);
  code.call(BPF_FUNC_redirect);
  code.leave();
  return code.load(BPF_PROG_TYPE_SCHED_CLS, "bench_injector");
}

int run(const OfferedLoad& load) {
  Ends ends;
  ends.destination_mac = load.destination;
  ends.source_mac = {0x02, 0, 0, 0, 0, 1};
  std::vector<std::uint8_t> frame(load.frame_bytes);
  write_frame(frame.data(), frame.size(), ends);

  const unsigned interface = if_nametoindex(load.interface.c_str());
  if (interface == 0) io::throw_errno("interface " + load.interface);
  SharedArray<Schedule> schedules("schedule", 1);
  Schedule& schedule = schedules.entries()[0];
  const io::Descriptor pacer = load_pacer(schedules.map(), load.burst);
  const io::Descriptor redirection = load_redirection(interface);
  const io::Descriptor link =
      io::attach(redirection.get(), if_nametoindex("lo"), io::tcx_ingress, 0);

  struct sigaction action{};
  action.sa_handler = [](int) {};
  sigaction(SIGALRM, &action, nullptr);  // only interrupts
  const auto begun = io::read_clock(CLOCK_MONOTONIC);
  schedule.due_ns = static_cast<std::uint64_t>(begun);
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
  if (bpf_prog_test_run_opts(pacer.get(), &options) != 0 && errno != EINTR) {
    io::throw_errno("making frames");
  }
  const double seconds = static_cast<double>(io::read_clock(CLOCK_MONOTONIC) - begun) / 1e9;
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
  CLI::App app{"bench-injector: has UDP/IPv4 frames arrive at an interface at an even rate"};
  nagi::bench::add_options(app, load);
  return nagi::bench::run_command(app, "bench-injector", argc, argv,
                                  [&] { return nagi::bench::run(load); });
}
