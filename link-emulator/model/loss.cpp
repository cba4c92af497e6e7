// SPDX-License-Identifier: Apache-2.0
#include "model/loss.hpp"

#include <algorithm>
#include <cmath>
#include <stdexcept>

namespace nagi::model {

namespace {

class Bernoulli final : public LossModel {
 public:
  Bernoulli(const BernoulliConfig& config, const Stream& stream)
      : chance_(config.probability), stream_(stream) {}

  bool loses(const Transmission& transmission) override {
    return chance_.happens(stream_.draw(transmission.index));
  }

 private:
  Chance chance_;
  Stream stream_;
};

class BernoulliBit final : public LossModel {
 public:
  BernoulliBit(const BernoulliBitConfig& config, const Stream& stream)
      : one_bit_survives_(Chance(config.bit_error_rate).complement()), stream_(stream) {}

  bool loses(const Transmission& transmission) override {
    const Chance survives = one_bit_survives_.times(transmission.size.count * 8);
    return !survives.happens(stream_.draw(transmission.index));
  }

 private:
  Chance one_bit_survives_;
  Stream stream_;
};

class Poisson final : public LossModel {
 public:
  Poisson(std::uint64_t mean_interval, const Stream& stream, Instant from)
      : mean_interval_(mean_interval), stream_(stream), event_(from) {
    draw_next_event();
  }

  bool loses(const Transmission& transmission) override {
    while (event_ < transmission.start) draw_next_event();
    return event_ < transmission.end;
  }

 private:
  void draw_next_event() { event_ += exponential(stream_.draw(draws_++), mean_interval_); }

  std::uint64_t mean_interval_;
  Stream stream_;
  std::uint64_t draws_ = 0;
  Instant event_;
};

/// A channel with a good and a bad state, each with its own probability of losing a packet.
class TwoStates {
 public:
  TwoStates(double loss_in_good, double loss_in_bad, const Stream& stream)
      : loss_in_good_(loss_in_good), loss_in_bad_(loss_in_bad), stream_(stream) {}

  bool is_bad = false;
  [[nodiscard]] bool loses(std::uint64_t index) const {
    return (is_bad ? loss_in_bad_ : loss_in_good_).happens(stream_.draw(index));
  }

 private:
  Chance loss_in_good_;
  Chance loss_in_bad_;
  Stream stream_;
};

class GilbertElliott final : public LossModel {
 public:
  GilbertElliott(const GilbertElliottConfig& config, const LossStreams& streams)
      : channel_(config.loss_in_good, config.loss_in_bad, streams.loss),
        good_to_bad_(config.good_to_bad),
        bad_to_good_(config.bad_to_good),
        changes_(streams.state) {}

  bool loses(const Transmission& transmission) override {
    const bool lost = channel_.loses(transmission.index);
    const Chance& leaves = channel_.is_bad ? bad_to_good_ : good_to_bad_;
    if (leaves.happens(changes_.draw(transmission.index))) channel_.is_bad = !channel_.is_bad;
    return lost;
  }

 private:
  TwoStates channel_;
  Chance good_to_bad_;
  Chance bad_to_good_;
  Stream changes_;
};

class Markov final : public LossModel {
 public:
  Markov(const MarkovConfig& config, const LossStreams& streams, Instant from)
      : channel_(config.loss_in_good, config.loss_in_bad, streams.loss),
        good_sojourn_(config.good_sojourn),
        bad_sojourn_(config.bad_sojourn),
        sojourns_(streams.state),
        changes_at_(from) {
    draw_sojourn();
  }

  bool loses(const Transmission& transmission) override {
    while (changes_at_ <= transmission.start) {
      channel_.is_bad = !channel_.is_bad;
      draw_sojourn();
    }
    return channel_.loses(transmission.index);
  }

 private:
  void draw_sojourn() {
    const Duration mean = channel_.is_bad ? bad_sojourn_ : good_sojourn_;
    changes_at_ +=
        exponential(sojourns_.draw(draws_++), static_cast<std::uint64_t>(mean.count()) * 1000);
  }

  TwoStates channel_;
  Duration good_sojourn_;
  Duration bad_sojourn_;
  Stream sojourns_;
  std::uint64_t draws_ = 0;
  Instant changes_at_;
};

class LossTrace final : public LossModel {
 public:
  explicit LossTrace(LossTraceConfig config) : config_(std::move(config)) {}

  bool loses(const Transmission& transmission) override {
    return std::binary_search(config_.lost.begin(), config_.lost.end(),
                              transmission.index % config_.length);
  }

 private:
  LossTraceConfig config_;
};

struct Maker {
  std::optional<Bitrate> rate;
  const LossStreams& streams;
  Instant from;

  std::unique_ptr<LossModel> operator()(const NoLossConfig& /*none*/) const { return nullptr; }
  std::unique_ptr<LossModel> operator()(const RadioConfig& /*told*/) const { return nullptr; }
  std::unique_ptr<LossModel> operator()(const BernoulliConfig& config) const {
    return std::make_unique<Bernoulli>(config, streams.loss);
  }
  std::unique_ptr<LossModel> operator()(const BernoulliBitConfig& config) const {
    return std::make_unique<BernoulliBit>(config, streams.loss);
  }
  std::unique_ptr<LossModel> operator()(const PoissonConfig& config) const {
    if (!rate) throw std::invalid_argument("Poisson loss needs a link with a constant rate");
    const auto mean_interval = poisson_mean_interval(config, *rate);
    if (!mean_interval) return nullptr;
    return std::make_unique<Poisson>(*mean_interval, streams.loss, from);
  }
  std::unique_ptr<LossModel> operator()(const GilbertElliottConfig& config) const {
    return std::make_unique<GilbertElliott>(config, streams);
  }
  std::unique_ptr<LossModel> operator()(const MarkovConfig& config) const {
    return std::make_unique<Markov>(config, streams, from);
  }
  std::unique_ptr<LossModel> operator()(const LossTraceConfig& config) const {
    return std::make_unique<LossTrace>(config);
  }
};

}  // namespace

std::optional<std::uint64_t> poisson_mean_interval(const PoissonConfig& config, Bitrate rate) {
  if (config.packet_loss_rate == 0) return std::nullopt;
  const double packet_seconds =
      8.0 * static_cast<double>(config.packet.count) / static_cast<double>(rate.bits_per_second);
  const double mean_seconds = packet_seconds / -std::log1p(-config.packet_loss_rate);
  const double picoseconds = std::round(mean_seconds * 1e12);
  if (picoseconds >= 9.2e18) return std::nullopt;  // less than one event in a hundred days
  constexpr double one_nanosecond = 1e3;           // events cannot be told apart below that
  return static_cast<std::uint64_t>(std::max(picoseconds, one_nanosecond));
}

std::unique_ptr<LossModel> make_loss(const LossConfig& config, std::optional<Bitrate> rate,
                                     const LossStreams& streams, Instant from) {
  return std::visit(Maker{rate, streams, from}, config);
}

}  // namespace nagi::model
