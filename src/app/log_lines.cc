#include "app/log_lines.h"

#include <ostream>

namespace berth::app {

LogOptions log_options(std::string_view level, std::string_view format) {
  return {.level = level == "debug"  ? LogLevel::kDebug
                   : level == "warn" ? LogLevel::kWarn
                                     : LogLevel::kInfo,
          .format = format == "json" ? LogFormat::kJson : LogFormat::kText};
}

void StreamSink::write(LogLevel, std::string_view line) {
  MutexLock lock(mutex_);
  out_ << line << '\n';
  out_.flush();
}

}  // namespace berth::app
