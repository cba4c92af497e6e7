// SPDX-License-Identifier: Apache-2.0
#include "io/offloads.hpp"

#include <linux/ethtool.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>

#include "io/descriptor.hpp"
#include "io/offload_list.hpp"

namespace nagi::io {

namespace {

class Ethtool {
 public:
  explicit Ethtool(const std::string& interface)
      : socket_(socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0)) {
    if (socket_.get() < 0) throw_errno("cannot open a socket");
    if (interface.size() >= IFNAMSIZ) {
      throw std::system_error(ENODEV, std::generic_category(), "no interface " + interface);
    }
    std::memcpy(request_.ifr_name, interface.c_str(), interface.size());
  }

  [[nodiscard]] bool is_on(const Offload& offload) {
    const std::string operation = "cannot read offloads";
    if (offload.feature == nullptr) {
      ethtool_value value{offload.get, 0};
      return call(&value, operation) && value.data != 0;
    }
    const std::optional<std::uint32_t> feature_bit = find(offload.feature);
    if (!feature_bit) return false;
    const std::uint32_t blocks = (feature_count() + 31) / 32;
    std::vector<std::uint32_t> answer(2 + blocks * block_words, 0);
    answer[0] = ETHTOOL_GFEATURES;
    answer[1] = blocks;
    if (!call(answer.data(), operation)) return false;
    const std::size_t active = 2 + *feature_bit / 32 * block_words + active_word;
    return (answer[active] >> (*feature_bit % 32) & 1) != 0;
  }

  void set(const Offload& offload, bool on) {
    const std::string operation = std::string("cannot switch ") + offload.name;
    if (offload.feature == nullptr) {
      ethtool_value value{offload.set, on ? 1U : 0U};
      call(&value, operation);
      return;
    }
    const std::optional<std::uint32_t> feature_bit = find(offload.feature);
    if (!feature_bit) return;
    const std::uint32_t blocks = (feature_count() + 31) / 32;
    std::vector<std::uint32_t> wish(2 + blocks * 2, 0);  // per block: bits to change, their values
    wish[0] = ETHTOOL_SFEATURES;
    wish[1] = blocks;
    const std::uint32_t bit = 1U << (*feature_bit % 32);
    wish[2 + *feature_bit / 32 * 2] = bit;
    if (on) wish[3 + *feature_bit / 32 * 2] = bit;
    call(wish.data(), operation);
  }

 private:
  // Words of ethtool_get_features_block: available, requested, active, never_changed.
  static constexpr std::size_t block_words = 4;
  static constexpr std::size_t active_word = 2;

  /// Return whether the device supports the command.
  bool call(void* data, const std::string& operation) {
    request_.ifr_data = static_cast<char*>(data);
    if (ioctl(socket_.get(), SIOCETHTOOL, &request_) >= 0) return true;
    if (errno == EOPNOTSUPP) return false;
    throw_errno(operation + " of " + request_.ifr_name);
  }

  /// Return the number of features of this kernel.
  std::uint32_t feature_count() {
    if (count_ == 0) {
      ethtool_sset_info request{};
      request.cmd = ETHTOOL_GSSET_INFO;
      request.sset_mask = 1U << ETH_SS_FEATURES;
      std::array<char, sizeof request + sizeof count_> answer{};
      std::memcpy(answer.data(), &request, sizeof request);
      if (call(answer.data(), "cannot count offloads")) {
        std::memcpy(&count_, answer.data() + sizeof request, sizeof count_);
      }
    }
    return count_;
  }

  /// Return the bit of a feature, or nothing if this kernel does not have it.
  std::optional<std::uint32_t> find(const std::string& feature) {
    ethtool_gstrings request{};
    request.cmd = ETHTOOL_GSTRINGS;
    request.string_set = ETH_SS_FEATURES;
    request.len = feature_count();
    constexpr std::size_t head = sizeof request;
    std::vector<char> names(head + std::size_t{request.len} * ETH_GSTRING_LEN, 0);
    std::memcpy(names.data(), &request, head);
    if (!call(names.data(), "cannot read the names of offloads")) return std::nullopt;
    for (std::uint32_t bit = 0; bit < request.len; ++bit) {
      const char* name = names.data() + head + std::size_t{bit} * ETH_GSTRING_LEN;
      if (feature == std::string(name, strnlen(name, ETH_GSTRING_LEN))) return bit;
    }
    return std::nullopt;
  }

  Descriptor socket_;
  ifreq request_{};
  std::uint32_t count_ = 0;
};

}  // namespace

std::vector<std::string> offloads_on(const std::string& interface) {
  Ethtool ethtool(interface);
  std::vector<std::string> on;
  for (const Offload& offload : offloads) {
    if (ethtool.is_on(offload)) on.emplace_back(offload.name);
  }
  return on;
}

void set_offload(const std::string& interface, const std::string& name, bool on) {
  Ethtool ethtool(interface);
  for (const Offload& offload : offloads) {
    if (name == offload.name) ethtool.set(offload, on);
  }
}

}  // namespace nagi::io
