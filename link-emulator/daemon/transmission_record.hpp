// SPDX-License-Identifier: Apache-2.0
//
// transmissions.bin: one record per transmission on radios, links with ARQ and media. The file is a
// header and records of one size, little-endian:
//
//   header   8 bytes "nagi-trn", version (32 bit, 1), bytes of a record (32 bit, 32)
//   record   start_ns, end_ns   int64    begin and end, since the epoch
//            number             uint32   number of the transmission in its direction
//            index              uint32   index of its packet in packet_record.hpp
//            direction          uint8    as in packet_record.hpp
//            outcome            uint8    see radio_socket.hpp
//            snr                int16    see radio_socket.hpp
//            attempt            uint8    from 1
//            kind               uint8    on a medium: 1 RTS, 2 CTS, 3 DATA, 4 ACK; else 0
//            receiver           uint8    on a medium: position of the destination station; 255 for
//                                        broadcasts, 254 for a destination elsewhere
//            mode               uint8    mode of rate adaptation, else 0
//
// The records of a direction are in the order of their numbers. On a medium, CTS and ACK have the
// index of the packet to whose exchange they belong.
#pragma once

#include <array>
#include <cstdint>

#include "daemon/radio_socket.hpp"

namespace nagi::daemon {

struct TransmissionRecord {
  std::int64_t start_ns = 0;
  std::int64_t end_ns = 0;
  std::uint32_t number = 0;
  std::uint32_t index = 0;
  std::uint8_t direction = 0;
  Outcome outcome = Outcome::unanswered;
  std::int16_t snr = no_snr;
  std::uint8_t attempt = 1;
  std::uint8_t kind = 0;
  std::uint8_t receiver = 0;
  std::uint8_t mode = 0;
};
static_assert(sizeof(TransmissionRecord) == 32);

struct TransmissionRecordHeader {
  std::array<char, 8> magic = {'n', 'a', 'g', 'i', '-', 't', 'r', 'n'};
  std::uint32_t version = 1;
  std::uint32_t record_bytes = sizeof(TransmissionRecord);
};
static_assert(sizeof(TransmissionRecordHeader) == 16);

}  // namespace nagi::daemon
