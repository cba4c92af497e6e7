// SPDX-License-Identifier: Apache-2.0
#include "service/privileges.hpp"

#include <gtest/gtest.h>

namespace nagi::runtime {
namespace {

TEST(Privileges, TellsKernelsWithAFairServer) {
  for (const char* with : {"6.12.0", "6.12.48+deb13-amd64", "6.18.44", "7.0.1-arch1-1"}) {
    EXPECT_TRUE(has_fair_server(with)) << with;
  }
  for (const char* without : {"6.1.0-40-amd64", "6.11.99", "5.15.0-generic", "unknown", ""}) {
    EXPECT_FALSE(has_fair_server(without)) << without;
  }
}

}  // namespace
}  // namespace nagi::runtime
