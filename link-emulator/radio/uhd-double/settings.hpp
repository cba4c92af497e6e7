/* SPDX-License-Identifier: Apache-2.0 */
//
// Settings of a double from device arguments such as `type=nagi_double,serial=a,attenuation=40`.
// The items of a list are separated by a bar: `tx_cable=x|y`.
#pragma once

#include <cstdint>
#include <string>
#include <uhd/types/device_addr.hpp>
#include <vector>

namespace nagi::uhd_double {

constexpr const char* device_type = "nagi_double";

struct Settings {
  std::string serial = "double";
  std::size_t channels = 1;  // per direction
  // The cables that each channel sends to and receives from. A name identifies one cable of this
  // process. By default, each channel's output leads to its own input.
  std::vector<std::string> tx_cables;
  std::vector<std::string> rx_cables;
  double attenuation_db = 60;  // of the cables to the inputs
  double noise_figure_db = 6;
  double master_clock_hz = 32e6;

  // The buffer per direction. A full buffer overflows (input) or blocks the host (output).
  double buffer_s = 0.1;

  // Errors of the device's oscillator, which apply to both ticks and carriers.
  double offset_ppm = 0;
  double drift_ppm_s = 0;
  double phase_noise_hz = 0;  // linewidth

  // Impairments of inputs and outputs: DC offsets relative to full scale, IQ imbalance in dB and
  // degrees.
  double tx_dc = 0;
  double rx_dc = 0;
  double iq_gain_db = 0;
  double iq_phase_deg = 0;
  unsigned bits = 16;  // of the converters, 4 to 16

  // Probabilities that a burst is late, runs out of samples, or loses a packet on its way to the
  // device. Probabilities that a received packet begins an overflow, or is lost on its way to the
  // host.
  double late = 0;
  double underflow = 0;
  double tx_sequence = 0;
  double overflow = 0;
  double rx_sequence = 0;
  double spared_s = 0;  // random faults begin this long after the device was opened
  std::uint64_t seed = 1;

  bool has_images = true;     // images=missing: the device cannot be opened
  bool has_reference = true;  // reference=missing: external sources do not lock

  /// Return the settings from device arguments. Throws uhd::value_error, which names the argument.
  static Settings parse(const uhd::device_addr_t& arguments);
};

}  // namespace nagi::uhd_double
