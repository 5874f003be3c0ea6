#include "edge/kube/child_process.h"

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>
#include <utility>

namespace berth::kube {
namespace {

constexpr std::size_t kMaxOutput = 1024 * 1024;

void close_fd(int& fd) {
  if (fd >= 0) ::close(std::exchange(fd, -1));
}

std::vector<char*> pointers_to(const std::vector<std::string>& texts) {
  std::vector<char*> out;
  for (const std::string& text : texts) out.push_back(const_cast<char*>(text.c_str()));
  out.push_back(nullptr);
  return out;
}

}  // namespace

Result<ChildProcess> ChildProcess::start(const std::string& program,
                                         const std::vector<std::string>& argv,
                                         const std::vector<std::string>& envp) {
  int out[2] = {-1, -1}, err[2] = {-1, -1};
  if (::pipe2(out, O_CLOEXEC) != 0) return Error(Code::kUnavailable, "no pipe: out of files");
  if (::pipe2(err, O_CLOEXEC) != 0) {
    close_fd(out[0]);
    close_fd(out[1]);
    return Error(Code::kUnavailable, "no pipe: out of files");
  }
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_adddup2(&actions, out[1], 1);
  posix_spawn_file_actions_adddup2(&actions, err[1], 2);
  posix_spawn_file_actions_addclosefrom_np(&actions, 3);
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  sigset_t none, all;
  sigemptyset(&none);
  sigfillset(&all);
  posix_spawnattr_setsigmask(&attributes, &none);
  posix_spawnattr_setsigdefault(&attributes, &all);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
  ChildProcess child;
  auto args = pointers_to(argv);
  auto environment = pointers_to(envp);
  const int failed = ::posix_spawn(&child.pid_, program.c_str(), &actions, &attributes, args.data(),
                                   environment.data());
  posix_spawnattr_destroy(&attributes);
  posix_spawn_file_actions_destroy(&actions);
  close_fd(out[1]);
  close_fd(err[1]);
  child.out_fd_ = out[0];
  child.err_fd_ = err[0];
  if (failed != 0) {
    child.pid_ = -1;
    return Error(Code::kUnavailable, program + ": " + std::generic_category().message(failed));
  }
  for (int fd : {child.out_fd_, child.err_fd_}) {
    ::fcntl(fd, F_SETFL, ::fcntl(fd, F_GETFL) | O_NONBLOCK);
  }
  return child;
}

ChildProcess::ChildProcess(ChildProcess&& other) noexcept
    : pid_(std::exchange(other.pid_, -1)),
      out_fd_(std::exchange(other.out_fd_, -1)),
      err_fd_(std::exchange(other.err_fd_, -1)),
      out_(std::move(other.out_)),
      err_(std::move(other.err_)) {}

ChildProcess::~ChildProcess() {
  close_fd(out_fd_);
  close_fd(err_fd_);
  if (pid_ <= 0) return;
  kill();
  while (::waitpid(pid_, nullptr, 0) < 0 && errno == EINTR) {
  }
}

void ChildProcess::kill() {
  if (pid_ > 0) ::kill(pid_, SIGKILL);
}

void ChildProcess::drain(int& fd, std::string& into) {
  char chunk[16 * 1024];
  while (fd >= 0) {
    const ssize_t got = ::read(fd, chunk, sizeof chunk);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return;  // nothing now
    if (got == 0) {
      close_fd(fd);
      return;
    }
    std::size_t room = kMaxOutput - into.size();
    into.append(chunk, std::min(room, static_cast<std::size_t>(got)));
  }
}

std::optional<int> ChildProcess::step() {
  int status = 0;
  // Asked before the pipes are read: what an ended child wrote is in them.
  const pid_t ended = pid_ > 0 ? ::waitpid(pid_, &status, WNOHANG) : 0;
  drain(out_fd_, out_);
  drain(err_fd_, err_);
  if (ended != pid_ || pid_ <= 0) return {};
  pid_ = -1;
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

}  // namespace berth::kube
