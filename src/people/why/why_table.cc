#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "people/view/words.h"
#include "people/view/wrap.h"
#include "people/why/answer.h"
#include "people/why/autoscaler.h"
#include "text/escape.h"
#include "text/rfc3339.h"

namespace berth::people {

namespace {

constexpr std::size_t kHang = 11;  // "  need     "

std::string clean(std::string_view text) { return text::terminal_safe(text); }

void row(std::string_view label, const std::string& body, std::string& out) {
  wrap("  " + padded(std::string(label), kHang - 2), kHang, body, out);
}

std::string clock_of(std::int64_t ns) {
  const std::string text = text::format_rfc3339(ns);
  return text.size() >= 16 ? text.substr(11, 5) : text;
}

std::string span_of(std::int64_t ns) {
  const std::int64_t minutes = ns / 60'000'000'000;
  if (minutes < 1) return fmt::format("{} s", std::max<std::int64_t>(0, ns / 1'000'000'000));
  if (minutes < 120) return fmt::format("{} min", minutes);
  return minutes < 2880 ? fmt::format("{} h", minutes / 60) : fmt::format("{} d", minutes / 1440);
}

void say_need(const Answer& a, std::string& out) {
  if (a.need.pods == 0) return;
  const bool alike = a.need.each_milli * a.need.pods == a.need.all_milli;
  std::string text = show_count(a.need.pods, "pod");
  text +=
      alike ? " x " + a.need.each : fmt::format(", {} GPUs in all", show_milli(a.need.all_milli));
  if (!a.need.model.empty()) text += " (" + a.need.model + ')';
  if (!a.need.topology.empty()) text += ", all in one " + a.need.topology;
  text += fmt::format("; priority {}", a.need.priority);
  if (!a.need.queue.empty()) text += "; queue " + a.need.queue;
  row("need", clean(text), out);
}

void say_quota(const Answer& a, std::string& out) {
  if (!a.quota) return;
  std::string text;
  bool lacking = false;
  for (const QuotaCell& cell : a.quota->cells) {
    if (!cell.short_of && cell.resource != "nvidia.com/gpu") continue;
    lacking |= cell.short_of;
    text += fmt::format("{}{} of {} {} used ({}){}", text.empty() ? "" : ", ", cell.used,
                        cell.nominal, cell.resource, cell.flavor,
                        cell.borrowable == "0" ? "" : ", " + cell.borrowable + " to borrow");
  }
  if (text.empty()) text = "enough of everything it asks for";
  if (!lacking) text += ": quota is not the problem";
  row("quota", clean(a.quota->queue + ": " + text), out);
}

void say_have(const Answer& a, std::string& out) {
  if (a.nodes.empty()) return;  // they were not looked at
  std::string text = fmt::format("{} free", show_milli(a.have.free_milli));
  for (std::size_t i = 0; i < a.have.free_by_node.size() && i < 8; ++i) {
    const NodeFree& node = a.have.free_by_node[i];
    text += (i == 0 ? ": " : " · ") +
            glued(text::elide_middle(clean(node.node), 20) + ' ' + show_milli(node.free_milli));
  }
  if (a.have.free_by_node.size() > 8) {
    text += fmt::format(" · +{} nodes", a.have.free_by_node.size() - 8);
  }
  if (a.need.each_milli > 0) row("have", text, out);
  if (a.fragmentation) {
    row("",
        fmt::format(
            "enough in total ({}), but the largest block is {} of {}; stranded: {}",
            show_milli(a.fragmentation->free_milli), show_milli(a.fragmentation->largest_milli),
            show_milli(a.fragmentation->needed_milli), show_milli(a.fragmentation->stranded_milli)),
        out);
  }
  std::string funnel = std::to_string(a.have.nodes);
  int left = a.have.nodes;
  for (const FunnelStep& step : a.funnel) {
    if (step.left == left) continue;  // those it removes were out already
    left = step.left;
    funnel += ' ' + glued(fmt::format("-> {} by {}", left, model::name(step.constraint)));
  }
  row("nodes", funnel, out);
  std::size_t shown = 0;
  for (const BlockedNode& node : a.nodes) {
    if (++shown > 4) break;
    std::string list;
    for (const model::Constraint c : node.blockers) {
      list += (list.empty() ? "" : ", ") + std::string(model::name(c));
    }
    row("", clean(node.name) + ": " + (list.empty() ? "takes it" : list), out);
  }
  const std::size_t more = a.nodes.size() + static_cast<std::size_t>(a.nodes_more);
  if (more > 4) row("", fmt::format("+{} nodes: -o json", more - 4), out);
}

// Of pods outside of queues: there priority alone lets them preempt.
void say_victims(const Answer& a, std::string& out) {
  const bool waits = a.stage == Stage::kCapacity || a.stage == Stage::kGang;
  if (!a.refused.empty()) return;  // told one by one, after the fixes
  if (!waits || a.holders.empty() || a.holders_more > 0 || !a.need.queue.empty()) return;
  int least = a.holders.front().priority;
  for (const HolderView& holder : a.holders) least = std::min(least, holder.priority);
  if (least < a.need.priority) return;
  row("preempts",
      least == a.need.priority
          ? "nobody: those that hold GPUs have its priority or more"
          : fmt::format("nobody: those that hold GPUs have priority {} or more", least),
      out);
}

// Those of nodes that are nearest to having room, or all: a line for each node.
void say_holders(const Answer& a, bool whole, std::string& out) {
  constexpr std::size_t kFew = 4;
  std::string text;
  const char* label = "holders";
  std::size_t shown = 0;
  for (; shown < a.holders.size() && (whole || shown < kFew); ++shown) {
    const HolderView& holder = a.holders[shown];
    const bool same = shown > 0 && a.holders[shown - 1].node == holder.node;
    if (whole && !same && !text.empty()) {
      row(std::exchange(label, ""), std::exchange(text, {}), out);
    }
    text += same ? ", " : (text.empty() ? "" : " · ") + clean(holder.node) + ": ";
    text += glued(fmt::format("{} ({})", clean(holder.pod), show_milli(holder.milli)));
  }
  const std::size_t more = a.holders.size() + static_cast<std::size_t>(a.holders_more) - shown;
  if (more > 0) {
    text += " · " + glued(fmt::format("+{}{}", show_count(static_cast<std::int64_t>(more), "pod"),
                                      whole ? "" : ", all nodes: --holders"));
  }
  if (!text.empty()) row(label, text, out);
}

void say_others(const Answer& a, bool whole, std::string& out) {
  say_holders(a, whole, out);
  say_victims(a, out);
  std::string text;
  for (std::size_t i = 0; i < a.health.size() && text.size() <= 300;) {
    const HealthView& health = a.health[i];
    std::vector<int> gpus;  // of one node, for one reason
    for (; i < a.health.size() && a.health[i].node == health.node &&
           a.health[i].reason == health.reason;
         ++i) {
      if (a.health[i].gpu >= 0) gpus.push_back(a.health[i].gpu);
    }
    text += (text.empty() ? "" : " · ") + clean(health.node);
    if (!gpus.empty()) {
      text += fmt::format(" {} {}", gpus.size() == 1 ? "GPU" : "GPUs", show_ranges(gpus));
    }
    text += ": " + clean(health.reason);
  }
  if (!text.empty()) row("health", text, out);
  if (a.ahead && a.ahead->workloads == 0) {
    const std::string queue = a.quota ? a.quota->queue : a.need.queue;
    row("ahead", queue.empty() ? "nobody" : "nobody: it is first in queue " + clean(queue), out);
  }
  if (a.ahead && a.ahead->workloads > 0) {
    row("ahead",
        fmt::format("{} with {} GPUs; it is number {}", show_count(a.ahead->workloads, "workload"),
                    show_milli(a.ahead->gpus_milli), a.ahead->position),
        out);
  }
}

// "gpu 3 of 8 nodes, 1 on its way; last failure: no capacity".
std::string pool_words(const PoolView& pool) {
  std::string text = text::elide_middle(clean(pool.name), 40) + ' ';
  text += pool.max ? fmt::format("{} of {} nodes", pool.nodes, *pool.max)
                   : show_count(pool.nodes, "node");
  if (pool.in_flight > 0) text += fmt::format(", {} on its way", pool.in_flight);
  for (const PoolLimit& limit : pool.limits) {
    if (limit.resource != "nvidia.com/gpu") continue;
    text += fmt::format(", {} of {} {}", clean(limit.used), clean(limit.limit), limit.resource);
  }
  if (!pool.at_limit.empty()) text += ", at its limit of " + clean(pool.at_limit);
  if (!pool.healthy) text += ", not healthy";
  if (!pool.awaits.empty()) text += "; on its way: " + clean(pool.awaits);
  if (!pool.failure.empty()) text += "; last failure: " + clean(pool.failure);
  return text;
}

void say_autoscaler(const Answer& a, std::string& out) {
  if (!a.autoscaler) return;
  const Autoscaler& scaler = *a.autoscaler;
  std::vector<std::string> lines;
  const std::size_t all = scaler.pools.size() + static_cast<std::size_t>(scaler.pools_more);
  std::size_t most = 3;
  if (scaler.fitting > 0) most = std::min(most, static_cast<std::size_t>(scaler.fitting));
  const std::size_t shown = std::min(most, scaler.pools.size());
  for (std::size_t i = 0; i < shown; ++i) lines.push_back(pool_words(scaler.pools[i]));
  if (all > shown) {
    lines.push_back('+' + show_count(static_cast<std::int64_t>(all - shown), "pool") + ": -o json");
  }
  if (const std::string failed = scale_up_failed(scaler); !failed.empty()) {
    lines.push_back(clean(failed));
  }
  if (scaler.request) {
    const Autoscaler::Request& request = *scaler.request;
    lines.push_back(clean(request.name) + ": " + clean(request.state) +
                    (request.message.empty() ? "" : ": " + clean(request.message)));
  }
  if (scaler.event) {
    const Autoscaler::Event& event = *scaler.event;
    const std::string ago =
        event.at_ns ? ", " + span_of(a.evaluated_ns - *event.at_ns) + " ago" : "";
    lines.push_back(clean(event.reason) + ago +
                    (event.message.empty() ? "" : ": " + clean(event.message)));
  }
  for (std::size_t i = 0; i < lines.size(); ++i) {
    wrap(i == 0 ? "  autoscaler " : std::string(kHang, ' '), kHang, lines[i], out);
  }
}

void say_fixes(const Answer& a, std::string& out) {
  if (a.standing == Standing::kRunning) return;
  if (a.fixes.empty()) {
    if (!a.in_vain.empty()) {
      row("fixes",
          fmt::format("no single change works, nor two (tried: {})",
                      show_count(static_cast<int>(a.in_vain.size()), "change")),
          out);
    }
    row("next", std::string(facts_of(a.reason).what_to_do), out);
    return;
  }
  out += "\n  FIXES, each tried on a copy of the cluster, least disturbance first\n";
  int number = 0;
  for (const Fix& fix : a.fixes) {
    std::string text = clean(fix.title);
    text += fix.restarts == 0
                ? ": starts now"
                : fmt::format(": starts now, restarts {}", show_count(fix.restarts, "pod"));
    wrap(fmt::format("  {}  ", ++number), 5, text, out);
  }
  for (const Refused& refused : a.refused) {
    wrap("  -  ", 5, clean(refused.title) + ": no, " + clean(refused.because), out);
  }
}

// "13:45:02".
std::string second_of(std::int64_t at_ns) {
  const std::string time = text::format_rfc3339(at_ns);
  return time.size() >= 19 ? time.substr(11, 8) : time;
}

// "decision 9f3a..., 13:45:02, cluster 90412; looked at 13:45:03; input 9f3a...; Job x".
std::string evidence_words(const Answer& a) {
  std::string out;
  if (const Decided& by = a.evidence.decided; !by.id.empty()) {
    out = "decision " + clean(by.id) + ", " + second_of(by.at_ns);
    if (!by.version.empty()) out += ", cluster " + clean(by.version);
    out += "; ";
  }
  out += "looked at " + second_of(a.evaluated_ns);
  if (!a.evidence.digest.empty()) out += "; input " + clean(a.evidence.digest);
  if (!a.evidence.objects.empty()) {
    const RawObject& first = a.evidence.objects.front();
    out += "; " + clean(first.kind) + ' ' + clean(first.name);
    if (!first.resource_version.empty()) out += " at version " + clean(first.resource_version);
  }
  return out;
}

}  // namespace

std::string why_table(const Answer& a, bool all_holders) {
  std::string out;
  wrap("", 2, clean(a.line), out);
  out += '\n';
  for (const Cause& cause : a.also) {
    row("also", clean(cause.message) + " (" + std::string(model::name(cause.reason)) + ')', out);
  }
  if (a.since_ns) {
    row("since", clock_of(*a.since_ns) + ", " + span_of(a.evaluated_ns - *a.since_ns) + " ago",
        out);
  }
  say_need(a, out);
  for (std::size_t i = 0; i < a.where.size(); ++i)
    row(i == 0 ? "where" : "", clean(a.where[i]), out);
  say_quota(a, out);
  say_have(a, out);
  say_others(a, all_holders, out);
  say_autoscaler(a, out);
  if (a.standing != Standing::kRunning) {
    row("starts",
        a.start.at_ns
            ? fmt::format("about {}, in {}, {}", clock_of(*a.start.at_ns),
                          span_of(*a.start.at_ns - a.evaluated_ns), clean(a.start.because))
            : "unknown: " + clean(a.start.because),
        out);
  }
  say_fixes(a, out);
  out += '\n';
  for (const std::string& unseen : a.evidence.partial) {
    row("partial", "you may not see " + clean(unseen) + ": the answer may be wrong", out);
  }
  for (const std::string& hidden : a.evidence.summarised) {
    row("partial", "you may not see the " + clean(hidden) + ": they are left out", out);
  }
  if (a.reason != model::Reason::kNone) row("docs", anchor_of(a.reason), out);
  row("evidence", evidence_words(a), out);
  // To be pasted: in one line, however long.
  if (!a.evidence.replay.empty()) out += "  replay   " + clean(a.evidence.replay) + '\n';
  return out;
}

}  // namespace berth::people
