#include "control/world_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "base/private_file.h"
#include "control/decision_line.h"
#include "control/replay.h"

namespace berth::control {

namespace {

constexpr std::size_t kPrefix = 17;  // the sum and a space
constexpr std::size_t kFileBuffer = 1 << 16;

std::FILE* open_own(const std::string& path, int flags, const char* mode) {
  const Result<int> opened = open_private(path, flags);
  if (!opened.ok()) return nullptr;
  std::FILE* file = ::fdopen(*opened, mode);
  if (file == nullptr) ::close(*opened);
  return file;
}

bool has_content(const std::string& path) {
  std::FILE* file = open_own(path, O_RDONLY, "rb");
  if (file == nullptr) return false;
  const bool out = std::fgetc(file) != EOF;
  std::fclose(file);
  return out;
}

}  // namespace

FileWorldLog::FileWorldLog(std::string path, std::size_t max_bytes)
    : path_(std::move(path)), max_bytes_(max_bytes) {}

FileWorldLog::~FileWorldLog() {
  if (file_ != nullptr) std::fclose(file_);
}

Status FileWorldLog::check() const {
  const Result<int> opened = open_private(path_, O_WRONLY | O_APPEND | O_CREAT);
  if (!opened.ok()) return opened.error();
  ::close(*opened);
  return {};
}

std::size_t FileWorldLog::limit() const {
  return std::max<std::size_t>(max_bytes_, 2 * static_cast<std::size_t>(base_bytes_));
}

bool FileWorldLog::full() const { return file_ == nullptr ? false : bytes_ >= limit(); }

void FileWorldLog::flush() {
  if (file_ != nullptr && !stopped_ && std::fflush(file_) != 0) fail();
}

void FileWorldLog::fail() {
  ++failures_;
  stopped_ = true;
}

void FileWorldLog::write(std::string_view line) {
  if (file_ == nullptr || stopped_) return;
  if (bytes_ > kMostTimes * limit()) return fail();
  sum_ = line_sum(sum_, line);
  const std::string prefix = hex(sum_) + ' ';
  const bool written = std::fwrite(prefix.data(), 1, prefix.size(), file_) == prefix.size() &&
                       std::fwrite(line.data(), 1, line.size(), file_) == line.size() &&
                       std::fputc('\n', file_) != EOF;
  if (!written) return fail();
  bytes_ += kPrefix + line.size() + 1;
  written_ += kPrefix + line.size() + 1;
}

void FileWorldLog::write_object(const std::string& key, std::string_view line, bool there) {
  const std::uint64_t at = bytes_ + kPrefix;
  write(line);
  if (there && !stopped_) {
    Lines& lines = objects_[key];
    lines.before = std::exchange(lines.now, {at, line.size()});
  } else if (!there) {
    objects_.erase(key);
  }
}

void FileWorldLog::keep_line_before(const std::string& key) {
  const auto it = objects_.find(key);
  if (it != objects_.end() && it->second.kept.size == 0) it->second.kept = it->second.before;
}

// An object that cannot be carried over makes the new file worthless: it stops there.
void FileWorldLog::start_file(std::string_view header) {
  const bool torn = stopped_;
  std::FILE* old = std::exchange(file_, nullptr);
  if (old != nullptr) std::fclose(old);
  const std::string before = path_ + ".1";
  if (has_content(path_)) std::rename(path_.c_str(), before.c_str());
  old = objects_.empty() ? nullptr : open_own(before, O_RDONLY, "rb");
  file_ = open_own(path_, O_WRONLY | O_CREAT | O_TRUNC, "wb");
  if (file_ != nullptr) std::setvbuf(file_, nullptr, _IOFBF, kFileBuffer);
  stopped_ = file_ == nullptr;
  if (stopped_) ++failures_;
  bytes_ = 0;
  sum_ = kLineSumStart;
  write(header);
  std::string text;
  const auto carry_over = [&](Spot& spot) {
    if (spot.size == 0) return true;
    text.resize(spot.size);
    const bool read = old != nullptr && !torn &&
                      std::fseek(old, static_cast<long>(spot.at), SEEK_SET) == 0 &&
                      std::fread(text.data(), 1, text.size(), old) == text.size();
    if (!read) return false;
    spot.at = bytes_ + kPrefix;
    write(text);
    return true;
  };
  for (auto& [key, lines] : objects_) {
    lines.before = {};
    if (carry_over(lines.kept) && carry_over(lines.now)) continue;
    fail();
    break;
  }
  if (old != nullptr) std::fclose(old);
  base_bytes_ = bytes_;
}

}  // namespace berth::control
