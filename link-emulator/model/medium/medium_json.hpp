// SPDX-License-Identifier: Apache-2.0
//
// A medium's configuration as JSON.
#pragma once

#include <nlohmann/json.hpp>
#include <string_view>
#include <vector>

#include "base/object_reader.hpp"
#include "model/medium/medium.hpp"

namespace nagi::model {

/// Read a medium's configuration. bounds.json lists the ranges of the values, phys.json the rates
/// of the PHYs.
///
///   "phy": "802.11b", "preamble": "long"    "802.11a" and "802.11g" have only one preamble
///   "data_rate_bps": 11000000, "basic_rate_bps": 1000000
///   "rts_threshold_bytes": 0                longer MPDUs use RTS; without this key, no MPDU does
///   "short_retry_limit": 7, "long_retry_limit": 4, "cw_min": 31, "cw_max": 1023
///                                           optional; the defaults of cw_min and cw_max depend on
///                                           the PHY
///   "queue": {...}, "loss": {...}           see direction_json.hpp; default: 50 packets, no loss
///   "resets_nav": true, "eifs_after": "frames" or "signals"
///   "reach": {"by": "ranges", "transmission_m": 250, "carrier_sense_m": 550,
///             "interference_m": 550, "capture_db": 10},      without capture_db: no capture
///            {"by": "sinr", "tx_power_dbm": 16, "path_loss_exponent": 3,
///             "reference_loss_db": 46.7, "noise_dbm": -94, "sensitivity_dbm": -82,
///             "carrier_sense_dbm": -82, "capture_db": 10, "preamble_db": 4}, or
///            {"by": "matrix", "decodes": [[false, true], [true, false]], "senses": ...,
///             "interferes": ...}                             [sender][receiver]
///   "stations": [{"position_m": [0, 0], "trace": [[10000000000, 20, 0], ...]}, ...]
///                                           trace: [time after the epoch in ns, x in m, y in m]
///
/// `medium_keys` and `station_keys` are further keys that the medium and its stations may have.
/// Throws ConfigError.
MediumConfig read_medium(ObjectReader reader, const std::vector<std::string_view>& medium_keys,
                         const std::vector<std::string_view>& station_keys);

/// Return the configuration as JSON, with all defaults.
nlohmann::json to_json(const MediumConfig& config);

}  // namespace nagi::model
