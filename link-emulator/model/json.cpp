// SPDX-License-Identifier: Apache-2.0
#include "model/json.hpp"

#include <algorithm>
#include <cmath>
#include <set>
#include <utility>

namespace nagi::model {

using nlohmann::json;

namespace {

constexpr std::uint64_t most_rate = 1'000'000'000'000;          // 1 Tb/s
constexpr std::uint64_t most_delay = 3'600ULL * 1'000'000'000;  // an hour
constexpr std::uint64_t most_packet = 65'535;
constexpr std::uint64_t most_queue = 1ULL << 40;
constexpr std::uint64_t most_retries = 100;
constexpr std::uint64_t least_sojourn =
    1'000;  // ns: shorter ones cost more to follow than they matter

bool is_whole(const json& value, std::uint64_t least, std::uint64_t most) {
  if (!value.is_number_integer()) return false;
  if (!value.is_number_unsigned() && value.get<std::int64_t>() < 0) return false;
  const auto number = value.get<std::uint64_t>();
  return number >= least && number <= most;
}

ConfigError not_whole(const json& value, const json::json_pointer& where, std::uint64_t least,
                      std::uint64_t most) {
  return {where, "not a possible value: " + value.dump(),
          "a whole number from " + std::to_string(least) + " to " + std::to_string(most)};
}

Duration duration(ObjectReader& reader, const std::string& key, std::uint64_t least = 0) {
  return Duration{static_cast<std::int64_t>(reader.whole(key, least, most_delay))};
}

std::uint64_t whole_at(const json& list, std::size_t index, const json::json_pointer& where,
                       std::uint64_t least, std::uint64_t most) {
  const json& value = list[index];
  if (!is_whole(value, least, most)) throw not_whole(value, where / index, least, most);
  return value.get<std::uint64_t>();
}

/// {"steps": [[at_ns, value], ...], "period_ns": P}
template <class Value, class Make>
Trace<Value> read_steps(ObjectReader& reader, std::uint64_t most, Make make) {
  Trace<Value> trace;
  trace.period = duration(reader, "period_ns", 1);
  const json& steps = reader.array("steps");
  const auto where = reader.at("steps");
  const auto period = static_cast<std::uint64_t>(trace.period.count());
  for (std::size_t i = 0; i < steps.size(); ++i) {
    const json& step = steps[i];
    if (!step.is_array() || step.size() != 2) {
      throw ConfigError(where / i, "not a step: " + step.dump(), "write [at_ns, value]");
    }
    const auto least = i == 0 ? 0 : static_cast<std::uint64_t>(trace.steps.back().at.count()) + 1;
    const auto at = whole_at(step, 0, where / i, least, i == 0 ? 0 : period - 1);
    trace.steps.push_back(
        {Duration{static_cast<std::int64_t>(at)}, make(whole_at(step, 1, where / i, 0, most))});
  }
  if (trace.steps.empty()) throw ConfigError(where, "no steps", "list at least [0, value]");
  return trace;
}

RateConfig read_rate_trace(ObjectReader reader) {
  RateConfig rate;
  if (reader.has("opportunities_ns")) {
    Opportunities all;
    all.period = duration(reader, "period_ns", 1);
    all.each = Bytes{reader.whole("bytes", 1, most_queue)};
    const json& instants = reader.array("opportunities_ns");
    const auto where = reader.at("opportunities_ns");
    for (std::size_t i = 0; i < instants.size(); ++i) {
      const auto least = i == 0 ? 0 : static_cast<std::uint64_t>(all.at.back().count());
      all.at.emplace_back(static_cast<std::int64_t>(
          whole_at(instants, i, where, least, static_cast<std::uint64_t>(all.period.count()))));
    }
    if (all.at.empty()) throw ConfigError(where, "no opportunities", "list at least one");
    rate = std::move(all);
  } else {
    auto trace = read_steps<Bitrate>(reader, most_rate, [](auto bits) { return Bitrate{bits}; });
    rate = std::move(trace);
  }
  if (mean_rate(rate) < Bitrate{1}) {
    throw ConfigError(reader.here(), "less than 1 bit/s on average",
                      "give it more to send, or a shorter period");
  }
  reader.finish();
  return rate;
}

void need_rate(const RateConfig& rate, const json::json_pointer& where, const std::string& what) {
  if (is_limited(rate)) return;
  throw ConfigError(where, what + " on a direction without a rate",
                    R"(give "rate_bps" or "rate_trace" too)");
}

QueueLimit read_queue(ObjectReader reader, const RateConfig& rate) {
  QueueLimit limit;
  need_rate(rate, reader.here(), "a queue");
  if (reader.has("packets")) {
    limit = Packets{reader.whole("packets", 1, most_queue)};
  } else if (reader.has("bytes")) {
    limit = Bytes{reader.whole("bytes", 1, most_queue)};
  } else if (reader.has("bdp")) {
    const double bdp = reader.number("bdp", 1e-6, 1e6);
    const Duration base_rtt = duration(reader, "base_rtt_ns", 1);
    limit = bandwidth_delay_product(static_cast<std::uint64_t>(std::llround(bdp * 1e6)),
                                    *mean_rate(rate), base_rtt,
                                    Bytes{reader.whole("packet_bytes", 1, most_packet)});
  } else {
    throw ConfigError(
        reader.here(), "a queue without a size",
        R"(give one of "packets", "bytes", or "bdp" with "base_rtt_ns" and "packet_bytes")");
  }
  reader.finish();
  return limit;
}

MarkConfig read_mark(ObjectReader reader, const RateConfig& rate) {
  MarkConfig mark;
  need_rate(rate, reader.here(), "marking");
  if (reader.has("threshold_bytes")) {
    mark.threshold = Bytes{reader.whole("threshold_bytes", 0, most_queue)};
  } else {
    mark.threshold = Packets{reader.whole("threshold_packets", 0, most_queue)};
  }
  mark.weight = reader.number("weight", 1e-9, 1);
  reader.finish();
  return mark;
}

JitterConfig read_jitter(ObjectReader reader) {
  JitterConfig jitter;
  const std::string distribution = reader.text("distribution");
  if (distribution == "uniform") {
    jitter = UniformJitter{duration(reader, "half_width_ns")};
  } else if (distribution == "normal") {
    jitter = NormalJitter{duration(reader, "deviation_ns")};
  } else if (distribution == "exponential") {
    jitter = ExponentialJitter{duration(reader, "mean_ns")};
  } else {
    throw ConfigError(reader.at("distribution"), "unknown distribution \"" + distribution + "\"",
                      R"(one of "uniform", "normal", "exponential")");
  }
  reader.finish();
  return jitter;
}

double probability(ObjectReader& reader, const std::string& key) {
  return reader.number(key, 0, 1);
}
double probability(ObjectReader& reader, const std::string& key, double otherwise) {
  return reader.has(key) ? probability(reader, key) : otherwise;
}

LossTraceConfig read_loss_trace(ObjectReader& reader) {
  LossTraceConfig trace;
  trace.length = reader.whole("length", 1, most_queue);
  const json& lost = reader.array("lost");
  for (std::size_t i = 0; i < lost.size(); ++i) {
    const auto least = i == 0 ? 0 : trace.lost.back() + 1;
    trace.lost.push_back(whole_at(lost, i, reader.at("lost"), least, trace.length - 1));
  }
  return trace;
}

LossConfig read_loss_model(ObjectReader& reader, const RateConfig& rate) {
  constexpr double below_1 = 1 - 0x1p-53;
  const std::string model = reader.text("model");
  if (model == "none") return NoLossConfig{};
  if (model == "bernoulli") return BernoulliConfig{probability(reader, "probability")};
  if (model == "bernoulli_bit") {
    return BernoulliBitConfig{reader.number("bit_error_rate", 0, below_1)};
  }
  if (model == "poisson") {
    if (!std::holds_alternative<Bitrate>(rate)) {
      throw ConfigError(reader.at("model"), "Poisson loss on a direction without a constant rate",
                        "give \"rate_bps\" too: the process's rate follows from it");
    }
    return PoissonConfig{reader.number("packet_loss_rate", 0, below_1),
                         Bytes{reader.whole("packet_bytes", 1, most_packet)}};
  }
  if (model == "gilbert_elliott") {
    return GilbertElliottConfig{
        probability(reader, "good_to_bad"), probability(reader, "bad_to_good"),
        probability(reader, "loss_in_good", 0), probability(reader, "loss_in_bad", 1)};
  }
  if (model == "markov") {
    return MarkovConfig{duration(reader, "good_sojourn_ns", least_sojourn),
                        duration(reader, "bad_sojourn_ns", least_sojourn),
                        probability(reader, "loss_in_good", 0),
                        probability(reader, "loss_in_bad", 1)};
  }
  if (model == "trace") return read_loss_trace(reader);
  if (model == "radio") return RadioConfig{};
  throw ConfigError(reader.at("model"), "unknown loss model \"" + model + "\"",
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

bool ObjectReader::has(const std::string& key) {
  known_.push_back(key);
  return object_.contains(key);
}

const json& ObjectReader::any(const std::string& key) {
  known_.push_back(key);
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
  if (!is_whole(value, least, most)) throw not_whole(value, at(key), least, most);
  return value.get<std::uint64_t>();
}

bool ObjectReader::flag(const std::string& key) {
  const json& value = any(key);
  if (!value.is_boolean()) {
    throw ConfigError(at(key), "not a possible value: " + value.dump(), "true or false");
  }
  return value.get<bool>();
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
  for (auto each = object_.begin(); each != object_.end(); ++each) {
    const std::string& key = each.key();
    if (std::ranges::find(known_, key) != known_.end()) continue;
    std::string known;
    for (const std::string& name : std::set(known_.begin(), known_.end())) {
      known += (known.empty() ? "" : ", ") + name;
    }
    throw ConfigError(where_ / key, "unknown key \"" + key + "\"", "known here: " + known);
  }
}

DirectionConfig read_direction(ObjectReader reader) {
  DirectionConfig config;
  const auto exclusive = [&reader](const std::string& one, const std::string& other) {
    if (!reader.has(one) || !reader.has(other)) return;
    throw ConfigError(reader.at(other), "given beside \"" + one + "\"", "give one of the two");
  };
  exclusive("rate_bps", "rate_trace");
  exclusive("delay_ns", "delay_trace");
  if (reader.has("rate_bps")) config.rate = Bitrate{reader.whole("rate_bps", 1, most_rate)};
  if (reader.has("rate_trace")) config.rate = read_rate_trace(reader.object("rate_trace"));
  if (reader.has("overhead_bytes")) {
    config.overhead = Bytes{reader.whole("overhead_bytes", 0, most_packet)};
  }
  if (reader.has("queue")) config.queue = read_queue(reader.object("queue"), config.rate);
  if (reader.has("mark")) config.mark = read_mark(reader.object("mark"), config.rate);
  if (reader.has("delay_ns")) config.delay = duration(reader, "delay_ns");
  if (reader.has("delay_trace")) {
    ObjectReader trace = reader.object("delay_trace");
    config.delay = read_steps<Duration>(trace, most_delay, [](std::uint64_t nanoseconds) {
      return Duration{static_cast<std::int64_t>(nanoseconds)};
    });
    trace.finish();
  }
  if (reader.has("jitter")) config.jitter = read_jitter(reader.object("jitter"));
  if (reader.has("keep_order")) config.keep_order = reader.flag("keep_order");
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
  if (reader.has("arq")) {
    ObjectReader arq = reader.object("arq");
    config.arq = {static_cast<unsigned>(arq.whole("retries", 1, most_retries)),
                  duration(arq, "feedback_ns")};
    arq.finish();
  }
  refuse_ingress(reader, config);
  reader.finish();
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
