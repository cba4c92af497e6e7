// SPDX-License-Identifier: Apache-2.0
#include "model/loss_table.hpp"

#include <algorithm>
#include <cmath>

namespace nagi::model {

namespace {

constexpr int nodes_per_octave = 128;
constexpr double certain = 60;  // exponent of a certain loss: 1 - exp(-60) rounds to 1

double exponent_from_rate(double per) {
  return per >= 1 ? certain : std::min(certain, -std::log1p(-per));
}

/// Return E between two SNRs of a curve; `after` is the index of the higher SNR.
double interpolate(const LossCurve& curve, std::size_t after, double snr_db) {
  const double low = curve.per[after - 1];
  const double high = curve.per[after];
  const double fraction =
      (snr_db - curve.snr_db[after - 1]) / (curve.snr_db[after] - curve.snr_db[after - 1]);
  if (low >= 1 || high <= 0) return exponent_from_rate(low + fraction * (high - low));
  const double from = std::log(exponent_from_rate(low));
  const double to = std::log(exponent_from_rate(high));
  return std::exp(from + fraction * (to - from));
}

double exponent_at(const LossCurve& curve, double snr_db) {
  if (snr_db <= curve.snr_db.front()) return exponent_from_rate(curve.per.front());
  if (snr_db >= curve.snr_db.back()) return exponent_from_rate(curve.per.back());
  const auto after = std::ranges::upper_bound(curve.snr_db, snr_db) - curve.snr_db.begin();
  return interpolate(curve, static_cast<std::size_t>(after), snr_db);
}

}  // namespace

LossTable::LossTable(const std::vector<LossCurve>& curves) {
  double first_db = curves.front().snr_db.front();
  double last_db = curves.front().snr_db.back();
  for (const LossCurve& curve : curves) {
    first_db = std::min(first_db, curve.snr_db.front());
    last_db = std::max(last_db, curve.snr_db.back());
  }
  int last_exponent = 0;
  (void)std::frexp(std::pow(10.0, first_db / 10), &first_exponent_);
  (void)std::frexp(std::pow(10.0, last_db / 10), &last_exponent);
  const int nodes = (last_exponent - first_exponent_ + 1) * nodes_per_octave + 1;
  for (const LossCurve& curve : curves) {
    Row row{curve.packet_bytes, {}};
    for (int node = 0; node < nodes; ++node) {
      const double mantissa = 0.5 + 0.5 * (node % nodes_per_octave) / nodes_per_octave;
      const double snr = std::ldexp(mantissa, first_exponent_ + node / nodes_per_octave);
      double exponent = exponent_at(curve, 10 * std::log10(snr));
      if (!rows_.empty()) {
        exponent = std::max(exponent, rows_.back().exponents[static_cast<std::size_t>(node)]);
      }
      row.exponents.push_back(exponent);
    }
    rows_.push_back(std::move(row));
  }
}

double LossTable::exponent(double snr, std::uint64_t packet_bytes) const {
  const std::size_t last = rows_.front().exponents.size() - 1;
  int binary = 0;
  const double mantissa = std::frexp(snr, &binary);
  const double position =
      std::clamp((binary - first_exponent_ + 2 * (mantissa - 0.5)) * nodes_per_octave, 0.0,
                 static_cast<double>(last));
  const std::size_t node = std::min(static_cast<std::size_t>(position), last - 1);
  const double fraction = position - static_cast<double>(node);
  const auto exponent_in = [node, fraction](const Row& row) {
    const double low = row.exponents[node];
    return low + fraction * (row.exponents[node + 1] - low);
  };
  if (packet_bytes <= rows_.front().packet_bytes) return exponent_in(rows_.front());
  const Row& longest = rows_.back();
  if (packet_bytes >= longest.packet_bytes) {
    return exponent_in(longest) * static_cast<double>(packet_bytes) /
           static_cast<double>(longest.packet_bytes);
  }
  std::size_t after = 1;
  while (rows_[after].packet_bytes < packet_bytes) ++after;
  const Row& shorter = rows_[after - 1];
  const Row& longer = rows_[after];
  const double length_fraction = static_cast<double>(packet_bytes - shorter.packet_bytes) /
                                 static_cast<double>(longer.packet_bytes - shorter.packet_bytes);
  const double low = exponent_in(shorter);
  return low + length_fraction * (exponent_in(longer) - low);
}

double exp_of_minus(double x) {
  if (x > 2 * certain) return 0;
  // The result is 1 / exp(x / 1024)^1024. The terms of this series are all positive, so they do not
  // cancel each other.
  const double small = x / 1024;
  double sum = 1;
  for (int n = 9; n >= 1; --n) sum = 1 + sum * small / n;
  for (int i = 0; i < 10; ++i) sum *= sum;
  return 1 / sum;
}

}  // namespace nagi::model
