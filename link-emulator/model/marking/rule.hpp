// SPDX-License-Identifier: Apache-2.0
//
// What a rule is by which packets that come in are marked (ECN), beside a drop-tail queue.
#pragma once

#include <cstdint>

#include "base/interface.hpp"
#include "base/units.hpp"

namespace nagi::model {

class MarkingRule : public Interface {
 public:
  /// A packet comes in, while so much waits. Whether it is to be marked.
  [[nodiscard]] virtual bool marks(Packets packets, Bytes bytes) = 0;
  /// Nothing waited and nothing was sent for as long as `packets` typical packets take.
  virtual void idle(std::uint64_t packets) = 0;
  [[nodiscard]] virtual Bytes typical_packet() const = 0;
  /// Takes the place of another rule.
  virtual void resume(const MarkingRule& before) = 0;
};

}  // namespace nagi::model
