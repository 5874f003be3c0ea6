#include <fmt/format.h>

#include "people/view/words.h"
#include "people/why/answer.h"
#include "text/json_writer.h"
#include "text/rfc3339.h"

namespace berth::people {

namespace {

using text::JsonWriter;

constexpr const char* kWhyVersion = "berth.dev/why/v1";

void text_or_null(JsonWriter& out, const char* key, const std::string& text) {
  out.key(key);
  if (text.empty()) return out.null();
  out.value(text);
}

void time_or_null(JsonWriter& out, const char* key, const std::optional<std::int64_t>& at) {
  out.key(key);
  if (!at) return out.null();
  out.value(text::format_rfc3339(*at));
}

// Thousandths as a number of GPUs: 4, 0.5.
void gpus(JsonWriter& out, const char* key, std::int64_t milli) {
  out.key(key);
  if (milli % 1000 == 0) return out.value(milli / 1000);
  std::string text = fmt::format("{}.{:03}", milli / 1000, milli % 1000);
  while (text.back() == '0') text.pop_back();
  out.raw(text);
}

void write_need(JsonWriter& out, const Answer& a) {
  out.object("need", [&] {
    out.field("pods", a.need.pods);
    gpus(out, "gpusPerPod", a.need.each_milli);
    gpus(out, "gpus", a.need.all_milli);
    text_or_null(out, "model", a.need.model);
    text_or_null(out, "topology", a.need.topology);
    out.field("priority", a.need.priority);
    text_or_null(out, "queue", a.need.queue);
  });
}

void write_quota(JsonWriter& out, const Answer& a) {
  out.key("quota");
  if (!a.quota) return out.null();
  out.object([&] {
    out.field("queue", a.quota->queue);
    text_or_null(out, "cohort", a.quota->cohort);
    out.array("cells", [&] {
      for (const QuotaCell& cell : a.quota->cells) {
        out.object([&] {
          out.field("flavor", cell.flavor);
          out.field("resource", cell.resource);
          out.field("nominal", cell.nominal);
          out.field("used", cell.used);
          out.field("available", cell.available);
          out.field("borrowable", cell.borrowable);
        });
      }
    });
  });
}

void write_have(JsonWriter& out, const Answer& a) {
  out.object("have", [&] {
    out.field("nodes", a.have.nodes);
    out.field("eligibleNodes", a.have.eligible);
    out.field("nodesWithRoom", a.have.with_room);
    gpus(out, "freeGpus", a.have.free_milli);
    gpus(out, "largestBlock", a.have.largest_milli);
    out.array("freeByNode", [&] {
      for (const NodeFree& node : a.have.free_by_node) {
        out.object([&] {
          out.field("node", node.node);
          gpus(out, "free", node.free_milli);
        });
      }
    });
  });
  out.key("fragmentation");
  if (!a.fragmentation) return out.null();
  out.object([&] {
    gpus(out, "freeGpus", a.fragmentation->free_milli);
    gpus(out, "largestBlock", a.fragmentation->largest_milli);
    gpus(out, "needed", a.fragmentation->needed_milli);
    gpus(out, "strandedGpus", a.fragmentation->stranded_milli);
  });
}

void write_nodes(JsonWriter& out, const Answer& a) {
  out.array("funnel", [&] {
    for (const FunnelStep& step : a.funnel) {
      out.object([&] {
        out.field("constraint", constraint_key(step.constraint));
        out.field("removed", step.removed);
        out.field("only", step.only);
        out.field("left", step.left);
        out.list("nodes", step.nodes);
      });
    }
  });
  out.array("nodes", [&] {
    for (const BlockedNode& node : a.nodes) {
      out.object([&] {
        out.field("name", node.name);
        gpus(out, "free", node.free_milli);
        out.array("blockers", [&] {
          for (const model::Constraint c : node.blockers) out.value(constraint_key(c));
        });
      });
    }
  });
  out.field("nodesMore", a.nodes_more);
}

void count_or_null(JsonWriter& out, const char* key, const std::optional<std::int64_t>& count) {
  out.key(key);
  if (!count) return out.null();
  out.value(*count);
}

void write_pool(JsonWriter& out, const PoolView& pool) {
  out.object([&] {
    out.field("name", pool.name);
    out.field("by", pool.by);
    out.field("nodes", pool.nodes);
    out.field("inFlight", pool.in_flight);
    count_or_null(out, "minNodes", pool.min);
    count_or_null(out, "maxNodes", pool.max);
    out.array("limits", [&] {
      for (const PoolLimit& limit : pool.limits) {
        out.object([&] {
          out.field("resource", limit.resource);
          out.field("limit", limit.limit);
          out.field("used", limit.used);
        });
      }
    });
    text_or_null(out, "atLimit", pool.at_limit);
    out.field("healthy", pool.healthy);
    text_or_null(out, "scaleUp", pool.scale_up);
    text_or_null(out, "lastFailure", pool.failure);
    text_or_null(out, "awaits", pool.awaits);
  });
}

void write_autoscaler(JsonWriter& out, const Answer& a) {
  out.key("autoscaler");
  if (!a.autoscaler) return out.null();
  out.object([&] {
    out.array("pools", [&] {
      for (const PoolView& pool : a.autoscaler->pools) write_pool(out, pool);
    });
    out.field("poolsThatFit", a.autoscaler->fitting);
    out.field("poolsMore", a.autoscaler->pools_more);
    out.key("event");
    if (const auto& event = a.autoscaler->event; !event) {
      out.null();
    } else {
      out.object([&] {
        out.field("reason", event->reason);
        out.field("message", event->message);
        time_or_null(out, "at", event->at_ns);
      });
    }
    out.key("request");
    if (const auto& request = a.autoscaler->request; !request) {
      out.null();
    } else {
      out.object([&] {
        out.field("name", request->name);
        out.field("state", request->state);
        text_or_null(out, "message", request->message);
      });
    }
  });
}

void write_others(JsonWriter& out, const Answer& a) {
  out.array("holders", [&] {
    for (const HolderView& holder : a.holders) {
      out.object([&] {
        out.field("node", holder.node);
        out.field("pod", holder.pod);
        gpus(out, "gpus", holder.milli);
        out.field("priority", holder.priority);
        time_or_null(out, "ends", holder.ends_ns);
      });
    }
  });
  out.key("ahead");
  if (!a.ahead) {
    out.null();
  } else {
    out.object([&] {
      out.field("position", a.ahead->position);
      out.field("workloads", a.ahead->workloads);
      gpus(out, "gpus", a.ahead->gpus_milli);
    });
  }
  write_autoscaler(out, a);
  out.array("health", [&] {
    for (const HealthView& health : a.health) {
      out.object([&] {
        out.field("node", health.node);
        out.key("gpu");
        if (health.gpu < 0) {
          out.null();
        } else {
          out.value(health.gpu);
        }
        out.field("reason", health.reason);
      });
    }
  });
}

void write_change(JsonWriter& out, const ObjectChange& change) {
  if (!change.before && change.after) {
    return out.object([&] {
      out.key("create");
      change.after->write(out);
    });
  }
  out.object([&] {
    out.field("apiVersion", change.api_version);
    out.field("kind", change.kind);
    text_or_null(out, "namespace", change.ns);
    out.field("name", change.name);
    if (!change.after) {
      out.field("delete", true);
    } else {
      out.key("patch");
      write_patch(out, *change.before, *change.after);
    }
  });
}

void write_fixes(JsonWriter& out, const Answer& a) {
  out.array("fixes", [&] {
    for (const Fix& fix : a.fixes) {
      out.object([&] {
        out.field("title", fix.title);
        out.field("kind", fix.kind);
        out.field("disturbance", fix.disturbance);
        out.field("result", "starts now");
        out.field("restarts", fix.restarts);
        out.array("changes", [&] {
          for (const ObjectChange& change : fix.changes) write_change(out, change);
        });
      });
    }
  });
}

void write_refused(JsonWriter& out, const Answer& a) {
  out.array("refused", [&] {
    for (const Refused& refused : a.refused) {
      out.object([&] {
        out.field("title", refused.title);
        out.field("because", refused.because);
      });
    }
  });
}

void write_evidence(JsonWriter& out, const Answer& a) {
  out.object("start", [&] {
    out.field("known", a.start.at_ns.has_value());
    time_or_null(out, "at", a.start.at_ns);
    out.field("because", a.start.because);
  });
  out.object("evidence", [&] {
    out.array("objects", [&] {
      for (const RawObject& object : a.evidence.objects) {
        out.object([&] {
          out.field("kind", object.kind);
          text_or_null(out, "namespace", object.ns);
          out.field("name", object.name);
          text_or_null(out, "uid", object.uid);
          text_or_null(out, "resourceVersion", object.resource_version);
        });
      }
    });
    text_or_null(out, "digest", a.evidence.digest);
    const Decided& by = a.evidence.decided;
    text_or_null(out, "decision", by.id);
    time_or_null(out, "decided", by.id.empty() ? std::nullopt : std::optional(by.at_ns));
    text_or_null(out, "cluster", by.version);
    text_or_null(out, "replay", a.evidence.replay);
    out.array("partial", [&] {
      for (const std::string& unseen : a.evidence.partial) out.value(unseen);
      for (const std::string& hidden : a.evidence.summarised) out.value(hidden);
    });
  });
}

}  // namespace

std::string why_json(const Answer& a) {
  JsonWriter out({.indent = 2});
  out.object([&] {
    out.field("version", kWhyVersion);
    out.object("subject", [&] {
      out.field("kind", a.kind);
      out.field("namespace", a.ns);
      out.field("name", a.name);
    });
    out.field("verdict", name(a.standing));
    out.field("line", a.line);
    const bool none = a.reason == model::Reason::kNone;
    text_or_null(out, "reason", none ? "" : std::string(model::name(a.reason)));
    text_or_null(out, "stage", none ? "" : std::string(name(a.stage)));
    text_or_null(out, "docs", none ? "" : anchor_of(a.reason));
    out.array("also", [&] {
      for (const Cause& cause : a.also) {
        out.object([&] {
          out.field("reason", model::name(cause.reason));
          out.field("stage", name(facts_of(cause.reason).stage));
          out.field("message", cause.message);
        });
      }
    });
    time_or_null(out, "since", a.since_ns);
    out.field("evaluated", text::format_rfc3339(a.evaluated_ns));
    write_need(out, a);
    write_quota(out, a);
    write_have(out, a);
    write_nodes(out, a);
    write_others(out, a);
    write_fixes(out, a);
    write_refused(out, a);
    write_evidence(out, a);
    out.field("exitCode", exit_code(a.standing));
  });
  return std::move(out).take() + '\n';
}

}  // namespace berth::people
