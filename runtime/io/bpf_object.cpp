// SPDX-License-Identifier: Apache-2.0
#include "io/bpf_object.hpp"

#include <bpf/bpf.h>

#include <cerrno>
#include <stdexcept>

#include "io/bpf_messages.hpp"

namespace nagi::io {

namespace {

bpf_map* find_map(bpf_object* object, const char* name) {
  bpf_map* result = bpf_object__find_map_by_name(object, name);
  if (result == nullptr) throw std::logic_error(std::string("no BPF map ") + name);
  return result;
}

bpf_program* find_program(bpf_object* object, const char* name) {
  bpf_program* result = bpf_object__find_program_by_name(object, name);
  if (result == nullptr) throw std::logic_error(std::string("no BPF program ") + name);
  return result;
}

}  // namespace

BpfObject::BpfObject(std::span<const unsigned char> image) : object_(nullptr, &bpf_object__close) {
  const BpfMessages messages;
  object_.reset(bpf_object__open_mem(image.data(), image.size(), nullptr));
  if (!object_) throw_errno("opening BPF object: " + BpfMessages::last_line());
}

void BpfObject::resize_map(const char* map, std::uint32_t entries) {
  if (bpf_map__set_max_entries(find_map(object_.get(), map), entries) != 0) {
    throw_errno(std::string("resizing BPF map ") + map);
  }
}

void BpfObject::leave_out(const char* program) {
  bpf_program__set_autoload(find_program(object_.get(), program), false);
}

void BpfObject::load() {
  const BpfMessages messages;
  if (bpf_object__load(object_.get()) == 0) return;
  const int error = errno;
  const std::string log = BpfMessages::verifier_log();
  throw std::system_error(error, std::generic_category(),
                          "loading BPF program" + (log.empty() ? "" : ":" + log));
}

int BpfObject::map(const char* name) const { return bpf_map__fd(find_map(object_.get(), name)); }

int BpfObject::program(const char* name) const {
  return bpf_program__fd(find_program(object_.get(), name));
}

void put_socket(int sockets, int socket) {
  const std::uint32_t queue = 0;
  if (bpf_map_update_elem(sockets, &queue, &socket, BPF_ANY) != 0) {
    throw_errno("cannot put the socket in its eBPF map");
  }
}

Descriptor attach(int program, unsigned interface, int type, std::uint32_t flags) {
  LIBBPF_OPTS(bpf_link_create_opts, options);
  options.flags = flags;
  const int link = bpf_link_create(program, static_cast<int>(interface),
                                   static_cast<bpf_attach_type>(type), &options);
  if (link < 0) throw_errno("attaching BPF program");
  return Descriptor(link);
}

}  // namespace nagi::io
