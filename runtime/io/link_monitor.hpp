// SPDX-License-Identifier: Apache-2.0
//
// Reports when an interface disappears (for example an unplugged USB adapter) or is set down or up
// (rtnetlink(7)). Packet sockets do not report this: they stay open without receiving frames, even
// if an interface with the same name appears.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "io/descriptor.hpp"

namespace nagi::io {

/// The change of an interface: it has left this network namespace or does not exist (`gone`), or it
/// was set down or up.
enum class LinkEvent { gone, down, up };

struct LinkChange {
  std::string interface;
  LinkEvent event = LinkEvent::gone;
};

class LinkMonitor {
 public:
  /// Watch these interfaces of this network namespace. They are identified by their numbers, so a
  /// new interface with an old name is not watched. Throws std::system_error if an interface does
  /// not exist.
  explicit LinkMonitor(const std::vector<std::string>& interfaces);

  /// Return a descriptor that is readable when an interface has changed.
  [[nodiscard]] int descriptor() const { return socket_.get(); }
  /// Return the changes since the last call.
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
