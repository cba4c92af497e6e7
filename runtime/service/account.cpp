// SPDX-License-Identifier: Apache-2.0
#include "service/account.hpp"

#include <spdlog/spdlog.h>
#include <sys/resource.h>

#include "runtime/version.hpp"

namespace nagi::runtime {

namespace {

using nlohmann::json;

double seconds(const timeval& time) {
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) / 1e6;
}

}  // namespace

void Notices::add(const std::string& text) {
  all_.push_back(text);
  spdlog::warn("{}", text);
}

json account_of(const Histogram& histogram) {
  json buckets = json::array();
  for (const auto& [upper, number] : histogram.buckets()) buckets.push_back({upper, number});
  return {{"count", histogram.count()},
          {"median", histogram.quantile(0.5)},
          {"p99", histogram.quantile(0.99)},
          {"max", histogram.maximum()},
          {"histogram", buckets}};
}

json account_head(const std::string& executable, const ServiceSettings& settings,
                  const Privileges& privileges, bool complete) {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return {{"schema_version", 1},
          {"executable", executable},
          {"version", program_version},
          {"scheduling", privileges.scheduling},
          {"memory_locked", privileges.memory_locked},
          {"cpu_pinned", privileges.cpu ? json(*privileges.cpu) : json(nullptr)},
          {"spin_ns", settings.spin_ns},
          {"virtual_time", settings.virtual_time},
          {"complete", complete},
          {"seed", settings.seed},
          {"cpu",
           {{"user_s", seconds(usage.ru_utime)},
            {"system_s", seconds(usage.ru_stime)},
            {"max_resident_bytes", usage.ru_maxrss * 1024}}}};
}

}  // namespace nagi::runtime
