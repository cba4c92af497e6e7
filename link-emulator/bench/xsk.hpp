// SPDX-License-Identifier: Apache-2.0
//
// AF_XDP (Linux Documentation/networking/af_xdp.rst): the memory for frames, and a socket with its
// four rings on one interface. The socket uses copy mode and queue 0. The caller attaches the XDP
// program.
#pragma once

#include <sys/mman.h>
#include <sys/socket.h>
#include <xdp/xsk.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "io/descriptor.hpp"

namespace nagi::bench {

constexpr std::uint32_t ring_frames = 8192;  // 27 ms at 300,000 packets/s
constexpr std::uint32_t chunk_bytes = 2048;  // the kernel uses the first 256

/// The socket of one interface and its rings. Umem opens and closes the socket.
struct Xsk {
  xsk_ring_cons rx{};
  xsk_ring_prod tx{};
  xsk_ring_prod fill{};
  xsk_ring_cons completion{};
  xsk_socket* socket = nullptr;

  [[nodiscard]] int descriptor() const { return xsk_socket__fd(socket); }
  /// Return the number of frames that the kernel has not taken yet.
  [[nodiscard]] std::uint32_t unsent() const {
    return *tx.producer - __atomic_load_n(tx.consumer, __ATOMIC_ACQUIRE);
  }
  /// Make the kernel send the frames in the transmit ring. Some frames may remain until the next
  /// call.
  void kick() const {
    if (sendto(descriptor(), nullptr, 0, MSG_DONTWAIT, nullptr, 0) < 0 && errno != EAGAIN &&
        errno != EBUSY && errno != ENOBUFS && errno != EINTR) {
      io::throw_errno("sending");
    }
  }
};

/// Memory for frames, and the sockets that share it.
class Umem {
 public:
  /// Allocate memory for `frames` frames. `first` is the socket that will be opened first. Throws
  /// std::system_error.
  Umem(std::uint32_t frames, Xsk& first)
      : bytes_(std::size_t{frames} * chunk_bytes),
        area_(mmap(nullptr, bytes_, PROT_READ | PROT_WRITE,
                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0)) {
    if (area_ == MAP_FAILED) io::throw_errno("memory for frames");
    xsk_umem_config config{};
    config.fill_size = ring_frames;
    config.comp_size = ring_frames;
    config.frame_size = chunk_bytes;
    fail(xsk_umem__create(&umem_, area_, bytes_, &first.fill, &first.completion, &config),
         "registering memory for frames");
  }
  Umem(const Umem&) = delete;
  Umem& operator=(const Umem&) = delete;
  ~Umem() {
    for (const Xsk* xsk : opened_) xsk_socket__delete(xsk->socket);
    xsk_umem__delete(umem_);
    munmap(area_, bytes_);
  }

  [[nodiscard]] std::uint8_t* data(std::uint64_t address) {
    return static_cast<std::uint8_t*>(area_) + address;
  }

  /// Open the socket `xsk`, which must outlive this memory. If `receives` is false, the socket only
  /// sends. Throws std::system_error.
  void open(Xsk& xsk, const std::string& interface, bool receives) {
    xsk_socket_config config{};
    config.rx_size = ring_frames;
    config.tx_size = ring_frames;
    config.libxdp_flags = XSK_LIBXDP_FLAGS__INHIBIT_PROG_LOAD;
    config.bind_flags = XDP_COPY | XDP_USE_NEED_WAKEUP;
    fail(xsk_socket__create_shared(&xsk.socket, interface.c_str(), 0, umem_,
                                   receives ? &xsk.rx : nullptr, &xsk.tx, &xsk.fill,
                                   &xsk.completion, &config),
         "opening an AF_XDP socket on " + interface);
    opened_.push_back(&xsk);
  }

 private:
  static void fail(int status, const std::string& what) {
    if (status == 0) return;
    errno = -status;
    io::throw_errno(what);
  }

  std::size_t bytes_;
  void* area_;
  xsk_umem* umem_ = nullptr;
  std::vector<const Xsk*> opened_;
};

}  // namespace nagi::bench
