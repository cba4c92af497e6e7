/* SPDX-License-Identifier: Apache-2.0 */
//
// A device of UHD that is opened, checked and tuned. Every setting is read back: if a device rounds
// a rate or a frequency to another value, an error is thrown.
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
  std::string subdev;        // for transmit and receive; empty: the device's default
  std::string clock_source;  // empty: the device's own
  std::string time_source;
};

/// The settings of a device's channel for one end of a link.
struct FrontEnd {
  std::size_t channel = 0;
  double frequency_hz = 0;
  double lo_offset_hz = 0;
  double gain_db = 0;
  std::string antenna;  // empty: the device's own
};

class Usrp {
 public:
  /// Open the device. Throws UsrpError if the device cannot be opened or lacks what `settings`
  /// request.
  explicit Usrp(const UsrpSettings& settings);

  /// Return a text such as "B210, serial 30A1B2C, firmware 8.0, FPGA 16.0".
  [[nodiscard]] std::string description() const;
  [[nodiscard]] std::string name() const { return name_; }
  [[nodiscard]] std::string firmware() const;

  /// Set the sampling rate of all selected transmit and receive channels. Throws UsrpError if the
  /// device rounds the rate to another value.
  void set_rate(double rate_hz);
  /// Tune an output or an input. Return the gain, in dB, that the device applies. The device rounds
  /// the requested gain to a step. Both functions throw UsrpError if the device cannot apply a
  /// setting.
  double tune_output(const FrontEnd& end);
  double tune_input(const FrontEnd& end);
  /// Set the device's time to 0 at the next pulse per second. Other devices with the same reference
  /// can begin at the same pulse. The function returns at once; the pulse arrives within one
  /// second.
  void set_time_at_pulse();
  [[nodiscard]] bool has_reference() const;

  [[nodiscard]] uhd::usrp::multi_usrp& device() { return *device_; }
  [[nodiscard]] double rate_hz() const { return rate_hz_; }
  /// Return a streamer of one channel. Samples are complex floats on the host, and 16 bits each for
  /// I and Q on the wire.
  uhd::tx_streamer::sptr output_stream(std::size_t channel);
  uhd::rx_streamer::sptr input_stream(std::size_t channel, std::size_t packet_samples);

  /// Return CLOCK_MONOTONIC in ns and the device's time at the same instant. Both clocks are read
  /// several times, and the closest pair of readings is used.
  [[nodiscard]] std::pair<std::int64_t, uhd::time_spec_t> now() const;

 private:
  void choose_source(const UsrpSettings& settings);

  uhd::usrp::multi_usrp::sptr device_;
  std::string name_;
  std::string clock_source_;
  double rate_hz_ = 0;
};

/// Return the addresses of the devices that UHD finds for `arguments`, one per device.
std::vector<std::string> find_usrps(const std::string& arguments);

/// Return the directory of firmware and FPGA images. Throws UsrpError if there is none.
std::string images_directory();

}  // namespace gr::nagi
