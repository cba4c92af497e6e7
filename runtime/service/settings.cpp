// SPDX-License-Identifier: Apache-2.0
#include "service/settings.hpp"

#include <pwd.h>
#include <sched.h>

#include <limits>

#include "base/text.hpp"

namespace nagi::runtime {

namespace {

constexpr std::uint64_t schema_version = 1;
constexpr std::uint64_t max_spin = 1'000'000;  // ns; for a longer wait, sleep is better

io::Choice read_io(const ObjectReader& reader) {
  const std::string choice = reader.text("io");
  if (choice == "best") return io::Choice::best;
  if (choice == "af_xdp") return io::Choice::af_xdp;
  if (choice == "af_packet") return io::Choice::af_packet;
  throw ConfigError(reader.at("io"), "unknown packet I/O " + shown(choice),
                    R"(one of "best", "af_xdp", "af_packet")");
}

OffloadPolicy read_offloads(const ObjectReader& reader) {
  const std::string policy = reader.text("offloads");
  if (policy == "switch_off") return OffloadPolicy::switch_off;
  if (policy == "refuse") return OffloadPolicy::refuse;
  throw ConfigError(reader.at("offloads"), "unknown policy " + shown(policy),
                    R"("switch_off" or "refuse")");
}

}  // namespace

std::vector<std::string_view> settings_keys() {
  return {"schema_version", "seed",  "epoch_realtime_ns",
          "offloads",       "io",    "spin_ns",
          "virtual_time",   "cpu",   "user",
          "account",        "drops", "control_socket"};
}

void read_settings(const ObjectReader& reader, const std::string& program,
                   ServiceSettings& settings) {
  const std::uint64_t version = reader.whole("schema_version");
  if (version != schema_version) {
    throw ConfigError(reader.at("schema_version"),
                      "this " + program + " cannot read version " + std::to_string(version),
                      "version " + std::to_string(schema_version));
  }
  settings.seed = reader.whole("seed", 0, std::numeric_limits<std::uint64_t>::max());
  if (reader.has("epoch_realtime_ns")) {
    settings.epoch_realtime_ns = static_cast<std::int64_t>(reader.whole("epoch_realtime_ns"));
  }
  if (reader.has("offloads")) settings.offloads = read_offloads(reader);
  if (reader.has("io")) settings.io = read_io(reader);
  if (reader.has("spin_ns")) {
    settings.spin_ns = static_cast<std::int64_t>(reader.whole("spin_ns", 0, max_spin));
  }
  if (reader.has("virtual_time")) settings.virtual_time = reader.flag("virtual_time");
  if (reader.has("cpu")) settings.cpu = static_cast<int>(reader.whole("cpu", 0, CPU_SETSIZE - 1));
  if (reader.has("user")) {
    settings.user = reader.text("user");
    if (getpwnam(settings.user.c_str()) == nullptr) {
      throw ConfigError(reader.at("user"), "there is no user " + shortened(settings.user),
                        R"(give another user such as "nobody", or remove the key)");
    }
  }
  for (const auto& [key, path] :
       {std::pair("account", &settings.account), std::pair("drops", &settings.drops),
        std::pair("control_socket", &settings.control_socket)}) {
    if (reader.has(key)) *path = reader.text(key);
  }
}

}  // namespace nagi::runtime
