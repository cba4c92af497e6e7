// SPDX-License-Identifier: Apache-2.0
#include "model/queue/discipline.hpp"

namespace nagi::model {

std::unique_ptr<Queue> make_queue(const QueueConfig& config, const Stream& draws) {
  return std::visit(
      [&draws]<class Config>(const Config& chosen) -> std::unique_ptr<Queue> {
        return std::make_unique<typename Config::Model>(chosen, draws);
      },
      config);
}

}  // namespace nagi::model
