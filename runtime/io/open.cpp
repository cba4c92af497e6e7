// SPDX-License-Identifier: Apache-2.0
#include "io/open.hpp"

#include <cerrno>
#include <chrono>
#include <system_error>
#include <thread>

#include "io/af_packet.hpp"
#include "io/af_xdp.hpp"

namespace nagi::io {

namespace {

bool is_taken(const std::system_error& error) { return error.code().value() == EBUSY; }

/// Open an AF_XDP port. Try again for a second if the interface is busy, because the kernel frees
/// the queue of an interface only some time after the end of the program that used it.
std::unique_ptr<Port> open_when_free(const std::string& interface, FramePool& pool,
                                     std::uint32_t receive_ring,
                                     std::weak_ptr<SharedMemory>& memory) {
  constexpr std::chrono::milliseconds pause(20);
  for (int pauses = 50;; --pauses) {
    try {
      return open_af_xdp(interface, pool, receive_ring, memory);
    } catch (const std::system_error& error) {
      if (!is_taken(error) || pauses == 0) throw;
    }
    std::this_thread::sleep_for(pause);
  }
}

}  // namespace

Opened PortOpener::open(const std::string& interface) {
  std::string fallback;
  if (choice_ != Choice::af_packet) {
    try {
      return {open_when_free(interface, pool_, receive_ring_, memory_), {}};
    } catch (const std::system_error& error) {
      if (choice_ == Choice::af_xdp || is_taken(error)) throw;  // AF_PACKET would see no frames
      fallback = error.what();
    }
  }
  return {open_af_packet(interface, pool_), fallback};
}

std::size_t registered_slots(std::size_t ports, std::uint32_t receive_ring, std::size_t in_flight,
                             Choice choice) {
  if (choice == Choice::af_packet) return 0;
  return ports * registered_slots_per_port(receive_ring) + in_flight;
}

}  // namespace nagi::io
