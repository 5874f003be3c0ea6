#include "base/check.h"

#include <atomic>
#include <cstdio>
#include <cstdlib>

namespace berth {
namespace {

std::atomic<BugSink*> installed_bug_sink{nullptr};
std::atomic<std::uint64_t> survived_bugs{0};

}  // namespace

BugSink* set_bug_sink(BugSink* sink) {
  return installed_bug_sink.exchange(sink, std::memory_order_acq_rel);
}

std::uint64_t bug_count() { return survived_bugs.load(std::memory_order_relaxed); }

void assert_failed(const char* file, int line, const char* condition, const char* why) {
  std::fprintf(stderr, "%s:%d: assertion failed: %s: %s\n", file, line, condition, why);
  std::abort();
}

void bug_found(const BugSite& site) {
  BugSink* sink = installed_bug_sink.load(std::memory_order_acquire);
  if (sink == nullptr) {
    std::fprintf(stderr, "%s:%d: bug: %s\n", site.file, site.line, site.why);
    std::abort();
  }
  survived_bugs.fetch_add(1, std::memory_order_relaxed);
  sink->bug(site);
}

}  // namespace berth
