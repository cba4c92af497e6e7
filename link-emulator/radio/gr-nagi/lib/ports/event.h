/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <sys/eventfd.h>
#include <unistd.h>

#include "io/descriptor.hpp"

namespace gr::nagi {

/// An event for which threads wait by descriptor.
class Event {
 public:
  Event() : descriptor_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
    if (descriptor_.get() < 0) ::nagi::io::throw_errno("eventfd");
  }
  /// Set the event. Its descriptor is readable from now on.
  void set() const { eventfd_write(descriptor_.get(), 1); }
  /// Clear the event. Its descriptor is no longer readable.
  void clear() const {
    eventfd_t value = 0;
    eventfd_read(descriptor_.get(), &value);
  }
  [[nodiscard]] int descriptor() const { return descriptor_.get(); }

 private:
  ::nagi::io::Descriptor descriptor_;
};

}  // namespace gr::nagi
