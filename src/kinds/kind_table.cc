#include "kinds/kind_table.h"

#include <algorithm>

#include "kinds/counted.h"
#include "kinds/gathered.h"
#include "kinds/kueue_convert.h"
#include "kinds/object_shelves.h"
#include "text/json.h"

namespace berth::kinds {

namespace {

using text::Decoder;
using text::Value;

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

template <const PodMaker& kMaker>
struct AsMaker {
  void operator()(const Value& v, QueuedMaker& out, Decoder& d) const {
    decode_queued_maker(v, kMaker, out, d);
  }
};
template <const PodMaker& kMaker>
constexpr AsMaker<kMaker> as_maker{};

template <auto Member, auto Decode = decode_any>
constexpr TakeKind take = take_object<Member, Decode>;
template <auto Member>
Shelf* shelf(Shelves& all) {
  return &(all.*Member);
}

using Docs = Gathered;
using Kept = Shelves;

constexpr const char* kOfKueue = "kueue.x-k8s.io";
constexpr bool kOfCluster = false, kOfNamespace = true;
constexpr std::uint16_t kDecided = asked::kDecided, kKept = asked::kDecided | asked::kWhole;
constexpr std::uint16_t kNamedToo = asked::kNamed, kMakesPods = asked::kMaker | asked::kNamed;

constexpr KindRow kKindRows[] = {
    // ---- the cluster ----
    {"", "Node", "nodes", {{"v1", take<&Docs::nodes>}}, kDecided, kOfCluster, shelf<&Kept::nodes>},
    {"berth.dev",
     "GpuNode",
     "gpunodes",
     {{"v1alpha1", take<&Docs::gpu_nodes>}},
     kDecided,
     kOfCluster,
     shelf<&Kept::gpu_nodes>},
    {"berth.dev",
     "BerthPolicy",
     "berthpolicies",
     {{"v1alpha1", take<&Docs::policies>}},
     kKept,
     kOfCluster,
     shelf<&Kept::policies>},
    {"scheduling.k8s.io",
     "PriorityClass",
     "priorityclasses",
     {{"v1", take<&Docs::priority_classes>}},
     kDecided | kNamedToo,
     kOfCluster,
     shelf<&Kept::priority_classes>},
    {"policy",
     "PodDisruptionBudget",
     "poddisruptionbudgets",
     {{"v1", take<&Docs::budgets>}},
     kDecided,
     kOfNamespace,
     shelf<&Kept::budgets>},
    {"",
     "PersistentVolume",
     "persistentvolumes",
     {{"v1", take<&Docs::volumes>}},
     kDecided,
     kOfCluster,
     shelf<&Kept::volumes>},
    {"",
     "PersistentVolumeClaim",
     "persistentvolumeclaims",
     {{"v1", take<&Docs::claims>}},
     kDecided,
     kOfNamespace,
     shelf<&Kept::claims>},
    {"",
     "Namespace",
     "namespaces",
     {{"v1", take<&Docs::namespaces>}},
     kDecided | kNamedToo,
     kOfCluster,
     shelf<&Kept::namespaces>},

    // ---- Kueue ----
    {kOfKueue,
     "ResourceFlavor",
     "resourceflavors",
     {{"v1beta2", take<&Docs::flavors, decode_flavor>},
      {"v1beta1", take<&Docs::flavors, decode_flavor>}},
     kDecided,
     kOfCluster,
     shelf<&Kept::flavors>},
    {kOfKueue,
     "ClusterQueue",
     "clusterqueues",
     {{"v1beta2", take<&Docs::cluster_queues, as_v2<decode_cluster_queue>>},
      {"v1beta1", take<&Docs::cluster_queues, as_v1<decode_cluster_queue>>}},
     kKept | kNamedToo,
     kOfCluster,
     shelf<&Kept::cluster_queues>},
    {kOfKueue,
     "LocalQueue",
     "localqueues",
     {{"v1beta2", take<&Docs::local_queues, decode_local_queue>},
      {"v1beta1", take<&Docs::local_queues, decode_local_queue>}},
     kKept | kNamedToo,
     kOfNamespace,
     shelf<&Kept::local_queues>},
    {kOfKueue,
     "Cohort",
     "cohorts",
     {{"v1beta2", take<&Docs::cohorts, as_v2<decode_cohort>>},
      {"v1beta1", take<&Docs::cohorts, as_v1<decode_cohort>>},
      {"v1alpha1", take<&Docs::cohorts, as_v1<decode_cohort>>}},
     kDecided,
     kOfCluster,
     shelf<&Kept::cohorts>},
    {kOfKueue,
     "Workload",
     "workloads",
     {{"v1beta2", take<&Docs::workloads, as_v2<decode_workload>>},
      {"v1beta1", take<&Docs::workloads, as_v1<decode_workload>>}},
     kKept | kNamedToo,
     kOfNamespace,
     shelf<&Kept::workloads>},
    {kOfKueue,
     "Topology",
     "topologies",
     {{"v1beta2", take<&Docs::topologies, decode_topology>},
      {"v1beta1", take<&Docs::topologies, decode_topology>},
      {"v1alpha1", take<&Docs::topologies, decode_topology>}},
     kDecided,
     kOfCluster,
     shelf<&Kept::topologies>},
    {kOfKueue,
     "AdmissionCheck",
     "admissionchecks",
     {{"v1beta2", take<&Docs::checks, decode_check>},
      {"v1beta1", take<&Docs::checks, decode_check>}},
     kDecided,
     kOfCluster,
     shelf<&Kept::checks>},
    {kOfKueue,
     "WorkloadPriorityClass",
     "workloadpriorityclasses",
     {{"v1beta2", take<&Docs::workload_classes>}, {"v1beta1", take<&Docs::workload_classes>}},
     kDecided,
     kOfCluster,
     shelf<&Kept::workload_classes>},
    // A file, or the one ConfigMap of an installation that holds it.
    {"config.kueue.x-k8s.io",
     "Configuration",
     "",
     {{"v1beta2", take<&Docs::queue_configs, as_v2<decode_queue_config>>},
      {"v1beta1", take<&Docs::queue_configs, as_v1<decode_queue_config>>}},
     0,
     kOfNamespace,
     shelf<&Kept::queue_configs>},
    {"", "ConfigMap", "configmaps", {{"v1", take<&Docs::queue_configs, decode_config_map>}}},

    // ---- groups and queues of other schedulers ----
    {"scheduling.x-k8s.io",
     "PodGroup",
     "podgroups",
     {{"v1alpha1", take<&Docs::groups, decode_coscheduling_group>}},
     kKept | kNamedToo,
     kOfNamespace,
     shelf<&Kept::groups>},
    {"scheduling.volcano.sh",
     "PodGroup",
     "podgroups",
     {{"v1beta1", take<&Docs::groups, decode_volcano_group>}},
     kKept,
     kOfNamespace,
     shelf<&Kept::groups>},
    {"scheduling.run.ai",
     "PodGroup",
     "podgroups",
     {{"v2alpha2", take<&Docs::groups, decode_kai_group>}},
     kKept,
     kOfNamespace,
     shelf<&Kept::groups>},
    {"scheduling.k8s.io",
     "PodGroup",
     "podgroups",
     {{"v1beta1", take<&Docs::groups, decode_upstream_group>},
      {"v1alpha2", take<&Docs::groups, decode_upstream_group>}},
     kKept | asked::kEachVersion,
     kOfNamespace,
     shelf<&Kept::groups>},
    {"scheduling.k8s.io",
     "Workload",
     "workloads",
     {{"v1beta1", take<&Docs::upstream_workloads>}},
     kDecided,
     kOfNamespace,
     shelf<&Kept::upstream_workloads>},
    {"scheduling.volcano.sh",
     "Queue",
     "queues",
     {{"v1beta1", take<&Docs::volcano_queues>}},
     kDecided,
     kOfCluster,
     shelf<&Kept::volcano_queues>},
    {"scheduling.run.ai",
     "Queue",
     "queues",
     {{"v2", take<&Docs::kai_queues>}},
     kDecided,
     kOfCluster,
     shelf<&Kept::kai_queues>},

    // ---- what makes pods ----
    {"apps",
     "Deployment",
     "deployments",
     {{"v1"}},
     kMakesPods,
     kOfNamespace,
     nullptr,
     &kDeploymentMaker},
    {"apps",
     "ReplicaSet",
     "replicasets",
     {{"v1"}},
     kMakesPods,
     kOfNamespace,
     nullptr,
     &kReplicasMaker},
    {"apps",
     "StatefulSet",
     "statefulsets",
     {{"v1"}},
     kMakesPods,
     kOfNamespace,
     nullptr,
     &kReplicasMaker},
    {"batch",
     "Job",
     "jobs",
     {{"v1", take<&Docs::jobs>}},
     kKept | kNamedToo,
     kOfNamespace,
     shelf<&Kept::jobs>,
     &kJobMaker},
    {"batch.volcano.sh",
     "Job",
     "jobs",
     {{"v1alpha1", take<&Docs::volcano_jobs>}},
     kDecided,
     kOfNamespace,
     shelf<&Kept::volcano_jobs>,
     &kVolcanoJobMaker},
    {"jobset.x-k8s.io",
     "JobSet",
     "jobsets",
     {{"v1alpha2", take<&Docs::makers, as_maker<kJobSetMaker>>}},
     kKept | kMakesPods,
     kOfNamespace,
     shelf<&Kept::makers>,
     &kJobSetMaker},
    {"workload.codeflare.dev",
     "AppWrapper",
     "appwrappers",
     {{"v1beta2", take<&Docs::makers, as_maker<kAppWrapperMaker>>}},
     kKept | kMakesPods,
     kOfNamespace,
     shelf<&Kept::makers>,
     &kAppWrapperMaker},
    {"batch", "CronJob", "cronjobs", {{"v1"}}, kMakesPods, kOfNamespace, nullptr, &kCronJobMaker},
    {"leaderworkerset.x-k8s.io",
     "LeaderWorkerSet",
     "leaderworkersets",
     {{"v1"}},
     kMakesPods,
     kOfNamespace,
     nullptr,
     &kLeaderWorkerSetMaker},
    {"ray.io", "RayJob", "rayjobs", {{"v1"}}, kMakesPods, kOfNamespace, nullptr, &kRayJobMaker},
    {"ray.io",
     "RayCluster",
     "rayclusters",
     {{"v1"}},
     kMakesPods,
     kOfNamespace,
     nullptr,
     &kRayClusterMaker},
    {"ray.io",
     "RayService",
     "rayservices",
     {{"v1"}},
     kMakesPods,
     kOfNamespace,
     nullptr,
     &kRayServiceMaker},
    {"kubeflow.org",
     "MPIJob",
     "mpijobs",
     {{"v2beta1"}, {"v1"}},
     kMakesPods,
     kOfNamespace,
     nullptr,
     &kMpiJobMaker},
    {"kubeflow.org", "TFJob", "tfjobs", {{"v1"}}, kMakesPods, kOfNamespace, nullptr, &kTfJobMaker},
    {"kubeflow.org",
     "PyTorchJob",
     "pytorchjobs",
     {{"v1"}},
     kMakesPods,
     kOfNamespace,
     nullptr,
     &kPyTorchJobMaker},
    {"kubeflow.org",
     "XGBoostJob",
     "xgboostjobs",
     {{"v1"}},
     kMakesPods,
     kOfNamespace,
     nullptr,
     &kXgBoostJobMaker},
    {"kubeflow.org",
     "PaddleJob",
     "paddlejobs",
     {{"v1"}},
     kMakesPods,
     kOfNamespace,
     nullptr,
     &kPaddleJobMaker},
    {"kubeflow.org",
     "JAXJob",
     "jaxjobs",
     {{"v1"}},
     kMakesPods,
     kOfNamespace,
     nullptr,
     &kJaxJobMaker},
    {"trainer.kubeflow.org",
     "TrainJob",
     "trainjobs",
     {{"v1alpha1"}},
     kMakesPods,
     kOfNamespace,
     nullptr,
     &kTrainJobMaker},
    {"sparkoperator.k8s.io",
     "SparkApplication",
     "sparkapplications",
     {{"v1beta2"}},
     kNamedToo,
     kOfNamespace,
     nullptr,
     &kSparkApplicationMaker},
    {"argoproj.io",
     "Rollout",
     "rollouts",
     {{"v1alpha1"}},
     kNamedToo,
     kOfNamespace,
     nullptr,
     &kDeploymentMaker},

    // ---- device claims ----
    {"resource.k8s.io", "ResourceClaim", "resourceclaims", {{"v1"}}, asked::kMaker},
    {"resource.k8s.io", "ResourceClaimTemplate", "resourceclaimtemplates", {{"v1"}}, asked::kMaker},
    {"resource.k8s.io", "DeviceClass", "deviceclasses", {{"v1"}}, asked::kMaker, kOfCluster},

    // ---- rules of the API server ----
    {"", "ResourceQuota", "resourcequotas", {{"v1"}}, asked::kRule},
    {"", "LimitRange", "limitranges", {{"v1"}}, asked::kRule},
    {"", "ServiceAccount", "serviceaccounts", {{"v1"}}, asked::kRule},
    {"node.k8s.io", "RuntimeClass", "runtimeclasses", {{"v1"}}, asked::kRule, kOfCluster},
    {"storage.k8s.io", "StorageClass", "storageclasses", {{"v1"}}, asked::kRule, kOfCluster},

    // ---- autoscalers ----
    {"karpenter.sh", "NodePool", "nodepools", {{"v1"}}, asked::kScaler, kOfCluster},
    {"karpenter.sh", "NodeClaim", "nodeclaims", {{"v1"}}, asked::kScaler, kOfCluster},
    {"autoscaling.x-k8s.io",
     "ProvisioningRequest",
     "provisioningrequests",
     {{"v1"}},
     asked::kScaler},

    // ---- the rest of what is asked for ----
    {"events.k8s.io", "Event", "events", {{"v1"}}, asked::kBeside},
    {"coordination.k8s.io", "Lease", "leases", {{"v1"}}, asked::kBeside},
    {"apiextensions.k8s.io",
     "CustomResourceDefinition",
     "customresourcedefinitions",
     {{"v1"}},
     asked::kBeside,
     kOfCluster},
    {"admissionregistration.k8s.io",
     "MutatingWebhookConfiguration",
     "mutatingwebhookconfigurations",
     {{"v1"}},
     asked::kBeside,
     kOfCluster},
    {"admissionregistration.k8s.io",
     "ValidatingWebhookConfiguration",
     "validatingwebhookconfigurations",
     {{"v1"}},
     asked::kBeside,
     kOfCluster},
    {"", "Service", "services", {{"v1"}}},
    {"discovery.k8s.io", "EndpointSlice", "endpointslices", {{"v1"}}},

    {"", "Pod", "pods", {{"v1", take<&Docs::pods>}}, kDecided | kNamedToo},
};

}  // namespace

std::span<const KindVersion> KindRow::read() const {
  std::size_t count = 0;
  while (count < std::size(versions) && !versions[count].version.empty()) ++count;
  return std::span(versions).first(count);
}

std::string KindRow::api_version(std::size_t version) const {
  const std::string name(versions[version].version);
  return group.empty() ? name : std::string(group) + '/' + name;
}

std::span<const KindRow> kind_table() { return kKindRows; }

const KindRow* find_kind(std::string_view group, std::string_view kind) {
  const auto it = std::find_if(std::begin(kKindRows), std::end(kKindRows), [&](const KindRow& row) {
    return row.kind == kind && row.group == group;
  });
  return it == std::end(kKindRows) ? nullptr : it;
}

const KindRow* find_kind_of(std::string_view api_version, std::string_view kind) {
  return find_kind(api_group(api_version), kind);
}

const std::vector<std::string>& maker_words() {
  static const std::vector<std::string> words = [] {
    std::vector<std::string> out;
    for (const KindRow& row : kind_table()) {
      if (row.maker == nullptr || !row.is_asked(asked::kMaker) || !row.is_asked(asked::kNamed)) {
        continue;
      }
      std::string word(row.kind);
      for (char& c : word) c = static_cast<char>(c | 0x20);  // letters alone
      if (std::find(out.begin(), out.end(), word) == out.end()) out.push_back(std::move(word));
    }
    return out;
  }();
  return words;
}

const PodMaker* find_maker(std::string_view api_version, std::string_view kind) {
  const KindRow* row = find_kind_of(api_version, kind);
  for (const KindRow& each : kKindRows) {
    if (row == nullptr && each.kind == kind && each.maker != nullptr) row = &each;
  }
  return row == nullptr ? nullptr : row->maker;
}

namespace {

struct QueuedKind {
  const KindRow* row;
  std::string before_name;  // "JobSet/"
};

const std::vector<QueuedKind>& queued_kinds() {
  static const std::vector<QueuedKind> kinds = [] {
    std::vector<QueuedKind> out;
    for (const KindRow& row : kKindRows) {
      if (row.maker == nullptr || !row.maker->queued()) continue;
      const Owner owner{
          .api_version = row.api_version(), .kind = std::string(row.kind), .name = {}, .uid = {}};
      out.push_back({&row, owner.text()});
    }
    return out;
  }();
  return kinds;
}

}  // namespace

const KindRow* find_queued(std::string_view owner) {
  const auto& kinds = queued_kinds();
  const auto it = std::find_if(kinds.begin(), kinds.end(), [owner](const QueuedKind& kind) {
    return owner.starts_with(kind.before_name);
  });
  return it == kinds.end() ? nullptr : it->row;
}

std::string_view name_of_owner(std::string_view owner) { return owner.substr(owner.find('/') + 1); }

std::vector<std::string> makers_named_by(const model::Labels& labels) {
  std::vector<std::string> out;
  if (labels.empty()) return out;
  for (const QueuedKind& kind : queued_kinds()) {
    const std::string_view label = kind.row->maker->pods_name_it;
    if (label.empty()) continue;
    const auto name = labels.find(label);
    if (name != labels.end()) out.push_back(kind.before_name + name->second);
  }
  return out;
}

}  // namespace berth::kinds
