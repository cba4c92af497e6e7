/* SPDX-License-Identifier: Apache-2.0 */
//
// What device arguments say of a double: `type=nagi_double,serial=a,attenuation=40`. Lists have a
// bar between their items: `tx_cable=x|y`.
#pragma once

#include <cstdint>
#include <string>
#include <uhd/types/device_addr.hpp>
#include <vector>

namespace nagi::uhd_double {

constexpr const char* device_type = "nagi_double";

struct Settings {
  std::string serial = "double";
  std::size_t channels = 1;  // each way
  // What each channel sends to and receives from. A name is one cable of this process; by default
  // each channel's output leads to its own input.
  std::vector<std::string> tx_cables;
  std::vector<std::string> rx_cables;
  double attenuation_db = 60;  // of the cables to the inputs
  double noise_figure_db = 6;
  double master_clock_hz = 32e6;

  double buffer_s = 0.1;  // what it holds for the host each way; then it overflows, or blocks

  // The device's oscillator: ticks and carriers alike.
  double offset_ppm = 0;
  double drift_ppm_s = 0;
  double phase_noise_hz = 0;  // linewidth

  // Inputs and outputs: of full scale; dB; degrees.
  double tx_dc = 0;
  double rx_dc = 0;
  double iq_gain_db = 0;
  double iq_phase_deg = 0;
  unsigned bits = 16;  // of the converters, 4 to 16

  // Probabilities: of a burst to be late, to run out of samples, to lose a packet on its way to the
  // device; of a received packet to begin an overflow, to be lost on its way to the host.
  double late = 0;
  double underflow = 0;
  double tx_sequence = 0;
  double overflow = 0;
  double rx_sequence = 0;
  double spared_s = 0;  // since the device was opened: so long nothing befalls
  std::uint64_t seed = 1;

  bool has_images = true;     // images=missing: it cannot be opened
  bool has_reference = true;  // reference=missing: external sources do not lock

  /// Throws uhd::value_error, naming the argument.
  static Settings parse(const uhd::device_addr_t& arguments);
};

}  // namespace nagi::uhd_double
