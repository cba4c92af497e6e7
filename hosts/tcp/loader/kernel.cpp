// SPDX-License-Identifier: Apache-2.0
#include "kernel.hpp"

#include <bpf/btf.h>
#include <sys/utsname.h>

#include <memory>

#include "io/input_error.hpp"

namespace nagi::tcp {
namespace {

/// Return the number of arguments of a member function of struct tcp_congestion_ops, or 0 if there is no such
/// member.
std::uint32_t count_arguments(const btf* types, const std::string& member) {
  const auto by_id = [&](std::uint32_t id) { return btf__type_by_id(types, id); };
  const int id = btf__find_by_name_kind(types, "tcp_congestion_ops", BTF_KIND_STRUCT);
  if (id < 0) return 0;
  const btf_type* ops = by_id(static_cast<std::uint32_t>(id));
  for (std::uint16_t i = 0; i < btf_vlen(ops); ++i) {
    const btf_member& candidate = btf_members(ops)[i];
    if (member != btf__name_by_offset(types, candidate.name_off)) continue;
    const btf_type* pointer = by_id(candidate.type);
    if (!btf_is_ptr(pointer)) return 0;
    const btf_type* function = by_id(pointer->type);
    return btf_is_func_proto(function) ? btf_vlen(function) : 0;
  }
  return 0;
}

}  // namespace

Kernel inspect_kernel() {
  Kernel kernel;
  utsname names{};
  uname(&names);
  kernel.release = names.release;
  const std::string subject = "kernel " + kernel.release;
  const std::string cure = "; boot Linux 6.10 or newer, for example from Debian's backports";

  const std::unique_ptr<btf, decltype(&btf__free)> types(btf__load_vmlinux_btf(), &btf__free);
  if (!types) {
    throw InputError(subject +
                     " has no type information (/sys/kernel/btf/vmlinux); boot a kernel " +
                     "with CONFIG_DEBUG_INFO_BTF, such as a distribution's");
  }
  const auto has = [&](const char* name) {
    return btf__find_by_name_kind(types.get(), name, BTF_KIND_STRUCT) > 0;
  };
  if (!has("bpf_struct_ops_tcp_congestion_ops")) {
    throw InputError(subject + " does not support congestion controls as eBPF programs; boot a " +
                     "kernel with CONFIG_BPF_JIT and CONFIG_BPF_SYSCALL");
  }
  if (!has("bpf_struct_ops_link")) {
    throw InputError(subject +
                     " has no links for struct_ops (new in Linux 6.4), so a scheme would " +
                     "stay registered if nagi-tcp were killed" + cure);
  }
  kernel.cong_control_arguments = count_arguments(types.get(), "cong_control");
  if (kernel.cong_control_arguments != 2 && kernel.cong_control_arguments != 4) {
    throw InputError(subject + " calls cong_control with " +
                     std::to_string(kernel.cong_control_arguments) +
                     " arguments, which this nagi-tcp does not support; use a newer nagi");
  }
  return kernel;
}

}  // namespace nagi::tcp
