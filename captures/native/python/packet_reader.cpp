// SPDX-License-Identifier: Apache-2.0

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "native/capture_file.hpp"
#include "native/decode.hpp"
#include "native/flows.hpp"
#include "native/python/columns.hpp"
#include "native/python/module.hpp"
#include "native/python/signals.hpp"

namespace nagi::captures::python {

namespace {

/// Reads the packets of a file in blocks of `rows` rows.
class PacketReader {
 public:
  PacketReader(const nb::bytes& path, std::size_t rows)
      : rows_(rows), file_(std::string(path.c_str(), path.size())) {}

  /// Return the columns of the next block, or nullopt after the last block.
  std::optional<nb::dict> next() {
    Columns columns(rows_);
    std::size_t count = 0;
    {
      const nb::gil_scoped_release free;
      Record record;
      Packet packet;
      for (std::int64_t passed = 1; count < rows_ && !ended_; ++passed) {
        if (passed % packets_between_signals == 0) check_signals();
        if (!file_.next(record)) {
          ended_ = true;
        } else if (decoder_.decode(record, packet) == Unused::none) {
          columns.add(packet, engine_.add(packet));
          ++count;
        }
      }
    }
    if (count == 0) return std::nullopt;
    return columns.to_dict();
  }

 private:
  struct Columns {
    explicit Columns(std::size_t rows) : retransmission(rows) {
      time_ns.reserve(rows);
      connection.reserve(rows);
      direction.reserve(rows);
      sequence.reserve(rows);
      acknowledgement.reserve(rows);
      payload.reserve(rows);
      ip_bytes.reserve(rows);
      window.reserve(rows);
      flags.reserve(rows);
      tsval.reserve(rows);
      tsecr.reserve(rows);
      identification.reserve(rows);
      checksum.reserve(rows);
      identity.reserve(rows);
      new_bytes.reserve(rows);
    }
    void add(const Packet& packet, const Classification& result) {
      time_ns.push_back(packet.time_ns);
      connection.push_back(static_cast<std::int32_t>(result.connection));
      direction.push_back(static_cast<std::int8_t>(result.direction));
      sequence.push_back(result.sequence);
      acknowledgement.push_back(result.acknowledgement);
      payload.push_back(static_cast<std::int32_t>(packet.payload));
      ip_bytes.push_back(static_cast<std::int32_t>(packet.ip_bytes));
      window.push_back(result.window);
      flags.push_back(packet.flags);
      tsval.push_back(packet.has_timestamps ? std::int64_t{packet.tsval} : -1);
      tsecr.push_back(packet.has_timestamps ? std::int64_t{packet.tsecr} : -1);
      identification.push_back(packet.identification);
      checksum.push_back(packet.checksum);
      identity.push_back(packet.identity());
      retransmission.push_back(result.retransmission);
      new_bytes.push_back(static_cast<std::int32_t>(result.new_bytes));
    }
    nb::dict to_dict() {
      nb::dict columns;
      columns["time_ns"] = array(std::move(time_ns));
      columns["connection"] = array(std::move(connection));
      columns["direction"] = array(std::move(direction));
      columns["sequence"] = array(std::move(sequence));
      columns["acknowledgement"] = array(std::move(acknowledgement));
      columns["payload"] = array(std::move(payload));
      columns["ip_bytes"] = array(std::move(ip_bytes));
      columns["window"] = array(std::move(window));
      columns["flags"] = array(std::move(flags));
      columns["tsval"] = array(std::move(tsval));
      columns["tsecr"] = array(std::move(tsecr));
      columns["identification"] = array(std::move(identification));
      columns["checksum"] = array(std::move(checksum));
      columns["identity"] = array(std::move(identity));
      columns["retransmission"] = retransmission.array();
      columns["new_bytes"] = array(std::move(new_bytes));
      return columns;
    }

    std::vector<std::int64_t> time_ns;
    std::vector<std::int32_t> connection;
    std::vector<std::int8_t> direction;
    std::vector<std::int64_t> sequence;
    std::vector<std::int64_t> acknowledgement;
    std::vector<std::int32_t> payload;
    std::vector<std::int32_t> ip_bytes;
    std::vector<std::int64_t> window;
    std::vector<std::uint8_t> flags;
    std::vector<std::int64_t> tsval;
    std::vector<std::int64_t> tsecr;
    std::vector<std::uint16_t> identification;
    std::vector<std::uint16_t> checksum;
    std::vector<std::uint32_t> identity;
    Flags retransmission;
    std::vector<std::int32_t> new_bytes;
  };

  std::size_t rows_;
  CaptureFile file_;
  Decoder decoder_;
  Engine engine_{Options{}};
  bool ended_ = false;
};

}  // namespace

void add_packet_reader(nb::module_& module) {
  nb::class_<PacketReader>(module, "PacketReader")
      .def(nb::init<const nb::bytes&, std::size_t>(), nb::arg("path"), nb::arg("rows"))
      .def("next", &PacketReader::next);
}

}  // namespace nagi::captures::python
