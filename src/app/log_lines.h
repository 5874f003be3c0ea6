// Log lines on a stream, from any thread, each whole.
#pragma once

#include <iosfwd>
#include <string_view>

#include "base/log.h"
#include "base/mutex.h"

namespace berth::app {

// The words of --log-level and --log-format; others are the usual: "info" and "text".
LogOptions log_options(std::string_view level, std::string_view format = "text");

class StreamSink final : public LogSink {
 public:
  explicit StreamSink(std::ostream& out) : out_(out) {}
  void write(LogLevel level, std::string_view line) override;

 private:
  Mutex mutex_;
  std::ostream& out_ BERTH_GUARDED_BY(mutex_);
};

}  // namespace berth::app
