#include "app/progress.h"

#include <fmt/core.h>

#include <ostream>

#include "text/escape.h"

namespace berth::app {

namespace {
constexpr std::int64_t kSecondNs = 1'000'000'000;
constexpr std::int64_t kQuietNs = kSecondNs;
constexpr std::int64_t kEveryNs = kSecondNs / 5;
}  // namespace

Progress::Progress(std::ostream* out, const MonotonicClock& clock)
    : out_(out), clock_(clock), started_ns_(clock.ticks_ns()) {}

Progress::~Progress() { finish(); }

void Progress::update(const std::string& doing, std::uint64_t done, std::uint64_t total) {
  if (out_ == nullptr) return;
  const std::int64_t now = clock_.ticks_ns();
  const std::int64_t elapsed = now - started_ns_;
  if (elapsed < kQuietNs || (shown_ && now - shown_ns_ < kEveryNs)) return;
  std::string line = text::elide_middle(text::terminal_safe(doing), 40);
  if (total > 0 && done <= total) {
    line += fmt::format("  {} of {}", show_bytes(done), show_bytes(total));
    if (done > 0) {
      const double left_s = static_cast<double>(elapsed) * static_cast<double>(total - done) /
                            static_cast<double>(done) / 1e9;
      line += fmt::format(", about {:.0f} s left", left_s);
    }
  } else {
    line += "  " + show_bytes(done);
  }
  *out_ << '\r' << line << "\x1b[K" << std::flush;
  shown_ns_ = now;
  shown_ = true;
}

void Progress::finish() {
  if (shown_) *out_ << "\r\x1b[K" << std::flush;
  shown_ = false;
}

std::string show_bytes(std::uint64_t bytes) {
  constexpr std::uint64_t kKi = 1024;
  const char* units[] = {"B", "KiB", "MiB", "GiB", "TiB"};
  std::size_t unit = 0;
  std::uint64_t scale = 1;
  while (unit + 1 < std::size(units) && bytes / scale >= kKi) {
    scale *= kKi;
    ++unit;
  }
  const double value = static_cast<double>(bytes) / static_cast<double>(scale);
  const bool whole = bytes % scale == 0 || value >= 10;
  return whole ? fmt::format("{:.0f} {}", value, units[unit])
               : fmt::format("{:.1f} {}", value, units[unit]);
}

}  // namespace berth::app
