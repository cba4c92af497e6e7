// SPDX-License-Identifier: Apache-2.0
#include "model/medium/medium_json.hpp"

#include <algorithm>
#include <bit>
#include <string>

#include "model/direction_json.hpp"

namespace nagi::model {

using nlohmann::json;

namespace {

constexpr std::size_t max_stations = 250;  // the number of a pair of stations has 16 bits

const PhyTable& read_phy_table(const ObjectReader& reader) {
  const std::string name = reader.text("phy");
  const auto table = std::ranges::find(phy_tables, name, &PhyTable::name);
  if (table != phy_tables.end()) return *table;
  std::string names;
  for (const PhyTable& phy : phy_tables) {
    names += (names.empty() ? "" : ", ") + std::string(phy.name);
  }
  throw ConfigError(reader.at("phy"), "unknown PHY " + shown(reader.any("phy")), names);
}

Bitrate read_rate(const ObjectReader& reader, const std::string& key, const PhyTable& table) {
  const std::uint64_t bps = reader.whole(key);
  if (bps != 0 && std::ranges::find(table.rates_bps, bps) != table.rates_bps.end()) return {bps};
  std::string rates;
  for (const std::uint64_t rate : table.rates_bps) {
    if (rate != 0) rates += (rates.empty() ? "" : ", ") + std::to_string(rate);
  }
  throw ConfigError(reader.at(key),
                    std::string(table.name) + " has no rate of " + std::to_string(bps) + " bit/s",
                    "give one of " + rates);
}

PhyConfig read_phy(const ObjectReader& reader) {
  PhyConfig phy;
  phy.table = &read_phy_table(reader);
  if (reader.has("preamble")) {
    const std::string preamble = reader.text("preamble");
    if (preamble != "long" && preamble != "short") {
      throw ConfigError(reader.at("preamble"), "unknown preamble", R"("long" or "short")");
    }
    phy.short_preamble = preamble == "short";
    if (phy.short_preamble && phy.table->short_preamble_ns == 0) {
      throw ConfigError(reader.at("preamble"),
                        std::string(phy.table->name) + " has no short preamble", "remove it");
    }
  }
  phy.data_rate = read_rate(reader, "data_rate_bps", *phy.table);
  phy.basic_rate = read_rate(reader, "basic_rate_bps", *phy.table);
  if (phy.basic_rate > phy.data_rate) {
    throw ConfigError(reader.at("basic_rate_bps"), "above the data rate",
                      "give at most " + std::to_string(phy.data_rate.bits_per_second));
  }
  if (phy.short_preamble && phy.basic_rate.bits_per_second == phy.table->rates_bps.front()) {
    throw ConfigError(reader.at("basic_rate_bps"), "too slow for a short preamble",
                      "give 2000000 or more, or the long preamble");
  }
  return phy;
}

std::uint32_t read_window(const ObjectReader& reader, const std::string& key,
                          std::uint32_t default_window) {
  if (!reader.has(key)) return default_window;
  const std::uint64_t window = reader.whole(key, bounds::contention_window);
  if (!std::has_single_bit(window + 1)) {
    throw ConfigError(reader.at(key), std::to_string(window) + " is no contention window",
                      "give 2^n - 1, such as 31");
  }
  return static_cast<std::uint32_t>(window);
}

std::vector<std::vector<bool>> read_matrix(const ObjectReader& reader, const std::string& key,
                                           std::size_t stations) {
  const json& rows = reader.array(key);
  std::vector<std::vector<bool>> matrix;
  const auto refuse = [&] {
    const std::string n = std::to_string(stations);
    throw ConfigError(reader.at(key), "not a matrix of the stations",
                      "give " + n + " rows of " + n + " times true or false");
  };
  if (rows.size() != stations) refuse();
  for (const json& row : rows) {
    if (!row.is_array() || row.size() != stations) refuse();
    std::vector<bool>& next = matrix.emplace_back();
    for (const json& cell : row) {
      if (!cell.is_boolean()) refuse();
      next.push_back(cell.get<bool>());
    }
  }
  return matrix;
}

ReachConfig read_reach(ObjectReader reader, std::size_t stations) {
  const std::string by = reader.text("by");
  if (by == "ranges") {
    reader.only({"by", "transmission_m", "carrier_sense_m", "interference_m", "capture_db"});
    RangesReach ranges;
    ranges.transmission = reader.number("transmission_m", bounds::range_m);
    ranges.carrier_sense = reader.number("carrier_sense_m", bounds::range_m);
    ranges.interference = reader.number("interference_m", bounds::range_m);
    if (reader.has("capture_db")) ranges.capture_db = reader.number("capture_db", bounds::ratio_db);
    if (ranges.carrier_sense < ranges.transmission) {
      throw ConfigError(reader.at("carrier_sense_m"),
                        "frames are decoded farther away than they are sensed",
                        "give at least " + shown(reader.any("transmission_m")));
    }
    return ranges;
  }
  if (by == "sinr") {
    reader.only({"by", "tx_power_dbm", "path_loss_exponent", "reference_loss_db", "noise_dbm",
                 "sensitivity_dbm", "carrier_sense_dbm", "capture_db", "preamble_db"});
    SinrReach sinr;
    sinr.tx_power_dbm = reader.number("tx_power_dbm", bounds::power_dbm);
    sinr.path_loss_exponent = reader.number("path_loss_exponent", bounds::path_loss_exponent);
    sinr.reference_loss_db = reader.number("reference_loss_db", bounds::ratio_db);
    sinr.noise_dbm = reader.number("noise_dbm", bounds::power_dbm);
    sinr.sensitivity_dbm = reader.number("sensitivity_dbm", bounds::power_dbm);
    sinr.carrier_sense_dbm = reader.number("carrier_sense_dbm", bounds::power_dbm);
    sinr.capture_db = reader.number("capture_db", bounds::ratio_db);
    sinr.preamble_db = reader.number("preamble_db", bounds::ratio_db);
    if (sinr.preamble_db > sinr.capture_db) {
      throw ConfigError(reader.at("preamble_db"), "more than capture_db",
                        "give at most " + shown(reader.any("capture_db")) +
                            ", because a frame is received only if its preamble is found");
    }
    if (sinr.carrier_sense_dbm > sinr.sensitivity_dbm) {
      throw ConfigError(reader.at("carrier_sense_dbm"),
                        "frames are decoded at less power than they are sensed",
                        "give at most " + shown(reader.any("sensitivity_dbm")));
    }
    return sinr;
  }
  if (by != "matrix") {
    throw ConfigError(reader.at("by"), "unknown reach " + shown(reader.any("by")),
                      R"("ranges", "sinr" or "matrix")");
  }
  reader.only({"by", "decodes", "senses", "interferes"});
  return MatrixReach{read_matrix(reader, "decodes", stations),
                     read_matrix(reader, "senses", stations),
                     read_matrix(reader, "interferes", stations)};
}

json to_json(const ReachConfig& config) {
  if (const auto* ranges = std::get_if<RangesReach>(&config)) {
    json out = {{"by", "ranges"},
                {"transmission_m", ranges->transmission},
                {"carrier_sense_m", ranges->carrier_sense},
                {"interference_m", ranges->interference}};
    if (ranges->capture_db) out["capture_db"] = *ranges->capture_db;
    return out;
  }
  if (const auto* sinr = std::get_if<SinrReach>(&config)) {
    return {{"by", "sinr"},
            {"tx_power_dbm", sinr->tx_power_dbm},
            {"path_loss_exponent", sinr->path_loss_exponent},
            {"reference_loss_db", sinr->reference_loss_db},
            {"noise_dbm", sinr->noise_dbm},
            {"sensitivity_dbm", sinr->sensitivity_dbm},
            {"carrier_sense_dbm", sinr->carrier_sense_dbm},
            {"capture_db", sinr->capture_db},
            {"preamble_db", sinr->preamble_db}};
  }
  const auto& matrix = std::get<MatrixReach>(config);
  return {{"by", "matrix"},
          {"decodes", matrix.decodes},
          {"senses", matrix.senses},
          {"interferes", matrix.interferes}};
}

double coordinate(const json& value, const json::json_pointer& where) {
  return bounded(value, where, bounds::position_m);
}

StationConfig read_station(const ObjectReader& reader) {
  StationConfig station;
  if (reader.has("position_m")) {
    const json& position = reader.array("position_m");
    const auto where = reader.at("position_m");
    if (position.size() != 2) throw ConfigError(where, "not a position", "write [x, y], in m");
    station.position = {coordinate(position[0], where / 0), coordinate(position[1], where / 1)};
  }
  if (!reader.has("trace")) return station;
  const json& trace = reader.array("trace");
  std::optional<std::uint64_t> previous = 0;
  for (std::size_t i = 0; i < trace.size(); ++i) {
    const auto where = reader.at("trace") / i;
    if (!trace[i].is_array() || trace[i].size() != 3) {
      throw ConfigError(where, "not a move", "write [at_ns, x, y]");
    }
    previous = next_in(trace[i], 0, where, previous, 1, std::numeric_limits<std::int64_t>::max(),
                       "less than 2^63");
    station.trace.push_back(
        {Duration{static_cast<std::int64_t>(*previous)},
         {coordinate(trace[i][1], where / 1), coordinate(trace[i][2], where / 2)}});
  }
  return station;
}

json to_json(const StationConfig& station) {
  json out = {{"position_m", {station.position.x, station.position.y}}};
  for (const Move& move : station.trace) {
    out["trace"].push_back({move.at.count(), move.to.x, move.to.y});
  }
  return out;
}

}  // namespace

MediumConfig read_medium(ObjectReader reader, const std::vector<std::string_view>& medium_keys,
                         const std::vector<std::string_view>& station_keys) {
  std::vector<std::string_view> keys = {
      "phy",    "preamble", "data_rate_bps",     "basic_rate_bps",   "rts_threshold_bytes",
      "cw_min", "cw_max",   "short_retry_limit", "long_retry_limit", "queue",
      "loss",   "reach",    "resets_nav",        "eifs_after",       "stations"};
  keys.insert(keys.end(), medium_keys.begin(), medium_keys.end());
  reader.only(keys);
  MediumConfig config;
  config.phy = read_phy(reader);
  if (reader.has("rts_threshold_bytes")) {
    config.rts_threshold = Bytes{reader.whole("rts_threshold_bytes", bounds::rts_threshold_bytes)};
  }
  const auto limit = [&reader](const std::string& key, unsigned& value) {
    if (reader.has(key)) value = static_cast<unsigned>(reader.whole(key, bounds::retry_limit));
  };
  limit("short_retry_limit", config.short_retry_limit);
  limit("long_retry_limit", config.long_retry_limit);
  config.cw_min = read_window(reader, "cw_min", config.phy.table->cw_min);
  config.cw_max = read_window(reader, "cw_max", config.phy.table->cw_max);
  if (config.cw_min > config.cw_max) {
    throw ConfigError(reader.at("cw_min"), "above cw_max",
                      "give at most " + std::to_string(config.cw_max));
  }
  const RateConfig rate = config.phy.data_rate;
  if (reader.has("queue")) config.queue = read_queue(reader.object("queue"), rate);
  if (reader.has("loss")) config.loss = read_loss(reader.object("loss"), rate);
  if (std::holds_alternative<RadioLoss>(config.loss)) {
    throw ConfigError(reader.at("loss"), "loss model \"radio\" is only for links",
                      "give another loss model");
  }
  if (std::holds_alternative<SdrLoss>(config.loss)) {
    throw ConfigError(
        reader.at("loss"),
        "loss model \"sdr\" is only for links, because its table describes one channel",
        "give another loss model");
  }
  if (reader.has("resets_nav")) config.resets_nav = reader.flag("resets_nav");
  if (reader.has("eifs_after")) {
    const std::string after = reader.text("eifs_after");
    if (after != "frames" && after != "signals") {
      throw ConfigError(reader.at("eifs_after"),
                        "unknown eifs_after " + shown(reader.any("eifs_after")),
                        R"("frames" or "signals")");
    }
    config.eifs_after = after == "frames" ? EifsAfter::frames : EifsAfter::signals;
  }
  const json& stations = reader.array("stations");
  if (stations.size() < 2 || stations.size() > max_stations) {
    throw ConfigError(reader.at("stations"), std::to_string(stations.size()) + " stations",
                      "list 2 to " + std::to_string(max_stations));
  }
  for (std::size_t i = 0; i < stations.size(); ++i) {
    ObjectReader station(stations[i], reader.at("stations") / i);
    std::vector<std::string_view> allowed = {"position_m", "trace"};
    allowed.insert(allowed.end(), station_keys.begin(), station_keys.end());
    station.only(allowed);
    config.stations.push_back(read_station(station));
  }
  config.reach = read_reach(reader.object("reach"), stations.size());
  return config;
}

json to_json(const MediumConfig& config) {
  json out = {{"phy", config.phy.table->name},
              {"data_rate_bps", config.phy.data_rate.bits_per_second},
              {"basic_rate_bps", config.phy.basic_rate.bits_per_second},
              {"short_retry_limit", config.short_retry_limit},
              {"long_retry_limit", config.long_retry_limit},
              {"cw_min", config.cw_min},
              {"cw_max", config.cw_max},
              {"queue", to_json(config.queue)},
              {"loss", to_json(config.loss)},
              {"resets_nav", config.resets_nav},
              {"eifs_after", config.eifs_after == EifsAfter::frames ? "frames" : "signals"},
              {"reach", to_json(config.reach)}};
  if (config.phy.table->short_preamble_ns != 0) {
    out["preamble"] = config.phy.short_preamble ? "short" : "long";
  }
  if (config.rts_threshold) out["rts_threshold_bytes"] = config.rts_threshold->count;
  out["stations"] = json::array();
  for (const StationConfig& station : config.stations) out["stations"].push_back(to_json(station));
  return out;
}

}  // namespace nagi::model
