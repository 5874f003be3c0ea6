#include "base/private_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>

namespace berth {

namespace {

constexpr mode_t kOwnFile = S_IRUSR | S_IWUSR, kOwnFolder = S_IRWXU;
constexpr mode_t kRights = S_IRWXU | S_IRWXG | S_IRWXO;

Error private_error(const std::string& path, int code) {
  return Error(code == ENOENT ? Code::kNotFound : Code::kUnavailable,
               path + " cannot be opened: " + std::generic_category().message(code));
}

// Of an open file: whose it is, and that nobody else reads it from here on. narrow: as fchmod(2).
template <class F>
Status make_own(const std::string& path, int fd, F narrow) {
  struct stat found{};
  if (::fstat(fd, &found) != 0) return private_error(path, errno);
  if (S_ISLNK(found.st_mode)) return invalid(path + " is a symbolic link; want the file itself");
  if (!S_ISREG(found.st_mode)) {
    return invalid(path + " is no plain file; want a file of this program's own");
  }
  if (found.st_uid != ::geteuid()) {
    return invalid(path + " belongs to user " + std::to_string(found.st_uid) +
                   "; want a file of user " + std::to_string(::geteuid()) +
                   ", or a path where there is none");
  }
  if ((found.st_mode & kRights) != kOwnFile && narrow() != 0) return private_error(path, errno);
  return {};
}

}  // namespace

Result<int> open_private(const std::string& path, int flags) {
  // Not truncated before it is known whose it is; a pipe without a reader is not waited for.
  const int how = (flags & ~O_TRUNC) | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK;
  int fd = ::open(path.c_str(), how, kOwnFile);
  if (const std::size_t slash = path.rfind('/');
      fd < 0 && errno == ENOENT && (flags & O_CREAT) != 0 && slash != std::string::npos) {
    if (::mkdir(path.substr(0, slash).c_str(), kOwnFolder) != 0) return private_error(path, errno);
    fd = ::open(path.c_str(), how, kOwnFile);
  }
  if (fd < 0 && errno == ELOOP) {
    return invalid(path + " is a symbolic link; want the file itself");
  }
  if (fd < 0) return private_error(path, errno);
  Status status = make_own(path, fd, [fd] { return ::fchmod(fd, kOwnFile); });
  if (status.ok() && (flags & O_TRUNC) != 0 && ::ftruncate(fd, 0) != 0) {
    status = private_error(path, errno);
  }
  if (status.ok()) return fd;
  ::close(fd);
  return status.error();
}

Status narrow_file(const std::string& path) {
  // Only a name for it: to close a file that was opened would end the locks that others in this
  // process hold on it.
  const int fd = ::open(path.c_str(), O_PATH | O_NOFOLLOW | O_CLOEXEC);
  if (fd < 0) return errno == ENOENT ? Status() : Status(private_error(path, errno));
  const Status status = make_own(path, fd, [fd] {
    return ::chmod(("/proc/self/fd/" + std::to_string(fd)).c_str(), kOwnFile);
  });
  ::close(fd);
  return status;
}

Status make_private_folder(const std::string& path) {
  if (::mkdir(path.c_str(), kOwnFolder) != 0 && errno != EEXIST) return private_error(path, errno);
  const int fd = ::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  struct stat found{};
  if (fd < 0 || ::fstat(fd, &found) != 0) {
    const int why = errno;
    if (fd >= 0) ::close(fd);
    return private_error(path, why);
  }
  const bool ours = found.st_uid == ::geteuid();
  const bool narrowed =
      !ours || (found.st_mode & kRights) == kOwnFolder || ::fchmod(fd, kOwnFolder) == 0;
  const int why = errno;
  ::close(fd);
  if (!narrowed) return private_error(path, why);
  return {};
}

}  // namespace berth
