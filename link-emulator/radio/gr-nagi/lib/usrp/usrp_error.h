/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stdexcept>
#include <string>

namespace gr::nagi {

/// An error of a device that cannot do or does not have what is requested. `stage` is the stage of
/// `nagi-sdr doctor` that shows the error, what() describes it, and `cure` corrects it.
class UsrpError : public std::runtime_error {
 public:
  UsrpError(std::string at, const std::string& what, std::string how)
      : std::runtime_error(what), stage(std::move(at)), cure(std::move(how)) {}

  std::string stage;
  std::string cure;
};

}  // namespace gr::nagi
