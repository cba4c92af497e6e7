// SPDX-License-Identifier: Apache-2.0
//
// The link model's configuration as JSON, read strictly: an unknown key, a missing one, a wrong
// type or a value outside its bounds (bounds.json) is an error that names the key and says what
// would be right.
#pragma once

#include <cstdint>
#include <limits>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "model/bounds.hpp"
#include "model/link.hpp"

namespace nagi::model {

/// What is wrong with a configuration, where (a JSON pointer), and what would be right.
class ConfigError : public std::runtime_error {
 public:
  ConfigError(nlohmann::json::json_pointer where, const std::string& what_is_wrong,
              std::string cure)
      : std::runtime_error(what_is_wrong), where_(std::move(where)), cure_(std::move(cure)) {}
  [[nodiscard]] const nlohmann::json::json_pointer& where() const { return where_; }
  [[nodiscard]] const std::string& cure() const { return cure_; }

 private:
  nlohmann::json::json_pointer where_;
  std::string cure_;
};

/// One JSON object being read. Whoever reads it says by only() which keys it may have, before a key
/// is found missing that was merely misspelt.
class ObjectReader {
 public:
  /// Throws if `value` is no object.
  ObjectReader(const nlohmann::json& value, nlohmann::json::json_pointer where);

  /// Throws if there is a key that is not one of `known`.
  void only(const std::vector<std::string_view>& known);

  [[nodiscard]] bool has(const std::string& key) const { return object_.contains(key); }
  [[nodiscard]] const nlohmann::json::json_pointer& here() const { return where_; }
  [[nodiscard]] nlohmann::json::json_pointer at(const std::string& key) const {
    return where_ / key;
  }

  // The value of a key. They throw if it is missing or not what is asked for.
  [[nodiscard]] const nlohmann::json& any(const std::string& key) const;
  [[nodiscard]] ObjectReader object(const std::string& key) const { return {any(key), at(key)}; }
  [[nodiscard]] const nlohmann::json& array(const std::string& key) const;
  /// Not empty, and without control characters.
  [[nodiscard]] std::string text(const std::string& key) const;
  [[nodiscard]] std::uint64_t whole(
      const std::string& key, std::uint64_t least = 0,
      std::uint64_t most = std::numeric_limits<std::int64_t>::max()) const;
  [[nodiscard]] std::uint64_t whole(const std::string& key, Bound<std::uint64_t> bound) const {
    return whole(key, bound.least, bound.most);
  }
  [[nodiscard]] double number(const std::string& key, Bound<double> bound) const;
  [[nodiscard]] bool flag(const std::string& key) const;

 private:
  const nlohmann::json& object_;
  nlohmann::json::json_pointer where_;
  bool keys_are_known_ = false;  // only() has found no other
};

/// A value as messages show it: on one line, and not long.
std::string shown(const nlohmann::json& value);

/// Reads one direction's configuration. All keys may be missing: no rate limit, no delay, no queue
/// limit, no loss. Instants of traces count from the link's epoch. What values may be, bounds.json
/// says.
///
///   "rate_bps": 10000000                     or, instead of it,
///   "rate_trace": {"steps": [[0, 10000000], [2000000000, 1000000]], "period_ns": 4000000000}, or
///                 {"opportunities_ns": [0, 1000000], "bytes": 1504, "period_ns": 1000000}
///   "overhead_bytes": 0
///   "queue": {"packets": 119}, {"bytes": 125000}, or
///            {"bdp": 1.0, "base_rtt_ns": 100000000, "packet_bytes": 1052}
///   "mark": {"threshold_packets": 20 or "threshold_bytes": 20000, "weight": 0.002}
///   "delay_ns": 5000000                      or, instead of it,
///   "delay_trace": {"steps": [[0, 5000000], [1000000000, 8000000]], "period_ns": 2000000000}
///   "jitter": {"distribution": "uniform", "half_width_ns": 1000000},
///             {"distribution": "normal", "deviation_ns": 1000000}, or
///             {"distribution": "exponential", "mean_ns": 1000000}
///   "keep_order": true                       false: jitter and delay traces may reorder
///   "loss": {"model": "none"},
///           {"model": "bernoulli", "probability": 0.01},
///           {"model": "bernoulli_bit", "bit_error_rate": 1e-6},
///           {"model": "poisson", "packet_loss_rate": 0.01, "packet_bytes": 1052},
///           {"model": "gilbert_elliott", "good_to_bad": 0.01, "bad_to_good": 0.3,
///            "loss_in_good": 0, "loss_in_bad": 1},
///           {"model": "markov", "good_sojourn_ns": 1000000000, "bad_sojourn_ns": 1000000000,
///            "loss_in_good": 0, "loss_in_bad": 0.01},
///           {"model": "trace", "lost": [3, 4, 17], "length": 100}, or {"model": "radio"},
///           each with "at": "egress" (after transmission) or "ingress" (before the queue)
///   "arq": {"retries": 3, "feedback_ns": 8000000}
DirectionConfig read_direction(ObjectReader reader);

/// The same configuration as JSON, resolved: a queue given in BDPs has become packets.
nlohmann::json to_json(const DirectionConfig& config);

/// `config` with the keys that `changes`, an object at `where`, has: each replaces the one of the
/// same name, and what cannot stand beside it; null takes one away. Throws ConfigError.
DirectionConfig changed(const DirectionConfig& config, const nlohmann::json& changes,
                        const nlohmann::json::json_pointer& where);

}  // namespace nagi::model
