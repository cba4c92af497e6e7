// SPDX-License-Identifier: Apache-2.0
//
// Fuzzes the loader: any text is either refused by an InputError or gives a program that packets
// can pass.
#include <cstdlib>
#include <string>

#include "fuzz/use_machine.hpp"
#include "io/input_error.hpp"

using namespace nagi::p4;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  try {
    Program program =
        load_program(std::string(reinterpret_cast<const char*>(data), size), "fuzz.json");
    for (const DescribedArray& array : program.describe().registers) {
      if (array.size > 1 << 20) return 0;  // memory is asked for when a machine is made
    }
    nagi::io::FramePool pool(fuzz_slot_bytes);
    Settings settings;
    settings.rounds = 4;
    Machine machine(std::move(program), pool, settings);
    machine.control().multicast_create(1, {{1, {1, 2}}, {2, {3}}});
    for (std::uint32_t session = 0; session < 8; ++session) {
      machine.control().mirror_add(session,
                                   {4, session % 2 == 0 ? std::optional(1U) : std::nullopt});
    }
    std::vector<std::uint8_t> bytes(200);
    for (std::size_t i = 0; i < 8; ++i) {
      for (std::size_t at = 0; at < bytes.size(); ++at) {
        bytes[at] = i % 2 == 0 && size > 0 ? data[(at * 7 + i * 131) % size]
                                           : static_cast<std::uint8_t>(at * i);
      }
      pass(machine, pool, 1, {bytes.data(), i * 25}, 1000 * i);
    }
    (void)machine.take_digests();
    if (!adds_up(machine.counters())) std::abort();
  } catch (const nagi::InputError&) {
  }
  return 0;
}
