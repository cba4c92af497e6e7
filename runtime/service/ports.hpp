// SPDX-License-Identifier: Apache-2.0
//
// The network interfaces of a program that moves frames between them: opened by the best packet I/O
// there is, over one pool of frames, with harmful offloads switched off for as long as this lives.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/units.hpp"
#include "io/frame_pool.hpp"
#include "io/open.hpp"
#include "io/port.hpp"
#include "service/account.hpp"
#include "service/settings.hpp"

namespace nagi::runtime {

/// What is known of the traffic beforehand.
struct Expected {
  /// About how many frames are on their way at once; frames beyond that are copied, which costs
  /// time but loses nothing.
  std::size_t frames_in_flight = 0;
  /// The rates that frames come or go at; without a value: any.
  std::vector<std::optional<Bitrate>> rates;
};
constexpr std::uint64_t usual_frame_bits = 8 * 1000;

class Ports {
 public:
  /// Makes the pool. Opens nothing yet. Throws std::system_error if an interface is not there.
  Ports(const ServiceSettings& settings, const std::vector<std::string>& interfaces,
        const Expected& expected, Notices& notices);
  Ports(const Ports&) = delete;
  Ports& operator=(const Ports&) = delete;
  /// Switches offloads on again.
  ~Ports();

  /// Offloads that would spoil emulation are switched off or refused. Throws InputError, or
  /// std::system_error if the kernel refuses.
  io::Port& open(const std::string& interface);

  [[nodiscard]] io::FramePool& pool() { return pool_; }
  /// The interfaces of all ports.
  [[nodiscard]] std::vector<std::string> interfaces() const;
  /// The descriptor of an interface's port.
  [[nodiscard]] int descriptor_of(const std::string& interface) const;
  /// Descriptors that become readable when frames wait.
  [[nodiscard]] std::vector<int> descriptors() const;
  /// Whether all ports can be asked for frames at next to no cost, without their descriptors.
  [[nodiscard]] bool is_free_to_ask() const;
  /// Appends what waits at a port, at most one batch, with checksums of TCP and UDP that were left
  /// to hardware completed. False when nothing more waits, or the interface is gone, which is
  /// noted.
  bool receive(io::Port& port, std::vector<io::Arrival>& arrivals);
  /// Notes, once a port, that there were frames longer than the MTU, which are discarded. Is done
  /// every second while frames come, too.
  void note_oversized();
  /// `counters`: the port's own, or with what was sent past it.
  [[nodiscard]] nlohmann::json account_of(const io::Port& port,
                                          const io::PortCounters& counters) const;

 private:
  struct SwitchedOff {
    std::string interface;
    std::string offload;
  };

  /// What offloads of the host behind a port have come to.
  struct Behind {
    std::uint64_t checksums_completed = 0;
    bool oversized_noted = false;
    std::int64_t look_again_ns = 0;  // when counters are looked at next
  };

  void settle_offloads(const std::string& interface);
  void note_oversized(io::Port& port);
  void complete_checksums(const io::Port& port, std::span<const io::Arrival> arrivals);

  OffloadPolicy offloads_;
  Notices& notices_;
  std::uint32_t ring_;
  io::FramePool pool_;
  io::PortOpener opener_;
  std::vector<std::unique_ptr<io::Port>> ports_;
  std::vector<SwitchedOff> switched_off_;
  std::map<const io::Port*, Behind> behind_;
};

}  // namespace nagi::runtime
