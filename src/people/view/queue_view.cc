#include "people/view/queue_view.h"

#include <algorithm>
#include <limits>
#include <map>

#include "decide/decide.h"
#include "model/amounts.h"
#include "text/json_writer.h"
#include "text/rfc3339.h"

namespace berth::people {

namespace {

bool is_gpu_resource(std::string_view resource) {
  return resource == model::kGpuResource || resource == model::kSharedGpuResource ||
         resource.starts_with("nvidia.com/mig-");
}

std::int64_t gpus_asked(const model::WorkloadSpec& workload) {
  std::int64_t milli = 0;
  for (const model::PodSetSpec& set : workload.pod_sets) {
    const model::GpuDemandSpec& gpu = set.pod->gpu;
    const std::int64_t one = gpu.kind == model::GpuDemandSpec::Kind::kFraction ? gpu.milli
                             : gpu.kind == model::GpuDemandSpec::Kind::kNone   ? 0
                                                                             : model::kMilliPerGpu;
    milli += one * gpu.count * set.count;
  }
  return milli;
}

// How queues stand before anything is decided.
model::Decision queues_before(const kinds::Inputs& inputs, std::int64_t now_ns) {
  model::SnapshotBuilder builder;
  for (const model::NodeSpec& node : inputs.nodes) builder.upsert_node(node);
  for (const model::GangSpec& gang : inputs.gangs) builder.upsert_gang(gang);
  for (const model::PodSpec& pod : inputs.pods) builder.upsert_pod(pod);
  schedule::Placer placer;
  const decide::QueueSetting setting(inputs.queues, inputs.nodes, inputs.pods);
  const decide::Queueing queueing(setting, builder, placer, now_ns);
  model::Decision out;
  queueing.report(out);
  return out;
}

QueueRow row_of(const model::QueueUse& use) {
  QueueRow row;
  row.name = use.name;
  row.cohort = use.cohort;
  row.inactive = use.inactive;
  row.cells = use.cells;
  row.admitted = use.admitted;
  for (const model::QueueUse::Cell& cell : use.cells) {
    if (!is_gpu_resource(cell.resource)) continue;
    row.has_gpus = true;
    const bool open = cell.nominal == model::kUnlimited || row.nominal == model::kUnlimited;
    row.nominal = open ? model::kUnlimited : row.nominal + cell.nominal;
    row.used += cell.used;
    if (cell.nominal != model::kUnlimited) {
      row.borrowed += std::max<std::int64_t>(0, cell.used - cell.nominal);
    }
  }
  return row;
}

class QueueViewer {
 public:
  QueueViewer(const kinds::Inputs& inputs, const PlanResult& plan) : inputs_(inputs) {
    for (const model::WorkloadSpec& spec : inputs.queues.workloads) {
      specs_.emplace(spec.ns + '/' + spec.name, &spec);
    }
    for (const model::Outcome& outcome : plan.decision.outcomes) {
      if (outcome.queued) planned_[outcome.workload] = &outcome;
    }
  }

  QueueView run(std::int64_t now_ns) {
    QueueView view;
    view.now_ns = now_ns;
    const model::Decision now = queues_before(inputs_, now_ns);
    std::map<std::string, std::size_t> rows;
    for (const model::QueueUse& use : now.queues) {
      rows.emplace(use.name, view.queues.size());
      view.queues.push_back(row_of(use));
    }
    for (const model::LocalQueueSpec& local : inputs_.queues.local_queues) {
      const auto it = rows.find(local.queue);
      if (it == rows.end()) continue;
      view.queues[it->second].local_queues.push_back(local.ns + '/' + local.name);
    }
    for (const model::Outcome& outcome : now.outcomes) {
      if (outcome.verdict == model::Verdict::kPlaced) continue;
      const auto it = rows.find(outcome.queue);
      auto& lines = it == rows.end() ? view.nowhere : view.queues[it->second].waiting;
      lines.push_back(line_of(outcome));
    }
    for (QueueRow& row : view.queues) settle(row);
    return view;
  }

 private:
  QueueLine line_of(const model::Outcome& now) const {
    QueueLine line;
    line.position = now.position;
    line.workload = now.workload;
    line.pods = now.pods;
    line.reason = now.reason;
    line.message = now.message;
    if (const auto it = planned_.find(now.workload); it != planned_.end()) {
      const bool starts = it->second->verdict == model::Verdict::kPlaced;
      line.reason = starts ? model::Reason::kNone : it->second->reason;
      line.message = starts ? "starts now" : it->second->message;
    }
    const auto it = specs_.find(now.workload);
    if (it == specs_.end()) return line;
    line.owner = it->second->owner;
    line.priority = it->second->priority;
    line.gpus_milli = gpus_asked(*it->second);
    line.since_ns = it->second->created_ns;
    return line;
  }

  static void settle(QueueRow& row) {
    const auto rank = [](const QueueLine& line) {
      return line.position == 0 ? std::numeric_limits<int>::max() : line.position;
    };
    std::sort(row.waiting.begin(), row.waiting.end(), [&](const auto& a, const auto& b) {
      return std::pair(rank(a), a.workload) < std::pair(rank(b), b.workload);
    });
    std::int64_t ahead = 0;
    for (QueueLine& line : row.waiting) {
      line.ahead_milli = ahead;
      if (line.position > 0) ahead += line.gpus_milli;
      if (line.since_ns != 0 && (row.oldest_ns == 0 || line.since_ns < row.oldest_ns)) {
        row.oldest_ns = line.since_ns;
      }
    }
  }

  const kinds::Inputs& inputs_;
  std::map<std::string, const model::WorkloadSpec*> specs_;
  std::map<std::string, const model::Outcome*> planned_;
};

void queue_amount(text::JsonWriter& out, std::string_view key, std::int64_t amount) {
  out.key(key);
  if (amount == model::kUnlimited) {
    out.null();
  } else {
    out.value(amount);
  }
}

void queue_time(text::JsonWriter& out, std::string_view key, std::int64_t ns) {
  out.key(key);
  if (ns == 0) {
    out.null();
  } else {
    out.value(text::format_rfc3339(ns));
  }
}

void write_lines(text::JsonWriter& out, std::string_view key, const std::vector<QueueLine>& lines) {
  out.array(key, [&] {
    for (const QueueLine& line : lines) {
      out.object([&] {
        out.field("position", line.position);
        out.field("workload", line.workload);
        out.field("owner", line.owner);
        out.field("priority", line.priority);
        out.field("pods", line.pods);
        out.field("gpusMilli", line.gpus_milli);
        out.field("aheadMilli", line.ahead_milli);
        queue_time(out, "since", line.since_ns);
        out.field("reason", model::name(line.reason));
        out.field("message", line.message);
      });
    }
  });
}

void write_row(text::JsonWriter& out, const QueueRow& row) {
  out.object([&] {
    out.field("name", row.name);
    out.field("cohort", row.cohort);
    out.field("inactive", row.inactive);
    out.key("gpus");
    if (row.has_gpus) {
      out.object([&] {
        queue_amount(out, "nominal", row.nominal);
        out.field("used", row.used);
        out.field("borrowed", row.borrowed);
      });
    } else {
      out.null();
    }
    out.field("admitted", row.admitted);
    queue_time(out, "oldest", row.oldest_ns);
    out.list("localQueues", row.local_queues);
    out.array("cells", [&] {
      for (const model::QueueUse::Cell& cell : row.cells) {
        out.object([&] {
          out.field("flavor", cell.flavor);
          out.field("resource", cell.resource);
          queue_amount(out, "nominal", cell.nominal);
          queue_amount(out, "used", cell.used);
          queue_amount(out, "available", cell.available);
          queue_amount(out, "potential", cell.potential);
        });
      }
    });
    write_lines(out, "waiting", row.waiting);
  });
}

}  // namespace

QueueView make_queue_view(const kinds::Inputs& inputs, const PlanResult& plan,
                          std::int64_t now_ns) {
  return QueueViewer(inputs, plan).run(now_ns);
}

std::string queue_view_json(const QueueView& view, int indent) {
  text::JsonWriter out({.indent = indent});
  out.object([&] {
    out.field("version", "berth.dev/queues/v1");
    queue_time(out, "time", view.now_ns);
    out.array("queues", [&] {
      for (const QueueRow& row : view.queues) write_row(out, row);
    });
    write_lines(out, "nowhere", view.nowhere);
  });
  return std::move(out).take();
}

}  // namespace berth::people
