#include "app/log_lines.h"

#include <ostream>

namespace berth::app {

void StreamSink::write(LogLevel, std::string_view line) {
  MutexLock lock(mutex_);
  out_ << line << '\n';
  out_.flush();
}

}  // namespace berth::app
