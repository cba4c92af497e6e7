// SPDX-License-Identifier: Apache-2.0
//
// Simulates the gateware of a board (boards/simulated.py) by Verilator, with network interfaces of
// this host at the board's ports:
//
//   nagi-board-simulation TAP_A TAP_B
//
// The program creates a TAP interface for each port in its network namespace, and a pseudo terminal
// for the UART, whose path it prints. A frame that the kernel sends to a TAP interface enters the
// MAC over GMII, with preamble and FCS. A frame that the MAC sends leaves at the TAP interface. The
// board's time passes much more slowly than real time. After SIGTERM, the program prints the number
// of clocks and the number of frames that were not valid, and ends.
#include <fcntl.h>
#include <linux/if.h>
#include <linux/if_tun.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "Vtop.h"

namespace {

constexpr std::size_t min_frame = 60;
constexpr int gap_clocks = 12;
constexpr int preamble_bytes = 7;
constexpr std::uint8_t preamble = 0x55;
constexpr std::uint8_t start_of_frame = 0xD5;
constexpr int clocks_per_bit = 125;   // of the UART: 125 MHz / 1 Mbaud
constexpr int clocks_per_poll = 256;  // between two reads of an interface without traffic

volatile std::sig_atomic_t is_over = 0;

/// Return the Ethernet FCS (CRC-32) of the first `count` bytes.
std::uint32_t fcs_of(const std::vector<std::uint8_t>& bytes, std::size_t count) {
  std::uint32_t remainder = ~0U;
  for (std::size_t i = 0; i < count; ++i) {
    remainder ^= bytes[i];
    for (int bit = 0; bit < 8; ++bit)
      remainder = (remainder >> 1U) ^ ((remainder & 1U) != 0 ? 0xEDB88320U : 0U);
  }
  return ~remainder;
}

[[noreturn]] void fail(const std::string& what) {
  throw std::runtime_error(what + ": " + std::strerror(errno));
}

/// A TAP interface that behaves like a PHY with a cable.
class Port {
 public:
  explicit Port(const char* name) : file_(open("/dev/net/tun", O_RDWR | O_NONBLOCK)) {
    if (file_ < 0) fail("/dev/net/tun");
    ifreq request{};
    std::strncpy(request.ifr_name, name, IFNAMSIZ - 1);
    request.ifr_flags = IFF_TAP | IFF_NO_PI;
    if (ioctl(file_, TUNSETIFF, &request) < 0) fail(name);
  }
  Port(const Port&) = delete;
  Port& operator=(const Port&) = delete;
  ~Port() { close(file_); }

  /// Return the signals rx_dv and rx_data that the PHY sends to the board in this clock.
  std::pair<bool, std::uint8_t> received(std::uint64_t clock) {
    if (at_ == frame_.size()) {
      if (gap_ > 0 && --gap_ > 0) return {false, 0};
      if (clock % clocks_per_poll != 0 && !was_busy_) return {false, 0};
      was_busy_ = take();
      if (!was_busy_) return {false, 0};
    }
    const std::uint8_t byte = frame_[at_++];
    if (at_ == frame_.size()) gap_ = gap_clocks;
    return {true, byte};
  }

  /// Accept the signals tx_en and tx_data that the board sends to the PHY in this clock.
  void sent(bool is_valid, std::uint8_t byte) {
    if (is_valid) {
      out_.push_back(byte);
    } else if (!out_.empty()) {
      give();
      out_.clear();
    }
  }

  /// Return the number of invalid frames of the board.
  [[nodiscard]] std::uint64_t bad() const { return bad_; }

 private:
  /// Read the next frame from the kernel and add preamble and FCS. Return false if there is none.
  bool take() {
    std::array<std::uint8_t, 2048> buffer{};
    const ssize_t size = read(file_, buffer.data(), buffer.size());
    if (size <= 0) return false;
    std::vector<std::uint8_t> body(buffer.begin(), buffer.begin() + size);
    if (body.size() < min_frame) body.resize(min_frame);
    const std::uint32_t fcs = fcs_of(body, body.size());
    for (unsigned shift = 0; shift < 32; shift += 8)
      body.push_back(static_cast<std::uint8_t>(fcs >> shift));
    frame_.assign(preamble_bytes, preamble);
    frame_.push_back(start_of_frame);
    frame_.insert(frame_.end(), body.begin(), body.end());
    at_ = 0;
    return true;
  }

  /// Pass a frame of the board to the kernel, or count it as bad if it is not valid.
  void give() {
    std::size_t start = 0;
    while (start < out_.size() && out_[start] == preamble) ++start;
    const bool is_frame = start == preamble_bytes && start < out_.size() &&
                          out_[start] == start_of_frame && out_.size() >= start + 1 + min_frame + 4;
    if (!is_frame) {
      ++bad_;
      return;
    }
    const std::vector<std::uint8_t> body(out_.begin() + static_cast<long>(start) + 1, out_.end());
    const std::size_t size = body.size() - 4;
    std::uint32_t fcs = 0;
    for (std::size_t i = 0; i < 4; ++i) fcs |= std::uint32_t{body[size + i]} << (8 * i);
    if (fcs != fcs_of(body, size)) {
      ++bad_;
      return;
    }
    // An interface that is down accepts no frame. The frame is lost, as without a cable.
    if (write(file_, body.data(), size) < 0 && errno != EIO && errno != EAGAIN) fail("TAP");
  }

  int file_;
  std::vector<std::uint8_t> frame_;
  std::size_t at_ = 0;
  int gap_ = 0;
  bool was_busy_ = false;
  std::vector<std::uint8_t> out_;
  std::uint64_t bad_ = 0;
};

/// A pseudo terminal at the UART's pins: eight bits, no parity, one stop bit.
class Uart {
 public:
  Uart() : file_(posix_openpt(O_RDWR | O_NOCTTY | O_NONBLOCK)) {
    if (file_ < 0 || grantpt(file_) != 0 || unlockpt(file_) != 0) fail("pseudo terminal");
    // other_ keeps the terminal open when a client closes it. Raw mode prevents an echo.
    other_ = open(ptsname(file_), O_RDWR | O_NOCTTY);
    termios settings{};
    tcgetattr(other_, &settings);
    cfmakeraw(&settings);
    tcsetattr(other_, TCSANOW, &settings);
  }
  Uart(const Uart&) = delete;
  Uart& operator=(const Uart&) = delete;
  ~Uart() {
    close(other_);
    close(file_);
  }

  [[nodiscard]] const char* path() const { return ptsname(file_); }

  /// Return the level of the board's receiving pin in this clock.
  bool level(std::uint64_t clock) {
    if (left_ == 0) {
      std::uint8_t byte = 0;
      if (clock % clocks_per_poll != 0 || read(file_, &byte, 1) != 1) return true;
      bits_ = (1U << 9U) | (std::uint32_t{byte} << 1U);  // start bit, data, stop bit
      left_ = 10 * clocks_per_bit;
    }
    const int bit = (10 * clocks_per_bit - left_--) / clocks_per_bit;
    return ((bits_ >> static_cast<unsigned>(bit)) & 1U) != 0;
  }

  /// Accept the level of the board's sending pin in this clock.
  void sent(bool level) {
    if (phase_ == 0) {
      if (!level) phase_ = 10 * clocks_per_bit;
      return;
    }
    const int at = 10 * clocks_per_bit - --phase_;
    if (at % clocks_per_bit != clocks_per_bit / 2) return;
    const int bit = at / clocks_per_bit;
    if (bit >= 1 && bit <= 8)
      byte_ = static_cast<std::uint8_t>((byte_ >> 1U) | (level ? 0x80U : 0U));
    if (bit == 9) {
      if (write(file_, &byte_, 1) < 0 && errno != EAGAIN) fail("pseudo terminal");
      phase_ = 0;
    }
  }

 private:
  int file_;
  int other_ = -1;
  std::uint32_t bits_ = 0;
  int left_ = 0;
  int phase_ = 0;
  std::uint8_t byte_ = 0;
};

void run(const char* tap_a, const char* tap_b) {
  Port a(tap_a);
  Port b(tap_b);
  Uart uart;
  VerilatedContext context;
  Vtop top(&context);
  std::printf("%s\n", uart.path());
  std::fflush(stdout);
  top.serial_rx = 1;
  top.clocks_rst = 1;
  std::uint64_t clock = 0;
  // Each round is a clock of 125 MHz. `core` rises in every second round, `sys` in every fourth.
  for (; is_over == 0; ++clock) {
    if (clock == 16) top.clocks_rst = 0;
    const auto [a_valid, a_data] = a.received(clock);
    const auto [b_valid, b_data] = b.received(clock);
    top.gmii0_rx_dv = a_valid;
    top.gmii0_rx_data = a_data;
    top.gmii1_rx_dv = b_valid;
    top.gmii1_rx_data = b_data;
    top.serial_rx = uart.level(clock);
    top.eval();
    a.sent(top.gmii0_tx_en != 0, top.gmii0_tx_data);
    b.sent(top.gmii1_tx_en != 0, top.gmii1_tx_data);
    uart.sent(top.serial_tx != 0);
    top.clocks_link = top.clocks_a_rx = top.clocks_b_rx = 1;
    top.clocks_core = clock % 2 == 0 ? 1 : 0;
    top.clocks_sys = clock % 4 == 0 ? 1 : 0;
    top.eval();
    top.clocks_link = top.clocks_a_rx = top.clocks_b_rx = 0;
  }
  std::printf("%llu clocks, %llu bad frames\n", static_cast<unsigned long long>(clock),
              static_cast<unsigned long long>(a.bad() + b.bad()));
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) {
    std::fprintf(stderr, "usage: %s TAP_A TAP_B\n", argv[0]);
    return 2;
  }
  for (const int signal : {SIGTERM, SIGINT, SIGHUP}) std::signal(signal, [](int) { is_over = 1; });
  try {
    run(argv[1], argv[2]);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s: %s\n", argv[0], error.what());
    return 1;
  }
  return 0;
}
