/* SPDX-License-Identifier: Apache-2.0 */
#include "settings.hpp"

#include <charconv>
#include <cmath>
#include <sstream>
#include <uhd/exception.hpp>

namespace nagi::uhd_double {

namespace {

/// Return the argument `key`, or `default_value` if it is missing. Throws uhd::value_error if the
/// value is not a number from `minimum` to `maximum`.
double parse_number(const uhd::device_addr_t& arguments, const std::string& key,
                    double default_value, double minimum, double maximum) {
  if (!arguments.has_key(key)) return default_value;
  const std::string& text = arguments.get(key);
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size() || !(value >= minimum) ||
      !(value <= maximum)) {
    std::ostringstream message;
    message << device_type << ": " << key << "=" << text << ": write a number from " << minimum
            << " to " << maximum;
    throw uhd::value_error(message.str());
  }
  return value;
}

bool parse_presence(const uhd::device_addr_t& arguments, const std::string& key) {
  const std::string text = arguments.get(key, "present");
  if (text != "present" && text != "missing") {
    throw uhd::value_error(std::string(device_type) + ": " + key + "=" + text +
                           ": write present or missing");
  }
  return text == "present";
}

std::vector<std::string> parse_cables(const uhd::device_addr_t& arguments, const std::string& key,
                                      const Settings& settings) {
  std::vector<std::string> names;
  if (!arguments.has_key(key)) {
    for (std::size_t channel = 0; channel < settings.channels; ++channel) {
      names.push_back(settings.serial + "/" + std::to_string(channel));
    }
    return names;
  }
  std::istringstream items(arguments.get(key));
  for (std::string item; std::getline(items, item, '|');) names.push_back(item);
  if (names.size() != settings.channels) {
    throw uhd::value_error(std::string(device_type) + ": " + key + "=" + arguments.get(key) +
                           ": name one cable for each of " + std::to_string(settings.channels) +
                           " channels, with | between them");
  }
  return names;
}

}  // namespace

Settings Settings::parse(const uhd::device_addr_t& arguments) {
  const auto probability = [&](const char* key) { return parse_number(arguments, key, 0, 0, 1); };
  Settings settings;
  settings.serial = arguments.get("serial", settings.serial);
  settings.channels = static_cast<std::size_t>(parse_number(arguments, "channels", 1, 1, 4));
  settings.tx_cables = parse_cables(arguments, "tx_cable", settings);
  settings.rx_cables = parse_cables(arguments, "rx_cable", settings);
  settings.attenuation_db = parse_number(arguments, "attenuation", settings.attenuation_db, 0, 200);
  settings.noise_figure_db =
      parse_number(arguments, "noise_figure", settings.noise_figure_db, 0, 60);
  settings.master_clock_hz =
      parse_number(arguments, "master_clock_rate", settings.master_clock_hz, 5e6, 61.44e6);
  settings.buffer_s = parse_number(arguments, "buffer", settings.buffer_s, 0.01, 60);
  settings.offset_ppm = parse_number(arguments, "offset_ppm", 0, -100, 100);
  settings.drift_ppm_s = parse_number(arguments, "drift_ppm_s", 0, -1, 1);
  settings.phase_noise_hz = parse_number(arguments, "phase_noise", 0, 0, 1e4);
  settings.tx_dc = parse_number(arguments, "tx_dc", 0, -0.5, 0.5);
  settings.rx_dc = parse_number(arguments, "rx_dc", 0, -0.5, 0.5);
  settings.iq_gain_db = parse_number(arguments, "iq_gain", 0, -6, 6);
  settings.iq_phase_deg = parse_number(arguments, "iq_phase", 0, -45, 45);
  settings.bits = static_cast<unsigned>(parse_number(arguments, "bits", 16, 4, 16));
  settings.late = probability("late");
  settings.underflow = probability("underflow");
  settings.tx_sequence = probability("tx_sequence");
  settings.overflow = probability("overflow");
  settings.rx_sequence = probability("rx_sequence");
  settings.spared_s = parse_number(arguments, "spared", 0, 0, 3600);
  settings.seed = static_cast<std::uint64_t>(parse_number(arguments, "seed", 1, 0, 9e15));
  settings.has_images = parse_presence(arguments, "images");
  settings.has_reference = parse_presence(arguments, "reference");
  return settings;
}

}  // namespace nagi::uhd_double
