// SPDX-License-Identifier: Apache-2.0
#include "base/text.hpp"

#include <gtest/gtest.h>

namespace nagi {
namespace {

TEST(Printable, LeavesText) {
  for (const char* text : {"", "eth0", "a \\ \"b\"", "Straße", "無線", "😀"}) {
    EXPECT_EQ(printable(text), text);
    EXPECT_FALSE(has_unprintable(text));
  }
}

TEST(Printable, EscapesWhatSteersTerminals) {
  EXPECT_EQ(printable("a\nb\r\tc"), "a\\nb\\r\\tc");
  EXPECT_EQ(printable("\x1b[31mred\x7f"), "\\u001b[31mred\\u007f");
  EXPECT_EQ(printable(std::string_view("a\0b", 3)), "a\\u0000b");
  EXPECT_EQ(printable("\xc2\x9b"), "\\u009b");  // C1, equivalent to ESC [
  // A right-to-left override and a line separator.
  EXPECT_EQ(printable("\xe2\x80\xae\xe2\x80\xa8"), "\\u202e\\u2028");
  EXPECT_TRUE(has_unprintable("a\nb"));
}

TEST(Printable, EscapesWhatIsNoUtf8) {
  // A lone byte, an overlong form, a surrogate, an incomplete character, and a code beyond Unicode.
  EXPECT_EQ(printable("\xa0"), "\\xa0");
  EXPECT_EQ(printable("\xc0\x8a"), "\\xc0\\x8a");
  EXPECT_EQ(printable("\xe0\x80\x8a"), "\\xe0\\x80\\x8a");
  EXPECT_EQ(printable("\xed\xa0\x80"), "\\xed\\xa0\\x80");
  EXPECT_EQ(printable("a\xe2\x80"), "a\\xe2\\x80");
  EXPECT_EQ(printable("\xf4\x90\x80\x80"), "\\xf4\\x90\\x80\\x80");
  EXPECT_EQ(printable("\xff"), "\\xff");
}

TEST(Shortened, CutsBetweenCharacters) {
  EXPECT_EQ(shortened(std::string(60, 'x')), std::string(60, 'x'));
  EXPECT_EQ(shortened(std::string(61, 'x')), std::string(60, 'x') + "...");
  EXPECT_EQ(shortened("ßßß", 2), "ßß...");
}

TEST(Nearest, FindsWhatWasMeant) {
  const std::vector<std::string_view> keys = {
      "rate_bps", "rate_trace", "delay_ns", "delay_trace", "opportunities_ns", "steps",
      "at",       "a",          "b"};
  EXPECT_EQ(nearest("rate_bp", keys), "rate_bps");
  EXPECT_EQ(nearest("rate", keys), "rate_bps");
  EXPECT_EQ(nearest("rate_bsp", keys), "rate_bps");
  EXPECT_EQ(nearest("delay", keys), "delay_ns");
  EXPECT_EQ(nearest("delay_ms", keys), "delay_ns");
  EXPECT_EQ(nearest("opportunities", keys), "opportunities_ns");
  EXPECT_EQ(nearest("opportunitys_ns", keys), "opportunities_ns");
  EXPECT_EQ(nearest("step", keys), "steps");
}

TEST(Nearest, DoesNotGuess) {
  EXPECT_EQ(nearest("colour", {"name", "id", "a", "b"}), "");
  EXPECT_EQ(nearest("c", {"a", "b"}), "");
  EXPECT_EQ(nearest("", {"a"}), "");
  EXPECT_EQ(nearest(std::string(100'000, 'x'), {"a"}), "");
}

}  // namespace
}  // namespace nagi
