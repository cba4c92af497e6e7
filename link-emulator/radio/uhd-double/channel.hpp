/* SPDX-License-Identifier: Apache-2.0 */
//
// A channel of a device, either an input or an output. It holds the settings from the device's
// property tree for the channel's streams.
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
constexpr double max_output_dbm = 10;         // of full scale, at the maximum gain
constexpr double input_full_scale_dbm = -10;  // at a gain of 0 dB
constexpr double thermal_dbm_hz = -174;

struct Channel {
  std::uint32_t number = 0;
  std::atomic<double> rate_hz = 1e6;
  std::atomic<double> lo_hz = 1e9;
  std::atomic<double> dsp_hz = 0;  // frequency by which the DSP shifts the signal
  std::atomic<double> gain_db = 0;
  std::shared_ptr<Cable> cable;
  // The numbers of bursts and packets, which select the random faults, continue across streams.
  std::atomic<std::uint64_t> bursts = 0;
  std::atomic<std::uint64_t> packets = 0;
};

/// State that streams share with their device.
struct Board {
  explicit Board(const Settings& device_settings)
      : settings(device_settings),
        clock(device_settings.offset_ppm, device_settings.drift_ppm_s),
        tick_hz(device_settings.master_clock_hz) {}

  Settings settings;
  DeviceClock clock;
  std::atomic<double> tick_hz;

  /// Return whether random faults may already occur; see Settings::spared_s.
  [[nodiscard]] bool has_faults() const {
    return static_cast<double>(monotonic_ns() - opened_ns) * 1e-9 >= settings.spared_s;
  }
  std::int64_t opened_ns = monotonic_ns();

  /// Return the key of a channel's random draws. Outputs and inputs have different keys.
  [[nodiscard]] model::ChannelKey key(const Channel& channel, bool is_output) const {
    return {settings.seed, 2 * channel.number + (is_output ? 1 : 0)};
  }
};

}  // namespace nagi::uhd_double
