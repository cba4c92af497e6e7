/* SPDX-License-Identifier: Apache-2.0 */
//
// A channel of a device, one way: what its property tree has set, for its streams.
#pragma once

#include <atomic>
#include <cmath>
#include <cstdint>
#include <memory>

#include "cable.hpp"
#include "device_clock.hpp"
#include "model/channel_key.hpp"
#include "settings.hpp"

namespace nagi::uhd_double {

constexpr double max_tx_gain_db = 89.75;
constexpr double max_rx_gain_db = 76;
constexpr double max_output_dbm = 10;         // of full scale, at the highest gain
constexpr double input_full_scale_dbm = -10;  // without gain
constexpr double thermal_dbm_hz = -174;

struct Channel {
  std::uint32_t number = 0;
  std::atomic<double> rate_hz = 1e6;
  std::atomic<double> lo_hz = 1e9;
  std::atomic<double> dsp_hz = 0;  // by which its DSP shifts the signal
  std::atomic<double> gain_db = 0;
  std::shared_ptr<Cable> cable;
  // Draws of what befalls bursts and packets go on from stream to stream.
  std::atomic<std::uint64_t> bursts = 0;
  std::atomic<std::uint64_t> packets = 0;
};

/// What streams share with their device.
struct Board {
  explicit Board(const Settings& said)
      : settings(said), clock(said.offset_ppm, said.drift_ppm_s), tick_hz(said.master_clock_hz) {}

  Settings settings;
  DeviceClock clock;
  std::atomic<double> tick_hz;

  /// Whether what was drawn may happen by now.
  [[nodiscard]] bool has_faults() const {
    return static_cast<double>(monotonic_ns() - opened_ns) * 1e-9 >= settings.spared_s;
  }
  std::int64_t opened_ns = monotonic_ns();

  /// Keys of draws: outputs and inputs each have their own.
  [[nodiscard]] model::ChannelKey key(const Channel& channel, bool is_output) const {
    return {settings.seed, 2 * channel.number + (is_output ? 1 : 0)};
  }
};

}  // namespace nagi::uhd_double
