// SPDX-License-Identifier: Apache-2.0
//
// Fuzzes the processing of packets: edge.p4 and the programs in p4/tests/programs, with their
// entries, process arbitrary bytes. The first byte of an input selects the program, the second the
// port. If the second byte is below 128, the following bytes are the packet. Otherwise the third
// byte selects a recorded packet of the program, and the following pairs of bytes change it: an
// offset and a new value.
#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <string>

#include "fuzz/use_machine.hpp"
#include "program/control.hpp"
#include "switch/daemon/operations.hpp"

using namespace nagi::p4;

namespace {

using Path = std::filesystem::path;

struct Switch {
  nagi::io::FramePool pool{fuzz_slot_bytes};
  std::unique_ptr<Machine> machine;
  std::vector<std::vector<std::uint8_t>> packets;
};

std::ifstream open(const Path& path) {
  std::ifstream file(path);
  if (!file) std::abort();
  return file;
}

/// Read lines of a port and a packet in hexadecimal.
void read_packets(const Path& path, Switch& into) {
  std::ifstream file = open(path);
  std::string port;
  std::string digits;
  while (file >> port >> digits) {
    std::vector<std::uint8_t> bytes;
    for (std::size_t at = 0; at + 1 < digits.size(); at += 2) {
      bytes.push_back(static_cast<std::uint8_t>(std::stoul(digits.substr(at, 2), nullptr, 16)));
    }
    into.packets.push_back(std::move(bytes));
  }
  if (into.packets.empty()) std::abort();
}

void perform_all(const Path& path, Control& control) {
  std::ifstream file = open(path);
  for (std::string line; std::getline(file, line);) {
    const auto operation = nlohmann::json::parse(line);
    nagi::ObjectReader reader(operation, nlohmann::json::json_pointer());
    const std::string op = reader.text("op");
    perform_operation(control, reader, op);
  }
}

std::unique_ptr<Switch> load(const Path& compiled, const Path& recorded) {
  std::ifstream stream = open(compiled);
  const std::string text(std::istreambuf_iterator<char>(stream), {});
  auto one = std::make_unique<Switch>();
  Settings settings;
  settings.rounds = 8;
  one->machine =
      std::make_unique<Machine>(load_program(text, compiled.string()), one->pool, settings);
  perform_all(recorded.string() + ".entries.jsonl", one->machine->control());
  read_packets(recorded.string() + ".packets", *one);
  return one;
}

std::vector<std::unique_ptr<Switch>> load_all() {
  const Path directory = NAGI_P4_DIRECTORY;
  const Path programs = directory / "tests" / "programs";
  std::vector<Path> files;
  for (const auto& entry : std::filesystem::directory_iterator(programs)) {
    if (entry.path().extension() == ".json") files.push_back(entry.path());
  }
  std::sort(files.begin(), files.end());
  std::vector<std::unique_ptr<Switch>> all;
  all.push_back(load(directory / "edge.json", programs / "edge"));
  for (const Path& file : files) all.push_back(load(file, programs / file.stem()));
  return all;
}

std::vector<std::uint8_t> packet_of(const Switch& chosen, std::span<const std::uint8_t> input) {
  constexpr std::uint8_t recorded = 0x80;
  if (input[1] < recorded || input.size() < 3) return {input.begin() + 2, input.end()};
  auto packet = chosen.packets[input[2] % chosen.packets.size()];
  for (std::size_t i = 3; i + 1 < input.size() && !packet.empty(); i += 2) {
    packet[input[i] % packet.size()] = input[i + 1];
  }
  return packet;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const auto all = load_all();
  if (size < 2) return 0;
  Switch& chosen = *all[data[0] % all.size()];
  static std::uint64_t now_us = 0;
  const auto packet = packet_of(chosen, {data, size});
  pass(*chosen.machine, chosen.pool, data[1] % 8, packet, ++now_us);
  (void)chosen.machine->take_digests();
  if (!adds_up(chosen.machine->counters())) std::abort();
  return 0;
}
