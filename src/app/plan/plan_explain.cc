#include "app/plan/plan_explain.h"

#include <fmt/core.h>

#include <algorithm>

#include "app/words.h"
#include "people/view/wrap.h"
#include "people/why/why.h"
#include "text/escape.h"

namespace berth::app {

namespace {

constexpr std::size_t kMostPlaces = 16;

bool goes_by(std::string_view full, std::string_view asked) {
  const std::size_t slash = full.find('/');
  return full == asked || (asked.find('/') == std::string_view::npos &&
                           slash != std::string_view::npos && full.substr(slash + 1) == asked);
}

// Of the plan's workloads: by its name, else by that of one of its pods or their owner.
std::vector<const Workload*> workloads_named(const PlanResult& plan, std::string_view name) {
  std::vector<const Workload*> out;
  for (const Workload& workload : plan.workloads) {
    if (goes_by(workload.name, name)) out.push_back(&workload);
  }
  if (!out.empty()) return out;
  for (const Workload& workload : plan.workloads) {
    const bool has = std::any_of(workload.names.begin(), workload.names.end(),
                                 [&](const std::string& other) { return goes_by(other, name); });
    if (has) out.push_back(&workload);
  }
  return out;
}

void plan_row(std::string_view label, const std::string& body, std::string& out) {
  constexpr std::size_t kHang = 11;
  people::wrap("  " + padded(std::string(label), kHang - 2), kHang, text::terminal_safe(body), out);
}

std::string need_of(const Workload& workload) {
  std::string out = show_count(workload.pods, "pod");
  out += workload.mixed ? fmt::format(", {} GPUs in all", show_milli(workload.asked_milli))
                        : " x " + show_demand(workload.sample.gpu);
  if (!workload.required_topology.empty()) {
    out += ", all in one " + short_key(workload.required_topology);
  }
  out += fmt::format("; priority {}", workload.priority);
  if (!workload.queue.empty()) out += "; queue " + workload.queue;
  return workload.flavors.empty() ? out : out + ", on " + workload.flavors;
}

std::string place_of(const model::Placement& placement) {
  std::string out = placement.pod + " on " + placement.node;
  if (!placement.gpus.empty()) {
    out += (placement.gpus.size() > 1 ? ", GPUs " : ", GPU ") + show_ranges(placement.gpus);
  }
  if (placement.gpu_milli > 0 && placement.gpu_milli < model::kMilliPerGpu) {
    out += fmt::format(" ({} of each)", show_milli(placement.gpu_milli));
  }
  return out;
}

std::string victims_of(const PlanResult& plan, const Workload& workload) {
  std::string out;
  for (const model::Preemption& victim : plan.decision.preemptions) {
    const bool ours =
        victim.by == workload.name ||
        std::any_of(workload.placements.begin(), workload.placements.end(),
                    [&](std::size_t i) { return plan.decision.placements[i].pod == victim.by; });
    if (!ours) continue;
    out += (out.empty() ? "" : ", ") + victim.pod + " on " + victim.node +
           (victim.breaks_budget ? " (against its disruption budget)" : "");
  }
  return out;
}

std::string placed_text(const PlanResult& plan, const Workload& workload) {
  std::string out;
  // Without placements another scheduler binds what the quota let in.
  people::wrap("", 2,
               text::terminal_safe(workload.name) +
                   (workload.placements.empty() ? " is admitted" : " is placed") +
                   (workload.after_preemption ? ", once its victims are gone" : ""),
               out);
  out += '\n';
  plan_row("need", need_of(workload), out);
  for (std::size_t i = 0; i < workload.placements.size() && i < kMostPlaces; ++i) {
    plan_row(i == 0 ? "where" : "", place_of(plan.decision.placements[workload.placements[i]]),
             out);
  }
  if (workload.placements.size() > kMostPlaces) {
    plan_row("", fmt::format("+{} more (see -o json)", workload.placements.size() - kMostPlaces),
             out);
  }
  if (!workload.domain.empty()) {
    plan_row("domain", "all in " + short_key(workload.required_topology) + ' ' + workload.domain,
             out);
  }
  if (workload.one_clique) plan_row("links", "the GPUs of each pod share one NVLink clique", out);
  const std::string victims = victims_of(plan, workload);
  if (!victims.empty()) plan_row("evicts", victims, out);
  return out;
}

}  // namespace

Result<std::string> explain_in_plan(const PlanResult& plan, const kinds::Inputs& inputs,
                                    const PlanOptions& options, std::string_view name,
                                    const std::string& replay) {
  const std::vector<const Workload*> found = workloads_named(plan, name);
  if (found.size() == 1 && found.front()->placed()) return placed_text(plan, *found.front());
  const std::string full = found.size() == 1 ? found.front()->name : std::string(name);
  const std::size_t slash = full.find('/');
  people::Subject subject;
  if (slash != std::string::npos) subject.ns = full.substr(0, slash);
  subject.name = slash == std::string::npos ? full : full.substr(slash + 1);
  people::WhyOptions how;
  how.plan = options;
  how.replay = replay;
  people::Examiner examiner(inputs, std::move(how));
  BERTH_TRY(const people::Answer answer, examiner.why(subject));
  return people::why_table(answer, /*all_holders=*/true);
}

}  // namespace berth::app
