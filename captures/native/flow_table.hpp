// SPDX-License-Identifier: Apache-2.0
//
// Connections by who talks to whom, in either direction. A packet of the same connection as the one
// before costs a comparison; others a look into a hash table.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <vector>

#include "native/decode.hpp"

namespace nagi::captures {

/// `T` has `endpoints` (of direction 0 and 1) and `number`.
template <typename T>
class FlowTable {
 public:
  FlowTable() : slots_(1024) {}
  FlowTable(const FlowTable&) = delete;
  FlowTable& operator=(const FlowTable&) = delete;

  /// The connection added last with these endpoints, and which of its directions they are; null if
  /// there is none.
  T* find(const Endpoints& endpoints, unsigned& direction) {
    if (last_ != nullptr) [[likely]] {
      if (last_->endpoints[0] == endpoints) {
        direction = 0;
        return last_;
      }
      if (last_->endpoints[1] == endpoints) {
        direction = 1;
        return last_;
      }
    }
    const std::size_t slot = slot_of(endpoints);
    if (slots_[slot] == 0) return nullptr;
    last_ = &flows_[slots_[slot] - 1];
    direction = last_->endpoints[0] == endpoints ? 0 : 1;
    return last_;
  }

  /// Adds a connection whose direction 0 has these endpoints; find() finds it from now on.
  T& add(const Endpoints& endpoints) {
    if (2 * (used_ + 1) > slots_.size()) grow();
    T& flow = flows_.emplace_back();
    flow.number = static_cast<std::uint32_t>(flows_.size() - 1);
    flow.endpoints = {endpoints, endpoints.turned()};
    const std::size_t slot = slot_of(endpoints);
    if (slots_[slot] == 0) ++used_;
    slots_[slot] = flow.number + 1;
    last_ = &flow;
    return flow;
  }

  [[nodiscard]] std::deque<T>& flows() { return flows_; }

 private:
  /// The same for both directions.
  static std::size_t hash(const Endpoints& endpoints) {
    const auto mix = [](const std::array<std::uint64_t, 2>& address, std::uint16_t port) {
      std::uint64_t value = (address[0] ^ (std::uint64_t{port} << 40)) * 0x9e3779b97f4a7c15;
      value = ((value ^ (value >> 29)) + address[1]) * 0xbf58476d1ce4e5b9;
      return value ^ (value >> 32);
    };
    const std::uint64_t sum = mix(endpoints.source, endpoints.source_port()) +
                              mix(endpoints.destination, endpoints.destination_port());
    return ((sum + endpoints.protocol()) * 0x94d049bb133111eb) >> 20;
  }
  /// Where the endpoints are, or where they would be.
  [[nodiscard]] std::size_t slot_of(const Endpoints& endpoints) const {
    const std::size_t mask = slots_.size() - 1;
    std::size_t slot = hash(endpoints) & mask;
    while (slots_[slot] != 0) {
      const T& flow = flows_[slots_[slot] - 1];
      if (flow.endpoints[0] == endpoints || flow.endpoints[1] == endpoints) break;
      slot = (slot + 1) & mask;
    }
    return slot;
  }
  void grow() {
    std::vector<std::uint32_t> larger(2 * slots_.size());
    slots_.swap(larger);
    for (const std::uint32_t each : larger) {
      if (each != 0) slots_[slot_of(flows_[each - 1].endpoints[0])] = each;
    }
  }

  std::deque<T> flows_;
  std::vector<std::uint32_t> slots_;  // a connection's number + 1; 0: free
  std::size_t used_ = 0;
  T* last_ = nullptr;
};

}  // namespace nagi::captures
