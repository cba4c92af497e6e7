// SPDX-License-Identifier: Apache-2.0
//
// What a scheme does to packets of its connections (glue/packets.h): programs at the root of the cgroups, and
// ACKs that were kept back and are due.
#pragma once

#include <bpf/libbpf.h>

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "io/descriptor.hpp"

namespace nagi::tcp {

/// The programs of an object that see packets. They are attached as long as this object; the kernel
/// detaches them with the process, however that ends.
class PacketPrograms {
 public:
  /// Attaches those of `object`, which is loaded, to the cgroup in directory `cgroup`; empty: where
  /// cgroup v2 is mounted. Throws InputError
  /// if it cannot. Without such programs it does nothing.
  PacketPrograms(const bpf_object* object, const std::string& scheme, const std::string& cgroup);

 private:
  std::vector<io::Descriptor> links_;
};

/// Sends ACKs that a scheme has kept back, when the scheme's timer says.
class KeptAcks {
 public:
  /// `ring`: the scheme's map nagi_kept_acks. Throws std::system_error if packets cannot be sent.
  explicit KeptAcks(int ring);

  /// A descriptor that is readable when send() has something to do.
  [[nodiscard]] int descriptor() const;
  void send();

 private:
  static int take(void* self, void* data, std::size_t size);

  io::Descriptor socket_;
  std::unique_ptr<ring_buffer, decltype(&ring_buffer__free)> ring_;
};

/// Fills in the TCP checksum of an IPv4 packet of `bytes` bytes, of which the header is valid.
void set_tcp_checksum(unsigned char* packet, std::size_t bytes);

}  // namespace nagi::tcp
