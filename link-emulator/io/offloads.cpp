// SPDX-License-Identifier: Apache-2.0
#include "io/offloads.hpp"

#include <linux/ethtool.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <cstdint>
#include <cstring>

#include "io/descriptor.hpp"

namespace nagi::io {

namespace {

struct Offload {
  const char* name;
  std::uint32_t get;
  std::uint32_t set;
  std::uint32_t flag;  // for the commands that get and set a whole word: the bit
};

constexpr std::array offloads = {
    Offload{"tx-checksumming", ETHTOOL_GTXCSUM, ETHTOOL_STXCSUM, 0},
    Offload{"tcp-segmentation-offload", ETHTOOL_GTSO, ETHTOOL_STSO, 0},
    Offload{"generic-segmentation-offload", ETHTOOL_GGSO, ETHTOOL_SGSO, 0},
    Offload{"generic-receive-offload", ETHTOOL_GGRO, ETHTOOL_SGRO, 0},
    Offload{"large-receive-offload", ETHTOOL_GFLAGS, ETHTOOL_SFLAGS, ETH_FLAG_LRO},
};

class Ethtool {
 public:
  explicit Ethtool(const std::string& interface)
      : socket_(socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0)) {
    if (socket_.get() < 0) throw_errno("cannot open a socket");
    if (interface.size() >= IFNAMSIZ) {
      throw std::system_error(ENODEV, std::generic_category(), "no interface " + interface);
    }
    std::memcpy(request_.ifr_name, interface.c_str(), interface.size());
  }

  std::uint32_t call(std::uint32_t command, std::uint32_t data, const std::string& what) {
    ethtool_value value{command, data};
    request_.ifr_data = reinterpret_cast<char*>(&value);
    if (ioctl(socket_.get(), SIOCETHTOOL, &request_) != 0) {
      if (errno == EOPNOTSUPP) return 0;  // a device without this offload
      throw_errno(what + " of " + request_.ifr_name);
    }
    return value.data;
  }

 private:
  Descriptor socket_;
  ifreq request_{};
};

}  // namespace

std::vector<std::string> offloads_on(const std::string& interface) {
  Ethtool ethtool(interface);
  std::vector<std::string> on;
  for (const Offload& offload : offloads) {
    const std::uint32_t value = ethtool.call(offload.get, 0, "cannot read offloads");
    if (offload.flag != 0 ? (value & offload.flag) != 0 : value != 0) on.emplace_back(offload.name);
  }
  return on;
}

void set_offload(const std::string& interface, const std::string& name, bool on) {
  Ethtool ethtool(interface);
  for (const Offload& offload : offloads) {
    if (name != offload.name) continue;
    std::uint32_t value = on ? 1 : 0;
    if (offload.flag != 0) {
      const std::uint32_t flags = ethtool.call(offload.get, 0, "cannot read offloads");
      value = on ? flags | offload.flag : flags & ~offload.flag;
    }
    ethtool.call(offload.set, value, "cannot switch " + name);
  }
}

}  // namespace nagi::io
