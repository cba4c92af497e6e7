/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stdexcept>
#include <string>

namespace gr::nagi {

/// What a device cannot do or does not have: `stage` of `nagi-sdr doctor` at which it shows, what
/// is so, and the cure.
class UsrpError : public std::runtime_error {
 public:
  UsrpError(std::string at, const std::string& what, std::string how)
      : std::runtime_error(what), stage(std::move(at)), cure(std::move(how)) {}

  std::string stage;
  std::string cure;
};

}  // namespace gr::nagi
