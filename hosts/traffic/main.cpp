// SPDX-License-Identifier: Apache-2.0
//
// nagi-traffic: applications for measurements, over the kernel's TCP and UDP. Each application has
// a server and a client. Each end writes its result as one line of JSON.
//
// Exit status: 0 if the application ended normally, also by SIGTERM; 1 if it failed; 2 if the input
// was refused.
#include <sys/prctl.h>

#include <CLI/CLI.hpp>
#include <fstream>
#include <functional>
#include <iostream>
#include <nlohmann/json.hpp>
#include <string>
#include <system_error>

#include "applications.hpp"
#include "datagrams/datagram.hpp"
#include "io/input_error.hpp"
#include "io/stop_signals.hpp"
#include "quantity.hpp"
#include "runtime/version.hpp"

namespace nagi::applications {
namespace {

using nlohmann::json;

/// The arguments of the command line.
struct Arguments {
  Ends ends;
  std::string output;
  Transfer transfer;
  PlaybackSettings playback;
  Cbr cbr;
  TokenBucketSettings token_bucket;
  Poisson poisson;
  OnOff onoff;
  RequestResponse request_response;
};

using Parse = std::uint64_t (*)(const std::string&);

/// Add an option whose value is a quantity.
CLI::Option* quantity(CLI::App* app, const char* name, Parse parse, std::uint64_t& target,
                      const char* summary) {
  return app
      ->add_option_function<std::string>(
          name,
          [name, parse, &target](const std::string& text) {
            try {
              target = parse(text);
            } catch (const InputError& error) {
              throw CLI::ValidationError(name, error.what());
            }
          },
          summary)
      ->type_name("QUANTITY");
}

/// Add an option as quantity() does, but refuse the value 0.
CLI::Option* positive(CLI::App* app, const char* name, Parse parse, std::uint64_t& target,
                      const char* summary) {
  return quantity(app, name, parse, target, summary)->check([](const std::string& text) {
    const bool is_zero =
        text.find_first_of("123456789") == std::string::npos && text.find('0') != std::string::npos;
    return is_zero ? "'" + text + "' is too small; give more than 0" : "";
  });
}

class CommandLine {
 public:
  CommandLine() {
    app_.set_version_flag("--version", std::string("nagi-traffic ") + runtime::program_version);
    app_.require_subcommand(1);
    app_.failure_message([](const CLI::App*, const CLI::Error& error) {
      return std::string("nagi-traffic: ") + error.what() + "\n";
    });
    add_bulk();
    add_transfer();
    add_playback();
    add_cbr();
    add_token_bucket();
    add_request_response();
    add_poisson();
    add_onoff();
  }

  int run(int argc, char** argv) {
    try {
      app_.parse(argc, argv);
      const json result = perform_();
      if (arguments_.output.empty()) {
        std::cout << result.dump() << std::endl;
        return std::cout ? 0 : 1;
      }
      std::ofstream file(arguments_.output);
      file << result.dump() << std::endl;
      if (!file) throw std::runtime_error("cannot write " + arguments_.output);
      return 0;
    } catch (const CLI::ParseError& error) {
      return app_.exit(error) == 0 ? 0 : 2;
    } catch (const InputError& error) {
      std::cerr << "nagi-traffic: " << error.what() << std::endl;
      return 2;
    } catch (const std::exception& error) {
      std::cerr << "nagi-traffic: " << error.what() << std::endl;
      return 1;
    }
  }

 private:
  using Perform = std::function<json()>;
  using AddOptions = std::function<void(CLI::App*)>;

  /// Add an application. `options` adds the settings that both ends accept.
  void add(const char* name, const char* summary, bool is_tcp, const Perform& client,
           const Perform& server, const AddOptions& options) {
    CLI::App* application = app_.add_subcommand(name, summary);
    application->require_subcommand(1);
    for (const bool is_client : {false, true}) {
      CLI::App* end = application->add_subcommand(
          is_client ? "client" : "server",
          is_client ? "connect to a server" : "listen, and serve one client");
      end->add_option("--address", arguments_.ends.address,
                      is_client ? "IP address to connect to" : "IP address to listen on")
          ->required();
      end->add_option("--port", arguments_.ends.port, "port at this address")
          ->required()
          ->check(CLI::Range(1, 65535));
      if (is_client) end->add_option("--from", arguments_.ends.from, "local IP address");
      if (is_tcp) {
        end->add_option("--congestion-control", arguments_.ends.congestion_control,
                        "congestion control for the data that this end sends; a restricted one "
                        "needs CAP_NET_ADMIN");
      }
      end->add_option("--output", arguments_.output, "file for the result, instead of stdout");
      options(end);
      end->final_callback([this, perform = is_client ? client : server] { perform_ = perform; });
    }
  }

  void add_bulk() {
    add(
        "bulk", "as much data as TCP accepts, until SIGTERM", true,
        [this] { return bulk_client(arguments_.ends); },
        [this] { return bulk_server(arguments_.ends); }, [](CLI::App*) {});
  }

  void add_transfer() {
    Transfer& settings = arguments_.transfer;
    add(
        "transfer", "data of a given size", true,
        [this] { return transfer_client(arguments_.ends, arguments_.transfer); },
        [this] { return transfer_server(arguments_.ends); },
        [&settings](CLI::App* end) {
          positive(end, "--size", parse_bytes, settings.size_bytes, "size of the data")
              ->required(end->get_name() == "client");
          positive(end, "--max-duration", parse_duration, settings.max_duration_ns,
                   "longest time from connect() on; after it the transfer is aborted");
        });
  }

  void add_playback() {
    PlaybackSettings& settings = arguments_.playback;
    add(
        "playback", "a stream that the server plays while it arrives", true,
        [this] { return playback_client(arguments_.ends, arguments_.playback); },
        [this] { return playback_server(arguments_.ends, arguments_.playback); },
        [&settings](CLI::App* end) {
          positive(end, "--rate", parse_rate, settings.rate_bps, "rate of the stream's payload")
              ->required();
          positive(end, "--interval", parse_duration, settings.interval_ns,
                   "time between attempts to read; an attempt reads the data of one interval")
              ->required();
          positive(end, "--size", parse_bytes, settings.size_bytes,
                   "size of the stream; default: it lasts until SIGTERM");
          end->add_flag("--ahead", settings.ahead,
                        "send as fast as TCP accepts data, not at the rate of the stream");
          quantity(end, "--wait", parse_duration, settings.wait_ns,
                   "time from the first byte to the first attempt; default: one interval");
        });
  }

  void add_cbr() {
    Cbr& settings = arguments_.cbr;
    add(
        "cbr", "datagrams at a constant rate", false,
        [this] { return cbr_client(arguments_.ends, arguments_.cbr); },
        [this] { return cbr_server(arguments_.ends, arguments_.cbr); },
        [&settings](CLI::App* end) {
          positive(end, "--rate", parse_rate, settings.rate_bps,
                   "rate of IP packets, including headers");
          positive(end, "--payload", parse_bytes, settings.payload_bytes, "payload of a datagram");
          positive(
              end, "--search", parse_duration, settings.search_ns,
              "first search for the largest rate, up to --rate, that the path carries; longest "
              "time of the search");
          positive(end, "--duration", parse_duration, settings.duration_ns,
                   "time to send; default: until SIGTERM");
          end->add_option("--codec", settings.codec,
                          "a voice call: 160 bytes and RTP's header every 20 ms; the server "
                          "computes R factor and MOS (ITU-T G.107)")
              ->check(CLI::IsMember({"g711"}));
          quantity(end, "--playout", parse_duration, settings.playout_ns,
                   "playout delay of a voice call, from the smallest one-way delay on; default: "
                   "60 ms");
        });
  }

  void add_token_bucket() {
    TokenBucketSettings& settings = arguments_.token_bucket;
    add(
        "token-bucket", "a sender that a token bucket limits", true,
        [this] { return token_bucket_client(arguments_.ends, arguments_.token_bucket); },
        [this] { return token_bucket_server(arguments_.ends); },
        [&settings](CLI::App* end) {
          positive(end, "--depth", parse_bytes, settings.depth_bytes,
                   "data that the tokens of a full bucket permit; default: 20 kB");
          positive(end, "--token", parse_bytes, settings.token_bytes,
                   "data that one token permits; default: 1 kB");
          end->add_option("--tokens", settings.tokens, "tokens per interval; default: 20")
              ->check(CLI::Range(1, 1'000'000));
          positive(end, "--interval", parse_duration, settings.interval_ns,
                   "time between additions of tokens; default: 30 ms");
        });
  }

  void add_request_response() {
    RequestResponse& settings = arguments_.request_response;
    add(
        "request-response", "requests, each sent after the response to the previous one", true,
        [this] { return request_response_client(arguments_.ends, arguments_.request_response); },
        [this] { return request_response_server(arguments_.ends, arguments_.request_response); },
        [&settings](CLI::App* end) {
          positive(end, "--request", parse_bytes, settings.request_bytes,
                   "size of a request; default: 200 bytes");
          add_sizes(end, settings.sizes);
          quantity(end, "--pause", parse_duration, settings.pause_ns,
                   "mean of the exponential time from a response to the next request; default: 0");
          end->add_option("--count", settings.count, "number of requests; default: until SIGTERM")
              ->check(CLI::PositiveNumber);
          add_seed(end, settings.seed);
        });
  }

  void add_poisson() {
    Poisson& settings = arguments_.poisson;
    add(
        "poisson", "transfers that arrive as a Poisson process, each over its own connection", true,
        [this] { return poisson_client(arguments_.ends, arguments_.poisson); },
        [this] { return poisson_server(arguments_.ends); },
        [&settings](CLI::App* end) {
          positive(end, "--interval", parse_duration, settings.interval_ns,
                   "mean time between arrivals")
              ->required();
          add_sizes(end, settings.sizes);
          add_seed(end, settings.seed);
        });
  }

  void add_onoff() {
    OnOff& settings = arguments_.onoff;
    add(
        "onoff", "a source that is alternately on and off", true,
        [this] { return onoff_client(arguments_.ends, arguments_.onoff); },
        [this] { return onoff_server(arguments_.ends, arguments_.onoff); },
        [&settings](CLI::App* end) {
          positive(end, "--rate", parse_rate, settings.rate_bps,
                   "rate while the source is on: of IP packets with UDP, of payload with TCP")
              ->required();
          positive(end, "--on-time", parse_duration, settings.on_ns,
                   "mean length of periods in which the source is on")
              ->required();
          positive(end, "--off-time", parse_duration, settings.off_ns,
                   "mean length of periods in which the source is off")
              ->required();
          end->add_option("--distribution", settings.distribution,
                          "distribution of both times: exponential (default) or pareto")
              ->check(CLI::IsMember({"exponential", "pareto"}));
          end->add_option("--shape", settings.shape,
                          "shape of the Pareto distribution, above 1; default: 1.5")
              ->check(CLI::Range(1.001, 100.0));
          end->add_option("--transport", settings.transport, "udp (default) or tcp")
              ->check(CLI::IsMember({"udp", "tcp"}));
          positive(end, "--payload", parse_bytes, settings.payload_bytes,
                   "payload of a datagram, or size of a write to TCP; default: 1000 bytes");
          add_seed(end, settings.seed);
        });
  }

  static void add_sizes(CLI::App* end, Sizes& sizes) {
    end->add_option("--sizes", sizes.distribution,
                    "distribution of sizes: constant (default), exponential, or pareto (bounded)")
        ->check(CLI::IsMember({"constant", "exponential", "pareto"}));
    positive(end, "--size", parse_bytes, sizes.size_bytes,
             "the constant size, or the mean of the exponential distribution");
    positive(end, "--min", parse_bytes, sizes.min_bytes, "minimum of the Pareto distribution");
    positive(end, "--max", parse_bytes, sizes.max_bytes, "maximum of the Pareto distribution");
    end->add_option("--shape", sizes.shape, "shape of the Pareto distribution; default: 1.2")
        ->check(CLI::Range(0.01, 100.0));
  }

  static void add_seed(CLI::App* end, Seed& seed) {
    end->add_option("--seed", seed.seed, "seed of all random draws; default: 1");
    end->add_option("--stream", seed.stream,
                    "name of the stream of random draws; streams are independent");
  }

  CLI::App app_{"nagi-traffic: network applications that measure their performance"};
  Arguments arguments_;
  Perform perform_;
};

}  // namespace
}  // namespace nagi::applications

int main(int argc, char** argv) {
  prctl(PR_SET_NAME, "nagi-traffic");  // an agent may run this program from memory
  return nagi::applications::CommandLine().run(argc, argv);
}
