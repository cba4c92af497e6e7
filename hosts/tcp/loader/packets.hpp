// SPDX-License-Identifier: Apache-2.0
//
// Packet processing of a scheme (glue/packets.h): programs at the root cgroup, and kept ACKs that are due.
#pragma once

#include <bpf/libbpf.h>

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "io/descriptor.hpp"

namespace nagi::tcp {

/// The attached programs that process packets. They stay attached while this object exists. The kernel detaches
/// them when the process ends, even if the process is killed.
class PacketPrograms {
 public:
  /// Attach the programs of the loaded object `object` to the cgroup in directory `cgroup`, or to the root cgroup if
  /// `cgroup` is empty. An object without programs that process packets needs no cgroup. Throws InputError if the
  /// cgroup cannot be used.
  PacketPrograms(const bpf_object* object, const std::string& scheme, const std::string& cgroup);

 private:
  std::vector<io::Descriptor> links_;
};

/// Sends the ACKs that a scheme has kept back, when the scheme's timer has expired.
class KeptAcks {
 public:
  /// Open the scheme's map nagi_kept_acks, given its descriptor. Throws std::system_error if packets cannot be
  /// sent.
  explicit KeptAcks(int ring);

  /// Return a descriptor that is readable while ACKs wait to be sent.
  [[nodiscard]] int descriptor() const;
  /// Send all ACKs that are due.
  void send();

 private:
  static int send_ack(void* self, void* data, std::size_t size);

  io::Descriptor socket_;
  std::unique_ptr<ring_buffer, decltype(&ring_buffer__free)> ring_;
};

/// Set the TCP checksum of an IPv4 packet of `bytes` bytes with a valid IP header.
void set_tcp_checksum(unsigned char* packet, std::size_t bytes);

}  // namespace nagi::tcp
