// SPDX-License-Identifier: Apache-2.0
#include "io/interface.hpp"

#include <linux/ethtool.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <system_error>

#include "io/descriptor.hpp"

namespace nagi::io {

namespace {

constexpr std::size_t vlan_tag_bytes = 4;

ifreq request_for(const std::string& interface) {
  if (interface.size() >= IFNAMSIZ) {
    throw std::system_error(ENODEV, std::generic_category(), "no interface " + interface);
  }
  ifreq request{};
  std::memcpy(request.ifr_name, interface.c_str(), interface.size());
  return request;
}

bool ask(unsigned long command, ifreq& request) {
  const Descriptor socket_for_ioctl(socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  if (socket_for_ioctl.get() < 0) throw_errno("cannot open a socket");
  return ioctl(socket_for_ioctl.get(), command, &request) == 0;
}

}  // namespace

int index_of(const std::string& interface) {
  ifreq request = request_for(interface);
  if (!ask(SIOCGIFINDEX, request)) throw_errno("no interface " + interface);
  return request.ifr_ifindex;
}

std::size_t longest_frame(const std::string& interface) {
  ifreq request = request_for(interface);
  if (!ask(SIOCGIFMTU, request)) throw_errno("no interface " + interface);
  return static_cast<std::size_t>(request.ifr_mtu) + ETH_HLEN + vlan_tag_bytes;
}

std::string driver_of(const std::string& interface) {
  ifreq request = request_for(interface);
  ethtool_drvinfo info{};
  info.cmd = ETHTOOL_GDRVINFO;
  request.ifr_data = reinterpret_cast<char*>(&info);
  return ask(SIOCETHTOOL, request) ? info.driver : "";
}

unsigned receive_queues(const std::string& interface) {
  ifreq request = request_for(interface);
  ethtool_channels channels{};
  channels.cmd = ETHTOOL_GCHANNELS;
  request.ifr_data = reinterpret_cast<char*>(&channels);
  if (!ask(SIOCETHTOOL, request)) return 1;  // a device without channels has one queue
  return std::max(channels.rx_count + channels.combined_count, 1U);
}

void make_promiscuous(int packet_socket, int interface_index) {
  packet_mreq membership{};
  membership.mr_ifindex = interface_index;
  membership.mr_type = PACKET_MR_PROMISC;
  if (setsockopt(packet_socket, SOL_PACKET, PACKET_ADD_MEMBERSHIP, &membership,
                 sizeof membership) != 0) {
    throw_errno("cannot make the interface promiscuous");
  }
}

}  // namespace nagi::io
