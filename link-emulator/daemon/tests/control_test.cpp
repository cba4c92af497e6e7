// SPDX-License-Identifier: Apache-2.0
#include "daemon/control.hpp"

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

#include "daemon/json_source.hpp"

namespace nagi::daemon {
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
    model::ObjectReader reader(request, json::json_pointer());
    const std::uint64_t number = reader.whole("number");
    reader.finish();
    return {{"ok", true}, {"twice", 2 * number}};
  }

  /// Serves until the test ends.
  class Served {
   public:
    explicit Served(const std::string& path)
        : server_(path, answer), thread_([this] {
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

}  // namespace
}  // namespace nagi::daemon
