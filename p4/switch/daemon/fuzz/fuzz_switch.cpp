// SPDX-License-Identifier: Apache-2.0
//
// Fuzzes the configuration and the operations of nagi-switch. The first line is a configuration:
// either it is refused by an InputError, or its queues can be written and read without a change.
// The other lines are operations on a switch with edge.p4. Every operation must get an answer, a
// refused operation must change nothing, and afterwards every packet must still be sent or counted
// as dropped.
#include <cstdlib>
#include <cstring>
#include <sstream>

#include "../tests/frames.hpp"
#include "control/control_socket.hpp"
#include "program/control.hpp"
#include "switch/daemon/controller.hpp"
#include "switch/daemon/switch.hpp"

namespace {

using namespace nagi;
using nlohmann::json;

void read_configuration(const std::string& text) {
  for (const p4::Medium medium : {p4::Medium::interfaces, p4::Medium::captures}) {
    try {
      const p4::SwitchConfig config = p4::read_config(runtime::JsonSource("fuzz", text), medium);
      for (const p4::PortConfig& port : config.ports) {
        json once = to_json(port.queue);
        once.erase("priorities");
        p4::QueueConfig again;
        read_queue(ObjectReader(once, json::json_pointer()), again);
        again.priorities = port.queue.priorities;
        if (to_json(again) != to_json(port.queue)) std::abort();
      }
    } catch (const InputError&) {
    }
  }
}

class Fuzzed {
 public:
  Fuzzed()
      : switch_(p4::two_ports(), p4::load_program_file(p4::edge_program), pool_, {}),
        controller_(switch_, {[] {}, [](std::size_t) {}, [] { return json::array(); },
                              [] { return json::object(); }}) {
    controller_.answer(p4::route(2));
  }

  void perform(const std::string& line) {
    const std::size_t before = entries();
    const json answer = json::parse(
        runtime::answer(line, [this](const json& request) { return controller_.answer(request); }));
    if (!answer.contains("ok")) std::abort();
    if (answer["ok"] == false && entries() != before) std::abort();
    pass();
  }

 private:
  std::size_t entries() {
    std::size_t all = 0;
    for (const p4::DescribedTable& table : switch_.machine().describe().tables) {
      if (!table.is_hidden) all += switch_.machine().control().table_size(table.name);
    }
    return all;
  }

  void pass() {
    const auto bytes = p4::ipv4_frame(2, 100);
    const io::Frame frame{pool_.take(), 256, static_cast<std::uint32_t>(bytes.size())};
    std::memcpy(pool_.data(frame.slot) + frame.offset, bytes.data(), bytes.size());
    switch_.arrive(0, frame, switch_.now() + Duration{1'000'000});
    for (const p4::Departure& departure : switch_.departures()) {
      pool_.give_back(departure.frame.slot);
    }
    switch_.departures().clear();
    const p4::Counters& count = switch_.machine().counters();
    std::uint64_t ends = count.ended();
    for (std::size_t port = 0; port < switch_.ports(); ++port) {
      ends += switch_.depth(port).now().packets;
    }
    if (count.received + count.copies != ends) std::abort();
  }

  io::FramePool pool_{4096};
  p4::Switch switch_;
  p4::Controller controller_;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  std::istringstream text(std::string(reinterpret_cast<const char*>(data), size));
  std::string line;
  if (!std::getline(text, line)) return 0;
  read_configuration(line);
  // Loading the program takes far longer than an operation, so it is done once.
  static auto fuzzed = std::make_unique<Fuzzed>();
  while (std::getline(text, line)) fuzzed->perform(line);
  return 0;
}
