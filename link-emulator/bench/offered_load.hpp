// SPDX-License-Identifier: Apache-2.0
//
// The load that bench-source and bench-injector offer, with its options on their command lines.
#pragma once

#include <netinet/ether.h>

#include <CLI/CLI.hpp>
#include <cstdint>
#include <cstring>
#include <string>

#include "numbered_frame.hpp"

namespace nagi::bench {

struct OfferedLoad {
  std::string interface;
  MacAddress destination{};
  std::size_t frame_bytes = 1000;  // Ethernet header to end, without FCS
  double rate = 0;                 // frames per second; 0 means as fast as possible
  std::uint32_t burst = 1;         // frames sent at once
  double seconds = 1;
};

inline void add_options(CLI::App& app, OfferedLoad& load) {
  app.add_option("interface", load.interface, "interface at which the frames are offered")
      ->required();
  app.add_option_function<std::string>(
         "--to-mac",
         [&load](const std::string& text) {
           const ether_addr* mac = ether_aton(text.c_str());
           if (mac == nullptr) throw CLI::ValidationError("--to-mac: not a MAC address: " + text);
           std::memcpy(load.destination.data(), mac, ETH_ALEN);
         },
         "MAC address of the destination")
      ->required();
  app.add_option("--frame-bytes", load.frame_bytes,
                 "length from the Ethernet header to the end, without FCS")
      ->capture_default_str()
      ->check(CLI::Range(min_frame_bytes, std::size_t{1514}));
  app.add_option("--rate", load.rate, "frames per second; 0 means as fast as possible")
      ->capture_default_str()
      ->check(CLI::Range(0.0, 1e8));
  app.add_option("--burst", load.burst, "frames to send at once")
      ->capture_default_str()
      ->check(CLI::Range(1, 256));
  app.add_option("--seconds", load.seconds, "duration of sending")
      ->capture_default_str()
      ->check(CLI::Range(0.001, 1e6));
}

}  // namespace nagi::bench
