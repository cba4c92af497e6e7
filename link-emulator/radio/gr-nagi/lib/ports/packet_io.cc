/* SPDX-License-Identifier: Apache-2.0 */
#include "packet_io.h"

#include <fcntl.h>
#include <linux/if_tun.h>
#include <net/if.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <mutex>
#include <stdexcept>
#include <system_error>
#include <vector>

#include "io/af_packet.hpp"
#include "io/clock.hpp"
#include "io/descriptor.hpp"
#include "io/frame_pool.hpp"
#include "io/interface.hpp"

namespace gr::nagi {

namespace io = ::nagi::io;

namespace {

class Interface final : public PacketIo {
 public:
  explicit Interface(const std::string& name)
      : pool_(io::longest_frame(name) + room_for_tag), port_(io::open_af_packet(name, pool_)) {}

  [[nodiscard]] int descriptor() const override { return port_->descriptor(); }

  void receive(const Receive& receive) override {
    {
      const std::lock_guard lock(mutex_);
      port_->receive(arrivals_);
    }
    // Slots do not move in memory, so frames can be read while other frames are sent.
    for (const io::Arrival& arrival : arrivals_) {
      receive({data(arrival.frame.slot) + arrival.frame.offset, arrival.frame.length},
              arrival.monotonic_ns);
    }
    const std::lock_guard lock(mutex_);
    for (const io::Arrival& arrival : arrivals_) pool_.give_back(arrival.frame.slot);
    arrivals_.clear();
  }

  void send(std::span<const std::uint8_t> packet) override {
    const std::lock_guard lock(mutex_);
    if (packet.size() > pool_.slot_bytes()) {
      ++too_long_;
      return;
    }
    const io::Slot slot = pool_.take();
    std::memcpy(pool_.data(slot), packet.data(), packet.size());
    port_->send({{slot, 0, static_cast<std::uint32_t>(packet.size())}});
  }

  [[nodiscard]] io::PortCounters counters() override {
    const std::lock_guard lock(mutex_);
    io::PortCounters counters = port_->counters();
    counters.send_failures += too_long_;
    return counters;
  }

 private:
  static constexpr std::size_t room_for_tag = 64;

  std::uint8_t* data(io::Slot slot) {
    const std::lock_guard lock(mutex_);
    return pool_.data(slot);
  }

  std::mutex mutex_;  // protects the pool and the port
  io::FramePool pool_;
  std::unique_ptr<io::Port> port_;
  std::vector<io::Arrival> arrivals_;
  std::uint64_t too_long_ = 0;
};

class Tun final : public PacketIo {
 public:
  explicit Tun(const std::string& name)
      : descriptor_(open("/dev/net/tun", O_RDWR | O_NONBLOCK | O_CLOEXEC)) {
    if (descriptor_.get() < 0) io::throw_errno("cannot open /dev/net/tun");
    ifreq request{};
    if (name.empty() || name.size() >= IFNAMSIZ) {
      throw std::system_error(EINVAL, std::generic_category(), "not an interface's name");
    }
    std::memcpy(request.ifr_name, name.c_str(), name.size());
    request.ifr_flags = IFF_TUN | IFF_NO_PI;
    if (ioctl(descriptor_.get(), TUNSETIFF, &request) != 0)
      io::throw_errno("cannot create the interface");
  }

  [[nodiscard]] int descriptor() const override { return descriptor_.get(); }

  void receive(const Receive& receive) override {
    for (int i = 0; i < batch; ++i) {
      const ssize_t received = read(descriptor_.get(), buffer_.data(), buffer_.size());
      if (received < 0 && (errno == EAGAIN || errno == EINTR)) return;
      if (received < 0) io::throw_errno("receiving");
      ++received_;
      receive({buffer_.data(), static_cast<std::size_t>(received)},
              io::read_clock(CLOCK_MONOTONIC));
    }
  }

  void send(std::span<const std::uint8_t> packet) override {
    const bool is_sent = write(descriptor_.get(), packet.data(), packet.size()) >= 0;
    ++(is_sent ? sent_ : send_failures_);
  }

  [[nodiscard]] io::PortCounters counters() override {
    io::PortCounters counters;
    counters.received = received_;
    counters.sent = sent_;
    counters.send_failures = send_failures_;
    return counters;
  }

 private:
  static constexpr int batch = 64;

  io::Descriptor descriptor_;
  std::array<std::uint8_t, 65'536> buffer_;
  std::atomic<std::uint64_t> received_ = 0;
  std::atomic<std::uint64_t> sent_ = 0;
  std::atomic<std::uint64_t> send_failures_ = 0;
};

template <class Io>
std::unique_ptr<PacketIo> open_as(const std::string& name, const std::string& capability) {
  try {
    return std::make_unique<Io>(name);
  } catch (const std::system_error& error) {
    std::string cure;
    if (error.code().value() == EPERM || error.code().value() == EACCES) {
      cure = "; run as root, or give the process " + capability;
    } else if (error.code().value() == ENODEV) {
      cure = "; \"ip link\" lists the interfaces";
    } else if (error.code().value() == EBUSY) {
      cure = "; another program has it";
    }
    throw std::runtime_error("packet_port: " + name + ": " + error.what() + cure);
  }
}

}  // namespace

std::unique_ptr<PacketIo> open_interface(const std::string& interface) {
  return open_as<Interface>(interface, "CAP_NET_RAW");
}

std::unique_ptr<PacketIo> open_tun(const std::string& interface) {
  return open_as<Tun>(interface, "CAP_NET_ADMIN");
}

}  // namespace gr::nagi
