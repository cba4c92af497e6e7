// SPDX-License-Identifier: Apache-2.0
#include "io/link_monitor.hpp"

#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <net/if.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <cstring>

#include "io/interface.hpp"

namespace nagi::io {

LinkMonitor::LinkMonitor(const std::vector<std::string>& interfaces)
    : socket_(socket(AF_NETLINK, SOCK_RAW | SOCK_NONBLOCK | SOCK_CLOEXEC, NETLINK_ROUTE)) {
  if (socket_.get() < 0) throw_errno("cannot open a netlink socket");
  sockaddr_nl address{};
  address.nl_family = AF_NETLINK;
  address.nl_groups = RTMGRP_LINK;
  if (bind(socket_.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
    throw_errno("cannot listen for changes of interfaces");
  }
  for (const std::string& interface : interfaces) interfaces_[index_of(interface)].name = interface;
}

std::vector<LinkChange> LinkMonitor::read() {
  // Query the state of all interfaces again, because messages are lost if there are too many.
  std::array<char, 16384> buffer;
  while (recv(socket_.get(), buffer.data(), buffer.size(), 0) > 0 || errno == ENOBUFS ||
         errno == EINTR) {
  }
  return look_at_all();
}

std::vector<LinkChange> LinkMonitor::look_at_all() {
  std::vector<LinkChange> changes;
  for (auto& [number, interface] : interfaces_) {
    if (interface.is_gone) continue;
    ifreq request{};
    if (if_indextoname(static_cast<unsigned>(number), request.ifr_name) == nullptr) {
      interface.is_gone = true;
      changes.push_back({interface.name, LinkEvent::gone});
      continue;
    }
    // The interface is disappearing. The next read reports it as gone.
    if (ioctl(socket_.get(), SIOCGIFFLAGS, &request) != 0) continue;
    const bool is_up = (request.ifr_flags & IFF_UP) != 0;
    if (is_up == interface.is_up) continue;
    interface.is_up = is_up;
    changes.push_back({interface.name, is_up ? LinkEvent::up : LinkEvent::down});
  }
  return changes;
}

}  // namespace nagi::io
