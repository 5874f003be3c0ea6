#include "app/plan/plan_json.h"

#include <algorithm>

#include "app/words.h"
#include "model/amounts.h"
#include "text/json.h"
#include "text/json_writer.h"

namespace berth::app {

namespace {

using text::JsonWriter;

void write_notes(JsonWriter& out, const char* key, const std::vector<kinds::Note>& notes) {
  out.array(key, [&] {
    for (const kinds::Note& note : notes) {
      out.object([&] {
        out.field("source", note.source);
        out.field("document", note.document);
        out.field("line", note.line);
        out.field("object", note.object);
        out.field("path", note.path);
        out.field("message", note.message);
      });
    }
  });
}

void write_placements(JsonWriter& out, const PlanResult& plan) {
  out.array("placements", [&] {
    for (const model::Placement& placement : plan.decision.placements) {
      out.object([&] {
        out.field("name", placement.pod);
        out.field("node", placement.node);
        out.array("gpus", [&] {
          for (const int gpu : placement.gpus) out.value(gpu);
        });
        out.field("gpuMilli", placement.gpu_milli);
        out.field("group", placement.gang);
        out.field("afterPreemption", placement.after_preemption);
      });
    }
  });
}

void write_counts(JsonWriter& out, const char* key,
                  const std::array<int, model::kConstraints>& counts) {
  out.object(key, [&] {
    for (int c = 0; c < model::kConstraints; ++c) {
      const int nodes = counts[static_cast<std::size_t>(c)];
      if (nodes > 0) out.field(constraint_key(static_cast<model::Constraint>(c)), nodes);
    }
  });
}

void write_certificate(JsonWriter& out, const model::Certificate& proof) {
  out.object("certificate", [&] {
    out.field("nodes", proof.nodes);
    write_counts(out, "removed", proof.removed);
    write_counts(out, "only", proof.only);
    out.field("binding", proof.binding == model::Constraint::kCount
                             ? std::string()
                             : constraint_key(proof.binding));
    out.field("fittingNodes", proof.fitting_nodes);
    out.field("freeGpuMilli", proof.free_gpu_milli);
    out.field("largestFreeGpuMilli", proof.largest_free_milli);
    out.field("neededPods", proof.needed_pods);
    out.array("domains", [&] {
      for (const model::Certificate::Domain& domain : proof.domains) {
        out.object([&] {
          out.field("name", domain.name);
          out.field("fits", domain.fits);
        });
      }
    });
    out.field("domainsTotal", proof.domains_total);
    out.field("exact", proof.exact);
  });
}

void write_pending(JsonWriter& out, const PlanResult& plan) {
  std::vector<const std::string*> help(plan.decision.outcomes.size(), nullptr);
  for (const Workload& workload : plan.workloads) {
    for (std::size_t w = 0; w < workload.waiting.size(); ++w) {
      help[workload.waiting[w]] = &workload.help[w];
    }
  }
  out.array("pending", [&] {
    for (std::size_t i = 0; i < plan.decision.outcomes.size(); ++i) {
      const model::Outcome& outcome = plan.decision.outcomes[i];
      if (outcome.verdict == model::Verdict::kPlaced) continue;
      out.object([&] {
        out.field("name", outcome.workload);
        out.field("gang", outcome.gang);
        out.field("pods", outcome.pods - outcome.placed);
        out.field("placed", outcome.placed);
        out.field("reason", name(outcome.reason));
        out.field("message", outcome.message);
        out.field("help", help[i] == nullptr ? std::string() : *help[i]);
        out.field("retry", outcome.verdict == model::Verdict::kNever ? "never" : "wait");
        if (outcome.queued) {
          out.field("workload", outcome.workload);
          out.field("clusterQueue", outcome.queue);
          out.field("position", outcome.position);
          out.field("ahead", std::max(0, outcome.position - 1));
        }
        write_certificate(out, outcome.certificate);
      });
    }
  });
}

void write_preempted(JsonWriter& out, const PlanResult& plan) {
  out.array("preempted", [&] {
    for (const model::Preemption& victim : plan.decision.preemptions) {
      out.object([&] {
        out.field("name", victim.pod);
        out.field("node", victim.node);
        out.field("by", victim.by);
        out.field("breaksBudget", victim.breaks_budget);
      });
    }
    for (const model::Eviction& victim : plan.decision.evictions) {
      out.object([&] {
        out.field("workload", victim.workload);
        out.field("by", victim.by);
        out.field("reason", victim.reason);
        out.field("clusterQueue", victim.queue);
        out.field("message", victim.message);
        out.array("pods", [&] {
          for (const auto& [pod, node] : victim.pods) {
            out.object([&] {
              out.field("name", pod);
              out.field("node", node);
            });
          }
        });
      });
    }
  });
}

void write_strings(JsonWriter& out, const char* key, const std::vector<std::string>& values) {
  out.list(key, values);
}

void write_topology(JsonWriter& out, const model::TopologyAssignment& topology) {
  out.object("topologyAssignment", [&] {
    write_strings(out, "levels", topology.levels);
    out.array("domains", [&] {
      for (const auto& domain : topology.domains) {
        out.object([&] {
          write_strings(out, "values", domain.values);
          out.field("count", domain.count);
        });
      }
    });
  });
}

void write_admitted(JsonWriter& out, const PlanResult& plan) {
  out.array("admitted", [&] {
    for (const model::Admission& admission : plan.decision.admissions) {
      out.object([&] {
        out.field("workload", admission.workload);
        out.field("clusterQueue", admission.queue);
        out.field("afterPreemption", admission.after_preemption);
        write_strings(out, "checksToCome", admission.checks);
        if (!admission.replaced_node.empty()) out.field("replacedNode", admission.replaced_node);
        out.array("podSets", [&] {
          for (const model::PodSetAdmission& set : admission.pod_sets) {
            out.object([&] {
              out.field("name", set.name);
              out.field("count", set.count);
              out.object("flavors", [&] {
                for (const auto& [resource, flavor] : set.flavors) out.field(resource, flavor);
              });
              if (set.topology) write_topology(out, *set.topology);
            });
          }
        });
      });
    }
  });
}

void write_cells(JsonWriter& out, const char* key, const model::QueueUse& queue,
                 std::int64_t model::QueueUse::Cell::* amount) {
  const auto& cells = queue.cells;
  out.object(key, [&] {
    for (std::size_t i = 0; i < cells.size();) {
      const std::string& flavor = cells[i].flavor;
      out.object(flavor, [&] {
        for (; i < cells.size() && cells[i].flavor == flavor; ++i) {
          out.field(cells[i].resource, model::show_amount(cells[i].resource, cells[i].*amount));
        }
      });
    }
  });
}

void write_queues(JsonWriter& out, const PlanResult& plan) {
  out.array("queues", [&] {
    for (const model::QueueUse& queue : plan.decision.queues) {
      out.object([&] {
        out.field("name", queue.name);
        out.field("cohort", queue.cohort);
        write_cells(out, "nominal", queue, &model::QueueUse::Cell::nominal);
        write_cells(out, "usage", queue, &model::QueueUse::Cell::used);
        write_cells(out, "available", queue, &model::QueueUse::Cell::available);
        write_cells(out, "potential", queue, &model::QueueUse::Cell::potential);
        out.field("weightedShare", queue.weighted_share);
        out.field("borrowing", queue.borrowing);
        out.field("pendingWorkloads", queue.pending);
        out.field("admittedWorkloads", queue.admitted);
        out.field("inactive", queue.inactive);
      });
    }
  });
}

void write_nodes(JsonWriter& out, const PlanResult& plan) {
  out.array("nodes", [&] {
    for (const NodeUse& node : plan.nodes) {
      out.object([&] {
        out.field("name", node.name);
        out.field("gpus", node.gpus);
        out.field("gpuModel", node.model);
        out.field("gpusUsed", node.used);
        out.field("gpusFree", node.free);
        out.field("unhealthy", node.unusable);
        out.field("gpuMilliUsed", node.used_milli);
      });
    }
  });
}

void write_summary(JsonWriter& out, const PlanResult& plan) {
  int workloads = 0, placed = 0, pods_waiting = 0;
  for (const Workload& workload : plan.workloads) {
    if (!workload.was_running) {
      ++workloads;
      placed += workload.placed() ? 1 : 0;
    }
    for (const std::size_t i : workload.waiting) {
      const model::Outcome& outcome = plan.decision.outcomes[i];
      pods_waiting += outcome.pods - outcome.placed;
    }
  }
  out.object("summary", [&] {
    out.field("workloads", workloads);
    out.field("workloadsPlaced", placed);
    out.field("podsPlaced", plan.decision.placements.size());
    out.field("podsWaiting", pods_waiting);
    out.field("podsPreempted", plan.decision.preemptions.size());
    out.field("workloadsAdmitted", plan.decision.admissions.size());
    out.field("workloadsPreempted", plan.decision.evictions.size());
    out.field("nodes", plan.after.nodes);
    out.field("gpus", plan.after.gpus);
    out.field("gpuMilliUsedBefore", plan.before.used_milli);
    out.field("gpuMilliUsedAfter", plan.after.used_milli);
    out.field("cycles", plan.cycles);
    out.field("stable", plan.stable);
    out.field("ignored", std::max(plan.counts.ignored, plan.ignored.size()));
    out.field("warnings", std::max(plan.counts.warnings, plan.warnings.size()));
    out.field("invalid", std::max(plan.counts.invalid, plan.invalid.size()));
    out.field("exitCode", exit_code(plan));
  });
}

std::string tree(const PlanResult& plan, text::JsonStyle style) {
  JsonWriter out(style);
  out.object([&] {
    out.field("version", kPlanVersion);
    write_summary(out, plan);
    write_placements(out, plan);
    write_pending(out, plan);
    write_preempted(out, plan);
    write_admitted(out, plan);
    write_queues(out, plan);
    write_nodes(out, plan);
    write_notes(out, "ignored", plan.ignored);
    write_notes(out, "warnings", plan.warnings);
    write_notes(out, "notes", plan.notes);
    write_notes(out, "invalid", plan.invalid);
  });
  return std::move(out).take();
}

bool is_empty(const text::Value& v) { return (v.is_array() || v.is_object()) && v.size() == 0; }

// Block style; strings keep their JSON quotes, which YAML reads alike.
void write_yaml(const text::Value& v, std::size_t indent, std::string& out) {
  const std::string pad(indent, ' ');
  bool first = true;
  for (const text::Member& member : v.members()) {
    if (!first || indent == 0) out += indent == 0 && first ? "" : pad;
    first = false;
    out += std::string(member.key) + ':';
    const bool nested = member.value.size() > 0;
    if (!nested) {
      out += ' ' + text::to_json(member.value) + '\n';
      continue;
    }
    out += '\n';
    if (member.value.is_object()) out += std::string(indent + 2, ' ');
    write_yaml(member.value, member.value.is_object() ? indent + 2 : indent, out);
  }
  for (const text::Value& item : v.items()) {
    out += pad + "- ";
    if (item.is_object() && !is_empty(item)) {
      write_yaml(item, indent + 2, out);
    } else {
      out += text::to_json(item) + '\n';
    }
  }
}

}  // namespace

std::string plan_json(const PlanResult& plan) { return tree(plan, {.indent = 2}) + '\n'; }

std::string plan_yaml(const PlanResult& plan) {
  text::JsonOptions options;
  options.limits.max_bytes = (std::size_t{4} << 30) - 1;
  options.limits.max_nodes = std::size_t{1} << 30;
  const Result<text::Document> parsed = text::parse_json(tree(plan, {}), options);
  if (!parsed.ok()) return plan_json(plan);  // JSON is YAML
  std::string out;
  write_yaml(parsed->root(), 0, out);
  return out;
}

}  // namespace berth::app
