#include "kinds/kueue_workload.h"

#include <algorithm>
#include <charconv>
#include <set>

#include "base/sha256.h"
#include "kinds/names.h"
#include "text/json.h"
#include "text/path.h"
#include "text/rfc3339.h"

namespace berth::kinds {

namespace {

using model::PodSetSpec;
using model::TopologyAsk;
using model::WorkloadSpec;
using text::Decoder;
using text::Field;
using text::Value;

constexpr std::size_t kMostSlices = 3;

// ---- topologyRequest ----

struct RawTopology {
  std::string required, preferred, group, slice_level;
  bool unconstrained = false;
  std::optional<int> slice_size;
  std::vector<TopologyAsk::Slice> slices;
};
constexpr auto read_size = text::int_between<1, kMaxJobPods>;
constexpr Field<TopologyAsk::Slice> kSliceFields[] = {
    text::required(text::field<&TopologyAsk::Slice::level>("topology")),
    text::required(text::field<&TopologyAsk::Slice::size, read_size>("size")),
};
constexpr auto read_slice = object_of<kSliceFields>;
void read_slice_size(const Value& v, std::optional<int>& out, Decoder& d) {
  std::int64_t size = 0;
  if (text::decode_int(v, 1, kMaxJobPods, size, d)) out = static_cast<int>(size);
}
void read_level(const Value& v, std::string& out, Decoder& d) {
  if (!v.is_string() || !is_qualified_name(v.string())) return d.mismatch(v, "a node label key");
  out = v.string();
}
constexpr Field<RawTopology> kTopologyRequestFields[] = {
    text::skip<RawTopology>("podIndexLabel"),
    text::field<&RawTopology::group>("podSetGroupName"),
    text::field<&RawTopology::slice_level, read_level>("podSetSliceRequiredTopology"),
    text::field<&RawTopology::slice_size, read_slice_size>("podSetSliceSize"),
    text::field<&RawTopology::slices, list_of<read_slice>>(
        "podsetSliceRequiredTopologyConstraints"),
    text::field<&RawTopology::preferred, read_level>("preferred"),
    text::field<&RawTopology::required, read_level>("required"),
    text::skip<RawTopology>("subGroupCount"),
    text::skip<RawTopology>("subGroupIndexLabel"),
    text::field<&RawTopology::unconstrained>("unconstrained"),
};

void read_topology_request(const Value& v, TopologyAsk& out, Decoder& d) {
  RawTopology raw;
  const std::size_t before = d.errors();
  decode_object(v, kTopologyRequestFields, raw, d);
  if (d.errors() != before) return;
  const int ways = (raw.required.empty() ? 0 : 1) + (raw.preferred.empty() ? 0 : 1) +
                   (raw.unconstrained ? 1 : 0);
  if (ways > 1) {
    return d.error(v, "more than one of required, preferred and unconstrained", "one of them");
  }
  using Mode = TopologyAsk::Mode;
  out.mode = !raw.required.empty()    ? Mode::kRequired
             : !raw.preferred.empty() ? Mode::kPreferred
             : raw.unconstrained      ? Mode::kUnconstrained
                                      : Mode::kNone;
  out.level = raw.required.empty() ? raw.preferred : raw.required;
  out.group = raw.group;
  if (raw.slice_level.empty() == raw.slice_size.has_value()) {
    return d.error(v, "one of podSetSliceRequiredTopology and podSetSliceSize", "both or neither");
  }
  if (!raw.slices.empty() && raw.slice_size) {
    return d.error(v, "podSetSliceSize and podsetSliceRequiredTopologyConstraints", "one of them");
  }
  out.slices = std::move(raw.slices);
  if (raw.slice_size) out.slices = {{raw.slice_level, *raw.slice_size}};
  if (out.slices.size() > kMostSlices) {
    d.error(v, std::to_string(out.slices.size()) + " slice constraints", "at most 3");
  }
  if (!out.group.empty() && out.level.empty()) {
    d.error(v, "podSetGroupName " + quoted(out.group), "required or preferred beside it");
  }
}

// ---- pod sets ----

struct RawPodSet {
  PodSetSpec spec;
  const Value* pod = nullptr;
};
void read_pod_set_name(const Value& v, RawPodSet& out, Decoder& d) {
  if (!v.is_string() || !is_dns_label(v.string())) {
    return d.mismatch(v, "a DNS label: at most 63 of a-z 0-9 -");
  }
  out.spec.name = v.string();
}
constexpr Field<RawPodSet> kPodSetFields[] = {
    text::custom<RawPodSet>("count", [](const Value& v, RawPodSet& out,
                                        Decoder& d) { read_size(v, out.spec.count, d); }),
    text::custom<RawPodSet>("minCount",
                            [](const Value& v, RawPodSet& out, Decoder& d) {
                              read_slice_size(v, out.spec.min_count, d);
                            }),
    text::custom<RawPodSet>("name", read_pod_set_name),
    text::required(text::custom<RawPodSet>(
        "template", [](const Value& v, RawPodSet& out, Decoder&) { out.pod = &v; })),
    text::custom<RawPodSet>("topologyRequest",
                            [](const Value& v, RawPodSet& out, Decoder& d) {
                              read_topology_request(v, out.spec.topology, d);
                            }),
};

void check_pod_set(const Value& at, const PodSetSpec& set, Decoder& d) {
  if (set.min_count && *set.min_count > set.count) {
    Decoder::Step step(d, "minCount");
    d.error(at, std::to_string(*set.min_count), "at most the count " + std::to_string(set.count));
  }
  const std::string wrong = slices_wrong(set.topology.slices, set.count);
  if (wrong.empty()) return;
  Decoder::Step step(d, "topologyRequest");
  d.error(at, "slices of other sizes", wrong);
}

void check_pod_sets(const Value& v, const std::vector<PodSetSpec>& sets, Decoder& d) {
  if (sets.empty() || sets.size() > kMostPodSets) {
    d.error(v, std::to_string(sets.size()) + " pod sets", "1 to 18");
  }
  std::set<std::string> names;
  std::map<std::string, std::vector<const PodSetSpec*>> groups;
  int partial = 0;
  for (std::size_t i = 0; i < sets.size(); ++i) {
    Decoder::Step step(d, i);
    const Value& at = v.items()[i];
    check_pod_set(at, sets[i], d);
    if (!names.insert(sets[i].name).second) {
      d.error(at, "pod set " + quoted(sets[i].name) + " twice", "each name once");
    }
    if (sets[i].min_count && ++partial > 1) {
      d.error(at, "a second minCount", "minCount on one pod set");
    }
    const std::string& group = sets[i].topology.group;
    if (!group.empty()) groups[group].push_back(&sets[i]);
  }
  for (const auto& [name, members] : groups) {
    const auto single = [](const PodSetSpec* set) { return set->count == 1; };
    if (members.size() != 2 || std::none_of(members.begin(), members.end(), single)) {
      d.error(v, "group " + quoted(name) + " of " + std::to_string(members.size()) + " pod sets",
              "two pod sets, one of them of count 1");
    } else if (members[0]->topology.mode != members[1]->topology.mode ||
               members[0]->topology.level != members[1]->topology.level) {
      d.error(v, "group " + quoted(name) + " with two topologies", "the same on both pod sets");
    }
  }
}

// After errors: each name once, and nothing beside it that does not go together.
void straighten_pod_sets(WorkloadObject& out) {
  std::set<std::string> names;
  std::vector<PodSetSpec> sets;
  std::vector<PodObject> templates;
  for (std::size_t i = 0; i < out.spec.pod_sets.size(); ++i) {
    PodSetSpec& set = out.spec.pod_sets[i];
    if (!names.insert(set.name).second) continue;
    set.min_count.reset();
    set.topology = {};
    sets.push_back(std::move(set));
    templates.push_back(std::move(out.templates[i]));
  }
  out.spec.pod_sets = std::move(sets);
  out.templates = std::move(templates);
}

void read_pod_sets(const Value& v, WorkloadObject& out, Decoder& d) {
  if (!v.is_array()) return d.mismatch(v, "an array");
  const std::size_t before = d.errors();
  for (std::size_t i = 0; i < v.size(); ++i) {
    const Value& item = v.items()[i];
    Decoder::Step step(d, i);
    RawPodSet raw;
    decode_object(item, kPodSetFields, raw, d);
    PodObject pod;
    if (raw.pod != nullptr) {
      Decoder::Step in_template(d, "template");
      decode_template(*raw.pod, out.meta.ns, pod, d);
    }
    out.templates.push_back(std::move(pod));
    out.spec.pod_sets.push_back(std::move(raw.spec));
  }
  if (d.errors() == before) check_pod_sets(v, out.spec.pod_sets, d);
  if (d.errors() != before) straighten_pod_sets(out);
}

// ---- the rest of spec ----

struct ClassRef {
  std::string group, kind, name;
};
constexpr Field<ClassRef> kClassRefFields[] = {
    text::required(text::field<&ClassRef::group>("group")),
    text::required(text::field<&ClassRef::kind>("kind")),
    text::required(text::field<&ClassRef::name>("name")),
};
void read_class_ref(const Value& v, WorkloadObject& out, Decoder& d) {
  ClassRef ref;
  const std::size_t before = d.errors();
  decode_object(v, kClassRefFields, ref, d);
  if (d.errors() != before) return;
  out.pod_class = ref.group == "scheduling.k8s.io" && ref.kind == "PriorityClass";
  const bool own = ref.group == "kueue.x-k8s.io" && ref.kind == "WorkloadPriorityClass";
  if (!own && !out.pod_class) {
    return d.error(v, "kind " + quoted(ref.kind) + " of " + quoted(ref.group),
                   "WorkloadPriorityClass of kueue.x-k8s.io or PriorityClass of scheduling.k8s.io");
  }
  out.priority_class = ref.name;
}

constexpr std::pair<std::string_view, bool> kClassSources[] = {
    {"kueue.x-k8s.io/workloadpriorityclass", false},
    {"scheduling.k8s.io/priorityclass", true},
    {"", false}};

struct GateName {
  std::string name;
};
constexpr Field<GateName> kGateNameFields[] = {
    text::required(text::field<&GateName::name>("name")),
};
constexpr auto read_gate_name = object_of<kGateNameFields>;
void read_gate_names(const Value& v, WorkloadObject& out, Decoder& d) {
  std::vector<GateName> gates;
  list_of<read_gate_name>(v, gates, d);
  for (GateName& gate : gates) out.preemption_gates.push_back(std::move(gate.name));
}

using W = WorkloadObject;
constexpr Field<W> kActive = text::custom<W>(
    "active", [](const Value& v, W& out, Decoder& d) { decode(v, out.spec.active, d); });
constexpr Field<W> kMaxTime =
    text::custom<W>("maximumExecutionTimeSeconds", [](const Value& v, W& out, Decoder& d) {
      text::int_between<1, 2'147'483'647>(v, out.spec.max_execution_s, d);
    });
constexpr Field<W> kQueueName = text::custom<W>(
    "queueName", [](const Value& v, W& out, Decoder& d) { decode(v, out.spec.queue, d); });

constexpr Field<W> kWorkload1SpecFields[] = {
    kActive,
    kMaxTime,
    text::required(text::custom<W>("podSets", read_pod_sets)),
    text::custom<W>("preemptionGates", read_gate_names),
    text::field<&W::priority>("priority"),
    text::field<&W::priority_class>("priorityClassName"),
    text::field<&W::pod_class, text::one_of<kClassSources>>("priorityClassSource"),
    kQueueName,
};
constexpr Field<W> kWorkload2SpecFields[] = {
    kActive,
    kMaxTime,
    text::required(text::custom<W>("podSets", read_pod_sets)),
    text::custom<W>("preemptionGates", read_gate_names),
    text::field<&W::priority>("priority"),
    text::custom<W>("priorityClassRef", read_class_ref),
    kQueueName,
};
template <const auto& SpecFields>
inline constexpr Field<W> kWorkloadFields[] = {
    text::skip<W>("apiVersion"), text::skip<W>("kind"),
    text::skip<W>("metadata"),   text::required(text::inlined<SpecFields>("spec")),
    text::skip<W>("status"),
};

// {"main": [{"node": "n1", "gpus": [0, 1]}, ...]}: where its pods are to run.
struct RawSeat {
  std::string node;
  std::vector<int> gpus;
};
constexpr auto read_seat_gpu = text::int_between<0, 1023>;
constexpr Field<RawSeat> kSeatFields[] = {
    text::field<&RawSeat::gpus, list_of<read_seat_gpu>>("gpus"),
    text::required(text::field<&RawSeat::node>("node")),
};
constexpr auto read_seat = object_of<kSeatFields>;
void read_workload_annotations(const Value& v, W& out, Decoder& d) {
  constexpr std::string_view kBoost = "kueue.x-k8s.io/priority-boost";
  if (const std::string* text = out.meta.annotation(kBoost)) {
    const char* end = text->data() + text->size();
    const auto [at, error] = std::from_chars(text->data(), end, out.boost);
    if (error != std::errc() || at != end) {
      out.boost = 0;
      annotation_error(v, kBoost, "an integer", d);
    }
  }
  if (const std::string* who = out.meta.annotation("kueue.x-k8s.io/admission-gated-by")) {
    out.spec.held_by = *who;
  }
  constexpr std::string_view kReplaces = "kueue.x-k8s.io/workload-slice-replacement-for";
  if (const std::string* old = out.meta.annotation(kReplaces); old != nullptr && !old->empty()) {
    const std::size_t slash = old->find('/');
    const std::string in_ns = slash == std::string::npos ? out.meta.ns : old->substr(0, slash);
    if (in_ns == out.meta.ns) {
      out.spec.replaces = slash == std::string::npos ? in_ns + '/' + *old : *old;
    } else {  // another's: not this one's to end
      annotation_error(v, kReplaces, "a Workload of namespace " + out.meta.ns, d);
    }
  }
  constexpr std::string_view kAllowed = "kueue.x-k8s.io/workload-allowed-resource-flavors";
  if (const std::string* list = out.meta.annotation(kAllowed)) {
    for (const std::string_view part : split(*list, ",")) {
      if (!trim(part).empty()) out.spec.allowed_flavors.emplace_back(trim(part));
    }
    if (out.spec.allowed_flavors.empty()) annotation_error(v, kAllowed, "names of flavors", d);
  }
  const Owner* parent = out.meta.controller();
  if (parent != nullptr && parent->kind == "Workload" && !out.spec.allowed_flavors.empty()) {
    out.spec.variant_of = out.meta.ns + '/' + parent->name;
  }
}

std::string owner_of(const Meta& meta) {
  const Owner* owner = meta.controller();
  if (owner == nullptr && meta.owners.size() == 1) owner = &meta.owners.front();
  return owner == nullptr ? "" : owner->text();
}

}  // namespace

std::string slices_wrong(const std::vector<TopologyAsk::Slice>& slices, int count) {
  for (std::size_t i = 0; i < slices.size(); ++i) {
    const int outer = i == 0 ? count : slices[i - 1].size;
    if (slices[i].size > outer || (i > 0 && outer % slices[i].size != 0)) {
      return i == 0 ? "at most the count " + std::to_string(count)
                    : "each size a divisor of the one before";
    }
  }
  return {};
}

std::string seats_digest(std::string_view seats) {
  return std::string(kSeatsDigest) + sha256_hex(seats);
}

std::string seats_in(std::string_view text, std::vector<model::WorkloadSpec::Seat>& out) {
  const auto document = text::parse_json(text);
  if (!document.ok() || !document->root().is_object()) return "a JSON object of lists by pod set";
  std::vector<model::WorkloadSpec::Seat> seats;  // all of them or none
  for (const text::Member& member : document->root().members()) {
    std::vector<RawSeat> raw;
    Decoder inner;
    list_of<read_seat>(member.value, raw, inner);
    const bool named =
        std::none_of(raw.begin(), raw.end(), [](const RawSeat& seat) { return seat.node.empty(); });
    const std::size_t count = out.size() + seats.size() + raw.size();
    if (!inner.ok() || !named || count > static_cast<std::size_t>(kMaxJobPods)) {
      return "lists of {node, gpus} by pod set";
    }
    for (RawSeat& seat : raw) {
      seats.push_back({std::string(member.key), std::move(seat.node), std::move(seat.gpus)});
    }
  }
  std::move(seats.begin(), seats.end(), std::back_inserter(out));
  return {};
}

void decode_workload(const Value& v, KueueVersion version, WorkloadObject& out, Decoder& d) {
  const std::size_t before = d.errors();
  read_meta(v, Scope::kNamespaced, out.meta, d);
  const bool first = version == KueueVersion::kV1beta1;
  if (first) {
    decode_object(v, kWorkloadFields<kWorkload1SpecFields>, out, d);
  } else {
    decode_object(v, kWorkloadFields<kWorkload2SpecFields>, out, d);
  }
  const Value* source = find(v, "spec.priorityClassSource");
  const bool no_source = source == nullptr || source->string().empty();
  if (first && !out.priority_class.empty() && no_source) {
    Decoder::Step spec(d, "spec");
    Decoder::Step step(d, "priorityClassSource");
    d.error(v, "nothing beside priorityClassName",
            "kueue.x-k8s.io/workloadpriorityclass or scheduling.k8s.io/priorityclass");
  }
  out.spec.ns = out.meta.ns;
  out.spec.name = out.meta.name;
  out.spec.uid = out.meta.uid;
  out.spec.created_ns = out.meta.created_ns;
  out.spec.owner = owner_of(out.meta);
  out.spec.preemption_gated = !out.preemption_gates.empty();
  read_workload_annotations(v, out, d);
  out.read = d.errors() == before;
  const Value* status = v.find("status");
  if (status == nullptr || status->is_null()) return;
  Decoder::Step step(d, "status");
  read_workload_status(*status, version, out, d);
  out.read = d.errors() == before;
}

}  // namespace berth::kinds
