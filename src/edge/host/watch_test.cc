#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <set>

#include "edge/host/fd.h"
#include "edge/host/folder_watch.h"
#include "edge/host/host_for_test.h"
#include "edge/host/kernel_log.h"

namespace berth::host {
namespace {

// With inotify, and as on a machine that has none left.
class FolderWatchTest : public testing::TestWithParam<bool> {
 protected:
  std::unique_ptr<FolderWatch> watch(const std::string& folder, int look_every_ms = 20,
                                     int burst_ms = 10) {
    return watch_folder(
        real_.loop, folder, [this](const std::string& name) { told_.push_back(name); },
        {.inotify = GetParam(), .look_every_ms = look_every_ms, .burst_ms = burst_ms});
  }
  // Waits for the name, and forgets what was told.
  bool told(const std::string& name) {
    const bool came =
        real_.run_until([&] { return std::find(told_.begin(), told_.end(), name) != told_.end(); });
    told_.clear();
    return came;
  }

  TestFolder folder_;
  RealLoop real_;
  std::vector<std::string> told_;
};

INSTANTIATE_TEST_SUITE_P(Both, FolderWatchTest, testing::Bool());

TEST_P(FolderWatchTest, TellsWhatComesGoesAndChanges) {
  folder_.write("old", "x");
  const auto watching = watch(folder_.path());
  folder_.write("new", "x");
  EXPECT_TRUE(told("new"));
  folder_.write("old", "longer");
  EXPECT_TRUE(told("old"));
  std::filesystem::rename(folder_.at("new"), folder_.at("renamed"));
  EXPECT_TRUE(told("renamed"));
  std::filesystem::remove(folder_.at("old"));
  EXPECT_TRUE(told("old"));
}

TEST_P(FolderWatchTest, TellsOfASocketThatIsMadeAgain) {
  const std::string path = folder_.at("kubelet.sock");
  const auto bind_socket = [&] {
    Fd fd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_un address = {};
    address.sun_family = AF_UNIX;
    path.copy(address.sun_path, sizeof address.sun_path - 1);
    EXPECT_EQ(::bind(fd.get(), reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
    return fd;
  };
  const Fd first = bind_socket();
  const auto watching = watch(folder_.path());
  std::filesystem::remove(path);
  const Fd second = bind_socket();
  EXPECT_TRUE(told("kubelet.sock"));
}

TEST_P(FolderWatchTest, WaitsForAFolderAndForTheOneThatReplacesIt) {
  const auto watching = watch(folder_.at("plugins"));
  folder_.write("plugins/a", "x");
  EXPECT_TRUE(told("a"));
  std::filesystem::rename(folder_.at("plugins"), folder_.at("moved"));
  folder_.write("plugins/b", "x");
  EXPECT_TRUE(told("b"));
  std::filesystem::remove_all(folder_.at("plugins"));
  EXPECT_TRUE(told("b"));
  folder_.write("plugins/c", "x");
  EXPECT_TRUE(told("c"));
  folder_.write("plugins/d", "x");
  EXPECT_TRUE(told("d"));
}

TEST_P(FolderWatchTest, SeesFilesBehindLinksThatWereSwapped) {  // as a ConfigMap is mounted
  folder_.write("..1/config.yaml", "one");
  folder_.write("..2/config.yaml", "two");
  folder_.link("..data", "..1");
  folder_.link("config.yaml", "..data/config.yaml");
  const auto watching = watch(folder_.path());
  folder_.link("..data_tmp", "..2");
  std::filesystem::rename(folder_.at("..data_tmp"), folder_.at("..data"));
  EXPECT_TRUE(told("config.yaml"));
}

TEST_P(FolderWatchTest, TellsANameOnceForABurst) {
  const auto watching = watch(folder_.path(), 500, 500);
  for (std::size_t i = 0; i < 10; ++i) folder_.write("noisy", std::string(i, 'x'));
  folder_.write("last", "x");
  EXPECT_TRUE(real_.run_until(
      [&] { return std::find(told_.begin(), told_.end(), "last") != told_.end(); }));
  // A machine that stands still for half a second may part a burst, but not at every write.
  EXPECT_LT(std::count(told_.begin(), told_.end(), "noisy"), 10);
}

TEST_P(FolderWatchTest, IsSilentOnceItIsGone) {
  auto watching = watch(folder_.path());
  folder_.write("first", "x");
  EXPECT_TRUE(told("first"));
  folder_.write("second", "x");
  watching.reset();
  real_.loop.run_ready();
  EXPECT_TRUE(told_.empty());
}

class KernelLogTest : public testing::Test {
 protected:
  KernelLogTest() { EXPECT_EQ(::mkfifo(path_.c_str(), 0600), 0); }
  void say(const std::string& text) {
    if (!writer_.open()) writer_.reset(::open(path_.c_str(), O_WRONLY | O_CLOEXEC));
    EXPECT_EQ(::write(writer_.get(), text.data(), text.size()), static_cast<ssize_t>(text.size()));
  }
  bool told(std::size_t lines) {
    return real_.run_until([&] { return told_.size() >= lines; });
  }
  std::function<void(const std::string&)> teller() {
    return [this](const std::string& line) { told_.push_back(line); };
  }

  TestFolder folder_;
  std::string path_ = folder_.at("kmsg");
  Fd writer_;
  RealLoop real_;
  std::vector<std::string> told_;
};

TEST_F(KernelLogTest, TellsMessagesInOrder) {
  auto log = KernelLog::start(real_.loop, path_, teller());
  ASSERT_TRUE(log.ok());
  say("4,1,10,-;one\n DEVICE=+pci:0000:18:00.0\n6,2,20,-;tw");
  ASSERT_TRUE(told(1));
  say("o\n12,3,30,-;a program's\nrubbish\n3,4,40,-;three\n");
  ASSERT_TRUE(told(3));
  EXPECT_EQ(told_, (std::vector<std::string>{"one", "two", "three"}));
}

TEST_F(KernelLogTest, BeginsAtTheEnd) {
  folder_.write("log", "4,1,10,-;before\n");
  auto log = KernelLog::start(real_.loop, folder_.at("log"), teller());
  ASSERT_TRUE(log.ok());
  std::ofstream(folder_.at("log"), std::ios::app) << "4,2,20,-;after\n" << std::flush;
  ASSERT_TRUE(told(1));
  EXPECT_EQ(told_, std::vector<std::string>{"after"});
}

TEST_F(KernelLogTest, GoesOnAfterRecordsThatWereOverwritten) {
  std::atomic<int> calls = 0;
  auto log = read_kernel_log(real_.loop, path_, teller(),
                             [&](int fd, void* into, std::size_t bytes) -> ssize_t {
                               if (calls++ % 2 == 0) {
                                 errno = EPIPE;
                                 return -1;
                               }
                               return ::read(fd, into, bytes);
                             });
  ASSERT_TRUE(log.ok());
  say("4,1,10,-;one\n");
  ASSERT_TRUE(told(1));
  say("4,9,90,-;nine\n");
  ASSERT_TRUE(told(2));
  EXPECT_EQ(told_, (std::vector<std::string>{"one", "nine"}));
}

TEST_F(KernelLogTest, DropsWhatALoopThatIsBehindCannotTake) {
  auto log = KernelLog::start(real_.loop, path_, teller());
  ASSERT_TRUE(log.ok());
  std::string batch;
  for (int i = 0; i < 100; ++i) batch += "4,1,10,-;line\n";
  for (int i = 0; i < 300; ++i) say(batch);  // the pipe holds 64 KiB: most of it was read
  ASSERT_TRUE(told(10'000));
  EXPECT_LT(told_.size(), 30'000U);
}

TEST_F(KernelLogTest, SaysWhyItCannotBeRead) {
  auto log = KernelLog::start(real_.loop, folder_.at("nowhere"), teller());
  ASSERT_FALSE(log.ok());
  EXPECT_EQ(log.error().code(), Code::kNotFound);
  EXPECT_NE(log.error().message().find("kernel log cannot be read"), std::string::npos);
}

TEST_F(KernelLogTest, IsSilentOnceItIsGone) {
  auto log = KernelLog::start(real_.loop, path_, teller());
  ASSERT_TRUE(log.ok());
  say("4,1,10,-;one\n");
  ASSERT_TRUE(told(1));
  say("4,2,20,-;two\n");
  log->reset();
  real_.loop.run_ready();
  EXPECT_EQ(told_.size(), 1U);
}

}  // namespace
}  // namespace berth::host
