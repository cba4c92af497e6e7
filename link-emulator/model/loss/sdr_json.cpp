// SPDX-License-Identifier: Apache-2.0
#include "model/loss/sdr_json.hpp"

#include <array>
#include <utility>

namespace nagi::model {

using nlohmann::json;

namespace {

constexpr std::array<std::pair<FadingKind, std::string_view>, 2> fading_kinds = {
    {{FadingKind::rayleigh, "rayleigh"}, {FadingKind::rician, "rician"}}};

std::vector<double> read_numbers(const ObjectReader& reader, const std::string& key,
                                 Bound<double> bound) {
  const json& list = reader.array(key);
  std::vector<double> numbers;
  for (std::size_t i = 0; i < list.size(); ++i) {
    numbers.push_back(bounded(list[i], reader.at(key) / i, bound));
  }
  return numbers;
}

LossCurve read_curve(ObjectReader reader) {
  reader.only({"packet_bytes", "snr_db", "per"});
  LossCurve curve{reader.whole("packet_bytes", bounds::packet_bytes),
                  read_numbers(reader, "snr_db", bounds::snr_db),
                  read_numbers(reader, "per", bounds::probability)};
  if (curve.snr_db.size() < 2) {
    throw ConfigError(reader.at("snr_db"), "fewer than two SNRs", "list at least two");
  }
  if (curve.per.size() != curve.snr_db.size()) {
    throw ConfigError(reader.at("per"), "its length differs from that of \"snr_db\"",
                      "list one packet error rate for each SNR");
  }
  for (std::size_t i = 1; i < curve.snr_db.size(); ++i) {
    if (curve.snr_db[i] <= curve.snr_db[i - 1]) {
      throw ConfigError(reader.at("snr_db") / i, "not greater than the previous SNR",
                        "sort the SNRs");
    }
    if (curve.per[i] > curve.per[i - 1]) {
      throw ConfigError(reader.at("per") / i, "greater than the rate at the previous SNR",
                        "give rates that do not increase with the SNR");
    }
  }
  return curve;
}

}  // namespace

FadingConfig read_fading(ObjectReader reader) {
  const std::string kind = reader.text("kind");
  for (const auto& [candidate, name] : fading_kinds) {
    if (kind != name) continue;
    FadingConfig fading{candidate, 0, 0};
    if (candidate == FadingKind::rician) {
      reader.only({"kind", "doppler_hz", "k_factor_db"});
      fading.k_factor_db = reader.number("k_factor_db", bounds::snr_db);
    } else {
      reader.only({"kind", "doppler_hz"});
    }
    fading.doppler_hz = reader.number("doppler_hz", bounds::doppler_hz);
    return fading;
  }
  throw ConfigError(reader.at("kind"), "unknown fading " + shown(reader.any("kind")),
                    R"("rayleigh" or "rician"; remove "fading" for a channel without it)");
}

json to_json(const FadingConfig& config) {
  json out = {{"doppler_hz", config.doppler_hz}};
  for (const auto& [candidate, name] : fading_kinds) {
    if (config.kind == candidate) out["kind"] = name;
  }
  if (config.kind == FadingKind::rician) out["k_factor_db"] = config.k_factor_db;
  return out;
}

ShadowingConfig read_shadowing(ObjectReader reader) {
  reader.only({"deviation_db", "decorrelation_ns"});
  return {reader.number("deviation_db", bounds::shadowing_db),
          static_cast<double>(reader.whole("decorrelation_ns", bounds::decorrelation_ns)) * 1e-9};
}

json to_json(const ShadowingConfig& config) {
  return {{"deviation_db", config.deviation_db},
          {"decorrelation_ns", static_cast<std::int64_t>(config.decorrelation_s * 1e9 + 0.5)}};
}

std::vector<LossCurve> read_curves(const json& list, const json::json_pointer& where) {
  std::vector<LossCurve> curves;
  for (std::size_t i = 0; i < list.size(); ++i) {
    curves.push_back(read_curve({list[i], where / i}));
    if (i > 0 && curves[i].packet_bytes <= curves[i - 1].packet_bytes) {
      throw ConfigError(where / i / "packet_bytes", "not greater than the previous length",
                        "sort the curves by their lengths");
    }
  }
  if (curves.empty()) throw ConfigError(where, "no curves", "list one for each length");
  return curves;
}

json to_json(const std::vector<LossCurve>& curves) {
  json out = json::array();
  for (const LossCurve& curve : curves) {
    out.push_back(
        {{"packet_bytes", curve.packet_bytes}, {"snr_db", curve.snr_db}, {"per", curve.per}});
  }
  return out;
}

}  // namespace nagi::model
