// SPDX-License-Identifier: Apache-2.0
#include "io/open.hpp"

#include <cerrno>
#include <system_error>

#include "io/af_packet.hpp"
#include "io/af_xdp.hpp"

namespace nagi::io {

Opened open_port(const std::string& interface, FramePool& pool, Choice choice) {
  std::string fallback;
  if (choice != Choice::af_packet) {
    try {
      return {open_af_xdp(interface, pool), {}};
    } catch (const std::system_error& error) {
      const bool taken = error.code().value() == EBUSY;  // AF_PACKET would see nothing
      if (choice == Choice::af_xdp || taken) throw;
      fallback = error.what();
    }
  }
  return {open_af_packet(interface, pool), fallback};
}

}  // namespace nagi::io
