#include "people/why/server_rules.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "text/yaml.h"

namespace berth::people {
namespace {

using model::Reason;

// Objects of a YAML text.
class YamlObjects : public ObjectSource {
 public:
  explicit YamlObjects(std::string_view yaml) {
    auto parsed = text::parse_yaml(yaml);
    EXPECT_TRUE(parsed.ok()) << yaml;
    if (parsed.ok()) documents_ = std::move(*parsed);
  }
  std::optional<RawObject> find(std::string_view kind, std::string_view ns,
                                std::string_view name) const override {
    for (const RawObject& raw : of_kind(kind)) {
      if (raw.ns == ns && raw.name == name) return raw;
    }
    return std::nullopt;
  }
  std::vector<RawObject> of_kind(std::string_view kind) const override {
    std::vector<RawObject> out;
    for (const text::Document& document : documents_) {
      const text::Value& root = document.root();
      if (root.find("kind")->string() != kind) continue;
      const text::Value& meta = *root.find("metadata");
      const auto text = [&meta](const char* key) {
        const text::Value* found = meta.find(key);
        return found == nullptr ? std::string() : std::string(found->string());
      };
      out.push_back({.api_version = "v1",
                     .kind = std::string(kind),
                     .ns = text("namespace"),
                     .name = text("name"),
                     .uid = text("uid"),
                     .resource_version = {},
                     .value = &root});
    }
    return out;
  }

 private:
  std::vector<text::Document> documents_;
};

constexpr const char* kJob =
    "kind: Job\n"
    "metadata: {name: train, namespace: team}\n"
    "spec: {template: {spec: {containers: [{name: main, resources: {limits: {nvidia.com/gpu: "
    "2}}}]}}"
    "}\n---\n";

// Of a Job train in the namespace team, with its template at the usual place.
std::optional<Held> held_of(const std::string& yaml, const std::string& kind = "Job") {
  const YamlObjects objects(yaml);
  const bool pod = kind == "Pod";
  return ServerRules(
             objects,
             {{kind, "team", "train",
               pod ? std::vector<std::string>() : std::vector<std::string>{"spec", "template"}, 0}})
      .held();
}

std::string message_of_held(const std::string& yaml, const std::string& kind = "Job") {
  const std::optional<Held> held = held_of(yaml, kind);
  return held ? held->message : "";
}

// A Job whose only container says this of its resources; more: of the pod's spec.
std::string job(const std::string& resources, const std::string& more = "",
                const std::string& spec = "") {
  return "kind: Job\nmetadata: {name: train, namespace: team}\nspec: {" + spec +
         "template: {spec: {" + more + "containers: [{name: main, resources: " + resources +
         "}]}}}\n---\n";
}

std::string quota(const std::string& hard, const std::string& more = "") {
  return "kind: ResourceQuota\nmetadata: {name: q, namespace: team}\nspec: {" + more + "hard: {" +
         hard + "}}\n---\n";
}

std::string range(const std::string& item, const std::string& type = "Container") {
  return "kind: LimitRange\nmetadata: {name: r, namespace: team}\nspec: {limits: [{type: " + type +
         ", " + item + "}]}\n---\n";
}

std::string other_pod(const std::string& name, const std::string& resources,
                      const std::string& phase = "Running", const std::string& more = "") {
  return "kind: Pod\nmetadata: {name: " + name + ", namespace: team, uid: u-" + name +
         "}\nspec: {nodeName: n1, " + more + "containers: [{name: main, resources: " + resources +
         "}]}\nstatus: {phase: " + phase + "}\n---\n";
}

constexpr const char* kOneGpu = "{limits: {nvidia.com/gpu: 1}}";

// ---- ResourceQuota ----

TEST(ServerRules, AQuotaCountsWhatRunsAndWhatIsYetToBeMade) {
  const std::string two = quota("requests.nvidia.com/gpu: 2");
  EXPECT_EQ(message_of_held(kJob + two), "");
  EXPECT_EQ(
      message_of_held(kJob + two + other_pod("a", kOneGpu)),
      "the ResourceQuota q allows 2 requests.nvidia.com/gpu in the namespace team, 1 is used; "
      "its pod asks for 2");
  const auto held = held_of(kJob + quota("requests.nvidia.com/gpu: 1"));
  ASSERT_TRUE(held);
  EXPECT_EQ(held->reason, Reason::kExceedsMaxQuota);
  EXPECT_TRUE(held->never);
  EXPECT_EQ(held->enough, "2");
  const auto some = held_of(job(kOneGpu, "", "parallelism: 4, completions: 4, ") + two);
  ASSERT_TRUE(some);
  EXPECT_EQ(some->too_many, 2);
  EXPECT_EQ(some->reason, Reason::kWaitingForQuota);
}

TEST(ServerRules, AQuotaOfAnotherNamespaceIsNotMine) {
  EXPECT_EQ(message_of_held(std::string(kJob) +
                            "kind: ResourceQuota\nmetadata: {name: q, namespace: other}\n"
                            "spec: {hard: {pods: 0}}\n"),
            "");
}

// Pods that ended hold nothing; as objects they are counted still.
TEST(ServerRules, EndedPodsCountAsObjectsAlone) {
  const std::string ended = other_pod("a", kOneGpu, "Succeeded");
  EXPECT_EQ(message_of_held(kJob + quota("pods: 1") + ended), "");
  EXPECT_EQ(message_of_held(kJob + quota("requests.nvidia.com/gpu: 2") + ended), "");
  EXPECT_NE(message_of_held(kJob + quota("count/pods: 1") + ended), "");
  EXPECT_EQ(message_of_held(kJob + quota("count/jobs.batch: 0, requests.storage: 0, services: 0")),
            "")
      << "not about pods";
}

// Kubernetes takes such a line and never counts it.
TEST(ServerRules, LimitsOfExtendedResourcesAreNotCounted) {
  EXPECT_EQ(message_of_held(kJob + quota("limits.nvidia.com/gpu: 1")), "");
  EXPECT_NE(message_of_held(job("{limits: {cpu: 2}}") + quota("limits.cpu: 1")), "");
  EXPECT_NE(message_of_held(job("{limits: {ephemeral-storage: 2Gi}}") +
                            quota("limits.ephemeral-storage: 1Gi")),
            "");
}

TEST(ServerRules, ScopesOfService) {
  const std::string none = "pods: 0";
  // GPUs make no class of service.
  EXPECT_NE(message_of_held(kJob + quota(none, "scopes: [BestEffort], ")), "");
  EXPECT_EQ(message_of_held(kJob + quota(none, "scopes: [NotBestEffort], ")), "");
  const std::string stated = job("{requests: {cpu: 1}, limits: {nvidia.com/gpu: 2}}");
  EXPECT_EQ(message_of_held(stated + quota(none, "scopes: [BestEffort], ")), "");
  EXPECT_NE(message_of_held(stated + quota(none, "scopes: [NotBestEffort], ")), "");
  EXPECT_EQ(message_of_held(job("{requests: {cpu: 0}}") + quota(none, "scopes: [NotBestEffort], ")),
            "")
      << "nothing of a resource is none";
}

TEST(ServerRules, ScopesOfPodsThatEnd) {
  const std::string ends = job(kOneGpu, "activeDeadlineSeconds: 60, ");
  EXPECT_NE(message_of_held(ends + quota("pods: 0", "scopes: [Terminating], ")), "");
  EXPECT_EQ(message_of_held(ends + quota("pods: 0", "scopes: [NotTerminating], ")), "");
  // The deadline of a Job is not one of its pods.
  const std::string job_ends = job(kOneGpu, "", "activeDeadlineSeconds: 60, ");
  EXPECT_EQ(message_of_held(job_ends + quota("pods: 0", "scopes: [Terminating], ")), "");
  EXPECT_NE(message_of_held(job_ends + quota("pods: 0", "scopes: [NotTerminating], ")), "");
}

TEST(ServerRules, ScopesOfPriority) {
  const auto selects = [](const std::string& rest) {
    return quota("pods: 0",
                 "scopeSelector: {matchExpressions: [{scopeName: PriorityClass, " + rest + "}]}, ");
  };
  const std::string high = job(kOneGpu, "priorityClassName: high, ");
  EXPECT_NE(message_of_held(high + selects("operator: In, values: [high]")), "");
  EXPECT_EQ(message_of_held(high + selects("operator: In, values: [low]")), "");
  EXPECT_EQ(message_of_held(high + selects("operator: NotIn, values: [high]")), "");
  EXPECT_NE(message_of_held(high + selects("operator: NotIn, values: [low]")), "");
  EXPECT_NE(message_of_held(high + selects("operator: Exists")), "");
  EXPECT_EQ(message_of_held(high + selects("operator: DoesNotExist")), "");
  EXPECT_NE(message_of_held(kJob + selects("operator: NotIn, values: [low]")), "") << "of no class";
  EXPECT_EQ(message_of_held(kJob + selects("operator: Exists")), "");
  EXPECT_EQ(message_of_held(kJob + quota("pods: 0", "scopes: [PriorityClass], ")), "");
  // The API server gives it the class of all that name none.
  const std::string usual =
      "kind: PriorityClass\nmetadata: {name: usual}\nvalue: 5\nglobalDefault: true\n---\n";
  EXPECT_NE(message_of_held(kJob + usual + selects("operator: In, values: [usual]")), "");
}

// A usual guard of clusters: nobody's pods may refer to other namespaces.
TEST(ServerRules, AScopeOfOtherNamespacesIsNotEverybodys) {
  const std::string none = quota("pods: 0", "scopes: [CrossNamespacePodAffinity], ");
  EXPECT_EQ(message_of_held(kJob + none), "");
  EXPECT_EQ(message_of_held(kJob + quota("pods: 0", "scopes: [VolumeAttributesClass], ")), "");
  const auto near = [](const std::string& term) {
    return job(kOneGpu,
               "affinity: {podAntiAffinity: {requiredDuringSchedulingIgnoredDuringExecution: "
               "[{topologyKey: kubernetes.io/hostname, labelSelector: {}" +
                   term + "}]}}, ");
  };
  EXPECT_EQ(message_of_held(near("") + none), "");
  EXPECT_NE(message_of_held(near(", namespaces: [other]") + none), "");
  EXPECT_NE(message_of_held(near(", namespaceSelector: {}") + none), "");
}

// A sidecar without cpu is enough for the API server to refuse the pod.
TEST(ServerRules, EveryContainerStatesWhatAQuotaCounts) {
  const std::string two =
      "kind: Job\nmetadata: {name: train, namespace: team}\n"
      "spec: {template: {spec: {containers: [{name: main, resources: {limits: {cpu: 1}}}, "
      "{name: side}]}}}\n---\n";
  EXPECT_EQ(message_of_held(two + quota("requests.cpu: 8")),
            "the ResourceQuota q counts requests.cpu, which container side does not state");
  EXPECT_EQ(message_of_held(job("{limits: {cpu: 1}}") + quota("requests.cpu: 8")), "")
      << "a limit stands in for a request";
  EXPECT_NE(message_of_held(job("{requests: {cpu: 1}}") + quota("limits.cpu: 8")), "");
  EXPECT_EQ(message_of_held(job("{requests: {cpu: 0}}") + quota("cpu: 8")), "") << "0 is stated";
  EXPECT_EQ(message_of_held(job("{}", "resources: {limits: {cpu: 1}}, ") + quota("limits.cpu: 8")),
            "")
      << "the pod as a whole states it";
  EXPECT_EQ(message_of_held(kJob + quota("requests.nvidia.com/gpu: 8, ephemeral-storage: 1Gi")), "")
      << "cpu and memory alone have to be";
}

TEST(ServerRules, HugeAmountsDoNotWrap) {
  const std::string huge = "{requests: {memory: 9007199254740992}}";
  std::string yaml = job(huge, "", "parallelism: 256, ") + quota("requests.memory: 1Ei");
  for (int i = 0; i < 1100; ++i) yaml += other_pod("p" + std::to_string(i), huge);
  EXPECT_NE(message_of_held(yaml), "");
}

// Its pods belong to a ReplicaSet; they are made, and asked for once.
TEST(ServerRules, PodsOfADeploymentAreCountedOnce) {
  const std::string deployment =
      "kind: Deployment\nmetadata: {name: train, namespace: team}\n"
      "spec: {replicas: 2, template: {spec: {containers: [{name: main, resources: "
      "{limits: {nvidia.com/gpu: 1}}}]}}}\n---\n";
  const auto of_set = [](const std::string& name, const std::string& set) {
    return "kind: Pod\nmetadata: {name: " + name + ", namespace: team, uid: u-" + name +
           ", ownerReferences: [{kind: ReplicaSet, name: " + set +
           "}]}\nspec: {nodeName: n1, containers: [{name: main, resources: {limits: "
           "{nvidia.com/gpu: 1}}}]}\n---\n";
  };
  const std::string both = of_set("train-6f-x", "train-6f") + of_set("train-6f-z", "train-6f");
  const std::string two = quota("requests.nvidia.com/gpu: 2");
  EXPECT_EQ(message_of_held(deployment + two + both, "Deployment"), "");
  const std::string others = of_set("a", "train-two-6f") + of_set("b", "train-two-6f");
  EXPECT_NE(message_of_held(deployment + two + others, "Deployment"), "");
  const std::string owned =
      "kind: ReplicaSet\nmetadata: {name: odd, namespace: team, ownerReferences: [{kind: "
      "Deployment, name: train}]}\n---\n";
  EXPECT_EQ(message_of_held(deployment + two + owned + of_set("a", "odd") + of_set("b", "odd"),
                            "Deployment"),
            "");
}

// ---- LimitRange ----

// The container's resources as the API server stores them.
std::string stored(const std::string& resources, const std::string& item) {
  const YamlObjects objects(job(resources) + range(item));
  const auto changes =
      ServerRules(objects, {{"Job", "team", "train", {"spec", "template"}, 0}}).filled_in(false);
  if (changes.empty()) return "as written";
  Tree after = *changes.front().after;
  const Tree* found = below(&after, {"spec", "template", "spec", "containers", "0", "resources"});
  text::JsonWriter json;
  if (found != nullptr) found->write(json);
  return std::move(json).take();
}

TEST(ServerRules, ARangeFillsInWhatIsNotStated) {
  EXPECT_EQ(stored("{}", "default: {cpu: 2}"), R"({"limits":{"cpu":"2"},"requests":{"cpu":"2"}})");
  EXPECT_EQ(stored("{}", "default: {cpu: 2}, defaultRequest: {cpu: 500m}"),
            R"({"limits":{"cpu":"2"},"requests":{"cpu":"500m"}})");
  EXPECT_EQ(stored("{}", "max: {memory: 4Gi}"),
            R"({"limits":{"memory":"4Gi"},"requests":{"memory":"4Gi"}})");
  EXPECT_EQ(stored("{}", "min: {memory: 1Gi}"), R"({"requests":{"memory":"1Gi"}})");
  EXPECT_EQ(stored("{limits: {cpu: 1}}", "default: {cpu: 2}, defaultRequest: {cpu: 500m}"),
            "as written")
      << "a limit that is stated is the request";
  EXPECT_EQ(stored("{requests: {cpu: 1}}", "default: {cpu: 2}, defaultRequest: {cpu: 500m}"),
            R"({"requests":{"cpu":1},"limits":{"cpu":"2"}})");
}

TEST(ServerRules, ARangeBoundsContainers) {
  EXPECT_EQ(message_of_held(kJob + range("max: {nvidia.com/gpu: 1}")),
            "the LimitRange r allows a container at most 1 nvidia.com/gpu, and container main asks "
            "for 2");
  EXPECT_EQ(
      message_of_held(kJob + range("min: {nvidia.com/gpu: 4}")),
      "the LimitRange r allows a container at least 4 nvidia.com/gpu, and container main asks "
      "for 2");
  EXPECT_EQ(message_of_held(kJob + range("max: {nvidia.com/gpu: 2}, min: {nvidia.com/gpu: 2}")),
            "");
  EXPECT_EQ(message_of_held(kJob + range("max: {storage: 1Gi}", "PersistentVolumeClaim")), "");
}

// The limit that is filled in is below what the container asks for: the pod is refused for that.
TEST(ServerRules, ADefaultLimitBelowTheRequest) {
  const auto held = held_of(job("{requests: {cpu: 4}}") + range("default: {cpu: 2}"));
  ASSERT_TRUE(held);
  EXPECT_EQ(held->message,
            "the LimitRange r fills in a limit of 2 cpu, and container main asks for 4");
  EXPECT_EQ(held->enough, "2");
}

TEST(ServerRules, ARangeBoundsPods) {
  const std::string two =
      "kind: Job\nmetadata: {name: train, namespace: team}\n"
      "spec: {template: {spec: {containers: [{name: a, resources: {limits: {cpu: 3}}}, "
      "{name: b, resources: {limits: {cpu: 2}}}]}}}\n---\n";
  EXPECT_EQ(message_of_held(two + range("max: {cpu: 4}", "Pod")),
            "the LimitRange r allows a pod at most 4 cpu, and its pod asks for 5");
  EXPECT_EQ(message_of_held(two + range("max: {cpu: 5}", "Pod")), "");
  EXPECT_EQ(message_of_held(two + range("min: {cpu: 6}", "Pod")),
            "the LimitRange r allows a pod at least 6 cpu, and its pod asks for 5");
  // Nothing is filled in for pods: what is bounded has to be stated.
  EXPECT_EQ(message_of_held(two + range("max: {memory: 1Gi}", "Pod")),
            "the LimitRange r bounds memory, and its pod states no limit of it");
  EXPECT_EQ(message_of_held(two + range("min: {memory: 1Gi}", "Pod")),
            "the LimitRange r bounds memory, and its pod states no request of it");
}

TEST(ServerRules, ARangeBoundsLimitsByRequests) {
  const std::string twice = range("maxLimitRequestRatio: {cpu: 2}");
  const auto held = held_of(job("{requests: {cpu: 1}, limits: {cpu: 3}}") + twice);
  ASSERT_TRUE(held);
  EXPECT_EQ(held->message,
            "the LimitRange r allows a container a limit of cpu at most 2 times its request, and "
            "container main asks for 1 with a limit of 3");
  EXPECT_EQ(held->enough, "1500m");
  EXPECT_EQ(held->name, "3");
  EXPECT_EQ(message_of_held(job("{requests: {cpu: 1}, limits: {cpu: 2}}") + twice), "");
  EXPECT_EQ(message_of_held(job("{requests: {cpu: 1}, limits: {cpu: 2}}") +
                            range("maxLimitRequestRatio: {cpu: 1500m}")),
            "the LimitRange r allows a container a limit of cpu at most 1500m times its request, "
            "and container main asks for 1 with a limit of 2");
  EXPECT_EQ(message_of_held(job("{requests: {cpu: 1}}") + twice),
            "the LimitRange r bounds cpu, and container main states no limit of it");
}

// What the API server has taken already it does not refuse.
TEST(ServerRules, APodThatExistsIsNotHeldByRangesAndQuota) {
  const std::string rules = range("max: {nvidia.com/gpu: 1}") + quota("pods: 0");
  const auto pod = [](const std::string& uid, const std::string& status) {
    return "kind: Pod\nmetadata: {name: train, namespace: team" + uid +
           "}\nspec: {containers: [{name: main, resources: {limits: {nvidia.com/gpu: 2}}}]}\n" +
           status + "---\n";
  };
  EXPECT_NE(message_of_held(pod("", "") + rules, "Pod"), "");
  EXPECT_EQ(message_of_held(pod(", uid: u1", "") + rules, "Pod"), "");
  EXPECT_EQ(message_of_held(pod("", "status: {phase: Pending}\n") + rules, "Pod"), "");
}

// ---- RuntimeClass ----

std::string runtime(const std::string& rest) {
  return "kind: RuntimeClass\nmetadata: {name: nvidia}\nhandler: nvidia\n" + rest + "---\n";
}

TEST(ServerRules, AClassThatDoesNotExist) {
  const std::string asks = job(kOneGpu, "runtimeClassName: nvidai, ");
  const auto held = held_of(asks + runtime(""));
  ASSERT_TRUE(held);
  EXPECT_EQ(held->message, "the RuntimeClass nvidai does not exist");
  EXPECT_EQ(held->name, "nvidia");
  EXPECT_EQ(message_of_held(asks), "") << "no class was read: nothing is known of them";
  EXPECT_EQ(message_of_held(job(kOneGpu, "runtimeClassName: nvidia, ") + runtime("")), "");
}

std::string spec_with_class(const std::string& more, const std::string& rest,
                            const std::string& uid = "") {
  const YamlObjects objects("kind: Pod\nmetadata: {name: train, namespace: team" + uid +
                            "}\nspec: {runtimeClassName: nvidia" + more + "}\n---\n" +
                            runtime(rest));
  const auto changes = ServerRules(objects, {{"Pod", "team", "train", {}, 0}}).filled_in(false);
  if (changes.empty()) return "as written";
  text::JsonWriter json;
  changes.front().after->find("spec")->write(json);
  return std::move(json).take();
}

TEST(ServerRules, AClassAddsItsOverheadLabelsAndTolerations) {
  EXPECT_EQ(spec_with_class("", "overhead: {podFixed: {memory: 120Mi}}\n"),
            R"({"runtimeClassName":"nvidia","overhead":{"memory":"120Mi"}})");
  EXPECT_EQ(spec_with_class(", overhead: {memory: 1Mi}", "overhead: {podFixed: {memory: 120Mi}}\n"),
            "as written");
  EXPECT_EQ(spec_with_class("",
                            "scheduling: {nodeSelector: {pool: gpu}, tolerations: [{key: gpu}]}"
                            "\n"),
            R"({"runtimeClassName":"nvidia","nodeSelector":{"pool":"gpu"},)"
            R"("tolerations":[{"key":"gpu"}]})");
  EXPECT_EQ(
      spec_with_class(", tolerations: [{key: gpu}]", "scheduling: {tolerations: [{key: gpu}]}\n"),
      "as written")
      << "it has that one";
  EXPECT_EQ(spec_with_class("", "scheduling: {nodeSelector: {pool: gpu}}\n", ", uid: u1"),
            "as written")
      << "the class was changed after the pod was made";
}

TEST(ServerRules, AClassForOtherNodesThanItAsksFor) {
  const std::string gpu = runtime("scheduling: {nodeSelector: {pool: gpu}}\n");
  const std::string asks = "runtimeClassName: nvidia, nodeSelector: {pool: ";
  EXPECT_EQ(
      message_of_held(job(kOneGpu, asks + "cpu}, ") + gpu),
      "the RuntimeClass nvidia is for nodes with the label pool=gpu, and its nodeSelector asks "
      "for pool=cpu");
  EXPECT_EQ(message_of_held(job(kOneGpu, asks + "gpu}, ") + gpu), "");
}

// ---- claims ----

std::string storage(const std::string& name, const std::string& rest) {
  return "kind: StorageClass\nmetadata: {name: " + name + "}\n" + rest + "---\n";
}

std::string claim(const std::string& spec, const std::string& status = "status: {phase: Pending}\n",
                  const std::string& name = "data") {
  return "kind: PersistentVolumeClaim\nmetadata: {name: " + name + ", namespace: team}\nspec: {" +
         spec + "}\n" + status + "---\n";
}

const std::string kUsesData =
    job(kOneGpu, "volumes: [{name: d, persistentVolumeClaim: {claimName: data}}], ");
constexpr const char* kWaits = "provisioner: disks\nvolumeBindingMode: WaitForFirstConsumer\n";
constexpr const char* kAtOnce = "provisioner: disks\n";
constexpr const char* kLocal =
    "provisioner: kubernetes.io/no-provisioner\nvolumeBindingMode: WaitForFirstConsumer\n";

TEST(ServerRules, AStorageClassThatDoesNotExist) {
  const auto held = held_of(kUsesData + claim("storageClassName: fsat") + storage("fast", kWaits));
  ASSERT_TRUE(held);
  EXPECT_EQ(held->reason, Reason::kVolumeMissing);
  EXPECT_EQ(held->message, "the claim data is not bound: its storage class fsat does not exist");
  EXPECT_EQ(message_of_held(kUsesData + claim("storageClassName: fsat")), "")
      << "no class was read: nothing is known of them";
  EXPECT_EQ(message_of_held(kUsesData + claim("storageClassName: fast") + storage("fast", kWaits)),
            "");
  EXPECT_EQ(message_of_held(kUsesData + claim("storageClassName: fsat, volumeName: pv-1") +
                            storage("fast", kWaits)),
            "")
      << "it is bound";
}

TEST(ServerRules, AClassThatBindsAtOnce) {
  const std::string fast = storage("fast", kAtOnce);
  EXPECT_EQ(message_of_held(kUsesData + claim("storageClassName: fast") + fast),
            "the claim data is not bound: its storage class fast binds claims at once, and did not "
            "bind this one");
  EXPECT_EQ(message_of_held(kUsesData + claim("storageClassName: fast", "") + fast), "")
      << "a manifest that nobody has applied";
}

TEST(ServerRules, VolumesThatNobodyMakes) {
  const std::string local = storage("local", kLocal);
  const std::string wants = kUsesData + claim("storageClassName: local") + local;
  const auto volume = [](const std::string& spec) {
    return "kind: PersistentVolume\nmetadata: {name: pv}\nspec: {" + spec + "}\n---\n";
  };
  EXPECT_EQ(message_of_held(wants),
            "the claim data is not bound: no PersistentVolume of its storage class local is free, "
            "and nobody makes one");
  EXPECT_EQ(message_of_held(wants + volume("storageClassName: local")), "");
  EXPECT_NE(message_of_held(wants + volume("storageClassName: other")), "");
  EXPECT_NE(message_of_held(wants + volume("storageClassName: local, claimRef: {name: x}")), "");
  EXPECT_EQ(message_of_held(wants + volume("claimRef: {name: data, namespace: team}")), "")
      << "it is kept for this claim";
}

TEST(ServerRules, AClaimThatNamesNoClass) {
  const std::string fast = storage("fast", kWaits);
  EXPECT_EQ(message_of_held(kUsesData + claim("") + fast),
            "the claim data is not bound: it has no storage class, and no PersistentVolume without "
            "one is free");
  EXPECT_EQ(message_of_held(kUsesData + claim("") + fast +
                            "kind: PersistentVolume\nmetadata: {name: pv}\nspec: {}\n"),
            "");
  const std::string usual =
      "kind: StorageClass\nmetadata: {name: usual, annotations: "
      "{storageclass.kubernetes.io/is-default-class: 'true'}}\n" +
      std::string(kWaits) + "---\n";
  EXPECT_EQ(message_of_held(kUsesData + claim("") + fast + usual), "");
  EXPECT_NE(message_of_held(kUsesData + claim("storageClassName: ''") + fast + usual), "")
      << "it says that it wants none";
}

TEST(ServerRules, AVolumeOfThePodAlone) {
  const auto asks = [](const std::string& storage) {
    return job(kOneGpu,
               "volumes: [{name: scratch, ephemeral: {volumeClaimTemplate: {spec: "
               "{storageClassName: " +
                   storage + "}}}}], ");
  };
  EXPECT_EQ(message_of_held(asks("fsat") + storage("fast", kWaits)),
            "the claim scratch is not bound: its storage class fsat does not exist");
  EXPECT_EQ(message_of_held(asks("fast") + storage("fast", kAtOnce)), "") << "it is yet to be made";
  EXPECT_NE(message_of_held(asks("local") + storage("local", kLocal)), "");
}

TEST(ServerRules, AClaimForOnePodAtATime) {
  const std::string alone =
      claim("accessModes: [ReadWriteOncePod], volumeName: pv-1", "status: {phase: Bound}\n");
  const auto user = [](const std::string& phase, const std::string& of = "data") {
    return other_pod("other", "{}", phase,
                     "volumes: [{name: d, persistentVolumeClaim: {claimName: " + of + "}}], ");
  };
  const auto held = held_of(kUsesData + alone + user("Running"));
  ASSERT_TRUE(held);
  EXPECT_EQ(held->reason, Reason::kVolumeUnreachable);
  EXPECT_EQ(held->name, "other");
  EXPECT_EQ(message_of_held(kUsesData + alone + user("Succeeded")), "");
  EXPECT_EQ(message_of_held(kUsesData + alone + user("Running", "else")), "");
  EXPECT_EQ(message_of_held(kUsesData + claim("accessModes: [ReadWriteOnce], volumeName: pv-1") +
                            user("Running")),
            "");
}

// ---- schedulers, and what makes pods ----

TEST(ServerRules, ASchedulerThatIsWrittenWrong) {
  const auto asks = [](const std::string& name) {
    return job(kOneGpu, "schedulerName: " + name + ", ");
  };
  const auto held = held_of(asks("default-schedular"));
  ASSERT_TRUE(held);
  EXPECT_EQ(held->name, "default-scheduler");
  EXPECT_EQ(message_of_held(asks("bert")), "its schedulerName is bert, which reads like berth");
  for (const char* right : {"berth", "volcano", "my-berth", "earlybird", "gpu-scheduler"}) {
    EXPECT_EQ(message_of_held(asks(right)), "") << right;
  }
  EXPECT_EQ(
      message_of_held(asks("bert") + other_pod("a", "{}", "Running", "schedulerName: bert, ")), "")
      << "it has bound a pod";
}

TEST(ServerRules, WhatAClaimOfDevicesNames) {
  const auto asks = [](const std::string& claim) {
    return job(kOneGpu, "resourceClaims: [{name: g, " + claim + "}], ");
  };
  const std::string by_template = asks("resourceClaimTemplateName: one-gpu");
  const std::string kTemplate =
      "kind: ResourceClaimTemplate\nmetadata: {name: one-gpu, namespace: team}\n"
      "spec: {spec: {devices: {requests: [{name: g, exactly: {deviceClassName: gpu.a.com}},"
      "{name: h, firstAvailable: [{name: i, deviceClassName: mig.a.com}]}]}}}\n---\n";
  const auto device_class = [](const std::string& name) {
    return "kind: DeviceClass\nmetadata: {name: " + name + "}\nspec: {}\n---\n";
  };
  EXPECT_EQ(message_of_held(by_template), "") << "none is in the input";
  EXPECT_EQ(message_of_held(by_template + kTemplate), "") << "classes are not in the input";
  EXPECT_EQ(message_of_held(by_template + device_class("gpu.a.com")),
            "the ResourceClaimTemplate one-gpu does not exist in team");
  EXPECT_EQ(message_of_held(asks("resourceClaimTemplateName: one-gpus") + kTemplate),
            "the ResourceClaimTemplate one-gpus does not exist in team; there is one-gpu");
  EXPECT_EQ(message_of_held(asks("resourceClaimName: mine") + kTemplate),
            "the ResourceClaim mine does not exist in team");
  EXPECT_EQ(message_of_held(by_template + kTemplate + device_class("gpu.a.com")),
            "the DeviceClass mig.a.com does not exist; there is gpu.a.com");
  EXPECT_EQ(message_of_held(by_template + kTemplate + device_class("gpu.a.com") +
                            device_class("mig.a.com")),
            "");
}

TEST(ServerRules, AStatefulSetMakesItsPodsInOrder) {
  const auto set = [](const std::string& rest, const std::string& ready) {
    return "kind: StatefulSet\nmetadata: {name: train, namespace: team}\nspec: {" + rest +
           "template: {spec: {containers: [{name: main}]}}}\n---\n"
           "kind: Pod\nmetadata: {name: train-0, namespace: team, ownerReferences: [{kind: "
           "StatefulSet, name: train}]}\nspec: {nodeName: n1, containers: [{name: main}]}\n"
           "status: {phase: Running, conditions: [{type: Ready, status: '" +
           ready + "'}]}\n---\n";
  };
  EXPECT_EQ(message_of_held(set("replicas: 2, ", "False"), "StatefulSet"),
            "the next pod is made once train-0 is ready (podManagementPolicy OrderedReady)");
  EXPECT_EQ(message_of_held(set("replicas: 2, ", "True"), "StatefulSet"), "");
  EXPECT_EQ(message_of_held(set("replicas: 1, ", "False"), "StatefulSet"), "") << "it has its pods";
  EXPECT_EQ(
      message_of_held(set("replicas: 2, podManagementPolicy: Parallel, ", "False"), "StatefulSet"),
      "");
}

}  // namespace
}  // namespace berth::people
