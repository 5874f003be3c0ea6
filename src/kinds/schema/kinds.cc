// The built-in kinds, in the order in which discovery lists them.
#include <algorithm>

#include "base/check.h"
#include "kinds/schema/node.h"

namespace berth::sim {
namespace {

struct KindRow {
  std::string_view type;   // under io.k8s.api. unless it starts with another io.k8s.
  std::string_view group;  // of the API
  std::string_view plural;
  std::string_view shorts;  // "po,pods2"
  // N namespaced, S status, F finalize, A in the category all, X in api-extensions, s scale, o
  // another version is stored
  std::string_view flags;
  std::string_view subresources;
  std::string_view fields;   // selectable
  std::string_view columns;  // Name_With_Spaces[:type][*]; * is -o wide
};

constexpr std::string_view kEventFields =
    "involvedObject.kind,involvedObject.namespace,involvedObject.name,involvedObject.uid,"
    "involvedObject.apiVersion,involvedObject.resourceVersion,involvedObject.fieldPath,reason,"
    "reportingComponent,source,type";
constexpr std::string_view kEventColumns =
    "Last_Seen Type Reason Object Subobject* Source* Message First_Seen* Count* Name*";
constexpr std::string_view kWebhookColumns = "Name Webhooks:integer Age";
constexpr std::string_view kBindingColumns = "Name Role Age Users* Groups* ServiceAccounts*";
constexpr std::string_view kNameAndTime = "Name Created_At:date";  // what has no printer of its own
constexpr std::string_view kReplicaColumns =
    "Name Desired:integer Current:integer Ready:integer Age Containers* Images* Selector*";

constexpr KindRow kRows[] = {
    {"core.v1.Binding", "", "bindings", "", "N", "", "", kNameAndTime},
    {"core.v1.ConfigMap", "", "configmaps", "cm", "N", "", "", "Name Data Age"},
    {"core.v1.Endpoints", "", "endpoints", "ep", "N", "", "", "Name Endpoints Age"},
    {"core.v1.Event", "", "events", "ev", "N", "", kEventFields, kEventColumns},
    {"core.v1.LimitRange", "", "limitranges", "limits", "N", "", "", kNameAndTime},
    {"core.v1.Namespace", "", "namespaces", "ns", "SF", "", "status.phase", "Name Status Age"},
    {"core.v1.Node", "", "nodes", "no", "S", "", "spec.unschedulable",
     "Name Status Roles Age Version Internal-IP* External-IP* OS-Image* Kernel-Version* "
     "Container-Runtime*"},
    {"core.v1.PersistentVolumeClaim", "", "persistentvolumeclaims", "pvc", "NS", "", "",
     "Name Status Volume Capacity Access_Modes StorageClass VolumeAttributesClass Age VolumeMode*"},
    {"core.v1.PersistentVolume", "", "persistentvolumes", "pv", "S", "", "",
     "Name Capacity Access_Modes Reclaim_Policy Status Claim StorageClass VolumeAttributesClass "
     "Reason Age VolumeMode*"},
    {"core.v1.Pod", "", "pods", "po", "NSA", "binding,ephemeralcontainers,eviction,log,resize",
     "spec.nodeName,spec.restartPolicy,spec.schedulerName,spec.serviceAccountName,"
     "spec.hostNetwork,status.phase,status.podIP,status.podIPs,status.nominatedNodeName",
     "Name Ready Status Restarts Age IP* Node* Nominated_Node* Readiness_Gates*"},
    {"core.v1.PodTemplate", "", "podtemplates", "", "N", "", "",
     "Name Containers Images Pod_Labels"},
    {"core.v1.ReplicationController", "", "replicationcontrollers", "rc", "NSAs", "",
     "status.replicas", kReplicaColumns},
    {"core.v1.ResourceQuota", "", "resourcequotas", "quota", "NS", "", "",
     "Name Request Limit Age"},
    {"core.v1.Secret", "", "secrets", "", "N", "", "type", "Name Type Data Age"},
    {"core.v1.ServiceAccount", "", "serviceaccounts", "sa", "N", "token", "", "Name Age"},
    {"core.v1.Service", "", "services", "svc", "NSA", "", "spec.clusterIP,spec.type",
     "Name Type Cluster-IP External-IP Port(s) Age Selector*"},

    {"io.k8s.kube-aggregator.pkg.apis.apiregistration.v1.APIService", "apiregistration.k8s.io",
     "apiservices", "", "SX", "", "", "Name Service Available Age"},

    {"apps.v1.ControllerRevision", "apps", "controllerrevisions", "", "N", "", "",
     "Name Controller Revision Age"},
    {"apps.v1.DaemonSet", "apps", "daemonsets", "ds", "NSA", "", "",
     "Name Desired:integer Current:integer Ready:integer Up-to-date:integer Available:integer "
     "Node_Selector Age Containers* Images* Selector*"},
    {"apps.v1.Deployment", "apps", "deployments", "deploy", "NSAs", "", "",
     "Name Ready Up-to-date Available Age Containers* Images* Selector*"},
    {"apps.v1.ReplicaSet", "apps", "replicasets", "rs", "NSAs", "", "status.replicas",
     kReplicaColumns},
    {"apps.v1.StatefulSet", "apps", "statefulsets", "sts", "NSAs", "", "",
     "Name Ready Age Containers* Images*"},

    {"events.v1.Event", "events.k8s.io", "events", "ev", "N", "", kEventFields, kEventColumns},

    {"autoscaling.v2.HorizontalPodAutoscaler", "autoscaling", "horizontalpodautoscalers", "hpa",
     "NSA", "", "", "Name Reference Targets MinPods MaxPods Replicas Age"},
    {"autoscaling.v1.HorizontalPodAutoscaler", "autoscaling", "horizontalpodautoscalers", "hpa",
     "NSAo", "", "", "Name Reference Targets MinPods MaxPods Replicas Age"},

    {"batch.v1.CronJob", "batch", "cronjobs", "cj", "NSA", "", "",
     "Name Schedule Timezone Suspend:boolean Active:integer Last_Schedule Age Containers* Images* "
     "Selector*"},
    {"batch.v1.Job", "batch", "jobs", "", "NSA", "", "status.successful",
     "Name Status Completions Duration Age Containers* Images* Selector*"},

    {"certificates.v1.CertificateSigningRequest", "certificates.k8s.io",
     "certificatesigningrequests", "csr", "S", "approval", "spec.signerName",
     "Name Age SignerName Requestor RequestedDuration Condition"},

    {"networking.v1.IngressClass", "networking.k8s.io", "ingressclasses", "", "", "", "",
     "Name Controller Parameters Age"},
    {"networking.v1.Ingress", "networking.k8s.io", "ingresses", "ing", "NS", "", "",
     "Name Class Hosts Address Ports Age"},
    {"networking.v1.NetworkPolicy", "networking.k8s.io", "networkpolicies", "netpol", "N", "", "",
     "Name Pod-Selector Age"},

    {"policy.v1.PodDisruptionBudget", "policy", "poddisruptionbudgets", "pdb", "NS", "", "",
     "Name Min_Available Max_Unavailable Allowed_Disruptions:integer Age"},

    {"rbac.v1.ClusterRoleBinding", "rbac.authorization.k8s.io", "clusterrolebindings", "", "", "",
     "", kBindingColumns},
    {"rbac.v1.ClusterRole", "rbac.authorization.k8s.io", "clusterroles", "", "", "", "",
     kNameAndTime},
    {"rbac.v1.RoleBinding", "rbac.authorization.k8s.io", "rolebindings", "", "N", "", "",
     kBindingColumns},
    {"rbac.v1.Role", "rbac.authorization.k8s.io", "roles", "", "N", "", "", kNameAndTime},

    {"storage.v1.CSIDriver", "storage.k8s.io", "csidrivers", "", "", "", "",
     "Name AttachRequired:boolean PodInfoOnMount:boolean StorageCapacity:boolean TokenRequests "
     "RequiresRepublish:boolean Modes Age"},
    {"storage.v1.CSINode", "storage.k8s.io", "csinodes", "", "", "", "",
     "Name Drivers:integer Age"},
    {"storage.v1.CSIStorageCapacity", "storage.k8s.io", "csistoragecapacities", "", "N", "", "",
     "Name StorageClassName Capacity"},
    {"storage.v1.StorageClass", "storage.k8s.io", "storageclasses", "sc", "", "", "",
     "Name Provisioner ReclaimPolicy VolumeBindingMode AllowVolumeExpansion Age"},
    {"storage.v1.VolumeAttachment", "storage.k8s.io", "volumeattachments", "", "S", "", "",
     "Name Attacher PV Node Attached:boolean Age"},

    {"admissionregistration.v1.MutatingWebhookConfiguration", "admissionregistration.k8s.io",
     "mutatingwebhookconfigurations", "", "X", "", "", kWebhookColumns},
    {"admissionregistration.v1.ValidatingWebhookConfiguration", "admissionregistration.k8s.io",
     "validatingwebhookconfigurations", "", "X", "", "", kWebhookColumns},

    {"io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.CustomResourceDefinition",
     "apiextensions.k8s.io", "customresourcedefinitions", "crd,crds", "SX", "", "", kNameAndTime},

    {"scheduling.v1.PriorityClass", "scheduling.k8s.io", "priorityclasses", "pc", "", "", "",
     "Name Value:integer Global-Default:boolean Age PreemptionPolicy"},
    {"scheduling.v1beta1.PodGroup", "scheduling.k8s.io", "podgroups", "", "NS", "", "",
     "Name Policy Workload Status Age"},
    {"scheduling.v1beta1.Workload", "scheduling.k8s.io", "workloads", "", "N", "", "", "Name Age"},

    {"coordination.v1.Lease", "coordination.k8s.io", "leases", "", "N", "", "", "Name Holder Age"},
    {"node.v1.RuntimeClass", "node.k8s.io", "runtimeclasses", "", "", "", "", "Name Handler Age"},
    {"discovery.v1.EndpointSlice", "discovery.k8s.io", "endpointslices", "", "N", "", "",
     "Name AddressType Ports Endpoints Age"},

    {"flowcontrol.v1.FlowSchema", "flowcontrol.apiserver.k8s.io", "flowschemas", "", "S", "", "",
     "Name PriorityLevel MatchingPrecedence DistinguisherMethod Age MissingPL"},
    {"flowcontrol.v1.PriorityLevelConfiguration", "flowcontrol.apiserver.k8s.io",
     "prioritylevelconfigurations", "", "S", "", "",
     "Name Type NominalConcurrencyShares Queues HandSize QueueLengthLimit Age"},

    {"resource.v1.DeviceClass", "resource.k8s.io", "deviceclasses", "", "", "", "", "Name Age"},
    {"resource.v1.ResourceClaim", "resource.k8s.io", "resourceclaims", "", "NS", "", "",
     "Name State Age"},
    {"resource.v1.ResourceClaimTemplate", "resource.k8s.io", "resourceclaimtemplates", "", "N", "",
     "", "Name Age"},
    {"resource.v1.ResourceSlice", "resource.k8s.io", "resourceslices", "", "", "",
     "spec.nodeName,spec.driver,spec.pool.name", "Name Node Driver Pool Age"},
};

std::vector<std::string> split_words(std::string_view text, char by) {
  std::vector<std::string> out;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find(by), text.size());
    out.emplace_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return out;
}

std::vector<Column> read_columns(std::string_view text) {
  std::vector<Column> out;
  for (std::string word : split_words(text, ' ')) {
    Column column;
    if (word.back() == '*') {
      column.priority = 1;
      word.pop_back();
    }
    if (const std::size_t colon = word.find(':'); colon != std::string::npos) {
      column.type = word.substr(colon + 1);
      word.resize(colon);
    }
    std::replace(word.begin(), word.end(), '_', ' ');
    column.name = word;
    if (word == "Name") column.format = "name";
    out.push_back(std::move(column));
  }
  return out;
}

bool contains(std::string_view flags, char flag) {
  return flags.find(flag) != std::string_view::npos;
}

KindPtr make_kind(const KindRow& row) {
  auto kind = std::make_shared<Kind>();
  const std::string full = row.type.starts_with("io.k8s.") ? std::string(row.type)
                                                           : "io.k8s.api." + std::string(row.type);
  const std::size_t dot = full.rfind('.');
  kind->group = row.group;
  kind->kind = full.substr(dot + 1);
  kind->version = full.substr(full.rfind('.', dot - 1) + 1, dot - full.rfind('.', dot - 1) - 1);
  kind->list_kind = kind->kind + "List";
  kind->plural = row.plural;
  kind->singular = kind->kind;
  std::transform(kind->singular.begin(), kind->singular.end(), kind->singular.begin(), [](char c) {
    return c >= 'A' && c <= 'Z' ? static_cast<char>(c + ('a' - 'A')) : c;
  });
  kind->short_names = split_words(row.shorts, ',');
  if (contains(row.flags, 'A')) kind->categories.emplace_back("all");
  if (contains(row.flags, 'X')) kind->categories.emplace_back("api-extensions");
  kind->namespaced = contains(row.flags, 'N');
  kind->status = contains(row.flags, 'S');
  kind->finalize = contains(row.flags, 'F');
  kind->storage = !contains(row.flags, 'o');
  if (contains(row.flags, 's')) {
    kind->scale = {".spec.replicas", ".status.replicas", ".spec.selector"};
  }
  kind->subresources = split_words(row.subresources, ',');
  kind->selectable_fields = split_words(row.fields, ',');
  kind->columns = read_columns(row.columns);
  const Schema* schema = builtin_type(full);
  BERTH_ASSERT(schema != nullptr, "every built-in kind has a type");
  kind->schema = std::shared_ptr<const Schema>(std::shared_ptr<const Schema>(), schema);
  return kind;
}

}  // namespace

const std::vector<KindPtr>& builtin_kinds() {
  static const std::vector<KindPtr> kinds = [] {
    std::vector<KindPtr> out;
    for (const KindRow& row : kRows) out.push_back(make_kind(row));
    return out;
  }();
  return kinds;
}

}  // namespace berth::sim
