// What to do about our own mistakes. Never for input: input is wrong with a Result.
//
//   BERTH_ASSERT(cond, "why")  The program cannot go on when cond is false. Aborts with file:line
//   in
//                              every build; cond is always evaluated, so keep it cheap.
//   BERTH_BUG("why")           Reached only by a mistake that the caller survives: the next
//   statement
//                              must be the safe way out. Aborts, unless the program has installed a
//                              BugSink, which counts and logs it.
//
// Whether a bug is survived is decided by the program and not by a compile flag: the shipped
// commands install a sink first thing, tests never do, and so the tests of a release build are as
// strict as those of a development build.
//
// Thread-safe. Macros, because only a macro knows its caller's line and text.
#pragma once

#include <cstdint>

namespace berth {

struct BugSite {
  const char* file;
  int line;
  const char* why;
};

// Receives survived bugs, on the thread that met them; must be thread-safe and must not fail.
class BugSink {
 public:
  virtual ~BugSink() = default;
  virtual void bug(const BugSite& site) noexcept = 0;
};

// Returns the sink that was there before; nullptr means abort. The sink must outlive its use.
BugSink* set_bug_sink(BugSink* sink);

std::uint64_t bug_count();  // survived so far in this process

[[noreturn]] void assert_failed(const char* file, int line, const char* condition, const char* why);
void bug_found(const BugSite& site);

}  // namespace berth

#define BERTH_ASSERT(cond, why) \
  (static_cast<bool>(cond) ? void(0) : ::berth::assert_failed(__FILE__, __LINE__, #cond, why))
#define BERTH_BUG(why) ::berth::bug_found({__FILE__, __LINE__, why})
