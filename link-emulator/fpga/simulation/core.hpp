// SPDX-License-Identifier: Apache-2.0
//
// Simulation of the core of the FPGA link emulator (rtl/nagi_link_core.v). The core's time stands
// still while the core works, and then jumps to the next event. So only packets cost computing
// time.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "simulation/packet_memory.hpp"

namespace nagi::fpga {

constexpr std::int64_t tick_ns = 8;
constexpr std::size_t beat_bytes = 64;
// The size of a direction's packet memory; nagi/backends/fpga/plan.py has the same value.
constexpr std::size_t address_bits = 18;  // words of 64 bytes: 16 MiB
constexpr std::size_t packet_bits = 14;

/// The core's record of a packet, with the frame if the packet was delivered.
struct Departure {
  std::int64_t arrived_ns = 0;
  std::int64_t left_ns = 0;
  std::uint32_t index = 0;
  std::uint32_t identity = 0;
  std::uint32_t late_ns = 0;
  std::uint16_t ip_bytes = 0;
  std::uint8_t direction = 0;
  std::uint8_t fate = 0;
  std::uint8_t ecn = 0;
  bool marked = false;
  std::vector<std::byte> frame;
};

class Core {
 public:
  Core();
  Core(const Core&) = delete;
  Core& operator=(const Core&) = delete;
  ~Core();

  void write_register(std::uint32_t address, std::uint32_t value);
  [[nodiscard]] std::uint32_t read_register(std::uint32_t address);
  /// Write or read a register of 64 bits, low word first. `address` is that of the low word.
  void write_long(std::uint32_t address, std::uint64_t value);
  [[nodiscard]] std::uint64_t read_long(std::uint32_t address);

  /// Set the time to a tick that is not earlier than the current one, and let the core process all
  /// events that are due. Throws std::runtime_error if the core does not become idle.
  void set_time(std::int64_t now_ns);
  /// Let a frame arrive at the current time. Throws std::runtime_error if the frame is empty or too
  /// long, or if the core does not accept the frame.
  void offer(std::size_t direction, std::span<const std::byte> frame);
  /// Return the tick of the next event if no further frame arrives, or nullopt if there is none.
  [[nodiscard]] std::optional<std::int64_t> next_tick() const;
  /// Return the packets that have left since the last call, in order.
  std::vector<Departure> take_departures();
  /// Return the number of clock cycles so far.
  [[nodiscard]] std::uint64_t clocks() const { return clocks_; }

 private:
  static constexpr std::size_t directions = 2;

  struct Input {
    VlWide<16>& data;
    QData& keep;
    CData& valid;
    const CData& ready;
    CData& last;
    VlWide<3>& user;
    bool is_taken;  // true if the core took a beat at the last clock edge
  };
  struct Output {
    const VlWide<16>& data;
    const QData& keep;
    const CData& valid;
    CData& ready;
    const CData& last;
    std::vector<std::byte> frame;                // the part of the current frame that has left
    std::vector<std::vector<std::byte>> frames;  // complete frames whose record has not come
  };

  void clock();
  /// Run the clock until the core and its memories are idle.
  void settle();
  void take_outputs();
  void take_record();

  std::unique_ptr<VerilatedContext> context_;
  std::unique_ptr<Vnagi_link_core> top_;
  std::vector<PacketMemory> memories_;
  std::vector<Input> inputs_;    // by direction
  std::vector<Output> outputs_;  // by direction
  std::vector<Departure> records_;
  std::int64_t now_ns_ = 0;
  std::uint64_t clocks_ = 0;
};

}  // namespace nagi::fpga
