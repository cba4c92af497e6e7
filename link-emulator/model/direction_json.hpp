// SPDX-License-Identifier: Apache-2.0
//
// A direction's configuration as JSON.
#pragma once

#include <nlohmann/json.hpp>

#include "base/object_reader.hpp"
#include "model/direction.hpp"

namespace nagi::model {

/// Read the configuration of one direction. All keys are optional; by default there is no rate
/// limit, no delay, no queue limit and no loss. Times of traces count from the link's epoch.
/// bounds.json lists the ranges of the values. Throws ConfigError.
///
///   "rate_bps": 10000000, "burst_bytes": 32000   with a burst a token bucket; or, instead of both,
///   "rate_trace": {"steps": [[0, 10000000], [2000000000, 1000000]], "period_ns": 4000000000}, or
///                 {"opportunities_ns": [0, 1000000], "bytes": 1504, "period_ns": 1000000}
///   "overhead_bytes": 0
///   "queue": {"packets": 119}, {"bytes": 125000}, or
///            {"bdp": 1.0, "base_rtt_ns": 100000000, "packet_bytes": 1052}; each with
///            "discipline": "drop_tail", "codel", "fq_codel", "pie" or "dualpi2" and the keys in
///            fields() of model/queue/DISCIPLINE.hpp
///   "mark": {"threshold_packets": 20 or "threshold_bytes": 20000, "weight": 0.002,
///            "packet_bytes": 1500}
///   "delay_ns": 5000000                      or, instead of it,
///   "delay_trace": {"steps": [[0, 5000000], [1000000000, 8000000]], "period_ns": 2000000000}
///   "jitter": {"distribution": "uniform", "half_width_ns": 1000000},
///             {"distribution": "normal", "deviation_ns": 1000000},
///             {"distribution": "exponential", "mean_ns": 1000000}, or
///             {"distribution": "table", "deviation_ns": 1000000, "quantiles": [-1.5, 0, 1.5]},
///             each with "correlation": 0.5 and "redraw_negative": true
///   "keep_order": true                       if false, jitter and delay traces may reorder packets
///   "corruption": {"probability": 0.01}, "duplication": {"probability": 0.01},
///   "reordering": {"probability": 0.01, "delay_ns": 5000000}
///   "loss": {"model": "none"},
///           {"model": "bernoulli", "probability": 0.01},
///           {"model": "bernoulli_trace", "steps": [[0, 0.0], [1000000000, 0.5]],
///            "period_ns": 2000000000},
///           {"model": "bernoulli_bit", "bit_error_rate": 1e-6},
///           {"model": "poisson", "packet_loss_rate": 0.01, "packet_bytes": 1052},
///           {"model": "gilbert_elliott", "good_to_bad": 0.01, "bad_to_good": 0.3,
///            "loss_in_good": 0, "loss_in_bad": 1},
///           {"model": "markov", "good_sojourn_ns": 1000000000, "bad_sojourn_ns": 1000000000,
///            "loss_in_good": 0, "loss_in_bad": 0.01},
///           {"model": "trace", "lost": [3, 4, 17], "length": 100},
///           {"model": "sdr", "curves": [{"packet_bytes": 1000, "snr_db": [8, 12], "per": [1, 0]}],
///            "snr_db": 10 or
///            "snr_trace": {"steps": [[0, 10], [1000000000, 12]], "period_ns": 2000000000},
///            "fading": {"kind": "rician", "doppler_hz": 5, "k_factor_db": 6} or
///                      {"kind": "rayleigh", "doppler_hz": 5},
///            "shadowing": {"deviation_db": 8, "decorrelation_ns": 2000000000}},
///           or {"model": "radio"},
///           each with "at": "egress" (after transmission) or "ingress" (before the queue)
///   "arq": {"retries": 3, "feedback_ns": 8000000}
///   "rate_adaptation": {"kind": "minstrel",
///                       "modes": [{"rate_bps": 1200000, "overhead_bytes": 50}]},
///                      or "snr_table" with "min_snr_db": [4.5], one SNR per mode; 1 to 16 modes in
///                      the order of their rates; replays also have "recorded_snr": [1450], the SNR
///                      of each transmission in 0.01 dB, or -32768 if none was measured
DirectionConfig read_direction(ObjectReader reader);

/// Read the value of "queue" or of "loss" above, for a sender with the rate `rate`. Throws
/// ConfigError.
QueueConfig read_queue(ObjectReader reader, const RateConfig& rate);
nlohmann::json to_json(const QueueConfig& config);
LossConfig read_loss(ObjectReader reader, const RateConfig& rate);
nlohmann::json to_json(const LossConfig& config);

/// Return the configuration as JSON. A queue that was given in BDPs is written in packets.
nlohmann::json to_json(const DirectionConfig& config);

/// Return `config` with the keys of `changes` replaced; `where` is the position of `changes` in its
/// document. A key also removes the keys that cannot be given together with it, such as
/// "rate_trace" and "rate_bps"; null removes a key. Throws ConfigError.
DirectionConfig apply_changes(const DirectionConfig& config, const nlohmann::json& changes,
                              const nlohmann::json::json_pointer& where);

}  // namespace nagi::model
