// SPDX-License-Identifier: Apache-2.0
#include "model/medium/reach.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

namespace nagi::model {

namespace {

// Signals weaker than this fraction of the noise are ignored.
constexpr double negligible = 0.01;

double db_to_ratio(double db) { return std::pow(10, db / 10); }

double distance_squared(const Position& one, const Position& other) {
  const double x = one.x - other.x;
  const double y = one.y - other.y;
  return x * x + y * y;
}

bool is_within(double squared, double range) { return squared <= range * range; }

}  // namespace

Reach::Reach(ReachConfig config, std::vector<Position> positions)
    : config_(std::move(config)), positions_(std::move(positions)), heard_(positions_.size()) {
  if (const auto* ranges = std::get_if<RangesReach>(&config_)) {
    if (ranges->capture_db) capture_ratio_ = db_to_ratio(*ranges->capture_db);
  } else if (const auto* sinr = std::get_if<SinrReach>(&config_)) {
    capture_ratio_ = db_to_ratio(sinr->capture_db);
    preamble_ratio_ = db_to_ratio(sinr->preamble_db);
    noise_ = db_to_ratio(sinr->noise_dbm);
  }
  for (StationIndex sender = 0; sender < positions_.size(); ++sender) update_heard(sender);
}

Heard Reach::compute_heard(StationIndex sender, StationIndex receiver) const {
  Heard heard{receiver};
  const double squared = distance_squared(positions_[sender], positions_[receiver]);
  if (const auto* ranges = std::get_if<RangesReach>(&config_)) {
    heard.decodes = is_within(squared, ranges->transmission);
    heard.senses = is_within(squared, ranges->carrier_sense);
    heard.interferes = is_within(squared, ranges->interference);
    heard.power = 1 / std::max(squared * squared, 1.0);
  } else if (const auto* sinr = std::get_if<SinrReach>(&config_)) {
    const double decades = std::log10(std::max(squared, 1.0)) / 2;
    const double dbm =
        sinr->tx_power_dbm - sinr->reference_loss_db - 10 * sinr->path_loss_exponent * decades;
    heard.power = db_to_ratio(dbm);
    heard.decodes = dbm >= sinr->sensitivity_dbm;
    heard.senses = dbm >= sinr->carrier_sense_dbm;
    heard.interferes = heard.power >= negligible * *noise_;
  } else {
    const auto& matrix = std::get<MatrixReach>(config_);
    heard.decodes = matrix.decodes[sender][receiver];
    heard.senses = heard.decodes || matrix.senses[sender][receiver];
    heard.interferes = heard.decodes || matrix.interferes[sender][receiver];
    heard.power = 1;
  }
  return heard;
}

void Reach::update_heard(StationIndex sender) {
  heard_[sender].clear();
  for (StationIndex receiver = 0; receiver < positions_.size(); ++receiver) {
    if (receiver == sender) continue;
    const Heard heard = compute_heard(sender, receiver);
    if (heard.decodes || heard.senses || heard.interferes) heard_[sender].push_back(heard);
  }
}

Heard Reach::between(StationIndex sender, StationIndex receiver) const {
  const auto& heard_stations = heard_[sender];
  const auto entry = std::ranges::lower_bound(heard_stations, receiver, {}, &Heard::receiver);
  return entry != heard_stations.end() && entry->receiver == receiver ? *entry : Heard{receiver};
}

void Reach::move(StationIndex station, Position to) {
  positions_[station] = to;
  for (StationIndex sender = 0; sender < positions_.size(); ++sender) {
    if (sender == station) {
      update_heard(sender);
      continue;
    }
    auto& heard_stations = heard_[sender];
    const auto position = std::ranges::lower_bound(heard_stations, station, {}, &Heard::receiver);
    const bool was_heard = position != heard_stations.end() && position->receiver == station;
    const Heard heard = compute_heard(sender, station);
    const bool is_heard = heard.decodes || heard.senses || heard.interferes;
    if (was_heard && is_heard) {
      *position = heard;
    } else if (was_heard) {
      heard_stations.erase(position);
    } else if (is_heard) {
      heard_stations.insert(position, heard);
    }
  }
}

}  // namespace nagi::model
