// SPDX-License-Identifier: Apache-2.0
#include "model/adaptation/rate_adaptation.hpp"

namespace nagi::model {

RateAdaptation::RateAdaptation(const RateAdaptationConfig& config, Stream draws)
    : modes_(config.modes),
      recorded_snr_(config.recorded_snr),
      scheme_(std::visit(
          [&]<class Scheme>(const Scheme& scheme) -> std::unique_ptr<AdaptationModel> {
            return std::make_unique<typename Scheme::Model>(scheme, config.modes, draws);
          },
          config.scheme)) {}

std::uint8_t RateAdaptation::choose(Instant at, unsigned attempt, std::uint64_t number) {
  while (!reports_.empty() && reports_.front().known_at <= at) {
    scheme_->learn(reports_.front().transmission, reports_.front().known_at);
    reports_.pop_front();
  }
  return static_cast<std::uint8_t>(scheme_->choose(at, attempt, number));
}

void RateAdaptation::report(const Transmission& transmission, Instant known_at) {
  Transmission reported = transmission;
  if (transmission.number < recorded_snr_.size()) reported.snr = recorded_snr_[transmission.number];
  reports_.push_back({reported, known_at});
}

}  // namespace nagi::model
