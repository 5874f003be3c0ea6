#include "control/file_log.h"

#include <fcntl.h>

#include <utility>

#include "base/private_file.h"

namespace berth::control {

FileDecisionLog::FileDecisionLog(std::string path, std::size_t max_bytes)
    : path_(std::move(path)), max_bytes_(max_bytes) {}

FileDecisionLog::~FileDecisionLog() {
  if (file_ != nullptr) std::fclose(file_);
}

Status FileDecisionLog::open() {
  if (file_ != nullptr) return {};
  const Result<int> opened = open_private(path_, O_WRONLY | O_APPEND | O_CREAT);
  if (!opened.ok()) return Error(opened.error()).context("decision log");
  file_ = ::fdopen(*opened, "ab");
  if (file_ == nullptr) return Error(Code::kUnavailable, "decision log: out of memory");
  std::fseek(file_, 0, SEEK_END);
  const long at = std::ftell(file_);
  bytes_ = at < 0 ? 0 : static_cast<std::size_t>(at);
  return {};
}

void FileDecisionLog::rotate() {
  std::fclose(std::exchange(file_, nullptr));
  const std::string old = path_ + ".1";
  if (std::rename(path_.c_str(), old.c_str()) != 0) ++failures_;
}

void FileDecisionLog::write(std::string_view json_line) {
  bool ready = open().ok();
  if (ready && bytes_ > 0 && bytes_ + json_line.size() + 1 > max_bytes_) {
    rotate();
    ready = open().ok();
  }
  if (!ready) {
    ++failures_;
    return;
  }
  const bool written =
      std::fwrite(json_line.data(), 1, json_line.size(), file_) == json_line.size() &&
      std::fputc('\n', file_) != EOF && std::fflush(file_) == 0;
  if (!written) ++failures_;
  bytes_ += json_line.size() + 1;
}

}  // namespace berth::control
