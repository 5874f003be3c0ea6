#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <deque>
#include <filesystem>
#include <system_error>

#include "edge/host/fd.h"
#include "edge/host/host.h"
#include "edge/host/paths.h"

namespace berth::host {
namespace {

constexpr std::size_t kMostNames = 65'536;
constexpr int kMostLinks = 40;  // as the kernel's

Error file_error(const std::string& path, const char* what, int error) {
  const Code code = error == ENOENT || error == ENOTDIR ? Code::kNotFound : Code::kUnavailable;
  return {code, path + ": " + what + ": " + std::generic_category().message(error)};
}

}  // namespace

bool write_all(int fd, std::string_view content) {
  while (!content.empty()) {
    const ssize_t wrote = ::write(fd, content.data(), content.size());
    if (wrote < 0 && errno == EINTR) continue;
    if (wrote < 0) return false;
    content.remove_prefix(static_cast<std::size_t>(wrote));
  }
  return true;
}

bool is_folder(const std::string& path) {
  struct stat found{};
  return !path.empty() && ::stat(path.c_str(), &found) == 0 && S_ISDIR(found.st_mode);
}

Result<std::string> read_text(const std::string& path, std::size_t at_most) {
  const Fd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (fd.get() < 0) return file_error(path, "cannot be opened", errno);
  std::string text;
  std::array<char, 16'384> buffer;
  while (true) {
    const ssize_t got = ::read(fd.get(), buffer.data(), buffer.size());
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return file_error(path, "cannot be read", errno);
    if (got == 0) return text;
    if (static_cast<std::size_t>(got) > at_most - text.size()) {
      return Error(Code::kExhausted, path + ": longer than " + std::to_string(at_most) + " bytes");
    }
    text.append(buffer.data(), static_cast<std::size_t>(got));
  }
}

Status write_atomically(const std::string& path, std::string_view content, int mode) {
  const std::filesystem::path target(path);
  if (target.filename().empty()) return invalid("'" + path + "': no name of a file");
  const std::filesystem::path folder = target.has_parent_path() ? target.parent_path() : ".";
  std::error_code failed;
  std::filesystem::create_directories(folder, failed);
  if (failed) return file_error(folder.string(), "cannot be made", failed.value());

  std::string temporary = (folder / ("." + target.filename().string() + ".XXXXXX")).string();
  int error = 0;
  {
    const Fd fd(::mkostemp(temporary.data(), O_CLOEXEC));
    if (fd.get() < 0) return file_error(temporary, "cannot be made", errno);
    if (!write_all(fd.get(), content) || ::fchmod(fd.get(), static_cast<mode_t>(mode)) != 0 ||
        ::fsync(fd.get()) != 0) {
      error = errno;
    }
  }
  if (error == 0 && ::rename(temporary.c_str(), path.c_str()) != 0) error = errno;
  if (error != 0) {
    ::unlink(temporary.c_str());
    return file_error(path, "cannot be written", error);
  }
  const Fd kept(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (kept.get() < 0 || ::fsync(kept.get()) != 0) {
    return file_error(folder.string(), "cannot be flushed", errno);
  }
  return {};
}

Status append_line(const std::string& path, std::string_view line) {
  // O_NONBLOCK: the opening of a pipe would wait for its reader.
  const Fd fd(::open(path.c_str(),
                     O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0600));
  if (fd.get() < 0) {
    if (errno == ELOOP) {
      return Error(Code::kUnavailable, path + ": found a link, want a file; remove it");
    }
    return file_error(path, "cannot be opened", errno);
  }
  struct stat found{};
  if (::fstat(fd.get(), &found) != 0) return file_error(path, "cannot be opened", errno);
  if (!S_ISREG(found.st_mode)) return file_error(path, "is no plain file", EINVAL);
  ssize_t wrote = 0;
  do {
    wrote = ::write(fd.get(), line.data(), line.size());
  } while (wrote < 0 && errno == EINTR);
  if (wrote == static_cast<ssize_t>(line.size())) return {};
  return file_error(path, "cannot be written", wrote < 0 ? errno : ENOSPC);
}

void remove_file(const std::string& path) { ::unlink(path.c_str()); }

std::vector<std::string> names_in(const std::string& folder) {
  std::vector<std::string> names;
  std::error_code failed;
  std::filesystem::directory_iterator entry(folder, failed);
  while (!failed && entry != std::filesystem::directory_iterator() && names.size() < kMostNames) {
    names.push_back(entry->path().filename().string());
    entry.increment(failed);
  }
  std::sort(names.begin(), names.end());
  return names;
}

std::string below(const std::string& root, const std::string& path) {
  std::string_view prefix = root;
  while (prefix.ends_with('/')) prefix.remove_suffix(1);
  return std::string(prefix) + (path.starts_with('/') ? "" : "/") + path;
}

std::optional<std::string> resolve_below(const std::string& root, const std::string& path) {
  std::deque<std::string> left;
  for (const auto& part : std::filesystem::path(path)) left.push_back(part.string());
  std::vector<std::string> walked;
  int links = 0;
  while (!left.empty()) {
    const std::string part = std::move(left.front());
    left.pop_front();
    if (part.empty() || part == "." || part == "/") continue;
    if (part == "..") {
      if (!walked.empty()) walked.pop_back();
      continue;
    }
    std::string here;
    for (const std::string& folder : walked) here += "/" + folder;
    here += "/" + part;
    std::error_code failed;
    const auto status = std::filesystem::symlink_status(below(root, here), failed);
    if (failed || status.type() == std::filesystem::file_type::not_found) return std::nullopt;
    if (status.type() != std::filesystem::file_type::symlink) {
      walked.push_back(part);
      continue;
    }
    if (++links > kMostLinks) return std::nullopt;
    const auto target = std::filesystem::read_symlink(below(root, here), failed);
    if (failed) return std::nullopt;
    if (target.is_absolute()) walked.clear();
    std::deque<std::string> more;
    for (const auto& step : target) more.push_back(step.string());
    left.insert(left.begin(), more.begin(), more.end());
  }
  std::string out;
  for (const std::string& folder : walked) out += "/" + folder;
  return out.empty() ? "/" : out;
}

}  // namespace berth::host
