// SPDX-License-Identifier: Apache-2.0
//
// Model of the packet memory at a memory port of the core. The memory processes commands in order.
// A command writes or reads one word. A read returns its word one clock cycle after the command.
#pragma once

#include <cstddef>
#include <cstdlib>
#include <deque>
#include <memory>
#include <new>

#include "Vnagi_link_core.h"

namespace nagi::fpga {

/// The signals of a memory port of the core.
struct MemoryPort {
  using Word = VlWide<16>;

  const CData& command_valid;
  CData& command_ready;
  const CData& command_writes;
  const IData& address;
  const CData& write_valid;
  CData& write_ready;
  const Word& write_data;
  CData& read_valid;
  const CData& read_ready;
  Word& read_data;
};

class PacketMemory {
 public:
  PacketMemory(const MemoryPort& port, std::size_t words)
      : port_(port),
        words_(static_cast<MemoryPort::Word*>(std::calloc(words, sizeof(MemoryPort::Word)))) {
    if (!words_) throw std::bad_alloc();
    port_.command_ready = 1;
    port_.write_ready = 1;
    port_.read_valid = 0;
  }

  /// Accept what the core transfers at the next clock edge, given its outputs before the edge. The
  /// inputs of the port change only in drive().
  void sample() {
    if (read_valid_ && port_.read_ready != 0) read_valid_ = false;
    if (port_.command_valid != 0) commands_.push_back({port_.command_writes != 0, port_.address});
    if (port_.write_valid != 0) written_.push_back(port_.write_data);
    while (!commands_.empty()) {
      const Command& next = commands_.front();
      if (next.writes) {
        if (written_.empty()) break;
        words_[next.address] = written_.front();
        written_.pop_front();
      } else {
        if (read_valid_) break;
        read_ = words_[next.address];
        read_valid_ = true;
      }
      commands_.pop_front();
    }
  }

  /// Set the port's inputs for the next clock cycle.
  void drive() {
    port_.read_valid = read_valid_ ? 1 : 0;
    if (read_valid_) port_.read_data = read_;
  }

  [[nodiscard]] bool is_idle() const { return commands_.empty() && !read_valid_; }

 private:
  struct Command {
    bool writes = false;
    IData address = 0;
  };
  struct Free {
    void operator()(MemoryPort::Word* words) const { std::free(words); }
  };

  MemoryPort port_;
  std::unique_ptr<MemoryPort::Word[], Free> words_;  // calloc() maps a page at its first use
  std::deque<Command> commands_;
  std::deque<MemoryPort::Word> written_;
  MemoryPort::Word read_{};
  bool read_valid_ = false;
};

}  // namespace nagi::fpga
