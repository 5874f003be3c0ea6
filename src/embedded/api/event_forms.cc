#include "embedded/api/event_forms.h"

namespace berth::sim::api {

namespace {

struct Renamed {
  std::string_view core, event;
};
// Members that only change their name; all others keep it.
constexpr Renamed kRenamed[] = {
    {"message", "note"},
    {"involvedObject", "regarding"},
    {"reportingComponent", "reportingController"},
    {"source", "deprecatedSource"},
    {"firstTimestamp", "deprecatedFirstTimestamp"},
    {"lastTimestamp", "deprecatedLastTimestamp"},
    {"count", "deprecatedCount"},
};

Value rename_all(text::Editor& edit, const Value& from, bool to_core) {
  std::vector<Member> members;
  for (Member member : from.members()) {
    for (const Renamed& pair : kRenamed) {
      if (member.key == (to_core ? pair.event : pair.core)) {
        member.key = to_core ? pair.core : pair.event;
        break;
      }
    }
    members.push_back(member);
  }
  return edit.with(edit.object(members), "apiVersion",
                   edit.string(to_core ? "v1" : "events.k8s.io/v1"));
}

}  // namespace

Value event_to_core(text::Editor& edit, const Value& event) {
  return rename_all(edit, event, true);
}

Value event_from_core(text::Editor& edit, const Value& event) {
  return rename_all(edit, event, false);
}

std::string event_field_to_core(std::string_view path) {
  for (const Renamed& pair : kRenamed) {
    if (path == pair.event) return std::string(pair.core);
    if (path.starts_with(pair.event) && path[pair.event.size()] == '.') {
      return std::string(pair.core) + std::string(path.substr(pair.event.size()));
    }
  }
  return std::string(path);
}

}  // namespace berth::sim::api
