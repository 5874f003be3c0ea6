#include "app/files.h"

#include <fcntl.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <system_error>

#include "edge/host/fd.h"
#include "edge/host/host.h"

namespace berth::app {

namespace {

Error file_error(const std::string& path, int code) {
  return Error(code == ENOENT ? Code::kNotFound : Code::kUnavailable,
               std::generic_category().message(code))
      .context(path);
}

// Beside target, then in its place. rights: of the file that is there; 0: there is none.
Status put_in_place(const std::string& target, std::string_view content, int mode, mode_t rights) {
  BERTH_TRY(const std::string unique, secret_hex(8));
  const std::string fresh = target + '.' + unique;
  int error = 0;
  {
    const host::Fd file(::open(fresh.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode));
    if (file.get() < 0) return file_error(target, errno);
    if (!host::write_all(file.get(), content) ||
        (rights != 0 && ::fchmod(file.get(), rights) != 0) || ::fsync(file.get()) != 0) {
      error = errno;
    }
  }
  if (error == 0 && ::rename(fresh.c_str(), target.c_str()) != 0) error = errno;
  if (error == 0) return {};
  ::unlink(fresh.c_str());
  return file_error(target, error);
}

}  // namespace

Result<std::string> read_file(const std::string& path, std::size_t max_bytes) {
  // Not as edge/host/ reads the machine's files: a pipe is waited for.
  const host::Fd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (file.get() < 0) return file_error(path, errno);
  std::string out;
  char buffer[64 * 1024];
  while (true) {
    const ssize_t got = ::read(file.get(), buffer, sizeof buffer);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return file_error(path, errno);
    if (got == 0) return out;
    out.append(buffer, static_cast<std::size_t>(got));
    if (out.size() > max_bytes) {
      return Error(Code::kExhausted, "more than " + std::to_string(max_bytes) + " bytes")
          .context(path);
    }
  }
}

Status replace_file(const std::string& path, std::string_view content) {
  return host::write_atomically(path, content, S_IRUSR | S_IWUSR);
}

Status write_output(const std::string& path, std::string_view content, int mode) {
  struct stat found{};
  if (::stat(path.c_str(), &found) != 0) {
    if (errno != ENOENT) return file_error(path, errno);
    return put_in_place(path, content, mode, 0);
  }
  if (S_ISDIR(found.st_mode)) return file_error(path, EISDIR);
  if (S_ISREG(found.st_mode)) {
    std::error_code trouble;
    const std::filesystem::path target = std::filesystem::canonical(path, trouble);
    // No path leads to a file that a link of /proc/self/fd names and that was removed.
    if (!trouble) return put_in_place(target.string(), content, mode, found.st_mode & 07777U);
  }
  const host::Fd file(::open(path.c_str(), O_WRONLY | O_CLOEXEC));
  if (file.get() < 0 || !host::write_all(file.get(), content)) return file_error(path, errno);
  return {};
}

Status make_folder(const std::string& path) {
  std::error_code trouble;
  const std::filesystem::path folder(path);
  if (std::filesystem::is_directory(folder, trouble)) return {};
  if (folder.has_parent_path()) {
    std::filesystem::create_directories(folder.parent_path(), trouble);
    if (trouble) return file_error(path, trouble.value());
  }
  if (::mkdir(path.c_str(), S_IRWXU) != 0 && errno != EEXIST) return file_error(path, errno);
  if (!std::filesystem::is_directory(folder, trouble)) return file_error(path, ENOTDIR);
  return {};
}

std::string absolute_path(const std::string& path) {
  std::error_code trouble;
  const std::filesystem::path absolute = std::filesystem::absolute(path, trouble);
  return trouble ? path : absolute.lexically_normal().string();
}

Result<std::string> secret_hex(std::size_t bytes) {
  std::string raw(bytes, '\0');
  if (::getrandom(raw.data(), raw.size(), 0) != static_cast<ssize_t>(raw.size())) {
    return Error(Code::kUnavailable, "the system gave no random bytes");
  }
  std::string out;
  for (const char c : raw) {
    out += "0123456789abcdef"[static_cast<unsigned char>(c) >> 4];
    out += "0123456789abcdef"[static_cast<unsigned char>(c) & 15];
  }
  return out;
}

}  // namespace berth::app
