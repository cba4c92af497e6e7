// SPDX-License-Identifier: Apache-2.0
#include "base/json_text.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace nagi {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

struct Refusal {
  int line = 0;
  std::string what;
};

Refusal refusal(const std::string& text, std::size_t deepest = max_nesting) {
  try {
    parse_json(text, deepest);
  } catch (const JsonTextError& error) {
    return {error.line(), error.what()};
  }
  return {};
}

std::string nested(std::size_t depth, const std::string& open = "[",
                   const std::string& close = "]") {
  std::string text;
  for (std::size_t i = 0; i < depth; ++i) text += open;
  if (open.ends_with(':')) text += "0";
  for (std::size_t i = 0; i < depth; ++i) text += close;
  return text;
}

TEST(ParseJson, ReadsJson) {
  EXPECT_EQ(parse_json(R"({"a": [1, {"b": "[[["}]})")["a"][1]["b"], "[[[");
}

TEST(ParseJson, TakesSoManyLevels) {
  EXPECT_EQ(refusal(nested(64)).what, "");
  EXPECT_EQ(refusal(nested(64, R"({"a":)", "}")).what, "");
  EXPECT_EQ(refusal("\n " + nested(65)).what,
            "column 66: lists and objects nested more than 64 levels deep; "
            "write it with fewer levels");
  EXPECT_EQ(refusal("\n " + nested(65)).line, 2);
  EXPECT_THAT(refusal(nested(65, R"({"a":)", "}")).what, HasSubstr("64 levels"));
  EXPECT_THAT(refusal(nested(4), 3).what, HasSubstr("3 levels"));
  // Arrays side by side add no depth, and brackets in strings do not count.
  std::string list = "[[]";
  for (int i = 0; i < 1000; ++i) list += ",[]";
  EXPECT_EQ(refusal(list + "]").what, "");
  EXPECT_EQ(refusal("[\"" + std::string(1000, '[') + "\\\"" + std::string(1000, '{') + "\"]").what,
            "");
}

TEST(ParseJson, SurvivesAnyDepth) {
  for (const char* open : {"[", R"({"a":)", "[{\"a\":"}) {
    std::string text;
    for (int i = 0; i < 100'000; ++i) text += open;
    EXPECT_THAT(refusal(text).what, HasSubstr("64 levels")) << open;
  }
}

TEST(ParseJson, SaysWhereAndWhatWasExpected) {
  const Refusal comma = refusal("{\"a\": 1,\n \"b\" 2}");
  EXPECT_EQ(comma.line, 2);
  EXPECT_EQ(comma.what, "not JSON: column 6: unexpected number literal; expected ':'");
  EXPECT_EQ(refusal("").what,
            "not JSON: column 1: unexpected end of input; expected '[', '{', or a literal");
  EXPECT_EQ(refusal("").line, 1);
  EXPECT_THAT(
      refusal("{\"a\": tru}").what,
      AllOf(StartsWith("not JSON: column 10: invalid literal, at the end of "), HasSubstr("; ")));
  EXPECT_THAT(refusal("{'a': 1}").what,
              AllOf(StartsWith("not JSON: column 2: invalid literal, at the end of "),
                    HasSubstr("; expected string literal")));
  EXPECT_THAT(refusal("[1e999]").what, HasSubstr("number overflow"));
  EXPECT_THAT(refusal("[1, 2").what, StartsWith("not JSON: column 6: unexpected end of input"));
  EXPECT_THAT(refusal("{} x").what, StartsWith("not JSON: column 4: "));
}

TEST(ParseJson, SpeaksInItsOwnWords) {
  for (const std::string& text :
       {std::string("{"), std::string("[1e999]"), std::string("[\"\xff\"]"),
        std::string("\"a\nb\""), std::string("\xef\xbb"), std::string("[-]"),
        "[\"" + std::string(1000, 'x'), std::string("[\x1b[31m]"), std::string("[\"\\ud800\"]"),
        std::string("\0", 1)}) {
    const std::string what = refusal(text).what;
    EXPECT_THAT(what, AllOf(StartsWith("not JSON: column "), HasSubstr("; "),
                            Not(HasSubstr("json.exception")), Not(HasSubstr("parse error")),
                            Not(HasSubstr("\n")), Not(HasSubstr("\x1b"))));
    EXPECT_LT(what.size(), 300u);
  }
}

}  // namespace
}  // namespace nagi
