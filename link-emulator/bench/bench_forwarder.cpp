// SPDX-License-Identifier: Apache-2.0
//
// bench-forwarder: a bare AF_XDP forwarder, with which emulators are compared. It forwards the
// frames that arrive at one of two interfaces to the other, in both directions. It has one thread,
// one memory for the frames of both interfaces, no copy in user space, no model and no time stamps.
// It uses generic XDP, as between veth interfaces. It sleeps while forward is nothing to do. It
// prints "ready", runs until SIGTERM or SIGINT, and then reports its counters as JSON.

#include <linux/if_link.h>
#include <net/if.h>
#include <poll.h>
#include <sys/prctl.h>

#include <array>
#include <csignal>
#include <cstdio>
#include <system_error>

#include "bench_forwarder.bpf.hpp"
#include "command.hpp"
#include "io/bpf_object.hpp"
#include "xsk.hpp"

namespace nagi::bench {
namespace {

constexpr std::uint32_t batch = 64;
constexpr int max_kicks = 4;  // the kernel sends 32 frames per call

volatile std::sig_atomic_t stopped = 0;

/// One interface: its socket, and the BPF program that redirects frames to the socket.
struct Side {
  Xsk xsk;
  io::Descriptor link;

  void attach_to(const std::string& interface) {
    const unsigned index = if_nametoindex(interface.c_str());
    io::BpfObject object(bpf::bench_forwarder);
    object.load();
    io::put_socket(object.map("sockets"), xsk.descriptor());
    link = io::attach(object.program("bench_forward"), index, BPF_XDP, XDP_FLAGS_SKB_MODE);
  }

  /// Give the kernel `ring_frames` frames to receive into, starting at frame `first`.
  void provide(std::uint32_t first) {
    std::uint32_t position = 0;
    xsk_ring_prod__reserve(&xsk.fill, ring_frames, &position);
    for (std::uint32_t i = 0; i < ring_frames; ++i) {
      *xsk_ring_prod__fill_addr(&xsk.fill, position + i) = std::uint64_t{first + i} * chunk_bytes;
    }
    xsk_ring_prod__submit(&xsk.fill, ring_frames);
  }
};

/// Send the frames that arrived at `from` out of `to`. Return the number of frames.
std::uint32_t move_frames(Xsk& from, Xsk& to) {
  std::uint32_t source = 0;
  std::uint32_t target = 0;
  // Frames that `to` has sent came from `from` and return to its fill ring, which had room for
  // them.
  if (const std::uint32_t done = xsk_ring_cons__peek(&to.completion, ring_frames, &source)) {
    xsk_ring_prod__reserve(&from.fill, done, &target);
    for (std::uint32_t i = 0; i < done; ++i) {
      *xsk_ring_prod__fill_addr(&from.fill, target + i) =
          *xsk_ring_cons__comp_addr(&to.completion, source + i);
    }
    xsk_ring_prod__submit(&from.fill, done);
    xsk_ring_cons__release(&to.completion, done);
  }
  // The transmit ring has room, because it has an entry for each frame of this direction.
  const std::uint32_t moved = xsk_ring_cons__peek(&from.rx, batch, &source);
  if (moved > 0) {
    xsk_ring_prod__reserve(&to.tx, moved, &target);
    for (std::uint32_t i = 0; i < moved; ++i) {
      const xdp_desc& in = *xsk_ring_cons__rx_desc(&from.rx, source + i);
      *xsk_ring_prod__tx_desc(&to.tx, target + i) = {in.addr, in.len, 0};
    }
    xsk_ring_prod__submit(&to.tx, moved);
    xsk_ring_cons__release(&from.rx, moved);
  }
  for (int i = 0; i < max_kicks && to.unsent() > 0; ++i) to.kick();
  return moved;
}

unsigned long long lost_by_kernel(const Xsk& xsk) {
  xdp_statistics statistics{};
  socklen_t length = sizeof statistics;
  getsockopt(xsk.descriptor(), SOL_XDP, XDP_STATISTICS, &statistics, &length);
  return statistics.rx_dropped + statistics.rx_ring_full;
}

int run(const std::array<std::string, 2>& interfaces) {
  struct sigaction action{};
  action.sa_handler = [](int) { stopped = 1; };
  sigaction(SIGTERM, &action, nullptr);
  sigaction(SIGINT, &action, nullptr);

  std::array<std::uint64_t, 2> moved{};
  Side a;
  Side b;
  Umem umem(2 * ring_frames, a.xsk);
  umem.open(a.xsk, interfaces[0], true);
  umem.open(b.xsk, interfaces[1], true);
  a.provide(0);
  b.provide(ring_frames);
  a.attach_to(interfaces[0]);
  b.attach_to(interfaces[1]);
  std::printf("ready\n");
  std::fflush(stdout);
  std::array<pollfd, 2> arrivals{
      {{a.xsk.descriptor(), POLLIN, 0}, {b.xsk.descriptor(), POLLIN, 0}}};
  while (stopped == 0) {
    const std::uint32_t forward = move_frames(a.xsk, b.xsk);
    const std::uint32_t backward = move_frames(b.xsk, a.xsk);
    moved[0] += forward;
    moved[1] += backward;
    if (forward + backward + a.xsk.unsent() + b.xsk.unsent() == 0) {
      poll(arrivals.data(), arrivals.size(), 100);
    }
  }
  std::printf("{\"forward\": %llu, \"backward\": %llu, \"lost_at_a\": %llu, \"lost_at_b\": %llu}\n",
              static_cast<unsigned long long>(moved[0]), static_cast<unsigned long long>(moved[1]),
              lost_by_kernel(a.xsk), lost_by_kernel(b.xsk));
  return 0;
}

}  // namespace
}  // namespace nagi::bench

int main(int argc, char** argv) {
  std::array<std::string, 2> interfaces;
  CLI::App app{"bench-forwarder: the bare AF_XDP forwarder between two interfaces"};
  app.add_option("a", interfaces[0], "first interface")->required();
  app.add_option("b", interfaces[1], "second interface")->required();
  return nagi::bench::run_command(app, "bench-forwarder", argc, argv,
                                  [&] { return nagi::bench::run(interfaces); });
}
