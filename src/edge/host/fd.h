// A file descriptor that is closed, whatever happens. One owner.
#pragma once

#include <unistd.h>

#include <string_view>
#include <utility>

namespace berth::host {

class Fd {
 public:
  explicit Fd(int fd = -1) : fd_(fd) {}
  ~Fd() { reset(-1); }
  Fd(Fd&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Fd& operator=(Fd&& other) noexcept {
    reset(std::exchange(other.fd_, -1));
    return *this;
  }

  int get() const { return fd_; }
  bool open() const { return fd_ >= 0; }
  void reset(int fd) {
    const int before = std::exchange(fd_, fd);
    if (before >= 0) ::close(before);
  }

 private:
  int fd_;
};

// All of it, however many calls that takes; false: errno says why.
bool write_all(int fd, std::string_view content);

}  // namespace berth::host
