// SPDX-License-Identifier: Apache-2.0
#include "model/loss/loss.hpp"

namespace nagi::model {

std::unique_ptr<LossModel> make_loss(const LossConfig& config, const LossContext& context) {
  return std::visit(
      [&context]<class Config>(const Config& chosen) -> std::unique_ptr<LossModel> {
        if constexpr (requires { typename Config::Model; }) {
          return std::make_unique<typename Config::Model>(chosen, context);
        }
        return nullptr;
      },
      config);
}

}  // namespace nagi::model
