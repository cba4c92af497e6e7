// SPDX-License-Identifier: Apache-2.0
//
// The fields of the loss model `sdr` in JSON that are not plain numbers; see direction_json.hpp.
#pragma once

#include <string>
#include <vector>

#include "model/described_json.hpp"
#include "model/loss/sdr.hpp"

namespace nagi::model {

FadingConfig read_fading(ObjectReader reader);
nlohmann::json to_json(const FadingConfig& config);
ShadowingConfig read_shadowing(ObjectReader reader);
nlohmann::json to_json(const ShadowingConfig& config);
std::vector<LossCurve> read_curves(const nlohmann::json& list,
                                   const nlohmann::json::json_pointer& where);
nlohmann::json to_json(const std::vector<LossCurve>& curves);

template <class Config>
void add_keys(const SnrField<Config>& /*field*/, std::vector<std::string_view>& keys) {
  keys.insert(keys.end(), {"snr_db", "snr_trace", "fading", "shadowing"});
}
template <class Config>
void read(const SnrField<Config>& field, const ObjectReader& reader, Config& config) {
  SnrConfig& snr = config.*field.member;
  if (reader.has("snr_trace")) {
    if (reader.has("snr_db")) {
      throw ConfigError(reader.at("snr_db"), "given together with \"snr_trace\"",
                        "give one of the two");
    }
    ObjectReader trace = reader.object("snr_trace");
    trace.only({"steps", "period_ns"});
    snr.snr_db = read_steps<double>(trace, bounds::snr_db);
  } else {
    snr.snr_db = {{{Duration{0}, reader.number("snr_db", bounds::snr_db)}}, Duration{1}};
  }
  if (reader.has("fading")) snr.fading = read_fading(reader.object("fading"));
  if (reader.has("shadowing")) snr.shadowing = read_shadowing(reader.object("shadowing"));
}
template <class Config>
void write(const SnrField<Config>& field, const Config& config, nlohmann::json& out) {
  const SnrConfig& snr = config.*field.member;
  if (snr.snr_db.steps.size() == 1) {
    out["snr_db"] = snr.snr_db.steps.front().value;
  } else {
    out["snr_trace"] = steps_to_json(snr.snr_db);
  }
  if (snr.fading.kind != FadingKind::none) out["fading"] = to_json(snr.fading);
  if (snr.shadowing) out["shadowing"] = to_json(*snr.shadowing);
}

template <class Config>
void add_keys(const CurvesField<Config>& /*field*/, std::vector<std::string_view>& keys) {
  keys.push_back("curves");
}
template <class Config>
void read(const CurvesField<Config>& field, const ObjectReader& reader, Config& config) {
  config.*field.member = read_curves(reader.array("curves"), reader.at("curves"));
}
template <class Config>
void write(const CurvesField<Config>& field, const Config& config, nlohmann::json& out) {
  out["curves"] = to_json(config.*field.member);
}

}  // namespace nagi::model
