// A whole cluster in virtual time: API server, simulated nodes, Job controller, and controllers of
// ours that can be stopped and started.
#pragma once

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "control/controller.h"
#include "embedded/api/world_for_test.h"
#include "embedded/nodes/nodes.h"
#include "embedded/workloads/work_controllers.h"
#include "text/yaml.h"

namespace berth::control_test {

inline constexpr std::int64_t kSecond = 1'000'000'000;

class Lines final : public LogSink, public control::DecisionLog {
 public:
  void write(LogLevel, std::string_view line) override { logged.emplace_back(line); }
  void write(std::string_view line) override { decided.emplace_back(line); }
  std::vector<std::string> logged, decided;
};

// The way to the server, with somebody's admission policy in front of it.
class Policed final : public kube::Transport {
 public:
  Policed(Loop& loop, sim::ApiServer& server) : loop_(loop), inner_(loop, server) {}
  // The status that a request is refused with, or 0.
  std::function<int(const text::HttpRequest&)> refuses;
  int refusals = 0;

  kube::Call send(text::HttpRequest request, const kube::SendOptions& options,
                  Answered answered) override {
    const int status = refuses ? refuses(request) : 0;
    if (status == 0) return inner_.send(std::move(request), options, std::move(answered));
    ++refusals;
    loop_.post([status, answered = std::move(answered)] {
      answered({.status = status,
                .headers = {{"Content-Type", "application/json"}},
                .body = R"({"kind":"Status","apiVersion":"v1","message":"a policy says no"})"},
               nullptr);
    });
    return kNeverCancelled;
  }
  kube::Call stream(text::HttpRequest request, const kube::StreamOptions& options,
                    kube::StreamHandler handler) override {
    return inner_.stream(std::move(request), options, std::move(handler));
  }
  void resume(kube::Call stream) override { inner_.resume(stream); }
  void cancel(kube::Call call) override {
    if (call != kNeverCancelled) inner_.cancel(call);
  }

 private:
  static constexpr kube::Call kNeverCancelled = UINT64_MAX;
  Loop& loop_;
  sim::LocalTransport inner_;
};

// One controller of ours, with a client of its own.
struct Brain {
  Brain(sim::TestWorld& world, Lines& lines, std::uint64_t seed, control::ControllerOptions options,
        std::function<bool()> leading, control::WorldLog* inputs = nullptr)
      : transport(world.loop, *world.server),
        log(lines, world.clock, {.level = LogLevel::kWarn}),
        client(transport, world.loop, Random(seed), {.user_agent = "brain", .max_tries = 2}),
        controller(client, Random(seed + 1), std::move(options), std::move(leading), log, metrics,
                   &lines, inputs) {
    controller.start();
  }
  std::uint64_t writes(const std::string& kind) {
    return metrics
        .counter({.name = "berth_controller_writes_total",
                  .help = "Writes sent to the API server, by what they are for.",
                  .labels = {"for"}})
        .with({kind})
        .value();
  }

  Policed transport;
  MetricsRegistry metrics;
  Logger log;
  kube::Client client;
  control::Controller controller;
};

class Rig {
 public:
  explicit Rig(std::string_view fleet_yaml, sim::NodesOptions nodes_options = {})
      : log_(lines, world.clock, {.level = LogLevel::kWarn}),
        transport_(world.loop, *world.server),
        client_(transport_, world.loop, Random(11), {.user_agent = "others"}) {
    auto fleet = sim::parse_fleet(fleet_yaml);
    EXPECT_TRUE(fleet.ok()) << fleet.error().to_string();
    nodes =
        std::make_unique<sim::Nodes>(client_, std::move(*fleet), Random(12), nodes_options, &log_);
    nodes->start();
    start_work();
    EXPECT_TRUE(world.loop.run_until([this] { return nodes->registered(); }, 120 * kSecond));
  }

  void start_work() {
    work = std::make_unique<sim::WorkControllers>(client_, Random(13), sim::WorkOptions{}, &log_);
    work->start();
  }
  void start(control::ControllerOptions options = {}, std::uint64_t seed = 21) {
    brain.reset();
    brain = std::make_unique<Brain>(
        world, lines, seed, std::move(options), [] { return true; }, inputs);
  }
  void run(std::int64_t ns) {
    world.loop.run_for(ns);
    check_counted();
  }
  bool until(const std::function<bool()>& done, std::int64_t at_most = 120 * kSecond) {
    const std::int64_t end = world.clock.ticks_ns() + at_most;
    for (int i = 0; !done(); ++i) {
      if (world.clock.ticks_ns() >= end) return false;
      world.loop.run_for(kSecond / 10);
      if (i % 10 == 0) check_counted();
    }
    return true;
  }

  // No queue is longer than its bound, and no pod that is bound is ever uncounted: each that the
  // API has had on a node for some time, and that has not ended, is in the controller's model with
  // at least the GPUs of its spec.
  void check_counted() {
    if (!brain || !brain->controller.summary().trouble.empty()) return;
    for (const control::Level& level : brain->controller.levels()) {
      ASSERT_LE(level.held, level.most) << level.what;
    }
    const std::int64_t now = world.clock.ticks_ns();
    std::map<std::string, std::int64_t> seen;
    const auto counted = brain->controller.counted();
    const auto list = get("/api/v1/pods");
    const text::Value* items = list.root().find("items");
    if (items == nullptr) return;
    for (const text::Value& pod : items->items()) {
      const std::string_view phase = pod.find("status")->find("phase")->string();
      const bool bound = pod.find("spec")->find("nodeName") != nullptr;
      if (!bound || phase == "Failed" || phase == "Succeeded") continue;
      const text::Value& meta = *pod.find("metadata");
      const std::string name(meta.find("name")->string());
      const std::string uid(meta.find("uid")->string());
      const auto since = bound_since_.find(uid);
      seen[uid] = since == bound_since_.end() ? now : since->second;
      if (now - seen[uid] < 5 * kSecond) continue;
      const auto it = counted.find(std::string(meta.find("namespace")->string()) + '/' + name);
      ASSERT_NE(it, counted.end()) << name << " runs and is not counted";
      ASSERT_GE(it->second, gpus_in(pod)) << name;
    }
    bound_since_ = std::move(seen);
  }
  static int gpus_in(const text::Value& pod) {
    int sum = 0;
    for (const text::Value& c : pod.find("spec")->find("containers")->items()) {
      const text::Value* amount = &c;
      for (const char* key : {"resources", "limits", "nvidia.com/gpu"}) {
        if (amount != nullptr) amount = amount->find(key);
      }
      if (amount == nullptr) continue;
      sum += std::stoi(amount->is_string() ? std::string(amount->string())
                                           : std::string(amount->number_text()));
    }
    return sum;
  }

  // YAML of objects, separated by ---; each goes to its collection.
  void apply(std::string_view yaml) {
    auto documents = text::parse_yaml(yaml);
    ASSERT_TRUE(documents.ok()) << documents.error().to_string();
    for (const text::Document& document : *documents) {
      if (document.root().is_null()) continue;
      const std::string kind(document.root().find("kind")->string());
      const std::string api(document.root().find("apiVersion")->string());
      const text::Value* ns = document.root().find("metadata")->find("namespace");
      const auto answer =
          world.post(collection(api, kind, ns == nullptr ? "" : std::string(ns->string())),
                     text::to_json(document.root()));
      ASSERT_TRUE(answer.status == 201 || answer.status == 200) << answer.body;
    }
  }
  static std::string collection(const std::string& api, const std::string& kind,
                                const std::string& ns) {
    std::string plural = kind;
    for (char& c : plural) c = static_cast<char>(std::tolower(c));
    if (plural.ends_with("y")) {
      plural.replace(plural.size() - 1, 1, "ie");
    } else if (plural.ends_with("class")) {
      plural += "e";
    }
    plural += "s";
    std::string out = (api.find('/') == std::string::npos ? "/api/" : "/apis/") + api;
    if (!ns.empty()) out += "/namespaces/" + ns;
    return out + '/' + plural;
  }

  // A CustomResourceDefinition without a schema, with a status.
  void define(const std::string& group, const std::string& version, const std::string& kind,
              bool namespaced) {
    std::string plural = collection(group + '/' + version, kind, "");
    plural = plural.substr(plural.rfind('/') + 1);
    std::string singular = kind;
    for (char& c : singular) c = static_cast<char>(std::tolower(c));
    const auto answer = world.post(
        "/apis/apiextensions.k8s.io/v1/customresourcedefinitions",
        fmt::format(R"({{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition",)"
                    R"("metadata":{{"name":"{0}.{1}","annotations":{{"api-approved.kubernetes.io":)"
                    R"("unapproved, for a test"}}}},"spec":{{"group":"{1}","scope":"{2}",)"
                    R"("names":{{"plural":"{0}","singular":"{3}","kind":"{4}",)"
                    R"("listKind":"{4}List"}},"versions":[{{"name":"{5}","served":true,)"
                    R"("storage":true,"subresources":{{"status":{{}}}},"schema":)"
                    R"({{"openAPIV3Schema":{{"type":"object",)"
                    R"("x-kubernetes-preserve-unknown-fields":true}}}}}}]}}}})",
                    plural, group, namespaced ? "Namespaced" : "Cluster", singular, kind, version));
    ASSERT_EQ(answer.status, 201) << answer.body;
  }
  void define_kueue() {
    for (const char* kind : {"ResourceFlavor", "ClusterQueue", "Cohort", "Topology",
                             "AdmissionCheck", "WorkloadPriorityClass"}) {
      define("kueue.x-k8s.io", "v1beta2", kind, false);
    }
    define("kueue.x-k8s.io", "v1beta2", "LocalQueue", true);
    define("kueue.x-k8s.io", "v1beta2", "Workload", true);
  }

  void pod(const std::string& name, int gpus, const std::string& spec = "",
           const std::string& meta = "") {
    apply(
        fmt::format("{{apiVersion: v1, kind: Pod, metadata: {{name: {0}, namespace: default{3}}}, "
                    "spec: {{schedulerName: berth, restartPolicy: Never, containers: [{{name: c, "
                    "image: i, resources: {{limits: {{nvidia.com/gpu: {1}}}, requests: {{cpu: "
                    "1}}}}}}]{2}}}}}",
                    name, gpus, spec.empty() ? "" : ", " + spec, meta.empty() ? "" : ", " + meta));
  }

  sim::TestAnswer get(const std::string& target) { return world.get(target); }
  sim::TestAnswer get_pod(const std::string& name) {
    return get("/api/v1/namespaces/default/pods/" + name);
  }
  std::string node_of(const std::string& name) { return get_pod(name).at("spec.nodeName"); }
  std::string gpus_of(const std::string& name) {
    const auto pod = get_pod(name);
    const text::Value* notes = pod.root().find("metadata")->find("annotations");
    const text::Value* gpus = notes == nullptr ? nullptr : notes->find("berth.dev/gpus");
    return gpus == nullptr ? "" : std::string(gpus->string());
  }
  std::string phase_of(const std::string& name) { return get_pod(name).at("status.phase"); }
  // "{"key": "value"}" into its annotations; null takes one away.
  void annotate(const std::string& target, const std::string& json) {
    const auto answer = world.merge(target, R"({"metadata":{"annotations":)" + json + "}}");
    EXPECT_EQ(answer.status, 200) << answer.body;
  }
  void annotate_pod(const std::string& name, const std::string& json) {
    annotate("/api/v1/namespaces/default/pods/" + name, json);
  }
  void remove(const std::string& target) { world.call("DELETE", target); }
  std::string delete_pod(const std::string& name) {
    return std::to_string(world.call("DELETE", "/api/v1/namespaces/default/pods/" + name).status);
  }
  // "pod@node" of all bound pods that have not ended, by name.
  std::vector<std::string> bound() {
    std::vector<std::string> out;
    const auto list = get("/api/v1/pods");
    const text::Value* items = list.root().find("items");
    for (const text::Value& pod : items->items()) {
      const text::Value* node = pod.find("spec")->find("nodeName");
      const std::string_view phase = pod.find("status")->find("phase")->string();
      if (node == nullptr || phase == "Failed" || phase == "Succeeded") continue;
      out.push_back(
          fmt::format("{}@{}", pod.find("metadata")->find("name")->string(), node->string()));
    }
    return out;
  }
  // The status of a condition of an object; "" where it has none.
  std::string condition(const std::string& target, const std::string& type,
                        const std::string& field = "status") {
    const auto object = get(target);
    const text::Value* status = object.root().find("status");
    const text::Value* list = status == nullptr ? nullptr : status->find("conditions");
    if (list == nullptr) return {};
    for (const text::Value& c : list->items()) {
      if (c.find("type")->string() == type) return std::string(c.find(field)->string());
    }
    return {};
  }

  sim::TestWorld world;
  Lines lines;
  control::WorldLog* inputs = nullptr;  // of the next start()

 private:
  Logger log_;
  sim::LocalTransport transport_;
  kube::Client client_;
  std::map<std::string, std::int64_t> bound_since_;  // by UID, as check_counted() saw it

 public:
  std::unique_ptr<sim::Nodes> nodes;
  std::unique_ptr<sim::WorkControllers> work;
  std::unique_ptr<Brain> brain;
};

inline constexpr const char* kTwoNodes =
    "pools: [{name: m, count: 2, model: NVIDIA-H100-80GB-HBM3, gpus: 4}]";

}  // namespace berth::control_test
