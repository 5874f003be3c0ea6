#include "app/plan/plan_table.h"

#include <fmt/core.h>

#include <algorithm>
#include <set>

#include "app/views/sheet.h"
#include "app/words.h"
#include "model/amounts.h"
#include "people/view/wrap.h"
#include "text/escape.h"

namespace berth::app {

namespace {

constexpr std::size_t kMaxNameWidth = 27;

// A list of four columns: a name, a number, something short, a sentence. Nothing where it is empty.
class PlanList {
 public:
  PlanList(const char* name, const char* number, const char* third, std::size_t third_most,
           const char* fourth)
      : sheet_{{{name, false, true, 12, false, kMaxNameWidth},
                {number, true},
                {third, false, true, 8, false, third_most},
                {fourth, false, false, 12, true}},
               {}} {}
  void add(std::vector<std::string> row) { sheet_.rows.push_back(std::move(row)); }
  void print(std::size_t max_rows, std::string& out) const {
    if (!sheet_.rows.empty()) out += '\n' + table_text(sheet_, max_rows, "-o json");
  }

 private:
  Sheet sheet_;
};

std::string pods_of(const Workload& workload, int pods) {
  const bool some = pods != workload.pods;
  const std::string count =
      some ? fmt::format("{} of {}", pods, workload.pods) : std::to_string(pods);
  if (workload.kind == Workload::Kind::kGang) return "gang " + count;
  return count + (pods == 1 && !some ? " pod" : " pods");
}

std::string head_name(const Workload& workload, int pods) {
  if (workload.kind == Workload::Kind::kPod) {
    return text::elide_middle(text::terminal_safe(workload.name), kMaxNameWidth);
  }
  const std::string count = pods_of(workload, pods);
  const std::size_t room = kMaxNameWidth - width_of(count) - 1;
  return text::elide_middle(text::terminal_safe(workload.name), room) + ' ' + count;
}

struct PlaceOfNode {
  std::vector<int> gpus;
};

// "n0: 4-7 · n1: 0": as many nodes as the column holds.
std::string places(const PlanResult& plan, const Workload& workload, std::size_t width) {
  std::map<std::string, PlaceOfNode> nodes;
  for (const std::size_t i : workload.placements) {
    const model::Placement& placement = plan.decision.placements[i];
    auto& gpus = nodes[placement.node].gpus;
    gpus.insert(gpus.end(), placement.gpus.begin(), placement.gpus.end());
  }
  std::string out;
  std::size_t shown = 0;
  for (auto& [node, place] : nodes) {
    std::sort(place.gpus.begin(), place.gpus.end());
    place.gpus.erase(std::unique(place.gpus.begin(), place.gpus.end()), place.gpus.end());
    const std::string gpus = place.gpus.empty() ? "" : ": " + show_ranges(place.gpus);
    constexpr std::size_t kMostName = 16, kLeastName = 4;  // the numbers stay
    const std::size_t room = width > width_of(gpus) ? width - width_of(gpus) : 0;
    const std::string part =
        text::elide_middle(text::terminal_safe(node), std::clamp(room, kLeastName, kMostName)) +
        gpus;
    const std::size_t left = nodes.size() - shown - 1;
    const std::size_t rest = left == 0 ? 0 : 3 + width_of("+" + std::to_string(left));
    const std::size_t now = out.empty() ? 0 : width_of(out) + 3;
    if (!out.empty() && now + width_of(part) + rest > width) {
      return out + fmt::format(" · +{}", nodes.size() - shown);
    }
    out += (out.empty() ? "" : " · ") + part;
    ++shown;
  }
  return out;
}

std::string how(const Workload& workload) {
  std::vector<std::string> parts;
  if (workload.after_preemption) {
    parts.push_back(workload.victims > 0 ? "after preempting " + show_count(workload.victims, "pod")
                                         : "after preemption");
  }
  if (!workload.domain.empty()) {
    parts.push_back(short_key(workload.required_topology) + ' ' + workload.domain);
  }
  if (workload.one_clique) {
    parts.push_back(workload.placements.size() == 1 ? "one NVLink clique" : "NVLink cliques");
  }
  if (workload.apart && workload.sample.service) parts.push_back("each on its own node");
  using Kind = model::GpuDemandSpec::Kind;
  const Kind kind = workload.sample.gpu.kind;
  if (kind == Kind::kFraction || kind == Kind::kMemory || kind == Kind::kShared) {
    parts.push_back("shares a GPU");
  }
  if (kind == Kind::kMig) parts.push_back("MIG slice");
  std::string out;
  for (const std::string& part : parts) {
    const std::string next = out.empty() ? part : out + ", " + part;
    if (!out.empty() && width_of(next) > 25) break;
    out = next;
  }
  return out;
}

std::string cluster_line(const PlanResult& plan) {
  const ClusterUse& c = plan.before;
  if (c.nodes == 0) return "No nodes";
  std::string models;
  std::map<std::string, int> by_short;
  for (const auto& [model, gpus] : c.gpus_by_model) by_short[short_model(model)] += gpus;
  for (const auto& [model, gpus] : by_short) {
    models += models.empty() ? "" : ", ";
    models += by_short.size() > 1 ? fmt::format("{} {}", gpus, model) : model;
  }
  std::string out = show_count(c.nodes, "node") + ", " + show_count(c.gpus, "GPU");
  if (!models.empty()) {
    out += " (" + text::elide_middle(text::terminal_safe(models), 30) + ")";
  }
  if (c.gpu_pods > 0) {
    out += fmt::format(", {} held by {}", show_milli(c.used_milli),
                       show_count(c.gpu_pods, "running pod"));
  }
  return out;
}

void print_placed(const PlanResult& plan, std::size_t max_rows, std::string& out) {
  constexpr std::size_t kWhere = 26;
  PlanList table("PLACED", "GPUS", "WHERE", kWhere, "HOW");
  for (const Workload& workload : plan.workloads) {
    if (workload.placements.empty() || workload.was_running) continue;
    const int pods = static_cast<int>(workload.placements.size());
    table.add({head_name(workload, pods), show_milli(workload.placed_milli),
               places(plan, workload, kWhere), how(workload)});
  }
  table.print(max_rows, out);
}

// Let in by quota: where the pods go is for another scheduler to say.
void print_admitted(const PlanResult& plan, std::size_t max_rows, std::string& out) {
  PlanList table("ADMITTED", "GPUS", "QUEUE", 22, "HOW");
  for (const Workload& workload : plan.workloads) {
    if (workload.kind != Workload::Kind::kQueued || !workload.placed()) continue;
    if (!workload.placements.empty()) continue;
    std::string how = "on " + workload.flavors;
    if (workload.after_preemption) {
      how += ", after preempting " + show_count(workload.victims, "pod");
    }
    table.add({head_name(workload, workload.pods), show_milli(workload.asked_milli), workload.queue,
               std::move(how)});
  }
  table.print(max_rows, out);
}

void print_evicted(const PlanResult& plan, std::size_t max_rows, std::string& out) {
  PlanList table("EVICTED", "PODS", "QUEUE", 16, "WHY");
  for (const model::Eviction& victim : plan.decision.evictions) {
    const std::string why = victim.by.empty()
                                ? victim.reason + ": " + victim.message
                                : fmt::format("for {} ({})", victim.by, victim.reason);
    table.add({victim.workload, std::to_string(victim.pods.size()), victim.queue, why});
  }
  table.print(max_rows, out);
}

void print_queues(const PlanResult& plan, std::size_t max_rows, std::string& out) {
  PlanList table("QUEUE", "WAIT", "COHORT", 16, "USED OF NOMINAL");
  for (const model::QueueUse& queue : plan.decision.queues) {
    std::string use = queue.inactive.empty() ? "" : "inactive, " + queue.inactive + "; ";
    for (const auto& cell : queue.cells) {
      if (!use.empty() && !use.ends_with("; ")) use += ", ";
      use += fmt::format("{} of {} {}", model::show_amount(cell.resource, cell.used),
                         model::show_amount(cell.resource, cell.nominal),
                         cell.resource.substr(cell.resource.find('/') + 1));
      if (queue.cells.size() > 1) use += " " + cell.flavor;
    }
    if (queue.borrowing) use += "; borrows";
    table.add({queue.name, std::to_string(queue.pending), queue.cohort, std::move(use)});
  }
  table.print(max_rows, out);
}

void print_preempted(const PlanResult& plan, std::size_t max_rows, std::string& out) {
  std::map<std::string, std::string> next;  // of evicted pods: where they start again
  for (const model::Placement& placement : plan.decision.placements) {
    std::string where = "moves to " + placement.node;
    if (!placement.gpus.empty()) where += ": " + show_ranges(placement.gpus);
    next[placement.pod] = where;
  }
  PlanList table("PREEMPTED", "GPUS", "FROM", 16, "FOR");
  for (std::size_t i = 0; i < plan.decision.preemptions.size(); ++i) {
    const model::Preemption& victim = plan.decision.preemptions[i];
    const auto it = next.find(victim.pod);
    std::string fate = it == next.end() ? "waits again" : it->second;
    if (victim.breaks_budget) fate += ", against its budget";
    table.add({victim.pod, show_milli(plan.preempted_milli[i]), victim.node,
               victim.by + ", then " + fate});
  }
  table.print(max_rows, out);
}

void print_waiting(const PlanResult& plan, std::size_t max_rows, std::string& out) {
  PlanList table("WAITING", "GPUS", "REASON", 28, "WHAT WOULD HELP");
  for (const Workload& workload : plan.workloads) {
    if (workload.was_running) continue;
    // One row for each reason, with the first one's words.
    std::map<model::Reason, std::pair<int, std::size_t>> rows;
    for (std::size_t w = 0; w < workload.waiting.size(); ++w) {
      const model::Outcome& outcome = plan.decision.outcomes[workload.waiting[w]];
      const auto [it, fresh] = rows.emplace(outcome.reason, std::make_pair(0, w));
      it->second.first += outcome.pods - outcome.placed;
    }
    for (const auto& [reason, row] : rows) {
      const auto& [pods, w] = row;
      std::string gpus = workload.mixed && pods == workload.pods
                             ? show_milli(workload.asked_milli)
                             : show_gpus_column(workload.sample.gpu, pods);
      table.add({head_name(workload, pods), std::move(gpus), std::string(name(reason)),
                 workload.help[w]});
    }
  }
  table.print(max_rows, out);
}

void print_notes(const char* title, const std::vector<kinds::Note>& notes, std::size_t count,
                 std::size_t max_shown, std::string& out) {
  if (notes.empty()) return;
  out += fmt::format("\n{} ({})\n", title, std::max(count, notes.size()));
  const std::size_t shown = std::min(notes.size(), max_shown);
  for (std::size_t i = 0; i < shown; ++i) {
    people::wrap("  ", 4, text::terminal_safe(note_line(notes[i])), out);
  }
  const std::size_t total = std::max(count, notes.size());
  if (shown < total) out += fmt::format("  +{} more (see -o json)\n", total - shown);
}

// "ConfigMap 3, Service 2": of a long list only the kinds are worth a line.
std::string kinds_of(const std::vector<kinds::Note>& notes) {
  std::map<std::string, int> kinds;
  for (const kinds::Note& note : notes) {
    std::string kind = note.object.substr(0, note.object.find(' '));
    // The kind would be read, in another version.
    if (note.message.starts_with("version ")) kind += " of another version";
    ++kinds[kind];
  }
  std::string out;
  for (const auto& [kind, n] : kinds) {
    out += (out.empty() ? "" : ", ") + kind + (n > 1 ? fmt::format(" ({})", n) : "");
  }
  return out;
}

void print_summary(const PlanResult& plan, const TableOptions& options, std::string& out) {
  std::size_t workloads = 0, placed = 0;
  const Workload* waiting = nullptr;
  const Workload* other = nullptr;
  for (const Workload& workload : plan.workloads) {
    if (workload.was_running) continue;
    ++workloads;
    if (workload.placed()) {
      ++placed;
      continue;
    }
    const model::Outcome& outcome = plan.decision.outcomes[workload.waiting.front()];
    // One that was searched a place for and could get one is worth a closer look.
    const bool searched =
        outcome.certificate.nodes > 0 && outcome.verdict != model::Verdict::kNever;
    const Workload*& first = searched ? waiting : other;
    if (first == nullptr) first = &workload;
  }
  if (waiting == nullptr) waiting = other;
  out += '\n';
  if (workloads == 0) {
    out += "Nothing to place";
  } else {
    out += fmt::format("{} of {} placed", placed,
                       show_count(static_cast<std::int64_t>(workloads), "workload"));
  }
  if (plan.after.gpus > 0) {
    out += fmt::format("; {} of {} used after this plan", show_milli(plan.after.used_milli),
                       show_count(plan.after.gpus, "GPU"));
  }
  out += ".\n";
  if (!plan.stable) {
    out += fmt::format("Stopped after {}; another may change more.\n",
                       show_count(plan.cycles, "cycle"));
  }
  if (waiting != nullptr) {
    // To be pasted: in one line, however long.
    out += "Why exactly:  " + text::terminal_safe(options.command) + " --explain " +
           text::terminal_safe(waiting->name) + '\n';
  }
}

}  // namespace

Sheet plan_sheet(const PlanResult& plan) {
  Sheet sheet{{{"WORKLOAD"},
               {"STATE"},
               {"PODS"},
               {"GPUS"},
               {"QUEUE"},
               {"PRIORITY"},
               {"REASON"},
               {"WHERE"},
               {"HELP"}},
              {}};
  for (const Workload& workload : plan.workloads) {
    const auto add = [&](std::string state, std::string reason, std::string where,
                         std::string help) {
      sheet.rows.push_back({workload.name, std::move(state), std::to_string(workload.pods),
                            show_milli(workload.asked_milli), workload.queue,
                            std::to_string(workload.priority), std::move(reason), std::move(where),
                            std::move(help)});
    };
    if (!workload.placements.empty()) {
      add("placed", "", places(plan, workload, std::string::npos), "");
    } else if (workload.placed()) {
      add("admitted", "", "", "");
    }
    for (std::size_t w = 0; w < workload.waiting.size(); ++w) {
      const model::Outcome& outcome = plan.decision.outcomes[workload.waiting[w]];
      const bool never = outcome.verdict == model::Verdict::kNever;
      add(never ? "never" : "waits", std::string(name(outcome.reason)), "", workload.help[w]);
    }
  }
  return sheet;
}

std::string note_line(const kinds::Note& note) {
  std::string out = note.source;
  const auto add = [&out](const std::string& part) {
    if (!part.empty()) out += (out.empty() ? "" : ": ") + part;
  };
  if (note.line > 0) {
    out += ':' + std::to_string(note.line);
  } else if (note.document > 0) {
    add("document " + std::to_string(note.document));
  }
  add(note.object);
  add(note.path);
  add(note.message);
  return out;
}

std::string plan_table(const PlanResult& plan, const TableOptions& options) {
  std::string out;
  if (!plan.readable) return out;
  std::string head = cluster_line(plan);
  if (options.decision_ns) {
    const std::string took =
        fmt::format("{:.1f} ms", static_cast<double>(*options.decision_ns) / 1e6);
    if (width_of(head) + 2 + width_of(took) <= kScreenWidth) {
      head = padded(std::move(head), kScreenWidth - width_of(took)) + took;
    }
  }
  out += head + '\n';
  print_placed(plan, options.max_rows, out);
  print_admitted(plan, options.max_rows, out);
  print_evicted(plan, options.max_rows, out);
  print_preempted(plan, options.max_rows, out);
  print_waiting(plan, options.max_rows, out);
  print_queues(plan, options.max_rows, out);
  print_notes("INVALID, not planned", plan.invalid, plan.counts.invalid, 5, out);
  print_notes("WARNINGS", plan.warnings, plan.counts.warnings, 3, out);
  print_notes("NOTES", plan.notes, plan.counts.notes, 3, out);
  if (!plan.ignored.empty()) {
    out += '\n';
    const std::string line = fmt::format(
        "Ignored: {}",
        show_count(static_cast<std::int64_t>(std::max(plan.counts.ignored, plan.ignored.size())),
                   "object") +
            " not read: " + kinds_of(plan.ignored));
    people::wrap("", 4, text::terminal_safe(line), out);
  }
  print_summary(plan, options, out);
  return out;
}

}  // namespace berth::app
