#include "app/files.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>

#include "app/next_step.h"

namespace berth::app {
namespace {

namespace fs = std::filesystem;

class FilesTest : public testing::Test {
 protected:
  FilesTest() {
    std::string pattern = fs::temp_directory_path() / "berth-files-test-XXXXXX";
    folder_ = ::mkdtemp(pattern.data());
  }
  ~FilesTest() override { fs::remove_all(folder_); }

  std::string in(const std::string& name) const { return folder_ + '/' + name; }
  static std::string held(const std::string& path) {
    const Result<std::string> read = read_file(path);
    return read.ok() ? *read : read.error().to_string();
  }
  static fs::perms rights(const std::string& path) { return fs::status(path).permissions(); }
  std::size_t files() const {
    return static_cast<std::size_t>(
        std::distance(fs::directory_iterator(folder_), fs::directory_iterator()));
  }

  std::string folder_;
};

TEST_F(FilesTest, AnOutputKeepsRightsAndLinks) {
  ASSERT_TRUE(write_output(in("a"), "one", 0600).ok());
  EXPECT_EQ(held(in("a")), "one");
  EXPECT_EQ(rights(in("a")), fs::perms(0600));
  fs::permissions(in("a"), fs::perms(0640));
  fs::create_symlink("a", in("link"));
  ASSERT_TRUE(write_output(in("link"), "two").ok());
  EXPECT_TRUE(fs::is_symlink(in("link")));
  EXPECT_EQ(held(in("a")), "two");
  EXPECT_EQ(rights(in("a")), fs::perms(0640));
  EXPECT_EQ(files(), 2U) << "nothing is left over";
}

TEST_F(FilesTest, AnOutputIsWrittenToADeviceAndDoesNotReplaceIt) {
  ASSERT_TRUE(write_output("/dev/null", "x").ok());
  EXPECT_TRUE(fs::is_character_file("/dev/null"));
  fs::create_symlink("/dev/full", in("full"));
  const Status full = write_output(in("full"), "x");
  ASSERT_FALSE(full.ok());
  EXPECT_NE(full.error().to_string().find("No space left"), std::string::npos);
  ASSERT_EQ(::mkfifo(in("pipe").c_str(), 0600), 0);
  const int reader = ::open(in("pipe").c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC);
  ASSERT_GE(reader, 0);
  ASSERT_TRUE(write_output(in("pipe"), "through").ok());
  char got[16] = {};
  EXPECT_EQ(::read(reader, got, sizeof got), 7);
  ::close(reader);
  EXPECT_TRUE(fs::is_fifo(in("pipe")));
}

TEST_F(FilesTest, AnOutputMakesNoFolders) {
  EXPECT_EQ(write_output(in("no/such"), "x").error().code(), Code::kNotFound);
  EXPECT_FALSE(write_output(folder_, "x").ok());
  EXPECT_EQ(files(), 0U);
}

std::string step_after(const std::string& message, InputKind input = InputKind::kClusterOrFiles) {
  Error error(Code::kUnavailable, message);
  return no_answer(error.context("https://h:4010"), input).to_string();
}

TEST(NextStep, FitsWhatHappened) {
  EXPECT_EQ(step_after("no answer: refused"),
            "https://h:4010: no answer: refused; is the cluster up? --kubeconfig says which, "
            "-f reads files")
      << "the port is no status";
  EXPECT_EQ(step_after("no answer: refused", InputKind::kCluster).find("-f"), std::string::npos);
  EXPECT_NE(step_after("401 Unauthorized").find("credentials"), std::string::npos);
  EXPECT_NE(step_after("403 Forbidden: no").find("can-i"), std::string::npos);
  EXPECT_NE(step_after("no answer: SSL: no name").find("--tls-server-name"), std::string::npos);
}

}  // namespace
}  // namespace berth::app
