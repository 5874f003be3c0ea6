// One line on a terminal that says what long work is doing, how far it is and how long it still
// takes.
//
// Nothing appears in the first second, so that quick runs stay quiet; finish() wipes the line.
// Used by one thread. Cost of update(): one clock read.
#pragma once

#include <cstdint>
#include <iosfwd>
#include <string>

#include "base/clock.h"

namespace berth::app {

class Progress {
 public:
  // out: nullptr for none (not a terminal).
  Progress(std::ostream* out, const MonotonicClock& clock);
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  // done of total, both of the same unit; total 0: not known.
  void update(const std::string& doing, std::uint64_t done, std::uint64_t total);
  void finish();

 private:
  std::ostream* out_;
  const MonotonicClock& clock_;
  std::int64_t started_ns_;
  std::int64_t shown_ns_ = 0;
  bool shown_ = false;
};

// "12 MiB", "3.4 GiB": for people, rounded to two digits or so.
std::string show_bytes(std::uint64_t bytes);

}  // namespace berth::app
