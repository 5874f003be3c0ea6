// The decision log in two files: lines go to PATH until it is full, then it becomes PATH.1 and a
// new one begins, so at most twice max_bytes are kept. For app/ alone: it does file I/O.
//
// A write that fails is counted and tried anew with the next line; the control plane never waits
// for its log. The files are their owner's alone (base/private_file.h). One owner.
#pragma once

#include <cstdint>
#include <cstdio>
#include <string>
#include <string_view>

#include "base/result.h"
#include "control/controller.h"

namespace berth::control {

class FileDecisionLog final : public DecisionLog {
 public:
  static constexpr std::size_t kDefaultBytes = 64 * 1024 * 1024;

  explicit FileDecisionLog(std::string path, std::size_t max_bytes = kDefaultBytes);
  ~FileDecisionLog() override;
  FileDecisionLog(const FileDecisionLog&) = delete;
  FileDecisionLog& operator=(const FileDecisionLog&) = delete;

  Status open();  // goes on at the end of what is there
  void write(std::string_view json_line) override;
  std::uint64_t failures() const { return failures_; }

 private:
  void rotate();

  std::string path_;
  std::size_t max_bytes_;
  std::FILE* file_ = nullptr;
  std::size_t bytes_ = 0;
  std::uint64_t failures_ = 0;
};

}  // namespace berth::control
