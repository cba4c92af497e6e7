// SPDX-License-Identifier: Apache-2.0
//
// Losses from the measured error rates of a radio's receiver (`nagi-sdr calibrate`): a table of
// packet error rates over SNR and length. The model evaluates it at the SNR of each transmission,
// which may follow a trace, shadowing and fading. If the channel changes within a transmission, the
// model uses the mean of the exponents E (loss_table.hpp) at several instants.
#pragma once

#include "model/described.hpp"
#include "model/loss/loss_model.hpp"
#include "model/loss_table.hpp"
#include "model/snr_course.hpp"

namespace nagi::model {

/// An SNR over time, under the keys "snr_db" or "snr_trace", "fading", "shadowing"; see
/// sdr_json.hpp.
template <class Config>
struct SnrField {
  SnrConfig Config::* member;
};

/// The curves of a table, under the key "curves".
template <class Config>
struct CurvesField {
  std::vector<LossCurve> Config::* member;
};

struct SdrLoss {
  SnrConfig snr;
  std::vector<LossCurve> curves;

  static constexpr std::string_view name = "sdr";
  static constexpr auto fields() {
    return std::tuple(SnrField<SdrLoss>{&SdrLoss::snr}, CurvesField<SdrLoss>{&SdrLoss::curves});
  }

  class Model;
};

class SdrLoss::Model final : public LossModel {
 public:
  Model(const SdrLoss& config, const LossContext& context)
      : snr_(config.snr, context.channel), table_(config.curves), draws_(context.draws) {}

  bool loses(std::uint64_t index, const Transmission& transmission) override {
    const Duration air = transmission.end - transmission.start;
    const int instants = snr_.instants_within(air);
    double sum = 0;
    for (int i = 0; i < instants; ++i) {
      const Instant at = transmission.start + air * (2 * i + 1) / (2 * instants);
      sum += table_.exponent(snr_.at(at), transmission.packet.size.count);
    }
    const double exponent = sum / instants;
    if (exponent == 0) return false;
    return Chance(1 - exp_of_minus(exponent)).happens(draws_.draw(index));
  }

 private:
  SnrCourse snr_;
  LossTable table_;
  Stream draws_;
};

}  // namespace nagi::model
