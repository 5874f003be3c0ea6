// Operators ask the agent through files. Real time: what is waited for has minutes.
#include "agent/requests.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>

#include "edge/kubelet/plugin_for_test.h"

namespace berth::agent {
namespace {

constexpr std::int64_t kPatience = 120'000'000'000;

class Silent final : public LogSink {
 public:
  void write(LogLevel, std::string_view) override {}
};

class RequestsTest : public ::testing::Test {
 protected:
  RequestsTest() : log_(sink_, wall_, {}), place_(folder_ / "requests") {}
  ~RequestsTest() override {
    thread_.on_loop([&] { desk_.reset(); });
  }

  Status open() {
    Status out;
    thread_.on_loop([&] {
      auto opened = RequestInbox::open(
          thread_.loop(), place_,
          [&](const Request& request) -> Result<std::string> {
            served_.push_back(request);
            if (request.gpu == "bad") return invalid("gpu: no such thing");
            return "done with " + request.gpu;
          },
          log_);
      if (opened.ok()) {
        desk_ = std::move(*opened);
      } else {
        out = opened.error();
      }
    });
    return out;
  }
  Result<std::string> ask(const Request& request, std::int64_t patience = kPatience) {
    std::promise<Result<std::string>> said;
    std::unique_ptr<Asking> asking;
    thread_.on_loop([&] {
      asking =
          Asking::start(thread_.loop(), place_, "id" + std::to_string(++ids_), request, patience,
                        [&](Result<std::string> answer) { said.set_value(std::move(answer)); });
    });
    Result<std::string> out = said.get_future().get();
    thread_.on_loop([&] { asking.reset(); });
    return out;
  }
  std::vector<std::string> left() const {
    std::vector<std::string> out;
    for (const auto& entry : std::filesystem::directory_iterator(place_)) {
      out.push_back(entry.path().filename());
    }
    return out;
  }

  const SystemWallClock wall_;
  Silent sink_;
  Logger log_;
  kubelet::TestFolder folder_;
  const std::string place_;
  int ids_ = 0;
  std::vector<Request> served_;  // the loop's until the desk is gone
  kubelet::LoopThread thread_;
  std::unique_ptr<RequestInbox> desk_;
};

TEST_F(RequestsTest, AnswersAndRefusalsComeBackAndNothingStays) {
  ASSERT_TRUE(open().ok());
  const Request wish{kForgive, "3", "alice", "a riser was \"replaced\"\n"};
  const Result<std::string> good = ask(wish);
  ASSERT_TRUE(good.ok()) << good.error().to_string();
  EXPECT_EQ(*good, "done with 3");
  const Result<std::string> bad = ask({kForgive, "bad", "", ""});
  ASSERT_FALSE(bad.ok());
  EXPECT_EQ(bad.error().code(), Code::kInvalid);
  EXPECT_NE(bad.error().to_string().find("gpu: no such thing"), std::string::npos);
  thread_.on_loop([&] { desk_.reset(); });
  ASSERT_EQ(served_.size(), 2u);
  EXPECT_EQ(served_[0], wish);
  EXPECT_TRUE(left().empty());
}

TEST_F(RequestsTest, WithoutAnAgentTheRequestIsTakenBack) {
  const Result<std::string> nowhere = ask({kForgive, "3", "", ""});
  ASSERT_FALSE(nowhere.ok());
  EXPECT_EQ(nowhere.error().code(), Code::kNotFound);
  std::filesystem::create_directory(place_);
  const Result<std::string> nobody = ask({kForgive, "3", "", ""}, 1'000'000);
  ASSERT_FALSE(nobody.ok());
  EXPECT_EQ(nobody.error().code(), Code::kUnavailable);
  EXPECT_TRUE(left().empty());
}

TEST_F(RequestsTest, WhatLiesThereFromBeforeIsNotServed) {
  std::filesystem::create_directory(place_);
  std::ofstream(place_ + "/old.ask") << write_request({kForgive, "7", "", ""});
  std::ofstream(place_ + "/keep.txt") << "not ours";
  ASSERT_TRUE(open().ok());
  ASSERT_TRUE(ask({kForgive, "1", "", ""}).ok());
  thread_.on_loop([&] { desk_.reset(); });
  ASSERT_EQ(served_.size(), 1u);
  EXPECT_EQ(served_[0].gpu, "1");
  EXPECT_EQ(left(), std::vector<std::string>{"keep.txt"});
}

TEST_F(RequestsTest, TheFolderIsTheOwnersAlone) {
  std::filesystem::create_directory(place_);
  ASSERT_EQ(::chmod(place_.c_str(), 0777), 0);
  ASSERT_TRUE(open().ok());
  struct stat found{};
  ASSERT_EQ(::stat(place_.c_str(), &found), 0);
  EXPECT_EQ(found.st_mode & 0777, 0700U);
  thread_.on_loop([&] { desk_.reset(); });
  std::filesystem::remove_all(place_);
  std::filesystem::create_directory(folder_ / "elsewhere");
  std::filesystem::create_directory_symlink(folder_ / "elsewhere", place_);
  EXPECT_FALSE(open().ok());
}

TEST(Requests, AreReadStrictly) {
  const Request wish{kForgive, "GPU-1", "root", "why"};
  const Result<Request> read = read_request(write_request(wish));
  ASSERT_TRUE(read.ok()) << read.error().to_string();
  EXPECT_EQ(*read, wish);
  const std::string longest(256, 'x');
  EXPECT_TRUE(read_request(write_request({kForgive, longest, "", ""})).ok());
  const std::pair<std::string, const char*> wrong[] = {
      {"", "JSON"},
      {"[]", "want"},
      {R"({"verb":"forgive"})", "gpu"},
      {R"({"verb":"reset","gpu":"1"})", "verb: found \"reset\", want forgive"},
      {R"({"verb":"forgive","gpu":"1","force":true})", "force"},
      {R"({"verb":"forgive","gpu":1})", "gpu"},
      {write_request({kForgive, longest + "x", "", ""}), "gpu: found 257 bytes"},
      {write_request({kForgive, "1", "", longest + "x"}), "why: found 257 bytes"},
  };
  for (const auto& [text, said] : wrong) {
    const Result<Request> refused = read_request(text);
    ASSERT_FALSE(refused.ok()) << text;
    if (std::string_view(said) == "JSON") continue;
    EXPECT_NE(refused.error().to_string().find(said), std::string::npos)
        << refused.error().to_string();
  }
}

}  // namespace
}  // namespace berth::agent
