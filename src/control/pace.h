// How many writes that are only for people a server gets: a bucket of tokens that fills at a
// rate, and more slowly while the server is slow to answer, so that what people are told never
// takes much of what bindings and admissions need. Private to this folder.
#pragma once

#include <cstdint>

namespace berth::control {

class Pace {
 public:
  // So many a second, and as many as `most` at once after a pause.
  constexpr Pace(std::int64_t per_second, std::int64_t most)
      : per_second_(per_second), most_(most), have_(most * 1000) {}

  // Whether one may be sent now. answer_ns: how long the server takes to answer a write; with it
  // at most a fifth of the time is spent on what this pace lets through. At least one a second.
  bool take(std::int64_t now_ns, std::int64_t answer_ns);

 private:
  std::int64_t per_second_, most_;
  std::int64_t have_;  // thousandths
  std::int64_t at_ = 0;
};

}  // namespace berth::control
