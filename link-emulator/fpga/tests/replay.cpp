// SPDX-License-Identifier: Apache-2.0
//
// What the core makes of given arrivals: `nagi-link replay` for the Verilated nagi_link_top.
//
//   replay REGISTERS ARRIVALS DEPARTURES [STALL_SEED]
//
// REGISTERS: lines of an address and a value, both hexadecimal, written in their order; at the end
// the core is enabled. ARRIVALS and DEPARTURES are packets.bin's. With TIMESTAMPED the clock runs
// while time stands still, and time jumps to what happens next. Otherwise a clock takes TICKS times
// 8 ns, a frame is offered when its arrival is due, and DEPARTURES say when the core took it; if
// TICKS is 2, every other frame comes in the second tick of a clock. With a STALL_SEED, whoever
// takes frames and records is not ready in about every third clock.
//
// Frames are IPv4 with UDP, as long as their size allows. That they come out in order, whole and
// marked as the record says is checked here: exit status 1 if not. Counters, then clocks, are
// printed as JSON.
#include <array>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <deque>
#include <fstream>
#include <iostream>
#include <map>
#include <random>
#include <stdexcept>
#include <string>
#include <vector>

#include "Vtop.h"
#include "daemon/packet_record.hpp"
#include "io/ip_header.hpp"
#include "nagi_registers.h"

namespace {

using nagi::daemon::PacketRecord;
using nagi::daemon::PacketRecordHeader;
using Frame = std::vector<std::uint8_t>;

constexpr std::size_t beat_bytes = DATA_WIDTH / 8;
constexpr std::size_t ethernet_bytes = 14;
constexpr std::uint64_t never = ~std::uint64_t{0};
constexpr std::uint64_t tick_ns = 8;
constexpr std::uint64_t clock_ns = tick_ns * TICKS;
constexpr std::array<const char*, 2> names = {"forward", "backward"};

/// Of a packet: as long as the record says, and all its own.
Frame make_frame(const PacketRecord& packet, std::uint32_t number) {
  Frame frame(ethernet_bytes + packet.bytes);
  std::mt19937 random(number);
  for (std::uint8_t& byte : frame) byte = static_cast<std::uint8_t>(random());
  if (packet.bytes < 20) return frame;
  std::uint8_t* ip = frame.data() + ethernet_bytes;
  frame[12] = 8;
  frame[13] = 0;
  ip[0] = 0x45;
  ip[1] = static_cast<std::uint8_t>((random() & 0xfc) | packet.ecn);
  ip[6] = ip[7] = 0;
  ip[9] = 17;
  ip[10] = ip[11] = 0;
  std::uint32_t sum = 0;
  for (int at = 0; at < 20; at += 2) sum += static_cast<std::uint32_t>(ip[at] << 8 | ip[at + 1]);
  while (sum >> 16 != 0) sum = (sum & 0xffff) + (sum >> 16);
  ip[10] = static_cast<std::uint8_t>(~sum >> 8);
  ip[11] = static_cast<std::uint8_t>(~sum);
  return frame;
}

/// Ports of a direction.
struct Ports {
  void* in_data;
  void* in_keep;
  CData* in_valid;
  const CData* in_ready;
  CData* in_last;
  void* in_user;
  const void* out_data;
  const void* out_keep;
  const CData* out_valid;
  CData* out_ready;
  const CData* out_last;
  const CData* out_user;
};

struct Direction {
  Ports ports{};
  std::vector<PacketRecord> arrivals;
  std::vector<Frame> frames;
  std::size_t next = 0;    // the frame that is coming in, or comes next
  std::size_t offset = 0;  // bytes of it that are in
  Frame coming_out;
  std::deque<std::pair<Frame, std::uint64_t>> came_out;  // and when the first beat did
  std::uint64_t first_beat_ns = 0;
};

class Replay {
 public:
  explicit Replay(unsigned stall_seed) : stalls_(stall_seed != 0), random_(stall_seed) {
    directions_[0].ports = {&top_.s_axis_a_tdata,  &top_.s_axis_a_tkeep, &top_.s_axis_a_tvalid,
                            &top_.s_axis_a_tready, &top_.s_axis_a_tlast, &top_.s_axis_a_tuser,
                            &top_.m_axis_b_tdata,  &top_.m_axis_b_tkeep, &top_.m_axis_b_tvalid,
                            &top_.m_axis_b_tready, &top_.m_axis_b_tlast, &top_.m_axis_b_tuser};
    directions_[1].ports = {&top_.s_axis_b_tdata,  &top_.s_axis_b_tkeep, &top_.s_axis_b_tvalid,
                            &top_.s_axis_b_tready, &top_.s_axis_b_tlast, &top_.s_axis_b_tuser,
                            &top_.m_axis_a_tdata,  &top_.m_axis_a_tkeep, &top_.m_axis_a_tvalid,
                            &top_.m_axis_a_tready, &top_.m_axis_a_tlast, &top_.m_axis_a_tuser};
    top_.rst = 1;
    for (int i = 0; i < 4; ++i) clock();
    top_.rst = 0;
  }

  void configure(const std::string& path) {
    std::ifstream file(path);
    std::uint32_t address = 0;
    std::uint32_t value = 0;
    while (file >> std::hex >> address >> value) write(address, value);
    if (!file.eof()) throw std::runtime_error(path + ": is no list of addresses and values");
    write(NAGI_FPGA_CONTROL, NAGI_FPGA_CONTROL_ENABLE_MASK);
    for (int i = 0; i < 8; ++i) clock();
  }

  void load(const std::string& path) {
    for (const PacketRecord& packet : nagi::daemon::read_records(path)) {
      Direction& direction = directions_.at(packet.direction);
      direction.frames.push_back(make_frame(
          packet, static_cast<std::uint32_t>(direction.arrivals.size() * 2 + packet.direction)));
      direction.arrivals.push_back(packet);
    }
  }

  void run() {
    std::uint64_t quiet = 0;
    for (;;) {
      const bool moved = step();
      if (TIMESTAMPED) {
        if (!moved && top_.idle) {
          std::uint64_t next = top_.next_due_ns;
          for (const Direction& direction : directions_) {
            if (direction.next < direction.arrivals.size()) {
              next = std::min(
                  next, static_cast<std::uint64_t>(direction.arrivals[direction.next].arrived_ns));
            }
          }
          if (next == never) return;
          top_.time_ns = std::max<std::uint64_t>(next, top_.time_ns);
        }
      } else {
        quiet = moved || !all_in() || held() != 0 ? 0 : quiet + 1;
        if (quiet > 1000) return;
        top_.time_ns += clock_ns;
      }
      if (clocks_ > limit_) throw std::runtime_error("the core hangs");
    }
  }

  void write_records(const std::string& path) {
    std::ofstream file(path, std::ios::binary);
    const PacketRecordHeader header;
    file.write(reinterpret_cast<const char*>(&header), sizeof header);
    file.write(reinterpret_cast<const char*>(records_.data()),
               static_cast<std::streamsize>(records_.size() * sizeof(PacketRecord)));
  }

  /// Frames that came out are those that went in, in the order and at the instants of the records.
  void check_frames() {
    for (const PacketRecord& record : records_) {
      Direction& direction = directions_[record.direction];
      const Frame sent = direction.frames.at(record.index);
      std::vector<std::uint8_t> expected = sent;
      nagi::io::IpHeader header({expected.data(), expected.size()});
      expect(header.identity() == record.identity, record, "identity");
      expect(header.ecn() == record.ecn, record, "ECN");
      expect(record.bytes + ethernet_bytes == sent.size(), record, "length");
      if (record.fate != 0) continue;
      if ((record.flags & nagi::daemon::marked_flag) != 0) header.mark();
      expect(!direction.came_out.empty(), record, "frame is missing");
      const auto [frame, at] = direction.came_out.front();
      direction.came_out.pop_front();
      expect(frame == expected, record, "frame is not as it was sent");
      expect(at == static_cast<std::uint64_t>(record.left_ns + record.late_ns), record, "late_ns");
    }
    for (const Direction& direction : directions_) {
      if (!direction.came_out.empty()) throw std::runtime_error("a frame without a record");
    }
  }

  void print_counters() {
    write(NAGI_FPGA_COMMAND, NAGI_FPGA_COMMAND_LATCH_MASK);
    std::cout << "{";
    for (std::size_t number = 0; number < names.size(); ++number) {
      std::cout << '"' << names[number] << "\": [";
      const std::uint32_t base = number == 0 ? NAGI_FPGA_FORWARD_BASE : NAGI_FPGA_BACKWARD_BASE;
      for (std::uint32_t counter = 0; counter < NAGI_FPGA_COUNTER_COUNT; ++counter) {
        const std::uint32_t at = base + NAGI_FPGA_DIRECTION_COUNTERS + counter * 8;
        const std::uint64_t low = read(at);
        std::cout << (counter == 0 ? "" : ", ") << (std::uint64_t{read(at + 4)} << 32 | low);
      }
      std::cout << "], ";
    }
    std::cout << "\"clocks\": " << clocks_ << "}\n";
  }

 private:
  void expect(bool holds, const PacketRecord& record, const std::string& what) {
    if (holds) return;
    throw std::runtime_error(std::string(names[record.direction]) + " packet " +
                             std::to_string(record.index) + ": " + what);
  }

  void clock() {
    top_.clk = 1;
    top_.eval();
    top_.clk = 0;
    top_.eval();
    ++clocks_;
  }

  void write(std::uint32_t address, std::uint32_t value) {
    top_.reg_addr = address;
    top_.reg_wr_data = value;
    access(top_.reg_wr_en);
  }

  std::uint32_t read(std::uint32_t address) {
    top_.reg_addr = address;
    access(top_.reg_rd_en);
    return top_.reg_rd_data;
  }

  void access(CData& enable) {
    enable = 1;
    while (!top_.reg_ack) clock();
    enable = 0;
    clock();
    clock();
  }

  [[nodiscard]] bool all_in() const {
    return directions_[0].next == directions_[0].arrivals.size() &&
           directions_[1].next == directions_[1].arrivals.size();
  }
  [[nodiscard]] std::size_t held() const {
    return directions_[0].next + directions_[1].next - records_.size();
  }

  /// One clock. Whether anything went in or came out.
  bool step() {
    bool moved = false;
    for (Direction& direction : directions_) {
      offer(direction);
      *direction.ports.out_ready = ready();
    }
    top_.m_axis_record_tready = ready();
    top_.eval();
    for (Direction& direction : directions_) {
      moved |= give(direction);
      moved |= take(direction);
    }
    if (top_.m_axis_record_tvalid && top_.m_axis_record_tready) {
      take_record();
      moved = true;
    }
    clock();
    return moved;
  }

  CData ready() { return !stalls_ || random_() % 3 != 0; }

  void offer(Direction& direction) {
    const Ports& ports = direction.ports;
    *ports.in_valid = 0;
    if (direction.next == direction.arrivals.size()) return;
    const PacketRecord& arrival = direction.arrivals[direction.next];
    const auto arrived = static_cast<std::uint64_t>(arrival.arrived_ns);
    if (direction.offset == 0 && top_.time_ns < arrived) return;
    const Frame& frame = direction.frames[direction.next];
    const std::size_t bytes = std::min(beat_bytes, frame.size() - direction.offset);
    std::uint64_t keep = bytes == 64 ? never : (std::uint64_t{1} << bytes) - 1;
    std::memset(ports.in_data, 0, beat_bytes);
    std::memcpy(ports.in_data, frame.data() + direction.offset, bytes);
    std::memcpy(ports.in_keep, &keep, beat_bytes < 8 ? 1 : beat_bytes / 8);
    *ports.in_valid = 1;
    *ports.in_last = direction.offset + bytes == frame.size();
    if (TIMESTAMPED) {
      const std::uint64_t user[2] = {arrived << 1, arrived >> 63};
      std::memcpy(ports.in_user, user, 12);
    } else if (TICKS == 2) {
      const std::uint8_t user = direction.next % 2 == 0 ? 0 : 2;
      std::memcpy(ports.in_user, &user, 1);
    }
  }

  bool give(Direction& direction) {
    const Ports& ports = direction.ports;
    if (!*ports.in_valid || !*ports.in_ready) return false;
    direction.offset += beat_bytes;
    if (*ports.in_last) {
      ++direction.next;
      direction.offset = 0;
    }
    return true;
  }

  bool take(Direction& direction) {
    const Ports& ports = direction.ports;
    if (!*ports.out_valid || !*ports.out_ready) return false;
    // What the core calls now is four clocks late.
    if (direction.coming_out.empty())
      direction.first_beat_ns = now() + (*ports.out_user != 0 ? tick_ns : 0);
    std::uint64_t keep = 0;
    std::memcpy(&keep, ports.out_keep, beat_bytes < 8 ? 1 : beat_bytes / 8);
    const auto* bytes = static_cast<const std::uint8_t*>(ports.out_data);
    for (std::size_t i = 0; i < beat_bytes; ++i) {
      if ((keep >> i & 1) != 0) direction.coming_out.push_back(bytes[i]);
    }
    if (*ports.out_last) {
      direction.came_out.emplace_back(std::move(direction.coming_out), direction.first_beat_ns);
      direction.coming_out.clear();
    }
    return true;
  }

  [[nodiscard]] std::uint64_t now() const {
    return TIMESTAMPED ? top_.time_ns : top_.time_ns - 4 * clock_ns;
  }

  void take_record() {
    const auto* words = reinterpret_cast<const std::uint32_t*>(&top_.m_axis_record_tdata);
    const auto wide = [words](int at) { return words[at] | std::uint64_t{words[at + 1]} << 32; };
    PacketRecord record;
    record.arrived_ns = static_cast<std::int64_t>(wide(0));
    record.left_ns = static_cast<std::int64_t>(wide(2));
    record.index = words[4];
    record.identity = words[5];
    record.bytes = static_cast<std::uint16_t>(words[6]);
    record.fate = words[6] >> 16 & 15;
    record.ecn = words[6] >> 20 & 3;
    record.flags = (words[6] >> 22 & 1) != 0 ? nagi::daemon::marked_flag : 0;
    record.direction = words[6] >> 23 & 1;
    record.late_ns = static_cast<std::int32_t>(words[6] >> 24 | words[7] << 8);
    records_.push_back(record);
  }

  static constexpr std::uint64_t limit_ = 200'000'000;  // clocks
  Vtop top_;
  bool stalls_;
  std::mt19937 random_;
  std::array<Direction, 2> directions_;
  std::vector<PacketRecord> records_;
  std::uint64_t clocks_ = 0;
};

}  // namespace

int main(int argc, char** argv) {
  if (argc < 4) {
    std::cerr << "replay REGISTERS ARRIVALS DEPARTURES [STALL_SEED]\n";
    return 2;
  }
  try {
    Replay replay(argc > 4 ? static_cast<unsigned>(std::stoul(argv[4])) : 0);
    replay.configure(argv[1]);
    replay.load(argv[2]);
    replay.run();
    replay.write_records(argv[3]);
    replay.print_counters();
    replay.check_frames();
  } catch (const std::exception& error) {
    std::cerr << "replay: " << error.what() << '\n';
    return 1;
  }
  return 0;
}
