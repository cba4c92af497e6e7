// SPDX-License-Identifier: Apache-2.0
//
// All queue disciplines. Add a new discipline to QueueConfig.
#pragma once

#include <memory>

#include "model/queue/codel.hpp"
#include "model/queue/drop_tail.hpp"
#include "model/queue/dual_pi2.hpp"
#include "model/queue/fq_codel.hpp"
#include "model/queue/pie.hpp"

namespace nagi::model {

using QueueConfig = std::variant<DropTail, CoDel, FqCoDel, Pie, DualPi2>;

std::unique_ptr<Queue> make_queue(const QueueConfig& config, const Stream& draws);

inline const QueueLimit& limit_of(const QueueConfig& config) {
  return std::visit([](const auto& chosen) -> const QueueLimit& { return chosen.limit; }, config);
}

}  // namespace nagi::model
