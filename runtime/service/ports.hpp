// SPDX-License-Identifier: Apache-2.0
//
// The network interfaces of a program that moves frames between them. The interfaces are opened
// with the fastest available packet I/O, and share one pool of frames. Harmful offloads are off
// while the program runs.
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

/// An estimate of the traffic, from which the sizes of buffers follow.
struct Expected {
  /// The approximate number of frames that are held at once. Further frames are copied, which takes
  /// time but loses no frame.
  std::size_t frames_in_flight = 0;
  /// The rates at which frames arrive or leave; without a value the rate is unknown.
  std::vector<std::optional<Bitrate>> rates;
};
constexpr std::uint64_t usual_frame_bits = 8 * 1000;

class Ports {
 public:
  /// Create the pool, without opening interfaces. Throws std::system_error if an interface does not
  /// exist.
  Ports(const ServiceSettings& settings, const std::vector<std::string>& interfaces,
        const Expected& expected, Notices& notices);
  Ports(const Ports&) = delete;
  Ports& operator=(const Ports&) = delete;
  /// Switch those offloads on again that open() has switched off.
  ~Ports();

  /// Open an interface. Offloads that disturb the emulation are switched off, or are an error with
  /// the policy `refuse`. Throws InputError, or std::system_error if the kernel refuses.
  io::Port& open(const std::string& interface);

  [[nodiscard]] io::FramePool& pool() { return pool_; }
  /// Return the interfaces of all ports.
  [[nodiscard]] std::vector<std::string> interfaces() const;
  /// Return the descriptor of an interface's port.
  [[nodiscard]] int descriptor_of(const std::string& interface) const;
  /// Return the descriptors that are readable while frames wait.
  [[nodiscard]] std::vector<int> descriptors() const;
  /// Return whether receive() costs nearly nothing on all ports, so that their descriptors need no
  /// poll().
  [[nodiscard]] bool is_cheap_to_read() const;
  /// Append the frames that wait at a port, at most one batch. Complete the checksums of TCP and
  /// UDP that the sender left to hardware. Return false if no further frame waits, or if the
  /// interface no longer exists, which adds a notice.
  bool receive(io::Port& port, std::vector<io::Arrival>& arrivals);
  /// Add a notice for each port that has discarded frames longer than the MTU, once per port.
  /// receive() also does this once per second.
  void note_oversized();
  /// Return the name and the counters of a port as JSON, for the account. `counters` are the
  /// counters of the port, plus frames that were sent on its interface without the port.
  [[nodiscard]] nlohmann::json account_of(const io::Port& port,
                                          const io::PortCounters& counters) const;

 private:
  struct SwitchedOff {
    std::string interface;
    std::string offload;
  };

  /// Observations about the host behind a port, which show that its offloads are on.
  struct Behind {
    std::uint64_t checksums_completed = 0;
    bool oversized_noted = false;
    std::int64_t next_check_ns = 0;  // time of the next check of the counters
  };

  void apply_offload_policy(const std::string& interface);
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
