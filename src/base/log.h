// Structured log lines: a level, a constant message, and key=value fields.
//
//   log.info("pod bound", {{"pod", pod_name}, {"node", node}, {"gpus", 4}});
//
//   text  2026-01-02T03:04:05.678Z INFO "pod bound" pod=team-a/train-0 node=n1 gpus=4
//   JSON  {"ts":"2026-01-02T03:04:05.678Z","level":"info","msg":"pod
//   bound","pod":"team-a/train-0",...
//
// The message is written by us and never carries values; values go into fields. Whatever a value
// holds, one call is one line: control characters, line separators and direction marks are escaped,
// bytes that are no UTF-8 are made visible, a value is cut at max_value_bytes and a line at
// max_line_bytes, and both say that they were cut. A log line is for people and never the way an
// error travels: that is Result.
//
// Thread-safe when the sink is: a Logger does not change after construction. Cost: a disabled
// level is one comparison; an enabled one formats into a local string and calls the sink once.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>
#include <string_view>
#include <variant>

#include "base/clock.h"

namespace berth {

enum class LogLevel : std::uint8_t { kDebug, kInfo, kWarn, kError };
enum class LogFormat : std::uint8_t { kText, kJson };

std::string_view name(LogLevel level);  // "debug", "info", "warn", "error"

// A view: it lives no longer than the call that logs it.
class LogField {
 public:
  using Value = std::variant<std::string_view, std::int64_t, std::uint64_t, double, bool>;

  LogField(std::string_view key, std::string_view value) : key_(key), value_(value) {}
  LogField(std::string_view key, const char* value) : LogField(key, std::string_view(value)) {}
  LogField(std::string_view key, const std::string& value)
      : LogField(key, std::string_view(value)) {}
  LogField(std::string_view key, bool value) : key_(key), value_(value) {}
  LogField(std::string_view key, double value) : key_(key), value_(value) {}
  LogField(std::string_view key, std::signed_integral auto value)
      : key_(key), value_(static_cast<std::int64_t>(value)) {}
  LogField(std::string_view key, std::unsigned_integral auto value)
      : key_(key), value_(static_cast<std::uint64_t>(value)) {}

  std::string_view key() const { return key_; }
  const Value& value() const { return value_; }

 private:
  std::string_view key_;
  Value value_;
};

// Where lines go; implemented at the edge. Must be thread-safe; takes a line without its newline.
class LogSink {
 public:
  virtual ~LogSink() = default;
  virtual void write(LogLevel level, std::string_view line) = 0;
};

struct LogOptions {
  LogLevel level = LogLevel::kInfo;  // less urgent lines are dropped
  LogFormat format = LogFormat::kText;
  std::size_t max_value_bytes = 2'048;  // of a value as written, escapes included
  std::size_t max_line_bytes = 16'384;  // at least 256
};

class Logger {
 public:
  using Fields = std::initializer_list<LogField>;

  Logger(LogSink& sink, const WallClock& clock, LogOptions options = {});

  bool enabled(LogLevel level) const { return level >= options_.level; }
  void log(LogLevel level, std::string_view message, std::span<const LogField> fields) const;

  void debug(std::string_view message, Fields fields = {}) const {
    log(LogLevel::kDebug, message, {fields.begin(), fields.size()});
  }
  void info(std::string_view message, Fields fields = {}) const {
    log(LogLevel::kInfo, message, {fields.begin(), fields.size()});
  }
  void warn(std::string_view message, Fields fields = {}) const {
    log(LogLevel::kWarn, message, {fields.begin(), fields.size()});
  }
  void error(std::string_view message, Fields fields = {}) const {
    log(LogLevel::kError, message, {fields.begin(), fields.size()});
  }

 private:
  LogSink& sink_;
  const WallClock& clock_;
  const LogOptions options_;
};

}  // namespace berth
