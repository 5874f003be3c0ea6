#include "app/views/fit_command.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include "app/why/why_command.h"
#include "kinds/quota_requests.h"
#include "kinds/readers.h"
#include "kinds/topology.h"
#include "people/view/plan.h"
#include "people/view/reasons.h"
#include "people/view/words.h"
#include "people/why/endings.h"
#include "text/escape.h"
#include "text/json_writer.h"
#include "text/quantity.h"
#include "text/rfc3339.h"

namespace berth::app {

namespace {

constexpr const char* kFitName = "berth-fit";
constexpr int kFitWaits = 10, kFitNever = 30;

struct Trial {
  bool placed = false, never = false;
  model::Reason reason = model::Reason::kNone;
  std::string message;
  std::string help;
  std::vector<model::Placement> placements;
  std::vector<std::string> victims;
};

struct FitAnswer {
  Trial now;
  std::optional<std::int64_t> at_ns;  // when it would start; absent: now, never or unknown
  std::string because;                // of at_ns, or why it is unknown
  std::vector<std::string> models;    // that it may use
  std::string queue;                  // LocalQueue "ns/name" it would wait in
};

Result<std::int64_t> amount_of(const char* option, const std::string& text, bool milli) {
  const Result<text::Quantity> quantity = text::parse_quantity(text);
  if (!quantity.ok() || quantity->value() < 0) {
    return invalid(std::string(option) + ": found \"" + text::terminal_safe(text) +
                   "\", want a quantity such as 500m or 16Gi");
  }
  return milli ? quantity->milli_value() : quantity->value();
}

std::string lower(std::string text) {
  for (char& c : text) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  return text;
}

// Products that people mean by a name: "h100", "H100-80GB", or the label's value.
Result<std::vector<std::string>> models_named(const std::string& name, const kinds::Inputs& in) {
  std::set<std::string> all, chosen;
  for (const model::NodeSpec& node : in.nodes) {
    for (const model::GpuSpec& gpu : node.gpus) all.insert(gpu.model);
  }
  for (const std::string& model : all) {
    if (lower(model).find(lower(name)) != std::string::npos) chosen.insert(model);
  }
  if (chosen.empty()) {
    std::string known;
    for (const std::string& model : all) {
      known += (known.empty() ? "" : ", ") + people::short_model(model);
    }
    return Error(Code::kNotFound, "--model: no GPU is of model " + name + "; there are: " +
                                      (known.empty() ? std::string("none") : known));
  }
  return std::vector<std::string>(chosen.begin(), chosen.end());
}

// The workload that was asked for, in the inputs.
class FitMaker {
 public:
  FitMaker(const FitArguments& arguments, const ClusterView& view)
      : arguments_(arguments), view_(view), inputs_(view.inputs) {}

  Status make(FitAnswer& answer) {
    BERTH_TRY(const model::PodSpec pod, template_pod(answer));
    BERTH_TRY(const std::string local, local_queue());
    std::string level;
    if (!arguments_.topology.empty()) {
      std::set<std::string, std::less<>> keys;
      for (const model::NodeSpec& node : inputs_.nodes) {
        for (const auto& [key, value] : node.labels) keys.insert(key);
      }
      level = kinds::topology_key(arguments_.topology, keys);
      if (!keys.contains(level)) {
        return invalid("--topology: no node has a label " + text::terminal_safe(level));
      }
    }
    if (!local.empty()) {
      answer.queue = local;
      add_workload(pod, local, level);
    } else {
      add_pods(pod, level);
    }
    return {};
  }

  const kinds::Inputs& inputs() const { return inputs_; }
  const std::string& name() const { return name_; }

 private:
  Result<model::PodSpec> template_pod(FitAnswer& answer) {
    model::PodSpec pod;
    pod.ns = view_.ns;
    pod.name = kFitName;
    pod.created_ns = view_.now_ns;
    if (!arguments_.cpu.empty()) {
      BERTH_TRY(pod.requests["cpu"], amount_of("--cpu", arguments_.cpu, true));
    }
    if (!arguments_.memory.empty()) {
      BERTH_TRY(pod.requests["memory"], amount_of("--memory", arguments_.memory, false));
    }
    pod.gpu.kind = model::GpuDemandSpec::Kind::kWhole;
    pod.gpu.count = arguments_.gpus;
    pod.gpus_by_container = {arguments_.gpus};
    // As the API server gives it to every pod that asks for the resource.
    pod.tolerations.push_back({.key = "nvidia.com/gpu",
                               .op = model::Toleration::Op::kExists,
                               .value = {},
                               .effect = std::nullopt});
    if (!arguments_.model.empty()) {
      BERTH_TRY(pod.gpu_models, models_named(arguments_.model, inputs_));
      answer.models = pod.gpu_models;
    }
    if (!arguments_.priority_class.empty()) BERTH_CHECK(take_priority(pod));
    return pod;
  }

  Status take_priority(model::PodSpec& pod) const {
    for (const char* kind : {"PriorityClass", "WorkloadPriorityClass"}) {
      const ObjectFacts* found = view_.find(kind, "", arguments_.priority_class);
      const text::Value* value = found == nullptr ? nullptr : found->value->find("value");
      if (value == nullptr) continue;
      const std::optional<std::int64_t> number = value->as_int64();
      constexpr std::int64_t kMost = 2'000'000'000;
      if (number && *number >= -kMost && *number <= kMost) {
        pod.priority = static_cast<int>(*number);
      }
      const text::Value* policy = found->value->find("preemptionPolicy");
      pod.preempts = policy == nullptr || policy->string() != "Never";
      pod.priority_class = arguments_.priority_class;
      return {};
    }
    return invalid("--priority-class: there is no PriorityClass or WorkloadPriorityClass " +
                   text::terminal_safe(arguments_.priority_class));
  }

  // "ns/name", or empty: without a queue.
  Result<std::string> local_queue() const {
    const auto& locals = inputs_.queues.local_queues;
    const std::string& asked = arguments_.queue;
    if (asked == "-") return std::string();
    for (const model::LocalQueueSpec& local : locals) {
      if (local.ns == view_.ns && local.name == (asked.empty() ? "default" : asked)) {
        return local.ns + '/' + local.name;
      }
    }
    if (asked.empty()) return std::string();
    for (const model::LocalQueueSpec& local : locals) {
      if (local.queue == asked || local.ns + '/' + local.name == asked) {
        return local.ns + '/' + local.name;
      }
    }
    std::string known;
    for (const model::LocalQueueSpec& local : locals) {
      known += (known.empty() ? "" : ", ") + local.ns + '/' + local.name;
    }
    return invalid("--queue: no LocalQueue leads to " + text::terminal_safe(asked) +
                   "; there are: " + (known.empty() ? std::string("none") : known));
  }

  void add_workload(model::PodSpec pod, const std::string& local, const std::string& level) {
    const std::size_t slash = local.find('/');
    model::WorkloadSpec workload;
    workload.ns = pod.ns = local.substr(0, slash);
    workload.queue = local.substr(slash + 1);
    workload.name = kFitName;
    workload.uid = kFitName;
    workload.priority = pod.priority;
    workload.created_ns = view_.now_ns;
    model::PodSetSpec set;
    set.count = arguments_.pods;
    set.requests = kinds::quota_requests(pod, inputs_.queues.config);
    if (!level.empty()) {
      set.topology.mode = model::TopologyAsk::Mode::kRequired;
      set.topology.level = level;
    }
    set.pod = std::make_shared<const model::PodSpec>(std::move(pod));
    workload.pod_sets.push_back(std::move(set));
    name_ = workload.ns + '/' + workload.name;
    auto& all = inputs_.queues.workloads;
    const auto at =
        std::upper_bound(all.begin(), all.end(), workload, [](const auto& a, const auto& b) {
          return std::pair(a.ns, a.name) < std::pair(b.ns, b.name);
        });
    all.insert(at, std::move(workload));
  }

  void add_pods(const model::PodSpec& pod, const std::string& level) {
    const bool gang = arguments_.pods > 1 || !level.empty();
    name_ = pod.ns + '/' + kFitName;
    if (gang) {
      model::GangSpec group;
      group.ns = pod.ns;
      group.name = kFitName;
      group.min_member = arguments_.pods;
      group.required_topology = level;
      group.created_ns = view_.now_ns;
      if (!arguments_.priority_class.empty()) group.priority = pod.priority;
      inputs_.gangs.push_back(std::move(group));
    }
    for (int i = 0; i < arguments_.pods; ++i) {
      model::PodSpec one = pod;
      if (gang) {
        one.name += '-' + std::to_string(i);
        one.gang = kFitName;
      }
      inputs_.pods.push_back(std::move(one));
    }
  }

  const FitArguments& arguments_;
  const ClusterView& view_;
  kinds::Inputs inputs_;
  std::string name_;
};

Trial try_fit(const kinds::Inputs& inputs, const std::string& name, std::int64_t now_ns) {
  people::PlanOptions options;
  options.now_ns = now_ns;
  const people::PlanResult plan = people::make_plan(inputs, options);
  Trial trial;
  for (const people::Workload& workload : plan.workloads) {
    if (workload.name != name) continue;
    trial.placed = workload.placed();
    for (const std::size_t i : workload.placements) {
      trial.placements.push_back(plan.decision.placements[i]);
    }
    if (trial.placed) continue;
    const model::Outcome& outcome = plan.decision.outcomes[workload.waiting.front()];
    trial.reason = outcome.reason;
    trial.message = outcome.message;
    const people::Standing standing = people::facts_of(outcome.reason).standing;
    trial.never = outcome.verdict == model::Verdict::kNever ||
                  standing == people::Standing::kNever ||
                  outcome.reason == model::Reason::kExceedsMaxQuota ||
                  outcome.reason == model::Reason::kNoMatchingFlavor;
    // What helps often repeats the message in fewer words; then it helps nobody.
    if (!workload.help.empty()) trial.help = workload.help.front();
    const std::size_t colon = trial.help.find(": ");
    if (colon != std::string::npos &&
        trial.message.find(trial.help.substr(colon + 2)) != std::string::npos) {
      trial.help.clear();
    }
  }
  const auto ours = [&name](const std::string& by) {
    return by == name || by.starts_with(name + '-');
  };
  for (const model::Preemption& victim : plan.decision.preemptions) {
    if (ours(victim.by)) trial.victims.push_back(victim.pod);
  }
  for (const model::Eviction& victim : plan.decision.evictions) {
    if (ours(victim.by)) trial.victims.push_back(victim.workload);
  }
  std::sort(trial.victims.begin(), trial.victims.end());
  return trial;
}

// ---- when ----

void find_start(const ClusterView& view, const FitMaker& maker, FitAnswer& answer) {
  const ViewObjects objects(view);
  const people::Endings endings = people::endings_of(view.inputs, &objects, view.now_ns);
  const people::Start start =
      people::earliest_start(endings, [&](std::span<const people::Ending> ended) {
        people::Draft draft;
        people::take_out(maker.inputs(), ended, draft);
        kinds::Inputs then = maker.inputs();
        std::erase_if(then.pods, [&](const model::PodSpec& pod) {
          return draft.gone_pods.contains(pod.ns + '/' + pod.name);
        });
        std::erase_if(then.queues.workloads, [&](const model::WorkloadSpec& spec) {
          return draft.gone_workloads.contains(spec.ns + '/' + spec.name);
        });
        return try_fit(then, maker.name(), ended.back().at_ns).placed;
      });
  answer.at_ns = start.at_ns;
  answer.because = start.because;
}

// ---- words ----

std::string ask_words(const FitArguments& arguments, const FitAnswer& answer) {
  std::string out =
      people::show_count(arguments.pods, "pod") + " x " + people::show_count(arguments.gpus, "GPU");
  if (!answer.models.empty()) {
    std::set<std::string> names;
    for (const std::string& model : answer.models) names.insert(people::short_model(model));
    std::string joined;
    for (const std::string& one : names) joined += (joined.empty() ? "" : " or ") + one;
    out += ", " + joined;
  }
  if (!arguments.topology.empty()) out += ", in one " + arguments.topology;
  if (!answer.queue.empty()) out += ", queue " + answer.queue;
  return out;
}

std::string places_words(const std::vector<model::Placement>& placements) {
  std::map<std::string, std::vector<int>> by_node;
  for (const model::Placement& placement : placements) {
    auto& gpus = by_node[placement.node];
    gpus.insert(gpus.end(), placement.gpus.begin(), placement.gpus.end());
  }
  std::string out;
  for (auto& [node, gpus] : by_node) {
    std::sort(gpus.begin(), gpus.end());
    out += (out.empty() ? "" : " · ") + node + ": " + people::show_ranges(gpus);
  }
  return out;
}

std::string verdict_of(const FitAnswer& answer) {
  if (answer.now.placed) return "now";
  if (answer.now.never) return "never";
  return answer.at_ns ? "later" : "unknown";
}

std::string fit_text(const FitArguments& arguments, const FitAnswer& answer,
                     const ClusterView& view, const Paint& paint) {
  const std::string ask = ask_words(arguments, answer);
  const Trial& now = answer.now;
  std::string out;
  if (now.placed) {
    out = paint.green("now") + ": " + wrapped(ask, 5) + '\n';
    out += "  where    " + wrapped(places_words(now.placements), 11) + '\n';
    if (!now.victims.empty()) {
      std::string names;
      for (const std::string& victim : now.victims) names += (names.empty() ? "" : ", ") + victim;
      out += "  evicts   " + wrapped(names, 11) + '\n';
    }
    return out;
  }
  out = (now.never ? paint.red("never") : paint.yellow("not now")) + ": " +
        wrapped(ask + " (" + std::string(model::name(now.reason)) + ')', now.never ? 7 : 9) + '\n';
  out += "  because  " + wrapped(now.message, 11) + '\n';
  if (!now.help.empty()) out += "  helps    " + wrapped(now.help, 11) + '\n';
  if (now.never) return out;
  const std::string when =
      answer.at_ns
          ? "about " + text::format_rfc3339(*answer.at_ns / 1'000'000'000 * 1'000'000'000) +
                ", in " + show_age(*answer.at_ns - view.now_ns) + ", " + answer.because
          : "unknown: " + answer.because;
  return out + "  starts   " + wrapped(when, 11) + '\n';
}

std::string fit_json(const FitArguments& arguments, const FitAnswer& answer) {
  text::JsonWriter out({.indent = 2});
  out.object([&] {
    out.field("version", "berth.dev/fit/v1");
    out.field("verdict", verdict_of(answer));
    out.object("ask", [&] {
      out.field("pods", arguments.pods);
      out.field("gpusPerPod", arguments.gpus);
      out.list("models", answer.models);
      out.field("topology", arguments.topology);
      out.field("queue", answer.queue);
      out.field("priorityClass", arguments.priority_class);
    });
    out.field("reason", model::name(answer.now.reason));
    out.field("message", answer.now.message);
    out.field("help", answer.now.help);
    out.key("at");
    if (answer.at_ns) {
      out.value(text::format_rfc3339(*answer.at_ns));
    } else {
      out.null();
    }
    out.field("because", answer.because);
    out.array("placements", [&] {
      for (const model::Placement& placement : answer.now.placements) {
        out.object([&] {
          out.field("node", placement.node);
          out.array("gpus", [&] {
            for (const int gpu : placement.gpus) out.value(gpu);
          });
        });
      }
    });
    out.list("evicts", answer.now.victims);
  });
  return std::move(out).take();
}

Sheet fit_sheet(const FitAnswer& answer) {
  return {{{"VERDICT"}, {"REASON"}, {"MESSAGE"}, {"AT"}, {"WHERE"}},
          {{verdict_of(answer), std::string(model::name(answer.now.reason)), answer.now.message,
            answer.at_ns ? text::format_rfc3339(*answer.at_ns) : "",
            places_words(answer.now.placements)}}};
}

// Nothing has such GPUs, and waiting brings none.
Trial no_such_model(const Error& error) {
  Trial out;
  out.never = true;
  out.reason = model::Reason::kGpuModelMismatch;
  out.message = error.message();
  return out;
}

}  // namespace

int fit_command(const FitArguments& arguments, Terminal& terminal) {
  return show_view(
      arguments.show, terminal,
      [&](const ClusterView& view, const ViewStyle& style) -> Result<Screen> {
        BERTH_CHECK(view.sees("nodes"));
        FitAnswer answer;
        FitMaker maker(arguments, view);
        const Status made = maker.make(answer);
        if (!made.ok() && made.error().code() != Code::kNotFound) return made.error();
        if (made.ok()) {
          answer.now = try_fit(maker.inputs(), maker.name(), view.now_ns);
          if (!answer.now.placed && !answer.now.never) find_start(view, maker, answer);
        } else {
          answer.now = no_such_model(made.error());
        }
        const int code = answer.now.placed ? 0 : answer.now.never ? kFitNever : kFitWaits;
        return render(
            style, code, [&] { return fit_text(arguments, answer, view, style.paint); },
            [&] { return fit_json(arguments, answer); }, [&] { return fit_sheet(answer); });
      });
}

}  // namespace berth::app
