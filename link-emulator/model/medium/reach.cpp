// SPDX-License-Identifier: Apache-2.0
#include "model/medium/reach.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

namespace nagi::model {

namespace {

// Signals that are weaker than noise by more than this are left out.
constexpr double negligible = 0.01;

double linear(double db) { return std::pow(10, db / 10); }

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
    if (ranges->capture_db) capture_ratio_ = linear(*ranges->capture_db);
  } else if (const auto* sinr = std::get_if<SinrReach>(&config_)) {
    capture_ratio_ = linear(sinr->capture_db);
    preamble_ratio_ = linear(sinr->preamble_db);
    noise_ = linear(sinr->noise_dbm);
  }
  for (StationIndex sender = 0; sender < positions_.size(); ++sender) list(sender);
}

Heard Reach::judge(StationIndex sender, StationIndex receiver) const {
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
    heard.power = linear(dbm);
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

void Reach::list(StationIndex sender) {
  heard_[sender].clear();
  for (StationIndex receiver = 0; receiver < positions_.size(); ++receiver) {
    if (receiver == sender) continue;
    const Heard heard = judge(sender, receiver);
    if (heard.decodes || heard.senses || heard.interferes) heard_[sender].push_back(heard);
  }
}

Heard Reach::between(StationIndex sender, StationIndex receiver) const {
  const auto& all = heard_[sender];
  const auto found = std::ranges::lower_bound(all, receiver, {}, &Heard::by);
  return found != all.end() && found->by == receiver ? *found : Heard{receiver};
}

void Reach::move(StationIndex station, Position to) {
  positions_[station] = to;
  for (StationIndex sender = 0; sender < positions_.size(); ++sender) {
    if (sender == station) {
      list(sender);
      continue;
    }
    auto& all = heard_[sender];
    const auto place = std::ranges::lower_bound(all, station, {}, &Heard::by);
    const bool was_heard = place != all.end() && place->by == station;
    const Heard heard = judge(sender, station);
    const bool is_heard = heard.decodes || heard.senses || heard.interferes;
    if (was_heard && is_heard) {
      *place = heard;
    } else if (was_heard) {
      all.erase(place);
    } else if (is_heard) {
      all.insert(place, heard);
    }
  }
}

}  // namespace nagi::model
