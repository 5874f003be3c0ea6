#include <algorithm>

#include "app/cli/cli.h"
#include "app/plan/plan.h"
#include "app/plan/plan_table.h"
#include "engine.h"
#include "queue_memory.h"
#include "text/json.h"

namespace berth::scenario {

namespace {

class PlanEngine final : public Engine {
 public:
  explicit PlanEngine(const Scenario& scenario) : scenario_(scenario) {}

  Result<Observed> run(const Step& step) override {
    for (const Deletion& gone : step.remove) BERTH_CHECK(remove(gone));
    for (const Object& object : step.apply) apply(object);
    BERTH_TRY(kinds::Inputs inputs, read());
    carry_over(inputs);
    queues_.recall(inputs);
    app::PlanOptions options;
    BERTH_TRY(options.flags, app::policy_flags(scenario_.policy));
    if (scenario_.cycles > 0) options.cycles = scenario_.cycles;
    options.now_ns = step.at_ns;
    options.quota_only = scenario_.quota_only;
    const app::PlanResult plan = app::make_plan(inputs, options);
    return observe(plan, inputs, step.at_ns);
  }

 private:
  struct Held {
    std::string node;  // empty: evicted
    std::vector<int> gpus;
    std::int64_t started_ns = 0;
    std::string workload;  // that it was placed with, or empty
  };

  void apply(const Object& object) {
    if (object.kind == "Workload" || object.kind == "Job") queues_.forget(object.name);
    for (Object& known : objects_) {
      if (known.kind == object.kind && known.name == object.name) {
        known = object;
        return;
      }
    }
    objects_.push_back(object);
  }

  Status remove(const Deletion& gone) {
    const std::size_t before = objects_.size();
    std::erase_if(objects_, [&](const Object& object) {
      return object.name == gone.name &&
             (object.kind == gone.kind || (gone.kind == "Node" && object.kind == "GpuNode"));
    });
    held_.erase(gone.name);
    queues_.forget(gone.name);
    if (objects_.size() < before) return {};
    return invalid("nothing to delete: " + gone.kind + ' ' + gone.name)
        .context(scenario_.path + ":" + std::to_string(gone.line));
  }

  Result<kinds::Inputs> read() const {
    kinds::ManifestReader reader;
    int index = 0;
    for (const Object& object : objects_) {
      auto document = text::parse_json(object.json);
      if (!document.ok()) {
        return std::move(document).error().context(scenario_.path + ":" +
                                                   std::to_string(object.line));
      }
      reader.add(scenario_.path, ++index, *document);
    }
    return reader.finish();
  }

  // What earlier steps placed or evicted.
  void carry_over(kinds::Inputs& inputs) const {
    for (model::PodSpec& pod : inputs.pods) {
      const auto it = held_.find(pod.ns + '/' + pod.name);
      if (it == held_.end()) continue;
      pod.node_name = it->second.node;
      pod.gpu_indices = it->second.gpus;
      pod.started_ns = it->second.started_ns;
    }
  }

  void remember(const app::PlanResult& plan, const kinds::Inputs& inputs, std::int64_t now) {
    queues_.remember(plan.decision, inputs, now);
    for (const model::Preemption& victim : plan.decision.preemptions) held_[victim.pod] = {};
    std::set<std::string> left;  // workloads that queues evicted
    for (const model::Eviction& eviction : plan.decision.evictions) {
      for (const auto& [pod, node] : eviction.pods) held_[pod] = {};
      if (!queues_.holds(eviction.workload)) left.insert(eviction.workload);
    }
    for (const model::Placement& placement : plan.decision.placements) {
      if (left.contains(placement.gang)) continue;
      std::vector<int> gpus = placement.gpus;  // a GPU stands there once per share
      gpus.erase(std::unique(gpus.begin(), gpus.end()), gpus.end());
      held_[placement.pod] = {placement.node, std::move(gpus), now, placement.gang};
    }
  }

  // Pods that run, those of the input and those that queues made.
  void observe_pods(const app::PlanResult& plan, const kinds::Inputs& inputs, Observed& out) const {
    for (const model::PodSpec& pod : inputs.pods) {
      const std::string name = pod.ns + '/' + pod.name;
      const auto held = held_.find(name);
      Observed::Bound bound;
      bound.node = held == held_.end() ? pod.node_name : held->second.node;
      bound.gpus = held == held_.end() ? pod.gpu_indices : held->second.gpus;
      if (bound.node.empty()) continue;
      if (!pod.gang.empty()) {
        bound.workload = pod.ns + '/' + pod.gang;
      } else if (!pod.owner.empty()) {
        bound.workload = pod.ns + '/' + pod.owner.substr(pod.owner.find('/') + 1);
      } else if (held != held_.end()) {
        bound.workload = held->second.workload;
      }
      out.bound.emplace(name, std::move(bound));
    }
    for (const model::Placement& placement : plan.decision.placements) {
      const auto held = held_.find(placement.pod);
      if (held == held_.end() || held->second.node.empty()) continue;
      Observed::Bound& bound = out.bound[placement.pod];
      bound.node = held->second.node;
      bound.gpus = held->second.gpus;
      if (bound.workload.empty()) bound.workload = placement.gang;
      bound.fresh = true;
    }
  }

  Observed observe(const app::PlanResult& plan, const kinds::Inputs& inputs, std::int64_t now) {
    Observed out;
    for (const model::Preemption& victim : plan.decision.preemptions) {
      out.preempted.insert(victim.pod);
      if (victim.breaks_budget) out.broken_budgets.insert(victim.pod);
    }
    remember(plan, inputs, now);
    observe_pods(plan, inputs, out);
    out.admissions = plan.decision.admissions;
    out.evictions = plan.decision.evictions;
    out.queues = plan.decision.queues;
    for (const model::Outcome& outcome : plan.decision.outcomes) {
      if (outcome.verdict != model::Verdict::kPlaced)
        out.pending.emplace(outcome.workload, outcome);
    }
    for (const app::Workload& workload : plan.workloads) {
      for (std::size_t w = 0; w < workload.waiting.size(); ++w) {
        out.help[plan.decision.outcomes[workload.waiting[w]].workload] = workload.help[w];
      }
    }
    for (const model::NodeSpec& node : inputs.nodes) {
      out.node_labels[node.name] = {node.labels.begin(), node.labels.end()};
    }
    for (const auto& note : plan.invalid) out.invalid.push_back(app::note_line(note));
    for (const auto& note : plan.warnings) out.warnings.push_back(app::note_line(note));
    for (const auto& note : plan.ignored) out.ignored.push_back(app::note_line(note));
    out.exit_code = app::exit_code(plan);
    return out;
  }

  const Scenario& scenario_;
  std::vector<Object> objects_;
  std::map<std::string, Held> held_;
  QueueMemory queues_;
};

}  // namespace

std::unique_ptr<Engine> make_plan_engine(const Scenario& scenario) {
  return std::make_unique<PlanEngine>(scenario);
}

}  // namespace berth::scenario
