/* SPDX-License-Identifier: Apache-2.0 */
#include "settings.hpp"

#include <charconv>
#include <cmath>
#include <sstream>
#include <uhd/exception.hpp>

namespace nagi::uhd_double {

namespace {

/// Return the argument `key`, or `without` if it is missing. Throws uhd::value_error if the value
/// is not a number from `least` to `most`.
double number(const uhd::device_addr_t& arguments, const std::string& key, double without,
              double least, double most) {
  if (!arguments.has_key(key)) return without;
  const std::string& text = arguments.get(key);
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size() || !(value >= least) ||
      !(value <= most)) {
    std::ostringstream message;
    message << device_type << ": " << key << "=" << text << ": write a number from " << least
            << " to " << most;
    throw uhd::value_error(message.str());
  }
  return value;
}

bool is_there(const uhd::device_addr_t& arguments, const std::string& key) {
  const std::string text = arguments.get(key, "present");
  if (text != "present" && text != "missing") {
    throw uhd::value_error(std::string(device_type) + ": " + key + "=" + text +
                           ": write present or missing");
  }
  return text == "present";
}

std::vector<std::string> cables(const uhd::device_addr_t& arguments, const std::string& key,
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
  const auto probability = [&](const char* key) { return number(arguments, key, 0, 0, 1); };
  Settings found;
  found.serial = arguments.get("serial", found.serial);
  found.channels = static_cast<std::size_t>(number(arguments, "channels", 1, 1, 4));
  found.tx_cables = cables(arguments, "tx_cable", found);
  found.rx_cables = cables(arguments, "rx_cable", found);
  found.attenuation_db = number(arguments, "attenuation", found.attenuation_db, 0, 200);
  found.noise_figure_db = number(arguments, "noise_figure", found.noise_figure_db, 0, 60);
  found.master_clock_hz =
      number(arguments, "master_clock_rate", found.master_clock_hz, 5e6, 61.44e6);
  found.buffer_s = number(arguments, "buffer", found.buffer_s, 0.01, 60);
  found.offset_ppm = number(arguments, "offset_ppm", 0, -100, 100);
  found.drift_ppm_s = number(arguments, "drift_ppm_s", 0, -1, 1);
  found.phase_noise_hz = number(arguments, "phase_noise", 0, 0, 1e4);
  found.tx_dc = number(arguments, "tx_dc", 0, -0.5, 0.5);
  found.rx_dc = number(arguments, "rx_dc", 0, -0.5, 0.5);
  found.iq_gain_db = number(arguments, "iq_gain", 0, -6, 6);
  found.iq_phase_deg = number(arguments, "iq_phase", 0, -45, 45);
  found.bits = static_cast<unsigned>(number(arguments, "bits", 16, 4, 16));
  found.late = probability("late");
  found.underflow = probability("underflow");
  found.tx_sequence = probability("tx_sequence");
  found.overflow = probability("overflow");
  found.rx_sequence = probability("rx_sequence");
  found.spared_s = number(arguments, "spared", 0, 0, 3600);
  found.seed = static_cast<std::uint64_t>(number(arguments, "seed", 1, 0, 9e15));
  found.has_images = is_there(arguments, "images");
  found.has_reference = is_there(arguments, "reference");
  return found;
}

}  // namespace nagi::uhd_double
