// SPDX-License-Identifier: Apache-2.0
//
// What accounts of all our programs have in common, as JSON: who wrote it and how it was run,
// notices, distributions of times.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "service/histogram.hpp"
#include "service/privileges.hpp"
#include "service/settings.hpp"

namespace nagi::runtime {

/// What a user should know, though the program goes on.
class Notices {
 public:
  /// Notes it for the account, and warns at once.
  void add(const std::string& text);
  [[nodiscard]] const std::vector<std::string>& all() const { return all_; }

 private:
  std::vector<std::string> all_;
};

/// Median, 99th percentile, maximum and histogram of durations.
nlohmann::json account_of(const Histogram& histogram);

/// The head of an account: executable and version, settings, privileges, processor time.
/// `complete`: whether this is the last one.
nlohmann::json account_head(const std::string& executable, const ServiceSettings& settings,
                            const Privileges& privileges, bool complete);

}  // namespace nagi::runtime
