#include "app/explain.h"

#include <fmt/core.h>

#include <algorithm>

#include "app/plan_table.h"
#include "app/words.h"
#include "explain/reasons.h"
#include "text/escape.h"

namespace berth::app {

namespace {

constexpr std::size_t kWidth = 80;
constexpr std::size_t kIndent = 11;  // "  need     "

bool names(std::string_view full, std::string_view asked) {
  if (full == asked) return true;
  const std::size_t slash = full.find('/');
  return asked.find('/') == std::string_view::npos && slash != std::string_view::npos &&
         full.substr(slash + 1) == asked;
}

// A no-break space keeps a name and its number on one line; it is printed as a blank.
std::string with_blanks(std::string word) {
  constexpr std::string_view kNoBreak = "\u00a0";
  for (std::size_t at = word.find(kNoBreak); at != std::string::npos; at = word.find(kNoBreak)) {
    word.replace(at, kNoBreak.size(), " ");
  }
  return word;
}

// One labelled paragraph, wrapped at blanks with a hanging indent.
void say(std::string_view label, const std::string& body, std::string& out) {
  std::string line = "  " + padded(std::string(label), kIndent - 2);
  std::size_t width = kIndent;
  bool fresh = true;
  std::size_t at = 0;
  while (at < body.size()) {
    const std::size_t end = std::min(body.find(' ', at), body.size());
    const std::string word = body.substr(at, end - at);
    at = end + 1;
    if (word.empty()) continue;
    if (!fresh && width + 1 + width_of(word) > kWidth) {
      out += line + '\n';
      line = std::string(kIndent, ' ');
      width = kIndent;
      fresh = true;
    }
    if (!fresh) {
      line += ' ';
      ++width;
    }
    width += width_of(word);
    line += with_blanks(word);
    fresh = false;
  }
  out += line + '\n';
}

std::string safe(std::string_view text) { return text::terminal_safe(text); }

class Explainer {
 public:
  Explainer(const PlanResult& plan, const Workload& workload) : plan_(plan), workload_(workload) {}

  std::string run() {
    if (!workload_.placements.empty()) placed();
    if (workload_.placements.empty() && workload_.waiting.empty()) admitted();
    for (std::size_t w = 0; w < workload_.waiting.size() && w < 3; ++w) {
      if (w > 0 || !workload_.placements.empty()) out_ += '\n';
      waits(plan_.decision.outcomes[workload_.waiting[w]], workload_.help[w]);
    }
    if (workload_.waiting.size() > 3) {
      out_ += fmt::format("\n+{} more pods wait (see -o json)\n", workload_.waiting.size() - 3);
    }
    return std::move(out_);
  }

 private:
  std::string pods_and_gpus() const {
    if (workload_.mixed) {
      return fmt::format("{}, {} GPUs in all", show_count(workload_.pods, "pod"),
                         show_milli(workload_.asked_milli));
    }
    return show_count(workload_.pods, "pod") + " x " + show_demand(workload_.sample.gpu);
  }

  std::string need() const {
    std::string out = pods_and_gpus();
    for (const auto& [resource, amount] : workload_.sample.requests) {
      if (resource == "cpu") out += fmt::format(", {} cpu", show_milli(amount));
    }
    if (!workload_.sample.gpu_models.empty()) {
      out += ", of model";
      for (const std::string& model : workload_.sample.gpu_models) out += ' ' + model;
    }
    if (!workload_.required_topology.empty()) {
      out += ", all in one " + short_key(workload_.required_topology);
    }
    return out + fmt::format("; priority {}", workload_.priority);
  }

  // Let in by quota, placed by another scheduler.
  void admitted() {
    out_ += safe(workload_.name) + " is admitted\n\n";
    say("need", safe(need()), out_);
    queue(0);
  }

  void queue(int position) {
    if (workload_.queue.empty()) return;
    std::string text = workload_.queue;
    if (position > 0) text += fmt::format(", place {}", position);
    if (!workload_.flavors.empty() && workload_.waiting.empty())
      text += ", on " + workload_.flavors;
    for (const model::QueueUse& use : plan_.decision.queues) {
      if (use.name == workload_.queue && !use.cohort.empty()) text += "; cohort " + use.cohort;
    }
    say("queue", safe(text), out_);
  }

  void placed() {
    const bool all = workload_.waiting.empty();
    out_ += safe(workload_.name) +
            (all ? " is placed"
                 : fmt::format(": {} of {} placed", workload_.placements.size(),
                               show_count(workload_.pods, "pod"))) +
            (workload_.after_preemption ? ", once its victims are gone\n\n" : "\n\n");
    say("need", safe(need()), out_);
    queue(0);
    std::size_t shown = 0;
    for (const std::size_t i : workload_.placements) {
      const model::Placement& placement = plan_.decision.placements[i];
      if (++shown > 16) break;
      std::string where = safe(placement.pod) + " on " + safe(placement.node);
      if (!placement.gpus.empty()) {
        where += (placement.gpus.size() > 1 ? ", GPUs " : ", GPU ") + show_ranges(placement.gpus);
      }
      if (placement.gpu_milli > 0 && placement.gpu_milli < model::kMilliPerGpu) {
        where += fmt::format(" ({} of each)", show_milli(placement.gpu_milli));
      }
      say(shown == 1 ? "where" : "", where, out_);
    }
    if (workload_.placements.size() > 16) {
      say("", fmt::format("+{} more (see -o json)", workload_.placements.size() - 16), out_);
    }
    if (!workload_.domain.empty()) {
      say("domain",
          "all in " + short_key(workload_.required_topology) + ' ' + safe(workload_.domain), out_);
    }
    if (workload_.one_clique) say("links", "the GPUs of each pod share one NVLink clique", out_);
    victims();
  }

  void victims() {
    std::string list;
    for (const model::Preemption& victim : plan_.decision.preemptions) {
      if (!is_ours(victim.by)) continue;
      list += (list.empty() ? "" : ", ") + safe(victim.pod) + " on " + safe(victim.node) +
              (victim.breaks_budget ? " (against its disruption budget)" : "");
    }
    if (!list.empty()) say("evicts", list, out_);
  }

  bool is_ours(const std::string& by) const {
    if (by == workload_.name) return true;
    return std::any_of(workload_.placements.begin(), workload_.placements.end(),
                       [&](std::size_t i) { return plan_.decision.placements[i].pod == by; });
  }

  void waits(const model::Outcome& outcome, const std::string& help) {
    const bool never = outcome.verdict == model::Verdict::kNever;
    const bool partial = outcome.verdict == model::Verdict::kPartial;
    const explain::ReasonFacts& text = explain::facts_of(outcome.reason);
    std::string verdict = safe(outcome.workload) + (never ? " never fits: " : " waits: ");
    if (partial) {
      verdict = fmt::format("{} waits for {}: ", safe(outcome.workload),
                            show_count(outcome.pods - outcome.placed, "more pod"));
    }
    verdict += std::string(text.means) + " (" + std::string(name(outcome.reason)) + ')';
    wrap_verdict(verdict);
    out_ += '\n';
    say("need", safe(need()), out_);
    queue(outcome.position);
    if (!outcome.message.empty()) say("because", safe(outcome.message), out_);
    arithmetic(outcome);
    funnel(outcome.certificate);
    domains(outcome);
    if (!never) holders();
    if (adds_something(outcome.reason)) say("helps", safe(help), out_);
    say("next", std::string(text.what_to_do), out_);
    if (!outcome.certificate.exact) {
      say("note", "the search ended at its bound; this \"no\" is not a proof", out_);
    }
  }

  // The numbers of the others stand in "because" already.
  static bool adds_something(model::Reason reason) {
    switch (reason) {
      case model::Reason::kFragmented:
      case model::Reason::kNeverFits:
      case model::Reason::kInsufficientGpus:
      case model::Reason::kGangIncomplete:
      case model::Reason::kGangDoesNotFit:
      case model::Reason::kTopologyDomainTooSmall:
      case model::Reason::kGated:
      case model::Reason::kNoNodes:
      case model::Reason::kPreempted:
        return false;
      case model::Reason::kWaitingForQuota:
      case model::Reason::kExceedsMaxQuota:
      case model::Reason::kNoMatchingFlavor:
      case model::Reason::kTopologyPlacementFailed:
      case model::Reason::kWaitingForPreemptedWorkloads:
      case model::Reason::kMisconfigured:
      case model::Reason::kOnHold:
      case model::Reason::kUnsatisfiedAdmissionChecks:
        return false;
      default:
        return true;
    }
  }

  void wrap_verdict(const std::string& verdict) {
    std::size_t width = 0;
    std::size_t at = 0;
    while (at < verdict.size()) {
      const std::size_t end = std::min(verdict.find(' ', at), verdict.size());
      const std::string word = verdict.substr(at, end - at);
      at = end + 1;
      if (width > 0 && width + 1 + width_of(word) > kWidth) {
        out_ += "\n  ";
        width = 2;
      } else if (width > 0) {
        out_ += ' ';
        ++width;
      }
      out_ += word;
      width += width_of(word);
    }
    out_ += '\n';
  }

  void arithmetic(const model::Outcome& outcome) {
    const model::Certificate& proof = outcome.certificate;
    if (workload_.sample.gpu.kind == model::GpuDemandSpec::Kind::kNone || proof.nodes == 0) return;
    std::int64_t free = 0;
    std::vector<const NodeUse*> nodes;
    for (const NodeUse& node : plan_.nodes) {
      free += node.free_milli;
      if (node.free_milli > 0) nodes.push_back(&node);
    }
    std::stable_sort(nodes.begin(), nodes.end(), [](const NodeUse* a, const NodeUse* b) {
      return a->free_milli > b->free_milli;
    });
    std::string have = fmt::format("{} of {} free after this plan", show_milli(free),
                                   show_count(plan_.after.gpus, "GPU"));
    constexpr std::size_t kMostNodes = 8;
    for (std::size_t i = 0; i < nodes.size() && i < kMostNodes; ++i) {
      have += (i == 0 ? ": " : " · ") + text::elide_middle(safe(nodes[i]->name), 20) + "\u00a0" +
              show_milli(nodes[i]->free_milli);
    }
    if (nodes.size() > kMostNodes) have += fmt::format(" · +{} nodes", nodes.size() - kMostNodes);
    say("have", have, out_);
  }

  void funnel(const model::Certificate& proof) {
    if (proof.nodes == 0) return;
    say("nodes",
        fmt::format("{} in the cluster, {} can take a pod of it", proof.nodes,
                    proof.fitting_nodes == 0 ? "none" : std::to_string(proof.fitting_nodes)),
        out_);
    std::vector<int> order;
    for (int c = 0; c < model::kConstraints; ++c) {
      if (proof.removed[static_cast<std::size_t>(c)] > 0) order.push_back(c);
    }
    std::stable_sort(order.begin(), order.end(), [&](int a, int b) {
      return proof.removed[static_cast<std::size_t>(a)] >
             proof.removed[static_cast<std::size_t>(b)];
    });
    for (const int c : order) {
      const auto index = static_cast<std::size_t>(c);
      const auto constraint = static_cast<model::Constraint>(c);
      std::string line = fmt::format("{} out by {}: {}", proof.removed[index], name(constraint),
                                     sentence(constraint));
      if (proof.only[index] > 0) line += fmt::format(" ({} by this alone)", proof.only[index]);
      say("", line, out_);
    }
  }

  void domains(const model::Outcome& outcome) {
    const model::Certificate& proof = outcome.certificate;
    if (proof.domains.empty() || !outcome.gang) return;
    std::string list;
    for (const auto& domain : proof.domains) {
      list += (list.empty() ? "" : " · ") + safe(domain.name) + ' ' + std::to_string(domain.fits);
    }
    const int more = proof.domains_total - static_cast<int>(proof.domains.size());
    if (more > 0) list += fmt::format(" · +{} more", more);
    say("domains", fmt::format("pods that fit: {}; needed at once: {}", list, proof.needed_pods),
        out_);
  }

  void holders() {
    std::size_t shown = 0;
    std::vector<const NodeUse*> nodes;
    for (const NodeUse& node : plan_.nodes) {
      if (!node.holders.empty()) nodes.push_back(&node);
    }
    // The nodes with the most free GPUs are the nearest to having room.
    std::stable_sort(nodes.begin(), nodes.end(),
                     [](const NodeUse* a, const NodeUse* b) { return a->free > b->free; });
    for (const NodeUse* node : nodes) {
      if (shown == 4) {
        say("", fmt::format("+{} more nodes (see -o json)", nodes.size() - shown), out_);
        break;
      }
      std::string list =
          fmt::format("{} ({} free): ", text::elide_middle(safe(node->name), 20), node->free);
      for (std::size_t i = 0; i < node->holders.size(); ++i) {
        if (i == 4) {
          list += fmt::format(", +{} pods", node->holders.size() - i);
          break;
        }
        const NodeUse::Holder& holder = node->holders[i];
        list += (i == 0 ? "" : ", ") + text::elide_middle(safe(holder.pod), 30) +
                fmt::format("\u00a0({})", show_milli(holder.milli));
      }
      say(shown == 0 ? "holders" : "", list, out_);
      ++shown;
    }
  }

  const PlanResult& plan_;
  const Workload& workload_;
  std::string out_;
};

}  // namespace

Result<const Workload*> find_workload(const PlanResult& plan, const objects::Inputs& inputs,
                                      std::string_view name) {
  std::vector<const Workload*> found;
  const auto add = [&found](const Workload& workload) {
    if (std::find(found.begin(), found.end(), &workload) == found.end()) found.push_back(&workload);
  };
  for (const Workload& workload : plan.workloads) {
    if (names(workload.name, name)) add(workload);
  }
  if (found.empty()) {  // a pod of one, or its owner
    for (const Workload& workload : plan.workloads) {
      for (const std::string& other : workload.names) {
        if (names(other, name)) add(workload);
      }
    }
  }
  if (found.size() == 1) return found.front();
  const std::string asked = text::terminal_safe(name);
  if (found.size() > 1) {
    std::string list;
    for (std::size_t i = 0; i < found.size() && i < 5; ++i) {
      list += (i == 0 ? " " : ", ") + text::terminal_safe(found[i]->name);
    }
    return Error(Code::kInvalid, asked + " names several workloads, say which:" + list);
  }
  for (const model::PodSpec& pod : inputs.pods) {
    if (!pod.node_name.empty() && names(pod.ns + '/' + pod.name, name)) {
      return Error(Code::kNotFound, asked + " runs on " + text::terminal_safe(pod.node_name) +
                                        " already; there is nothing to decide");
    }
  }
  for (const objects::Note& note : plan.invalid) {
    const std::size_t blank = note.object.find(' ');
    if (blank != std::string::npos &&
        names(std::string_view(note.object).substr(blank + 1), name)) {
      return Error(Code::kNotFound, asked + " is invalid: " + text::terminal_safe(note_line(note)));
    }
  }
  return Error(Code::kNotFound,
               "no workload named " + asked +
                   " is to be placed; the names are in the table: run without --explain");
}

std::string explain(const PlanResult& plan, const Workload& workload) {
  return Explainer(plan, workload).run();
}

}  // namespace berth::app
