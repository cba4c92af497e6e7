// SPDX-License-Identifier: Apache-2.0
#include "daemon/packet_record.hpp"

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "io/input_error.hpp"

namespace nagi::daemon {

std::vector<PacketRecord> read_records(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  PacketRecordHeader header;
  const PacketRecordHeader expected;
  file.read(reinterpret_cast<char*>(&header), sizeof header);
  if (!file || std::memcmp(&header, &expected, sizeof header) != 0) {
    throw InputError(path + ": not a record of packets; give the file that nagi-link wrote as " +
                     R"("packets")");
  }
  const std::uintmax_t size = std::filesystem::file_size(path) - sizeof header;
  if (size % sizeof(PacketRecord) != 0) {
    throw InputError(path +
                     ": the last record is incomplete; give a file that was written completely");
  }
  std::vector<PacketRecord> records(size / sizeof(PacketRecord));
  file.read(reinterpret_cast<char*>(records.data()), static_cast<std::streamsize>(size));
  if (!file) throw InputError(path + ": cannot read it: " + std::strerror(errno));
  return records;
}

}  // namespace nagi::daemon
