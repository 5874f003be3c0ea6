#include "edge/host/program.h"

#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <system_error>
#include <thread>
#include <utility>

#include "base/check.h"
#include "base/mutex.h"
#include "base/system_clock.h"
#include "edge/host/fd.h"

namespace berth::host {

namespace {

constexpr std::size_t kMostStderr = 4096;
constexpr std::int64_t kMs = 1'000'000;
constexpr std::int64_t kKillGrace = 2'000 * kMs;  // until a killed program must have ended

struct Pipe {
  Fd read, write;
  bool open() {
    int ends[2] = {-1, -1};
    if (::pipe2(ends, O_CLOEXEC) != 0) return false;
    read.reset(ends[0]);
    write.reset(ends[1]);
    return true;
  }
};

std::vector<char*> c_strings(const std::vector<std::string>& texts) {
  std::vector<char*> out;
  for (const std::string& text : texts) out.push_back(const_cast<char*>(text.c_str()));
  out.push_back(nullptr);
  return out;
}

Result<pid_t> spawn(const ProgramCall& call, const Pipe& in, const Pipe& out, const Pipe& err) {
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, in.read.get(), 0);
  posix_spawn_file_actions_adddup2(&actions, out.write.get(), 1);
  posix_spawn_file_actions_adddup2(&actions, err.write.get(), 2);
  posix_spawn_file_actions_addclosefrom_np(&actions, 3);
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  sigset_t none, all;
  sigemptyset(&none);
  sigfillset(&all);
  posix_spawnattr_setsigmask(&attributes, &none);
  posix_spawnattr_setsigdefault(&attributes, &all);
  // A group of its own: what ends the agent does not end a change half way.
  posix_spawnattr_setpgroup(&attributes, 0);
  posix_spawnattr_setflags(&attributes,
                           POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETPGROUP);
  std::vector<std::string> argv = {call.path};
  argv.insert(argv.end(), call.arguments.begin(), call.arguments.end());
  auto arguments = c_strings(argv);
  auto environment = c_strings(call.environment);
  pid_t pid = -1;
  const int failed = ::posix_spawn(&pid, call.path.c_str(), &actions, &attributes, arguments.data(),
                                   environment.data());
  posix_spawnattr_destroy(&attributes);
  posix_spawn_file_actions_destroy(&actions);
  if (failed == 0) return pid;
  return Error(Code::kUnavailable, call.path + ": " + std::generic_category().message(failed));
}

// False: the other end is closed.
bool read_some(const Fd& fd, std::string& into, std::size_t most) {
  std::array<char, 16'384> chunk;
  const ssize_t got = ::read(fd.get(), chunk.data(), chunk.size());
  if (got < 0) return errno == EINTR || errno == EAGAIN;
  if (got == 0) return false;
  const std::size_t room = most - std::min(most, into.size());
  into.append(chunk.data(), std::min(room, static_cast<std::size_t>(got)));
  return true;
}

// SIGPIPE is blocked on this thread.
bool write_some(const Fd& fd, std::string_view& left) {
  const ssize_t wrote = ::write(fd.get(), left.data(), left.size());
  if (wrote < 0) return errno == EINTR || errno == EAGAIN;
  left.remove_prefix(static_cast<std::size_t>(wrote));
  return !left.empty();
}

int end_code(int status) {
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

// Waits for the end, at most until then.
bool reap(pid_t pid, const MonotonicClock& clock, std::int64_t until, int& code) {
  while (true) {
    int status = 0;
    const pid_t ended = ::waitpid(pid, &status, WNOHANG);
    if (ended == pid) {
      code = end_code(status);
      return true;
    }
    if (ended < 0 && errno != EINTR) return false;
    if (clock.ticks_ns() >= until) return false;
    ::poll(nullptr, 0, 5);
  }
}

// Carries bytes until both outputs are closed, or the deadline. False: the deadline passed.
bool carry(const ProgramCall& call, Pipe& in, Pipe& out, Pipe& err, const MonotonicClock& clock,
           std::int64_t until, ProgramEnd& end) {
  std::string_view left = call.input;
  if (left.empty()) in.write.reset(-1);
  while (out.read.open() || err.read.open()) {
    const std::int64_t wait = until - clock.ticks_ns();
    if (wait <= 0) return false;
    std::array<pollfd, 3> fds = {
        {{out.read.get(), POLLIN, 0}, {err.read.get(), POLLIN, 0}, {in.write.get(), POLLOUT, 0}}};
    ::poll(fds.data(), fds.size(), static_cast<int>(wait / kMs) + 1);
    if (fds[0].revents != 0 && !read_some(out.read, end.out, call.most_output + 1)) {
      out.read.reset(-1);
    }
    if (fds[1].revents != 0 && !read_some(err.read, end.err, kMostStderr)) err.read.reset(-1);
    if (fds[2].revents != 0 && !write_some(in.write, left)) in.write.reset(-1);
  }
  return true;
}

Result<ProgramEnd> run_program(const ProgramCall& call) {
  const SystemMonotonicClock clock;
  const std::int64_t until = clock.ticks_ns() + call.deadline_ns;
  Pipe in, out, err;
  if (!in.open() || !out.open() || !err.open()) {
    return Error(Code::kUnavailable, "no pipe: out of files");
  }
  BERTH_TRY(const pid_t pid, spawn(call, in, out, err));
  in.read.reset(-1);
  out.write.reset(-1);
  err.write.reset(-1);
  for (const int fd : {in.write.get(), out.read.get(), err.read.get()}) {
    ::fcntl(fd, F_SETFL, ::fcntl(fd, F_GETFL) | O_NONBLOCK);
  }
  ProgramEnd end;
  const bool told = carry(call, in, out, err, clock, until, end);
  if (told && reap(pid, clock, until, end.code)) {
    if (end.out.size() <= call.most_output) return end;
    return Error(Code::kExhausted,
                 call.path + ": it says more than " + std::to_string(call.most_output) + " bytes");
  }
  ::kill(pid, SIGKILL);
  const bool ended = reap(pid, clock, clock.ticks_ns() + kKillGrace, end.code);
  return Error(Code::kUnavailable,
               call.path + ": not done within " + std::to_string(call.deadline_ns / (1'000 * kMs)) +
                   " s; it was killed" + (ended ? "" : " and the kernel does not let it go"));
}

}  // namespace

struct Program::Box {
  Mutex mutex;
  Loop* loop BERTH_GUARDED_BY(mutex) = nullptr;  // null: nobody waits any more
  std::function<void(Result<ProgramEnd>)> done;  // the loop's alone
};

Program::Program(Loop& loop) : loop_(loop) {}

Program::~Program() {
  if (box_ == nullptr) return;
  MutexLock lock(box_->mutex);
  box_->loop = nullptr;
}

bool Program::running() const { return box_ != nullptr; }

// On the program's thread.
void Program::tell(const std::shared_ptr<Box>& box, Program* self, Result<ProgramEnd> end) {
  MutexLock lock(box->mutex);
  if (box->loop == nullptr) return;
  box->loop->post([box, self, end = std::move(end)] {
    {
      MutexLock held(box->mutex);
      if (box->loop == nullptr) return;  // the owner went meanwhile
    }
    self->box_.reset();
    box->done(end);
  });
}

void Program::run(ProgramCall call, std::function<void(Result<ProgramEnd>)> done) {
  BERTH_ASSERT(box_ == nullptr, "one program at a time");
  box_ = std::make_shared<Box>();
  {
    MutexLock lock(box_->mutex);
    box_->loop = &loop_;
  }
  box_->done = std::move(done);
  try {
    std::thread([box = box_, self = this, call = std::move(call)] {
      sigset_t all;
      sigfillset(&all);
      pthread_sigmask(SIG_BLOCK, &all, nullptr);
      tell(box, self, run_program(call));
    }).detach();
  } catch (const std::system_error&) {
    tell(box_, this, Error(Code::kUnavailable, "no thread: out of them"));
  }
}

}  // namespace berth::host
