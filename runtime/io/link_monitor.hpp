// SPDX-License-Identifier: Apache-2.0
//
// Tells when an interface goes, as a USB adapter that is unplugged does, or is set down or up again
// (rtnetlink(7)). Its packet sockets do not: they stay open, and no frame ever comes again, not
// even if an interface of the same name appears.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "io/descriptor.hpp"

namespace nagi::io {

/// What has become of an interface: it has left this network namespace, or is set down, or up.
enum class LinkEvent { gone, down, up };

struct LinkChange {
  std::string interface;
  LinkEvent event = LinkEvent::gone;
};

class LinkMonitor {
 public:
  /// Watches these interfaces of this network namespace, by their numbers: another one of the same
  /// name is another one. Throws std::system_error if one is not there.
  explicit LinkMonitor(const std::vector<std::string>& interfaces);

  /// Becomes readable when an interface changes.
  [[nodiscard]] int descriptor() const { return socket_.get(); }
  /// Returns what has changed since the last call.
  std::vector<LinkChange> read();

 private:
  struct Interface {
    std::string name;
    bool is_up = true;
    bool is_gone = false;
  };

  std::vector<LinkChange> look_at_all();

  Descriptor socket_;
  std::map<int, Interface> interfaces_;  // by number
};

}  // namespace nagi::io
