// SPDX-License-Identifier: Apache-2.0
//
// nagi-fpga: simulates the core of the FPGA link emulator for one link of nagi-link.
//
// Exit status: 0 on success, 1 if the core or nagi-link fails, 2 if the input is refused.

#include <cap-ng.h>
#include <sched.h>
#include <sys/prctl.h>

#include <iostream>
#include <nlohmann/json.hpp>
#include <string>

#include "control/command_line.hpp"
#include "daemon/fpga_socket.hpp"
#include "include/nagi_registers.h"
#include "io/stop_signals.hpp"
#include "simulation/configuration.hpp"
#include "simulation/core.hpp"
#include "simulation/session.hpp"

namespace nagi::fpga {
namespace {

struct Arguments {
  std::string link;
  int socket = -1;
};

/// Request real-time scheduling, because nagi-link, which has it too, waits for this process. If
/// the request fails, answers merely come later.
void raise_priority() {
  sched_param lowest{};
  lowest.sched_priority = sched_get_priority_min(SCHED_FIFO);
  sched_setscheduler(0, SCHED_FIFO, &lowest);
}

/// Give up all privileges, since the process needs only its socket.
void drop_privileges() {
  capng_clear(CAPNG_SELECT_CAPS);
  if (capng_apply(CAPNG_SELECT_CAPS) != 0) spdlog::warn("could not give up all capabilities");
  prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
}

int run(const Arguments& arguments) {
  // The process must not end when a terminal is closed. nagi-link ends it by closing the socket.
  std::signal(SIGHUP, SIG_IGN);
  std::signal(SIGPIPE, SIG_IGN);
  io::die_with_parent();
  raise_priority();
  drop_privileges();
  daemon::fpga::Socket socket(arguments.socket, "link " + arguments.link);
  Session(socket).serve();
  return 0;
}

int identify() {
  Core core;
  require_known(core);
  const std::uint32_t sizes = core.read_register(NAGI_FPGA_SIZES);
  const std::uint32_t widths = core.read_register(NAGI_FPGA_WIDTHS);
  const auto field = [](std::uint32_t value, std::uint32_t mask, std::uint32_t shift) {
    return (value & mask) >> shift;
  };
  const nlohmann::json identity = {
      {"build_id", core.read_register(NAGI_FPGA_BUILD_ID)},
      {"register_map", core.read_register(NAGI_FPGA_MAP_VERSION)},
      {"clock_period_ps", core.read_register(NAGI_FPGA_CLOCK_PERIOD_PS)},
      {"data_width",
       field(widths, NAGI_FPGA_WIDTHS_DATA_WIDTH_MASK, NAGI_FPGA_WIDTHS_DATA_WIDTH_SHIFT)},
      {"memory_words", std::uint64_t{1} << field(sizes, NAGI_FPGA_SIZES_ADDR_WIDTH_MASK,
                                                 NAGI_FPGA_SIZES_ADDR_WIDTH_SHIFT)},
      {"memory_word_bytes",
       field(widths, NAGI_FPGA_WIDTHS_MEM_WIDTH_MASK, NAGI_FPGA_WIDTHS_MEM_WIDTH_SHIFT) / 8},
      {"packets", std::uint64_t{1} << field(sizes, NAGI_FPGA_SIZES_QUEUE_DEPTH_WIDTH_MASK,
                                            NAGI_FPGA_SIZES_QUEUE_DEPTH_WIDTH_SHIFT)},
      {"longest_frame",
       field(sizes, NAGI_FPGA_SIZES_MAX_FRAME_MASK, NAGI_FPGA_SIZES_MAX_FRAME_SHIFT)}};
  std::cout << identity.dump(1) << "\n";
  return 0;
}

int main(int argc, char** argv) {
  runtime::CommandLine line("nagi-fpga", "simulates the core of the FPGA link emulator");
  Arguments arguments;
  CLI::App* run_command = line.add("run", "carry a link for nagi-link, which starts this command",
                                   [&arguments] { return run(arguments); });
  run_command->add_option("--link", arguments.link, "the link's name, for messages")->required();
  run_command->add_option("--socket", arguments.socket, "descriptor of the socket to nagi-link")
      ->required();
  line.add("identify", "print build id and dimensions of the simulated core",
           [] { return identify(); });
  return line.run(argc, argv);
}

}  // namespace
}  // namespace nagi::fpga

int main(int argc, char** argv) { return nagi::fpga::main(argc, argv); }
