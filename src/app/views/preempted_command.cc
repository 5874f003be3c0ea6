#include "app/views/preempted_command.h"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

#include "app/views/doctor.h"
#include "kinds/readers.h"
#include "text/escape.h"
#include "text/json_writer.h"
#include "text/path.h"
#include "text/rfc3339.h"

namespace berth::app {

namespace {

struct Record {
  std::int64_t at_ns = 0;  // 0: not known
  std::string kind, ns, name, owner, reason, by, message;
};

std::string owner_of(const text::Value& object) {
  const text::Value* owners = find(object, "metadata.ownerReferences");
  if (owners == nullptr) return "";
  for (const text::Value& owner : owners->items()) {
    return std::string(text_at(owner, "kind")) + '/' + std::string(text_at(owner, "name"));
  }
  return "";
}

class Records {
 public:
  explicit Records(const ClusterView& view) : view_(view) {
    for (const char* kind : {"Workload", "Job", "Pod"}) {
      for (const ObjectFacts& object : view.of_kind(kind)) {
        if (!object.uid.empty()) by_uid_.emplace(object.uid, object.ns + '/' + object.name);
      }
    }
  }

  std::vector<Record> find() {
    for (const ObjectFacts& object : view_.of_kind("Workload")) of_workload(object);
    for (const ObjectFacts& object : view_.of_kind("Pod")) of_pod(object);
    for (const ObjectFacts& object : view_.of_kind("Event")) of_event(object);
    std::sort(records_.begin(), records_.end(), [](const Record& a, const Record& b) {
      return std::tie(b.at_ns, a.ns, a.name, a.kind, a.message) <
             std::tie(a.at_ns, b.ns, b.name, b.kind, b.message);
    });
    return std::move(records_);
  }

 private:
  // "... (UID: 1234, JobUID: 5678) ..." or "... for ns/name ...".
  std::string by_whom(const std::string& message) const {
    for (const std::string_view mark : {"JobUID: ", "UID: "}) {
      const std::size_t at = message.find(mark);
      if (at == std::string::npos) continue;
      const std::size_t from = at + mark.size();
      const std::string uid = message.substr(from, message.find_first_of(",);", from) - from);
      if (const auto it = by_uid_.find(uid); it != by_uid_.end()) return it->second;
    }
    for (const std::string_view mark : {"accommodate ", "preempted by ", "room for ", " for "}) {
      const std::size_t at = message.find(mark);
      if (at == std::string::npos) continue;
      const std::size_t from = at + mark.size();
      std::string word = message.substr(from, message.find_first_of(" ,;:", from) - from);
      if (word.find('/') != std::string::npos) return word;
    }
    return "";
  }

  void add(Record record) {
    const std::string key =
        record.kind + ' ' + record.ns + '/' + record.name + ' ' + record.message;
    if (!known_.insert(key).second) return;
    record.by = by_whom(record.message);
    records_.push_back(std::move(record));
  }

  void of_workload(const ObjectFacts& object) {
    const text::Value* preempted = find_type(at(*object.value, "status.conditions"), "Preempted");
    const text::Value* evicted = find_type(at(*object.value, "status.conditions"), "Evicted");
    // Of a workload that came back the conditions are False and say what was.
    const auto counts = [](const text::Value* condition) {
      return condition != nullptr && (text_at(*condition, "status") == "True" ||
                                      text_at(*condition, "message").starts_with("Previously: "));
    };
    const text::Value* of = counts(preempted) ? preempted : counts(evicted) ? evicted : nullptr;
    if (of == nullptr) return;
    std::string message(text_at(*of, "message"));
    if (message.starts_with("Previously: ")) message = message.substr(12);
    add({time_at(*of, "lastTransitionTime"), "Workload", object.ns, object.name,
         owner_of(*object.value), std::string(text_at(*of, "reason")), "", std::move(message)});
  }

  void of_pod(const ObjectFacts& object) {
    const text::Value* target =
        find_type(at(*object.value, "status.conditions"), "DisruptionTarget");
    if (target == nullptr || text_at(*target, "status") != "True") return;
    add({time_at(*target, "lastTransitionTime"), "Pod", object.ns, object.name,
         owner_of(*object.value), std::string(text_at(*target, "reason")), "",
         std::string(text_at(*target, "message"))});
  }

  void of_event(const ObjectFacts& event) {
    const text::Value& v = *event.value;
    const std::string reason(text_at(v, "reason"));
    if (reason != "Preempted" && reason != "Evicted" && !reason.starts_with("EvictedDueTo")) return;
    const bool fresh = v.find("regarding") != nullptr;
    const std::string_view about = fresh ? "regarding" : "involvedObject";
    std::int64_t at = 0;
    for (const text::Path& stamp : std::initializer_list<text::Path>{
             "series.lastObservedTime", "eventTime", "deprecatedLastTimestamp", "lastTimestamp",
             "metadata.creationTimestamp"}) {
      if (at == 0) at = time_at(v, stamp);
    }
    const std::string kind(text_at(v[about], "kind"));
    const std::string ns(text_at(v[about], "namespace"));
    const std::string name(text_at(v[about], "name"));
    const ObjectFacts* object = view_.find(kind, ns, name);
    add({at, kind, ns, name, object == nullptr ? "" : owner_of(*object->value), reason, "",
         std::string(v[fresh ? "note" : "message"].string())});
  }

  const ClusterView& view_;
  std::map<std::string, std::string> by_uid_;  // to "ns/name"
  std::set<std::string> known_;
  std::vector<Record> records_;
};

// Its own name, its owner's, or a pod of that Job.
bool is_of(const Record& record, std::string_view name) {
  const std::size_t slash = record.owner.find('/');
  const std::string_view owner = slash == std::string::npos
                                     ? std::string_view{}
                                     : std::string_view(record.owner).substr(slash + 1);
  if (record.name == name || owner == name) return true;
  return record.name.starts_with(std::string(name) + '-') ||
         record.name.starts_with("job-" + std::string(name) + '-');
}

Sheet preempted_sheet(const std::vector<Record>& records, std::int64_t now_ns) {
  Sheet sheet{{{"AGO", true},
               {"KIND"},
               {"WHO", false, true, 14},
               {"WHY", false, true, 14},
               {"FOR WHOM", false, true, 12}},
              {}};
  for (const Record& r : records) {
    sheet.rows.push_back({r.at_ns == 0 ? "" : show_age(now_ns - r.at_ns), r.kind,
                          r.ns + '/' + r.name, r.reason, r.by});
  }
  return sheet;
}

std::string preempted_text(const std::vector<Record>& records, const ClusterView& view,
                           const std::string& asked) {
  if (records.empty()) {
    return wrapped((asked.empty() ? "nothing" : "nothing named " + text::terminal_safe(asked)) +
                       " was preempted, as far as the cluster still knows",
                   2) +
           '\n';
  }
  constexpr std::size_t kMost = 50;
  std::string out = table_text(preempted_sheet(records, view.now_ns), kMost);
  const Record& last = records.front();
  return out + '\n' + wrapped(last.ns + '/' + last.name + ": " + last.message, 2) + '\n';
}

std::string preempted_json(const std::vector<Record>& records) {
  text::JsonWriter out({.indent = 2});
  out.object([&] {
    out.field("version", "berth.dev/preempted/v1");
    out.array("preempted", [&] {
      for (const Record& r : records) {
        out.object([&] {
          out.key("at");
          if (r.at_ns == 0) {
            out.null();
          } else {
            out.value(text::format_rfc3339(r.at_ns));
          }
          out.field("kind", r.kind);
          out.field("namespace", r.ns);
          out.field("name", r.name);
          out.field("owner", r.owner);
          out.field("reason", r.reason);
          out.field("by", r.by);
          out.field("message", r.message);
        });
      }
    });
  });
  return std::move(out).take();
}

Sheet preempted_csv(const std::vector<Record>& records) {
  Sheet sheet{
      {{"AT"}, {"KIND"}, {"NAMESPACE"}, {"NAME"}, {"OWNER"}, {"REASON"}, {"BY"}, {"MESSAGE"}}, {}};
  for (const Record& r : records) {
    sheet.rows.push_back({r.at_ns == 0 ? "" : text::format_rfc3339(r.at_ns), r.kind, r.ns, r.name,
                          r.owner, r.reason, r.by, r.message});
  }
  return sheet;
}

}  // namespace

int preempted_command(const PreemptedArguments& arguments, Terminal& terminal) {
  return show_view(
      arguments.show, terminal,
      [&](const ClusterView& view, const ViewStyle& style) -> Result<Screen> {
        std::vector<Record> records = Records(view).find();
        std::string ns, name = arguments.name;
        if (const std::size_t slash = name.find('/'); slash != std::string::npos) {
          ns = name.substr(0, slash);
          name = name.substr(slash + 1);
        }
        std::erase_if(records, [&](const Record& r) {
          const bool here = ns.empty() ? in_sight(arguments.show.view, view, r.ns) : r.ns == ns;
          return !here || (!name.empty() && !is_of(r, name));
        });
        return render(
            style, 0, [&] { return preempted_text(records, view, arguments.name); },
            [&] { return preempted_json(records); }, [&] { return preempted_csv(records); });
      });
}

}  // namespace berth::app
