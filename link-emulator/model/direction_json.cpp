// SPDX-License-Identifier: Apache-2.0
#include "model/direction_json.hpp"

#include <cmath>
#include <optional>
#include <utility>

#include "model/described_json.hpp"
#include "model/loss/sdr_json.hpp"

namespace nagi::model {

using nlohmann::json;

namespace {

const Tag queue_tag{"discipline", "queue discipline", true};
const Tag mark_tag{"rule", "marking rule", true};
const Tag jitter_tag{"distribution", "distribution"};
const Tag loss_tag{"model", "loss model"};
const Tag adaptation_tag{"kind", "kind of rate adaptation"};

const std::vector<std::string_view>& direction_keys() {
  static const std::vector<std::string_view> keys = [] {
    std::vector<std::string_view> all = {
        "rate_bps", "burst_bytes", "rate_trace",     "overhead_bytes", "queue",
        "mark",     "delay_ns",    "delay_trace",    "jitter",         "keep_order",
        "loss",     "arq",         "rate_adaptation"};
    std::apply([&all]<class... Effects>(
                   const std::optional<Effects>&...) { (all.push_back(Effects::name), ...); },
               EffectConfigs{});
    return all;
  }();
  return keys;
}

Duration duration(const ObjectReader& reader, const std::string& key, Bound<std::uint64_t> bound) {
  return Duration{static_cast<std::int64_t>(reader.whole(key, bound))};
}

RateConfig read_rate_trace(ObjectReader reader) {
  RateConfig rate;
  reader.only({"steps", "opportunities_ns", "bytes", "period_ns"});
  if (reader.has("opportunities_ns")) {
    reader.only({"opportunities_ns", "bytes", "period_ns"});
    Opportunities all;
    all.period = duration(reader, "period_ns", bounds::period_ns);
    all.bytes_each = Bytes{reader.whole("bytes", bounds::opportunity_bytes)};
    const json& instants = reader.array("opportunities_ns");
    const auto where = reader.at("opportunities_ns");
    const auto period = static_cast<std::uint64_t>(all.period.count());
    std::optional<std::uint64_t> previous;
    for (std::size_t i = 0; i < instants.size(); ++i) {
      previous = next_in(instants, i, where, previous, 0, period + 1,
                         "at most the period, " + std::to_string(period));
      all.at.emplace_back(static_cast<std::int64_t>(*previous));
    }
    if (all.at.empty()) throw ConfigError(where, "no opportunities", "list at least one");
    rate = std::move(all);
  } else {
    reader.only({"steps", "period_ns"});
    rate = read_steps<Bitrate>(reader, bounds::step_rate_bps);
  }
  const std::uint64_t mean = mean_rate(rate)->bits_per_second;
  if (mean < bounds::rate_bps.minimum) {
    throw ConfigError(reader.here(),
                      "less than " + std::to_string(bounds::rate_bps.minimum) + " bit/s on average",
                      "give more bytes or higher rates, or a shorter period");
  }
  if (mean > bounds::rate_bps.maximum) {
    throw ConfigError(reader.here(),
                      "more than " + std::to_string(bounds::rate_bps.maximum) + " bit/s on average",
                      "give fewer bytes or lower rates, or a longer period");
  }
  return rate;
}

RateConfig read_rate(const ObjectReader& reader) {
  if (reader.has("rate_trace")) {
    if (reader.has("burst_bytes")) {
      throw ConfigError(reader.at("burst_bytes"), "a token bucket cannot have a rate that changes",
                        R"(give "rate_bps", or remove "burst_bytes")");
    }
    return read_rate_trace(reader.object("rate_trace"));
  }
  if (!reader.has("rate_bps")) {
    if (reader.has("burst_bytes")) {
      throw ConfigError(reader.at("burst_bytes"), "a token bucket without a rate",
                        R"(also give "rate_bps")");
    }
    return Unlimited{};
  }
  const Bitrate rate{reader.whole("rate_bps", bounds::rate_bps)};
  if (!reader.has("burst_bytes")) return rate;
  return TokenBucket{rate, Bytes{reader.whole("burst_bytes", bounds::burst_bytes)}};
}

void need_rate(const RateConfig& rate, const json::json_pointer& where,
               const std::string& subject) {
  if (is_limited(rate)) return;
  throw ConfigError(where, subject + " on a direction without a rate",
                    R"(also give "rate_bps" or "rate_trace")");
}

/// Return the keys that specify the size of a queue.
const std::vector<std::string_view>& limit_keys() {
  static const std::vector<std::string_view> keys = {"packets", "bytes", "bdp", "base_rtt_ns",
                                                     "packet_bytes"};
  return keys;
}

/// Read the size of a queue, or return the default of its discipline if no size is given.
QueueLimit read_limit(const ObjectReader& reader, const RateConfig& rate,
                      const QueueLimit& default_limit) {
  const auto refuse_other_sizes = [&reader](const std::string& key) {
    for (const std::string_view other : limit_keys()) {
      if (key == other || !reader.has(std::string(other))) continue;
      throw ConfigError(reader.at(std::string(other)), "given together with \"" + key + "\"",
                        "give one size");
    }
  };
  if (reader.has("packets")) {
    refuse_other_sizes("packets");
    return Packets{reader.whole("packets", bounds::queue_packets)};
  }
  if (reader.has("bytes")) {
    refuse_other_sizes("bytes");
    return Bytes{reader.whole("bytes", bounds::queue_bytes)};
  }
  if (!reader.has("bdp")) {
    const bool has_part_of_bdp = reader.has("base_rtt_ns") || reader.has("packet_bytes");
    if (!std::holds_alternative<Unlimited>(default_limit) && !has_part_of_bdp) return default_limit;
    throw ConfigError(
        reader.here(), "a queue without a size",
        R"(give one of "packets", "bytes", or "bdp" with "base_rtt_ns" and "packet_bytes")");
  }
  const double bdp = reader.number("bdp", bounds::queue_bdp);
  const Duration base_rtt = duration(reader, "base_rtt_ns", bounds::base_rtt_ns);
  const Packets packets =
      bandwidth_delay_product(static_cast<std::uint64_t>(std::llround(bdp * 1e6)), *mean_rate(rate),
                              base_rtt, Bytes{reader.whole("packet_bytes", bounds::packet_bytes)});
  if (packets.count > bounds::queue_packets.maximum) {
    throw ConfigError(reader.at("bdp"),
                      shown(reader.any("bdp")) + " BDP are more than " +
                          std::to_string(bounds::queue_packets.maximum) + " packets",
                      "give fewer. A BDP is rate x base RTT / (8 x packet), with a rate of " +
                          std::to_string(mean_rate(rate)->bits_per_second) + " bit/s");
  }
  return packets;
}

JitterConfig read_jitter(ObjectReader reader) {
  JitterConfig jitter;
  jitter.distribution =
      read_one_of<JitterDistribution>(reader, jitter_tag, {"correlation", "redraw_negative"});
  if (reader.has("correlation")) {
    jitter.correlation = reader.number("correlation", bounds::correlation);
  }
  if (reader.has("redraw_negative")) jitter.redraw_negative = reader.flag("redraw_negative");
  return jitter;
}

json to_json(const JitterConfig& config) {
  json out = describe_one_of(config.distribution, jitter_tag);
  if (config.correlation != 0) out["correlation"] = config.correlation;
  if (config.redraw_negative) out["redraw_negative"] = true;
  return out;
}

LossPoint read_loss_point(const ObjectReader& loss) {
  if (!loss.has("at")) return LossPoint::egress;
  const std::string point = loss.text("at");
  if (point != "ingress" && point != "egress") {
    throw ConfigError(loss.at("at"), "unknown loss point " + shown(point),
                      R"("ingress" (before the queue) or "egress" (after transmission))");
  }
  return point == "ingress" ? LossPoint::ingress : LossPoint::egress;
}

/// Refuse losses before the queue on radios and on links with ARQ.
void refuse_ingress(const ObjectReader& reader, const DirectionConfig& config) {
  if (config.loss_at != LossPoint::ingress) return;
  const bool radio = std::holds_alternative<RadioLoss>(config.loss);
  if (!radio && !config.arq) return;
  throw ConfigError(reader.at("loss") / "at",
                    radio ? "a radio loses packets only after transmission"
                          : "ARQ needs losses after transmission",
                    R"(write "egress", or remove "at")");
}

Mode read_mode(ObjectReader reader) {
  reader.only({"rate_bps", "overhead_bytes"});
  return {Bitrate{reader.whole("rate_bps", bounds::rate_bps)},
          Bytes{reader.whole("overhead_bytes", bounds::overhead_bytes)}};
}

RateAdaptationConfig read_adaptation(ObjectReader reader) {
  constexpr std::size_t max_modes = 16;
  RateAdaptationConfig config;
  config.scheme = read_one_of<AdaptationScheme>(reader, adaptation_tag, {"modes", "recorded_snr"});
  const json& modes = reader.array("modes");
  if (modes.empty() || modes.size() > max_modes) {
    throw ConfigError(reader.at("modes"), std::to_string(modes.size()) + " modes",
                      "list 1 to " + std::to_string(max_modes));
  }
  for (std::size_t i = 0; i < modes.size(); ++i) {
    config.modes.push_back(read_mode({modes[i], reader.at("modes") / i}));
    if (i > 0 && config.modes[i].rate < config.modes[i - 1].rate) {
      throw ConfigError(reader.at("modes") / i, "slower than the previous mode",
                        "list the modes in the order of their rates");
    }
  }
  const auto* table = std::get_if<SnrTable>(&config.scheme);
  if (table && table->min_snr_db.size() != modes.size()) {
    throw ConfigError(reader.at("min_snr_db"),
                      std::to_string(table->min_snr_db.size()) + " SNRs for " +
                          std::to_string(modes.size()) + " modes",
                      "give one SNR for each mode");
  }
  if (!reader.has("recorded_snr")) return config;
  for (const json& snr : reader.array("recorded_snr")) {
    if (!snr.is_number_integer() || snr < std::numeric_limits<std::int16_t>::min() ||
        snr > std::numeric_limits<std::int16_t>::max()) {
      throw not_possible(snr, reader.at("recorded_snr"), "whole numbers from -32768 to 32767");
    }
    config.recorded_snr.push_back(snr.get<std::int16_t>());
  }
  return config;
}

json to_json(const RateAdaptationConfig& config) {
  json out = describe_one_of(config.scheme, adaptation_tag);
  out["modes"] = json::array();
  for (const Mode& mode : config.modes) {
    out["modes"].push_back(
        {{"rate_bps", mode.rate.bits_per_second}, {"overhead_bytes", mode.overhead.count}});
  }
  if (!config.recorded_snr.empty()) out["recorded_snr"] = config.recorded_snr;
  return out;
}

void refuse_mark_without_drop_tail(const ObjectReader& reader, const DirectionConfig& config) {
  if (!config.mark || std::holds_alternative<DropTail>(config.queue)) return;
  throw ConfigError(reader.at("mark"), "\"mark\" is only for drop-tail queues",
                    "remove it; the discipline of this queue marks packets itself");
}

}  // namespace

QueueConfig read_queue(ObjectReader reader, const RateConfig& rate) {
  need_rate(rate, reader.here(), "a queue");
  auto config = read_one_of<QueueConfig>(reader, queue_tag, limit_keys());
  std::visit([&](auto& chosen) { chosen.limit = read_limit(reader, rate, chosen.limit); }, config);
  return config;
}

json to_json(const QueueConfig& config) {
  json out = describe_one_of(config, queue_tag);
  const QueueLimit& limit = limit_of(config);
  if (const auto* packets = std::get_if<Packets>(&limit)) out["packets"] = packets->count;
  if (const auto* bytes = std::get_if<Bytes>(&limit)) out["bytes"] = bytes->count;
  return out;
}

LossConfig read_loss(ObjectReader reader, const RateConfig& rate) {
  const auto loss = read_one_of<LossConfig>(reader, loss_tag, {"at"});
  const bool needs_constant_rate = std::visit(
      []<class Loss>(const Loss&) { return requires { Loss::needs_constant_rate; }; }, loss);
  if (needs_constant_rate && !std::holds_alternative<Bitrate>(rate)) {
    throw ConfigError(
        reader.at("model"),
        "loss model " + shown(reader.any("model")) + " on a direction without a constant rate",
        "also give \"rate_bps\", from which the rate of the process follows");
  }
  return loss;
}

json to_json(const LossConfig& config) { return describe_one_of(config, loss_tag); }

DirectionConfig read_direction(ObjectReader reader) {
  DirectionConfig config;
  reader.only(direction_keys());
  const auto refuse_both = [&reader](const std::string& one, const std::string& other) {
    if (!reader.has(one) || !reader.has(other)) return;
    throw ConfigError(reader.at(other), "given together with \"" + one + "\"",
                      "give one of the two");
  };
  refuse_both("rate_bps", "rate_trace");
  refuse_both("delay_ns", "delay_trace");
  config.rate = read_rate(reader);
  if (reader.has("overhead_bytes")) {
    config.overhead = Bytes{reader.whole("overhead_bytes", bounds::overhead_bytes)};
  }
  if (reader.has("queue")) config.queue = read_queue(reader.object("queue"), config.rate);
  if (reader.has("mark")) {
    ObjectReader mark = reader.object("mark");
    need_rate(config.rate, mark.here(), "marking");
    config.mark = read_one_of<MarkConfig>(mark, mark_tag);
    refuse_mark_without_drop_tail(reader, config);
  }
  if (reader.has("delay_ns")) config.delay = duration(reader, "delay_ns", bounds::delay_ns);
  if (reader.has("delay_trace")) {
    ObjectReader trace = reader.object("delay_trace");
    trace.only({"steps", "period_ns"});
    config.delay = read_steps<Duration>(trace, bounds::delay_ns);
  }
  if (reader.has("jitter")) config.jitter = read_jitter(reader.object("jitter"));
  if (reader.has("keep_order")) config.keep_order = reader.flag("keep_order");
  const auto read_effect = [&reader]<class Effect>(std::optional<Effect>& effect) {
    if (!reader.has(std::string(Effect::name))) return;
    ObjectReader object = reader.object(std::string(Effect::name));
    effect = read_described<Effect>(object);
  };
  std::apply([&](auto&... effects) { (read_effect(effects), ...); }, config.effects);
  if (reader.has("loss")) {
    config.loss = read_loss(reader.object("loss"), config.rate);
    config.loss_at = read_loss_point(reader.object("loss"));
  }
  if (reader.has("arq")) {
    ObjectReader arq = reader.object("arq");
    arq.only({"retries", "feedback_ns"});
    config.arq = {static_cast<unsigned>(arq.whole("retries", bounds::arq_retries)),
                  duration(arq, "feedback_ns", bounds::arq_feedback_ns)};
  }
  if (reader.has("rate_adaptation")) {
    config.rate_adaptation = read_adaptation(reader.object("rate_adaptation"));
    if (!config.arq) {
      throw ConfigError(reader.at("rate_adaptation"), "rate adaptation without feedback",
                        R"(also give "arq": {"retries": 7, "feedback_ns": 1000000})");
    }
    need_rate(config.rate, reader.at("rate_adaptation"), "rate adaptation");
  }
  refuse_ingress(reader, config);
  return config;
}

json to_json(const DirectionConfig& config) {
  json out = json::object();
  if (const auto* constant = std::get_if<Bitrate>(&config.rate)) {
    out["rate_bps"] = constant->bits_per_second;
  } else if (const auto* bucket = std::get_if<TokenBucket>(&config.rate)) {
    out["rate_bps"] = bucket->rate.bits_per_second;
    out["burst_bytes"] = bucket->burst.count;
  } else if (const auto* trace = std::get_if<Trace<Bitrate>>(&config.rate)) {
    out["rate_trace"] = steps_to_json(*trace);
  } else if (const auto* all = std::get_if<Opportunities>(&config.rate)) {
    json instants = json::array();
    for (const Duration at : all->at) instants.push_back(at.count());
    out["rate_trace"] = {{"opportunities_ns", std::move(instants)},
                         {"bytes", all->bytes_each.count},
                         {"period_ns", all->period.count()}};
  }
  out["overhead_bytes"] = config.overhead.count;
  if (!std::holds_alternative<Unlimited>(limit_of(config.queue))) {
    out["queue"] = to_json(config.queue);
  }
  if (config.mark) out["mark"] = describe_one_of(*config.mark, mark_tag);
  if (const auto* constant = std::get_if<Duration>(&config.delay)) {
    out["delay_ns"] = constant->count();
  } else {
    out["delay_trace"] = steps_to_json(std::get<Trace<Duration>>(config.delay));
  }
  if (config.jitter.distribution.index() != 0) out["jitter"] = to_json(config.jitter);
  if (!config.keep_order) out["keep_order"] = false;
  const auto write_effect = [&out]<class Effect>(const std::optional<Effect>& effect) {
    if (effect) out[std::string(Effect::name)] = describe(*effect);
  };
  std::apply([&](const auto&... effects) { (write_effect(effects), ...); }, config.effects);
  out["loss"] = to_json(config.loss);
  out["loss"]["at"] = config.loss_at == LossPoint::ingress ? "ingress" : "egress";
  if (config.arq) {
    out["arq"] = {{"retries", config.arq->retries}, {"feedback_ns", config.arq->feedback.count()}};
  }
  if (config.rate_adaptation) out["rate_adaptation"] = to_json(*config.rate_adaptation);
  return out;
}

DirectionConfig apply_changes(const DirectionConfig& config, const json& changes,
                              const json::json_pointer& where) {
  if (!changes.is_object()) {
    throw ConfigError(where, "expected an object, found " + std::string(changes.type_name()),
                      R"(write {"rate_bps": 1000000, ...})");
  }
  ObjectReader(changes, where).only(direction_keys());
  json merged = to_json(config);
  const auto replace = [&](const char* given, const char* replaced) {
    if (changes.contains(given)) merged.erase(replaced);
  };
  replace("rate_bps", "rate_trace");
  replace("rate_trace", "rate_bps");
  replace("rate_trace", "burst_bytes");
  replace("delay_ns", "delay_trace");
  replace("delay_trace", "delay_ns");
  for (const auto& [key, value] : changes.items()) {
    if (value.is_null()) {
      merged.erase(key);
    } else {
      merged[key] = value;
    }
  }
  return read_direction({merged, where});
}

}  // namespace nagi::model
