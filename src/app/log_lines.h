// Log lines on a stream, from any thread, each whole.
#pragma once

#include <iosfwd>
#include <string_view>

#include "base/log.h"
#include "base/mutex.h"

namespace berth::app {

class StreamSink final : public LogSink {
 public:
  explicit StreamSink(std::ostream& out) : out_(out) {}
  void write(LogLevel level, std::string_view line) override;

 private:
  Mutex mutex_;
  std::ostream& out_ BERTH_GUARDED_BY(mutex_);
};

}  // namespace berth::app
