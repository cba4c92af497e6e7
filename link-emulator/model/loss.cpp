// SPDX-License-Identifier: Apache-2.0
#include "model/loss.hpp"

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

class Poisson final : public LossModel {
 public:
  Poisson(std::uint64_t mean_interval, const Stream& stream)
      : mean_interval_(mean_interval), stream_(stream) {
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
  Instant event_{};
};

struct Maker {
  std::optional<Bitrate> rate;
  const Stream& stream;

  std::unique_ptr<LossModel> operator()(const NoLossConfig& /*none*/) const { return nullptr; }
  std::unique_ptr<LossModel> operator()(const BernoulliConfig& config) const {
    return std::make_unique<Bernoulli>(config, stream);
  }
  std::unique_ptr<LossModel> operator()(const PoissonConfig& config) const {
    if (!rate) throw std::invalid_argument("Poisson loss needs a link with a rate");
    const auto mean_interval = poisson_mean_interval(config, *rate);
    if (!mean_interval) return nullptr;
    return std::make_unique<Poisson>(*mean_interval, stream);
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
  return static_cast<std::uint64_t>(picoseconds);
}

std::unique_ptr<LossModel> make_loss(const LossConfig& config, std::optional<Bitrate> rate,
                                     const Stream& stream) {
  return std::visit(Maker{rate, stream}, config);
}

}  // namespace nagi::model
