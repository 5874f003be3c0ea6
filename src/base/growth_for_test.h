// How work grows with its size, for tests that must fail on a quadratic algorithm.
//
// CPU time of the thread, the least of three runs, so that a busy machine changes little. Four
// times the size is four times the work when it is linear, five at n log n, sixteen when it is
// quadratic: tests ask for less than kNotQuadratic.
#pragma once

#include <time.h>

#include <algorithm>
#include <functional>

namespace berth {

inline constexpr double kNotQuadratic = 9;

inline double thread_cpu_seconds() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) / 1e9;
}

// make(n) prepares and gives what is measured. n: large enough that the work takes a millisecond.
inline double growth_of(int n, const std::function<std::function<void()>(int)>& make) {
  const auto least = [&](int size) {
    const std::function<void()> work = make(size);
    double best = 1e9;
    for (int round = 0; round < 3; ++round) {
      const double begin = thread_cpu_seconds();
      work();
      best = std::min(best, thread_cpu_seconds() - begin);
    }
    return best;
  };
  const double small = std::max(least(n), 1e-5);
  return least(4 * n) / small;
}

}  // namespace berth
