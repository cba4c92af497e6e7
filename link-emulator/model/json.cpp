// SPDX-License-Identifier: Apache-2.0
#include "model/json.hpp"

#include <cmath>
#include <utility>

namespace nagi::model {

using nlohmann::json;

namespace {

constexpr std::uint64_t most_rate = 1'000'000'000'000;          // 1 Tb/s
constexpr std::uint64_t most_delay = 3'600ULL * 1'000'000'000;  // an hour
constexpr std::uint64_t most_packet = 65'535;
constexpr std::uint64_t most_queue = 1ULL << 40;

QueueLimit read_queue(ObjectReader reader, const std::optional<Bitrate>& rate) {
  QueueLimit limit;
  if (!rate) {
    throw ConfigError(reader.here(), "a queue on a direction without a rate",
                      "give \"rate_bps\" too, or leave the queue out");
  }
  if (reader.has("packets")) {
    limit = Packets{reader.whole("packets", 1, most_queue)};
  } else if (reader.has("bytes")) {
    limit = Bytes{reader.whole("bytes", 1, most_queue)};
  } else if (reader.has("bdp")) {
    const double bdp = reader.number("bdp", 1e-6, 1e6);
    const Duration base_rtt{static_cast<std::int64_t>(reader.whole("base_rtt_ns", 1, most_delay))};
    limit = bandwidth_delay_product(static_cast<std::uint64_t>(std::llround(bdp * 1e6)), *rate,
                                    base_rtt, Bytes{reader.whole("packet_bytes", 1, most_packet)});
  } else {
    throw ConfigError(
        reader.here(), "a queue without a size",
        R"(give one of "packets", "bytes", or "bdp" with "base_rtt_ns" and "packet_bytes")");
  }
  reader.finish();
  return limit;
}

LossConfig read_loss_model(ObjectReader& reader, const std::optional<Bitrate>& rate) {
  const std::string model = reader.text("model");
  if (model == "none") return NoLossConfig{};
  if (model == "bernoulli") return BernoulliConfig{reader.number("probability", 0, 1)};
  if (model == "poisson") {
    if (!rate) {
      throw ConfigError(reader.at("model"), "Poisson loss on a direction without a rate",
                        "give \"rate_bps\" too: the process's rate follows from it");
    }
    return PoissonConfig{reader.number("packet_loss_rate", 0, std::nextafter(1.0, 0.0)),
                         Bytes{reader.whole("packet_bytes", 1, most_packet)}};
  }
  throw ConfigError(reader.at("model"), "unknown loss model \"" + model + "\"",
                    R"(one of "none", "bernoulli", "poisson")");
}

}  // namespace

ObjectReader::ObjectReader(const json& value, json::json_pointer where)
    : object_(value), where_(std::move(where)) {
  if (!object_.is_object()) {
    throw ConfigError(where_, std::string("expected an object, found ") + object_.type_name(),
                      "write {\"key\": value, ...}");
  }
}

bool ObjectReader::has(const std::string& key) {
  known_.insert(key);
  return object_.contains(key);
}

const json& ObjectReader::any(const std::string& key) {
  known_.insert(key);
  const auto found = object_.find(key);
  if (found == object_.end()) {
    throw ConfigError(where_, "missing key \"" + key + "\"", "add \"" + key + "\"");
  }
  return *found;
}

const json& ObjectReader::array(const std::string& key) {
  const json& value = any(key);
  if (!value.is_array()) {
    throw ConfigError(at(key), std::string("expected a list, found ") + value.type_name(),
                      "write [...]");
  }
  return value;
}

std::string ObjectReader::text(const std::string& key) {
  const json& value = any(key);
  if (!value.is_string() || value.get_ref<const std::string&>().empty()) {
    throw ConfigError(at(key), std::string("expected text, found ") + value.dump(),
                      "write a text in quotes that is not empty");
  }
  return value.get<std::string>();
}

std::uint64_t ObjectReader::whole(const std::string& key, std::uint64_t least, std::uint64_t most) {
  const json& value = any(key);
  if (!value.is_number_unsigned() || value.get<std::uint64_t>() < least ||
      value.get<std::uint64_t>() > most) {
    throw ConfigError(
        at(key), "not a possible value: " + value.dump(),
        "a whole number from " + std::to_string(least) + " to " + std::to_string(most));
  }
  return value.get<std::uint64_t>();
}

double ObjectReader::number(const std::string& key, double least, double most) {
  const json& value = any(key);
  if (!value.is_number() || !(value.get<double>() >= least) || !(value.get<double>() <= most)) {
    throw ConfigError(at(key), "not a possible value: " + value.dump(),
                      "a number from " + json(least).dump() + " to " + json(most).dump());
  }
  return value.get<double>();
}

void ObjectReader::finish() const {
  for (const auto& [key, value] : object_.items()) {
    if (known_.contains(key)) continue;
    std::string known;
    for (const std::string& name : known_) known += (known.empty() ? "" : ", ") + name;
    throw ConfigError(where_ / key, "unknown key \"" + key + "\"", "known here: " + known);
  }
}

DirectionConfig read_direction(ObjectReader reader) {
  DirectionConfig config;
  if (reader.has("rate_bps")) config.rate = Bitrate{reader.whole("rate_bps", 1, most_rate)};
  if (reader.has("overhead_bytes")) {
    config.overhead = Bytes{reader.whole("overhead_bytes", 0, most_packet)};
  }
  if (reader.has("delay_ns")) {
    config.delay = Duration{static_cast<std::int64_t>(reader.whole("delay_ns", 0, most_delay))};
  }
  if (reader.has("queue")) config.queue = read_queue(reader.object("queue"), config.rate);
  if (reader.has("loss")) {
    ObjectReader loss = reader.object("loss");
    config.loss = read_loss_model(loss, config.rate);
    if (loss.has("at")) {
      const std::string place = loss.text("at");
      if (place != "ingress" && place != "egress") {
        throw ConfigError(loss.at("at"), "unknown place \"" + place + "\"",
                          R"("ingress" (before the queue) or "egress" (after transmission))");
      }
      config.loss_at = place == "ingress" ? LossPlace::ingress : LossPlace::egress;
    }
    loss.finish();
  }
  reader.finish();
  return config;
}

json to_json(const DirectionConfig& config) {
  json out = json::object();
  if (config.rate) out["rate_bps"] = config.rate->bits_per_second;
  out["overhead_bytes"] = config.overhead.count;
  out["delay_ns"] = config.delay.count();
  if (const auto* packets = std::get_if<Packets>(&config.queue)) {
    out["queue"] = {{"packets", packets->count}};
  } else if (const auto* bytes = std::get_if<Bytes>(&config.queue)) {
    out["queue"] = {{"bytes", bytes->count}};
  }
  json loss = {{"model", "none"}};
  if (const auto* bernoulli = std::get_if<BernoulliConfig>(&config.loss)) {
    loss = {{"model", "bernoulli"}, {"probability", bernoulli->probability}};
  } else if (const auto* poisson = std::get_if<PoissonConfig>(&config.loss)) {
    loss = {{"model", "poisson"},
            {"packet_loss_rate", poisson->packet_loss_rate},
            {"packet_bytes", poisson->packet.count}};
  }
  loss["at"] = config.loss_at == LossPlace::ingress ? "ingress" : "egress";
  out["loss"] = std::move(loss);
  return out;
}

}  // namespace nagi::model
