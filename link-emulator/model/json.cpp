// SPDX-License-Identifier: Apache-2.0
#include "model/json.hpp"

#include <algorithm>
#include <cmath>
#include <optional>
#include <set>
#include <utility>

#include "model/text.hpp"

namespace nagi::model {

using nlohmann::json;

namespace {

const std::vector<std::string_view>& direction_keys() {
  static const std::vector<std::string_view> keys = {
      "rate_bps",    "rate_trace", "overhead_bytes", "queue", "mark", "delay_ns",
      "delay_trace", "jitter",     "keep_order",     "loss",  "arq"};
  return keys;
}

bool is_whole(const json& value, std::uint64_t least, std::uint64_t most) {
  if (!value.is_number_integer()) return false;
  if (!value.is_number_unsigned() && value.get<std::int64_t>() < 0) return false;
  const auto number = value.get<std::uint64_t>();
  return number >= least && number <= most;
}

ConfigError not_possible(const json& value, const json::json_pointer& where,
                         const std::string& cure) {
  return {where, "not a possible value: " + shown(value), cure};
}

std::string whole_from(std::uint64_t least, std::uint64_t most) {
  if (least == most) return "must be " + std::to_string(least);
  return "a whole number from " + std::to_string(least) + " to " + std::to_string(most);
}

Duration duration(const ObjectReader& reader, const std::string& key, Bound<std::uint64_t> bound) {
  return Duration{static_cast<std::int64_t>(reader.whole(key, bound))};
}

/// An element of a list of numbers that follow each other: the first from 0 on, each `apart` or
/// more after the one before, and all less than `end`, which is what `end_name` says.
std::uint64_t next_in(const json& list, std::size_t index, const json::json_pointer& where,
                      std::optional<std::uint64_t> before, std::uint64_t apart, std::uint64_t end,
                      const std::string& end_name) {
  const json& value = list[index];
  const std::uint64_t least = before ? *before + apart : 0;
  if (end > 0 && is_whole(value, least, end - 1)) return value.get<std::uint64_t>();
  std::string cure = "must be a whole number ";
  if (before) {
    cure += (apart == 0 ? "not less than the previous, " : "greater than the previous, ") +
            std::to_string(*before) + ", and ";
  }
  throw not_possible(value, where / index, cure + end_name);
}

/// {"steps": [[at_ns, value], ...], "period_ns": P}
template <class Value, class Make>
Trace<Value> read_steps(const ObjectReader& reader, Bound<std::uint64_t> bound, Make make) {
  Trace<Value> trace;
  trace.period = duration(reader, "period_ns", bounds::period_ns);
  const json& steps = reader.array("steps");
  const auto where = reader.at("steps");
  const auto period = static_cast<std::uint64_t>(trace.period.count());
  std::optional<std::uint64_t> before;
  for (std::size_t i = 0; i < steps.size(); ++i) {
    const json& step = steps[i];
    if (!step.is_array() || step.size() != 2) {
      throw ConfigError(where / i, "not a step: " + shown(step), "write [at_ns, value]");
    }
    if (!before && step[0] != 0) {
      throw not_possible(step[0], where / i / 0, "must be 0: a trace begins with its first step");
    }
    before = next_in(step, 0, where / i, before, 1, period,
                     "less than the period, " + std::to_string(period));
    if (!is_whole(step[1], bound.least, bound.most)) {
      throw not_possible(step[1], where / i / 1, whole_from(bound.least, bound.most));
    }
    trace.steps.push_back({Duration{static_cast<std::int64_t>(*before)},
                           make(step[1].template get<std::uint64_t>())});
  }
  if (trace.steps.empty()) throw ConfigError(where, "no steps", "list at least [0, value]");
  return trace;
}

RateConfig read_rate_trace(ObjectReader reader) {
  RateConfig rate;
  reader.only({"steps", "opportunities_ns", "bytes", "period_ns"});
  if (reader.has("opportunities_ns")) {
    reader.only({"opportunities_ns", "bytes", "period_ns"});
    Opportunities all;
    all.period = duration(reader, "period_ns", bounds::period_ns);
    all.each = Bytes{reader.whole("bytes", bounds::opportunity_bytes)};
    const json& instants = reader.array("opportunities_ns");
    const auto where = reader.at("opportunities_ns");
    const auto period = static_cast<std::uint64_t>(all.period.count());
    std::optional<std::uint64_t> before;
    for (std::size_t i = 0; i < instants.size(); ++i) {
      before = next_in(instants, i, where, before, 0, period + 1,
                       "at most the period, " + std::to_string(period));
      all.at.emplace_back(static_cast<std::int64_t>(*before));
    }
    if (all.at.empty()) throw ConfigError(where, "no opportunities", "list at least one");
    rate = std::move(all);
  } else {
    reader.only({"steps", "period_ns"});
    rate =
        read_steps<Bitrate>(reader, bounds::step_rate_bps, [](auto bits) { return Bitrate{bits}; });
  }
  const std::uint64_t mean = mean_rate(rate)->bits_per_second;
  if (mean < bounds::rate_bps.least) {
    throw ConfigError(reader.here(),
                      "less than " + std::to_string(bounds::rate_bps.least) + " bit/s on average",
                      "give it more to send, or a shorter period");
  }
  if (mean > bounds::rate_bps.most) {
    throw ConfigError(reader.here(),
                      "more than " + std::to_string(bounds::rate_bps.most) + " bit/s on average",
                      "give it less to send, or a longer period");
  }
  return rate;
}

void need_rate(const RateConfig& rate, const json::json_pointer& where, const std::string& what) {
  if (is_limited(rate)) return;
  throw ConfigError(where, what + " on a direction without a rate",
                    R"(give "rate_bps" or "rate_trace" too)");
}

QueueLimit read_queue(ObjectReader reader, const RateConfig& rate) {
  QueueLimit limit;
  reader.only({"packets", "bytes", "bdp", "base_rtt_ns", "packet_bytes"});
  need_rate(rate, reader.here(), "a queue");
  if (reader.has("packets")) {
    reader.only({"packets"});
    limit = Packets{reader.whole("packets", bounds::queue_packets)};
  } else if (reader.has("bytes")) {
    reader.only({"bytes"});
    limit = Bytes{reader.whole("bytes", bounds::queue_bytes)};
  } else if (reader.has("bdp")) {
    const double bdp = reader.number("bdp", bounds::queue_bdp);
    const Duration base_rtt = duration(reader, "base_rtt_ns", bounds::base_rtt_ns);
    const Packets packets = bandwidth_delay_product(
        static_cast<std::uint64_t>(std::llround(bdp * 1e6)), *mean_rate(rate), base_rtt,
        Bytes{reader.whole("packet_bytes", bounds::packet_bytes)});
    if (packets.count > bounds::queue_packets.most) {
      throw ConfigError(reader.at("bdp"),
                        shown(reader.any("bdp")) + " BDP are more than " +
                            std::to_string(bounds::queue_packets.most) + " packets",
                        "give less: a BDP is rate x base RTT / (8 x packet), here of a rate of " +
                            std::to_string(mean_rate(rate)->bits_per_second) + " bit/s");
    }
    limit = packets;
  } else {
    throw ConfigError(
        reader.here(), "a queue without a size",
        R"(give one of "packets", "bytes", or "bdp" with "base_rtt_ns" and "packet_bytes")");
  }
  return limit;
}

MarkConfig read_mark(ObjectReader reader, const RateConfig& rate) {
  MarkConfig mark;
  reader.only({"threshold_packets", "threshold_bytes", "weight"});
  need_rate(rate, reader.here(), "marking");
  if (reader.has("threshold_bytes")) {
    reader.only({"threshold_bytes", "weight"});
    mark.threshold = Bytes{reader.whole("threshold_bytes", bounds::mark_threshold_bytes)};
  } else {
    mark.threshold = Packets{reader.whole("threshold_packets", bounds::mark_threshold_packets)};
  }
  mark.weight = reader.number("weight", bounds::mark_weight);
  return mark;
}

JitterConfig read_jitter(ObjectReader reader) {
  JitterConfig jitter;
  reader.only({"distribution", "half_width_ns", "deviation_ns", "mean_ns"});
  const std::string distribution = reader.text("distribution");
  if (distribution == "uniform") {
    reader.only({"distribution", "half_width_ns"});
    jitter = UniformJitter{duration(reader, "half_width_ns", bounds::jitter_ns)};
  } else if (distribution == "normal") {
    reader.only({"distribution", "deviation_ns"});
    jitter = NormalJitter{duration(reader, "deviation_ns", bounds::jitter_ns)};
  } else if (distribution == "exponential") {
    reader.only({"distribution", "mean_ns"});
    jitter = ExponentialJitter{duration(reader, "mean_ns", bounds::jitter_ns)};
  } else {
    throw ConfigError(reader.at("distribution"), "unknown distribution " + shown(distribution),
                      R"(one of "uniform", "normal", "exponential")");
  }
  return jitter;
}

double probability(const ObjectReader& reader, const std::string& key) {
  return reader.number(key, bounds::probability);
}
double probability(const ObjectReader& reader, const std::string& key, double otherwise) {
  return reader.has(key) ? probability(reader, key) : otherwise;
}

LossTraceConfig read_loss_trace(const ObjectReader& reader) {
  LossTraceConfig trace;
  trace.length = reader.whole("length", bounds::loss_trace_packets);
  const json& lost = reader.array("lost");
  std::optional<std::uint64_t> before;
  for (std::size_t i = 0; i < lost.size(); ++i) {
    before = next_in(lost, i, reader.at("lost"), before, 1, trace.length,
                     "less than the length, " + std::to_string(trace.length));
    trace.lost.push_back(*before);
  }
  return trace;
}

LossConfig read_loss_model(ObjectReader& reader, const RateConfig& rate) {
  const std::string model = reader.text("model");
  const auto only = [&reader](std::vector<std::string_view> keys) {
    keys.insert(keys.end(), {"model", "at"});
    reader.only(keys);
  };
  if (model == "none") {
    only({});
    return NoLossConfig{};
  }
  if (model == "bernoulli") {
    only({"probability"});
    return BernoulliConfig{probability(reader, "probability")};
  }
  if (model == "bernoulli_bit") {
    only({"bit_error_rate"});
    return BernoulliBitConfig{reader.number("bit_error_rate", bounds::bit_error_rate)};
  }
  if (model == "poisson") {
    only({"packet_loss_rate", "packet_bytes"});
    if (!std::holds_alternative<Bitrate>(rate)) {
      throw ConfigError(reader.at("model"), "Poisson loss on a direction without a constant rate",
                        "give \"rate_bps\" too: the process's rate follows from it");
    }
    return PoissonConfig{reader.number("packet_loss_rate", bounds::packet_loss_rate),
                         Bytes{reader.whole("packet_bytes", bounds::packet_bytes)}};
  }
  if (model == "gilbert_elliott") {
    only({"good_to_bad", "bad_to_good", "loss_in_good", "loss_in_bad"});
    return GilbertElliottConfig{
        probability(reader, "good_to_bad"), probability(reader, "bad_to_good"),
        probability(reader, "loss_in_good", 0), probability(reader, "loss_in_bad", 1)};
  }
  if (model == "markov") {
    only({"good_sojourn_ns", "bad_sojourn_ns", "loss_in_good", "loss_in_bad"});
    return MarkovConfig{duration(reader, "good_sojourn_ns", bounds::sojourn_ns),
                        duration(reader, "bad_sojourn_ns", bounds::sojourn_ns),
                        probability(reader, "loss_in_good", 0),
                        probability(reader, "loss_in_bad", 1)};
  }
  if (model == "trace") {
    only({"lost", "length"});
    return read_loss_trace(reader);
  }
  if (model == "radio") {
    only({});
    return RadioConfig{};
  }
  throw ConfigError(reader.at("model"), "unknown loss model " + shown(model),
                    R"(one of "none", "bernoulli", "bernoulli_bit", "poisson", )"
                    R"("gilbert_elliott", "markov", "trace", "radio")");
}

/// Refuses losses before the queue where the transmission is what matters.
void refuse_ingress(ObjectReader& reader, const DirectionConfig& config) {
  if (config.loss_at != LossPlace::ingress) return;
  const bool radio = std::holds_alternative<RadioConfig>(config.loss);
  if (!radio && !config.arq) return;
  throw ConfigError(reader.at("loss") / "at",
                    radio ? "a radio loses what is on the air" : "ARQ repeats what was transmitted",
                    R"(write "egress", or leave it out)");
}

template <class Value, class Number>
json steps_to_json(const Trace<Value>& trace, Number number) {
  json steps = json::array();
  for (const Step<Value>& step : trace.steps) {
    steps.push_back({step.at.count(), number(step.value)});
  }
  return {{"steps", steps}, {"period_ns", trace.period.count()}};
}

json to_json(const JitterConfig& config) {
  if (const auto* uniform = std::get_if<UniformJitter>(&config)) {
    return {{"distribution", "uniform"}, {"half_width_ns", uniform->half_width.count()}};
  }
  if (const auto* normal = std::get_if<NormalJitter>(&config)) {
    return {{"distribution", "normal"}, {"deviation_ns", normal->deviation.count()}};
  }
  if (const auto* exponential_jitter = std::get_if<ExponentialJitter>(&config)) {
    return {{"distribution", "exponential"}, {"mean_ns", exponential_jitter->mean.count()}};
  }
  return nullptr;
}

json to_json(const LossConfig& config) {
  if (const auto* bernoulli = std::get_if<BernoulliConfig>(&config)) {
    return {{"model", "bernoulli"}, {"probability", bernoulli->probability}};
  }
  if (const auto* bits = std::get_if<BernoulliBitConfig>(&config)) {
    return {{"model", "bernoulli_bit"}, {"bit_error_rate", bits->bit_error_rate}};
  }
  if (const auto* poisson = std::get_if<PoissonConfig>(&config)) {
    return {{"model", "poisson"},
            {"packet_loss_rate", poisson->packet_loss_rate},
            {"packet_bytes", poisson->packet.count}};
  }
  if (const auto* gilbert_elliott = std::get_if<GilbertElliottConfig>(&config)) {
    return {{"model", "gilbert_elliott"},
            {"good_to_bad", gilbert_elliott->good_to_bad},
            {"bad_to_good", gilbert_elliott->bad_to_good},
            {"loss_in_good", gilbert_elliott->loss_in_good},
            {"loss_in_bad", gilbert_elliott->loss_in_bad}};
  }
  if (const auto* markov = std::get_if<MarkovConfig>(&config)) {
    return {{"model", "markov"},
            {"good_sojourn_ns", markov->good_sojourn.count()},
            {"bad_sojourn_ns", markov->bad_sojourn.count()},
            {"loss_in_good", markov->loss_in_good},
            {"loss_in_bad", markov->loss_in_bad}};
  }
  if (std::holds_alternative<RadioConfig>(config)) return {{"model", "radio"}};
  if (const auto* trace = std::get_if<LossTraceConfig>(&config)) {
    return {{"model", "trace"}, {"lost", trace->lost}, {"length", trace->length}};
  }
  return {{"model", "none"}};
}

}  // namespace

ObjectReader::ObjectReader(const json& value, json::json_pointer where)
    : object_(value), where_(std::move(where)) {
  if (!object_.is_object()) {
    throw ConfigError(where_, std::string("expected an object, found ") + object_.type_name(),
                      "write {\"key\": value, ...}");
  }
}

void ObjectReader::only(const std::vector<std::string_view>& known) {
  for (auto each = object_.begin(); each != object_.end(); ++each) {
    const std::string& key = each.key();
    if (std::ranges::find(known, key) != known.end()) continue;
    const std::string meant = nearest(key, known);
    std::string all;
    for (const std::string_view name : std::set(known.begin(), known.end())) {
      all += (all.empty() ? "" : ", ") + std::string(name);
    }
    throw ConfigError(where_ / key, "unknown key " + shortened(key),
                      meant.empty() ? "known here: " + all : "did you mean " + meant);
  }
  keys_are_known_ = true;
}

const json& ObjectReader::any(const std::string& key) const {
  const auto found = object_.find(key);
  if (found != object_.end()) return *found;
  if (!keys_are_known_) {
    for (auto each = object_.begin(); each != object_.end(); ++each) {
      if (nearest(each.key(), {key}).empty()) continue;
      throw ConfigError(where_ / each.key(), "unknown key " + shortened(each.key()),
                        "did you mean " + key);
    }
  }
  throw ConfigError(where_, "missing key " + key, "add \"" + key + "\"");
}

const json& ObjectReader::array(const std::string& key) const {
  const json& value = any(key);
  if (!value.is_array()) {
    throw ConfigError(at(key), std::string("expected a list, found ") + value.type_name(),
                      "write [...]");
  }
  return value;
}

std::string ObjectReader::text(const std::string& key) const {
  const json& value = any(key);
  if (!value.is_string() || value.get_ref<const std::string&>().empty()) {
    throw ConfigError(at(key), "expected text, found " + shown(value),
                      "write a text in quotes that is not empty");
  }
  const auto& text = value.get_ref<const std::string&>();
  if (has_unprintable(text)) {
    throw ConfigError(at(key), "a control character in " + shown(value), "write it without");
  }
  return text;
}

std::uint64_t ObjectReader::whole(const std::string& key, std::uint64_t least,
                                  std::uint64_t most) const {
  const json& value = any(key);
  if (!is_whole(value, least, most)) throw not_possible(value, at(key), whole_from(least, most));
  return value.get<std::uint64_t>();
}

bool ObjectReader::flag(const std::string& key) const {
  const json& value = any(key);
  if (!value.is_boolean()) throw not_possible(value, at(key), "true or false");
  return value.get<bool>();
}

double ObjectReader::number(const std::string& key, Bound<double> bound) const {
  const json& value = any(key);
  if (!value.is_number() || !(value.get<double>() >= bound.least) ||
      !(value.get<double>() <= bound.most)) {
    throw not_possible(
        value, at(key),
        "a number from " + json(bound.least).dump() + " to " + json(bound.most).dump());
  }
  return value.get<double>();
}

std::string shown(const json& value) {
  return shortened(value.dump(-1, ' ', false, json::error_handler_t::replace));
}

DirectionConfig read_direction(ObjectReader reader) {
  DirectionConfig config;
  reader.only(direction_keys());
  const auto exclusive = [&reader](const std::string& one, const std::string& other) {
    if (!reader.has(one) || !reader.has(other)) return;
    throw ConfigError(reader.at(other), "given beside \"" + one + "\"", "give one of the two");
  };
  exclusive("rate_bps", "rate_trace");
  exclusive("delay_ns", "delay_trace");
  if (reader.has("rate_bps")) config.rate = Bitrate{reader.whole("rate_bps", bounds::rate_bps)};
  if (reader.has("rate_trace")) config.rate = read_rate_trace(reader.object("rate_trace"));
  if (reader.has("overhead_bytes")) {
    config.overhead = Bytes{reader.whole("overhead_bytes", bounds::overhead_bytes)};
  }
  if (reader.has("queue")) config.queue = read_queue(reader.object("queue"), config.rate);
  if (reader.has("mark")) config.mark = read_mark(reader.object("mark"), config.rate);
  if (reader.has("delay_ns")) config.delay = duration(reader, "delay_ns", bounds::delay_ns);
  if (reader.has("delay_trace")) {
    ObjectReader trace = reader.object("delay_trace");
    trace.only({"steps", "period_ns"});
    config.delay = read_steps<Duration>(trace, bounds::delay_ns, [](std::uint64_t nanoseconds) {
      return Duration{static_cast<std::int64_t>(nanoseconds)};
    });
  }
  if (reader.has("jitter")) config.jitter = read_jitter(reader.object("jitter"));
  if (reader.has("keep_order")) config.keep_order = reader.flag("keep_order");
  if (reader.has("loss")) {
    ObjectReader loss = reader.object("loss");
    config.loss = read_loss_model(loss, config.rate);
    if (loss.has("at")) {
      const std::string place = loss.text("at");
      if (place != "ingress" && place != "egress") {
        throw ConfigError(loss.at("at"), "unknown place " + shown(place),
                          R"("ingress" (before the queue) or "egress" (after transmission))");
      }
      config.loss_at = place == "ingress" ? LossPlace::ingress : LossPlace::egress;
    }
  }
  if (reader.has("arq")) {
    ObjectReader arq = reader.object("arq");
    arq.only({"retries", "feedback_ns"});
    config.arq = {static_cast<unsigned>(arq.whole("retries", bounds::arq_retries)),
                  duration(arq, "feedback_ns", bounds::arq_feedback_ns)};
  }
  refuse_ingress(reader, config);
  return config;
}

json to_json(const DirectionConfig& config) {
  json out = json::object();
  if (const auto* constant = std::get_if<Bitrate>(&config.rate)) {
    out["rate_bps"] = constant->bits_per_second;
  } else if (const auto* trace = std::get_if<Trace<Bitrate>>(&config.rate)) {
    out["rate_trace"] = steps_to_json(*trace, [](Bitrate rate) { return rate.bits_per_second; });
  } else if (const auto* all = std::get_if<Opportunities>(&config.rate)) {
    json instants = json::array();
    for (const Duration at : all->at) instants.push_back(at.count());
    out["rate_trace"] = {{"opportunities_ns", std::move(instants)},
                         {"bytes", all->each.count},
                         {"period_ns", all->period.count()}};
  }
  out["overhead_bytes"] = config.overhead.count;
  if (const auto* packets = std::get_if<Packets>(&config.queue)) {
    out["queue"] = {{"packets", packets->count}};
  } else if (const auto* bytes = std::get_if<Bytes>(&config.queue)) {
    out["queue"] = {{"bytes", bytes->count}};
  }
  if (config.mark) {
    out["mark"] = {{"weight", config.mark->weight}};
    if (const auto* packets = std::get_if<Packets>(&config.mark->threshold)) {
      out["mark"]["threshold_packets"] = packets->count;
    } else {
      out["mark"]["threshold_bytes"] = std::get<Bytes>(config.mark->threshold).count;
    }
  }
  if (const auto* constant = std::get_if<Duration>(&config.delay)) {
    out["delay_ns"] = constant->count();
  } else {
    out["delay_trace"] = steps_to_json(std::get<Trace<Duration>>(config.delay),
                                       [](Duration delay) { return delay.count(); });
  }
  if (!std::holds_alternative<NoJitter>(config.jitter)) out["jitter"] = to_json(config.jitter);
  if (!config.keep_order) out["keep_order"] = false;
  out["loss"] = to_json(config.loss);
  if (config.arq) {
    out["arq"] = {{"retries", config.arq->retries}, {"feedback_ns", config.arq->feedback.count()}};
  }
  out["loss"]["at"] = config.loss_at == LossPlace::ingress ? "ingress" : "egress";
  return out;
}

DirectionConfig changed(const DirectionConfig& config, const json& changes,
                        const json::json_pointer& where) {
  if (!changes.is_object()) {
    throw ConfigError(where, "expected an object, found " + std::string(changes.type_name()),
                      R"(write {"rate_bps": 1000000, ...})");
  }
  ObjectReader(changes, where).only(direction_keys());
  json merged = to_json(config);
  const auto instead_of = [&](const char* given, const char* replaced) {
    if (changes.contains(given)) merged.erase(replaced);
  };
  instead_of("rate_bps", "rate_trace");
  instead_of("rate_trace", "rate_bps");
  instead_of("delay_ns", "delay_trace");
  instead_of("delay_trace", "delay_ns");
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
