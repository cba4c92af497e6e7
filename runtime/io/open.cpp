// SPDX-License-Identifier: Apache-2.0
#include "io/open.hpp"

#include <cerrno>
#include <system_error>

#include "io/af_packet.hpp"
#include "io/af_xdp.hpp"

namespace nagi::io {

Opened PortOpener::open(const std::string& interface) {
  std::string fallback;
  if (choice_ != Choice::af_packet) {
    try {
      return {open_af_xdp(interface, pool_, receive_ring_, memory_), {}};
    } catch (const std::system_error& error) {
      const bool taken = error.code().value() == EBUSY;  // AF_PACKET would see nothing
      if (choice_ == Choice::af_xdp || taken) throw;
      fallback = error.what();
    }
  }
  return {open_af_packet(interface, pool_), fallback};
}

std::size_t registered_slots(std::size_t ports, std::uint32_t receive_ring, std::size_t in_flight,
                             Choice choice) {
  if (choice == Choice::af_packet) return 0;
  return ports * registered_slots_a_port(receive_ring) + in_flight;
}

}  // namespace nagi::io
