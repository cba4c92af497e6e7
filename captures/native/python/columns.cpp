// SPDX-License-Identifier: Apache-2.0
#include "native/python/columns.hpp"

namespace nagi::captures::python {

std::string address_text(const std::array<std::uint64_t, 2>& address, std::uint8_t version) {
  std::array<char, INET6_ADDRSTRLEN> text{};
  inet_ntop(version == 6 ? AF_INET6 : AF_INET, address.data(), text.data(), text.size());
  return text.data();
}

}  // namespace nagi::captures::python
