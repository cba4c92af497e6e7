// SPDX-License-Identifier: Apache-2.0
#include "registration.hpp"

#include <bpf/bpf.h>
#include <sys/mman.h>

#include <cerrno>
#include <cstring>
#include <stdexcept>

#include "io/bpf_messages.hpp"
#include "io/input_error.hpp"

namespace nagi::tcp {
namespace {

// Debian 12's headers lack these constants.
constexpr std::uint32_t with_link = 1U << 13;                       // BPF_F_LINK
constexpr auto struct_ops_link = static_cast<bpf_attach_type>(44);  // BPF_STRUCT_OPS

[[noreturn]] void refuse(const Object& object, const std::string& name, const Kernel& kernel,
                         int error) {
  const std::string log = io::BpfMessages::verifier_log();
  const std::string last = io::BpfMessages::last_line();
  if (!log.empty()) {
    throw InputError(
        object.scheme() + ": the verifier of kernel " + kernel.release +
        " rejects it; correct the scheme, or use another kernel. The end of its log:" + log);
  }
  if (error == EPERM) {
    throw InputError("no permission to load " + object.scheme() +
                     "; run nagi-tcp as root, or with " + "CAP_BPF, CAP_PERFMON and CAP_NET_ADMIN");
  }
  if (error == EEXIST) {
    throw InputError("the kernel already has a congestion control named " + name +
                     "; give another name by --as");
  }
  throw InputError(object.scheme() + ": kernel " + kernel.release +
                   " does not accept the scheme: " + std::strerror(error) +
                   (last.empty() ? "" : " (" + last + ")"));
}

}  // namespace

Registration::Registration(const Object& object, const std::string& name, const Kernel& kernel)
    : object_(nullptr, &bpf_object__close) {
  const io::BpfMessages messages;
  LIBBPF_OPTS(bpf_object_open_opts, options);
  options.object_name = "nagi_tcp";
  object_.reset(bpf_object__open_mem(object.image().data(), object.image().size(), &options));
  if (!object_) refuse(object, name, kernel, errno);

  bpf_map* scheme = bpf_object__find_map_by_name(object_.get(), object.scheme().c_str());
  if (scheme == nullptr) refuse(object, name, kernel, ENOENT);
  bpf_map__set_map_flags(scheme, bpf_map__map_flags(scheme) | with_link);
  if (bpf_object__load(object_.get()) != 0) refuse(object, name, kernel, errno);

  // This call registers the structure. From libbpf 1.2 on it also creates the link.
  bpf_link* attached = bpf_map__attach_struct_ops(scheme);
  if (attached == nullptr) refuse(object, name, kernel, errno);
  int link = -1;
  if (bpf_link__fd(attached) == bpf_map__fd(scheme)) {
    link = bpf_link_create(bpf_map__fd(scheme), 0, struct_ops_link, nullptr);
  } else {
    link = bpf_link__fd(attached);
  }
  const int error = errno;
  bpf_link__disconnect(attached);  // link_ closes the descriptor
  bpf_link__destroy(attached);
  if (link < 0) refuse(object, name, kernel, error);
  link_ = io::Descriptor(link);
}

int Registration::find_map(const char* name) const {
  const bpf_map* map = bpf_object__find_map_by_name(object_.get(), name);
  return map == nullptr ? -1 : bpf_map__fd(map);
}

void Registration::Unmap::operator()(void* memory) const { munmap(memory, size); }

// This does not use libbpf's copy (bpf_map__initial_value), which in Debian 12 does not follow the kernel's memory.
const volatile std::uint64_t* Registration::map_zeroed_word(std::size_t offset) {
  if (!zeroed_) {
    const bpf_map* section = bpf_object__find_map_by_name(object_.get(), ".bss");
    if (section == nullptr) throw std::logic_error("the object has no section .bss");
    const std::size_t size = bpf_map__value_size(section);
    void* memory = mmap(nullptr, size, PROT_READ, MAP_SHARED, bpf_map__fd(section), 0);
    if (memory == MAP_FAILED) io::throw_errno("mapping the variables of a scheme");
    zeroed_ = std::unique_ptr<void, Unmap>(memory, Unmap{size});
  }
  return reinterpret_cast<const volatile std::uint64_t*>(static_cast<const char*>(zeroed_.get()) +
                                                         offset);
}

}  // namespace nagi::tcp
