/* SPDX-License-Identifier: Apache-2.0 */
//
// A double of UHD's devices: a library that UHD loads (UHD_MODULE_PATH) and that registers the
// device type nagi_double. uhd::usrp::multi_usrp, uhd_usrp_probe and gr-uhd drive the double like a
// device. Only its signal path is simulated.
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstring>
#include <set>
#include <sstream>
#include <string>
#include <uhd/device.hpp>
#include <uhd/exception.hpp>
#include <uhd/property_tree.hpp>
#include <uhd/types/mac_addr.hpp>
#include <uhd/types/ranges.hpp>
#include <uhd/types/sensors.hpp>
#include <uhd/usrp/dboard_eeprom.hpp>
#include <uhd/usrp/mboard_eeprom.hpp>
#include <uhd/usrp/subdev_spec.hpp>
#include <uhd/utils/static.hpp>
#include <vector>

#include "rx_stream.hpp"
#include "settings.hpp"
#include "tx_stream.hpp"

namespace nagi::uhd_double {

namespace {

constexpr double min_frequency_hz = 70e6;
constexpr double max_frequency_hz = 6e9;
constexpr double min_decimation = 1;
constexpr double max_decimation = 512;
constexpr double link_bytes_s = 400e6;

/// A lock that allows only one process to use a device. The process holds the device's name, an
/// abstract Unix socket.
class DeviceLock {
 public:
  explicit DeviceLock(const std::string& serial)
      : socket_(socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0)) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    const std::string name = "nagi-uhd-double/" + serial;
    std::memcpy(address.sun_path + 1, name.data(),
                std::min(name.size(), sizeof address.sun_path - 1));
    const auto length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 +
                                               std::min(name.size(), sizeof address.sun_path - 1));
    if (bind(socket_, reinterpret_cast<sockaddr*>(&address), length) != 0) {
      close(socket_);
      throw uhd::runtime_error("the device with serial " + serial +
                               " is in use by another process");
    }
  }
  ~DeviceLock() { close(socket_); }
  DeviceLock(const DeviceLock&) = delete;
  DeviceLock& operator=(const DeviceLock&) = delete;

 private:
  int socket_;
};

class Device : public uhd::device {
 public:
  explicit Device(const Settings& settings)
      : lock_(settings.serial), board_(std::make_shared<Board>(settings)) {
    _type = uhd::device::USRP;
    _tree = uhd::property_tree::make();
    for (std::size_t i = 0; i < settings.channels; ++i) {
      for (const bool is_output : {false, true}) {
        auto channel = std::make_shared<Channel>();
        channel->number = static_cast<std::uint32_t>(i);
        channel->cable = Cable::named(is_output ? settings.tx_cables[i] : settings.rx_cables[i]);
        (is_output ? outputs_ : inputs_).push_back(channel);
      }
    }
    make_tree();
  }

  uhd::rx_streamer::sptr get_rx_stream(const uhd::stream_args_t& arguments) override {
    return std::make_shared<RxStream>(board_, select_channels(inputs_, arguments), arguments);
  }
  uhd::tx_streamer::sptr get_tx_stream(const uhd::stream_args_t& arguments) override {
    auto stream =
        std::make_shared<TxStream>(board_, select_channels(outputs_, arguments), arguments);
    last_output_ = stream;
    return stream;
  }
  bool recv_async_msg(uhd::async_metadata_t& message, double timeout) override {
    const auto stream = last_output_.lock();
    return stream && stream->recv_async_msg(message, timeout);
  }

 private:
  using Channels = std::vector<std::shared_ptr<Channel>>;

  static std::vector<Channel*> select_channels(const Channels& channels,
                                               const uhd::stream_args_t& arguments) {
    if (arguments.cpu_format != "fc32" && arguments.cpu_format != "sc16") {
      throw uhd::value_error(std::string(device_type) + ": cpu_format " + arguments.cpu_format +
                             ": the formats are fc32 and sc16");
    }
    if (!arguments.otw_format.empty() && arguments.otw_format != "sc16") {
      throw uhd::value_error(std::string(device_type) + ": otw_format " + arguments.otw_format +
                             ": the format is sc16");
    }
    std::vector<Channel*> selected;
    for (const std::size_t index : arguments.channels) selected.push_back(channels.at(index).get());
    if (selected.empty()) selected.push_back(channels.front().get());
    return selected;
  }

  void make_tree();
  void make_front_end(const uhd::fs_path& dboard, Channel& channel, bool is_output);
  void make_dsp(const uhd::fs_path& dsp, Channel& channel);

  DeviceLock lock_;
  std::shared_ptr<Board> board_;
  Channels inputs_;
  Channels outputs_;
  std::weak_ptr<TxStream> last_output_;
};

void Device::make_tree() {
  const Settings& settings = board_->settings;
  _tree->create<std::string>("/name").set("nagi double");
  const uhd::fs_path mb = "/mboards/0";
  _tree->create<std::string>(mb / "name").set(device_type);
  _tree->create<std::string>(mb / "codename").set("double");
  _tree->create<std::string>(mb / "fw_version").set("1.0");
  _tree->create<std::string>(mb / "fpga_version").set("1.0");
  _tree->create<double>(mb / "link_max_rate").set(link_bytes_s);
  uhd::usrp::mboard_eeprom_t eeprom;
  eeprom["serial"] = settings.serial;
  eeprom["name"] = device_type;
  _tree->create<uhd::usrp::mboard_eeprom_t>(mb / "eeprom").set(eeprom);
  _tree->create<double>(mb / "tick_rate").set(settings.master_clock_hz);
  _tree->access<double>(mb / "tick_rate").add_coerced_subscriber([this](double hz) {
    board_->tick_hz = hz;
  });
  _tree->create<uhd::time_spec_t>(mb / "time/cmd");
  _tree->create<uhd::time_spec_t>(mb / "time/now")
      .set_publisher([this] { return board_->clock.now(); })
      .add_coerced_subscriber([this](const uhd::time_spec_t& time) { board_->clock.set(time); });
  _tree->create<uhd::time_spec_t>(mb / "time/pps")
      .set_publisher([this] { return board_->clock.at_last_pulse(); })
      .add_coerced_subscriber(
          [this](const uhd::time_spec_t& time) { board_->clock.set_at_next_pulse(time); });
  const std::vector<std::string> sources = {"internal", "external"};
  for (const char* kind : {"time_source", "clock_source"}) {
    _tree->create<std::vector<std::string>>(mb / kind / "options").set(sources);
    _tree->create<std::string>(mb / kind / "value")
        .set_coercer([kind](const std::string& requested) {
          if (requested != "internal" && requested != "external") {
            throw uhd::value_error(std::string(kind) + " " + requested +
                                   ": the sources are internal and external");
          }
          return requested;
        })
        .set("internal");
  }
  _tree->access<std::string>(mb / "clock_source/value")
      .add_coerced_subscriber([this](const std::string& source) {
        board_->clock.follow_reference(source == "external" && board_->settings.has_reference);
      });
  _tree->create<uhd::sensor_value_t>(mb / "sensors/ref_locked").set_publisher([this, mb] {
    const bool is_internal =
        _tree->access<std::string>(mb / "clock_source/value").get() == "internal";
    return uhd::sensor_value_t("Ref", is_internal || board_->settings.has_reference, "locked",
                               "unlocked");
  });

  uhd::usrp::subdev_spec_t all;
  const uhd::fs_path dboard = mb / "dboards/A";
  for (const bool is_output : {false, true}) {
    const std::string direction = is_output ? "tx" : "rx";
    uhd::usrp::dboard_eeprom_t card;
    _tree->create<uhd::usrp::dboard_eeprom_t>(dboard / (direction + "_eeprom")).set(card);
    const uhd::fs_path codec = mb / (direction + "_codecs/A");
    _tree->create<std::string>(codec / "name").set("converter");
    _tree->create<int>(codec / "gains");  // the converter has no gains of its own
    uhd::usrp::subdev_spec_t spec;
    for (const auto& channel : is_output ? outputs_ : inputs_) {
      const std::string name = std::to_string(channel->number);
      make_front_end(dboard / (direction + "_frontends") / name, *channel, is_output);
      make_dsp(mb / (direction + "_dsps") / name, *channel);
      spec.push_back(uhd::usrp::subdev_spec_pair_t("A", name));
    }
    _tree->create<uhd::usrp::subdev_spec_t>(mb / (direction + "_subdev_spec")).set(spec);
  }
}

void Device::make_front_end(const uhd::fs_path& fe, Channel& channel, bool is_output) {
  _tree->create<std::string>(fe / "name").set("front end");
  _tree->create<std::string>(fe / "connection").set("IQ");
  _tree->create<bool>(fe / "enabled").set(true);
  _tree->create<bool>(fe / "use_lo_offset").set(false);
  const uhd::meta_range_t tuned(min_frequency_hz, max_frequency_hz, 1);
  _tree->create<uhd::meta_range_t>(fe / "freq/range").set(tuned);
  _tree->create<double>(fe / "freq/value")
      .set_coercer([tuned](double hz) { return tuned.clip(hz); })
      .add_coerced_subscriber([&channel](double hz) { channel.lo_hz = hz; })
      .set(1e9);
  _tree->create<uhd::meta_range_t>(fe / "bandwidth/range").set(uhd::meta_range_t(200e3, 56e6));
  _tree->create<double>(fe / "bandwidth/value").set(56e6);
  const uhd::meta_range_t gains(0, is_output ? max_tx_gain_db : max_rx_gain_db,
                                is_output ? 0.25 : 1);
  _tree->create<uhd::meta_range_t>(fe / "gains/PGA/range").set(gains);
  _tree->create<double>(fe / "gains/PGA/value")
      .set_coercer([gains](double db) { return gains.clip(db, true); })
      .add_coerced_subscriber([&channel](double db) { channel.gain_db = db; })
      .set(0);
  const std::vector<std::string> antennas =
      is_output ? std::vector<std::string>{"TX/RX"} : std::vector<std::string>{"TX/RX", "RX2"};
  _tree->create<std::vector<std::string>>(fe / "antenna/options").set(antennas);
  _tree->create<std::string>(fe / "antenna/value")
      .set_coercer([antennas](const std::string& requested) {
        if (std::ranges::find(antennas, requested) == antennas.end()) {
          throw uhd::value_error("antenna " + requested + ": the device has no such antenna");
        }
        return requested;
      })
      .set(antennas.back());
  _tree->create<uhd::sensor_value_t>(fe / "sensors/lo_locked")
      .set(uhd::sensor_value_t("LO", true, "locked", "unlocked"));
}

void Device::make_dsp(const uhd::fs_path& dsp, Channel& channel) {
  const double tick_hz = board_->settings.master_clock_hz;
  uhd::meta_range_t rates;
  for (auto factor = static_cast<int>(max_decimation); factor >= static_cast<int>(min_decimation);
       --factor) {
    rates.push_back(uhd::range_t(tick_hz / factor));
  }
  _tree->create<uhd::meta_range_t>(dsp / "rate/range").set(rates);
  _tree->create<double>(dsp / "rate/value")
      .set_coercer([tick_hz](double hz) {
        const double factor = std::round(tick_hz / std::max(hz, 1.0));
        return tick_hz / std::clamp(factor, min_decimation, max_decimation);
      })
      .add_coerced_subscriber([&channel](double hz) { channel.rate_hz = hz; })
      .set(1e6);
  _tree->create<uhd::meta_range_t>(dsp / "freq/range")
      .set(uhd::meta_range_t(-tick_hz / 2, tick_hz / 2, 1e-3));
  _tree->create<double>(dsp / "freq/value")
      .add_coerced_subscriber([&channel](double hz) { channel.dsp_hz = hz; })
      .set(0);
}

/// Return the addresses of the devices that the hint names: `serial=a`, or several by
/// `serials=a|b`. The list is empty if the hint does not name the type nagi_double.
uhd::device_addrs_t find(const uhd::device_addr_t& hint) {
  uhd::device_addrs_t addresses;
  if (hint.get("type", "") != device_type || hint.get("devices", "present") == "missing") {
    return addresses;
  }
  std::istringstream serials(hint.get("serials", hint.get("serial", Settings().serial)));
  for (std::string serial; std::getline(serials, serial, '|');) {
    if (hint.has_key("serial") && hint.get("serial") != serial) continue;
    uhd::device_addr_t address;
    address["type"] = device_type;
    address["product"] = "double";
    address["serial"] = serial;
    addresses.push_back(address);
  }
  return addresses;
}

uhd::device::sptr make(const uhd::device_addr_t& arguments) {
  const Settings settings = Settings::parse(arguments);
  if (!settings.has_images) {
    throw uhd::io_error(
        "Could not find path for image: usrp_double_fpga.bin. Using images "
        "directory: <no images directory located>. Please run: "
        "uhd_images_downloader");
  }
  return std::make_shared<Device>(settings);
}

}  // namespace

UHD_STATIC_BLOCK(register_nagi_double) {
  uhd::device::register_device(&find, &make, uhd::device::USRP);
}

}  // namespace nagi::uhd_double
