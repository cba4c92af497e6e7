/* SPDX-License-Identifier: Apache-2.0 */
#include "usrp.h"

#include <cmath>
#include <filesystem>
#include <sstream>
#include <uhd/device.hpp>
#include <uhd/exception.hpp>
#include <uhd/utils/paths.hpp>

#include "io/clock.hpp"

namespace gr::nagi {

namespace {

constexpr double rate_error = 1e-9;  // relative; a larger error means another rate
constexpr double frequency_error_hz = 1;
constexpr double gain_error_db = 0.51;
constexpr int readings = 8;  // number of readings of both clocks

std::string megahertz(double hz) {
  std::ostringstream text;
  text.precision(10);
  text << hz / 1e6 << " MHz";
  return text.str();
}

std::string list(const std::vector<std::string>& names) {
  std::string text;
  for (const std::string& name : names) text += (text.empty() ? "" : ", ") + name;
  return text.empty() ? "none" : text;
}

/// Return the error, with its stage and cure, for UHD's message on a device that it cannot open.
UsrpError make_open_error(const std::string& device, const std::string& what) {
  const auto contains = [&what](const char* words) {
    return what.find(words) != std::string::npos;
  };
  if (contains("images") || contains("image:")) {
    return {"images", "UHD does not find the images of " + device + ": " + what,
            "run `sudo uhd_images_downloader`, or name their directory in UHD_IMAGES_DIR"};
  }
  if (contains("in use") || contains("claimed") || contains("busy")) {
    return {"device", device + " is in use: " + what, "end the program that has it open"};
  }
  if (contains("No devices found")) {
    return {"device", "UHD finds no device with \"" + device + "\"",
            "see what `uhd_find_devices` prints: power, cable, network, udev rules"};
  }
  return {"device", "UHD cannot open \"" + device + "\": " + what,
          "see what `uhd_usrp_probe --args=\"" + device + "\"` prints"};
}

void check_channel(std::size_t channel, std::size_t count, const char* what) {
  if (channel < count) return;
  throw UsrpError(
      "device",
      std::string("there is no ") + what + " channel " + std::to_string(channel) +
          ": the device has " + std::to_string(count),
      "give `channel` from 0 to " + std::to_string(count - 1) + ", or another `subdev`");
}

void check_frequency(const uhd::freq_range_t& range, double requested_hz, double actual_hz) {
  if (requested_hz >= range.start() && requested_hz <= range.stop() &&
      std::abs(actual_hz - requested_hz) <= frequency_error_hz) {
    return;
  }
  throw UsrpError(
      "rate",
      "the device does not tune to " + megahertz(requested_hz) + " but " + megahertz(actual_hz),
      "give a frequency from " + megahertz(range.start()) + " to " + megahertz(range.stop()));
}

void check_gain(const uhd::gain_range_t& range, double requested_db, double actual_db) {
  if (std::abs(actual_db - requested_db) <= gain_error_db) return;
  std::ostringstream message;
  message << "a gain of " << requested_db << " dB is not in the device's range";
  std::ostringstream cure;
  cure << "give a gain from " << range.start() << " to " << range.stop() << " dB";
  throw UsrpError("rate", message.str(), cure.str());
}

void check_antenna(const std::vector<std::string>& available, const std::string& requested) {
  if (std::find(available.begin(), available.end(), requested) != available.end()) return;
  throw UsrpError("device", "the device has no antenna " + requested,
                  "there are: " + list(available));
}

uhd::tune_request_t request(const FrontEnd& end) {
  return end.lo_offset_hz != 0 ? uhd::tune_request_t(end.frequency_hz, end.lo_offset_hz)
                               : uhd::tune_request_t(end.frequency_hz);
}

}  // namespace

Usrp::Usrp(const UsrpSettings& settings) {
  try {
    device_ = uhd::usrp::multi_usrp::make(uhd::device_addr_t(settings.device));
  } catch (const std::exception& error) {
    throw make_open_error(settings.device, error.what());
  }
  try {
    if (!settings.subdev.empty()) {
      device_->set_tx_subdev_spec(settings.subdev);
      device_->set_rx_subdev_spec(settings.subdev);
    }
    const auto information = device_->get_usrp_rx_info();
    name_ = device_->get_mboard_name() + ", serial " + information.get("mboard_serial", "unknown");
    device_->get_tx_num_channels();
  } catch (const std::exception& error) {
    throw UsrpError("device", "subdev \"" + settings.subdev + "\": " + error.what(),
                    "see what `uhd_usrp_probe` lists as front ends, such as `A:A`");
  }
  choose_source(settings);
}

void Usrp::choose_source(const UsrpSettings& settings) {
  const auto choose = [](const char* key, const std::string& requested,
                         const std::vector<std::string>& available, const auto& set) {
    if (requested.empty()) return;
    if (std::find(available.begin(), available.end(), requested) == available.end()) {
      throw UsrpError("device", std::string("the device has no ") + key + " \"" + requested + "\"",
                      "there are: " + list(available));
    }
    set(requested);
  };
  choose("clock_source", settings.clock_source, device_->get_clock_sources(0),
         [this](const std::string& source) { device_->set_clock_source(source, 0); });
  choose("time_source", settings.time_source, device_->get_time_sources(0),
         [this](const std::string& source) { device_->set_time_source(source, 0); });
  clock_source_ = settings.clock_source;
  if (!clock_source_.empty() && clock_source_ != "internal" && !has_reference()) {
    throw UsrpError(
        "device",
        "the device does not lock to the reference of clock_source \"" + clock_source_ + "\"",
        "connect a reference of 10 MHz, or write `clock_source: internal`");
  }
}

bool Usrp::has_reference() const {
  const auto sensors = device_->get_mboard_sensor_names(0);
  if (std::find(sensors.begin(), sensors.end(), "ref_locked") == sensors.end()) return true;
  return device_->get_mboard_sensor("ref_locked", 0).to_bool();
}

std::string Usrp::firmware() const {
  const auto tree = device_->get_tree();
  std::string text;
  for (const auto& [path, what] :
       {std::pair{"/mboards/0/fw_version", "firmware "}, {"/mboards/0/fpga_version", "FPGA "}}) {
    if (!tree->exists(path)) continue;
    text += (text.empty() ? "" : ", ") + (what + tree->access<std::string>(path).get());
  }
  return text;
}

std::string Usrp::description() const {
  const std::string versions = firmware();
  return name_ + (versions.empty() ? "" : ", " + versions);
}

void Usrp::set_rate(double rate_hz) {
  device_->set_tx_rate(rate_hz);
  device_->set_rx_rate(rate_hz);
  for (const double actual : {device_->get_tx_rate(0), device_->get_rx_rate(0)}) {
    if (std::abs(actual - rate_hz) <= rate_error * rate_hz) continue;
    const auto range = device_->get_rx_rates(0);
    const double nearest = range.clip(rate_hz, true);
    throw UsrpError("rate",
                    "the device does not sample at " + megahertz(rate_hz) + " but at " +
                        megahertz(actual) + ": its master clock has " +
                        megahertz(device_->get_master_clock_rate(0)),
                    "give `sample_rate: " + megahertz(nearest) +
                        "`, another whole fraction of that clock, or another master_clock_rate in "
                        "the device arguments");
  }
  rate_hz_ = rate_hz;
}

double Usrp::tune_output(const FrontEnd& end) {
  check_channel(end.channel, device_->get_tx_num_channels(), "transmit");
  if (!end.antenna.empty()) {
    check_antenna(device_->get_tx_antennas(end.channel), end.antenna);
    device_->set_tx_antenna(end.antenna, end.channel);
  }
  device_->set_tx_freq(request(end), end.channel);
  check_frequency(device_->get_tx_freq_range(end.channel), end.frequency_hz,
                  device_->get_tx_freq(end.channel));
  device_->set_tx_gain(end.gain_db, end.channel);
  const double actual_db = device_->get_tx_gain(end.channel);
  check_gain(device_->get_tx_gain_range(end.channel), end.gain_db, actual_db);
  return actual_db;
}

double Usrp::tune_input(const FrontEnd& end) {
  check_channel(end.channel, device_->get_rx_num_channels(), "receive");
  if (!end.antenna.empty()) {
    check_antenna(device_->get_rx_antennas(end.channel), end.antenna);
    device_->set_rx_antenna(end.antenna, end.channel);
  }
  device_->set_rx_freq(request(end), end.channel);
  check_frequency(device_->get_rx_freq_range(end.channel), end.frequency_hz,
                  device_->get_rx_freq(end.channel));
  device_->set_rx_gain(end.gain_db, end.channel);
  const double actual_db = device_->get_rx_gain(end.channel);
  check_gain(device_->get_rx_gain_range(end.channel), end.gain_db, actual_db);
  return actual_db;
}

void Usrp::set_time_at_pulse() { device_->set_time_next_pps(uhd::time_spec_t(0.0)); }

uhd::tx_streamer::sptr Usrp::output_stream(std::size_t channel) {
  uhd::stream_args_t arguments("fc32", "sc16");
  arguments.channels = {channel};
  return device_->get_tx_stream(arguments);
}

uhd::rx_streamer::sptr Usrp::input_stream(std::size_t channel, std::size_t packet_samples) {
  uhd::stream_args_t arguments("fc32", "sc16");
  arguments.channels = {channel};
  arguments.args["spp"] = std::to_string(packet_samples);
  return device_->get_rx_stream(arguments);
}

std::pair<std::int64_t, uhd::time_spec_t> Usrp::now() const {
  std::int64_t best_ns = 0;
  std::int64_t least_ns = std::numeric_limits<std::int64_t>::max();
  uhd::time_spec_t found(0.0);
  for (int i = 0; i < readings && least_ns > 0; ++i) {
    const std::int64_t before = ::nagi::io::read_clock(CLOCK_MONOTONIC);
    const uhd::time_spec_t time = device_->get_time_now();
    const std::int64_t took = ::nagi::io::read_clock(CLOCK_MONOTONIC) - before;
    if (took >= least_ns) continue;
    least_ns = took;
    best_ns = before + took / 2;
    found = time;
  }
  return {best_ns, found};
}

std::vector<std::string> find_usrps(const std::string& arguments) {
  std::vector<std::string> found;
  for (const auto& address : uhd::device::find(uhd::device_addr_t(arguments), uhd::device::USRP)) {
    found.push_back(address.to_string());
  }
  return found;
}

std::string images_directory() {
  std::string directory;
  try {
    directory = uhd::get_images_dir("");
  } catch (const std::exception& error) {
    directory.clear();
  }
  if (directory.empty() || !std::filesystem::is_directory(directory)) {
    throw UsrpError("images", "UHD finds no directory of firmware and FPGA images",
                    "run `sudo uhd_images_downloader`, or name their directory in UHD_IMAGES_DIR");
  }
  return directory;
}

}  // namespace gr::nagi
