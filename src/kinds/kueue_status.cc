// Workload.status: conditions and the admission.
#include <algorithm>
#include <limits>
#include <optional>
#include <set>

#include "kinds/kueue_workload.h"

namespace berth::kinds {

namespace {

using model::AdmissionSpec;
using model::CheckState;
using model::PodSetAdmission;
using text::Decoder;
using text::Field;
using text::Value;

// ---- admission ----

struct RawAdmission {
  PodSetAdmission spec;
  std::optional<int> count;
};
void read_admitted_count(const Value& v, std::optional<int>& out, Decoder& d) {
  std::int64_t count = 0;
  if (text::decode_int(v, 0, kMaxJobPods, count, d)) out = static_cast<int>(count);
}
constexpr std::pair<std::string_view, bool> kDelayedTopology[] = {{"Pending", true},
                                                                  {"Ready", false}};
using A = RawAdmission;
template <KueueVersion Version>
inline constexpr Field<A> kPodSetAssignmentFields[] = {
    text::field<&A::count, read_admitted_count>("count"),
    text::custom<A>("delayedTopologyRequest",
                    [](const Value& v, A& out, Decoder& d) {
                      text::one_of<kDelayedTopology>(v, out.spec.topology_pending, d);
                    }),
    text::custom<A>("flavors",
                    [](const Value& v, A& out, Decoder& d) { decode(v, out.spec.flavors, d); }),
    text::custom<A>("name",
                    [](const Value& v, A& out, Decoder& d) { decode(v, out.spec.name, d); }),
    text::custom<A>("resourceUsage",
                    [](const Value& v, A& out, Decoder& d) { read_amounts(v, out.spec.usage, d); }),
    text::custom<A>("topologyAssignment",
                    [](const Value& v, A& out, Decoder& d) {
                      const std::size_t before = d.errors();
                      read_topology_assignment(v, Version, out.spec.topology, d);
                      if (d.errors() != before) out.spec.topology.reset();
                    }),
};

template <KueueVersion Version>
void read_pod_set_assignments(const Value& v, WorkloadObject& out, AdmissionSpec& admission,
                              Decoder& d) {
  if (!v.is_array()) return d.mismatch(v, "an array");
  std::map<std::string, int> counts;
  for (const auto& set : out.spec.pod_sets) counts[set.name] = set.count;
  for (std::size_t i = 0; i < v.size(); ++i) {
    const Value& item = v.items()[i];
    Decoder::Step step(d, i);
    RawAdmission raw;
    raw.spec.name = "main";
    decode_lenient(item, kPodSetAssignmentFields<Version>, raw, d);
    const auto count = counts.find(raw.spec.name);
    if (count == counts.end()) {
      d.error(item, "pod set " + quoted(raw.spec.name), "each pod set of spec.podSets, once");
      raw.spec.count = raw.count.value_or(0);
      admission.pod_sets.push_back(std::move(raw.spec));  // it is held all the same
      continue;
    }
    raw.spec.count = raw.count.value_or(count->second);
    counts.erase(count);
    std::int64_t placed = 0;
    if (raw.spec.topology) {
      for (const auto& domain : raw.spec.topology->domains) placed += domain.count;
      if (placed != raw.spec.count) {
        d.warning(item, "domains of " + std::to_string(placed) + " pods",
                  "as many as the count " + std::to_string(raw.spec.count));
      }
    }
    admission.pod_sets.push_back(std::move(raw.spec));
  }
  for (const auto& [name, count] : counts) {
    d.error(v, "nothing for pod set " + quoted(name), "each pod set of spec.podSets, once");
  }
}

// After errors: an entry for each pod set, in their order. Where the status says nothing, they hold
// what their spec says, with what comes with the other objects (KnownQueues::fill_admission). Where
// it does, no later word of the spec makes it more: a set that was renamed has the entry that no
// other set has, one that came since holds nothing, and what is left over counts with the first.
void complete_admission(const WorkloadObject& workload, AdmissionSpec& admission) {
  std::vector<PodSetAdmission> given = std::move(admission.pod_sets);
  const bool said = !given.empty();
  for (PodSetAdmission& one : given) {
    std::erase_if(one.flavors, [](const auto& entry) { return entry.second.empty(); });
  }
  const auto take = [&given](const auto& wanted) -> std::optional<PodSetAdmission> {
    const auto known = std::find_if(given.begin(), given.end(), wanted);
    if (known == given.end()) return std::nullopt;
    PodSetAdmission out = std::move(*known);
    given.erase(known);
    return out;
  };
  std::vector<std::optional<PodSetAdmission>> sets;
  for (const model::PodSetSpec& set : workload.spec.pod_sets) {
    sets.push_back(take([&set](const auto& one) { return one.name == set.name; }));
  }
  admission.pod_sets.clear();
  for (std::size_t i = 0; i < sets.size(); ++i) {
    const model::PodSetSpec& set = workload.spec.pod_sets[i];
    if (!sets[i]) sets[i] = take([](const auto&) { return true; });
    PodSetAdmission one = sets[i] ? std::move(*sets[i]) : PodSetAdmission{};
    if (one.name.empty() || !said) one.count = said ? 0 : set.count;
    one.name = set.name;
    admission.pod_sets.push_back(std::move(one));
  }
  if (admission.pod_sets.empty()) return;
  PodSetAdmission& first = admission.pod_sets.front();
  for (const PodSetAdmission& rest : given) {
    for (const auto& [resource, flavor] : rest.flavors) first.flavors.emplace(resource, flavor);
    for (const auto& [resource, amount] : rest.usage) {
      std::int64_t& sum = first.usage[resource];
      if (__builtin_add_overflow(sum, amount, &sum)) sum = std::numeric_limits<std::int64_t>::max();
    }
  }
}

template <KueueVersion Version>
void read_admission(const Value& v, WorkloadObject& out, Decoder& d) {
  AdmissionSpec admission;
  if (!v.is_object()) {
    out.spec.admission = std::move(admission);
    return d.mismatch(v, "an object");
  }
  const Value* queue = v.find("clusterQueue");
  {
    Decoder::Step step(d, "clusterQueue");
    if (queue == nullptr || queue->string().empty()) {
      d.error(queue == nullptr ? v : *queue, "nothing", "the name of a ClusterQueue");
    } else {
      admission.queue = queue->string();
    }
  }
  Decoder::Step step(d, "podSetAssignments");
  const Value* sets = v.find("podSetAssignments");
  if (sets == nullptr) {
    d.error(v, "nothing", "one entry for each pod set");
  } else {
    read_pod_set_assignments<Version>(*sets, out, admission, d);
  }
  out.spec.admission = std::move(admission);
}

// ---- the rest ----

struct NamedCount {
  std::string name;
  int count = 0;
};
constexpr Field<NamedCount> kNamedCountFields[] = {
    text::required(text::field<&NamedCount::name>("name")),
    text::required(text::field<&NamedCount::count, text::int_between<0, kMaxJobPods>>("count")),
};
constexpr auto read_named_count = object_of<kNamedCountFields>;
void read_reclaimable(const Value& v, WorkloadObject& out, Decoder& d) {
  std::vector<NamedCount> list;
  list_of<read_named_count>(v, list, d);
  for (std::size_t i = 0; i < list.size(); ++i) {
    Decoder::Step step(d, i);
    const auto& sets = out.spec.pod_sets;
    const auto set = std::find_if(sets.begin(), sets.end(),
                                  [&](const auto& s) { return s.name == list[i].name; });
    if (set == sets.end()) {
      d.error(v.items()[i], "pod set " + quoted(list[i].name), "a pod set of spec.podSets");
    } else if (list[i].count > set->count) {
      d.error(v.items()[i], std::to_string(list[i].count) + " pods",
              "at most the count " + std::to_string(set->count));
    } else {
      out.spec.reclaimable[list[i].name] = list[i].count;
    }
  }
}

constexpr std::pair<std::string_view, CheckState> kCheckStates[] = {
    {"Pending", CheckState::kAwaited},
    {"Ready", CheckState::kReady},
    {"Retry", CheckState::kRetry},
    {"Rejected", CheckState::kRejected}};
struct CheckEntry {
  std::string name;
  CheckState state = CheckState::kAwaited;
  int retry_after_s = 0;
};
constexpr Field<CheckEntry> kCheckEntryFields[] = {
    text::field<&CheckEntry::name>("name"),
    text::field<&CheckEntry::state, text::one_of<kCheckStates>>("state"),
    text::field<&CheckEntry::retry_after_s>("requeueAfterSeconds"),
};
void read_check_entry(const Value& v, CheckEntry& out, Decoder& d) {
  decode_lenient(v, kCheckEntryFields, out, d);
}
void read_check_states(const Value& v, WorkloadObject& out, Decoder& d) {
  std::vector<CheckEntry> entries;
  list_of<read_check_entry>(v, entries, d);
  for (CheckEntry& entry : entries) {
    if (entry.state == CheckState::kRetry) {
      out.spec.retry_after_s = std::max(out.spec.retry_after_s, entry.retry_after_s);
    }
    out.spec.checks[std::move(entry.name)] = entry.state;
  }
}

struct NamedEntry {
  std::string name, position;
};
constexpr Field<NamedEntry> kNamedEntryFields[] = {
    text::field<&NamedEntry::name>("name"),
    text::field<&NamedEntry::position>("position"),
};
void read_named_entry(const Value& v, NamedEntry& out, Decoder& d) {
  decode_lenient(v, kNamedEntryFields, out, d);
}
void read_unhealthy(const Value& v, WorkloadObject& out, Decoder& d) {
  std::vector<NamedEntry> nodes;
  list_of<read_named_entry>(v, nodes, d);
  for (NamedEntry& node : nodes) out.spec.unhealthy_nodes.push_back(std::move(node.name));
}
// A gate that the status does not name is closed.
void read_gate_positions(const Value& v, WorkloadObject& out, Decoder& d) {
  std::vector<NamedEntry> gates;
  list_of<read_named_entry>(v, gates, d);
  std::set<std::string> open;
  for (const NamedEntry& gate : gates) {
    if (gate.position == "Open") open.insert(gate.name);
  }
  out.spec.preemption_gated =
      std::any_of(out.preemption_gates.begin(), out.preemption_gates.end(),
                  [&open](const std::string& gate) { return !open.contains(gate); });
}

constexpr Field<WorkloadObject> kRequeueFields[] = {
    text::custom<WorkloadObject>("count",
                                 [](const Value& v, WorkloadObject& out, Decoder& d) {
                                   text::int_between<0, 2'147'483'647>(v, out.spec.requeues, d);
                                 }),
    text::custom<WorkloadObject>("requeueAt",
                                 [](const Value& v, WorkloadObject& out, Decoder& d) {
                                   text::read_time_ns(v, out.spec.requeue_at_ns, d);
                                 }),
};
void read_past_time(const Value& v, WorkloadObject& out, Decoder& d) {
  text::int_between<0, 2'147'483'647>(v, out.spec.past_execution_s, d);
}

// "Preempted to accommodate a workload (UID: u, JobUID: j) due to ...": u.
std::string uid_in(std::string_view message) {
  constexpr std::string_view kBefore = "(UID: ";
  const std::size_t at = message.find(kBefore);
  if (at == std::string_view::npos) return "";
  const std::string_view rest = message.substr(at + kBefore.size());
  return std::string(rest.substr(0, rest.find_first_of(",)")));
}

void take_conditions(const Value& v, WorkloadObject& out, Decoder& d) {
  std::vector<StatusCondition> conditions;
  read_status_conditions(v, conditions, d);
  model::WorkloadSpec& spec = out.spec;
  std::optional<bool> reserved;
  for (const StatusCondition& c : conditions) {
    const bool on = c.is_true();
    const std::string& reason = c.reason.empty() ? c.type : c.reason;
    if (c.type == "QuotaReserved") {
      if (on || c.status == "False") reserved = on;
      if (on) spec.reserved_ns = c.since_ns;
      spec.makes_room = !on && reason == "WaitingForPreemptedWorkloads";
    } else if (c.type == "Admitted" && on) {
      spec.admitted = true;
      spec.admitted_ns = c.since_ns;
    } else if (c.type == "PodsReady") {
      spec.pods_ready = on;
      spec.recovering = !on && reason == "WaitForRecovery";
      spec.unready_ns = on ? 0 : c.since_ns;
    } else if (c.type == "Finished" && on) {
      spec.finished = true;
    } else if (c.type == "Evicted" && on) {
      spec.evicted = reason;
      spec.evicted_ns = c.since_ns;
    } else if (c.type == "Preempted") {
      if (on) spec.preempted = reason;
      spec.preempted_by = uid_in(c.message);
    } else if (c.type == "Requeued" && !on) {
      spec.not_requeued = reason;
    } else if (c.type == kPreemptionsCondition && on) {
      for (const std::string_view part : split(c.message, ",")) {
        const auto time = text::parse_rfc3339(trim(part));
        if (time.ok() && spec.preemptions_ns.size() < kMostPreemptions) {
          spec.preemptions_ns.push_back(*time);
        }
      }
    } else if (c.type == kPlacedCondition && on) {
      // Of an annotation, which whoever may write the Workload could change, the status has a
      // digest.
      const std::string* noted = out.meta.annotation(kSeatsAnnotation);
      const bool elsewhere = c.message.starts_with(kSeatsDigest);
      if (elsewhere && (noted == nullptr || c.message != seats_digest(*noted))) continue;
      const std::string want = seats_in(elsewhere ? *noted : c.message, spec.seats);
      if (want.empty()) continue;
      spec.seats.clear();
      d.error(v, "the condition " + c.type + " with another message", want);
    }
  }
  if (reserved == false) {
    spec.admission.reset();
    spec.admitted = false;
  } else if (!spec.admission && (reserved == true || spec.admitted)) {
    d.error(v, spec.admitted ? "Admitted" : "QuotaReserved", "status.admission beside it");
  }
}

using W1 = WorkloadObject;
// The admission stands before the conditions: they are held against it.
template <KueueVersion Version>
inline constexpr Field<W1> kWorkloadStatusFields[] = {
    text::custom<W1>("admission", read_admission<Version>),
    text::custom<W1>("conditions", take_conditions),
    text::custom<W1>("requeueState", [](const Value& v, W1& out,
                                        Decoder& d) { decode_lenient(v, kRequeueFields, out, d); }),
    text::custom<W1>("reclaimablePods", read_reclaimable),
    text::custom<W1>("admissionChecks", read_check_states),
    text::custom<W1>("unhealthyNodes", read_unhealthy),
    text::custom<W1>("preemptionGates", read_gate_positions),
    text::custom<W1>(Version == KueueVersion::kV1beta1 ? "accumulatedPastExexcutionTimeSeconds"
                                                       : "accumulatedPastExecutionTimeSeconds",
                     read_past_time),
};

}  // namespace

void read_workload_status(const Value& v, KueueVersion version, WorkloadObject& out, Decoder& d) {
  const std::size_t before = d.errors();
  if (version == KueueVersion::kV1beta1) {
    decode_lenient(v, kWorkloadStatusFields<KueueVersion::kV1beta1>, out, d);
  } else {
    decode_lenient(v, kWorkloadStatusFields<KueueVersion::kV1beta2>, out, d);
  }
  const bool errors = d.errors() != before || !out.read;
  if (errors && out.spec.admission) complete_admission(out, *out.spec.admission);
}

}  // namespace berth::kinds
