#include "cluster_engine.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "app/cli/cli.h"
#include "app/cluster/user_crds.h"
#include "cluster_apply.h"
#include "cluster_queues.h"
#include "kinds/manifest.h"
#include "text/json.h"
#include "text/patch.h"
#include "text/path.h"
#include "text/rfc3339.h"
#include "text/yaml.h"

namespace berth::scenario {

// Parts of the engine's state; not for others.
namespace cluster {

class SilentSink final : public LogSink {
 public:
  void write(LogLevel, std::string_view) override {}
};

// The last word of the controller about everything that waits.
class LastDecision final : public control::DecisionLog {
 public:
  void write(std::string_view line) override {
    auto read = text::parse_json(line);
    if (!read.ok()) return;
    for (const text::Value& eviction : at(read->root(), "preemptions").items()) {
      preempted.insert(std::string(text_at(eviction, "pod")));
    }
    queues.decided(read->root());
    last = std::move(*read);
    ++lines;
  }

  std::map<std::string, model::Outcome> waiting() const {
    std::map<std::string, model::Outcome> out;
    for (const text::Value& entry : at(last.root(), "outcomes").items()) {
      model::Outcome outcome;
      outcome.workload = text_at(entry, "workload");
      outcome.message = text_at(entry, "message");
      outcome.pods = static_cast<int>(int_at(entry, "pods"));
      outcome.placed = static_cast<int>(int_at(entry, "placed"));
      outcome.position = static_cast<int>(int_at(entry, "position"));
      for (const auto verdict : {model::Verdict::kPlaced, model::Verdict::kWait,
                                 model::Verdict::kNever, model::Verdict::kPartial}) {
        if (name(verdict) == text_at(entry, "verdict")) outcome.verdict = verdict;
      }
      for (int r = 0; r < static_cast<int>(model::Reason::kCount); ++r) {
        const auto reason = static_cast<model::Reason>(r);
        if (name(reason) == text_at(entry, "reason")) outcome.reason = reason;
      }
      if (outcome.verdict != model::Verdict::kPlaced) out[outcome.workload] = outcome;
    }
    return out;
  }

  std::uint64_t lines = 0;
  std::set<std::string> preempted;  // in this step
  ClusterQueues queues;

 private:
  text::Document last;
};

}  // namespace cluster

namespace {

// When a workload was created, and who of equals comes first.
using Age = std::pair<std::int64_t, std::string>;
Result<Age> age_of(const Object& object, std::int64_t now_ns) {
  BERTH_TRY(const text::Document document, text::parse_json(object.json));
  const std::string_view created = text_at(document.root(), "metadata.creationTimestamp");
  const auto at = text::parse_rfc3339(created);
  const std::string_view uid = text_at(document.root(), "metadata.uid");
  return Age{at.ok() ? *at : now_ns, uid.empty() ? object.name : std::string(uid)};
}

}  // namespace

struct ClusterEngine::State {
  State(const Scenario& what, kube::Client& with, Loop& on, Pump& by)
      : scenario(what),
        client(with),
        loop(on),
        pump(by),
        log(sink, on.wall(), LogOptions{.level = LogLevel::kError}) {}

  const Scenario& scenario;
  kube::Client& client;
  Loop& loop;
  Pump& pump;
  cluster::SilentSink sink;
  Logger log;
  MetricsRegistry metrics;
  cluster::LastDecision decisions;
  std::uint64_t changes = 0;
  std::unique_ptr<kube::Informer> pods;
  std::unique_ptr<sim::WorkControllers> work;
  std::unique_ptr<control::Controller> controller;
  std::set<std::string> namespaces, classes;
  std::map<std::string, kube::Resource> applied;    // by kind, of everything the scenario wrote
  std::map<std::string, std::string> bound_before;  // pod -> node
  std::set<std::string> removed;                    // pods that the step deletes
  std::vector<text::Document> cluster_queues;       // as they were read last
  bool paused = false;                              // nothing is decided: the step is written

  // ---- calls that wait -----------------------------------------------------------------------
  Result<kube::Answer> await(const std::function<void(kube::Client::Done)>& call) {
    std::optional<kube::Answer> answer;
    call([&](kube::Answer got) { answer = std::move(got); });
    if (!pump.until([&] { return answer.has_value(); })) {
      return Error(Code::kUnavailable, "the API server did not answer");
    }
    return std::move(*answer);
  }

  // What is written again is taken as written; pods and nodes keep what others said of them.
  Result<kube::Answer> replace(const Prepared& object) {
    if (object.resource.group != "kueue.x-k8s.io") {
      return await([&](kube::Client::Done done) {
        client.patch(object.resource, object.key, kube::PatchType::kMerge, object.body, {},
                     std::move(done));
      });
    }
    BERTH_TRY(const kube::Answer live, await([&](kube::Client::Done done) {
                client.get(object.resource, object.key, std::move(done));
              }));
    if (!live.ok()) return live.error();
    const std::string version(text_at(live.body.root(), "metadata.resourceVersion"));
    BERTH_TRY(const text::Document body, text::parse_json(object.body));
    BERTH_TRY(const text::Document change,
              text::parse_json(R"({"metadata":{"resourceVersion":")" + version + "\"}}"));
    BERTH_TRY(const text::Document whole, text::apply_merge_patch(body.root(), change.root()));
    return await([&](kube::Client::Done done) {
      client.update(object.resource, object.key, text::to_json(whole.root()), {}, std::move(done));
    });
  }

  Status write(const Prepared& object) {
    BERTH_TRY(kube::Answer answer, await([&](kube::Client::Done done) {
                client.create(object.resource, object.key.ns, object.body, {}, std::move(done));
              }));
    if (answer.conflict()) {
      BERTH_TRY(answer, replace(object));
    }
    if (!answer.ok()) return answer.error().context(object.resource.kind + " " + object.key.name);
    if (object.status.empty()) return {};
    BERTH_TRY(answer, await([&](kube::Client::Done done) {
                client.patch(object.resource, object.key, kube::PatchType::kMerge, object.status,
                             {.subresource = "status"}, std::move(done));
              }));
    // A kind without the subresource keeps its status in the object.
    if (answer.not_found()) {
      BERTH_TRY(answer, await([&](kube::Client::Done done) {
                  client.patch(object.resource, object.key, kube::PatchType::kMerge, object.status,
                               {}, std::move(done));
                }));
    }
    if (!answer.ok()) {
      return answer.error().context(object.resource.kind + " " + object.key.name + " status");
    }
    return {};
  }

  Status need_namespace(const std::string& ns) {
    if (ns.empty() || !namespaces.insert(ns).second) return {};
    Prepared made;
    made.resource = kube::resources::namespaces();
    made.key.name = ns;
    made.body =
        fmt::format(R"({{"apiVersion":"v1","kind":"Namespace","metadata":{{"name":"{}"}}}})", ns);
    return write(made);
  }

  Status apply(const Object& object, std::int64_t later_ns) {
    BERTH_TRY(Prepared prepared, prepare(object));
    prepared.status = times_moved(prepared.status, later_ns);
    BERTH_CHECK(need_namespace(prepared.key.ns));
    for (const int priority : prepared.priorities) {
      if (!classes.insert(priority_class_name(priority)).second) continue;
      Prepared made;
      made.resource = kube::resources::priority_classes();
      made.key.name = priority_class_name(priority);
      made.body = priority_class(priority);
      BERTH_CHECK(write(made));
    }
    if (object.kind == "Namespace") namespaces.insert(object.name);
    if (object.kind == "Workload") decisions.queues.wrote(object.name);
    applied.emplace(prepared.resource.group + "/" + prepared.resource.kind, prepared.resource);
    return write(prepared);
  }

  // Everything of a step: what workloads refer to first, then workloads by age.
  Status apply_all(const Step& step) {
    const std::int64_t later = pump.later_by(step.at_ns);
    std::vector<std::pair<Age, const Object*>> workloads;
    for (const Object& object : step.apply) {
      if (object.kind != "Workload" && object.kind != "Job") {
        BERTH_CHECK(apply(object, later));
        continue;
      }
      BERTH_TRY(Age age, age_of(object, step.at_ns));
      workloads.emplace_back(std::move(age), &object);
    }
    std::stable_sort(workloads.begin(), workloads.end(),
                     [](const auto& a, const auto& b) { return a.first < b.first; });
    std::int64_t last = INT64_MIN;
    bool any_holds = false;
    for (const auto& [age, object] : workloads) {
      // Of holders of one age nobody asks who came first.
      const bool holds = object->json.find(R"("admission":)") != std::string::npos;
      any_holds |= holds;
      if (!holds || age.first != last) pump.creation(age.first);
      last = age.first;
      BERTH_CHECK(apply(*object, later));
      pump.created();
    }
    if (any_holds) pump.creation(step.at_ns);  // who is evicted lines up after all of them
    return {};
  }

  Status remove(const Deletion& gone) {
    std::vector<std::string> kinds = {gone.kind};
    if (gone.kind == "Node") kinds.push_back("GpuNode");
    bool any = false;
    for (const auto& [known, resource] : applied) {
      if (std::find(kinds.begin(), kinds.end(), resource.kind) == kinds.end()) continue;
      const std::size_t slash = gone.name.find('/');
      const kube::Key key = slash == std::string::npos ? kube::Key{"", gone.name}
                                                       : kube::Key{gone.name.substr(0, slash),
                                                                   gone.name.substr(slash + 1)};
      BERTH_TRY(const kube::Answer answer, await([&](kube::Client::Done done) {
                  client.remove(resource, key, {}, std::move(done));
                }));
      any = any || answer.ok();
    }
    if (gone.kind == "Pod") removed.insert(gone.name);
    if (any) return {};
    return invalid("nothing to delete: " + gone.kind + ' ' + gone.name)
        .context(scenario.path + ":" + std::to_string(gone.line));
  }

  // Whoever would take the finalizers of what is deleted away does not run here.
  void let_go() {
    for (const auto& [known, resource] : applied) {
      if (resource.kind != "PodGroup") continue;
      const auto left =
          await([&](kube::Client::Done done) { client.list(resource, {}, std::move(done)); });
      const text::Value* items = left.ok() ? left->body.root().find("items") : nullptr;
      if (items == nullptr) continue;
      for (const text::Value& item : items->items()) {
        const kube::Key key{std::string(text_at(item, "metadata.namespace")),
                            std::string(text_at(item, "metadata.name"))};
        (void)await([&](kube::Client::Done done) {
          client.patch(resource, key, kube::PatchType::kMerge,
                       R"({"metadata":{"finalizers":null}})", {}, std::move(done));
        });
      }
    }
  }

  // ---- the kubelet -----------------------------------------------------------------------------
  void on_pod(const kube::ObjectPtr& after) {
    ++changes;
    if (after == nullptr) return;
    const text::Value& root = after->root();
    if (text_at(root, "spec.nodeName").empty()) return;
    if (!text_at(root, "metadata.deletionTimestamp").empty()) {
      client.remove(kube::resources::pods(), after->key, {.uid = after->uid, .grace_seconds = 0},
                    [](const kube::Answer&) {});
      return;
    }
    if (text_at(root, "status.phase") != "Pending") return;
    const std::string now = text::format_rfc3339(loop.wall().now_ns() / kSecond * kSecond);
    const std::string body = fmt::format(
        R"({{"status":{{"phase":"Running","startTime":"{}","conditions":[{{"type":"Ready",)"
        R"("status":"True","lastTransitionTime":"{}"}}]}}}})",
        now, now);
    client.patch(kube::resources::pods(), after->key, kube::PatchType::kStrategic, body,
                 {.subresource = "status"}, [](const kube::Answer&) {});
  }

  // ---- what is to be seen ----------------------------------------------------------------------
  Result<kinds::Inputs> read() {
    kinds::ManifestReader reader;
    int index = 0;
    cluster_queues.clear();
    for (const auto& [known, resource] : applied) {
      BERTH_TRY(const kube::Answer answer, await([&](kube::Client::Done done) {
                  client.list(resource, {}, std::move(done));
                }));
      if (!answer.ok()) return answer.error().context(resource.plural);
      const text::Value* items = answer.body.root().find("items");
      if (items == nullptr) continue;
      for (const text::Value& item : items->items()) {
        // Items of a list do not say what they are.
        const std::string head = fmt::format(R"({{"apiVersion":"{}","kind":"{}")",
                                             resource.api_version(), resource.kind);
        std::string json = head;
        for (const text::Member& member : item.members()) {
          if (member.key == "apiVersion" || member.key == "kind") continue;
          json += ",\"" + std::string(member.key) + "\":" + text::to_json(member.value);
        }
        BERTH_TRY(text::Document document, text::parse_json(json + "}"));
        reader.add(scenario.path, ++index, document);
        if (resource.kind == "ClusterQueue") cluster_queues.push_back(std::move(document));
      }
    }
    return reader.finish();
  }

  Observed observe(const kinds::Inputs& inputs) {
    Observed out;
    std::map<std::string, std::string> bound_now;
    for (const model::PodSpec& pod : inputs.pods) {
      if (pod.node_name.empty()) continue;
      const std::string name = pod.ns + '/' + pod.name;
      Observed::Bound bound;
      bound.node = pod.node_name;
      bound.gpus = pod.gpu_indices;
      bound.gpus.erase(std::unique(bound.gpus.begin(), bound.gpus.end()), bound.gpus.end());
      if (!pod.gang.empty()) {
        bound.workload = pod.ns + '/' + pod.gang;
      } else if (!pod.owner.empty()) {
        bound.workload = pod.ns + '/' + pod.owner.substr(pod.owner.find('/') + 1);
      }
      const auto before = bound_before.find(name);
      bound.fresh = before == bound_before.end();
      bound_now[name] = pod.node_name;
      out.bound.emplace(name, std::move(bound));
    }
    for (const auto& [name, node] : bound_before) {
      if (!bound_now.contains(name) && !removed.contains(name)) out.preempted.insert(name);
    }
    out.pending = decisions.queues.renamed(decisions.waiting(), inputs);
    decisions.queues.observe(inputs, cluster_queues, out);
    for (const model::NodeSpec& node : inputs.nodes) {
      out.node_labels[node.name] = {node.labels.begin(), node.labels.end()};
    }
    bound_before = std::move(bound_now);
    return out;
  }
};

ClusterEngine::ClusterEngine(const Scenario& scenario, kube::Client& client, Loop& loop, Pump& pump)
    : state_(std::make_unique<State>(scenario, client, loop, pump)) {}

ClusterEngine::~ClusterEngine() = default;

Status ClusterEngine::start() {
  State& s = *state_;
  s.namespaces = {"default", "kube-system"};
  BERTH_TRY(const kube::Answer kinds, s.await([&](kube::Client::Done done) {
    s.client.get(kube::resources::custom_resource_definitions(), {"", "workloads.kueue.x-k8s.io"},
                 std::move(done));
  }));
  // Kinds stay from scenario to scenario.
  BERTH_CHECK(text::read_yaml(
      kinds.ok() ? "" : app::user_crds(), [&](const text::Document& document) -> Status {
        const std::string name(text_at(document.root(), "metadata.name"));
        if (name.empty()) return {};
        BERTH_TRY(const kube::Answer answer, s.await([&](kube::Client::Done done) {
          s.client.patch(kube::resources::custom_resource_definitions(), {"", name},
                         kube::PatchType::kApply, text::to_json(document.root()),
                         {.manager = "scenario", .force = true}, std::move(done));
        }));
        return answer.ok() ? Status() : Status(answer.error().context(name));
      }));
  s.applied.emplace("/Pod", kube::resources::pods());
  s.applied.emplace("kueue.x-k8s.io/Workload", kube::resources::workloads());
  kube::InformerOptions options;
  options.resource = kube::resources::pods();
  s.pods = std::make_unique<kube::Informer>(s.client, Random(1).split("pods"), options);
  s.pods->add_handler([state = state_.get()](const kube::ObjectPtr&, const kube::ObjectPtr& after) {
    state->on_pod(after);
  });
  s.pods->start();
  s.work = std::make_unique<sim::WorkControllers>(s.client, Random(2));
  s.work->start();
  return {};
}

void ClusterEngine::clean_up() {
  State& s = *state_;
  s.controller.reset();
  s.work.reset();
  const auto remove_all = [&](const kube::Resource& resource, const std::string& ns,
                              const std::string& query) {
    const text::HttpRequest request{.method = "DELETE",
                                    .target = kube::Client::collection_path(resource, ns) + query,
                                    .headers = {},
                                    .body = {}};
    (void)s.await([&](kube::Client::Done done) { s.client.raw(request, {}, std::move(done)); });
  };
  for (const auto& [known, resource] : s.applied) {
    if (resource.kind == "Namespace") continue;
    if (!resource.namespaced) {
      remove_all(resource, "", "");
      continue;
    }
    for (const std::string& ns : s.namespaces) {
      // A Job would wait for the garbage collector, which a bare server does not have.
      remove_all(resource, ns,
                 resource.kind == "Pod"   ? "?gracePeriodSeconds=0"
                 : resource.kind == "Job" ? "?propagationPolicy=Background"
                                          : "");
    }
  }
  remove_all(kube::resources::priority_classes(), "", "");
  s.let_go();
  s.pump.until([&] { return s.pods->size() == 0; });
}

Result<Observed> ClusterEngine::run(const Step& step) {
  State& s = *state_;
  s.decisions.preempted.clear();
  s.removed.clear();
  const bool first = s.controller == nullptr;
  if (first) {
    // What a scenario says to be running is there before anybody decides.
    BERTH_CHECK(s.apply_all(step));
    s.pump.go_to(step.at_ns);
    for (const auto& pod : s.pods->all()) {
      const std::string_view node = text_at(pod->root(), "spec.nodeName");
      if (!node.empty()) s.bound_before[pod->key.to_string()] = node;
    }
    control::ControllerOptions options;
    BERTH_TRY(options.policy, app::policy_flags(s.scenario.policy));
    s.controller = std::make_unique<control::Controller>(
        s.client, Random(3), options, [&s] { return !s.paused; }, s.log, s.metrics, &s.decisions);
    s.controller->start();
    if (!s.pump.until([&s] { return s.controller->summary().synced; })) {
      return Error(Code::kUnavailable, "the controller's caches were not filled");
    }
  } else {
    s.pump.go_to(step.at_ns);
    s.paused = true;  // as in a plan, what a step writes is decided on together
    s.controller->wake();
    s.pump.until([&s] { return !s.controller->summary().leading; });
    for (const Deletion& gone : step.remove) BERTH_CHECK(s.remove(gone));
    BERTH_CHECK(s.apply_all(step));
    s.paused = false;
  }
  const std::uint64_t cycles = s.controller->summary().cycles;
  s.controller->wake();
  s.pump.until([&] { return s.controller->summary().cycles > cycles; });
  s.pump.settle([&s] { return s.changes + s.decisions.lines; });
  BERTH_TRY(const kinds::Inputs inputs, s.read());
  return s.observe(inputs);
}

}  // namespace berth::scenario
