// SPDX-License-Identifier: Apache-2.0
//
// The common parts of the accounts of nagi's services. An account is a JSON object with the
// settings and counters of a program: executable, settings, privileges, notices, and distributions
// of times.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "service/histogram.hpp"
#include "service/privileges.hpp"
#include "service/settings.hpp"

namespace nagi::runtime {

/// Messages for the user about problems that do not end the program.
class Notices {
 public:
  /// Add a message to the account, and log it as a warning.
  void add(const std::string& text);
  [[nodiscard]] const std::vector<std::string>& all() const { return all_; }

 private:
  std::vector<std::string> all_;
};

/// Return median, 99th percentile, maximum and histogram of durations.
nlohmann::json account_of(const Histogram& histogram);

/// Return the first keys of an account: executable and version, settings, privileges, processor
/// time. `complete` is true for the account at the end of a program.
nlohmann::json account_head(const std::string& executable, const ServiceSettings& settings,
                            const Privileges& privileges, bool complete);

}  // namespace nagi::runtime
