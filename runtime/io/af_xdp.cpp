// SPDX-License-Identifier: Apache-2.0
#include "io/af_xdp.hpp"

#include <linux/bpf.h>
#include <linux/if_link.h>
#include <linux/if_xdp.h>
#include <poll.h>
#include <sys/socket.h>
#include <xdp/xsk.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <optional>
#include <span>
#include <system_error>

#include "io/bpf_object.hpp"
#include "io/clock.hpp"
#include "io/descriptor.hpp"
#include "io/interface.hpp"
#include "io/stamp.h"
#include "stamp.bpf.hpp"

namespace nagi::io {

namespace {

constexpr std::uint32_t queue = 0;
constexpr std::uint32_t chunk_bytes = FramePool::registered_slot_bytes;
constexpr std::uint32_t kernel_headroom = FramePool::registered_headroom;
constexpr std::size_t batch = 64;
constexpr std::size_t kernel_batch = 32;  // frames that the kernel sends per call (TX_BATCH_SIZE)
constexpr std::uint32_t cache_line = 64;
constexpr int send_timeout_ms = 10;

static_assert(FramePool::note_bytes + sizeof(nagi_stamp) <= 64);  // both precede the frame

[[noreturn]] void throw_error(int error, const std::string& what) {
  throw std::system_error(error, std::generic_category(), what);
}

struct Mode {
  const char* kind;
  std::uint32_t attach;
  std::uint16_t bind;
};
/// Return the number of frames that can wait to be sent, a power of two. Frames are sent
/// immediately, in batches.
std::uint32_t send_ring_for(std::uint32_t receive_ring) {
  constexpr std::uint32_t minimum = 64;
  constexpr std::uint32_t maximum = 1024;
  return std::clamp(receive_ring / 4, minimum, maximum);
}

constexpr Mode generic = {"af_xdp generic", XDP_FLAGS_SKB_MODE, XDP_COPY};
constexpr std::array native = {Mode{"af_xdp zero-copy", XDP_FLAGS_DRV_MODE, XDP_ZEROCOPY},
                               Mode{"af_xdp driver", XDP_FLAGS_DRV_MODE, XDP_COPY}};

}  // namespace

class SharedMemory {
 public:
  /// Register the pool's memory. The first socket will use the rings `to_fill` and `completed`.
  SharedMemory(FramePool& pool, std::uint32_t receive_ring, xsk_ring_prod& to_fill,
               xsk_ring_cons& completed) {
    xsk_umem_config config{};
    config.fill_size = receive_ring;
    config.comp_size = send_ring_for(receive_ring);
    config.frame_size = chunk_bytes;
    const auto memory = pool.registered_memory();
    const int error =
        xsk_umem__create(&umem_, memory.data(), memory.size(), &to_fill, &completed, &config);
    if (error != 0) throw_error(-error, "cannot register memory for AF_XDP");
  }
  SharedMemory(const SharedMemory&) = delete;
  SharedMemory& operator=(const SharedMemory&) = delete;
  ~SharedMemory() { xsk_umem__delete(umem_); }

  [[nodiscard]] xsk_umem* get() const { return umem_; }

 private:
  xsk_umem* umem_ = nullptr;
};

namespace {

class AfXdp final : public Port {
 public:
  AfXdp(std::string interface, FramePool& pool, std::uint32_t receive_ring,
        std::weak_ptr<SharedMemory>& memory, const Mode& mode)
      : interface_(std::move(interface)),
        kind_(mode.kind),
        pool_(pool),
        receive_ring_(receive_ring),
        send_ring_(send_ring_for(receive_ring)),
        longest_frame_(longest_frame(interface_)),
        promiscuous_(socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC, 0)) {
    if (longest_frame_ > chunk_bytes - kernel_headroom) {
      throw_error(EMSGSIZE, "an MTU above " + std::to_string(chunk_bytes - kernel_headroom - 18) +
                                " bytes is not possible with AF_XDP");
    }
    memory_ = memory.lock();
    if (!memory_) {
      memory_ = std::make_shared<SharedMemory>(pool_, receive_ring_, to_fill_, completed_);
      memory = memory_;
    }
    try {
      open_socket(mode);
    } catch (...) {
      close_socket();
      for (const Slot slot : first_chunks_) pool_.give_back(slot);
      throw;
    }
  }
  ~AfXdp() override { close_socket(); }

  [[nodiscard]] const std::string& interface() const override { return interface_; }
  [[nodiscard]] const std::string& kind() const override { return kind_; }
  [[nodiscard]] bool is_cheap_to_read() const override { return true; }
  [[nodiscard]] int descriptor() const override { return xsk_socket__fd(socket_); }

  bool receive(std::vector<Arrival>& arrivals) override {
    std::uint32_t first = 0;
    const std::uint32_t got = xsk_ring_cons__peek(&received_, batch, &first);
    if (got == 0) return false;
    // Another processor wrote the frames. Prefetch all of them before the first is processed.
    for (std::uint32_t i = 0; i < got; ++i) {
      const std::uint64_t address = xsk_ring_cons__rx_desc(&received_, first + i)->addr;
      const std::uint8_t* data = pool_.registered_memory().data() + address;
      __builtin_prefetch(data - sizeof(nagi_stamp), 1);
      __builtin_prefetch(data);
    }
    for (std::uint32_t i = 0; i < got; ++i) {
      const xdp_desc& descriptor = *xsk_ring_cons__rx_desc(&received_, first + i);
      append_frame(descriptor.addr, descriptor.len, arrivals);
    }
    xsk_ring_cons__release(&received_, got);
    fill();
    return got == batch;
  }

  void send(const std::vector<Frame>& frames) override {
    reap();
    // One batch of frames fits into the nearest caches together with other data.
    for (std::size_t first = 0; first < frames.size(); first += kernel_batch) {
      send_batch(std::span(frames).subspan(first, std::min(kernel_batch, frames.size() - first)));
    }
  }

  [[nodiscard]] PortCounters counters() override {
    PortCounters now = counters_;
    xdp_statistics statistics{};
    socklen_t length = sizeof statistics;
    if (getsockopt(descriptor(), SOL_XDP, XDP_STATISTICS, &statistics, &length) == 0) {
      // The kernel counts a frame that it drops because no chunk is free in both counters.
      now.socket_drops += statistics.rx_ring_full + statistics.rx_fill_ring_empty_descs;
      now.oversized += statistics.rx_dropped -
                       std::min(statistics.rx_dropped, statistics.rx_fill_ring_empty_descs);
      now.send_failures += statistics.tx_invalid_descs;
    }
    return now;
  }

 private:
  void open_socket(const Mode& mode) {
    const auto index = index_of(interface_);
    xsk_socket_config config{};
    config.rx_size = receive_ring_;
    config.tx_size = send_ring_;
    config.libxdp_flags = XSK_LIBXDP_FLAGS__INHIBIT_PROG_LOAD;
    config.bind_flags = mode.bind;
    const int error =
        xsk_socket__create_shared(&socket_, interface_.c_str(), queue, memory_->get(), &received_,
                                  &outgoing_, &to_fill_, &completed_, &config);
    if (error != 0) throw_error(-error, "cannot open an AF_XDP socket on " + interface_);
    while (chunks_to_fill_.size() < receive_ring_)
      chunks_to_fill_.push_back(pool_.take_registered());
    first_chunks_ = chunks_to_fill_;
    fill();

    BpfObject object(bpf::stamp);
    object.load();
    put_socket(object.map("sockets"), xsk_socket__fd(socket_));
    link_ = attach(object.program("nagi_to_socket"), static_cast<unsigned>(index), BPF_XDP,
                   mode.attach);
    make_promiscuous(promiscuous_.get(), index);
    first_chunks_.clear();
  }

  void close_socket() {
    link_ = Descriptor();
    if (socket_ != nullptr) xsk_socket__delete(socket_);
    socket_ = nullptr;
  }

  /// Give the kernel the chunks of chunks_to_fill_ to receive into.
  void fill() {
    const auto count = static_cast<std::uint32_t>(chunks_to_fill_.size());
    std::uint32_t first = 0;
    // The next call tries again.
    if (xsk_ring_prod__reserve(&to_fill_, count, &first) != count) return;
    for (std::uint32_t i = 0; i < count; ++i) {
      *xsk_ring_prod__fill_addr(&to_fill_, first + i) =
          std::uint64_t{chunks_to_fill_[i]} * chunk_bytes;
    }
    xsk_ring_prod__submit(&to_fill_, count);
    chunks_to_fill_.clear();
  }

  /// Append the frame in its chunk and give the kernel another chunk. If few chunks are free, copy
  /// the frame instead.
  void append_frame(std::uint64_t address, std::uint32_t length, std::vector<Arrival>& arrivals) {
    const auto chunk = static_cast<Slot>(address / chunk_bytes);
    const auto offset = static_cast<std::uint16_t>(address % chunk_bytes);
    std::uint8_t* data = pool_.data(chunk) + offset;
    if (length > longest_frame_) {
      ++counters_.oversized;
      chunks_to_fill_.push_back(chunk);
      return;
    }
    nagi_stamp stamp{};
    std::memcpy(&stamp, data - sizeof stamp, sizeof stamp);
    const bool stamped = stamp.magic == NAGI_STAMP_MAGIC;
    std::memset(data - sizeof stamp, 0, sizeof stamp.magic);  // the chunk will be reused
    Frame frame{chunk, offset, length};
    if (pool_.free_registered() > send_ring_) {
      chunks_to_fill_.push_back(pool_.take_registered());
    } else {
      frame = {pool_.take(), 0, length};
      std::memcpy(pool_.data(frame.slot), data, length);
      chunks_to_fill_.push_back(chunk);
    }
    ++counters_.received;
    arrivals.push_back({frame, stamped ? static_cast<std::int64_t>(stamp.monotonic_ns)
                                       : read_clock(CLOCK_MONOTONIC)});
  }

  /// Return the frame in a registered slot, copying it if necessary, or nothing if no slot is free.
  std::optional<Frame> registered(const Frame& frame) {
    if (pool_.is_registered(frame.slot)) return frame;
    if (pool_.free_registered() == 0) push_out(0);
    if (pool_.free_registered() == 0 || frame.length > chunk_bytes) return std::nullopt;
    const Frame copy{pool_.take_registered(), 0, frame.length};
    std::memcpy(pool_.data(copy.slot), pool_.data(frame.slot) + frame.offset, frame.length);
    pool_.give_back(frame.slot);
    return copy;
  }

  void send_batch(std::span<const Frame> frames) {
    // After a long delay, a frame is in no cache any more, and the kernel will read it next.
    for (const Frame& frame : frames) {
      const std::uint8_t* data = pool_.data(frame.slot) + frame.offset;
      for (std::uint32_t at = 0; at < frame.length; at += cache_line) __builtin_prefetch(data + at);
    }
    for (const Frame& frame : frames) {
      std::uint32_t position = 0;
      const std::optional<Frame> sendable = registered(frame);
      if (!sendable || !make_room() || xsk_ring_prod__reserve(&outgoing_, 1, &position) != 1) {
        pool_.give_back(sendable ? sendable->slot : frame.slot);
        ++counters_.send_failures;
        continue;
      }
      *xsk_ring_prod__tx_desc(&outgoing_, position) = {
          std::uint64_t{sendable->slot} * chunk_bytes + sendable->offset, sendable->length, 0};
      xsk_ring_prod__submit(&outgoing_, 1);
      ++counters_.sent;
    }
    push_out(0);
  }

  /// Wait for a limited time until the ring has room. Return whether it has room.
  bool make_room() {
    if (xsk_prod_nb_free(&outgoing_, 1) == 0) push_out(send_ring_ / 2);
    return xsk_prod_nb_free(&outgoing_, 1) != 0;
  }

  void reap() {
    std::uint32_t first = 0;
    const std::uint32_t count = xsk_ring_cons__peek(&completed_, send_ring_, &first);
    for (std::uint32_t i = 0; i < count; ++i) {
      const std::uint64_t address = *xsk_ring_cons__comp_addr(&completed_, first + i);
      pool_.give_back(static_cast<Slot>(address / chunk_bytes));
    }
    xsk_ring_cons__release(&completed_, count);
  }

  /// Let the kernel send until at most `left` frames remain unsent.
  void push_out(std::size_t left) {
    const auto unsent = [this] { return send_ring_ - xsk_prod_nb_free(&outgoing_, send_ring_); };
    while (unsent() > left) {
      if (sendto(descriptor(), nullptr, 0, MSG_DONTWAIT, nullptr, 0) >= 0 || errno == EINTR) {
        continue;
      }
      // The interface is down or gone (link_monitor.hpp). Frames wait until the ring is full.
      if (errno == ENETDOWN || errno == ENXIO || errno == ENODEV) break;
      if (errno != EAGAIN && errno != EBUSY && errno != ENOBUFS) {
        throw_errno("sending on " + interface_);
      }
      if (errno != EAGAIN) {
        pollfd writable{descriptor(), POLLOUT, 0};
        if (poll(&writable, 1, send_timeout_ms) <= 0) break;
      }
      reap();
    }
    reap();
  }

  std::string interface_;
  std::string kind_;
  FramePool& pool_;
  std::uint32_t receive_ring_;
  std::uint32_t send_ring_;
  std::size_t longest_frame_;
  Descriptor promiscuous_;
  std::shared_ptr<SharedMemory> memory_;
  xsk_socket* socket_ = nullptr;
  xsk_ring_prod to_fill_{};
  xsk_ring_cons completed_{};
  xsk_ring_cons received_{};
  xsk_ring_prod outgoing_{};
  Descriptor link_;
  std::vector<Slot> chunks_to_fill_;  // chunks to put into the fill ring
  std::vector<Slot> first_chunks_;    // the first of these, until the socket is completely open
  PortCounters counters_;
};

}  // namespace

std::unique_ptr<Port> open_af_xdp(const std::string& interface, FramePool& pool,
                                  std::uint32_t receive_ring, std::weak_ptr<SharedMemory>& memory) {
  if (receive_queues(interface) != 1) {
    throw_error(EOPNOTSUPP, "AF_XDP needs one queue, but " + interface + " has more: ethtool -L " +
                                interface + " combined 1");
  }
  // Between veth interfaces, driver mode copies as generic mode does and costs more.
  if (driver_of(interface) != "veth") {
    for (const Mode& mode : native) {
      try {
        return std::make_unique<AfXdp>(interface, pool, receive_ring, memory, mode);
      } catch (const std::system_error&) {
        // The driver does not support this mode. Try the next mode.
      }
    }
  }
  return std::make_unique<AfXdp>(interface, pool, receive_ring, memory, generic);
}

std::size_t registered_slots_per_port(std::uint32_t receive_ring) {
  return receive_ring + send_ring_for(receive_ring);
}

}  // namespace nagi::io
