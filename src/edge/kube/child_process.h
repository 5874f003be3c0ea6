// A program run without a shell, its output read without waiting: for credential plugins.
//
// posix_spawn with the arguments and the environment as given, stdin from /dev/null, no other
// file of ours open in it. The owner polls out_fd() and err_fd() together with what else it waits
// for, and calls step(). One owner. The destructor kills a child that still runs and reaps it.
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>
#include <vector>

#include "base/result.h"

namespace berth::kube {

class ChildProcess {
 public:
  static Result<ChildProcess> start(const std::string& program,
                                    const std::vector<std::string>& argv,
                                    const std::vector<std::string>& envp);
  ~ChildProcess();
  ChildProcess(ChildProcess&& other) noexcept;
  ChildProcess& operator=(ChildProcess&&) = delete;

  int out_fd() const { return out_fd_; }  // -1 once it is closed
  int err_fd() const { return err_fd_; }
  // Reads what is there. The exit code once the child has ended (128 + n: by signal n).
  std::optional<int> step();
  void kill();

  const std::string& out() const { return out_; }  // at most 1 MiB each; the rest is dropped
  const std::string& err() const { return err_; }

 private:
  ChildProcess() = default;
  static void drain(int& fd, std::string& into);

  pid_t pid_ = -1;
  int out_fd_ = -1, err_fd_ = -1;
  std::string out_, err_;
};

}  // namespace berth::kube
