// SPDX-License-Identifier: Apache-2.0
#include "native/capture_file.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <zstd.h>

#include <cstdio>
#include <fstream>
#include <random>

#include "made.hpp"

namespace nagi::captures {
namespace {

using namespace made;
using testing::ElementsAre;
using testing::HasSubstr;

constexpr std::int64_t instant = 1'700'000'000'123'456'789;

Bytes small() { return frame({.sequence = 1, .payload = 10}); }

Bytes compressed(const Bytes& plain) {
  Bytes out(ZSTD_compressBound(plain.size()));
  out.resize(ZSTD_compress(out.data(), out.size(), plain.data(), plain.size(), 3));
  return out;
}

TEST(Pcap, BothByteOrdersAndResolutions) {
  for (const bool big : {false, true}) {
    const PcapOptions nano{.big = big};
    EXPECT_THAT(read(pcap({{instant, small()}}, nano)).times, ElementsAre(instant));
    const PcapOptions micro{.big = big, .nano = false};
    EXPECT_THAT(read(pcap({{instant, small()}}, micro)).times, ElementsAre(instant - 789));
  }
}

TEST(Pcap, LengthsOnTheWireAndInTheFile) {
  const Read seen = read(pcap({{0, Bytes(1000)}, {0, Bytes(10)}}, {.snap = 100}));
  EXPECT_THAT(seen.lengths, ElementsAre(1000, 10));
  EXPECT_THAT(seen.captured, ElementsAre(100, 10));
  EXPECT_EQ(seen.damage, "");
}

TEST(Pcap, LongerRecordsOfModifiedKernels) {
  Writer file;
  file.put<std::uint32_t>(0xa1b2cd34).put<std::uint16_t>(2).put<std::uint16_t>(4);
  file.put<std::uint64_t>(0).put<std::uint32_t>(65535).put<std::uint32_t>(1);
  for (int i = 0; i < 2; ++i) {
    file.put<std::uint32_t>(7).put<std::uint32_t>(8).put<std::uint32_t>(4).put<std::uint32_t>(60);
    file.put<std::uint64_t>(0).put(Bytes(4));
  }
  EXPECT_THAT(read(file.bytes).times, ElementsAre(7'000'008'000, 7'000'008'000));
}

TEST(Pcap, DamageIsSaidWithItsPlace) {
  Bytes file = pcap({{0, small()}, {1, small()}});
  const std::size_t record = (file.size() - 24) / 2;
  file.resize(24 + record + 7);
  EXPECT_EQ(read(file).times.size(), 1);
  EXPECT_EQ(read(file).damage,
            "cut off inside the header of packet 2, at byte " + std::to_string(24 + record));
  file = pcap({{0, small()}, {1, small()}});
  file.pop_back();
  EXPECT_THAT(read(file).damage, HasSubstr("cut off inside packet 2"));
  file = pcap({{0, small()}, {1, small()}});
  file[24 + record + 11] = 0x7f;  // the length
  EXPECT_EQ(read(file).times.size(), 1);
  EXPECT_THAT(read(file).damage, HasSubstr("packet 2 claims 2130706496 bytes"));
}

TEST(Pcap, CutAnywhereItKeepsWholeRecords) {
  const Bytes file = pcap({{0, small()}, {1, small()}, {2, small()}});
  const std::size_t record = (file.size() - 24) / 3;
  for (std::size_t size = 24; size < file.size(); ++size) {
    const Read seen = read(Bytes(file.begin(), file.begin() + static_cast<std::ptrdiff_t>(size)));
    EXPECT_EQ(seen.times.size(), (size - 24) / record);
    EXPECT_EQ(seen.damage.empty(), (size - 24) % record == 0);
  }
}

TEST(Refusal, WhatIsNoCapture) {
  for (const Bytes& file : {Bytes{}, Bytes{1, 2, 3}, Bytes(100), Bytes(23, 0xa1)}) {
    EXPECT_THROW(read(file), CaptureError);
  }
  EXPECT_THROW(read(pcap({}, {.link_type = 147})), CaptureError);
  Bytes cut = pcap({});
  cut.resize(20);
  EXPECT_THROW(read(cut), CaptureError);
  EXPECT_THROW(CaptureFile("/proc/nowhere/at.all"), CaptureError);
  EXPECT_THROW(CaptureFile("/"), CaptureError);
}

TEST(Pcapng, BothByteOrdersSectionsAndResolutions) {
  Bytes file;
  for (const bool big : {false, true}) {
    add(file, section(big));
    add(file, interface(big, 1));             // microseconds, when nothing is said
    add(file, interface(big, 113, 9));        // nanoseconds
    add(file, interface(big, 1, 0x80 + 10));  // 1/1024 s
    add(file, interface(big, 1, 3, 100));     // milliseconds, 100 s late
    add(file, interface(big, 1, 12));         // picoseconds
    add(file, enhanced(big, 0, 1'000'001, small()));
    add(file, enhanced(big, 1, instant, small()));
    add(file, enhanced(big, 2, 1024 + 512, small()));
    add(file, enhanced(big, 3, 5, small()));
    add(file, enhanced(big, 4, 7'999, small()));
  }
  const Read seen = read(file);
  EXPECT_THAT(seen.times, ElementsAre(1'000'001'000, instant, 1'500'000'000, 100'005'000'000, 7,
                                      1'000'001'000, instant, 1'500'000'000, 100'005'000'000, 7));
  EXPECT_THAT(seen.link_types, ElementsAre(1, 113, 1, 1, 1, 1, 113, 1, 1, 1));
  EXPECT_EQ(seen.damage, "");
}

TEST(Pcapng, OtherBlocks) {
  Bytes file = section(false) + interface(false, 1, -1, 0, 20);
  add(file, block(false, 0x0bad0bad, Bytes(2'000'000)));  // longer than the buffer
  add(file, enhanced(false, 0, 5, small(), 99));
  // A simple packet: no time, cut to the snap length.
  Writer simple;
  simple.put<std::uint32_t>(64).put(Bytes(20));
  add(file, block(false, 3, simple.bytes));
  // An obsolete packet, with options behind it.
  Writer old;
  old.put<std::uint16_t>(0).put<std::uint16_t>(0).put<std::uint32_t>(0).put<std::uint32_t>(9);
  old.put<std::uint32_t>(4).put<std::uint32_t>(60).put(Bytes(4)).put<std::uint32_t>(0);
  add(file, block(false, 2, old.bytes));
  const Read seen = read(file);
  EXPECT_THAT(seen.times, ElementsAre(5000, 5000, 9000));
  EXPECT_THAT(seen.lengths, ElementsAre(99, 64, 60));
  EXPECT_THAT(seen.captured, ElementsAre(small().size(), 20, 4));
  EXPECT_EQ(seen.damage, "");
}

TEST(Pcapng, CutAnywhereItKeepsWholePackets) {
  const Bytes head = section(true) + interface(true, 1, 9);
  const Bytes packet = enhanced(true, 0, 1, small());
  const Bytes file = head + packet + packet + packet;
  for (std::size_t size = 12; size < file.size(); ++size) {
    const Read seen = read(Bytes(file.begin(), file.begin() + static_cast<std::ptrdiff_t>(size)));
    const std::size_t inside = size < head.size() ? 0 : size - head.size();
    EXPECT_EQ(seen.times.size(), inside / packet.size()) << size;
    const bool whole =
        size == section(true).size() || (size >= head.size() && inside % packet.size() == 0);
    EXPECT_EQ(seen.damage.empty(), whole) << size << seen.damage;
  }
}

TEST(Pcapng, DamageIsSaid) {
  const Bytes head = section(false) + interface(false, 1);
  const auto damage = [&](Bytes rest) {
    return read(head + enhanced(false, 0, 1, small()) + rest).damage;
  };
  EXPECT_THAT(damage(enhanced(false, 1, 1, small())), HasSubstr("interface 1, which is not"));
  EXPECT_THAT(damage(Writer().put<std::uint32_t>(5).put<std::uint32_t>(4).put(Bytes(20)).bytes),
              HasSubstr("an invalid length of 4 bytes"));
  Bytes lies = enhanced(false, 0, 1, small());
  lies[20] = 0xff;  // captured bytes
  EXPECT_THAT(damage(lies), HasSubstr("packet 2 claims 255 bytes in a block of"));
  lies = enhanced(false, 0, 1, small());
  lies[lies.size() - 4] ^= 4;
  EXPECT_THAT(damage(lies), HasSubstr("two lengths differ"));
}

TEST(Zstd, IsReadThrough) {
  std::vector<Timed> packets;
  for (int i = 0; i < 20'000; ++i) packets.push_back({i, Bytes(static_cast<std::size_t>(i % 90))});
  const Bytes plain = pcap(packets);
  EXPECT_EQ(read(compressed(plain)).times, read(plain).times);
  EXPECT_EQ(read(compressed(plain)).damage, "");
  // Two frames, as `cat a.zst b.zst` makes them.
  const Bytes first(plain.begin(), plain.begin() + 500'000);
  const Bytes second(plain.begin() + 500'000, plain.end());
  EXPECT_EQ(read(compressed(first) + compressed(second)).times, read(plain).times);
}

TEST(Zstd, DamageIsSaid) {
  std::vector<Timed> packets;
  std::mt19937 random(1);
  for (int i = 0; i < 5'000; ++i) {
    Bytes packet(200);
    for (auto& byte : packet) byte = static_cast<std::uint8_t>(random() % 64);
    packets.push_back({i, packet});
  }
  const Bytes whole = compressed(pcap(packets));
  Bytes file(whole.begin(), whole.end() - 20);
  EXPECT_THAT(read(file).damage, HasSubstr("zstd data is cut off after packet"));
  file = whole;
  std::fill(file.begin() + static_cast<std::ptrdiff_t>(file.size() / 2), file.end(), 0x55);
  const Read seen = read(file);
  EXPECT_GT(seen.times.size(), 1'000);
  EXPECT_LT(seen.times.size(), 5'000);
  EXPECT_THAT(seen.damage, HasSubstr("damaged zstd data"));
}

TEST(Files, AreReadInPieces) {
  std::vector<Timed> packets;
  for (int i = 0; i < 3'000; ++i) packets.push_back({i, Bytes(static_cast<std::size_t>(i % 900))});
  packets.push_back({3'000, Bytes(200'000)});
  packets.push_back({3'001, Bytes(262'144)});
  const Bytes plain = pcap(packets, {.snap = 262'144});
  const std::string path = testing::TempDir() + "pieces.pcap";
  std::ofstream(path, std::ios::binary)
      .write(reinterpret_cast<const char*>(plain.data()),
             static_cast<std::streamsize>(plain.size()));
  CaptureFile file(path);
  Record record;
  std::int64_t count = 0;
  for (; file.next(record); ++count) EXPECT_EQ(record.time_ns, count);
  EXPECT_EQ(count, 3'002);
  EXPECT_EQ(file.damage(), "");
  std::remove(path.c_str());
}

}  // namespace
}  // namespace nagi::captures
