// SPDX-License-Identifier: Apache-2.0
#include "io/bpf_object.hpp"

#include <gtest/gtest.h>

#include <array>
#include <system_error>

namespace nagi::io {
namespace {

TEST(BpfObject, RefusesWhatIsNoObject) {
  constexpr std::array<unsigned char, 4> image = {'n', 'a', 'g', 'i'};
  testing::internal::CaptureStderr();
  EXPECT_THROW(BpfObject{image}, std::system_error);
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "");  // libbpf's messages are not printed
}

}  // namespace
}  // namespace nagi::io
