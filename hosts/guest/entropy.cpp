// SPDX-License-Identifier: Apache-2.0
//
// Reproducible entropy. The guest kernel of the virtual lab takes its entropy from the host only by
// getrandom(2). This library, preloaded into the guest kernel, answers instead with numbers that
// follow from NAGI_SEED (a 64-bit number) by splitmix64 (Steele, Lea, Flood: Fast splittable
// pseudorandom number generators, OOPSLA 2014). So all random numbers of a guest, such as ports and
// sequence numbers, are equal on every boot. They are not secret, and a guest has no secrets.
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

std::uint64_t given_seed() {
  const char* given = std::getenv("NAGI_SEED");
  if (given == nullptr) {
    std::fputs("repeatable.so: NAGI_SEED is not set\n", stderr);
    std::exit(2);
  }
  return std::strtoull(given, nullptr, 10);
}

}  // namespace

extern "C" ssize_t getrandom(void* buffer, std::size_t length, unsigned int /*flags*/) {
  static SplitMix numbers{given_seed()};
  auto* to = static_cast<unsigned char*>(buffer);
  for (std::size_t done = 0; done < length; done += sizeof(std::uint64_t)) {
    const std::uint64_t drawn = numbers.next();
    const std::size_t left = length - done;
    std::memcpy(to + done, &drawn, left < sizeof drawn ? left : sizeof drawn);
  }
  return static_cast<ssize_t>(length);
}
