// SPDX-License-Identifier: Apache-2.0
//
// nagi-tcp: loads a TCP congestion control of nagi or of a user, as eBPF, into the running kernel.
//
// Exit status: 0 on success, 1 after a failure at run time, 2 if the input or the kernel is refused.

#include <cap-ng.h>
#include <poll.h>
#include <spdlog/sinks/stdout_color_sinks.h>
#include <spdlog/spdlog.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <array>
#include <cerrno>
#include <cstdint>
#include <iostream>
#include <nlohmann/json.hpp>
#include <optional>
#include <sstream>
#include <string>
#include <system_error>
#include <vector>

#include "runtime/version.hpp"
#include "events.hpp"
#include "io/descriptor.hpp"
#include "io/input_error.hpp"
#include "io/stop_signals.hpp"
#include "kernel.hpp"
#include "object.hpp"
#include "packets.hpp"
#include "registration.hpp"

namespace nagi::tcp {
namespace {

using nlohmann::json;

/// The arguments of the command line.
struct Arguments {
  std::string object;
  std::string name;
  std::vector<std::string> parameters;
  std::string events;
  std::string cgroup;
};

/// Give up all capabilities. The open descriptors keep the scheme registered, so nagi-tcp needs no more privileges.
void drop_privileges() {
  capng_clear(CAPNG_SELECT_BOTH);
  if (capng_apply(CAPNG_SELECT_BOTH) != 0 && capng_apply(CAPNG_SELECT_CAPS) != 0) {
    spdlog::warn("could not give up all capabilities");
  }
  prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
}

/// Read the object file and set the scheme's name and parameters.
Object prepare_object(const Arguments& arguments, const std::string& name) {
  Object object(arguments.object);
  object.set_name(name);
  for (const std::string& assignment : arguments.parameters) object.set_parameter(assignment);
  return object;
}

/// Register the scheme until a signal arrives or the parent process ends.
int hold(const Arguments& arguments) {
  io::die_with_parent();
  const io::Descriptor signals = io::stop_signals();
  Object object = prepare_object(arguments, arguments.name);
  const Kernel kernel = inspect_kernel();
  object.set_cong_control_arguments(kernel.cong_control_arguments);
  std::optional<EventFile> events;
  if (!arguments.events.empty()) {
    if (!object.has_events()) {
      throw InputError(object.scheme() + " reports no events; omit --events");
    }
    object.set_listening();
    events.emplace(arguments.events);
  }
  Registration registration(object, arguments.name, kernel);
  const PacketPrograms packets(registration.object(), object.scheme(), arguments.cgroup);
  std::optional<KeptAcks> kept;
  if (const int ring = registration.find_map("nagi_kept_acks"); ring >= 0) kept.emplace(ring);
  const volatile std::uint64_t* options_left_out =
      object.has_variable("nagi_options_left_out")
          ? registration.map_zeroed_word(object.offset_of("nagi_options_left_out"))
          : nullptr;
  if (events) {
    events->listen(registration.find_map("nagi_events"),
                   registration.map_zeroed_word(object.offset_of("nagi_events_lost")),
                   {{"scheme", object.scheme()},
                    {"name", arguments.name},
                    {"kernel", kernel.release},
                    {"parameters", object.values()}});
  }
  drop_privileges();
  std::cout << arguments.name << " ready" << std::endl;

  std::array<pollfd, 3> watched = {pollfd{signals.get(), POLLIN, 0},
                                   pollfd{events ? events->descriptor() : -1, POLLIN, 0},
                                   pollfd{kept ? kept->descriptor() : -1, POLLIN, 0}};
  while (watched[0].revents == 0) {
    if (poll(watched.data(), watched.size(), -1) < 0 && errno != EINTR) io::throw_errno("poll");
    if (kept) kept->send();
    if (events) events->write();
  }
  if (const std::uint64_t count = options_left_out ? *options_left_out : 0; count > 0) {
    spdlog::warn("{}: {} ACKs left without the option of {}, because other options left no room",
                 arguments.name, count, object.scheme());
  }
  if (const std::uint64_t lost = events ? events->close() : 0; lost > 0) {
    spdlog::warn("{}: {} events are missing in {}, because they came faster than nagi-tcp writes",
                 arguments.name, lost, arguments.events);
  }
  return 0;
}

/// Choose the name of a congestion control for a short time.
///
/// The name is random, because containers of one kernel may have processes of the same number.
std::string make_temporary_name() {
  std::uint32_t number = 0;
  if (getrandom(&number, sizeof number, 0) < 0) io::throw_errno("getrandom");
  std::ostringstream name;
  name << "nagi_ck" << std::hex << number;
  return name.str();
}

/// Register the scheme under a temporary name and remove it again.
int check(const Arguments& arguments) {
  const std::string name = make_temporary_name();
  Object object = prepare_object(arguments, name);
  const Kernel kernel = inspect_kernel();
  object.set_cong_control_arguments(kernel.cong_control_arguments);
  const Registration registration(object, name, kernel);
  std::cout << object.scheme() << ": kernel " << kernel.release << " accepts the scheme"
            << std::endl;
  return 0;
}

/// Print the scheme's name and parameters as JSON.
int describe(const Arguments& arguments) {
  const Object object(arguments.object);
  json parameters = json::object();
  for (const Parameter& parameter : object.parameters()) {
    parameters[parameter.name] = {{"default", parameter.initial},
                                  {"minimum", parameter.minimum},
                                  {"maximum", parameter.maximum},
                                  {"unit", parameter.unit},
                                  {"meaning", parameter.meaning}};
  }
  std::cout << json{{"scheme", object.scheme()},
                    {"events", object.has_events()},
                    {"parameters", parameters}}
                   .dump(1)
            << std::endl;
  return 0;
}

int main(int argc, char** argv) {
  prctl(PR_SET_NAME, "nagi-tcp");  // the agent may run the program from memory, without a file name
  spdlog::set_default_logger(spdlog::stderr_color_st("nagi-tcp"));
  spdlog::set_pattern("%n: %v");
  libbpf_set_print(nullptr);

  CLI::App app{"nagi-tcp: TCP congestion controls as eBPF programs"};
  app.set_version_flag("--version", std::string("nagi-tcp ") + runtime::program_version);
  app.require_subcommand(1);
  Arguments arguments;
  int status = 0;
  const auto command = [&](const char* name, const char* summary, auto&& perform) {
    auto* added = app.add_subcommand(name, summary);
    added->add_option("object", arguments.object, "the scheme's object file")->required();
    added->final_callback([&status, &arguments, perform] { status = perform(arguments); });
    return added;
  };
  const auto with_parameters = [&](CLI::App* added) {
    added->add_option("--set", arguments.parameters, "a parameter, as name=value; may be repeated")
        ->allow_extra_args(false);
    return added;
  };
  auto* hold_command = with_parameters(command(
      "hold", "register a scheme until SIGTERM or the end of the parent; prints a line when ready",
      hold));
  hold_command
      ->add_option("--as", arguments.name, "name of the scheme in the kernel, up to 15 characters")
      ->required();
  hold_command->add_option("--events", arguments.events,
                           "write the scheme's events to this file, as JSON lines");
  hold_command->add_option("--cgroup", arguments.cgroup,
                           "directory of cgroup v2 to which programs that process packets are "
                           "attached; default: the root where cgroup v2 is mounted");
  with_parameters(
      command("check", "check whether this kernel accepts a scheme; nothing stays loaded", check));
  command("describe", "print a scheme's parameters, as JSON", describe);

  try {
    app.parse(argc, argv);
    return status;
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : 2;
  } catch (const InputError& error) {
    spdlog::error("{}", error.what());
    return 2;
  } catch (const std::exception& error) {
    spdlog::error("{}", error.what());
    return 1;
  }
}

}  // namespace
}  // namespace nagi::tcp

int main(int argc, char** argv) { return nagi::tcp::main(argc, argv); }
