// SPDX-License-Identifier: Apache-2.0
#include "simulation/core.hpp"

#include <algorithm>
#include <cstring>
#include <stdexcept>
#include <utility>

namespace nagi::fpga {

namespace {

// The core's output `idle` follows a new time, or a beat, after this number of clocks.
constexpr int clocks_of_time = 2;
// Limit of the clocks to wait for an answer. A frame takes far fewer.
constexpr int max_clocks = 1'000'000;
constexpr int clocks_of_reset = 16;
constexpr std::size_t longest_frame = 1536;

/// Return the bits [from, from + count) of a record.
std::uint64_t bits(const VlWide<8>& record, unsigned from, unsigned count) {
  const std::uint64_t low = record[from / 32];
  const std::uint64_t middle = from / 32 + 1 < 8 ? record[from / 32 + 1] : 0;
  const std::uint64_t high = from / 32 + 2 < 8 ? record[from / 32 + 2] : 0;
  const unsigned shift = from % 32;
  std::uint64_t value = (middle << 32U | low) >> shift;
  if (shift != 0) value |= high << (64 - shift);
  return count == 64 ? value : value & ((std::uint64_t{1} << count) - 1);
}

}  // namespace

Core::Core()
    : context_(std::make_unique<VerilatedContext>()),
      top_(std::make_unique<Vnagi_link_core>(context_.get(), "")) {
  Vnagi_link_core& top = *top_;
  constexpr std::size_t words = std::size_t{1} << address_bits;
  memories_.reserve(directions);
  memories_.emplace_back(
      MemoryPort{top.mem_fwd_cmd_valid, top.mem_fwd_cmd_ready, top.mem_fwd_cmd_we,
                 top.mem_fwd_cmd_addr, top.mem_fwd_wdata_valid, top.mem_fwd_wdata_ready,
                 top.mem_fwd_wdata, top.mem_fwd_rdata_valid, top.mem_fwd_rdata_ready,
                 top.mem_fwd_rdata},
      words);
  memories_.emplace_back(
      MemoryPort{top.mem_bwd_cmd_valid, top.mem_bwd_cmd_ready, top.mem_bwd_cmd_we,
                 top.mem_bwd_cmd_addr, top.mem_bwd_wdata_valid, top.mem_bwd_wdata_ready,
                 top.mem_bwd_wdata, top.mem_bwd_rdata_valid, top.mem_bwd_rdata_ready,
                 top.mem_bwd_rdata},
      words);
  inputs_.push_back({top.s_axis_a_tdata, top.s_axis_a_tkeep, top.s_axis_a_tvalid,
                     top.s_axis_a_tready, top.s_axis_a_tlast, top.s_axis_a_tuser, false});
  inputs_.push_back({top.s_axis_b_tdata, top.s_axis_b_tkeep, top.s_axis_b_tvalid,
                     top.s_axis_b_tready, top.s_axis_b_tlast, top.s_axis_b_tuser, false});
  // Frames of the forward direction leave at port b.
  outputs_.push_back({top.m_axis_b_tdata,
                      top.m_axis_b_tkeep,
                      top.m_axis_b_tvalid,
                      top.m_axis_b_tready,
                      top.m_axis_b_tlast,
                      {},
                      {}});
  outputs_.push_back({top.m_axis_a_tdata,
                      top.m_axis_a_tkeep,
                      top.m_axis_a_tvalid,
                      top.m_axis_a_tready,
                      top.m_axis_a_tlast,
                      {},
                      {}});
  for (Output& output : outputs_) output.ready = 1;
  top.m_axis_record_tready = 1;
  top.rst = 1;
  for (int i = 0; i < clocks_of_reset; ++i) clock();
  top.rst = 0;
  settle();
}

Core::~Core() { top_->final(); }

void Core::clock() {
  Vnagi_link_core& top = *top_;
  top.clk = 0;
  top.eval();
  for (Input& input : inputs_) input.is_taken = input.valid != 0 && input.ready != 0;
  take_outputs();
  for (PacketMemory& memory : memories_) memory.sample();
  top.clk = 1;
  top.eval();
  for (PacketMemory& memory : memories_) memory.drive();
  ++clocks_;
}

void Core::take_outputs() {
  for (Output& output : outputs_) {
    if (output.valid == 0) continue;
    const auto bytes = static_cast<std::size_t>(__builtin_popcountll(output.keep));
    const auto* beat = reinterpret_cast<const std::byte*>(output.data.data());
    output.frame.insert(output.frame.end(), beat, beat + bytes);
    if (output.last != 0) output.frames.push_back(std::exchange(output.frame, {}));
  }
  if (top_->m_axis_record_tvalid != 0) take_record();
}

void Core::take_record() {
  const VlWide<8>& record = top_->m_axis_record_tdata;
  Departure departure;
  departure.arrived_ns = static_cast<std::int64_t>(bits(record, 0, 64));
  departure.left_ns = static_cast<std::int64_t>(bits(record, 64, 64));
  departure.index = static_cast<std::uint32_t>(bits(record, 128, 32));
  departure.identity = static_cast<std::uint32_t>(bits(record, 160, 32));
  departure.ip_bytes = static_cast<std::uint16_t>(bits(record, 192, 16));
  departure.fate = static_cast<std::uint8_t>(bits(record, 208, 4));
  departure.ecn = static_cast<std::uint8_t>(bits(record, 212, 2));
  departure.marked = bits(record, 214, 1) != 0;
  departure.direction = static_cast<std::uint8_t>(bits(record, 215, 1));
  departure.late_ns = static_cast<std::uint32_t>(bits(record, 216, 32));
  records_.push_back(std::move(departure));
}

void Core::settle() {
  for (int i = 0; i < clocks_of_time; ++i) clock();
  for (int i = 0; i < max_clocks; ++i) {
    const bool has_memory_work = std::ranges::any_of(
        memories_, [](const PacketMemory& memory) { return !memory.is_idle(); });
    if (top_->idle != 0 && !has_memory_work) return;
    clock();
  }
  throw std::runtime_error("the core does not become idle");
}

void Core::write_register(std::uint32_t address, std::uint32_t value) {
  Vnagi_link_core& top = *top_;
  top.reg_addr = static_cast<SData>(address);
  top.reg_wr_data = value;
  top.reg_wr_en = 1;
  for (int i = 0; i < max_clocks; ++i) {
    clock();
    if (top.reg_ack != 0) break;
  }
  top.reg_wr_en = 0;
  clock();
}

std::uint32_t Core::read_register(std::uint32_t address) {
  Vnagi_link_core& top = *top_;
  top.reg_addr = static_cast<SData>(address);
  top.reg_rd_en = 1;
  for (int i = 0; i < max_clocks; ++i) {
    clock();
    if (top.reg_ack != 0) break;
  }
  const std::uint32_t value = top.reg_rd_data;
  top.reg_rd_en = 0;
  clock();
  return value;
}

void Core::write_long(std::uint32_t address, std::uint64_t value) {
  write_register(address, static_cast<std::uint32_t>(value));
  write_register(address + 4, static_cast<std::uint32_t>(value >> 32U));
}

std::uint64_t Core::read_long(std::uint32_t address) {
  const std::uint64_t low = read_register(address);
  return low | static_cast<std::uint64_t>(read_register(address + 4)) << 32U;
}

void Core::set_time(std::int64_t now_ns) {
  now_ns_ = now_ns;
  top_->time_ns = static_cast<QData>(now_ns);
  settle();
}

void Core::offer(std::size_t direction, std::span<const std::byte> frame) {
  if (frame.empty() || frame.size() > longest_frame) {
    throw std::runtime_error("a frame of " + std::to_string(frame.size()) +
                             " bytes: the core takes up to " + std::to_string(longest_frame));
  }
  Input& input = inputs_.at(direction);
  const auto stamp = static_cast<std::uint64_t>(now_ns_);
  for (std::size_t at = 0; at < frame.size(); at += beat_bytes) {
    const std::size_t bytes = std::min(beat_bytes, frame.size() - at);
    const bool is_last = at + bytes == frame.size();
    std::memcpy(input.data.data(), &frame[at], bytes);
    input.keep = bytes == beat_bytes ? ~QData{0} : (QData{1} << bytes) - 1;
    input.last = is_last ? 1 : 0;
    // Bit 0 is 0, because the frame is valid. The other bits are the instant of its arrival.
    input.user[0] = is_last ? static_cast<EData>(stamp << 1U) : 0;
    input.user[1] = is_last ? static_cast<EData>(stamp >> 31U) : 0;
    input.user[2] = is_last ? static_cast<EData>(stamp >> 63U) : 0;
    input.valid = 1;
    input.is_taken = false;
    for (int i = 0; !input.is_taken; ++i) {
      if (i == max_clocks) throw std::runtime_error("the core accepts no frames");
      clock();
    }
    input.valid = 0;
  }
  settle();
}

std::optional<std::int64_t> Core::next_tick() const {
  const QData due = top_->next_due_ns;
  if (due == ~QData{0}) return std::nullopt;
  const auto ns = static_cast<std::int64_t>(due);
  return ns + (tick_ns - ns % tick_ns) % tick_ns;
}

std::vector<Departure> Core::take_departures() {
  std::array<std::size_t, directions> next{};
  for (Departure& departure : records_) {
    if (departure.fate != 0) continue;
    std::vector<std::vector<std::byte>>& frames = outputs_.at(departure.direction).frames;
    std::size_t& place = next.at(departure.direction);
    if (place >= frames.size()) throw std::runtime_error("a packet left the core without a frame");
    departure.frame = std::move(frames[place++]);
  }
  for (std::size_t i = 0; i < directions; ++i) {
    if (next.at(i) != outputs_[i].frames.size()) {
      throw std::runtime_error("a frame left the core without a record");
    }
    outputs_[i].frames.clear();
  }
  return std::exchange(records_, {});
}

}  // namespace nagi::fpga
