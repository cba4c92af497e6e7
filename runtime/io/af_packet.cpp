// SPDX-License-Identifier: Apache-2.0
#include "io/af_packet.hpp"

#include <arpa/inet.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <system_error>

#include "io/clock.hpp"
#include "io/descriptor.hpp"
#include "io/interface.hpp"

namespace nagi::io {

namespace {

constexpr std::size_t batch = 64;
constexpr std::uint16_t vlan_tag_bytes = 4;
constexpr std::size_t address_bytes = 2 * ETH_ALEN;
constexpr int receive_buffer_bytes = 64 << 20;  // about 25,000 frames while the process waits
constexpr int send_buffer_bytes = 16 << 20;

constexpr int send_timeout_ms = 10;

struct Batch {
  std::array<iovec, batch> vectors{};
  std::array<mmsghdr, batch> messages{};
};

template <class Value>
void set_option(int socket, int level, int option, const Value& value, const char* what) {
  if (setsockopt(socket, level, option, &value, sizeof value) != 0) throw_errno(what);
}

class AfPacket final : public Port {
 public:
  AfPacket(std::string interface, FramePool& pool)
      : interface_(std::move(interface)),
        pool_(pool),
        longest_frame_(longest_frame(interface_)),
        socket_(socket(AF_PACKET, SOCK_RAW | SOCK_NONBLOCK | SOCK_CLOEXEC, 0)) {
    if (socket_.get() < 0) throw_errno("cannot open a packet socket");
    const int index = index_of(interface_);

    const int on = 1;
    set_option(socket_.get(), SOL_PACKET, PACKET_IGNORE_OUTGOING, on, "PACKET_IGNORE_OUTGOING");
    set_option(socket_.get(), SOL_PACKET, PACKET_QDISC_BYPASS, on, "PACKET_QDISC_BYPASS");
    set_option(socket_.get(), SOL_PACKET, PACKET_AUXDATA, on, "PACKET_AUXDATA");
    set_option(socket_.get(), SOL_SOCKET, SO_TIMESTAMPNS, on, "SO_TIMESTAMPNS");
    set_buffer(SO_RCVBUFFORCE, SO_RCVBUF, receive_buffer_bytes, "SO_RCVBUF");
    set_buffer(SO_SNDBUFFORCE, SO_SNDBUF, send_buffer_bytes, "SO_SNDBUF");
    make_promiscuous(socket_.get(), index);

    sockaddr_ll address{};
    address.sll_family = AF_PACKET;
    address.sll_protocol = htons(ETH_P_ALL);
    address.sll_ifindex = index;
    if (bind(socket_.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
      throw_errno("cannot listen on interface " + interface_);
    }
    for (std::size_t i = 0; i < batch; ++i) {
      slots_[i] = pool_.take();
      prepare(i);
    }
  }

  [[nodiscard]] const std::string& interface() const override { return interface_; }
  [[nodiscard]] const std::string& kind() const override { return kind_; }
  [[nodiscard]] bool is_cheap_to_read() const override { return false; }
  [[nodiscard]] int descriptor() const override { return socket_.get(); }

  bool receive(std::vector<Arrival>& arrivals) override {
    const int got = recvmmsg(socket_.get(), incoming_.messages.data(), batch, MSG_TRUNC, nullptr);
    if (got < 0) {
      if (errno == EAGAIN || errno == EINTR) return false;
      throw_errno("receiving from " + interface_);
    }
    // The kernel stamps frames by the wall clock, which may be set at any time.
    realtime_ahead_ = read_clock(CLOCK_REALTIME) - read_clock(CLOCK_MONOTONIC);
    for (std::size_t i = 0; i < static_cast<std::size_t>(got); ++i) {
      if (append_frame(i, arrivals)) slots_[i] = pool_.take();
      prepare(i);
    }
    return static_cast<std::size_t>(got) == batch;
  }

  void send(const std::vector<Frame>& frames) override {
    for (std::size_t first = 0; first < frames.size(); first += batch) {
      const std::size_t count = std::min(batch, frames.size() - first);
      for (std::size_t i = 0; i < count; ++i) {
        const Frame& frame = frames[first + i];
        outgoing_.vectors[i] = {pool_.data(frame.slot) + frame.offset, frame.length};
        outgoing_.messages[i].msg_hdr.msg_iov = &outgoing_.vectors[i];
        outgoing_.messages[i].msg_hdr.msg_iovlen = 1;
      }
      send_batch(count);
    }
    for (const Frame& frame : frames) pool_.give_back(frame.slot);
  }

  [[nodiscard]] PortCounters counters() override {
    tpacket_stats statistics{};
    socklen_t length = sizeof statistics;
    if (getsockopt(socket_.get(), SOL_PACKET, PACKET_STATISTICS, &statistics, &length) == 0) {
      counters_.socket_drops += statistics.tp_drops;  // reading resets the kernel's counter
    }
    return counters_;
  }

 private:
  void set_buffer(int forced, int permitted, int bytes, const char* what) {
    if (setsockopt(socket_.get(), SOL_SOCKET, forced, &bytes, sizeof bytes) == 0) return;
    set_option(socket_.get(), SOL_SOCKET, permitted, bytes, what);
  }

  /// Prepare entry `i` to receive a frame into its slot. Leave room for a VLAN tag in front,
  /// because the kernel removes the tag from the frame.
  void prepare(std::size_t i) {
    incoming_.vectors[i] = {pool_.data(slots_[i]) + vlan_tag_bytes,
                            pool_.slot_bytes() - vlan_tag_bytes};
    msghdr& header = incoming_.messages[i].msg_hdr;
    header = {};
    header.msg_iov = &incoming_.vectors[i];
    header.msg_iovlen = 1;
    header.msg_control = control_[i].data();
    header.msg_controllen = control_[i].size();
  }

  /// Append the frame of entry `i`. Return false if it was discarded.
  bool append_frame(std::size_t i, std::vector<Arrival>& arrivals) {
    mmsghdr& message = incoming_.messages[i];
    if (message.msg_len + vlan_tag_bytes > longest_frame_) {
      ++counters_.oversized;
      return false;
    }
    Arrival arrival{{slots_[i], vlan_tag_bytes, message.msg_len}, 0};
    for (cmsghdr* part = CMSG_FIRSTHDR(&message.msg_hdr); part != nullptr;
         part = CMSG_NXTHDR(&message.msg_hdr, part)) {
      if (part->cmsg_level == SOL_SOCKET && part->cmsg_type == SO_TIMESTAMPNS) {
        timespec stamp{};
        std::memcpy(&stamp, CMSG_DATA(part), sizeof stamp);
        arrival.monotonic_ns =
            std::int64_t{stamp.tv_sec} * 1'000'000'000 + stamp.tv_nsec - realtime_ahead_;
      } else if (part->cmsg_level == SOL_PACKET && part->cmsg_type == PACKET_AUXDATA) {
        tpacket_auxdata auxiliary{};
        std::memcpy(&auxiliary, CMSG_DATA(part), sizeof auxiliary);
        if ((auxiliary.tp_status & TP_STATUS_VLAN_VALID) != 0) {
          put_tag_back(pool_.data(slots_[i]), auxiliary);
          arrival.frame.offset = 0;
          arrival.frame.length += vlan_tag_bytes;
        }
      }
    }
    ++counters_.received;
    arrivals.push_back(arrival);
    return true;
  }

  static void put_tag_back(std::uint8_t* slot, const tpacket_auxdata& auxiliary) {
    std::memmove(slot, slot + vlan_tag_bytes, address_bytes);
    const std::uint16_t tag[2] = {
        htons(auxiliary.tp_vlan_tpid != 0 ? auxiliary.tp_vlan_tpid : std::uint16_t{ETH_P_8021Q}),
        htons(auxiliary.tp_vlan_tci)};
    std::memcpy(slot + address_bytes, tag, sizeof tag);
  }

  void send_batch(std::size_t count) {
    std::size_t done = 0;
    while (done < count) {
      const int sent = sendmmsg(socket_.get(), &outgoing_.messages[done],
                                static_cast<unsigned>(count - done), 0);
      if (sent > 0) {
        done += static_cast<std::size_t>(sent);
        counters_.sent += static_cast<std::uint64_t>(sent);
      } else if (errno == EAGAIN || errno == ENOBUFS) {
        pollfd writable{socket_.get(), POLLOUT, 0};
        if (poll(&writable, 1, send_timeout_ms) <= 0) {
          ++counters_.send_failures;
          ++done;
        }
      } else if (errno != EINTR) {
        ++counters_.send_failures;
        ++done;
      }
    }
  }

  std::string interface_;
  std::string kind_ = "af_packet";
  FramePool& pool_;
  std::int64_t realtime_ahead_ = 0;  // wall clock minus monotonic clock, in ns
  std::size_t longest_frame_;
  Descriptor socket_;
  PortCounters counters_;
  std::array<Slot, batch> slots_{};  // slots for the next frames
  Batch incoming_;
  Batch outgoing_;
  alignas(cmsghdr) std::array<std::array<char, 128>, batch> control_{};
};

}  // namespace

std::unique_ptr<Port> open_af_packet(const std::string& interface, FramePool& pool) {
  return std::make_unique<AfPacket>(interface, pool);
}

}  // namespace nagi::io
