#include "edge/host/kernel_log.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/eventfd.h>

#include <array>
#include <cerrno>
#include <system_error>
#include <thread>

#include "base/mutex.h"
#include "edge/host/fd.h"
#include "edge/host/host_text.h"

namespace berth::host {
namespace {

constexpr std::size_t kMostWaiting = 10'000;
constexpr std::size_t kLongestRecord = 8'192;  // the kernel's own limit
constexpr int kAgainMs = 1'000;                // until a log that ended is opened again

// Lines on their way to the loop. The work that is posted holds it and may outlive the reader.
class Lines {
 public:
  explicit Lines(std::function<void(const std::string&)> told) : told_(std::move(told)) {}

  bool put(std::string line) {  // true: nobody is on the way to take them
    MutexLock lock(mutex_);
    if (waiting_.size() >= kMostWaiting) return false;
    waiting_.push_back(std::move(line));
    return waiting_.size() == 1;
  }
  void tell() {  // on the loop
    std::vector<std::string> lines;
    {
      MutexLock lock(mutex_);
      lines.swap(waiting_);
    }
    for (const std::string& line : lines) {
      if (alive_) told_(line);
    }
  }
  void end() { alive_ = false; }  // on the loop

 private:
  const std::function<void(const std::string&)> told_;
  bool alive_ = true;  // the loop's thread alone
  Mutex mutex_;
  std::vector<std::string> waiting_ BERTH_GUARDED_BY(mutex_);
};

class LogReader final : public KernelLog {
 public:
  LogReader(Loop& loop, Fd log, std::function<void(const std::string&)> told, ReadCall read)
      : loop_(loop),
        read_(std::move(read)),
        lines_(std::make_shared<Lines>(std::move(told))),
        log_(std::move(log)),
        wake_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
    thread_ = std::thread([this] { run(); });
  }

  ~LogReader() override {
    lines_->end();
    {
      MutexLock lock(mutex_);
      stopping_ = true;
    }
    const std::uint64_t one = 1;
    [[maybe_unused]] const ssize_t written = ::write(wake_.get(), &one, sizeof one);
    thread_.join();
  }

 private:
  void run() {
    bool ended = false;
    while (!stopping()) {
      // A log at its end stays readable: then only the wait for the next look is left.
      std::array<pollfd, 2> fds = {pollfd{wake_.get(), POLLIN, 0},
                                   pollfd{ended ? -1 : log_.get(), POLLIN, 0}};
      ::poll(fds.data(), fds.size(), kAgainMs);
      if (stopping()) return;
      ended = !read_all();
    }
  }

  bool stopping() {
    MutexLock lock(mutex_);
    return stopping_;
  }

  // What is there. False: the log ended or broke; it is tried again later.
  bool read_all() {
    std::array<char, kLongestRecord> buffer;
    while (true) {
      const ssize_t got = read_(log_.get(), buffer.data(), buffer.size());
      if (got > 0) {
        take({buffer.data(), static_cast<std::size_t>(got)});
      } else if (got < 0 && errno == EPIPE) {
        rest_.clear();  // records were overwritten before they were read: the next is the oldest
      } else if (got < 0 && errno != EINTR) {
        return errno == EAGAIN;
      } else if (got == 0) {
        return false;
      }
      if (stopping()) return true;
    }
  }

  void take(std::string_view bytes) {
    rest_.append(bytes);
    std::size_t start = 0;
    for (std::size_t end = rest_.find('\n'); end != std::string::npos;
         end = rest_.find('\n', start)) {
      if (auto message = kernel_message(std::string_view(rest_).substr(start, end - start))) {
        if (lines_->put(std::move(*message))) {
          loop_.post([lines = lines_] { lines->tell(); });
        }
      }
      start = end + 1;
    }
    rest_.erase(0, start);
    if (rest_.size() > kLongestRecord) rest_.clear();
  }

  Loop& loop_;
  const ReadCall read_;
  const std::shared_ptr<Lines> lines_;
  Fd log_, wake_;
  std::string rest_;  // of a record, where the log comes in pieces
  Mutex mutex_;
  bool stopping_ BERTH_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace

Result<std::unique_ptr<KernelLog>> read_kernel_log(
    Loop& loop, const std::string& path, std::function<void(const std::string& line)> told,
    ReadCall read) {
  Fd log(::open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC));
  if (!log.open()) {
    const int error = errno;
    return Error(error == ENOENT ? Code::kNotFound : Code::kUnavailable,
                 path +
                     ": the kernel log cannot be read: " + std::generic_category().message(error) +
                     (error == EPERM || error == EACCES ? "; it needs CAP_SYSLOG" : ""));
  }
  ::lseek(log.get(), 0, SEEK_END);  // a pipe has no end and begins now
  return std::unique_ptr<KernelLog>(
      std::make_unique<LogReader>(loop, std::move(log), std::move(told), std::move(read)));
}

Result<std::unique_ptr<KernelLog>> KernelLog::start(
    Loop& loop, const std::string& path, std::function<void(const std::string& line)> told) {
  return read_kernel_log(loop, path, std::move(told), ::read);
}

}  // namespace berth::host
