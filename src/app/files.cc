#include "app/files.h"

#include <fcntl.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <system_error>

namespace berth::app {

namespace {

Error file_error(const std::string& path, int code) {
  return Error(code == ENOENT ? Code::kNotFound : Code::kUnavailable,
               std::generic_category().message(code))
      .context(path);
}

class OpenFile {
 public:
  explicit OpenFile(int descriptor) : descriptor_(descriptor) {}
  ~OpenFile() {
    if (descriptor_ >= 0) ::close(descriptor_);
  }
  OpenFile(const OpenFile&) = delete;
  OpenFile& operator=(const OpenFile&) = delete;
  int get() const { return descriptor_; }

 private:
  int descriptor_;
};

}  // namespace

Result<std::string> read_file(const std::string& path, std::size_t max_bytes) {
  const OpenFile file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
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
  const std::string fresh = path + ".new";
  {
    const OpenFile file(
        ::open(fresh.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, S_IRUSR | S_IWUSR));
    if (file.get() < 0) return file_error(fresh, errno);
    while (!content.empty()) {
      const ssize_t wrote = ::write(file.get(), content.data(), content.size());
      if (wrote < 0 && errno == EINTR) continue;
      if (wrote < 0) return file_error(fresh, errno);
      content.remove_prefix(static_cast<std::size_t>(wrote));
    }
    if (::fsync(file.get()) != 0) return file_error(fresh, errno);
  }
  if (::rename(fresh.c_str(), path.c_str()) != 0) return file_error(path, errno);
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
