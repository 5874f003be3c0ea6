#include "objects/manifest.h"

#include <algorithm>

#include "objects/counted.h"
#include "objects/gathered.h"
#include "objects/kueue_convert.h"
#include "text/json.h"
#include "text/path.h"

namespace berth::objects {

namespace {

using text::Decoder;
using text::Value;

constexpr int kMaxListDepth = 4;

// What an object with errors counts as; nothing: it was refused, or nothing is wrong with it.
template <auto Member, auto Decode>
Counted take_object(const Value& v, Origin origin, std::string shown, Gathered& out, Decoder& d) {
  typename std::remove_reference_t<decltype(out.*Member)>::value_type found;
  Decode(v, found.object, d);
  const Counted counts = d.ok() ? Counted{} : counted_by_name(found.object);
  if (!d.ok() && counts.as.empty()) return counts;
  found.origin = std::move(origin);
  found.shown = std::move(shown);
  (out.*Member).push_back(std::move(found));
  return counts;
}
constexpr text::internal::DefaultReader decode_any{};

struct KnownKind {
  std::string_view version, kind;
  Counted (*take)(const Value&, Origin, std::string, Gathered&, Decoder&);
};

// Named types, not lambdas: clang names a lambda of one file like one of another, and the linker
// then keeps one of the two template arguments.
template <auto Decode>
struct AsV1 {
  template <class T>
  void operator()(const Value& v, T& out, Decoder& d) const {
    Decode(v, KueueVersion::kV1beta1, out, d);
  }
};
template <auto Decode>
struct AsV2 {
  template <class T>
  void operator()(const Value& v, T& out, Decoder& d) const {
    if (!kueue_unconverted(v)) return Decode(v, KueueVersion::kV1beta2, out, d);
    const auto turned = text::parse_json(convert_kueue(v, KueueVersion::kV1beta2));
    Decode(turned.ok() ? turned->root() : v, KueueVersion::kV1beta2, out, d);
  }
};
template <auto Decode>
constexpr AsV1<Decode> as_v1{};
template <auto Decode>
constexpr AsV2<Decode> as_v2{};

constexpr std::string_view kKueue0 = "kueue.x-k8s.io/v1alpha1";
constexpr std::string_view kKueue1 = "kueue.x-k8s.io/v1beta1";
constexpr std::string_view kKueue2 = "kueue.x-k8s.io/v1beta2";
constexpr KnownKind kKnownKinds[] = {
    {"v1", "Node", take_object<&Gathered::nodes, decode_any>},
    {"v1", "Pod", take_object<&Gathered::pods, decode_any>},
    {"v1", "PersistentVolume", take_object<&Gathered::volumes, decode_any>},
    {"v1", "PersistentVolumeClaim", take_object<&Gathered::claims, decode_any>},
    {"scheduling.k8s.io/v1", "PriorityClass", take_object<&Gathered::priority_classes, decode_any>},
    {"policy/v1", "PodDisruptionBudget", take_object<&Gathered::budgets, decode_any>},
    {"batch/v1", "Job", take_object<&Gathered::jobs, decode_any>},
    {"berth.dev/v1alpha1", "GpuNode", take_object<&Gathered::gpu_nodes, decode_any>},
    {"scheduling.volcano.sh/v1beta1", "PodGroup",
     take_object<&Gathered::groups, decode_volcano_group>},
    {"scheduling.x-k8s.io/v1alpha1", "PodGroup",
     take_object<&Gathered::groups, decode_coscheduling_group>},
    {"scheduling.run.ai/v2alpha2", "PodGroup", take_object<&Gathered::groups, decode_kai_group>},
    {"scheduling.k8s.io/v1beta1", "PodGroup",
     take_object<&Gathered::groups, decode_upstream_group>},
    {"scheduling.k8s.io/v1alpha2", "PodGroup",
     take_object<&Gathered::groups, decode_upstream_group>},
    {"v1", "Namespace", take_object<&Gathered::namespaces, decode_any>},
    {kKueue1, "ResourceFlavor", take_object<&Gathered::flavors, decode_flavor>},
    {kKueue2, "ResourceFlavor", take_object<&Gathered::flavors, decode_flavor>},
    {kKueue1, "ClusterQueue", take_object<&Gathered::cluster_queues, as_v1<decode_cluster_queue>>},
    {kKueue2, "ClusterQueue", take_object<&Gathered::cluster_queues, as_v2<decode_cluster_queue>>},
    {kKueue1, "LocalQueue", take_object<&Gathered::local_queues, decode_local_queue>},
    {kKueue2, "LocalQueue", take_object<&Gathered::local_queues, decode_local_queue>},
    {kKueue0, "Cohort", take_object<&Gathered::cohorts, as_v1<decode_cohort>>},
    {kKueue1, "Cohort", take_object<&Gathered::cohorts, as_v1<decode_cohort>>},
    {kKueue2, "Cohort", take_object<&Gathered::cohorts, as_v2<decode_cohort>>},
    {kKueue0, "Topology", take_object<&Gathered::topologies, decode_topology>},
    {kKueue1, "Topology", take_object<&Gathered::topologies, decode_topology>},
    {kKueue2, "Topology", take_object<&Gathered::topologies, decode_topology>},
    {kKueue1, "AdmissionCheck", take_object<&Gathered::checks, decode_check>},
    {kKueue2, "AdmissionCheck", take_object<&Gathered::checks, decode_check>},
    {kKueue1, "WorkloadPriorityClass", take_object<&Gathered::workload_classes, decode_any>},
    {kKueue2, "WorkloadPriorityClass", take_object<&Gathered::workload_classes, decode_any>},
    {kKueue1, "Workload", take_object<&Gathered::workloads, as_v1<decode_workload>>},
    {kKueue2, "Workload", take_object<&Gathered::workloads, as_v2<decode_workload>>},
    {"config.kueue.x-k8s.io/v1beta1", "Configuration",
     take_object<&Gathered::queue_configs, as_v1<decode_queue_config>>},
    {"config.kueue.x-k8s.io/v1beta2", "Configuration",
     take_object<&Gathered::queue_configs, as_v2<decode_queue_config>>},
    {"v1", "ConfigMap", take_object<&Gathered::queue_configs, decode_config_map>},
    {"scheduling.volcano.sh/v1beta1", "Queue", take_object<&Gathered::volcano_queues, decode_any>},
    {"scheduling.run.ai/v2", "Queue", take_object<&Gathered::kai_queues, decode_any>},
    {"batch.volcano.sh/v1alpha1", "Job", take_object<&Gathered::volcano_jobs, decode_any>},
    {"scheduling.k8s.io/v1beta1", "Workload",
     take_object<&Gathered::upstream_workloads, decode_any>},
};

std::string unquoted(std::string_view text) {
  const std::string safe = quoted(text);
  return safe.substr(1, safe.size() - 2);
}

bool cluster_scoped(std::string_view kind) {
  constexpr std::string_view kKinds[] = {
      "AdmissionCheck", "ClusterQueue",   "Cohort",           "GpuNode",
      "Namespace",      "Node",           "PersistentVolume", "PriorityClass",
      "Queue",          "ResourceFlavor", "Topology",         "WorkloadPriorityClass"};
  return std::find(std::begin(kKinds), std::end(kKinds), kind) != std::end(kKinds);
}

// "Pod team-a/x". Other kinds show a namespace only where they give one.
std::string shown_name(const Value& v, std::string_view kind, bool known) {
  if (known && kind == "Configuration") return "Configuration";  // a file, it has no name
  const std::string_view name = text_at(v, "metadata.name");
  std::string_view ns = text_at(v, "metadata.namespace");
  if (known && ns.empty()) ns = "default";
  if (known && cluster_scoped(kind)) ns = {};
  std::string out = kind.empty() ? "object" : unquoted(kind);
  out += ' ';
  if (!ns.empty()) out += unquoted(ns) + '/';
  return out + (name.empty() ? "?" : unquoted(name));
}

// Versions of the kind in the same API group; those of other groups where it has none there.
std::string versions_read(std::string_view kind, std::string_view version) {
  const auto group = [](std::string_view v) { return v.substr(0, v.find('/')); };
  std::string out, others;
  for (const KnownKind& known : kKnownKinds) {
    if (known.kind != kind) continue;
    std::string& list = group(known.version) == group(version) ? out : others;
    if (!list.empty()) list += ", ";
    list += known.version;
  }
  return out.empty() ? others : out;
}

Note note_of(const text::Issue& issue, const Origin& origin, const std::string& shown,
             const std::string& path) {
  Note note = Gathered::note(origin, shown, path + issue.path, "found " + issue.found);
  if (!issue.allowed.empty()) note.message += ", want " + issue.allowed;
  if (issue.line > 0) note.line = issue.line;
  return note;
}

std::vector<Note> errors_of(const Decoder& d, const Origin& origin, const std::string& shown,
                            const std::string& path) {
  std::vector<Note> out;
  for (const text::Issue& issue : d.issues()) {
    if (issue.severity == text::Issue::kError) out.push_back(note_of(issue, origin, shown, path));
  }
  if (d.errors() > out.size()) {
    const std::string more = std::to_string(d.errors() - out.size()) + " more errors";
    out.push_back(Gathered::note(origin, shown, path, more));
  }
  return out;
}

// One document: its objects in order, lists flattened.
class DocumentReader {
 public:
  DocumentReader(Origin origin, Gathered& out) : origin_(std::move(origin)), out_(out) {}

  void read(const Value& v, std::string_view version, std::string_view kind,
            const std::string& path, int depth) {
    ++origin_.item;
    origin_.line = v.line();
    if (!v.is_object()) {
      const std::string at = path.ends_with('.') ? path.substr(0, path.size() - 1) : path;
      return refuse("object ?", at, "found " + text::describe(v) + ", want an object");
    }
    if (const Value* given = v.find("apiVersion"); given != nullptr) version = given->string();
    if (const Value* given = v.find("kind"); given != nullptr) kind = given->string();
    if (version.empty() || kind.empty()) {
      const std::string shown = shown_name(v, kind, false);
      if (version.empty() && kind.empty()) {
        return refuse(shown, path + "apiVersion",
                      "found neither apiVersion nor kind, want a Kubernetes object");
      }
      const char* field = version.empty() ? "apiVersion" : "kind";
      return refuse(
          shown, path + field,
          version.empty() ? "found nothing, want a version" : "found nothing, want a kind");
    }
    const Value* items = v.find("items");
    if (kind.ends_with("List") && (items != nullptr || kind == "List")) {
      return read_list(items, version, kind, path, depth);
    }
    read_object(v, version, kind, path);
  }

 private:
  void read_list(const Value* items, std::string_view version, std::string_view kind,
                 const std::string& path, int depth) {
    if (items == nullptr || items->is_null()) return;
    const std::string shown = unquoted(kind) + " ?";
    if (!items->is_array()) {
      return refuse(shown, path + "items", "found " + text::describe(*items) + ", want an array");
    }
    if (depth >= kMaxListDepth) {
      return refuse(shown, path + "items", "found lists in lists, want at most 4 levels");
    }
    // The items of a typed list need not repeat their kind.
    const bool typed = kind != "List";
    const std::string_view item_kind = typed ? kind.substr(0, kind.size() - 4) : "";
    for (std::size_t i = 0; i < items->size(); ++i) {
      read(items->items()[i], typed ? version : "", item_kind,
           path + "items[" + std::to_string(i) + "].", depth + 1);
    }
  }

  void read_object(const Value& v, std::string_view version, std::string_view kind,
                   const std::string& path) {
    const KnownKind* known = nullptr;
    for (const KnownKind& k : kKnownKinds) {
      if (k.kind == kind && k.version == version) known = &k;
    }
    if (kind == "ConfigMap" && !holds_queue_config(v)) known = nullptr;
    const std::string shown = shown_name(v, kind, known != nullptr);
    if (known == nullptr) {
      const std::string versions = kind == "ConfigMap" ? "" : versions_read(kind, version);
      out_.ignored.add(Gathered::note(
          origin_, shown, path,
          versions.empty() ? "kind " + unquoted(kind) + " of " + unquoted(version) + " is not read"
                           : "version " + unquoted(version) + " is not read; " + unquoted(kind) +
                                 " is read in " + versions));
      return;
    }
    ++out_.counts.objects;
    Decoder d;
    const Counted counts = known->take(v, origin_, shown, out_, d);
    for (const text::Issue& issue : d.issues()) {
      if (issue.severity == text::Issue::kWarning) {
        out_.warnings.add(note_of(issue, origin_, shown, path));
      }
    }
    if (d.ok()) return;
    std::vector<Note> errors = errors_of(d, origin_, shown, path);
    if (counts.as.empty()) {
      ++out_.counts.invalid_objects;
      for (Note& error : errors) out_.invalid.add(std::move(error));
    } else {
      out_.count_in_part(std::move(errors), counts);
    }
  }

  void refuse(const std::string& shown, std::string path, std::string message) {
    ++out_.counts.invalid_objects;
    out_.invalid.add(Gathered::note(origin_, shown, std::move(path), std::move(message)));
  }

  Origin origin_;
  Gathered& out_;
};

}  // namespace

void read_object(const Value& object, std::string_view version, std::string_view kind,
                 Origin origin, Gathered& out) {
  DocumentReader(std::move(origin), out).read(object, version, kind, "", 0);
}

std::vector<Note> read_pod(const Value& object, PodObject& out) {
  Decoder d;
  decode(object, out, d);
  return errors_of(d, {.source = "cluster"}, shown_name(object, "Pod", true), "");
}

struct ManifestReader::State {
  ManifestOptions options;
  Gathered gathered;
};

ManifestReader::ManifestReader(ManifestOptions options)
    : state_(std::make_unique<State>(State{options, Gathered()})) {}
ManifestReader::~ManifestReader() = default;
ManifestReader::ManifestReader(ManifestReader&&) noexcept = default;
ManifestReader& ManifestReader::operator=(ManifestReader&&) noexcept = default;

void ManifestReader::add(std::string source_name, int document_index,
                         const text::Document& document) {
  if (document.root().is_null()) return;  // an empty document between two ---
  Origin origin;
  origin.source = std::move(source_name);
  origin.document = document_index;
  DocumentReader(std::move(origin), state_->gathered).read(document.root(), "", "", "", 0);
}

Inputs ManifestReader::finish() {
  Gathered gathered = std::exchange(state_->gathered, Gathered());
  return resolve(std::move(gathered), state_->options);
}

}  // namespace berth::objects
