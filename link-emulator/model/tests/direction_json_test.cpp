// SPDX-License-Identifier: Apache-2.0
#include "model/direction_json.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace nagi::model {
namespace {

using nlohmann::json;
using testing::HasSubstr;

DirectionConfig read(const std::string& text) {
  const json value = json::parse(text);
  return read_direction(ObjectReader(value, json::json_pointer("/link")));
}

struct Refusal {
  std::string where;
  std::string what;
  std::string cure;
};

Refusal refusal(const std::string& text) {
  try {
    read(text);
  } catch (const ConfigError& error) {
    return {error.where().to_string(), error.what(), error.cure()};
  }
  ADD_FAILURE() << "accepted: " << text;
  return {};
}

TEST(ReadDirection, TakesEverythingItKnows) {
  const DirectionConfig config = read(R"({
    "rate_bps": 10000000, "overhead_bytes": 18, "delay_ns": 5000000, "queue": {"packets": 119},
    "loss": {"model": "poisson", "packet_loss_rate": 0.01, "packet_bytes": 1052, "at": "ingress"}})");
  EXPECT_EQ(std::get<Bitrate>(config.rate), Bitrate{10'000'000});
  EXPECT_EQ(config.overhead, Bytes{18});
  EXPECT_EQ(std::get<Duration>(config.delay), Duration{5'000'000});
  EXPECT_EQ(std::get<Packets>(limit_of(config.queue)), Packets{119});
  EXPECT_EQ(std::get<PoissonLoss>(config.loss).packet, Bytes{1052});
  EXPECT_EQ(config.loss_at, LossPoint::ingress);
}

TEST(ReadDirection, NeedsNothing) {
  const DirectionConfig config = read("{}");
  EXPECT_FALSE(is_limited(config.rate));
  EXPECT_TRUE(std::holds_alternative<Unlimited>(limit_of(config.queue)));
  EXPECT_TRUE(std::holds_alternative<NoLoss>(config.loss));
}

TEST(ReadDirection, TurnsBdpsIntoPackets) {
  const DirectionConfig config = read(R"({"rate_bps": 100000000,
    "queue": {"bdp": 1, "base_rtt_ns": 100000000, "packet_bytes": 1052}})");
  EXPECT_EQ(std::get<Packets>(limit_of(config.queue)), Packets{1189});
  EXPECT_EQ(to_json(config)["queue"], (json{{"packets", 1189}}));
}

TEST(ReadDirection, TakesTheLimitsOfLinuxForDisciplinesWithoutASize) {
  const auto packets = [](const std::string& discipline) {
    const auto config = read(R"({"rate_bps": 9, "queue": {"discipline": ")" + discipline + "\"}}");
    return std::get<Packets>(limit_of(config.queue)).count;
  };
  EXPECT_EQ(packets("codel"), 1000);
  EXPECT_EQ(packets("fq_codel"), 10240);
  EXPECT_EQ(packets("pie"), 1000);
  EXPECT_EQ(packets("dualpi2"), 10000);
}

TEST(ReadDirection, ComesBackAsItWas) {
  for (const char* text : {
           R"({"delay_ns":0,"loss":{"at":"egress","model":"none"},
               "overhead_bytes":0})",
           R"({"delay_ns":7,"keep_order":false,"overhead_bytes":4,"rate_bps":1000,
               "loss":{"at":"ingress","model":"bernoulli","probability":0.25},
               "queue":{"bytes":3000},"mark":{"threshold_packets":20,"weight":0.5,"packet_bytes":700},
               "jitter":{"distribution":"uniform","half_width_ns":5}})",
           R"({"delay_ns":7,"overhead_bytes":0,"rate_bps":9,
               "loss":{"at":"egress","model":"poisson","packet_bytes":1000,
                       "packet_loss_rate":0.001},
               "queue":{"packets":3},"mark":{"threshold_bytes":9,"weight":1.0,"packet_bytes":1500},
               "jitter":{"distribution":"normal","deviation_ns":5}})",
           R"({"delay_trace":{"steps":[[0,5],[4,0]],"period_ns":9},
               "overhead_bytes":0,"rate_trace":{"steps":[[0,50],[1,0]],"period_ns":9},
               "loss":{"at":"egress","model":"bernoulli_bit","bit_error_rate":1e-6},
               "jitter":{"distribution":"exponential","mean_ns":5}})",
           R"({"delay_ns":0,"overhead_bytes":0,
               "rate_trace":{"opportunities_ns":[0,5,5,9],"bytes":1504,"period_ns":9000},
               "loss":{"at":"egress","model":"gilbert_elliott","good_to_bad":0.5,
                       "bad_to_good":0.25,"loss_in_good":0.125,"loss_in_bad":0.75}})",
           R"({"delay_ns":0,"overhead_bytes":0,
               "loss":{"at":"egress","model":"markov","good_sojourn_ns":5000,
                       "bad_sojourn_ns":6000,"loss_in_good":0.0,"loss_in_bad":1.0}})",
           R"({"delay_ns":0,"overhead_bytes":0,
               "loss":{"at":"egress","model":"trace","lost":[0,3,4],"length":5}})",
           R"({"delay_ns":0,"overhead_bytes":0,
               "loss":{"at":"egress","model":"sdr","snr_db":12.5,
                       "fading":{"kind":"rician","doppler_hz":5.0,"k_factor_db":6.0},
                       "shadowing":{"deviation_db":8.0,"decorrelation_ns":2000000007},
                       "curves":[{"packet_bytes":40,"snr_db":[1.0,2.0],"per":[1.0,0.0]},
                                 {"packet_bytes":90,"snr_db":[1.0,3.0],"per":[1.0,0.5]}]}})",
           R"({"delay_ns":0,"overhead_bytes":0,
               "loss":{"at":"ingress","model":"sdr",
                       "snr_trace":{"steps":[[0,1.0],[4,-2.5]],"period_ns":9},
                       "fading":{"kind":"rayleigh","doppler_hz":5.0},
                       "curves":[{"packet_bytes":40,"snr_db":[1.0,2.0],"per":[1.0,0.0]}]}})",
           R"({"delay_ns":0,"overhead_bytes":0,"rate_bps":9,"burst_bytes":3000,
               "loss":{"at":"egress","model":"bernoulli_trace","steps":[[0,0.5],[4,0.0]],
                       "period_ns":9},
               "corruption":{"probability":0.5},"duplication":{"probability":0.25},
               "reordering":{"probability":0.125,"delay_ns":5},
               "queue":{"packets":3,"counts_transmission":true}})",
           R"({"delay_ns":0,"overhead_bytes":0,"rate_bps":9,"loss":{"at":"egress","model":"none"},
               "queue":{"discipline":"codel","packets":3,"target_ns":5000,"interval_ns":6000,
                        "ecn":true,"full_packet_bytes":1000,"style":"linux"},
               "jitter":{"distribution":"table","deviation_ns":5,"quantiles":[-1.0,0.0,1.0],
                         "correlation":0.5,"redraw_negative":true}})",
           R"({"delay_ns":0,"overhead_bytes":0,"rate_bps":9,"loss":{"at":"egress","model":"none"},
               "queue":{"discipline":"fq_codel","bytes":3000,"target_ns":5000,"interval_ns":6000,
                        "ecn":false,"full_packet_bytes":1000,"quantum_bytes":300,"flows":5,
                        "style":"linux"}})",
           R"({"delay_ns":0,"overhead_bytes":0,"rate_bps":9,"loss":{"at":"egress","model":"none"},
               "queue":{"discipline":"pie","packets":3,"target_ns":5000,"update_ns":15000000,
                        "max_burst_ns":6000,"alpha_hz":0.5,"beta_hz":1.5,
                        "full_packet_bytes":1000,"style":"rfc"}})",
           R"({"delay_ns":0,"overhead_bytes":0,"rate_bps":9,"loss":{"at":"egress","model":"none"},
               "queue":{"discipline":"dualpi2","packets":3,"target_ns":5000,
                        "update_ns":15000000,"alpha_hz":0.5,"beta_hz":1.5,"coupling":2.0,
                        "min_threshold_ns":8000,"range_ns":4000,"classic_weight":0.1,
                        "full_packet_bytes":1000,"style":"rfc"}})",
           R"({"delay_ns":0,"overhead_bytes":0,"rate_bps":9,"loss":{"at":"egress","model":"none"},
               "queue":{"discipline":"dualpi2","packets":3,"target_ns":5000,
                        "update_ns":15000000,"alpha_hz":0.5,"beta_hz":1.5,"coupling":2.0,
                        "step_ns":8000,"classic_weight":0.1,"full_packet_bytes":1000,
                        "style":"linux"}})",
       }) {
    EXPECT_EQ(to_json(read(text)), json::parse(text));
  }
}

TEST(ReadDirection, NamesWhatIsWrong) {
  EXPECT_EQ(refusal(R"({"rate": 1})").where, "/link/rate");
  EXPECT_THAT(refusal(R"({"rate": 1})").cure, HasSubstr("rate_bps"));
  EXPECT_EQ(refusal(R"({"rate_bps": 0})").where, "/link/rate_bps");
  EXPECT_EQ(refusal(R"({"rate_bps": -5})").where, "/link/rate_bps");
  EXPECT_EQ(refusal(R"({"rate_bps": "10 Mb/s"})").where, "/link/rate_bps");
  EXPECT_EQ(refusal(R"({"delay_ns": 1.5})").where, "/link/delay_ns");
  EXPECT_THAT(refusal(R"({"queue": {"packets": 5}})").what, HasSubstr("without a rate"));
  EXPECT_EQ(refusal(R"({"rate_bps": 1, "queue": {"packets": 0}})").where, "/link/queue/packets");
  EXPECT_EQ(refusal(R"({"rate_bps": 1, "queue": {}})").where, "/link/queue");
  EXPECT_EQ(refusal(R"({"rate_bps": 1, "queue": {"packets": 1, "bytes": 1}})").where,
            "/link/queue/bytes");
  const auto dualpi2 = [](const std::string& keys) {
    return refusal(R"({"rate_bps": 1, "queue": {"discipline": "dualpi2", )" + keys + "}}");
  };
  EXPECT_EQ(dualpi2(R"("style": "windows")").where, "/link/queue/style");
  EXPECT_EQ(dualpi2(R"("range_ns": 5000)").where, "/link/queue/range_ns");
  EXPECT_EQ(dualpi2(R"("style": "rfc", "step_ns": 5000)").where, "/link/queue/step_ns");
  EXPECT_EQ(refusal(R"({"loss": {"model": "bernoulli", "probability": 1.01}})").where,
            "/link/loss/probability");
  EXPECT_EQ(refusal(R"({"loss": {"model": "bernoulli"}})").where, "/link/loss");
  EXPECT_EQ(refusal(R"({"loss": {"model": "rain"}})").where, "/link/loss/model");
  EXPECT_EQ(refusal(R"({"loss": {"model": "none", "at": "noon"}})").where, "/link/loss/at");
  EXPECT_THAT(
      refusal(R"({"loss": {"model": "poisson", "packet_loss_rate": 0.1, "packet_bytes": 9}})").what,
      HasSubstr("without a constant rate"));
  EXPECT_EQ(refusal(R"({"rate_bps": 1, "loss": {"model": "poisson", "packet_loss_rate": 1,
                        "packet_bytes": 1000}})")
                .where,
            "/link/loss/packet_loss_rate");
  EXPECT_EQ(refusal(R"([])").where, "/link");
  EXPECT_EQ(refusal(R"({"keep_order": 1})").where, "/link/keep_order");
  EXPECT_THAT(refusal(R"({"mark": {"threshold_packets": 5, "weight": 1}})").what,
              HasSubstr("without a rate"));
  EXPECT_EQ(refusal(R"({"rate_bps": 1, "mark": {"threshold_packets": 5, "weight": 0}})").where,
            "/link/mark/weight");
  EXPECT_EQ(refusal(R"({"jitter": {"distribution": "pareto"}})").where,
            "/link/jitter/distribution");
  EXPECT_EQ(refusal(R"({"loss": {"model": "trace", "lost": [3, 3], "length": 9}})").where,
            "/link/loss/lost/1");
  EXPECT_EQ(
      refusal(R"({"loss": {"model": "markov", "good_sojourn_ns": 1, "bad_sojourn_ns": 1}})").where,
      "/link/loss/good_sojourn_ns");
}

TEST(ReadDirection, NamesWhatIsWrongWithATableOfARadio) {
  const auto where = [](const std::string& members) {
    return refusal((R"({"loss": {"model": "sdr", )" + members + "}}").c_str()).where;
  };
  const auto curve = [](const std::string& bytes, const std::string& snrs,
                        const std::string& pers) {
    return R"({"packet_bytes": )" + bytes + R"(, "snr_db": )" + snrs + R"(, "per": )" + pers + "}";
  };
  const std::string good = curve("40", "[1, 2]", "[1, 0]");
  const auto of = [&where](const std::string& curves) {
    return where(R"("snr_db": 3, "curves": [)" + curves + "]");
  };
  EXPECT_EQ(of(""), "/link/loss/curves");
  EXPECT_EQ(of(curve("0", "[1, 2]", "[1, 0]")), "/link/loss/curves/0/packet_bytes");
  EXPECT_EQ(of(curve("40", "[1]", "[1]")), "/link/loss/curves/0/snr_db");
  EXPECT_EQ(of(curve("40", "[2, 2]", "[1, 0]")), "/link/loss/curves/0/snr_db/1");
  EXPECT_EQ(of(curve("40", "[1, 2]", "[0, 1]")), "/link/loss/curves/0/per/1");
  EXPECT_EQ(of(curve("40", "[1, 2]", "[1]")), "/link/loss/curves/0/per");
  EXPECT_EQ(of(curve("40", "[1, 2]", "[2, 0]")), "/link/loss/curves/0/per/0");
  EXPECT_EQ(of(good + ", " + good), "/link/loss/curves/1/packet_bytes");
  const std::string curves = R"(, "curves": [)" + good + "]";
  EXPECT_EQ(where(R"("snr_trace": {"steps": [[0, 101]], "period_ns": 9})" + curves),
            "/link/loss/snr_trace/steps/0/1");
  EXPECT_EQ(where(R"("snr_db": 3, "snr_trace": {})" + curves), "/link/loss/snr_db");
  EXPECT_EQ(where(R"("snr_db": 3, "fading": {"kind": "none"})" + curves), "/link/loss/fading/kind");
  EXPECT_EQ(where(R"("snr_db": 3, "fading": {"kind": "rayleigh"})" + curves), "/link/loss/fading");
  EXPECT_EQ(
      where(R"("snr_db": 3, "shadowing": {"deviation_db": -1, "decorrelation_ns": 1})" + curves),
      "/link/loss/shadowing/deviation_db");
  EXPECT_EQ(where(R"("snr_db": 3)"), "/link/loss");
}

TEST(ReadDirection, NamesWhatIsWrongWithATrace) {
  const auto rate_trace = [](const std::string& trace) {
    return refusal((R"({"rate_trace": )" + trace + "}").c_str());
  };
  EXPECT_THAT(refusal(R"({"rate_bps": 1, "rate_trace": {}})").what,
              HasSubstr("given together with"));
  EXPECT_THAT(refusal(R"({"delay_ns": 1, "delay_trace": {}})").what,
              HasSubstr("given together with"));
  EXPECT_EQ(rate_trace(R"({"steps": [], "period_ns": 9})").where, "/link/rate_trace/steps");
  EXPECT_EQ(rate_trace(R"({"steps": [[1, 5]], "period_ns": 9})").where,
            "/link/rate_trace/steps/0/0");
  EXPECT_EQ(rate_trace(R"({"steps": [[0, 5], [9, 5]], "period_ns": 9})").where,
            "/link/rate_trace/steps/1/0");
  EXPECT_EQ(rate_trace(R"({"steps": [[0, 5], 7], "period_ns": 9})").where,
            "/link/rate_trace/steps/1");
  EXPECT_THAT(rate_trace(R"({"steps": [[0, 0], [1, 0]], "period_ns": 9})").what,
              HasSubstr("less than 1 bit/s on average"));
  EXPECT_THAT(
      rate_trace(R"({"opportunities_ns": [1], "bytes": 1, "period_ns": 3600000000000})").what,
      HasSubstr("less than 1 bit/s on average"));
  EXPECT_EQ(rate_trace(R"({"opportunities_ns": [3, 2], "bytes": 1, "period_ns": 9})").where,
            "/link/rate_trace/opportunities_ns/1");
  EXPECT_EQ(rate_trace(R"({"opportunities_ns": [10], "bytes": 1, "period_ns": 9})").where,
            "/link/rate_trace/opportunities_ns/0");
}

TEST(ReadDirection, NamesAMisspeltKeyBeforeWhatIsMissingForIt) {
  const auto said = [](const char* text) {
    const Refusal each = refusal(text);
    return each.where + ": " + each.what + "; " + each.cure;
  };
  EXPECT_EQ(said(R"({"rate_bp": 5, "queue": {"packets": 3}})"),
            "/link/rate_bp: unknown key rate_bp; did you mean rate_bps");
  EXPECT_EQ(
      said(R"({"rate_trace": {"opportunitys_ns": [0], "bytes": 1504, "period_ns": 1000000}})"),
      "/link/rate_trace/opportunitys_ns: unknown key opportunitys_ns; "
      "did you mean opportunities_ns");
  EXPECT_EQ(said(R"({"rate_trace": {"opportunities": [0], "bytes": 1504, "period_ns": 1000000}})"),
            "/link/rate_trace/opportunities: unknown key opportunities; "
            "did you mean opportunities_ns");
  EXPECT_EQ(said(R"({"rate_trace": {"file": "a.trace"}})"),
            "/link/rate_trace/file: unknown key file; "
            "known here: bytes, opportunities_ns, period_ns, steps");
  EXPECT_EQ(said(R"({"delay_trace": {"step": [[0, 1]], "period_ns": 9}})"),
            "/link/delay_trace/step: unknown key step; did you mean steps");
  EXPECT_EQ(said(R"({"rate_bps": 9, "queue": {"packet": 3}})"),
            "/link/queue/packet: unknown key packet; did you mean packets");
  EXPECT_EQ(said(R"({"rate_bps": 9, "mark": {"threshold_packet": 3, "weight": 1}})"),
            "/link/mark/threshold_packet: unknown key threshold_packet; "
            "did you mean threshold_packets");
  EXPECT_EQ(said(R"({"jitter": {"distribution": "normal", "deviation": 3}})"),
            "/link/jitter/deviation: unknown key deviation; did you mean deviation_ns");
  EXPECT_EQ(said(R"({"jitter": {"distribution": "normal", "mean_ns": 3}})"),
            "/link/jitter/mean_ns: unknown key mean_ns; known here: correlation, deviation_ns, "
            "distribution, redraw_negative");
  EXPECT_EQ(said(R"({"loss": {"modle": "bernoulli", "probability": 0.1}})"),
            "/link/loss/modle: unknown key modle; did you mean model");
  EXPECT_EQ(said(R"({"loss": {"model": "bernoulli", "probabilty": 0.1}})"),
            "/link/loss/probabilty: unknown key probabilty; did you mean probability");
  EXPECT_EQ(said(R"({"loss": {"model": "none", "probability": 0.1}})"),
            "/link/loss/probability: unknown key probability; known here: at, model");
  EXPECT_EQ(said(R"({"arq": {"retrys": 1, "feedback_ns": 1}})"),
            "/link/arq/retrys: unknown key retrys; did you mean retries");
  EXPECT_EQ(said(R"({"loss": {"model": "bernoulli"}})"),
            "/link/loss: missing key probability; add \"probability\"");
}

TEST(ReadDirection, NoObjectTakesAKeyMore) {
  const json whole = json::parse(R"({
    "rate_trace": {"steps": [[0, 9]], "period_ns": 9}, "queue": {"packets": 3},
    "mark": {"threshold_packets": 3, "weight": 1},
    "delay_trace": {"steps": [[0, 9]], "period_ns": 9},
    "jitter": {"distribution": "uniform", "half_width_ns": 5},
    "loss": {"model": "bernoulli", "probability": 0.5}, "arq": {"retries": 1, "feedback_ns": 1}})");
  read(whole.dump().c_str());
  for (const char* place :
       {"", "/rate_trace", "/queue", "/mark", "/delay_trace", "/jitter", "/loss", "/arq"}) {
    json more = whole;
    more[json::json_pointer(place)]["zzz"] = 1;
    EXPECT_EQ(refusal(more.dump().c_str()).where, "/link" + std::string(place) + "/zzz");
  }
}

TEST(ReadDirection, SaysWhatANumberMustBeWhereThereIsNoRange) {
  const auto cure = [](const std::string& trace) {
    return refusal((R"({"rate_trace": )" + trace + "}").c_str()).cure;
  };
  EXPECT_EQ(cure(R"({"steps": [[1, 5]], "period_ns": 9})"),
            "must be 0, because a trace begins with its first step");
  EXPECT_EQ(cure(R"({"steps": [[0, 5], [8, 5], [8, 5]], "period_ns": 9})"),
            "must be a whole number greater than the previous, 8, and less than the period, 9");
  EXPECT_EQ(cure(R"({"opportunities_ns": [5, 4], "bytes": 1, "period_ns": 9})"),
            "must be a whole number not less than the previous, 5, and at most the period, 9");
  EXPECT_EQ(refusal(R"({"loss": {"model": "trace", "lost": [2, 2], "length": 3}})").cure,
            "must be a whole number greater than the previous, 2, and less than the length, 3");
  EXPECT_EQ(refusal(R"({"loss": {"model": "trace", "lost": [3], "length": 3}})").cure,
            "must be a whole number less than the length, 3");
  const json value = 7;
  const json object = {{"key", value}};
  try {
    (void)ObjectReader(object, json::json_pointer()).whole("key", 5, 5);
    ADD_FAILURE();
  } catch (const ConfigError& error) {
    EXPECT_EQ(error.cure(), "must be 5");
  }
}

TEST(ReadDirection, ShowsValuesOnOneShortLine) {
  const std::string what =
      refusal(("{\"rate_bps\": \"\\u001b[31m\\n" + std::string(1000, 'x') + "\"}").c_str()).what;
  EXPECT_THAT(what, HasSubstr("\\u001b[31m\\nxxx"));
  EXPECT_LT(what.size(), 120u);
  const Refusal key = refusal(("{\"\\u009b" + std::string(1000, 'x') + "\": 1}").c_str());
  EXPECT_THAT(key.what, HasSubstr("unknown key \\u009bxxx"));
  EXPECT_LT(key.what.size(), 120u);
  EXPECT_THAT(refusal(R"({"loss": {"model": "none\u0000"}})").what,
              HasSubstr("a control character"));
}

TEST(ReadDirection, RefusesQueuesThatNoNumberHolds) {
  // 10^6 BDP of 1 Tb/s and an hour are 4.5 x 10^20 packets of a byte: more than 2^64.
  const Refusal huge = refusal(R"({"rate_bps": 1000000000000,
    "queue": {"bdp": 1000000, "base_rtt_ns": 3600000000000, "packet_bytes": 1}})");
  EXPECT_EQ(huge.where, "/link/queue/bdp");
  EXPECT_THAT(huge.what, HasSubstr("more than 1099511627776 packets"));
}

TEST(ReadDirection, RefusesATraceWhoseMeanIsNoRate) {
  EXPECT_THAT(refusal(R"({"rate_trace": {"opportunities_ns": [0, 0], "bytes": 1099511627776,
                          "period_ns": 1}})")
                  .what,
              HasSubstr("more than 1000000000000 bit/s on average"));
}

TEST(Changed, RefusesToTakeAwayWhatThereIsNot) {
  EXPECT_THROW(apply_changes(read("{}"), json::parse(R"({"rat_bps": null})"), json::json_pointer()),
               ConfigError);
}

TEST(Changed, ReplacesWhatIsGiven) {
  const DirectionConfig config = read(R"({"rate_bps": 1000, "delay_ns": 7,
    "queue": {"packets": 3}, "loss": {"model": "bernoulli", "probability": 0.5}})");
  const auto change = [&](const char* changes) {
    return to_json(apply_changes(config, json::parse(changes), json::json_pointer("/config")));
  };
  EXPECT_EQ(change("{}"), to_json(config));
  EXPECT_EQ(change(R"({"rate_bps": 2000})")["rate_bps"], 2000);
  EXPECT_EQ(change(R"({"loss": {"model": "none"}})")["loss"]["model"], "none");
  EXPECT_FALSE(change(R"({"queue": null})").contains("queue"));
  const json traced = change(R"({"rate_trace": {"steps": [[0, 5000]], "period_ns": 9}})");
  EXPECT_FALSE(traced.contains("rate_bps"));
  EXPECT_EQ(traced["queue"], (json{{"packets", 3}}));
  EXPECT_EQ(traced["delay_ns"], 7);
  // Without a rate there can be no queue.
  EXPECT_THROW(change(R"({"rate_bps": null})"), ConfigError);
  EXPECT_THROW(change("[]"), ConfigError);
}

}  // namespace
}  // namespace nagi::model
