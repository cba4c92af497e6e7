// SPDX-License-Identifier: Apache-2.0
#include "control/control_socket.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <thread>

#include "control/json_source.hpp"

namespace nagi::runtime {
namespace {

using nlohmann::json;
using testing::HasSubstr;

class ControlTest : public testing::Test {
 protected:
  ControlTest() {
    char name[] = "/tmp/nagi-control-test-XXXXXX";
    directory_ = mkdtemp(name);
    path_ = directory_ + "/socket";
  }
  ~ControlTest() override { std::filesystem::remove_all(directory_); }

  static json answer(const json& request) {
    ObjectReader reader(request, json::json_pointer());
    reader.only({"number"});
    const std::uint64_t number = reader.whole("number");
    return {{"ok", true}, {"twice", 2 * number}};
  }

  /// Serves requests until the test ends.
  class Served {
   public:
    explicit Served(const std::string& path, Handler handler = answer,
                    std::size_t longest_request = 64 * 1024, LongHandler long_handler = {})
        : server_(path, std::move(handler), longest_request, std::move(long_handler)),
          thread_([this] {
            while (!stop_) {
              server_.serve();
              std::this_thread::sleep_for(std::chrono::milliseconds(1));
            }
          }) {}
    ~Served() {
      stop_ = true;
      thread_.join();
    }

   private:
    ControlServer server_;
    std::atomic<bool> stop_ = false;
    std::thread thread_;
  };

  std::string directory_;
  std::string path_;
};

TEST_F(ControlTest, AnswersRequests) {
  const Served served(path_);
  EXPECT_EQ(ask(path_, {{"number", 21}}), (json{{"ok", true}, {"twice", 42}}));
}

TEST_F(ControlTest, RefusesBadRequestsAndGoesOn) {
  const Served served(path_);
  const json refused = ask(path_, {{"nmber", 21}});
  EXPECT_EQ(refused["ok"], false);
  EXPECT_THAT(refused["error"].get<std::string>(), HasSubstr("control message:1: "));
  EXPECT_EQ(ask(path_, "no object")["ok"], false);
  EXPECT_EQ(ask(path_, {{"number", 1}})["ok"], true);
}

TEST_F(ControlTest, SurvivesAClientThatNeverEndsItsLine) {
  const Served served(path_);
  const int client = socket(AF_UNIX, SOCK_STREAM, 0);
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path, path_.c_str(), path_.size());
  ASSERT_EQ(connect(client, reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
  const std::string junk(4096, 'x');
  for (int i = 0; i < 64; ++i) {
    if (send(client, junk.data(), junk.size(), MSG_NOSIGNAL) < 0) break;
  }
  EXPECT_EQ(ask(path_, {{"number", 2}})["twice"], 4);
  close(client);
}

TEST_F(ControlTest, AnswersManyRequestsInOrderHoweverLongTheAnswers) {
  const Served served(path_, [](const json& request) {
    return json{{"ok", true}, {"number", request["number"]}, {"long", std::string(20'000, 'x')}};
  });
  constexpr std::size_t requests = 500;
  std::size_t asked = 0;
  std::vector<std::size_t> answered;
  ask_all(
      path_,
      [&](std::string& line) {
        line = json{{"number", asked}, {"long", std::string(asked % 100 == 7 ? 60'000 : 500, 'x')}}
                   .dump();
        return asked++ < requests;
      },
      [&](std::size_t number, const json& answer) {
        EXPECT_EQ(answer["number"], number);
        answered.push_back(number);
      });
  EXPECT_EQ(answered.size(), requests);
}

TEST_F(ControlTest, TellsAClientWhatIsTooLong) {
  const Served served(path_);
  const json refused = ask(path_, {{"number", 1}, {"long", std::string(200'000, 'x')}});
  EXPECT_THAT(refused["error"].get<std::string>(), HasSubstr("more than 65536 bytes"));
}

/// Counts the letters of a long line. Refuses a line that contains "!".
class Counting final : public LongRequest {
 public:
  std::optional<std::string> take(std::string_view piece) override {
    count_ += piece.size();
    std::this_thread::yield();
    if (piece.find('!') == std::string_view::npos) return std::nullopt;
    return refusal(InputError("a mark"));
  }
  std::string finish() override { return line_of({{"ok", true}, {"letters", count_}}); }

 private:
  std::size_t count_ = 0;
};

TEST_F(ControlTest, AnswersLongRequestsPieceByPieceAndInOrder) {
  const Served served(path_, answer, 10'000'000, [] { return std::make_unique<Counting>(); });
  const std::vector<std::size_t> lengths = {100'000, 10, 65'530, 65'545, 3'000'000, 20, 200'000};
  std::size_t asked = 0;
  std::vector<json> answers;
  std::thread other([&] {  // is answered between long requests, or waits
    for (int i = 0; i < 20; ++i) EXPECT_EQ(ask(path_, {{"number", i}})["twice"], 2 * i);
  });
  ask_all(
      path_,
      [&](std::string& line) {
        if (asked == lengths.size()) return false;
        line = json{{"number", asked}, {"", std::string(lengths[asked], 'x')}}.dump();
        if (lengths[asked] <= 20) line = json{{"number", asked}}.dump();
        if (asked == 6) line += "!";
        ++asked;
        return true;
      },
      [&](std::size_t, const json& given) { answers.push_back(given); });
  other.join();
  ASSERT_EQ(answers.size(), lengths.size());
  EXPECT_GT(answers[0]["letters"], lengths[0]);
  EXPECT_EQ(answers[1]["twice"], 2);
  EXPECT_GT(answers[4]["letters"], lengths[4]);
  EXPECT_EQ(answers[5]["twice"], 10);
  EXPECT_EQ(answers[6]["error"], "a mark");
  const json refused = ask(path_, {{"number", 1}, {"long", std::string(11'000'000, 'x')}});
  EXPECT_THAT(refused["error"].get<std::string>(), HasSubstr("more than 10000000 bytes"));
}

TEST_F(ControlTest, GoesOnWhenAClientLeavesALongRequest) {
  const Served served(path_, answer, 10'000'000, [] { return std::make_unique<Counting>(); });
  for (const bool whole : {true, false}) {
    const int client = socket(AF_UNIX, SOCK_STREAM, 0);
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::memcpy(address.sun_path, path_.c_str(), path_.size());
    ASSERT_EQ(connect(client, reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
    const std::string line = std::string(1'000'000, 'x') + (whole ? "\n" : "");
    for (std::size_t sent = 0; sent < line.size();) {
      const auto more = send(client, line.data() + sent, line.size() - sent, MSG_NOSIGNAL);
      ASSERT_GT(more, 0);
      sent += static_cast<std::size_t>(more);
    }
    close(client);
    EXPECT_EQ(ask(path_, {{"number", 2}})["twice"], 4);
  }
}

TEST_F(ControlTest, IsForItsOwnerAlone) {
  const Served served(path_);
  struct stat status{};
  ASSERT_EQ(stat(path_.c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0600u);
}

TEST_F(ControlTest, IsGoneAfterwards) {
  {
    const Served served(path_);
  }
  EXPECT_FALSE(std::filesystem::exists(path_));
  EXPECT_THROW(ask(path_, {}), InputError);
}

TEST_F(ControlTest, RefusesASocketInUse) {
  const Served served(path_);
  EXPECT_THROW(ControlServer(path_, answer), InputError);
  EXPECT_EQ(ask(path_, {{"number", 1}})["ok"], true);
}

TEST_F(ControlTest, TakesOverASocketThatNobodyServes) {
  const int orphan = socket(AF_UNIX, SOCK_STREAM, 0);
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path, path_.c_str(), path_.size());
  ASSERT_EQ(bind(orphan, reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
  close(orphan);
  const Served served(path_);
  EXPECT_EQ(ask(path_, {{"number", 1}})["ok"], true);
}

TEST_F(ControlTest, NeverRemovesAFile) {
  std::ofstream(path_) << "precious";
  EXPECT_THROW(ControlServer(path_, answer), InputError);
  EXPECT_TRUE(std::filesystem::exists(path_));
}

TEST_F(ControlTest, RefusesPathsThatAreNoGood) {
  EXPECT_THROW(ControlServer(directory_ + "/no/such/directory", answer), InputError);
  EXPECT_THROW(ControlServer(directory_ + "/" + std::string(200, 'x'), answer), InputError);
}

TEST(Answer, IsTextWhateverTheRequest) {
  const auto handler = [](const json&) -> json { return {{"ok", true}}; };
  EXPECT_EQ(json::parse(answer("{}", handler)), (json{{"ok", true}}));
  const json refused = json::parse(answer("{\"c\xa0mmand\": 1}", handler));
  EXPECT_EQ(refused["ok"], false);
  EXPECT_THAT(refused["error"].get<std::string>(), testing::HasSubstr("not JSON"));
}

TEST(Answer, RefusesDeepNesting) {
  const auto handler = [](const json& request) -> json { return {{"ok", true}, {"is", request}}; };
  for (const int depth : {65, 20'000}) {
    for (const std::string open : {"[", "{\"a\":"}) {
      std::string line;
      for (int i = 0; i < depth; ++i) line += open;
      const json refused = json::parse(answer(line, handler));
      EXPECT_EQ(refused["ok"], false);
      EXPECT_THAT(refused["error"].get<std::string>(), HasSubstr("64 levels deep"));
    }
  }
  EXPECT_EQ(json::parse(answer("{}", handler))["ok"], true);
}

TEST_F(ControlTest, TakesNothingForAnAnswerThatIsNone) {
  for (const char* line : {"[]", "{}", R"({"ok": 1})", R"({"ok": false})", "what?"}) {
    const io::Descriptor listener(socket(AF_UNIX, SOCK_STREAM, 0));
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::memcpy(address.sun_path, path_.c_str(), path_.size());
    unlink(path_.c_str());
    ASSERT_EQ(bind(listener.get(), reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
    ASSERT_EQ(listen(listener.get(), 1), 0);
    std::thread other([&] {
      const io::Descriptor client(accept(listener.get(), nullptr, nullptr));
      const std::string text = std::string(line) + "\n";
      EXPECT_EQ(write(client.get(), text.data(), text.size()), static_cast<ssize_t>(text.size()));
      char request[64];
      EXPECT_GT(read(client.get(), request, sizeof request), 0);
    });
    try {
      ask(path_, json::object());
      ADD_FAILURE() << line;
    } catch (const InputError& error) {
      EXPECT_THAT(error.what(), testing::AllOf(testing::StartsWith(path_), HasSubstr("; "),
                                               testing::Not(HasSubstr("json.exception"))));
    }
    other.join();
  }
}

}  // namespace
}  // namespace nagi::runtime
