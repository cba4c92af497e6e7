// SPDX-License-Identifier: Apache-2.0
//
// bench-source: sends numbered UDP/IPv4 frames out of an interface at an even rate, by a schedule
// of absolute instants, and reports the result as JSON. It uses AF_XDP, which needs the least
// processor time: frames stay in memory, and only their number and time are rewritten.
//
// A burst that is late by more than a millisecond is skipped, unless --catch-up is given. The
// offered rate therefore never exceeds the requested rate. Exit status: 0 on success, 1 if the
// kernel refuses an operation, 2 if the command line is invalid.

#include <net/if.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>

#include <cstdio>
#include <ctime>
#include <system_error>
#include <vector>

#include "command.hpp"
#include "io/clock.hpp"
#include "offered_load.hpp"
#include "xsk.hpp"

namespace nagi::bench {
namespace {

constexpr std::int64_t second_ns = 1'000'000'000;
constexpr std::int64_t late_ns = 100'000;         // ns; a burst later than this counts as late
constexpr std::int64_t given_up_ns = 1'000'000;   // ns; a burst later than this is skipped
constexpr std::int64_t spun_before_ns = 150'000;  // ns; busy-waited at the end of a wait

struct Request {
  OfferedLoad load;
  std::string source = "10.0.0.1";
  std::string destination = "10.0.0.2";
  bool catch_up = false;
};

struct Outcome {
  std::uint64_t frames = 0;
  std::int64_t elapsed_ns = 0;
  std::uint64_t late_bursts = 0;
  std::uint64_t left_out = 0;  // frames
  std::int64_t latest_ns = 0;
};

std::int64_t now() { return io::read_clock(CLOCK_MONOTONIC); }

void wait_until(std::int64_t instant) {
  if (const std::int64_t rest = instant - now() - spun_before_ns; rest > 0) {
    const timespec length{rest / second_ns, rest % second_ns};
    clock_nanosleep(CLOCK_MONOTONIC, 0, &length, nullptr);
  }
  while (now() < instant) {
  }
}

MacAddress mac_of(const std::string& interface) {
  const io::Descriptor asked(socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  ifreq request{};
  interface.copy(request.ifr_name, IFNAMSIZ - 1);
  if (ioctl(asked.get(), SIOCGIFHWADDR, &request) != 0) io::throw_errno("interface " + interface);
  MacAddress mac{};
  std::memcpy(mac.data(), request.ifr_hwaddr.sa_data, mac.size());
  return mac;
}

class Source {
 public:
  Source(const std::string& interface, std::size_t frame_bytes, const Ends& ends)
      : frame_bytes_(static_cast<std::uint32_t>(frame_bytes)), umem_(frames, xsk_) {
    umem_.open(xsk_, interface, false);
    for (std::uint32_t i = 0; i < frames; ++i) {
      const std::uint64_t address = std::uint64_t{i} * chunk_bytes;
      write_frame(umem_.data(address), frame_bytes, ends);
      free_.push_back(address);
    }
  }

  /// Send the next `count` frames, at most `frames`.
  void send(std::uint32_t count) {
    while (free_.size() < count) {
      xsk_.kick();
      reclaim();
    }
    std::uint32_t place = 0;
    xsk_ring_prod__reserve(&xsk_.tx, count, &place);  // one entry per frame: never full
    for (std::uint32_t i = 0; i < count; ++i) {
      const std::uint64_t address = free_.back();
      free_.pop_back();
      const bench_stamp stamp{BENCH_FRAME_MARK, next_++, now()};
      std::memcpy(umem_.data(address) + stamp_offset, &stamp, sizeof stamp);
      *xsk_ring_prod__tx_desc(&xsk_.tx, place + i) = {address, frame_bytes_, 0};
    }
    xsk_ring_prod__submit(&xsk_.tx, count);
    while (xsk_.unsent() > 0) xsk_.kick();
    reclaim();
  }

  static constexpr std::uint32_t frames = 1024;

 private:
  void reclaim() {
    std::uint32_t place = 0;
    const std::uint32_t done = xsk_ring_cons__peek(&xsk_.completion, frames, &place);
    for (std::uint32_t i = 0; i < done; ++i) {
      free_.push_back(*xsk_ring_cons__comp_addr(&xsk_.completion, place + i));
    }
    xsk_ring_cons__release(&xsk_.completion, done);
  }

  std::uint32_t frame_bytes_;
  std::uint32_t next_ = 0;
  std::vector<std::uint64_t> free_;
  Xsk xsk_;
  Umem umem_;
};

Outcome send_all(Source& source, const Request& request) {
  Outcome outcome;
  const std::int64_t begun = now();
  const std::int64_t end = begun + static_cast<std::int64_t>(request.load.seconds * 1e9);
  const double gap_ns = request.load.rate > 0 ? request.load.burst * 1e9 / request.load.rate : 0;
  for (std::uint64_t slot = 0;; ++slot) {
    const std::int64_t due =
        request.load.rate > 0
            ? begun + static_cast<std::int64_t>(static_cast<double>(slot) * gap_ns)
            : now();
    if (due >= end) break;
    wait_until(due);
    const std::int64_t late = now() - due;
    outcome.latest_ns = std::max(outcome.latest_ns, late);
    if (late > late_ns) ++outcome.late_bursts;
    if (late > given_up_ns && !request.catch_up) {
      outcome.left_out += request.load.burst;
      continue;
    }
    source.send(request.load.burst);
    outcome.frames += request.load.burst;
  }
  // With a rate, the last slot is as long as all others.
  outcome.elapsed_ns = request.load.rate > 0 ? std::max(end, now()) - begun : now() - begun;
  return outcome;
}

int run(const Request& request) {
  prctl(PR_SET_TIMERSLACK, 1);
  Ends ends;
  if (inet_pton(AF_INET, request.source.c_str(), &ends.source) != 1 ||
      inet_pton(AF_INET, request.destination.c_str(), &ends.destination) != 1) {
    std::fprintf(stderr, "bench-source: --from or --to is not an IPv4 address such as 10.0.0.1\n");
    return 2;
  }
  ends.destination_mac = request.load.destination;
  ends.source_mac = mac_of(request.load.interface);
  Source source(request.load.interface, request.load.frame_bytes, ends);
  const Outcome outcome = send_all(source, request);
  const double seconds = static_cast<double>(outcome.elapsed_ns) / 1e9;
  std::printf(
      "{\"frames\": %llu, \"seconds\": %.6f, \"rate\": %.1f, \"late_bursts\": %llu, "
      "\"left_out\": %llu, \"latest_ns\": %lld}\n",
      static_cast<unsigned long long>(outcome.frames), seconds,
      static_cast<double>(outcome.frames) / seconds,
      static_cast<unsigned long long>(outcome.late_bursts),
      static_cast<unsigned long long>(outcome.left_out), static_cast<long long>(outcome.latest_ns));
  return 0;
}

}  // namespace
}  // namespace nagi::bench

int main(int argc, char** argv) {
  nagi::bench::Request request;
  CLI::App app{"bench-source: sends numbered UDP/IPv4 frames at an even rate"};
  nagi::bench::add_options(app, request.load);
  app.add_option("--from", request.source, "IPv4 address of the sender")->capture_default_str();
  app.add_option("--to", request.destination, "IPv4 address of the receiver")
      ->capture_default_str();
  app.add_flag("--catch-up", request.catch_up,
               "send late bursts immediately instead of skipping them");
  return nagi::bench::run_command(app, "bench-source", argc, argv,
                                  [&] { return nagi::bench::run(request); });
}
