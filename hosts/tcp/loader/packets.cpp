// SPDX-License-Identifier: Apache-2.0
#include "packets.hpp"

#include <fcntl.h>
#include <linux/types.h>
#include <mntent.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstring>

#include "../glue/kept_ack.h"
#include "io/bpf_messages.hpp"
#include "io/input_error.hpp"

namespace nagi::tcp {
namespace {

constexpr std::size_t ip_header = 20;
constexpr std::size_t checksum_at = 16;  // offset in the TCP header

/// Return `sum` plus the 16-bit words of `bytes` in network byte order, for a one's complement checksum.
std::uint32_t add_words(const unsigned char* bytes, std::size_t size, std::uint32_t sum) {
  for (std::size_t at = 0; at + 1 < size; at += 2) {
    sum += static_cast<std::uint32_t>(bytes[at]) << 8U | bytes[at + 1];
  }
  if (size % 2 != 0) sum += static_cast<std::uint32_t>(bytes[size - 1]) << 8U;
  return sum;
}

/// Return the directory where cgroup v2 is mounted, or an empty string.
std::string find_cgroup_mount() {
  const std::unique_ptr<FILE, decltype(&endmntent)> mounts(setmntent("/proc/self/mounts", "r"),
                                                           &endmntent);
  while (const mntent* mount = mounts ? getmntent(mounts.get()) : nullptr) {
    if (std::strcmp(mount->mnt_type, "cgroup2") == 0) return mount->mnt_dir;
  }
  return {};
}

/// Open the cgroup whose packets `scheme` processes: `path`, or the root cgroup if `path` is empty.
io::Descriptor open_cgroup(const std::string& scheme, const std::string& path) {
  const std::string directory = path.empty() ? find_cgroup_mount() : path;
  const std::string reason = scheme + " processes packets at a cgroup, and ";
  if (directory.empty()) {
    throw InputError(reason + "cgroup v2 is not mounted; run `mount -t cgroup2 none DIRECTORY`, " +
                     "and give the directory by --cgroup");
  }
  io::Descriptor cgroup(open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (cgroup.get() < 0) {
    throw InputError(reason + directory + " cannot be opened: " + std::strerror(errno) +
                     "; give a directory of cgroup v2 by --cgroup");
  }
  return cgroup;
}

}  // namespace

PacketPrograms::PacketPrograms(const bpf_object* object, const std::string& scheme,
                               const std::string& cgroup) {
  const io::BpfMessages messages;
  io::Descriptor root;
  const bpf_program* program = nullptr;
  while ((program = bpf_object__next_program(object, const_cast<bpf_program*>(program))) !=
         nullptr) {
    const bpf_prog_type type = bpf_program__type(program);
    if (type != BPF_PROG_TYPE_CGROUP_SKB && type != BPF_PROG_TYPE_SOCK_OPS) continue;
    if (root.get() < 0) root = open_cgroup(scheme, cgroup);
    bpf_link* link = bpf_program__attach_cgroup(program, root.get());
    if (link == nullptr) {
      throw InputError(scheme + ": " + bpf_program__name(program) +
                       " cannot be attached to a cgroup: " + std::strerror(errno) +
                       "; give a directory of cgroup v2 by --cgroup");
    }
    links_.emplace_back(bpf_link__fd(link));
    bpf_link__disconnect(link);  // links_ closes the descriptor
    bpf_link__destroy(link);
  }
}

KeptAcks::KeptAcks(int ring)
    : socket_(socket(AF_INET, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, IPPROTO_RAW)),
      ring_(ring_buffer__new(ring, &KeptAcks::send_ack, this, nullptr), &ring_buffer__free) {
  if (socket_.get() < 0) io::throw_errno("opening a socket for ACKs");
  if (!ring_) io::throw_errno("waiting for ACKs");
}

int KeptAcks::descriptor() const { return ring_buffer__epoll_fd(ring_.get()); }

void KeptAcks::send() { ring_buffer__consume(ring_.get()); }

int KeptAcks::send_ack(void* self, void* data, std::size_t size) {
  nagi_kept_ack ack{};
  std::memcpy(&ack, data, std::min(size, sizeof ack));
  const std::size_t bytes = std::min<std::size_t>(ack.length, sizeof ack.packet);
  if (bytes < 2 * ip_header) return 0;
  set_tcp_checksum(ack.packet, bytes);
  sockaddr_in destination{};
  destination.sin_family = AF_INET;
  std::memcpy(&destination.sin_addr, ack.packet + 16, sizeof destination.sin_addr);
  // Errors are ignored: an ACK that cannot be sent is lost like a packet on the path, and the next ACK replaces it.
  sendto(static_cast<KeptAcks*>(self)->socket_.get(), ack.packet, bytes, 0,
         reinterpret_cast<const sockaddr*>(&destination), sizeof destination);
  return 0;
}

void set_tcp_checksum(unsigned char* packet, std::size_t bytes) {
  const std::size_t at = static_cast<std::size_t>(packet[0] & 0x0fU) * 4;
  if (at < ip_header || bytes < at + checksum_at + 2) return;
  unsigned char* tcp = packet + at;
  const std::size_t size = bytes - at;
  tcp[checksum_at] = tcp[checksum_at + 1] = 0;
  // The pseudo-header consists of both addresses, the protocol and the length.
  std::uint32_t sum = add_words(packet + 12, 8, IPPROTO_TCP + static_cast<std::uint32_t>(size));
  sum = add_words(tcp, size, sum);
  while (sum >> 16U != 0) sum = (sum & 0xffffU) + (sum >> 16U);
  sum = ~sum & 0xffffU;
  tcp[checksum_at] = static_cast<unsigned char>(sum >> 8U);
  tcp[checksum_at + 1] = static_cast<unsigned char>(sum & 0xffU);
}

}  // namespace nagi::tcp
