#include "embedded/nodes/nodes.h"

#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <optional>

#include "embedded/workloads/cluster_for_test.h"
#include "embedded/workloads/work_controllers.h"
#include "kinds/node.h"
#include "text/path.h"

namespace berth::sim {
namespace {

Fleet fleet_from(const std::string& yaml) {
  auto fleet = parse_fleet(yaml);
  EXPECT_TRUE(fleet.ok()) << (fleet.ok() ? "" : fleet.error().to_string());
  return fleet.ok() ? std::move(*fleet) : Fleet{};
}

const char* const kTwoNodes = "pools: [{name: 'n', count: 2, model: H100, zone: a}]";
const std::string kPods = "/api/v1/namespaces/default/pods";

struct SimWorld : Cluster {
  explicit SimWorld(const std::string& fleet = kTwoNodes, NodesOptions options = {}) {
    std::ifstream in(std::string(BERTH_CRD_DIR) + "/gpunodes.yaml");
    create("/apis/apiextensions.k8s.io/v1/customresourcedefinitions",
           std::string(std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()));
    run(1);
    start(fleet, options);
  }
  void start(const std::string& fleet = kTwoNodes, NodesOptions options = {}) {
    nodes.emplace(*client, fleet_from(fleet), Random(3), options, nullptr, &metrics);
    nodes->start();
    EXPECT_TRUE(loop.run_until([this] { return nodes->registered(); }, 20 * kTestSecond));
  }

  // A pod on a node already. more: further YAML under spec; marks: annotations.
  void pod(const std::string& name, const std::string& node, int gpus,
           const std::string& marks = "", const std::string& more = "restartPolicy: Never") {
    std::string yaml = "metadata: {name: " + name + ", annotations: {" + marks + "}}\nspec:\n";
    yaml += "  nodeName: " + node + "\n  " + more + "\n";
    yaml += "  containers: [{name: main, image: train:1, resources: {limits: {cpu: 1, ";
    yaml += "nvidia.com/gpu: " + std::to_string(gpus) + "}}}]\n";
    create(kPods, yaml);
  }
  std::string phase(const std::string& name) { return field(kPods + '/' + name, "status.phase"); }
  std::string condition(const std::string& name, const std::string& type) {
    return field(kPods + '/' + name, "status.conditions[" + type + "].status");
  }
  std::string gpu(const std::string& node, int index, const std::string& what) {
    return field("/apis/berth.dev/v1alpha1/gpunodes/" + node,
                 "status.gpus." + std::to_string(index) + '.' + what);
  }
  std::string node_field(const std::string& node, const std::string& what) {
    return field("/api/v1/nodes/" + node, what);
  }
  void fault(const std::string& node, const std::string& words) {
    auto parsed = parse_fault(words, 8);
    ASSERT_TRUE(parsed.ok()) << words;
    parsed->node = node;
    nodes->inject(*parsed);
  }

  MetricsRegistry metrics;
  std::optional<Nodes> nodes;
};

TEST(Nodes, RegisterAsPlacementReadsThem) {
  SimWorld w(
      "pools: [{name: 'n', model: H100, racks: 1, zone: z, block: b, labels: {tier: train}, "
      "taints: "
      "['k=v:NoSchedule']}, {name: s, model: A100, gpus: 2, shares: 4}, "
      "{name: m, model: A100-SXM4-40GB, gpus: 2, mig: 1g.5gb}, {name: c}]");
  struct Case {
    const char* name;
    std::size_t gpus;
    int shares;
  };
  for (const Case& c :
       {Case{"n-0", 8, 1}, Case{"s-0", 2, 4}, Case{"m-0", 2, 1}, Case{"c-0", 0, 1}}) {
    const auto object = w.call("GET", "/api/v1/nodes/" + std::string(c.name));
    ASSERT_EQ(object.first, 200) << c.name;
    text::Decoder d;
    kinds::NodeObject node;
    kinds::decode(object.second.root(), node, d);
    EXPECT_TRUE(d.ok()) << c.name;
    EXPECT_TRUE(node.spec.ready);
    const auto agent = w.call("GET", "/apis/berth.dev/v1alpha1/gpunodes/" + std::string(c.name));
    EXPECT_EQ(agent.first, c.gpus > 0 ? 200 : 404) << c.name;
    kinds::GpuNode gpus;
    if (c.gpus > 0) kinds::decode(agent.second.root(), gpus, d);
    EXPECT_TRUE(d.ok()) << c.name;
    // Both ways of knowing the GPUs give the same number.
    model::NodeSpec by_agent = node.spec, by_labels = node.spec;
    const auto facts = kinds::fill_gpus(c.gpus > 0 ? &gpus : nullptr, by_agent);
    EXPECT_TRUE(facts.warnings.empty()) << c.name << ": " << facts.warnings.front();
    EXPECT_TRUE(facts.errors.empty());
    kinds::fill_gpus(nullptr, by_labels);
    EXPECT_EQ(by_agent.gpus.size(), c.gpus) << c.name;
    EXPECT_EQ(by_labels.gpus.size(), c.gpus) << c.name;
    EXPECT_EQ(by_agent.shares_per_gpu, c.shares) << c.name;
    if (c.gpus > 0) {
      EXPECT_EQ(by_agent.gpus[0].model, by_labels.gpus[0].model);
      EXPECT_EQ(field_of(agent.second.root(), "metadata.ownerReferences.0.uid"), node.meta.uid);
    }
  }
  EXPECT_EQ(w.node_field("n-0", "metadata.labels.tier"), "train");
  const auto labels = w.call("GET", "/api/v1/nodes/n-0");
  const text::Value& all = at(labels.second.root(), "metadata.labels");
  EXPECT_EQ(text_at(all, "[topology.kubernetes.io/rack]"), "n-rack0");
  EXPECT_EQ(text_at(all, "[topology.kubernetes.io/zone]"), "z");
  EXPECT_EQ(text_at(all, "[nvidia.com/gpu.family]"), "hopper");
  EXPECT_EQ(w.node_field("n-0", "spec.taints.0.effect"), "NoSchedule");
  EXPECT_EQ(w.node_field("c-0", "status.conditions[Ready].status"), "True");
  w.run(11);
  EXPECT_EQ(w.field("/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases/n-0",
                    "spec.holderIdentity"),
            "n-0");
  EXPECT_EQ(w.writes["PATCH nodes/status"], 0);  // the first write said it all
  EXPECT_EQ(w.writes["POST nodes"], 4);
  const NodesSummary s = w.nodes->summary();
  EXPECT_EQ(s.nodes, 4u);
  EXPECT_EQ(s.ready, 4u);
  EXPECT_EQ(s.gpus, 12u);
}

struct LifeCase {
  const char* name;
  const char* marks;
  const char* more;
  double seconds;
  const char* phase;
  const char* ready;
  int restarts;
  int status_writes;
};

TEST(Nodes, PodsAreResizedAsFarAsThereIsRoom) {
  SimWorld w("pools: [{name: 'n', model: H100, cpu: 8}]");
  w.pod("p", "n-0", 1);
  w.pod("other", "n-0", 1);
  w.run(1);
  const auto resize = [&w](const std::string& pod, const char* cpu) {
    const std::string limits = std::string(R"({"cpu":")") + cpu + "\"}";
    const auto answer = w.call("PATCH", kPods + '/' + pod + "/resize",
                               R"({"spec":{"containers":[{"name":"main","resources":{"limits":)" +
                                   limits + R"(,"requests":)" + limits + "}}]}}",
                               "application/strategic-merge-patch+json");
    EXPECT_EQ(answer.first, 200) << text::to_json(answer.second.root());
    w.run(1);
  };
  const auto has = [&w](const std::string& what) {
    return w.field(kPods + "/p", "status.containerStatuses[main]." + what + ".cpu");
  };
  const auto pending = [&w](const char* what) {
    return w.field(kPods + "/p", std::string("status.conditions[PodResizePending].") + what);
  };
  EXPECT_EQ(has("allocatedResources"), "") << "nobody asked";
  w.writes.clear();
  resize("p", "3");
  EXPECT_EQ(has("allocatedResources"), "3");
  EXPECT_EQ(has("resources.requests"), "3");
  EXPECT_EQ(has("resources.limits"), "3");
  EXPECT_EQ(pending("status"), "");
  EXPECT_EQ(w.writes["PATCH pods/status"], 1);
  resize("p", "100");
  EXPECT_EQ(has("allocatedResources"), "3");
  EXPECT_EQ(pending("reason"), "Infeasible");
  EXPECT_EQ(pending("message"),
            "Node didn't have enough capacity: cpu, requested: 100000, capacity: 8000");
  resize("other", "6");
  EXPECT_EQ(w.field(kPods + "/other", "status.conditions[PodResizePending].reason"), "Deferred");
  resize("p", "8");
  EXPECT_EQ(pending("reason"), "Deferred");
  EXPECT_EQ(pending("message"),
            "Node didn't have enough resource: cpu, requested: 8000, used: 1000, capacity: 8000");
  // Who starts anew knows from the status what was set aside.
  w.start("pools: [{name: 'n', model: H100, cpu: 8}]");
  w.run(1);
  EXPECT_EQ(pending("reason"), "Deferred");
  EXPECT_EQ(has("allocatedResources"), "3");
  w.call("DELETE", kPods + "/other");
  w.run(40);
  EXPECT_EQ(pending("status"), "") << "the other has left";
  EXPECT_EQ(has("allocatedResources"), "8");
  resize("p", "1");
  EXPECT_EQ(has("allocatedResources"), "1");
}

TEST(Nodes, PodsLiveAsTheyAreTold) {
  const LifeCase cases[] = {
      {"starts", "", "restartPolicy: Never", 0.04, "Pending", "", 0, 0},
      {"runs", "", "restartPolicy: Never", 60, "Running", "True", 0, 1},
      {"succeeds", "sim.berth.dev/run-seconds: '5'", "restartPolicy: Never", 6, "Succeeded",
       "False", 0, 2},
      {"fails", "sim.berth.dev/run-seconds: '5', sim.berth.dev/exit-code: '3'",
       "restartPolicy: Never", 6, "Failed", "False", 0, 2},
      {"backs-off", "sim.berth.dev/run-seconds: '5', sim.berth.dev/exit-code: '3'",
       "restartPolicy: OnFailure", 6, "Running", "False", 1, 2},
      {"again", "sim.berth.dev/run-seconds: '5', sim.berth.dev/exit-code: '1,0'",
       "restartPolicy: OnFailure", 30, "Succeeded", "False", 1, 4},
      {"always", "sim.berth.dev/run-seconds: '5'", "restartPolicy: Always", 16, "Running", "True",
       1, 3},
      {"later-ready", "sim.berth.dev/ready-seconds: '3'", "restartPolicy: Never", 2, "Running",
       "False", 0, 1},
      {"now-ready", "sim.berth.dev/ready-seconds: '3'", "restartPolicy: Never", 4, "Running",
       "True", 0, 2},
      {"slow", "sim.berth.dev/start-seconds: '3'", "restartPolicy: Never", 2, "Pending", "", 0, 0},
      {"deadline", "", "{restartPolicy: Never, activeDeadlineSeconds: 10}", 11, "Failed", "False",
       0, 2},
      {"odd-words", "sim.berth.dev/run-seconds: soon, sim.berth.dev/exit-code: x",
       "restartPolicy: Never", 60, "Running", "True", 0, 1},
  };
  for (const LifeCase& c : cases) {
    SimWorld w;
    std::string more = c.more;
    if (more.front() == '{') more = "restartPolicy: Never\n  activeDeadlineSeconds: 10";
    w.pod("p", "n-0", 1, c.marks, more);
    w.writes.clear();
    w.run(c.seconds);
    EXPECT_EQ(w.phase("p"), c.phase) << c.name;
    EXPECT_EQ(w.condition("p", "Ready"), c.ready) << c.name;
    EXPECT_EQ(w.writes["PATCH pods/status"], c.status_writes) << c.name;
    const std::string count = w.field(kPods + "/p", "status.containerStatuses[main].restartCount");
    EXPECT_EQ(count.empty() ? "0" : count, std::to_string(c.restarts)) << c.name;
    if (std::string_view(c.name) == "deadline") {
      EXPECT_EQ(w.field(kPods + "/p", "status.reason"), "DeadlineExceeded");
    }
    if (std::string_view(c.name) == "fails") {
      EXPECT_EQ(w.field(kPods + "/p", "status.containerStatuses[main].state.terminated.exitCode"),
                "3");
    }
    if (std::string_view(c.name) == "runs") {
      for (const char* type : {"PodScheduled", "Initialized", "ContainersReady", "Ready",
                               "PodReadyToStartContainers"}) {
        EXPECT_EQ(w.condition("p", type), "True") << type;
      }
      EXPECT_EQ(w.field(kPods + "/p", "status.podIP"), "10.0.0.2");
      EXPECT_EQ(w.field(kPods + "/p", "status.hostIP"), "10.128.0.1");
    }
  }
}

TEST(Nodes, HoldersFollowTheHintAndLeave) {
  SimWorld w;
  w.pod("a", "n-0", 2, "berth.dev/gpus: '3,5'");
  w.pod("b", "n-0", 1, "sim.berth.dev/run-seconds: '5', berth.dev/gpus: '4'");
  w.run(2);
  const std::string uid = w.field(kPods + "/a", "metadata.uid");
  EXPECT_EQ(w.gpu("n-0", 3, "holders.0"), uid);
  EXPECT_EQ(w.gpu("n-0", 5, "holders.0"), uid);
  EXPECT_EQ(w.gpu("n-0", 4, "holders.0"), w.field(kPods + "/b", "metadata.uid"));
  EXPECT_EQ(w.nodes->summary().used_gpus, 3u);
  EXPECT_EQ(w.nodes->summary().running_pods, 2u);
  w.run(6);
  EXPECT_EQ(w.gpu("n-0", 4, "holders"), "");
  w.writes.clear();
  w.remove(kPods + "/a");
  w.run(3);
  EXPECT_FALSE(w.exists(kPods + "/a"));
  EXPECT_EQ(w.gpu("n-0", 3, "holders"), "");
  EXPECT_EQ(w.writes["DELETE pods"], 1);
  EXPECT_EQ(w.writes["PATCH pods/status"], 0);  // nobody would have seen it
  EXPECT_EQ(w.nodes->summary().used_gpus, 0u);
  const std::string text = w.metrics.render(MetricFormat::kPrometheusText);
  EXPECT_NE(text.find("berth_sim_gpu_healthy{node=\"n-0\",gpu=\"3\"} 1"), std::string::npos);
}

TEST(Nodes, StopGracefully) {
  SimWorld w;
  w.pod("slow", "n-0", 1, "sim.berth.dev/stop-seconds: '20'");
  w.pod("slower", "n-0", 1, "sim.berth.dev/stop-seconds: '100'");
  // A finalizer: somebody waits for the last word.
  w.create(kPods, R"({"metadata": {"name": "kept", "finalizers": ["example.com/x"]},
    "spec": {"nodeName": "n-0", "restartPolicy": "Never",
    "containers": [{"name": "c", "image": "i"}]}})");
  w.run(1);
  for (const char* name : {"slow", "slower", "kept"}) w.remove(kPods + '/' + name);
  w.run(5);
  EXPECT_TRUE(w.exists(kPods + "/slow"));
  EXPECT_EQ(w.phase("kept"), "Failed");
  w.run(16);
  EXPECT_FALSE(w.exists(kPods + "/slow"));
  EXPECT_TRUE(w.exists(kPods + "/slower"));
  w.run(10);  // the grace of 30 s is over
  EXPECT_FALSE(w.exists(kPods + "/slower"));
  w.merge(kPods + "/kept", "metadata: {finalizers: []}");
  w.run(1);
  EXPECT_FALSE(w.exists(kPods + "/kept"));
  EXPECT_EQ(w.nodes->summary().running_pods, 0u);
}

TEST(Nodes, RefuseWhatDoesNotFit) {
  SimWorld w;
  w.pod("a", "n-0", 6);
  w.pod("b", "n-0", 4);
  w.run(1);
  EXPECT_EQ(w.phase("a"), "Running");
  EXPECT_EQ(w.phase("b"), "Failed");
  EXPECT_EQ(w.field(kPods + "/b", "status.reason"), "UnexpectedAdmissionError");
  w.fault("n-1", "refuse-pods reason=TopologyAffinityError for=10s");
  w.pod("c", "n-1", 1);
  w.run(1);
  EXPECT_EQ(w.field(kPods + "/c", "status.reason"), "TopologyAffinityError");
  w.run(11);
  w.pod("d", "n-1", 1);
  w.run(1);
  EXPECT_EQ(w.phase("d"), "Running");
}

TEST(Nodes, OneGpuRefusesAndAnAgentComesLate) {
  SimWorld w;
  w.fault("n-0", "refuse-pods gpu=0");
  w.pod("all", "n-0", 8);
  w.run(1);
  EXPECT_EQ(w.field(kPods + "/all", "status.reason"), "UnexpectedAdmissionError");
  w.fault("n-0", "recover");
  w.pod("again", "n-0", 8);
  w.run(1);
  EXPECT_EQ(w.phase("again"), "Running") << "what was refused holds nothing";
  w.fault("n-1", "reboot for=5s agent=20s");
  w.run(6);
  w.pod("early", "n-1", 1);
  w.run(1);
  EXPECT_EQ(w.field(kPods + "/early", "status.reason"), "UnexpectedAdmissionError");
  w.run(20);
  w.pod("late", "n-1", 1);
  w.run(1);
  EXPECT_EQ(w.phase("late"), "Running");
}

TEST(Nodes, GpusFailAndRecover) {
  struct Case {
    const char* fault;
    const char* health;
    const char* reason;
    const char* phase;  // of the pod on the device
    const char* allocatable;
  };
  const Case cases[] = {
      {"xid gpu=2 code=79", "Unhealthy", "Xid 79: GPU has fallen off the bus", "Failed", "7"},
      {"xid gpu=2 code=31", "Healthy", "", "Failed", "8"},
      {"xid gpu=2 code=63", "Healthy", "", "Running", "8"},
      {"ecc gpu=2", "Unhealthy", "uncorrectable ECC error", "Failed", "7"},
      {"gpu-lost gpu=2", "Unhealthy", "GPU is lost", "Failed", "7"},
      {"nvlink-down gpu=2", "Healthy", "NVLink down", "Running", "8"},
      {"gpu-silent gpu=2", "Unhealthy", "the driver does not answer for it", "Running", "7"},
      {"gpu-lost", "Unhealthy", "GPU is lost", "Failed", "0"},
      {"xid gpu=3 code=79", "Healthy", "", "Running", "7"},
  };
  for (const Case& c : cases) {
    SimWorld w;
    w.pod("p", "n-0", 1, "berth.dev/gpus: '2'");
    w.run(2);
    w.fault("n-0", c.fault);
    w.run(0.1);
    EXPECT_EQ(w.gpu("n-0", 2, "health.state"), c.health) << c.fault;
    EXPECT_EQ(w.gpu("n-0", 2, "health.reason"), c.reason) << c.fault;
    EXPECT_EQ(w.phase("p"), c.phase) << c.fault;
    const auto node = w.call("GET", "/api/v1/nodes/n-0");
    EXPECT_EQ(text_at(node.second.root(), "status.allocatable[nvidia.com/gpu]"), c.allocatable)
        << c.fault;
    w.fault("n-0", "recover");
    w.run(0.1);
    EXPECT_EQ(w.gpu("n-0", 2, "health.state"), "Healthy") << c.fault;
    EXPECT_EQ(w.gpu("n-0", 2, "nvlinkClique"), "0") << c.fault;
    EXPECT_EQ(w.nodes->summary().healthy_gpus, 16u) << c.fault;
  }
}

TEST(Nodes, AFaultEndsByItselfUnlessANewerOneCame) {
  SimWorld w;
  w.fault("n-0", "ecc gpu=1 for=10s");
  w.run(5);
  w.fault("n-0", "xid gpu=1 code=79");
  w.run(10);
  EXPECT_EQ(w.gpu("n-0", 1, "health.state"), "Unhealthy");
  w.fault("n-0", "ecc gpu=4 for=10s");
  w.run(11);
  EXPECT_EQ(w.gpu("n-0", 4, "health.state"), "Healthy");
}

TEST(Nodes, FaultsByScriptAndByAnnotation) {
  SimWorld w(
      "pools: [{name: 'n', count: 2, model: H100}]\n"
      "faults: [{at: 5s, node: n-1, gpu: 0, kind: gpu-lost}]");
  w.run(6);
  EXPECT_EQ(w.gpu("n-1", 0, "health.state"), "Unhealthy");
  w.merge("/api/v1/nodes/n-0", "metadata: {annotations: {sim.berth.dev/fault: ecc gpu=7}}");
  w.run(1);
  EXPECT_EQ(w.gpu("n-0", 7, "health.state"), "Unhealthy");
  const auto node = w.call("GET", "/api/v1/nodes/n-0");
  EXPECT_EQ(at(node.second.root(), "metadata.annotations").find("sim.berth.dev/fault"), nullptr);
  w.merge("/api/v1/nodes/n-0", "metadata: {annotations: {sim.berth.dev/fault: nonsense}}");
  w.run(1);
  EXPECT_EQ(w.nodes->summary().healthy_gpus, 14u);
}

TEST(Nodes, ASilentKubeletDoesNothing) {
  SimWorld w;
  w.pod("old", "n-0", 1, "sim.berth.dev/run-seconds: '30'");
  w.run(1);
  w.fault("n-0", "silent for=60s");
  w.pod("new", "n-0", 1);
  w.remove(kPods + "/new");
  w.pod("newer", "n-0", 1);
  w.writes.clear();
  w.run(50);
  EXPECT_EQ(w.phase("old"), "Running");
  EXPECT_EQ(w.phase("newer"), "Pending");
  EXPECT_TRUE(w.exists(kPods + "/new"));
  EXPECT_EQ(w.writes["PATCH pods/status"], 0);
  EXPECT_EQ(w.nodes->summary().ready, 1u);
  w.run(11);
  EXPECT_EQ(w.phase("old"), "Succeeded");
  EXPECT_EQ(w.phase("newer"), "Running");
  EXPECT_FALSE(w.exists(kPods + "/new"));
}

TEST(Nodes, NotReadyAndReboot) {
  SimWorld w;
  w.pod("once", "n-0", 1, "berth.dev/gpus: '0'");
  w.pod("ever", "n-0", 1, "berth.dev/gpus: '1'", "restartPolicy: Always");
  w.run(2);
  w.fault("n-1", "not-ready");
  w.pod("waits", "n-1", 1);
  w.run(2);
  EXPECT_EQ(w.node_field("n-1", "status.conditions[Ready].status"), "False");
  EXPECT_EQ(w.phase("waits"), "Pending");
  w.fault("n-1", "ready");
  w.run(2);
  EXPECT_EQ(w.node_field("n-1", "status.conditions[Ready].status"), "True");
  EXPECT_EQ(w.phase("waits"), "Running");

  w.fault("n-0", "xid gpu=5 code=79");
  w.fault("n-0", "reboot for=30s");
  w.run(29);
  EXPECT_EQ(w.phase("once"), "Running");  // nobody could tell otherwise
  EXPECT_EQ(w.nodes->summary().ready, 1u);
  w.run(3);
  EXPECT_EQ(w.phase("once"), "Failed");
  EXPECT_EQ(w.phase("ever"), "Running");
  EXPECT_EQ(w.field(kPods + "/ever", "status.containerStatuses[main].restartCount"), "1");
  EXPECT_EQ(w.gpu("n-0", 5, "health.state"), "Healthy");
  EXPECT_EQ(w.gpu("n-0", 0, "holders"), "");
  EXPECT_NE(w.gpu("n-0", 1, "holders"), "");
}

TEST(Nodes, GoOnAfterARestartOfTheProcess) {
  SimWorld w;
  w.pod("long", "n-0", 2, "sim.berth.dev/run-seconds: '100', berth.dev/gpus: '6,7'");
  w.pod("free", "n-1", 2);
  w.run(10);
  w.fault("n-0", "xid gpu=1 code=79");
  w.run(2);
  const std::string held = w.gpu("n-1", 0, "holders");
  w.nodes.reset();
  w.run(20);
  w.writes.clear();
  w.start();
  w.run(1);
  EXPECT_EQ(w.nodes->summary().running_pods, 2u);
  EXPECT_EQ(w.nodes->summary().used_gpus, 4u);
  EXPECT_EQ(w.nodes->summary().healthy_gpus, 15u);
  EXPECT_EQ(w.gpu("n-1", 0, "holders"), held);
  EXPECT_EQ(w.writes["PATCH pods/status"], 0);
  EXPECT_EQ(w.writes["POST nodes"], 0);
  EXPECT_EQ(w.phase("long"), "Running");
  w.run(70);
  EXPECT_EQ(w.phase("long"), "Succeeded");
}

TEST(Nodes, ADeletedNodeIsAMachineThatIsGone) {
  SimWorld w;
  w.pod("p", "n-1", 1);
  w.run(1);
  w.remove("/api/v1/nodes/n-1");
  w.run(30);
  EXPECT_FALSE(w.exists("/api/v1/nodes/n-1"));
  EXPECT_EQ(w.nodes->summary().nodes, 1u);
  w.pod("q", "n-1", 1);
  w.run(5);
  EXPECT_EQ(w.phase("q"), "Pending");
}

// Binds what waits, one pod a second, to n-0: a scheduler that knows nothing.
void bind_pods(SimWorld& w) {
  const auto list = w.call("GET", kPods);
  for (const text::Value& pod : at(list.second.root(), "items").items()) {
    if (!text_at(pod, "spec.nodeName").empty()) continue;
    const std::string name(text_at(pod, "metadata.name"));
    w.call("POST", kPods + '/' + name + "/binding",
           R"({"metadata":{"name":")" + name + R"("},"target":{"kind":"Node","name":"n-0"}})");
  }
}

TEST(Nodes, AJobRunsThrough) {
  SimWorld w;
  WorkControllers work(*w.client, Random(5));
  work.start();
  w.create("/apis/batch/v1/namespaces/default/jobs", R"(
metadata: {name: train}
spec:
  completions: 4
  parallelism: 2
  completionMode: Indexed
  template:
    metadata: {annotations: {sim.berth.dev/run-seconds: "10"}}
    spec:
      restartPolicy: Never
      containers: [{name: main, image: train, resources: {limits: {nvidia.com/gpu: 4}}}]
)");
  for (int i = 0; i < 60; ++i) {
    w.run(1);
    bind_pods(w);
  }
  const std::string job = "/apis/batch/v1/namespaces/default/jobs/train";
  EXPECT_EQ(w.field(job, "status.conditions[Complete].status"), "True");
  EXPECT_EQ(w.field(job, "status.succeeded"), "4");
  EXPECT_EQ(w.field(job, "status.completedIndexes"), "0-3");
  EXPECT_EQ(w.field(job, "status.failed"), "");
  EXPECT_EQ(w.names(kPods).size(), 4u);
  EXPECT_EQ(w.nodes->summary().used_gpus, 0u);
  EXPECT_EQ(w.writes["POST pods"], 4);
  EXPECT_EQ(w.writes["PATCH pods/status"], 8);  // one when it runs, one when it ends
}

TEST(Nodes, ManyPodsCostTwoWritesEach) {
  SimWorld w("pools: [{name: 'n', count: 100, model: H100, racks: 25}]");
  for (int i = 0; i < 200; ++i) {
    w.pod("p" + std::to_string(i), "n-" + std::to_string(i % 100), 4,
          "sim.berth.dev/run-seconds: '3'");
  }
  w.run(1);
  EXPECT_EQ(w.nodes->summary().running_pods, 200u);
  EXPECT_EQ(w.nodes->summary().used_gpus, 800u);
  w.run(5);
  EXPECT_EQ(w.nodes->summary().running_pods, 0u);
  EXPECT_EQ(w.nodes->summary().used_gpus, 0u);
  EXPECT_EQ(w.writes["PATCH pods/status"], 400);
  EXPECT_LE(w.writes["PATCH gpunodes/status"], 400);  // both pods of a node together
}

}  // namespace
}  // namespace berth::sim
