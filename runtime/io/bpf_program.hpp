// SPDX-License-Identifier: Apache-2.0
//
// BPF programs of a few instructions, written down as such: no compiler, no object file. The
// instruction set: RFC 9669. Programs are attached by links, which end with the process.
#pragma once

#include <bpf/bpf.h>
#include <linux/bpf.h>

#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <vector>

#include "io/descriptor.hpp"

namespace nagi::io {

constexpr int tcx_ingress = 46;  // BPF_TCX_INGRESS, newer than Debian 12's headers

/// Collects instructions; a jump goes to a label that is placed later.
class Assembler {
 public:
  using Label = std::size_t;

  void move(int to, int from) { put(BPF_ALU64 | BPF_MOV | BPF_X, to, from, 0, 0); }
  void move_value(int to, std::int32_t value) { put(BPF_ALU64 | BPF_MOV | BPF_K, to, 0, 0, value); }
  void add_value(int to, std::int32_t value) { put(BPF_ALU64 | BPF_ADD | BPF_K, to, 0, 0, value); }
  void add(int to, int from) { put(BPF_ALU64 | BPF_ADD | BPF_X, to, from, 0, 0); }
  /// `size`: BPF_B, BPF_H, BPF_W or BPF_DW.
  void load(int size, int to, int base, std::size_t offset) {
    put(BPF_LDX | BPF_MEM | size, to, base, static_cast<int>(offset), 0);
  }
  void store(int size, int base, int offset, int from) {
    put(BPF_STX | BPF_MEM | size, base, from, offset, 0);
  }
  void atomic_add(int base, std::size_t offset, int from) {
    put(BPF_STX | BPF_ATOMIC | BPF_DW, base, from, static_cast<int>(offset), BPF_ADD);
  }
  void load_map(int to, int map) { put_wide(to, BPF_PSEUDO_MAP_FD, map, 0); }
  /// The address `offset` bytes into the only value of an array.
  void load_map_value(int to, int map, int offset) {
    put_wide(to, BPF_PSEUDO_MAP_VALUE, map, offset);
  }
  /// Ends the program: the frame whose context is in `context` goes to the AF_XDP socket in
  /// `sockets`, or, where there is none for its queue, has the XDP verdict `otherwise`.
  void redirect_to_socket(int context, int sockets, std::int32_t otherwise) {
    load(BPF_W, BPF_REG_2, context, offsetof(xdp_md, rx_queue_index));
    load_map(BPF_REG_1, sockets);
    move_value(BPF_REG_3, otherwise);
    call(BPF_FUNC_redirect_map);
    leave();
  }
  void call(int helper) { put(BPF_JMP | BPF_CALL, 0, 0, 0, helper); }
  void leave(std::int32_t verdict) {
    move_value(BPF_REG_0, verdict);
    leave();
  }
  void leave() { put(BPF_JMP | BPF_EXIT, 0, 0, 0, 0); }

  Label label() {
    labels_.push_back(0);
    return labels_.size() - 1;
  }
  void place(Label label) { labels_[label] = code_.size(); }
  /// `condition`: BPF_JEQ, BPF_JNE, BPF_JGT...
  void jump_if(int condition, int left, int right, Label to) {
    remember_jump(to);
    put(BPF_JMP | condition | BPF_X, left, right, 0, 0);
  }
  void jump_if_value(int condition, int left, std::int32_t value, Label to) {
    remember_jump(to);
    put(BPF_JMP | condition | BPF_K, left, 0, 0, value);
  }

  /// Throws std::system_error with what the kernel's verifier says.
  [[nodiscard]] Descriptor load(bpf_prog_type type, const char* name) {
    for (const auto& [at, to] : jumps_) {
      code_[at].off = static_cast<std::int16_t>(labels_[to] - at - 1);
    }
    int program = bpf_prog_load(type, name, license, code_.data(), code_.size(), nullptr);
    if (program >= 0) return Descriptor(program);
    std::string log(1 << 20, '\0');  // once more, to hear why
    LIBBPF_OPTS(bpf_prog_load_opts, options);
    options.log_buf = log.data();
    options.log_size = static_cast<std::uint32_t>(log.size());
    options.log_level = 1;
    program = bpf_prog_load(type, name, license, code_.data(), code_.size(), &options);
    if (program < 0) throw_errno("loading BPF program: " + std::string(log.c_str()));
    return Descriptor(program);
  }

 private:
  static constexpr const char* license = "Apache-2.0";

  struct Jump {
    std::size_t at;
    Label to;
  };

  void remember_jump(Label to) { jumps_.push_back({code_.size(), to}); }
  void put(int code, int to, int from, int offset, std::int32_t value) {
    bpf_insn instruction{};
    instruction.code = static_cast<std::uint8_t>(code);
    instruction.dst_reg = static_cast<std::uint8_t>(to & 0xf);
    instruction.src_reg = static_cast<std::uint8_t>(from & 0xf);
    instruction.off = static_cast<std::int16_t>(offset);
    instruction.imm = value;
    code_.push_back(instruction);
  }
  void put_wide(int to, int kind, std::int32_t first, std::int32_t second) {
    put(BPF_LD | BPF_IMM | BPF_DW, to, kind, 0, first);
    put(0, 0, 0, 0, second);
  }

  std::vector<bpf_insn> code_;
  std::vector<std::size_t> labels_;
  std::vector<Jump> jumps_;
};

/// A map through which a program redirects the frames of queue 0 to an AF_XDP socket.
/// Throws std::system_error.
inline Descriptor make_socket_map(int socket) {
  Descriptor map(bpf_map_create(BPF_MAP_TYPE_XSKMAP, "sockets", sizeof(std::uint32_t),
                                sizeof(std::uint32_t), 1, nullptr));
  if (map.get() < 0) throw_errno("cannot make an eBPF map");
  const std::uint32_t queue = 0;
  if (bpf_map_update_elem(map.get(), &queue, &socket, BPF_ANY) != 0) {
    throw_errno("cannot put the socket in its eBPF map");
  }
  return map;
}

/// Attaches a program to an interface until the descriptor is closed. `flags`: XDP_FLAGS_*.
/// Throws std::system_error.
inline Descriptor attach(int program, unsigned interface, int type, std::uint32_t flags) {
  LIBBPF_OPTS(bpf_link_create_opts, options);
  options.flags = flags;
  const int link = bpf_link_create(program, static_cast<int>(interface),
                                   static_cast<bpf_attach_type>(type), &options);
  if (link < 0) throw_errno("attaching BPF program");
  return Descriptor(link);
}

}  // namespace nagi::io
