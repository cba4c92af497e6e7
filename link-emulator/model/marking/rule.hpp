// SPDX-License-Identifier: Apache-2.0
//
// The interface of rules that mark arriving packets (ECN) at a drop-tail queue.
#pragma once

#include <cstdint>

#include "base/interface.hpp"
#include "base/units.hpp"

namespace nagi::model {

/// A rule that decides which arriving packets are marked.
class MarkingRule : public Interface {
 public:
  /// Return whether to mark a packet that arrives while `packets` packets of `bytes` bytes wait.
  [[nodiscard]] virtual bool marks(Packets packets, Bytes bytes) = 0;
  /// Note that the queue and the server were idle for the duration of `packets` typical packets.
  virtual void idle(std::uint64_t packets) = 0;
  [[nodiscard]] virtual Bytes typical_packet() const = 0;
  /// Take over the state of `previous`, the rule that this rule replaces, as far as possible.
  virtual void resume(const MarkingRule& previous) = 0;
};

}  // namespace nagi::model
