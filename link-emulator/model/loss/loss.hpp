// SPDX-License-Identifier: Apache-2.0
//
// All models of losses on the channel. Add a new model to LossConfig.
#pragma once

#include <memory>
#include <variant>

#include "model/loss/bernoulli.hpp"
#include "model/loss/bernoulli_bit.hpp"
#include "model/loss/bernoulli_trace.hpp"
#include "model/loss/gilbert_elliott.hpp"
#include "model/loss/loss_model.hpp"
#include "model/loss/markov.hpp"
#include "model/loss/poisson.hpp"
#include "model/loss/sdr.hpp"
#include "model/loss/trace.hpp"

namespace nagi::model {

struct NoLoss {
  static constexpr std::string_view name = "none";
  static constexpr auto fields() { return std::tuple(); }
};

/// Losses of a radio, which reports the outcome of each transmission; the model samples no losses.
/// See radio_outcomes.hpp.
struct RadioLoss {
  static constexpr std::string_view name = "radio";
  static constexpr auto fields() { return std::tuple(); }
};

using LossConfig =
    std::variant<NoLoss, BernoulliLoss, BernoulliBitLoss, BernoulliTraceLoss, PoissonLoss,
                 GilbertElliottLoss, MarkovLoss, TraceLoss, SdrLoss, RadioLoss>;

/// Create the loss model of `config`. Return null if the model samples no losses.
std::unique_ptr<LossModel> make_loss(const LossConfig& config, const LossContext& context);

}  // namespace nagi::model
