// SPDX-License-Identifier: Apache-2.0
//
// Rate adaptation by a table: the fastest mode whose minimum SNR does not exceed the last SNR that
// the receiver measured. The idea is that of G. Holland, N. Vaidya and P. Bahl, "A rate-adaptive
// MAC protocol for multi-hop wireless networks", MobiCom 2001, but this scheme uses the SNR of data
// frames instead of RTS frames. Before the first measurement, and after a transmission without one,
// the scheme chooses the slowest mode.
#pragma once

#include <algorithm>
#include <cmath>

#include "model/adaptation/scheme.hpp"
#include "model/described.hpp"

namespace nagi::model {

struct SnrTable {
  std::vector<double> min_snr_db;  // by mode

  static constexpr std::string_view name = "snr_table";
  static constexpr auto fields() {
    return std::tuple(
        SortedField<SnrTable>{"min_snr_db", &SnrTable::min_snr_db, bounds::min_snr_db});
  }

  class Model;
};

class SnrTable::Model final : public AdaptationModel {
 public:
  Model(const SnrTable& config, const std::vector<Mode>& /*any*/, Stream /*none*/) {
    for (const double db : config.min_snr_db) min_snr_.push_back(std::lround(db * 100));
  }

  std::size_t choose(Instant /*any*/, unsigned /*any*/, std::uint64_t /*any*/) override {
    return mode_;
  }
  void learn(const Transmission& transmission, Instant /*any*/) override {
    mode_ = 0;
    if (transmission.snr == no_snr) return;
    while (mode_ + 1 < min_snr_.size() && transmission.snr >= min_snr_[mode_ + 1]) ++mode_;
  }

 private:
  std::vector<long> min_snr_;  // 0.01 dB
  std::size_t mode_ = 0;
};

}  // namespace nagi::model
