// SPDX-License-Identifier: Apache-2.0
//
// nagi-tcp: gives the running kernel a TCP congestion control of our own, or of a user's, as eBPF.
//
// Exit status: 0 ended in order, 1 something failed on the way, 2 the input, or the kernel, was refused.

#include <cap-ng.h>
#include <poll.h>
#include <spdlog/sinks/stdout_color_sinks.h>
#include <spdlog/spdlog.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <array>
#include <cerrno>
#include <iostream>
#include <nlohmann/json.hpp>
#include <optional>
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

/// What the command line asks for.
struct Arguments {
  std::string object;
  std::string name;
  std::vector<std::string> parameters;
  std::string events;
  std::string cgroup;
};

/// What holds the scheme are descriptors, so nothing privileged is left to do.
void drop_privileges() {
  capng_clear(CAPNG_SELECT_BOTH);
  if (capng_apply(CAPNG_SELECT_BOTH) != 0 && capng_apply(CAPNG_SELECT_CAPS) != 0) {
    spdlog::warn("could not give up all capabilities");
  }
  prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
}

Object prepared(const Arguments& arguments, const std::string& name) {
  Object object(arguments.object);
  object.set_name(name);
  for (const std::string& assignment : arguments.parameters) object.set_parameter(assignment);
  return object;
}

int hold(const Arguments& arguments) {
  io::die_with_parent();
  const io::Descriptor signals = io::stop_signals();
  Object object = prepared(arguments, arguments.name);
  const Kernel kernel = inspect_kernel();
  object.set_cong_control_arguments(kernel.cong_control_arguments);
  std::optional<EventFile> events;
  if (!arguments.events.empty()) {
    if (!object.has_events()) {
      throw InputError(object.scheme() + " tells of no events; leave --events out");
    }
    object.set_listening();
    events.emplace(arguments.events);
  }
  Registration registration(object, arguments.name, kernel);
  const PacketPrograms packets(registration.object(), object.scheme(), arguments.cgroup);
  std::optional<KeptAcks> kept;
  if (const int ring = registration.map("nagi_kept_acks"); ring >= 0) kept.emplace(ring);
  const volatile std::uint64_t* left_out =
      object.has("nagi_options_left_out")
          ? registration.zeroed_word(object.offset_of("nagi_options_left_out"))
          : nullptr;
  if (events) {
    events->listen(registration.map("nagi_events"),
                   registration.zeroed_word(object.offset_of("nagi_events_lost")),
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
  if (const std::uint64_t count = left_out ? *left_out : 0; count > 0) {
    spdlog::warn("{}: {} ACKs had no room for the option of {}; other options fill them",
                 arguments.name, count, object.scheme());
  }
  if (const std::uint64_t lost = events ? events->close() : 0; lost > 0) {
    spdlog::warn("{}: {} events are not in {}: they came faster than they could be written",
                 arguments.name, lost, arguments.events);
  }
  return 0;
}

int check(const Arguments& arguments) {
  const std::string name = "nagi_ck" + std::to_string(getpid());
  Object object = prepared(arguments, name);
  const Kernel kernel = inspect_kernel();
  object.set_cong_control_arguments(kernel.cong_control_arguments);
  const Registration registration(object, name, kernel);
  std::cout << object.scheme() << ": kernel " << kernel.release << " takes it" << std::endl;
  return 0;
}

int describe(const Arguments& arguments) {
  const Object object(arguments.object);
  json parameters = json::object();
  for (const Parameter& each : object.parameters()) {
    parameters[each.name] = {{"default", each.initial},
                             {"minimum", each.minimum},
                             {"maximum", each.maximum},
                             {"unit", each.unit},
                             {"meaning", each.meaning}};
  }
  std::cout << json{{"scheme", object.scheme()},
                    {"events", object.has_events()},
                    {"parameters", parameters}}
                   .dump(1)
            << std::endl;
  return 0;
}

int main(int argc, char** argv) {
  prctl(PR_SET_NAME, "nagi-tcp");  // also where an agent runs it from memory
  spdlog::set_default_logger(spdlog::stderr_color_st("nagi-tcp"));
  spdlog::set_pattern("%n: %v");
  libbpf_set_print(nullptr);

  CLI::App app{"nagi-tcp: TCP congestion controls as eBPF programs"};
  app.set_version_flag("--version", std::string("nagi-tcp ") + runtime::program_version);
  app.require_subcommand(1);
  Arguments arguments;
  int status = 0;
  const auto command = [&](const char* name, const char* what, auto&& perform) {
    auto* added = app.add_subcommand(name, what);
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
      "hold", "register a scheme until SIGTERM or the parent's death; says when ready", hold));
  hold_command->add_option("--as", arguments.name, "its name in the kernel, up to 15 characters")
      ->required();
  hold_command->add_option("--events", arguments.events,
                           "write what it tells of its connections to this file, as JSON lines");
  hold_command->add_option("--cgroup", arguments.cgroup,
                           "where a scheme that looks at packets sees them: a directory of cgroup "
                           "v2; if not given, where that is mounted");
  with_parameters(
      command("check", "say whether this kernel takes a scheme; leaves nothing", check));
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
