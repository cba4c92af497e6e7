// SPDX-License-Identifier: Apache-2.0
#include "io/af_xdp.hpp"

#include <bpf/bpf.h>
#include <linux/bpf.h>
#include <linux/if_link.h>
#include <linux/if_xdp.h>
#include <poll.h>
#include <sys/socket.h>
#include <xdp/xsk.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <system_error>

#include "io/bpf_program.hpp"
#include "io/clock.hpp"
#include "io/descriptor.hpp"
#include "io/interface.hpp"
#include "io/ip_header.hpp"

namespace nagi::io {

namespace {

constexpr std::uint32_t queue = 0;
constexpr std::uint32_t chunk_bytes = XSK_UMEM__DEFAULT_FRAME_SIZE / 2;  // 2,048
constexpr std::uint32_t kernel_headroom = 256;                           // XDP_PACKET_HEADROOM
constexpr std::uint32_t receive_ring = 4096;  // 160 ms of 25,000 packets/s while we do not run
constexpr std::uint32_t send_ring = 1024;
constexpr std::uint32_t chunks = receive_ring + send_ring;
constexpr std::size_t batch = 64;
constexpr int send_patience_ms = 10;

/// What the program puts in front of a frame.
struct Stamp {
  std::uint64_t magic;
  std::uint64_t monotonic_ns;
};
constexpr std::uint32_t magic = 0x6e616769;  // "nagi"

[[noreturn]] void throw_error(int error, const std::string& what) {
  throw std::system_error(error, std::generic_category(), what);
}

/// Stamps a frame, if there is room in front of it, and sends it to the socket in `sockets`.
Descriptor load_program(int sockets) {
  Assembler code;
  const auto redirect = code.label();
  code.move(BPF_REG_6, BPF_REG_1);  // the frame's context
  code.call(BPF_FUNC_ktime_get_ns);
  code.move(BPF_REG_7, BPF_REG_0);
  code.move(BPF_REG_1, BPF_REG_6);
  code.move_value(BPF_REG_2, -static_cast<std::int32_t>(sizeof(Stamp)));
  code.call(BPF_FUNC_xdp_adjust_meta);
  code.jump_if_value(BPF_JNE, BPF_REG_0, 0, redirect);
  code.load(BPF_W, BPF_REG_2, BPF_REG_6, offsetof(xdp_md, data_meta));
  code.load(BPF_W, BPF_REG_3, BPF_REG_6, offsetof(xdp_md, data));
  code.move(BPF_REG_4, BPF_REG_2);
  code.add_value(BPF_REG_4, sizeof(Stamp));
  code.jump_if(BPF_JGT, BPF_REG_4, BPF_REG_3, redirect);  // the verifier wants to see it
  code.move_value(BPF_REG_5, magic);
  code.store(BPF_DW, BPF_REG_2, offsetof(Stamp, magic), BPF_REG_5);
  code.store(BPF_DW, BPF_REG_2, offsetof(Stamp, monotonic_ns), BPF_REG_7);
  code.place(redirect);
  code.load(BPF_W, BPF_REG_2, BPF_REG_6, offsetof(xdp_md, rx_queue_index));
  code.load_map(BPF_REG_1, sockets);
  code.move_value(BPF_REG_3, XDP_DROP);
  code.call(BPF_FUNC_redirect_map);
  code.leave();
  return code.load(BPF_PROG_TYPE_XDP, "nagi_to_socket");
}

struct Mode {
  const char* kind;
  std::uint32_t attach;
  std::uint16_t bind;
};
constexpr Mode generic = {"af_xdp generic", XDP_FLAGS_SKB_MODE, XDP_COPY};
constexpr std::array native = {Mode{"af_xdp zero-copy", XDP_FLAGS_DRV_MODE, XDP_ZEROCOPY},
                               Mode{"af_xdp driver", XDP_FLAGS_DRV_MODE, XDP_COPY}};

class AfXdp final : public Port {
 public:
  AfXdp(std::string interface, FramePool& pool, const Mode& mode)
      : interface_(std::move(interface)),
        kind_(mode.kind),
        pool_(pool),
        longest_frame_(longest_frame(interface_)),
        promiscuous_(socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC, 0)) {
    if (longest_frame_ > chunk_bytes - kernel_headroom) {
      throw_error(EMSGSIZE, "an MTU above " + std::to_string(chunk_bytes - kernel_headroom - 18) +
                                " bytes does not go with AF_XDP");
    }
    make_umem();
    make_socket(mode);
    make_promiscuous(promiscuous_.get(), index_of(interface_));
    fill(receive_ring);
    for (std::uint32_t i = 0; i < send_ring; ++i) {
      free_.push_back(std::uint64_t{receive_ring + i} * chunk_bytes);
    }
  }
  ~AfXdp() override {
    link_ = Descriptor();
    if (socket_ != nullptr) xsk_socket__delete(socket_);
    if (umem_ != nullptr) xsk_umem__delete(umem_);
  }

  [[nodiscard]] const std::string& interface() const override { return interface_; }
  [[nodiscard]] const std::string& kind() const override { return kind_; }
  [[nodiscard]] bool is_free_to_ask() const override { return true; }
  [[nodiscard]] int descriptor() const override { return xsk_socket__fd(socket_); }

  bool receive(std::vector<Arrival>& arrivals) override {
    std::uint32_t first = 0;
    const std::uint32_t got = xsk_ring_cons__peek(&received_, batch, &first);
    if (got == 0) return false;
    for (std::uint32_t i = 0; i < got; ++i) {
      const xdp_desc& descriptor = *xsk_ring_cons__rx_desc(&received_, first + i);
      take_in(chunk_at(descriptor.addr), descriptor.len, arrivals);
      used_.push_back(descriptor.addr - descriptor.addr % chunk_bytes);
    }
    xsk_ring_cons__release(&received_, got);
    refill();
    return got == batch;
  }

  void send(const std::vector<Frame>& frames) override {
    for (const Frame& frame : frames) {
      if (!make_room()) {
        ++counters_.send_failures;
        continue;
      }
      std::uint32_t place = 0;
      xsk_ring_prod__reserve(&outgoing_, 1, &place);
      xdp_desc& descriptor = *xsk_ring_prod__tx_desc(&outgoing_, place);
      descriptor = {free_.back(), frame.length, 0};
      free_.pop_back();
      std::memcpy(chunk_at(descriptor.addr), pool_.data(frame.slot) + frame.offset, frame.length);
      xsk_ring_prod__submit(&outgoing_, 1);
      ++counters_.sent;
    }
    push_out(0);
  }

  [[nodiscard]] PortCounters counters() override {
    PortCounters now = counters_;
    xdp_statistics statistics{};
    socklen_t length = sizeof statistics;
    if (getsockopt(descriptor(), SOL_XDP, XDP_STATISTICS, &statistics, &length) == 0) {
      // What is dropped for want of a chunk is counted twice, as dropped and as that.
      now.socket_drops += statistics.rx_ring_full + statistics.rx_fill_ring_empty_descs;
      now.oversized += statistics.rx_dropped -
                       std::min(statistics.rx_dropped, statistics.rx_fill_ring_empty_descs);
      now.send_failures += statistics.tx_invalid_descs;
    }
    return now;
  }

 private:
  std::uint8_t* chunk_at(std::uint64_t address) { return memory_.get() + address; }

  void make_umem() {
    memory_.reset(static_cast<std::uint8_t*>(
        std::aligned_alloc(XSK_UMEM__DEFAULT_FRAME_SIZE, std::size_t{chunks} * chunk_bytes)));
    if (!memory_) throw_error(ENOMEM, "no memory for AF_XDP");
    xsk_umem_config config{};
    config.fill_size = receive_ring;
    config.comp_size = send_ring;
    config.frame_size = chunk_bytes;
    const int error = xsk_umem__create(&umem_, memory_.get(), std::uint64_t{chunks} * chunk_bytes,
                                       &to_fill_, &completed_, &config);
    if (error != 0) throw_error(-error, "cannot register memory for AF_XDP");
  }

  void make_socket(const Mode& mode) {
    const auto index = index_of(interface_);
    xsk_socket_config config{};
    config.rx_size = receive_ring;
    config.tx_size = send_ring;
    config.libxdp_flags = XSK_LIBXDP_FLAGS__INHIBIT_PROG_LOAD;
    config.bind_flags = mode.bind;
    const int error = xsk_socket__create(&socket_, interface_.c_str(), queue, umem_, &received_,
                                         &outgoing_, &config);
    if (error != 0) throw_error(-error, "cannot open an AF_XDP socket on " + interface_);

    const Descriptor map(bpf_map_create(BPF_MAP_TYPE_XSKMAP, "nagi_sockets", sizeof(__u32),
                                        sizeof(__u32), 1, nullptr));
    if (map.get() < 0) throw_errno("cannot make an eBPF map");
    const __u32 key = queue;
    const int socket_descriptor = xsk_socket__fd(socket_);
    if (bpf_map_update_elem(map.get(), &key, &socket_descriptor, 0) != 0) {
      throw_errno("cannot put the socket in its eBPF map");
    }
    program_ = load_program(map.get());
    link_ = attach(program_.get(), static_cast<unsigned>(index), BPF_XDP, mode.attach);
  }

  /// Gives the kernel the first `count` chunks to receive into.
  void fill(std::uint32_t count) {
    for (std::uint32_t i = 0; i < count; ++i) used_.push_back(std::uint64_t{i} * chunk_bytes);
    refill();
  }
  void refill() {
    const auto count = static_cast<std::uint32_t>(used_.size());
    std::uint32_t first = 0;
    if (xsk_ring_prod__reserve(&to_fill_, count, &first) != count) return;  // next time
    for (std::uint32_t i = 0; i < count; ++i) {
      *xsk_ring_prod__fill_addr(&to_fill_, first + i) = used_[i];
    }
    xsk_ring_prod__submit(&to_fill_, count);
    used_.clear();
  }

  void take_in(std::uint8_t* data, std::uint32_t length, std::vector<Arrival>& arrivals) {
    if (length > longest_frame_) {
      ++counters_.oversized;
      return;
    }
    Stamp stamp{};
    std::memcpy(&stamp, data - sizeof stamp, sizeof stamp);
    const bool stamped = stamp.magic == magic;
    std::memset(data - sizeof stamp, 0, sizeof stamp.magic);  // the chunk will be used again
    if (IpHeader({data, length}).lacks_checksum()) ++counters_.checksum_missing;
    const Slot slot = pool_.take();
    std::memcpy(pool_.data(slot), data, length);
    ++counters_.received;
    arrivals.push_back(
        {{slot, 0, length},
         stamped ? static_cast<std::int64_t>(stamp.monotonic_ns) : read_clock(CLOCK_MONOTONIC)});
  }

  /// Waits, not long, until there is a chunk to send from.
  bool make_room() {
    if (free_.empty()) reap();
    if (free_.empty()) push_out(send_ring / 2);
    return !free_.empty();
  }

  void reap() {
    std::uint32_t first = 0;
    const std::uint32_t count = xsk_ring_cons__peek(&completed_, send_ring, &first);
    for (std::uint32_t i = 0; i < count; ++i) {
      free_.push_back(*xsk_ring_cons__comp_addr(&completed_, first + i));
    }
    xsk_ring_cons__release(&completed_, count);
  }

  /// Has the kernel send until at most `left` frames have not been sent.
  void push_out(std::size_t left) {
    const auto unsent = [this] { return send_ring - xsk_prod_nb_free(&outgoing_, send_ring); };
    while (unsent() > left) {
      if (sendto(descriptor(), nullptr, 0, MSG_DONTWAIT, nullptr, 0) >= 0 || errno == EINTR) {
        continue;
      }
      if (errno != EAGAIN && errno != EBUSY && errno != ENOBUFS) {
        throw_errno("sending on " + interface_);
      }
      if (errno != EAGAIN) {
        pollfd writable{descriptor(), POLLOUT, 0};
        if (poll(&writable, 1, send_patience_ms) <= 0) break;
      }
      reap();
    }
    reap();
  }

  struct Free {
    void operator()(void* memory) const { std::free(memory); }
  };

  std::string interface_;
  std::string kind_;
  FramePool& pool_;
  std::size_t longest_frame_;
  Descriptor promiscuous_;
  std::unique_ptr<std::uint8_t, Free> memory_;
  xsk_umem* umem_ = nullptr;
  xsk_socket* socket_ = nullptr;
  xsk_ring_prod to_fill_{};
  xsk_ring_cons completed_{};
  xsk_ring_cons received_{};
  xsk_ring_prod outgoing_{};
  Descriptor program_;
  Descriptor link_;
  std::vector<std::uint64_t> used_;  // chunks the kernel may have again
  std::vector<std::uint64_t> free_;  // chunks to send from
  PortCounters counters_;
};

}  // namespace

std::unique_ptr<Port> open_af_xdp(const std::string& interface, FramePool& pool) {
  if (receive_queues(interface) != 1) {
    throw_error(EOPNOTSUPP, "AF_XDP needs one queue, " + interface + " has more: ethtool -L " +
                                interface + " combined 1");
  }
  // Between veths, driver mode copies just as much and costs more.
  if (driver_of(interface) != "veth") {
    for (const Mode& mode : native) {
      try {
        return std::make_unique<AfXdp>(interface, pool, mode);
      } catch (const std::system_error&) {
        // A driver without it: the next mode.
      }
    }
  }
  return std::make_unique<AfXdp>(interface, pool, generic);
}

}  // namespace nagi::io
