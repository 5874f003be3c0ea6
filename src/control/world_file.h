// The log of a World in two files: lines go to PATH until it is full, then it becomes PATH.1 and a
// new one begins, with the objects as they are. For app/ and tests alone: it does file I/O.
//
// In memory there is a place in the file for each object (about 150 bytes), not its text. A write
// that fails ends the log until the controller starts again: what is there is true as far as it
// goes. Bounded: a file that cannot be ended in time stops at kMostTimes its size. The files are
// their owner's alone (base/private_file.h). One owner.
#pragma once

#include <cstdint>
#include <cstdio>
#include <map>
#include <string>
#include <string_view>

#include "base/result.h"
#include "control/world_log.h"

namespace berth::control {

class FileWorldLog final : public WorldLog {
 public:
  static constexpr std::size_t kDefaultBytes = 256 * 1024 * 1024;
  static constexpr std::size_t kMostTimes = 4;

  explicit FileWorldLog(std::string path, std::size_t max_bytes = kDefaultBytes);
  ~FileWorldLog() override;
  FileWorldLog(const FileWorldLog&) = delete;
  FileWorldLog& operator=(const FileWorldLog&) = delete;

  Status check() const;  // whether a file can be written there
  bool full() const override;
  void flush() override;
  std::uint64_t failures() const { return failures_; }
  std::uint64_t bytes_written() const { return written_; }

 protected:
  void start_file(std::string_view header) override;
  void write(std::string_view line) override;
  void write_object(const std::string& key, std::string_view line, bool there) override;
  void keep_line_before(const std::string& key) override;

 private:
  struct Spot {
    std::uint64_t at = 0;
    std::size_t size = 0;  // 0: there is none
  };
  struct Lines {
    Spot now, before, kept;  // kept: comes before now in a new file
  };
  void fail();
  std::size_t limit() const;

  std::string path_;
  std::size_t max_bytes_;
  std::FILE* file_ = nullptr;
  bool stopped_ = false;
  std::uint64_t bytes_ = 0, base_bytes_ = 0, written_ = 0, failures_ = 0;
  std::uint64_t sum_ = 0;
  std::map<std::string, Lines> objects_;
};

}  // namespace berth::control
