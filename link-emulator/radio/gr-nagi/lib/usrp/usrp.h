/* SPDX-License-Identifier: Apache-2.0 */
//
// A device of UHD: opened, checked and tuned. Every setting is read back: a device that rounds a
// rate or a frequency to another one is an error, not a surprise.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <uhd/usrp/multi_usrp.hpp>
#include <utility>

#include "usrp_error.h"

namespace gr::nagi {

struct UsrpSettings {
  std::string device;        // UHD's device arguments
  std::string subdev;        // of both ways; empty: the device's own
  std::string clock_source;  // empty: the device's own
  std::string time_source;
};

/// What one end of a link has of a device.
struct FrontEnd {
  std::size_t channel = 0;
  double frequency_hz = 0;
  double lo_offset_hz = 0;
  double gain_db = 0;
  std::string antenna;  // empty: the device's own
};

class Usrp {
 public:
  /// Opens it. Throws UsrpError.
  explicit Usrp(const UsrpSettings& settings);

  /// "B210, serial 30A1B2C, firmware 8.0, FPGA 16.0"
  [[nodiscard]] std::string description() const;
  [[nodiscard]] std::string name() const { return name_; }
  [[nodiscard]] std::string firmware() const;

  /// Sets the rate of all channels that have been given, both ways. Throws UsrpError.
  void set_rate(double rate_hz);
  /// Return the gain in dB that the device has then: in its steps, near the one asked for.
  double tune_output(const FrontEnd& end);
  double tune_input(const FrontEnd& end);
  /// Has its time begin with a pulse per second, as that of others with the same reference. Returns
  /// at once; the pulse comes within a second.
  void set_time_at_pulse();
  [[nodiscard]] bool has_reference() const;

  [[nodiscard]] uhd::usrp::multi_usrp& device() { return *device_; }
  [[nodiscard]] double rate_hz() const { return rate_hz_; }
  /// A streamer of one channel, in complex floats; 16 bits each on the wire.
  uhd::tx_streamer::sptr output_stream(std::size_t channel);
  uhd::rx_streamer::sptr input_stream(std::size_t channel, std::size_t packet_samples);

  /// CLOCK_MONOTONIC in ns and the device's time in seconds, at one instant: the closest of some
  /// pairs of readings.
  [[nodiscard]] std::pair<std::int64_t, uhd::time_spec_t> now() const;

 private:
  void choose_source(const UsrpSettings& settings);

  uhd::usrp::multi_usrp::sptr device_;
  std::string name_;
  std::string clock_source_;
  double rate_hz_ = 0;
};

/// Device addresses that UHD finds for these arguments, one a line.
std::vector<std::string> find_usrps(const std::string& arguments);

/// The directory of firmware and FPGA images. Throws UsrpError if there is none.
std::string images_directory();

}  // namespace gr::nagi
