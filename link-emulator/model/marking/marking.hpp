// SPDX-License-Identifier: Apache-2.0
//
// All marking rules. Add a new rule to MarkConfig.
#pragma once

#include <memory>
#include <variant>

#include "model/marking/threshold.hpp"

namespace nagi::model {

using MarkConfig = std::variant<ThresholdMarking>;

inline std::unique_ptr<MarkingRule> make_marking(const MarkConfig& config) {
  return std::visit(
      []<class Config>(const Config& chosen) -> std::unique_ptr<MarkingRule> {
        return std::make_unique<typename Config::Model>(chosen);
      },
      config);
}

}  // namespace nagi::model
