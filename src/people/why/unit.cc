#include "people/why/unit.h"

#include <algorithm>
#include <map>
#include <set>

#include "kinds/kind_table.h"
#include "people/why/makers.h"
#include "text/escape.h"
#include "text/nearest.h"
#include "text/path.h"

namespace berth::people {

namespace {

using model::PodSpec;

std::string qualified_name(const PodSpec& pod) { return pod.ns + '/' + pod.name; }

// Of "Job/train" and "Job.batch.volcano.sh/train" (kinds::Owner::text).
std::string_view owner_name(std::string_view owner) { return owner.substr(owner.find('/') + 1); }
std::string_view owner_kind(std::string_view owner) {
  return owner.substr(0, owner.find_first_of("./"));
}

std::string lower(std::string_view text) {
  std::string out(text);
  for (char& c : out) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  return out;
}

bool is_own_kind(std::string_view kind) {
  return kind.empty() || kind == "pod" || kind == "job" || kind == "workload" || kind == "podgroup";
}

// Whether what makes the pods belongs to what people know by the name: a Deployment's are made by
// a ReplicaSet, a JobSet's and a CronJob's by Jobs, a RayJob's by a RayCluster.
bool made_for(std::string_view asked, std::string_view name, std::string_view owner) {
  if (lower(owner_kind(owner)) == asked && owner_name(owner) == name) return true;
  // The leaders' set has the name of the whole.
  if (asked == "leaderworkerset" && owner_kind(owner) == "StatefulSet" &&
      owner_name(owner) == name) {
    return true;
  }
  const std::string_view made = owner_name(owner);
  const bool named_after =
      made.size() > name.size() + 1 && made.starts_with(name) && made[name.size()] == '-';
  const auto table = kinds::kind_table();
  return named_after && std::any_of(table.begin(), table.end(), [&](const kinds::KindRow& row) {
           return row.maker != nullptr && (asked.empty() || lower(row.kind) == asked) &&
                  row.maker->makes != "Pod" && row.maker->makes == owner_kind(owner);
         });
}

class UnitFinder {
 public:
  UnitFinder(const kinds::Inputs& inputs, const ObjectSource* source, const Subject& subject)
      : inputs_(inputs), source_(source), subject_(subject) {}

  Result<Unit> run() {
    const std::string& kind = subject_.kind;
    if (kind.empty() || kind == "job") find_owned("Job");
    if (kind.empty() || kind == "workload" || kind == "podgroup") find_queued();
    if (kind.empty() || kind == "podgroup" || kind == "workload") find_gangs();
    if (kind.empty() || kind == "pod") find_pods();
    if (units_.empty() && (kind.empty() || kind == "workload")) find_any_owner();
    if (units_.empty() && !is_own_kind(kind)) find_made_for();
    if (units_.empty()) find_others();
    if (units_.empty() && kind.empty()) find_made_for();
    keep_one_of_many();
    if (units_.size() == 1) return std::move(units_.begin()->second);
    if (units_.empty()) return not_found();
    std::string list;
    for (const auto& [key, unit] : units_) {
      list += (list.empty() ? " " : ", ") + unit.kind + ' ' + unit.full();
    }
    return Error(Code::kInvalid,
                 text::terminal_safe(subject_.name) +
                     " is the name of several things, say which:" + text::terminal_safe(list));
  }

 private:
  bool named(std::string_view ns, std::string_view name) const {
    return name == subject_.name && (subject_.ns.empty() || ns == subject_.ns);
  }

  Error not_found() const {
    const std::string what = subject_.kind.empty() ? "nothing" : "no " + subject_.kind;
    const std::string where = subject_.ns.empty() ? "" : " in namespace " + subject_.ns;
    return {Code::kNotFound,
            what + " named " + text::terminal_safe(subject_.name) + text::terminal_safe(where)};
  }

  // One unit per thing that is decided, however often it is found.
  Unit* open(const std::string& key) {
    const auto [it, fresh] = units_.try_emplace(key);
    return fresh ? &it->second : nullptr;
  }

  void find_owned(std::string_view kind) {
    // Kubernetes' own first: of another group where there is none.
    const std::string own = std::string(kind) + '/' + subject_.name;
    const std::size_t before = units_.size();
    for (const bool any_group : {false, true}) {
      const auto is = [&](const std::string& ns, const std::string& owner) {
        const bool same = any_group
                              ? owner_kind(owner) == kind && owner_name(owner) == subject_.name
                              : owner == own;
        return same && named(ns, subject_.name);
      };
      for (const PodSpec& pod : inputs_.pods) {
        if (is(pod.ns, pod.owner)) take_pod(pod, kind, "");
      }
      for (const model::WorkloadSpec& spec : inputs_.queues.workloads) {
        if (is(spec.ns, spec.owner)) take_queued(spec, kind);
      }
      if (units_.size() > before) return;
    }
  }

  void find_any_owner() {
    for (const PodSpec& pod : inputs_.pods) {
      if (pod.owner.empty() || !named(pod.ns, owner_name(pod.owner))) continue;
      take_pod(pod, owner_kind(pod.owner), "");
    }
    for (const model::WorkloadSpec& spec : inputs_.queues.workloads) {
      if (spec.owner.empty() || !named(spec.ns, owner_name(spec.owner))) continue;
      take_queued(spec, owner_kind(spec.owner));
    }
  }

  void find_made_for() {
    for (const PodSpec& pod : inputs_.pods) {
      const bool here = subject_.ns.empty() || pod.ns == subject_.ns;
      if (!here || pod.owner.empty()) continue;
      if (!made_for(subject_.kind, subject_.name, pod.owner)) continue;
      for_maker_ = true;
      take_pod(pod, owner_kind(pod.owner), "");
      for_maker_ = false;
    }
    if (!units_.empty()) return;
    // What a queue holds has no pods yet.
    for (const model::WorkloadSpec& spec : inputs_.queues.workloads) {
      const bool here = subject_.ns.empty() || spec.ns == subject_.ns;
      const bool owned = here && !spec.owner.empty() && !subject_.kind.empty();
      if (owned && made_for(subject_.kind, subject_.name, spec.owner)) {
        take_queued(spec, owner_kind(spec.owner));
      }
    }
  }

  // The pods of a Deployment wait in their queue one by one: the last of them waits longest.
  void keep_one_of_many() {
    const bool many =
        units_.size() > 1 && !is_own_kind(subject_.kind) &&
        std::all_of(units_.begin(), units_.end(), [](const auto& each) {
          return each.second.queued != nullptr && each.second.queued->owner.starts_with("Pod/");
        });
    if (many) units_.erase(units_.begin(), std::prev(units_.end()));
  }

  // Of the same maker: a Deployment that is rolled out has pods of two ReplicaSets.
  bool same_maker(const PodSpec& pod, const PodSpec& each) const {
    if (each.ns != pod.ns || !each.gang.empty() || each.queued) return false;
    if (each.owner == pod.owner) return true;
    return for_maker_ && !each.owner.empty() && owner_kind(each.owner) == owner_kind(pod.owner) &&
           made_for(subject_.kind, subject_.name, each.owner);
  }

  void find_queued() {
    for (const model::WorkloadSpec& spec : inputs_.queues.workloads) {
      if (named(spec.ns, spec.name)) take_queued(spec, "Workload");
    }
  }

  void find_gangs() {
    for (const model::GangSpec& gang : inputs_.gangs) {
      if (named(gang.ns, gang.name)) take_gang(gang, "PodGroup");
    }
  }

  void find_pods() {
    for (const PodSpec& pod : inputs_.pods) {
      if (named(pod.ns, pod.name)) take_pod(pod, "Pod", qualified_name(pod));
    }
  }

  void take_pod(const PodSpec& pod, std::string_view kind, const std::string& asked) {
    const std::string name = qualified_name(pod);
    if (pod.queued) {
      for (const model::WorkloadSpec& spec : inputs_.queues.workloads) {
        for (const model::PodSetSpec& set : spec.pod_sets) {
          if (!std::binary_search(set.pods.begin(), set.pods.end(), name)) continue;
          return take_queued(spec, kind, asked);
        }
      }
    }
    for (const model::WorkloadSpec& spec : inputs_.queues.workloads) {
      if (!spec.owner.empty() && spec.ns == pod.ns && spec.owner == pod.owner) {
        return take_queued(spec, kind, asked);
      }
    }
    for (const model::GangSpec& gang : inputs_.gangs) {
      if (!pod.gang.empty() && gang.ns == pod.ns && gang.name == pod.gang) {
        return take_gang(gang, kind, asked);
      }
    }
    const std::string maker =
        for_maker_ ? std::string(owner_kind(pod.owner)) + " for " + subject_.name : pod.owner;
    Unit* unit = open(pod.owner.empty() ? "pod " + name : "owner " + pod.ns + ' ' + maker);
    if (unit == nullptr) return;
    unit->kind = kind;
    unit->ns = pod.ns;
    unit->name = subject_.name;
    unit->asked_pod = asked;
    for (const PodSpec& each : inputs_.pods) {
      const bool same = pod.owner.empty() ? &each == &pod : same_maker(pod, each);
      if (same) (each.node_name.empty() ? unit->pending : unit->running).push_back(&each);
    }
    if (!asked.empty() && !pod.node_name.empty()) {  // this one runs, whatever the others do
      unit->pending.clear();
      unit->running = {&pod};
    }
    settle(*unit);
  }

  void take_gang(const model::GangSpec& gang, std::string_view kind,
                 const std::string& asked = "") {
    const std::string name = gang.ns + '/' + gang.name;
    Unit* unit = open("gang " + name);
    if (unit == nullptr) return;
    unit->form = Unit::Form::kGang;
    unit->kind = kind;
    unit->ns = gang.ns;
    unit->name = subject_.name;
    unit->decided = name;
    unit->gang = &gang;
    unit->asked_pod = asked;
    for (const PodSpec& pod : inputs_.pods) {
      if (pod.ns != gang.ns || pod.gang != gang.name) continue;
      (pod.node_name.empty() ? unit->pending : unit->running).push_back(&pod);
    }
    settle(*unit);
  }

  void take_queued(const model::WorkloadSpec& spec, std::string_view kind,
                   const std::string& asked = "") {
    const std::string name = spec.ns + '/' + spec.name;
    Unit* unit = open("queued " + name);
    if (unit == nullptr) return;
    unit->form = Unit::Form::kQueued;
    unit->kind = kind;
    unit->ns = spec.ns;
    unit->name = subject_.name;
    unit->decided = name;
    unit->queued = &spec;
    unit->asked_pod = asked;
    std::map<std::string_view, bool> members;
    for (const model::PodSetSpec& set : spec.pod_sets) {
      for (const std::string& pod : set.pods) members.emplace(pod, true);
    }
    for (const PodSpec& pod : inputs_.pods) {
      const bool member = members.contains(qualified_name(pod)) ||
                          (!spec.owner.empty() && pod.ns == spec.ns && pod.owner == spec.owner) ||
                          is_made_for(spec, pod);
      if (member) (pod.node_name.empty() ? unit->pending : unit->running).push_back(&pod);
    }
    if (decided_by_pod(*unit)) return as_pods(*unit);
    settle(*unit);
    if (spec.admitted && unit->pending.empty() && !unit->running.empty()) {
      unit->state = Unit::State::kRunning;
    } else {
      unit->state = Unit::State::kPending;
    }
  }

  // The Jobs of a JobSet own its pods, the JobSet its workload.
  static bool is_made_for(const model::WorkloadSpec& spec, const PodSpec& pod) {
    if (!spec.admitted || pod.ns != spec.ns || spec.owner.empty()) return false;
    const std::vector<std::string> makers = kinds::makers_named_by(pod.labels);
    return std::find(makers.begin(), makers.end(), spec.owner) != makers.end();
  }

  // The queue has done its part, and the pods that it let go are placed one by one.
  static bool decided_by_pod(const Unit& unit) {
    return unit.queued->admitted && !unit.pending.empty() &&
           std::none_of(unit.pending.begin(), unit.pending.end(),
                        [](const PodSpec* pod) { return pod->queued; });
  }

  void as_pods(Unit& unit) {
    unit.form = Unit::Form::kPods;
    unit.decided.clear();
    unit.queued = nullptr;
    for (const PodSpec* pod : unit.running) {
      if (qualified_name(*pod) != unit.asked_pod) continue;
      unit.pending.clear();
      unit.running = {pod};
      break;
    }
    settle(unit);
  }

  void settle(Unit& unit) {
    if (unit.pending.empty() && !unit.running.empty()) unit.state = Unit::State::kRunning;
    // Nobody places what is being deleted.
    const bool leaves =
        !unit.pending.empty() && std::all_of(unit.pending.begin(), unit.pending.end(),
                                             [](const PodSpec* pod) { return pod->terminating; });
    if (leaves && unit.running.empty()) unit.state = Unit::State::kEnded;
    add_objects(unit);
    if (unit.state == Unit::State::kRunning) look_for_refusal(unit);
  }

  // The subject's own object, then those that describe its pods.
  void add_objects(Unit& unit) {
    if (source_ == nullptr) return;
    if (auto own = source_->find(unit.kind, unit.ns, unit.name)) unit.objects.push_back(*own);
    const std::string owner = unit.queued != nullptr     ? unit.queued->owner
                              : unit.sample() != nullptr ? unit.sample()->owner
                                                         : "";
    const bool job = owner_kind(owner) == "Job";
    bool described = false;
    if (job) {
      if (auto raw = source_->find("Job", unit.ns, owner_name(owner))) {
        described = add_job(unit, *raw);
      }
    }
    if (unit.queued != nullptr && !described) {
      if (auto raw = source_->find("Workload", unit.ns, unit.queued->name)) {
        for (std::size_t i = 0; i < unit.queued->pod_sets.size(); ++i) {
          unit.places.push_back({"Workload",
                                 unit.ns,
                                 raw->name,
                                 {"spec", "podSets", std::to_string(i), "template"},
                                 i});
        }
        described = true;
      } else if (auto other = source_->find("Job", unit.ns, unit.queued->name)) {
        described = add_job(unit, *other);
      }
    }
    if (described) return;
    if (unit.pending.empty() && unit.asked_pod.empty()) return add_maker(unit);
    for (const PodSpec* pod : unit.pending) {
      if (source_->find("Pod", pod->ns, pod->name)) {
        unit.places.push_back({"Pod", pod->ns, pod->name, {}, set_of(unit, *pod)});
      }
    }
  }

  // All of its pods run; it may have more to make, and the API server refuses them.
  void add_maker(Unit& unit) const {
    for (const char* kind : {"Deployment", "ReplicaSet", "StatefulSet"}) {
      if (!subject_.kind.empty() && subject_.kind != lower(kind)) continue;
      const auto raw = source_->find(kind, unit.ns, unit.name);
      if (!raw || find(*raw->value, "spec.template.spec") == nullptr) continue;
      unit.places.push_back({kind, raw->ns, raw->name, {"spec", "template"}, 0});
      return;
    }
  }

  static std::size_t set_of(const Unit& unit, const PodSpec& pod) {
    if (unit.queued == nullptr) return 0;
    const auto& sets = unit.queued->pod_sets;
    const std::string name = qualified_name(pod);
    for (std::size_t i = 0; i < sets.size(); ++i) {
      if (std::binary_search(sets[i].pods.begin(), sets[i].pods.end(), name)) return i;
    }
    return 0;
  }

  bool add_job(Unit& unit, const RawObject& raw) {
    const bool known = std::any_of(unit.objects.begin(), unit.objects.end(),
                                   [&](const RawObject& o) { return o.value == raw.value; });
    if (!known) unit.objects.push_back(raw);
    if (const text::Value* tasks = find(*raw.value, "spec.tasks")) {  // Volcano's
      for (std::size_t i = 0; i < tasks->size(); ++i) {
        unit.places.push_back(
            {"Job", raw.ns, raw.name, {"spec", "tasks", std::to_string(i), "template"}, i});
      }
      return tasks->size() > 0;
    }
    unit.places.push_back({"Job", raw.ns, raw.name, {"spec", "template"}, 0});
    return true;
  }

  // Bound, and the kubelet refused it or does not start it.
  void look_for_refusal(Unit& unit) const {
    if (source_ == nullptr) return;
    for (const PodSpec* pod : unit.running) {
      const auto raw = source_->find("Pod", pod->ns, pod->name);
      const text::Value* phase = raw ? find(*raw->value, "status.phase") : nullptr;
      if (phase == nullptr) continue;
      const text::Value* started = find(*raw->value, "status.containerStatuses");
      const bool begins = phase->string() == "Pending" && started != nullptr && started->size() > 0;
      const bool fails = phase->string() == "Running" && backs_off(started);
      if (!begins && !fails) continue;  // on its way, or well
      unit.state = Unit::State::kRefused;
      if (unit.objects.empty() || unit.objects.front().kind != "Pod") unit.objects.push_back(*raw);
      return;
    }
  }

  static bool backs_off(const text::Value* statuses) {
    if (statuses == nullptr) return false;
    const auto items = statuses->items();
    return std::any_of(items.begin(), items.end(), [](const text::Value& each) {
      const text::Value* reason = find(each, "state.waiting.reason");
      return reason != nullptr && reason->string().ends_with("BackOff");
    });
  }

  // Things that are not in the model: refused, ended or suspended objects.
  void find_others() {
    constexpr std::pair<const char*, const char*> kKinds[] = {
        {"pod", "Pod"}, {"job", "Job"}, {"workload", "Workload"}, {"podgroup", "PodGroup"}};
    for (const auto& [asked, kind] : kKinds) {
      if (!subject_.kind.empty() && subject_.kind != asked) continue;
      find_invalid(kind);
      if (source_ == nullptr || !units_.empty()) continue;
      for (const RawObject& raw : source_->of_kind(kind)) {
        if (named(raw.ns, raw.name)) take_raw(raw);
      }
    }
    if (source_ == nullptr || !units_.empty()) return;
    for (const kinds::KindRow& row : kinds::kind_table()) {
      if (row.maker == nullptr || row.kind == "Job") continue;
      if (!subject_.kind.empty() && subject_.kind != lower(row.kind)) continue;
      for (const RawObject& raw : source_->of_kind(row.kind)) {
        if (named(raw.ns, raw.name)) take_maker(raw);
      }
    }
  }

  static Unit unit_of(const RawObject& raw, Unit::State state) {
    Unit unit;
    unit.kind = raw.kind;
    unit.ns = raw.ns;
    unit.name = raw.name;
    unit.objects.push_back(raw);
    unit.state = state;
    return unit;
  }

  // A Deployment that was paused before it made its first ReplicaSet.
  bool is_paused(const RawObject& raw) const {
    const text::Value* paused = find(*raw.value, "spec.paused");
    if (raw.kind != "Deployment" || paused == nullptr || !paused->as_bool()) return false;
    const std::vector<RawObject> sets = source_->of_kind("ReplicaSet");
    return std::none_of(sets.begin(), sets.end(), [&](const RawObject& set) {
      return set.ns == raw.ns && set.name.starts_with(raw.name + '-');
    });
  }

  // It has made no pods: on purpose, or somebody keeps it from it.
  void take_maker(const RawObject& raw) {
    Unit unit = unit_of(raw, Unit::State::kUnmade);
    const std::string rests = queue_of(*source_, raw).empty() ? held_by_field(raw) : "";
    const text::Value* replicas = find(*raw.value, "spec.replicas");
    if (!rests.empty()) {
      unit.state = Unit::State::kSuspended;
      unit.told = rests + " is true, so it has no pods";
    } else if (replicas != nullptr && replicas->as_int64() == 0) {
      unit.state = Unit::State::kSuspended;
      unit.told = "spec.replicas is 0, so it has no pods";
    } else if (is_paused(raw)) {
      unit.state = Unit::State::kSuspended;
      unit.told = "spec.paused is true, and it has rolled out nothing yet, so it has no pods";
    }
    unit.places = places_of(raw);
    units_.emplace(raw.kind + ' ' + unit.full(), std::move(unit));
  }

  void find_invalid(std::string_view kind) {
    for (const kinds::Note& note : inputs_.invalid) {
      const std::size_t blank = note.object.find(' ');
      if (blank == std::string::npos || note.object.substr(0, blank) != kind) continue;
      const std::string_view full = std::string_view(note.object).substr(blank + 1);
      const std::size_t slash = full.find('/');
      const std::string_view ns = slash == std::string_view::npos ? "" : full.substr(0, slash);
      const std::string_view name = slash == std::string_view::npos ? full : full.substr(slash + 1);
      if (!named(ns, name)) continue;
      Unit& unit = units_[note.object];
      unit.state = Unit::State::kInvalid;
      unit.kind = kind;
      unit.ns = ns;
      unit.name = name;
      unit.complaints.push_back(&note);
      if (unit.objects.empty() && source_ != nullptr) {
        if (auto raw = source_->find(kind, ns, name)) unit.objects.push_back(*raw);
      }
    }
  }

  void take_raw(const RawObject& raw) {
    Unit unit = unit_of(raw, Unit::State::kEnded);
    if (raw.kind == "Job") settle_job(raw, unit);
    if (raw.kind == "Pod") {
      const text::Value* phase = find(*raw.value, "status.phase");
      const text::Value* reason = find(*raw.value, "status.reason");
      const bool failed = phase != nullptr && phase->string() == "Failed";
      if (failed && reason != nullptr && is_refusal(reason->string())) {
        unit.state = Unit::State::kRefused;
      } else if (failed) {
        unit.told = failure_of(find(*raw.value, "status"));
      }
    }
    units_.emplace(raw.kind + ' ' + unit.full(), std::move(unit));
  }

  // A Job without pods: it has ended, it rests, or nobody has made them yet.
  void settle_job(const RawObject& raw, Unit& unit) {
    if (const text::Value* end = end_of(*raw.value)) {
      if (end->find("type")->string() == "Failed") unit.told = failure_of(end);
      return;
    }
    const text::Value* suspend = find(*raw.value, "spec.suspend");
    const text::Value* parallelism = find(*raw.value, "spec.parallelism");
    const text::Value* completions = find(*raw.value, "spec.completions");
    if (completions != nullptr && completions->as_int64() == 0) {
      unit.told = "has nothing to do: spec.completions is 0";
      return;
    }
    const text::Value* succeeded = find(*raw.value, "status.succeeded");
    const bool none_yet = succeeded == nullptr || succeeded->as_int64().value_or(0) == 0;
    if (suspend != nullptr && suspend->as_bool()) {
      unit.state = Unit::State::kSuspended;
      unit.told = "spec.suspend is true, so it has no pods";
    } else if (parallelism != nullptr && parallelism->as_int64() == 0) {
      unit.state = Unit::State::kSuspended;
      unit.told = "spec.parallelism is 0, so it has no pods";
    } else if (none_yet) {
      unit.state = Unit::State::kUnmade;
    } else {
      return;
    }
    add_job(unit, raw);
  }

  // The condition by which a Job has ended, or null.
  static const text::Value* end_of(const text::Value& job) {
    const text::Value* conditions = find(job, "status.conditions");
    if (conditions == nullptr) return nullptr;
    for (const text::Value& each : conditions->items()) {
      const text::Value* type = each.find("type");
      const text::Value* status = each.find("status");
      const bool ended = type != nullptr && status != nullptr && status->string() == "True" &&
                         (type->string() == "Complete" || type->string() == "Failed");
      if (ended) return &each;
    }
    return nullptr;
  }

  // "has failed: Evicted: low on memory".
  static std::string failure_of(const text::Value* said) {
    std::string out = "has failed";
    for (const char* key : {"reason", "message"}) {
      const text::Value* text = said == nullptr ? nullptr : said->find(key);
      if (text != nullptr && !text->string().empty()) out += ": " + std::string(text->string());
    }
    return out;
  }

  // What a kubelet writes when it does not admit a pod.
  static bool is_refusal(std::string_view reason) {
    return reason == "UnexpectedAdmissionError" || reason == "TopologyAffinityError" ||
           reason == "NodeAffinity" || reason == "AdmissionError" || reason.starts_with("OutOf");
  }

  const kinds::Inputs& inputs_;
  const ObjectSource* source_;
  const Subject& subject_;
  bool for_maker_ = false;  // pods are taken for what made their owners
  std::map<std::string, Unit> units_;
};

}  // namespace

std::set<std::string> Unit::pending_names() const {
  std::set<std::string> names;
  for (const PodSpec* pod : pending) names.insert(qualified_name(*pod));
  return names;
}

const model::PodSpec* Unit::sample() const {
  for (const PodSpec* pod : pending) {
    if (asked_pod.empty() || qualified_name(*pod) == asked_pod) return pod;
  }
  if (!pending.empty()) return pending.front();
  if (queued != nullptr && !queued->pod_sets.empty()) return queued->pod_sets.front().pod.get();
  return running.empty() ? nullptr : running.front();
}

Result<Unit> find_unit(const kinds::Inputs& inputs, const ObjectSource* source,
                       const Subject& subject) {
  Result<Unit> found = UnitFinder(inputs, source, subject).run();
  if (found.ok() || subject.kind.empty() || found.error().code() != Code::kNotFound) return found;
  const Result<Unit> other = UnitFinder(inputs, source, {"", subject.ns, subject.name}).run();
  if (!other.ok()) return found;
  return Error(Code::kNotFound,
               found.error().message() + "; there is a " +
                   text::terminal_safe(other->kind + ' ' + other->ns + '/' + other->name));
}

std::string meant_name(const kinds::Inputs& inputs, const Subject& subject) {
  std::set<std::string> here, elsewhere;
  const auto add = [&](std::string_view ns, std::string_view name) {
    if (here.size() + elsewhere.size() > 20'000) return;
    const bool there = !subject.ns.empty() && ns != subject.ns;
    if (!there) here.insert(std::string(name));
    if (there && name == subject.name) {
      elsewhere.insert(std::string(ns) + '/' + std::string(name));
    }
  };
  const std::string& kind = subject.kind;
  const bool any = kind.empty();
  for (const PodSpec& pod : inputs.pods) {
    if (any || kind == "pod") add(pod.ns, pod.name);
    if (pod.owner.empty()) continue;
    const bool of_kind = kind == "job" ? owner_kind(pod.owner) == "Job" : !is_own_kind(kind);
    if (any || of_kind) add(pod.ns, owner_name(pod.owner));
  }
  for (const model::WorkloadSpec& spec : inputs.queues.workloads) {
    if (any || kind == "workload") add(spec.ns, spec.name);
    if ((any || kind == "job") && spec.owner.starts_with("Job/")) {
      add(spec.ns, owner_name(spec.owner));
    }
  }
  for (const model::GangSpec& gang : inputs.gangs) {
    if (any || kind == "podgroup") add(gang.ns, gang.name);
  }
  if (!elsewhere.empty()) return *elsewhere.begin();
  const std::string near = text::nearest(subject.name, {here.begin(), here.end()});
  return near.empty() || subject.ns.empty() ? near : subject.ns + '/' + near;
}

}  // namespace berth::people
