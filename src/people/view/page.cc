#include "people/view/page.h"

#include <algorithm>
#include <map>
#include <utility>

#include "people/view/reasons.h"
#include "people/view/words.h"
#include "text/json_writer.h"
#include "text/rfc3339.h"

namespace berth::people {

namespace {

using text::JsonWriter;

// "ns/Job/train" -> what `berth why` takes.
struct PageName {
  std::string kind, ns, name;
  std::string full() const { return ns + '/' + name; }
};

PageName page_name(std::string_view kind, std::string_view full) {
  const std::size_t slash = full.find('/');
  if (slash == std::string_view::npos) return {std::string(kind), "", std::string(full)};
  return {std::string(kind), std::string(full.substr(0, slash)),
          std::string(full.substr(slash + 1))};
}

PageName page_owner(const std::string& ns, const std::string& owner) {
  const std::size_t slash = owner.find('/');
  return {owner.substr(0, slash), ns, owner.substr(slash + 1)};
}

// What a bound pod is a part of.
PageName workload_of(const model::PodSpec& pod) {
  if (!pod.gang.empty()) return {"PodGroup", pod.ns, pod.gang};
  if (!pod.owner.empty()) return page_owner(pod.ns, pod.owner);
  return {"Pod", pod.ns, pod.name};
}

struct RunningRow {
  PageName name;
  std::string queue;
  int pods = 0;
  std::int64_t milli = 0, since_ns = 0;
};

class PageWriter {
 public:
  PageWriter(const kinds::Inputs& inputs, const PlanResult& plan, const PageFacts& facts,
             std::int64_t now_ns)
      : inputs_(inputs),
        plan_(plan),
        facts_(facts),
        fleet_(make_fleet(inputs, plan, now_ns)),
        queues_(make_queue_view(inputs, plan, now_ns)) {
    for (const model::PodSpec& pod : inputs.pods) {
      if (!pod.node_name.empty()) bound_.emplace(pod.ns + '/' + pod.name, &pod);
    }
    for (const model::WorkloadSpec& workload : inputs.queues.workloads) {
      queued_.emplace(workload.ns + '/' + workload.name, &workload);
      if (workload.owner.empty() || !workload.admission) continue;
      const PageName of = page_owner(workload.ns, workload.owner);
      queue_of_.emplace(of.full() + ' ' + of.kind, workload.admission->queue);
    }
  }

  PageMembers run() {
    PageMembers members;
    members.facts = part([&] {
      out_.field("cluster", facts_.cluster);
      out_.field("trouble", facts_.trouble);
      out_.object("gpus", [&] { counts(fleet_.total); });
      models();
      queues();
      pending();
      workloads();
      nodes();
      health();
      health_events();
      interruptions();
    });
    members.counts = part([&] {
      control();
      usage();
      trend();
      telemetry();
    });
    return members;
  }

 private:
  // The members of an object, without its braces.
  template <class Inside>
  std::string part(const Inside& inside) {
    out_.object(inside);
    const std::string text = std::exchange(out_, JsonWriter()).take();
    return text.substr(1, text.size() - 2);
  }

  void time_or_null(std::string_view key, std::int64_t ns) {
    out_.key(key);
    if (ns == 0) return out_.null();
    out_.value(text::format_rfc3339(ns));
  }

  void counts(const GpuTally& tally) {
    out_.field("total", tally.discovered());
    out_.field("used", tally.used);
    out_.field("free", tally.free);
    out_.field("unhealthy", tally.unhealthy);
    out_.field("reserved", tally.reserved);
    out_.field("unknown", tally.unknown);
  }

  void models() {
    out_.array("models", [&] {
      for (const FleetGroup& model : fleet_.models) {
        if (model.tally.discovered() == 0) continue;
        out_.object([&] {
          out_.field("model", short_model(model.name));
          counts(model.tally);
          const auto room = std::find_if(fleet_.rooms.begin(), fleet_.rooms.end(),
                                         [&](const FleetRoom& r) { return r.model == model.name; });
          const bool known = room != fleet_.rooms.end();
          out_.field("largestBlock", known ? room->largest_node : 0);
          out_.array("gangs", [&] {
            for (std::size_t i = 0; known && i < room->gangs.size(); ++i) {
              if (room->gangs[i].pods == 0) continue;
              out_.object([&] {
                out_.field("gpus", room->gangs[i].gpus_per_pod);
                out_.field("pods", room->gangs[i].pods);
              });
            }
          });
        });
      }
    });
  }

  void queues() {
    out_.array("queues", [&] {
      for (const QueueRow& queue : queues_.queues) {
        out_.object([&] {
          out_.field("name", queue.name);
          out_.field("cohort", queue.cohort);
          out_.key("quota");
          if (queue.nominal == INT64_MAX) {
            out_.null();
          } else {
            out_.value(queue.nominal);
          }
          out_.field("used", queue.used);
          out_.field("borrowed", queue.borrowed);
          out_.field("waiting", queue.waiting.size());
          time_or_null("oldest", queue.oldest_ns);
          const QueueLine* next = queue.waiting.empty() ? nullptr : &queue.waiting.front();
          out_.field("next", next == nullptr ? std::string() : line_name(*next));
          out_.field("nextReason", next == nullptr ? std::string_view() : name(next->reason));
          waits(queue.name);
        });
      }
    });
  }

  void waits(const std::string& queue) {
    const auto known = std::find_if(facts_.waits.begin(), facts_.waits.end(),
                                    [&](const PageWaits& one) { return one.queue == queue; });
    out_.key("waits");
    if (known == facts_.waits.end()) return out_.null();
    out_.object([&] {
      out_.field("count", known->count);
      out_.field("p50Seconds", known->p50_seconds);
      out_.field("p95Seconds", known->p95_seconds);
    });
  }

  static std::string line_name(const QueueLine& line) {
    if (line.owner.empty()) return line.workload;
    return page_owner(line.workload.substr(0, line.workload.find('/')), line.owner).full();
  }

  void pending() {
    out_.array("pending", [&] {
      for (const FleetReason& reason : fleet_.reasons) {
        const Standing standing = facts_of(reason.reason).standing;
        out_.object([&] {
          out_.field("reason", name(reason.reason));
          out_.field("workloads", reason.workloads);
          out_.field("gpus", reason.gpus_milli / model::kMilliPerGpu);
          out_.field("config",
                     standing == Standing::kMisconfigured || standing == Standing::kNever);
        });
      }
    });
  }

  PageName waiting_name(const FleetWaiting& waiting) const {
    const auto queued = queued_.find(waiting.workload);
    if (queued != queued_.end()) {
      const model::WorkloadSpec& spec = *queued->second;
      return spec.owner.empty() ? page_name("Workload", waiting.workload)
                                : page_owner(spec.ns, spec.owner);
    }
    for (const Workload& workload : plan_.workloads) {
      if (workload.name != waiting.workload) continue;
      if (workload.kind == Workload::Kind::kGang) return page_name("PodGroup", waiting.workload);
      if (workload.kind == Workload::Kind::kOwner && !workload.sample.owner.empty()) {
        return page_owner(workload.sample.ns, workload.sample.owner);
      }
    }
    return page_name("Pod", waiting.workload);
  }

  std::map<std::string, RunningRow> running() const {
    std::map<std::string, RunningRow> rows;
    for (const FleetNode& node : fleet_.nodes) {
      for (const FleetHolder& holder : node.holders) {
        const auto pod = bound_.find(holder.pod);
        if (pod == bound_.end()) continue;
        const PageName of = workload_of(*pod->second);
        RunningRow& row = rows[of.full() + ' ' + of.kind];
        row.name = of;
        const auto queue = queue_of_.find(of.full() + ' ' + of.kind);
        row.queue = queue == queue_of_.end() ? pod->second->queue : queue->second;
        ++row.pods;
        row.milli += holder.milli;
        const std::int64_t since = pod->second->started_ns;
        if (since != 0 && (row.since_ns == 0 || since < row.since_ns)) row.since_ns = since;
      }
    }
    return rows;
  }

  void row_head(const PageName& of, const std::string& queue, std::string_view state) {
    out_.field("kind", of.kind);
    out_.field("namespace", of.ns);
    out_.field("name", of.name);
    out_.field("queue", queue);
    out_.field("state", state);
  }

  void workloads() {
    std::size_t shown = 0, all = 0;
    out_.array("workloads", [&] {
      for (const FleetWaiting& waiting : fleet_.waiting) {
        ++all;
        if (shown == kMaxPageWorkloads) continue;
        ++shown;
        out_.object([&] {
          row_head(waiting_name(waiting), waiting.queue, "waiting");
          out_.field("pods", waiting.pods);
          out_.field("running", 0);
          out_.field("gpus", waiting.gpus_milli / model::kMilliPerGpu);
          time_or_null("since", waiting.since_ns);
          out_.field("reason", name(waiting.reason));
          out_.field("message", waiting.message);
          out_.field("never", waiting.never);
          out_.field("position", waiting.position);
        });
      }
      for (const auto& [key, row] : running()) {
        ++all;
        if (shown == kMaxPageWorkloads) continue;
        ++shown;
        out_.object([&] {
          row_head(row.name, row.queue, "running");
          out_.field("pods", row.pods);
          out_.field("running", row.pods);
          out_.field("gpus", static_cast<double>(row.milli) / model::kMilliPerGpu);
          time_or_null("since", row.since_ns);
          out_.field("reason", "");
          out_.field("message", "");
          out_.field("never", false);
          out_.field("position", 0);
        });
      }
    });
    out_.field("workloadsMore", all - shown);
  }

  static char letter(GpuState state) {
    switch (state) {
      case GpuState::kUsed:
        return 'U';
      case GpuState::kFree:
        return 'F';
      case GpuState::kUnhealthy:
        return 'X';
      case GpuState::kReserved:
        return 'R';
      case GpuState::kUnknown:
        break;
    }
    return '?';
  }

  template <class Of>
  void numbers(std::string_view key, const FleetNode& node, Of of) {
    out_.array(key, [&] {
      for (const FleetGpu& gpu : node.gpus) out_.value(of(gpu));
    });
  }

  void nodes() {
    std::map<std::string, std::int64_t> numbers_of;  // of pods, in the order of nodes
    std::vector<const FleetHolder*> pods;
    out_.array("nodes", [&] {
      for (const FleetNode& node : fleet_.nodes) {
        if (node.gpus.empty()) continue;
        for (const FleetHolder& holder : node.holders) {
          numbers_of.emplace(holder.pod, static_cast<std::int64_t>(pods.size()));
          pods.push_back(&holder);
        }
        std::string states;
        for (const FleetGpu& gpu : node.gpus) states += letter(gpu.state);
        out_.object([&] {
          out_.field("name", node.name);
          out_.field("rack", node.rack);
          out_.field("model", short_model(node.model));
          out_.field("ready", node.ready);
          out_.field("cordoned", node.cordoned);
          out_.field("states", states);
          numbers("busy", node, [&](const FleetGpu& gpu) {
            return facts_.busy && !gpu.pods.empty() ? facts_.busy(node.name, gpu.index) : -1;
          });
          numbers("holder", node, [&](const FleetGpu& gpu) {
            return gpu.pods.empty() ? std::int64_t{-1} : numbers_of.at(gpu.pods.front());
          });
          numbers("clique", node, [](const FleetGpu& gpu) { return gpu.nvlink_clique; });
        });
      }
    });
    out_.array("pods", [&] {
      for (const FleetHolder* holder : pods) pod_row(*holder);
    });
  }

  void pod_row(const FleetHolder& holder) {
    const auto pod = bound_.find(holder.pod);
    const bool known = pod != bound_.end();
    out_.object([&] {
      out_.field("name", holder.pod);
      out_.field("workload", known ? workload_of(*pod->second).full() : holder.pod);
      out_.field("queue", known ? pod->second->queue : std::string());
      out_.field("gpus", static_cast<double>(holder.milli) / model::kMilliPerGpu);
      time_or_null("since", known ? pod->second->started_ns : 0);
    });
  }

  void health() {
    out_.array("health", [&] {
      for (const FleetNode& node : fleet_.nodes) {
        for (const FleetGpu& gpu : node.gpus) {
          if (gpu.state != GpuState::kUnhealthy) continue;
          out_.object([&] {
            out_.field("node", node.name);
            out_.field("gpu", gpu.index);
            out_.field("state", name(gpu.state));
            out_.field("reason", gpu.why);
          });
        }
      }
    });
  }

  void health_events() {
    out_.array("healthEvents", [&] {
      for (const PageHealthEvent& event : facts_.health_events) {
        out_.object([&] {
          time_or_null("at", event.at_ns);
          out_.field("node", event.node);
          out_.field("gpu", event.gpu);
          out_.field("inService", event.in_service);
          out_.field("reason", event.reason);
        });
      }
    });
  }

  void trend() {
    out_.array("trend", [&] {
      for (const PageTrendStep& step : facts_.trend) {
        out_.object([&] {
          time_or_null("at", step.at_ns);
          out_.field("used", step.used);
          out_.field("free", step.free);
          out_.field("out", step.out);
          out_.field("busy", step.busy);
        });
      }
    });
  }

  void telemetry() {
    out_.object("telemetry", [&] {
      out_.field("nodes", facts_.measured_nodes);
      out_.field("silent", facts_.silent_nodes);
      time_or_null("oldest", facts_.measured_ns);
    });
  }

  void control() {
    out_.object("control", [&] {
      out_.field("leading", facts_.leading);
      out_.field("cycles", facts_.cycles);
      out_.field("bound", facts_.bound);
      out_.field("evicted", facts_.evicted);
      out_.field("failedWrites", facts_.failed_writes);
      out_.key("lastDecisionMs");
      if (facts_.last_decision_ns == 0) {
        out_.null();
      } else {
        out_.value(static_cast<double>(facts_.last_decision_ns) / 1e6);
      }
    });
  }

  void hours(const PageHours& hours) {
    out_.field("heldHours", hours.held);
    out_.field("busyHours", hours.busy);
    out_.field("idleHours", hours.idle);
    out_.field("unknownHours", hours.unknown);
  }

  void usage() {
    out_.object("usage", [&] {
      time_or_null("since", facts_.usage_since_ns);
      out_.array("teams", [&] {
        for (const PageHours& team : facts_.teams) {
          out_.object([&] {
            out_.field("team", team.team);
            hours(team);
          });
        }
      });
      out_.object("total", [&] {
        hours(facts_.all_teams);
        out_.field("freeHours", facts_.free_hours);
        out_.field("unhealthyHours", facts_.out_hours);
      });
    });
  }

  void interruptions() {
    out_.array("interruptions", [&] {
      for (const model::WorkloadSpec& workload : inputs_.queues.workloads) {
        if (workload.evicted.empty() || workload.evicted_ns == 0) continue;
        const PageName of = workload.owner.empty()
                                ? PageName{"Workload", workload.ns, workload.name}
                                : page_owner(workload.ns, workload.owner);
        out_.object([&] {
          out_.field("workload", of.full());
          time_or_null("at", workload.evicted_ns);
          out_.field("reason", workload.evicted);
          out_.field("message", workload.preempted_by.empty()
                                    ? workload.preempted
                                    : workload.preempted + " by " + workload.preempted_by);
        });
      }
    });
  }

  const kinds::Inputs& inputs_;
  const PlanResult& plan_;
  const PageFacts& facts_;
  Fleet fleet_;
  QueueView queues_;
  std::map<std::string, const model::PodSpec*> bound_;
  std::map<std::string, const model::WorkloadSpec*> queued_;
  std::map<std::string, std::string> queue_of_;  // ClusterQueues of "ns/name Kind" that run
  JsonWriter out_;
};

}  // namespace

PageMembers page_members(const kinds::Inputs& inputs, const PlanResult& plan,
                         const PageFacts& facts, std::int64_t now_ns) {
  return PageWriter(inputs, plan, facts, now_ns).run();
}

}  // namespace berth::people
