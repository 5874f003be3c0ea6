#include "base/crash_point.h"

#include <charconv>
#include <csignal>
#include <string>

#include "base/mutex.h"

namespace berth {
namespace {

std::string& crash_name() {
  static std::string name;
  return name;
}
std::atomic<std::int64_t> crash_passages_left{0};
bool crash_is_bug = false;

Status set_point(std::string_view spec, bool bug) {
  std::size_t colon = spec.rfind(':');
  std::string_view name = spec.substr(0, colon);
  std::int64_t count = 1;
  if (colon != std::string_view::npos) {
    std::string_view digits = spec.substr(colon + 1);
    auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), count);
    if (error != std::errc() || end != digits.data() + digits.size() || count < 1) {
      return invalid("crash point: the count after ':' must be a number from 1");
    }
  }
  if (name.empty()) return invalid("crash point: a name is needed, as in store-before-commit:3");
  if (crash_points_active.load()) return invalid("crash point: there is one already");
  crash_name() = name;
  crash_is_bug = bug;
  crash_passages_left.store(count);
  crash_points_active.store(true);
  return {};
}

}  // namespace

Status set_crash_at(std::string_view spec) { return set_point(spec, false); }
Status set_bug_at(std::string_view spec) { return set_point(spec, true); }

void pass_crash_point(std::string_view name, const BugSite& site) {
  if (name != crash_name()) return;
  if (crash_passages_left.fetch_sub(1) != 1) return;
  if (crash_is_bug) return bug_found(site);
  // This thread stands still for a moment, so that what others say too early is heard outside.
  {
    Mutex mutex;
    CondVar nobody;
    MutexLock lock(mutex);
    nobody.wait_for(mutex, 50'000'000);
  }
  std::raise(SIGKILL);
}

}  // namespace berth
