// Named places where a test may end the process as kill -9 does, or have it meet a bug.
//
//   BERTH_CRASH_POINT("store-before-commit");
//
// Nothing happens unless the program asked for it: the shipped commands hand the environment's
// BERTH_CRASH_AT ("name" or "name:count", the count-th passage) to set_crash_at() and BERTH_BUG_AT
// to set_bug_at(), and nothing else does. Where it is to crash, the thread at the point stands
// still for 50 ms first. Thread-safe; cost when unused: one relaxed load. A macro so that the
// places can be found.
#pragma once

#include <atomic>
#include <string_view>

#include "base/check.h"
#include "base/result.h"

namespace berth {

inline std::atomic<bool> crash_points_active{false};

// One of them, at most once in a process, before threads start. Refused: an empty name, a count
// below 1.
Status set_crash_at(std::string_view spec);
Status set_bug_at(std::string_view spec);  // BERTH_BUG there
void pass_crash_point(std::string_view name, const BugSite& site);

}  // namespace berth

#define BERTH_CRASH_POINT(name)                                                       \
  (::berth::crash_points_active.load(std::memory_order_relaxed)                       \
       ? ::berth::pass_crash_point(name, {__FILE__, __LINE__, "a bug was asked for"}) \
       : void(0))
