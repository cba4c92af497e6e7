// SPDX-License-Identifier: Apache-2.0
//
// Reproducible entropy. The guest kernel of the virtual lab takes entropy from the host by
// getrandom(2) alone. This library is preloaded into the guest kernel and replaces getrandom(). Its
// numbers are those of splitmix64 (Steele, Lea, Flood: Fast splittable pseudorandom number
// generators, OOPSLA 2014) with the 64-bit seed NAGI_SEED. So all random numbers of a guest, such
// as ports and sequence numbers, are equal on every boot. Others can compute these numbers, which
// is no danger, because a guest has no secrets.
#include <sys/types.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace {

struct SplitMix {
  std::uint64_t state;

  std::uint64_t next() {
    std::uint64_t mixed = state += 0x9e3779b97f4a7c15U;
    mixed = (mixed ^ (mixed >> 30)) * 0xbf58476d1ce4e5b9U;
    mixed = (mixed ^ (mixed >> 27)) * 0x94d049bb133111ebU;
    return mixed ^ (mixed >> 31);
  }
};

std::uint64_t read_seed() {
  const char* text = std::getenv("NAGI_SEED");
  if (text == nullptr) {
    std::fputs("repeatable.so: NAGI_SEED is not set\n", stderr);
    std::exit(2);
  }
  return std::strtoull(text, nullptr, 10);
}

}  // namespace

extern "C" ssize_t getrandom(void* buffer, std::size_t length, unsigned int /*flags*/) {
  static SplitMix generator{read_seed()};
  auto* bytes = static_cast<unsigned char*>(buffer);
  for (std::size_t offset = 0; offset < length; offset += sizeof(std::uint64_t)) {
    const std::uint64_t number = generator.next();
    const std::size_t remaining = length - offset;
    std::memcpy(bytes + offset, &number, remaining < sizeof number ? remaining : sizeof number);
  }
  return static_cast<ssize_t>(length);
}
