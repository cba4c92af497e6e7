// SPDX-License-Identifier: Apache-2.0
#include "simulation/configuration.hpp"

#include <stdexcept>
#include <string>
#include <variant>

#include "include/nagi_registers.h"
#include "io/input_error.hpp"

namespace nagi::fpga {

namespace {

using model::DirectionConfig;

constexpr std::array<const char*, 2> names = {"forward", "backward"};
constexpr std::array<std::uint32_t, 2> bases = {NAGI_FPGA_FORWARD_BASE, NAGI_FPGA_BACKWARD_BASE};

[[noreturn]] void lack(std::size_t direction, const std::string& key, const std::string& what) {
  throw InputError(std::string(names.at(direction)) + "." + key + ": the FPGA's core has no " +
                   what + "; remove it, or leave the link to nagi-link");
}

/// Writes the registers of one direction.
class DirectionRegisters {
 public:
  DirectionRegisters(Core& core, std::size_t direction)
      : core_(core), direction_(direction), base_(bases.at(direction)) {}

  void configure(const DirectionConfig& config) {
    require_possible(config);
    set_rate(config);
    set_queue(std::get<model::DropTail>(config.queue));
    if (config.mark) set_mark(*config.mark);
    set(NAGI_FPGA_DIRECTION_OVERHEAD_BYTES, static_cast<std::uint32_t>(config.overhead.count));
    const auto delay = std::get<Duration>(config.delay);
    set_long(NAGI_FPGA_DIRECTION_DELAY_NS_LO, static_cast<std::uint64_t>(delay.count()));
    if (config.loss_at == model::LossPoint::ingress) mode_ |= NAGI_FPGA_MODE_LOSS_AT_INGRESS_MASK;
    std::visit([&](const auto& loss) { set_loss(loss, config); }, config.loss);
    set(NAGI_FPGA_DIRECTION_MODE, mode_);
  }

 private:
  void set(std::uint32_t address, std::uint32_t value) {
    core_.write_register(base_ + address, value);
  }
  void set_long(std::uint32_t address, std::uint64_t value) {
    core_.write_long(base_ + address, value);
  }
  void set_mode(std::uint32_t value, std::uint32_t shift) { mode_ |= value << shift; }

  void require_possible(const DirectionConfig& config) const {
    const auto lacks = [this](bool is_asked, const char* key, const char* what) {
      if (is_asked) lack(direction_, key, what);
    };
    lacks(std::holds_alternative<model::TokenBucket>(config.rate), "burst_bytes", "token bucket");
    lacks(!std::holds_alternative<Unlimited>(config.rate) &&
              !std::holds_alternative<Bitrate>(config.rate),
          "rate_trace", "rate that changes");
    lacks(!std::holds_alternative<model::DropTail>(config.queue), "queue",
          "queue discipline except drop_tail");
    lacks(!std::holds_alternative<Duration>(config.delay), "delay_trace", "delay that changes");
    lacks(config.jitter.distribution.index() != 0, "jitter", "jitter");
    lacks(!config.keep_order, "keep_order", "packets out of order");
    lacks(config.arq.has_value(), "arq", "ARQ");
    std::apply(
        [&](const auto&... effect) {
          lacks((effect.has_value() || ...), "effects", "corruption, duplication or reordering");
        },
        config.effects);
  }

  void set_rate(const DirectionConfig& config) {
    const auto* rate = std::get_if<Bitrate>(&config.rate);
    if (rate == nullptr) mode_ |= NAGI_FPGA_MODE_UNLIMITED_RATE_MASK;
    set_long(NAGI_FPGA_DIRECTION_RATE_BPS_LO, rate == nullptr ? 1 : rate->bits_per_second);
  }

  void set_queue(const model::DropTail& queue) {
    if (queue.counts_transmission) mode_ |= NAGI_FPGA_MODE_COUNTS_TRANSMISSION_MASK;
    std::uint64_t limit = 0;
    std::uint32_t kind = NAGI_FPGA_MODE_QUEUE_LIMIT_NONE;
    if (const auto* packets = std::get_if<Packets>(&queue.limit)) {
      limit = packets->count;
      kind = NAGI_FPGA_MODE_QUEUE_LIMIT_PACKETS;
    } else if (const auto* bytes = std::get_if<Bytes>(&queue.limit)) {
      limit = bytes->count;
      kind = NAGI_FPGA_MODE_QUEUE_LIMIT_BYTES;
    }
    set_long(NAGI_FPGA_DIRECTION_QUEUE_LIMIT_LO, limit);
    set_mode(kind, NAGI_FPGA_MODE_QUEUE_LIMIT_SHIFT);
  }

  void set_mark(const model::MarkConfig& mark) {
    const auto* threshold = std::get_if<model::ThresholdMarking>(&mark);
    if (threshold == nullptr || threshold->weight != 1) {
      lack(direction_, "mark.weight", "queue average, only weight 1");
    }
    const auto* bytes = std::get_if<Bytes>(&threshold->threshold);
    set_long(NAGI_FPGA_DIRECTION_MARK_THRESHOLD_LO,
             bytes != nullptr ? bytes->count : std::get<Packets>(threshold->threshold).count);
    set_mode(bytes != nullptr ? NAGI_FPGA_MODE_MARK_BYTES : NAGI_FPGA_MODE_MARK_PACKETS,
             NAGI_FPGA_MODE_MARK_SHIFT);
  }

  void set_chance(double probability, std::uint32_t address, std::uint32_t certain) {
    const model::Chance chance(probability);
    if (chance.is_certain()) mode_ |= certain;
    set_long(address, chance.threshold());
  }

  void set_loss(const model::NoLoss& /*none*/, const DirectionConfig& /*config*/) {
    set_mode(NAGI_FPGA_MODE_LOSS_NONE, NAGI_FPGA_MODE_LOSS_SHIFT);
  }
  void set_loss(const model::BernoulliLoss& loss, const DirectionConfig& /*config*/) {
    set_mode(NAGI_FPGA_MODE_LOSS_BERNOULLI, NAGI_FPGA_MODE_LOSS_SHIFT);
    set_chance(loss.probability, NAGI_FPGA_DIRECTION_LOSS_IN_GOOD_LO,
               NAGI_FPGA_MODE_LOSS_IN_GOOD_CERTAIN_MASK);
  }
  void set_loss(const model::GilbertElliottLoss& loss, const DirectionConfig& /*config*/) {
    set_mode(NAGI_FPGA_MODE_LOSS_GILBERT_ELLIOTT, NAGI_FPGA_MODE_LOSS_SHIFT);
    set_chance(loss.loss_in_good, NAGI_FPGA_DIRECTION_LOSS_IN_GOOD_LO,
               NAGI_FPGA_MODE_LOSS_IN_GOOD_CERTAIN_MASK);
    set_chance(loss.loss_in_bad, NAGI_FPGA_DIRECTION_LOSS_IN_BAD_LO,
               NAGI_FPGA_MODE_LOSS_IN_BAD_CERTAIN_MASK);
    set_chance(loss.good_to_bad, NAGI_FPGA_DIRECTION_GOOD_TO_BAD_LO,
               NAGI_FPGA_MODE_GOOD_TO_BAD_CERTAIN_MASK);
    set_chance(loss.bad_to_good, NAGI_FPGA_DIRECTION_BAD_TO_GOOD_LO,
               NAGI_FPGA_MODE_BAD_TO_GOOD_CERTAIN_MASK);
  }
  void set_loss(const model::PoissonLoss& loss, const DirectionConfig& config) {
    const auto* rate = std::get_if<Bitrate>(&config.rate);
    if (rate == nullptr) lack(direction_, "loss", "Poisson losses without a rate");
    const auto mean_ps = loss.mean_interval(*rate, config.overhead);
    if (!mean_ps) return;  // losses are so rare that they count as none
    set_mode(NAGI_FPGA_MODE_LOSS_POISSON, NAGI_FPGA_MODE_LOSS_SHIFT);
    set_long(NAGI_FPGA_DIRECTION_POISSON_MEAN_PS_LO, *mean_ps);
  }
  template <class Other>
  void set_loss(const Other& /*loss*/, const DirectionConfig& /*config*/) {
    lack(direction_, "loss", "loss model " + std::string(Other::name));
  }

  Core& core_;
  std::size_t direction_;
  std::uint32_t base_;
  std::uint32_t mode_ = 0;
};

}  // namespace

void require_known(Core& core) {
  if (core.read_register(NAGI_FPGA_MAGIC) != NAGI_FPGA_MAGIC_VALUE ||
      core.read_register(NAGI_FPGA_MAP_VERSION) != NAGI_FPGA_MAP_VERSION_VALUE) {
    throw InputError("the core has another register map; build nagi-fpga again");
  }
}

void configure(Core& core, const LinkConfiguration& configuration) {
  require_known(core);
  core.write_register(NAGI_FPGA_LINK, configuration.link);
  core.write_long(NAGI_FPGA_SEED_LO, configuration.seed);
  core.write_long(NAGI_FPGA_EPOCH_NS_LO, 0);
  for (std::size_t i = 0; i < configuration.directions.size(); ++i) {
    DirectionRegisters(core, i).configure(configuration.directions.at(i));
  }
  core.write_register(NAGI_FPGA_CONTROL, NAGI_FPGA_CONTROL_ENABLE_MASK);
  core.set_time(0);
}

void latch(Core& core) { core.write_register(NAGI_FPGA_COMMAND, NAGI_FPGA_COMMAND_LATCH_MASK); }

daemon::fpga::CountsOf count(Core& core, std::size_t direction) {
  const auto read = [&](std::uint32_t address) {
    return core.read_long(bases.at(direction) + address);
  };
  if (read(NAGI_FPGA_DIRECTION_LOST_RECORDS_LO) != 0 ||
      read(NAGI_FPGA_DIRECTION_BAD_FRAMES_LO) != 0) {
    throw std::runtime_error(std::string(names.at(direction)) +
                             ": the core lost records, or counted bad frames");
  }
  return {.offered = read(NAGI_FPGA_DIRECTION_OFFERED_LO),
          .offered_bytes = read(NAGI_FPGA_DIRECTION_OFFERED_BYTES_LO),
          .delivered = read(NAGI_FPGA_DIRECTION_DELIVERED_LO),
          .delivered_bytes = read(NAGI_FPGA_DIRECTION_DELIVERED_BYTES_LO),
          .queue_overflows = read(NAGI_FPGA_DIRECTION_QUEUE_OVERFLOWS_LO),
          .channel_losses = read(NAGI_FPGA_DIRECTION_CHANNEL_LOSSES_LO),
          .marked = read(NAGI_FPGA_DIRECTION_MARKED_LO),
          .transmitted = read(NAGI_FPGA_DIRECTION_TRANSMITTED_LO),
          .transmitted_bytes = read(NAGI_FPGA_DIRECTION_TRANSMITTED_BYTES_LO),
          .transmitting_ns = read(NAGI_FPGA_DIRECTION_TRANSMITTING_NS_LO),
          .max_waiting = read(NAGI_FPGA_DIRECTION_MAX_WAITING_LO),
          .memory_overflows = read(NAGI_FPGA_DIRECTION_MEMORY_OVERFLOWS_LO),
          .late_releases = read(NAGI_FPGA_DIRECTION_LATE_RELEASES_LO),
          .max_late_ns = read(NAGI_FPGA_DIRECTION_MAX_LATE_NS_LO)};
}

}  // namespace nagi::fpga
