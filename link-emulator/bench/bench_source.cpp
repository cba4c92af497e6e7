// SPDX-License-Identifier: Apache-2.0
//
// bench-source: sends numbered UDP/IPv4 frames out of an interface, evenly, by a schedule of
// absolute instants, and says in JSON what became of it. AF_XDP, whose frames stay in place
// and only get a new number and time, costs the processor least.
//
// A slot of the schedule that is missed by more than a millisecond is left out, not made up for:
// the rate offered never exceeds the rate asked for. Exit status: 0 done, 1 the kernel refused, 2
// bad arguments.

#include <net/if.h>
#include <netinet/ether.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>

#include <cstdio>
#include <ctime>
#include <system_error>
#include <vector>

#include "command.hpp"
#include "numbered_frame.hpp"
#include "xsk.hpp"

namespace nagi::bench {
namespace {

constexpr std::int64_t second_ns = 1'000'000'000;
constexpr std::int64_t late_ns = 100'000;         // a burst this late is counted as late
constexpr std::int64_t given_up_ns = 1'000'000;   // and this late, left out
constexpr std::int64_t spun_before_ns = 150'000;  // longer waits are slept but for this

struct Request {
  std::string interface;
  std::string destination_mac;
  std::string source = "10.0.0.1";
  std::string destination = "10.0.0.2";
  std::size_t frame_bytes = 1000;
  double rate = 0;
  std::uint32_t burst = 1;
  double seconds = 1;
  bool catch_up = false;
};

struct Outcome {
  std::uint64_t frames = 0;
  std::int64_t elapsed_ns = 0;
  std::uint64_t late_bursts = 0;
  std::uint64_t left_out = 0;  // frames
  std::int64_t latest_ns = 0;
};

std::int64_t now() {
  timespec time{};
  clock_gettime(CLOCK_MONOTONIC, &time);
  return std::int64_t{time.tv_sec} * second_ns + time.tv_nsec;
}

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

  /// Sends the next `count` frames; `count` is at most `frames`.
  void send(std::uint32_t count) {
    while (free_.size() < count) {
      xsk_.kick();
      reclaim();
    }
    std::uint32_t place = 0;
    xsk_ring_prod__reserve(&xsk_.tx, count, &place);  // as many places as frames: never full
    for (std::uint32_t i = 0; i < count; ++i) {
      const std::uint64_t address = free_.back();
      free_.pop_back();
      const Stamp stamp{frame_mark, next_++, now()};
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
  const std::int64_t end = begun + static_cast<std::int64_t>(request.seconds * 1e9);
  const double gap_ns = request.rate > 0 ? request.burst * 1e9 / request.rate : 0;
  for (std::uint64_t slot = 0;; ++slot) {
    const std::int64_t due =
        request.rate > 0 ? begun + static_cast<std::int64_t>(static_cast<double>(slot) * gap_ns)
                         : now();
    if (due >= end) break;
    wait_until(due);
    const std::int64_t late = now() - due;
    outcome.latest_ns = std::max(outcome.latest_ns, late);
    if (late > late_ns) ++outcome.late_bursts;
    if (late > given_up_ns && !request.catch_up) {
      outcome.left_out += request.burst;
      continue;
    }
    source.send(request.burst);
    outcome.frames += request.burst;
  }
  // With a rate, the last slot lasts as long as the others.
  outcome.elapsed_ns = request.rate > 0 ? std::max(end, now()) - begun : now() - begun;
  return outcome;
}

int run(const Request& request) {
  prctl(PR_SET_TIMERSLACK, 1);
  Ends ends;
  const ether_addr* mac = ether_aton(request.destination_mac.c_str());
  if (mac == nullptr || inet_pton(AF_INET, request.source.c_str(), &ends.source) != 1 ||
      inet_pton(AF_INET, request.destination.c_str(), &ends.destination) != 1) {
    std::fprintf(stderr, "bench-source: a MAC address is 6 hex pairs, an IPv4 address a.b.c.d\n");
    return 2;
  }
  std::memcpy(ends.destination_mac.data(), mac, ETH_ALEN);
  ends.source_mac = mac_of(request.interface);
  Source source(request.interface, request.frame_bytes, ends);
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
  using nagi::bench::chunk_bytes;
  using nagi::bench::least_frame_bytes;
  nagi::bench::Request request;
  CLI::App app{"bench-source: sends numbered UDP/IPv4 frames at an even rate"};
  app.add_option("interface", request.interface, "where they go out")->required();
  app.add_option("--to-mac", request.destination_mac, "destination")->required();
  app.add_option("--from", request.source, "IPv4 address")->capture_default_str();
  app.add_option("--to", request.destination, "IPv4 address")->capture_default_str();
  app.add_option("--frame-bytes", request.frame_bytes, "Ethernet header to end, without FCS")
      ->capture_default_str()
      ->check(CLI::Range(least_frame_bytes, std::size_t{1514}));
  app.add_option("--rate", request.rate, "frames a second, 0 for as fast as possible")
      ->capture_default_str()
      ->check(CLI::Range(0.0, 1e8));
  app.add_option("--burst", request.burst, "frames sent together")
      ->capture_default_str()
      ->check(CLI::Range(1, 256));
  app.add_option("--seconds", request.seconds, "for how long")
      ->capture_default_str()
      ->check(CLI::Range(0.0, 1e6));
  app.add_flag("--catch-up", request.catch_up, "leave out no slot, however late");
  return nagi::bench::run_command(app, "bench-source", argc, argv,
                                  [&] { return nagi::bench::run(request); });
}
