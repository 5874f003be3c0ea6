#include "edge/host/folder_watch.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/inotify.h>
#include <sys/stat.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <map>
#include <set>
#include <thread>
#include <tuple>

#include "base/mutex.h"
#include "edge/host/fd.h"
#include "edge/host/paths.h"

namespace berth::host {
namespace {

constexpr std::uint32_t kFolderEvents = IN_CREATE | IN_DELETE | IN_MOVED_FROM | IN_MOVED_TO |
                                        IN_CLOSE_WRITE | IN_ATTRIB | IN_DELETE_SELF | IN_MOVE_SELF;
constexpr int kMostOfBurst = 20;  // rounds: a folder that never rests is told of as well

// What makes an entry another one, through links: a new file behind the same name counts.
using Look = std::tuple<dev_t, ino_t, off_t, std::int64_t, std::int64_t>;

Look look_of(const struct stat& status) {
  return {status.st_dev, status.st_ino, status.st_size, status.st_mtim.tv_sec,
          status.st_mtim.tv_nsec};
}

bool look_at(const std::string& path, struct stat& status) {
  return ::stat(path.c_str(), &status) == 0 || ::lstat(path.c_str(), &status) == 0;
}

// Shared with the work that is posted: it may run after the watch is gone.
struct Told {
  std::function<void(const std::string&)> changed;
  bool alive = true;  // read and written on the loop's thread alone
};

class Watch final : public FolderWatch {
 public:
  Watch(Loop& loop, std::string folder, std::function<void(const std::string&)> changed,
        const FolderWatchOptions& options)
      : loop_(loop),
        folder_(std::move(folder)),
        options_(options),
        told_(std::make_shared<Told>(Told{std::move(changed)})),
        wake_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
    if (options_.inotify) inotify_.reset(::inotify_init1(IN_CLOEXEC | IN_NONBLOCK));
    find_folder();
    rescan();
    thread_ = std::thread([this] { run(); });
  }

  ~Watch() override {
    told_->alive = false;
    {
      MutexLock lock(mutex_);
      stopping_ = true;
    }
    const std::uint64_t one = 1;
    // Cannot fail, and if it did the thread would see stopping_ at its next look.
    [[maybe_unused]] const ssize_t written = ::write(wake_.get(), &one, sizeof one);
    thread_.join();
  }

 private:
  void run() {
    while (!stopping()) {
      const bool events = wait(options_.look_every_ms);
      if (stopping()) return;
      std::set<std::string> names;
      if (events) {
        for (int round = 0; read_events(names) && round < kMostOfBurst; ++round)
          wait(options_.burst_ms);
      }
      const bool another = find_folder();
      if (events || another || watch_ < 0) names.merge(rescan());
      tell(names);
    }
  }

  bool stopping() {
    MutexLock lock(mutex_);
    return stopping_;
  }

  bool wait(int ms) {
    std::array<pollfd, 2> fds = {pollfd{wake_.get(), POLLIN, 0}, pollfd{inotify_.get(), POLLIN, 0}};
    return ::poll(fds.data(), fds.size(), ms) > 0 && (fds[1].revents & POLLIN) != 0;
  }

  // True: there were some.
  bool read_events(std::set<std::string>& names) {
    alignas(inotify_event) std::array<char, 65'536> buffer;
    bool any = false;
    while (true) {
      const ssize_t got = ::read(inotify_.get(), buffer.data(), buffer.size());
      if (got < 0 && errno == EINTR) continue;
      if (got <= 0) return any;
      any = true;
      for (std::size_t at = 0; at + sizeof(inotify_event) <= static_cast<std::size_t>(got);) {
        inotify_event event;
        std::memcpy(&event, buffer.data() + at, sizeof event);
        const char* name = buffer.data() + at + sizeof event;
        at += sizeof event + event.len;
        if (event.wd != watch_) continue;  // of the folder before
        if (event.len > 0 && *name != 0) names.insert(name);
        if ((event.mask & (IN_DELETE_SELF | IN_MOVE_SELF | IN_IGNORED | IN_UNMOUNT)) != 0) {
          drop_watch();
        }
      }
    }
  }

  void drop_watch() {
    if (watch_ >= 0) ::inotify_rm_watch(inotify_.get(), watch_);
    watch_ = -1;
    identity_ = {};
  }

  // Looks whether the path still leads to the folder that is watched. True: to another one.
  bool find_folder() {
    struct stat status = {};
    if (::stat(folder_.c_str(), &status) != 0 || !S_ISDIR(status.st_mode)) {
      const bool had = watch_ >= 0;
      drop_watch();
      return had;
    }
    const std::pair<dev_t, ino_t> now(status.st_dev, status.st_ino);
    if (watch_ >= 0 && now == identity_) return false;
    drop_watch();
    if (!inotify_.open()) return false;  // entries are compared at every look
    watch_ = ::inotify_add_watch(inotify_.get(), folder_.c_str(), kFolderEvents | IN_ONLYDIR);
    if (watch_ >= 0) identity_ = now;
    return true;
  }

  // The names that came, went or look different since the last time.
  std::set<std::string> rescan() {
    std::map<std::string, Look> now;
    for (const std::string& name : names_in(folder_)) {
      struct stat status = {};
      if (look_at(folder_ + "/" + name, status)) now.emplace(name, look_of(status));
    }
    std::set<std::string> names;
    for (const auto& [name, look] : now) {
      const auto before = entries_.find(name);
      if (before == entries_.end() || before->second != look) names.insert(name);
    }
    for (const auto& [name, look] : entries_) {
      if (!now.contains(name)) names.insert(name);
    }
    entries_ = std::move(now);
    return names;
  }

  void tell(std::set<std::string>& names) {
    if (names.empty()) return;
    loop_.post([told = told_, names = std::move(names)] {
      for (const std::string& name : names) {
        if (told->alive) told->changed(name);
      }
    });
  }

  Loop& loop_;
  const std::string folder_;
  const FolderWatchOptions options_;
  const std::shared_ptr<Told> told_;

  Fd wake_, inotify_;
  int watch_ = -1;                      // of inotify; -1: entries are compared instead
  std::pair<dev_t, ino_t> identity_{};  // of the folder that is watched
  std::map<std::string, Look> entries_;

  Mutex mutex_;
  bool stopping_ BERTH_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace

std::unique_ptr<FolderWatch> watch_folder(Loop& loop, const std::string& folder,
                                          std::function<void(const std::string& name)> changed,
                                          const FolderWatchOptions& options) {
  return std::make_unique<Watch>(loop, folder, std::move(changed), options);
}

std::unique_ptr<FolderWatch> FolderWatch::start(
    Loop& loop, const std::string& folder, std::function<void(const std::string& name)> changed) {
  return watch_folder(loop, folder, std::move(changed), {});
}

}  // namespace berth::host
