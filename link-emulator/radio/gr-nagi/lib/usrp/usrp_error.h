/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stdexcept>
#include <string>

namespace gr::nagi {

/// A device fails, or does not support what is requested. `stage` is the stage of `nagi-sdr doctor`
/// that detects the problem. what() describes the problem, and `cure` says what the user can do.
class UsrpError : public std::runtime_error {
 public:
  UsrpError(std::string at, const std::string& what, std::string how)
      : std::runtime_error(what), stage(std::move(at)), cure(std::move(how)) {}

  std::string stage;
  std::string cure;
};

}  // namespace gr::nagi
