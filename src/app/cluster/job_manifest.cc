#include "app/cluster/job_manifest.h"

#include "text/json_writer.h"

namespace berth::app {

namespace {

void write_container(const JobAsk& ask, text::JsonWriter& out) {
  out.object([&] {
    out.field("name", "main");
    out.field("image", ask.image);
    if (!ask.command.empty()) {
      out.list("command", ask.command);
    }
    out.object("resources", [&] {
      out.object("requests", [&] {
        out.field("cpu", ask.cpu);
        out.field("memory", ask.memory);
      });
      if (ask.gpus > 0) {
        out.object("limits", [&] { out.field("nvidia.com/gpu", std::to_string(ask.gpus)); });
      }
    });
  });
}

void write_template(const JobAsk& ask, text::JsonWriter& out) {
  out.object([&] {
    out.object("metadata", [&] {
      if (ask.seconds >= 0 || ask.exit_code != 0) {
        out.object("annotations", [&] {
          if (ask.seconds >= 0) out.field("sim.berth.dev/run-seconds", std::to_string(ask.seconds));
          if (ask.exit_code != 0)
            out.field("sim.berth.dev/exit-code", std::to_string(ask.exit_code));
        });
      }
    });
    out.object("spec", [&] {
      out.field("schedulerName", ask.scheduler_name);
      out.field("restartPolicy", "Never");
      if (!ask.priority_class.empty()) out.field("priorityClassName", ask.priority_class);
      out.array("containers", [&] { write_container(ask, out); });
    });
  });
}

}  // namespace

std::string job_manifest(const JobAsk& ask) {
  text::JsonWriter out;
  out.object([&] {
    out.field("apiVersion", "batch/v1");
    out.field("kind", "Job");
    out.object("metadata", [&] {
      out.field("name", ask.name);
      out.field("namespace", ask.ns);
      if (!ask.queue.empty()) {
        out.object("labels", [&] { out.field("kueue.x-k8s.io/queue-name", ask.queue); });
      }
    });
    out.object("spec", [&] {
      out.field("parallelism", ask.pods);
      out.field("completions", ask.pods);
      out.field("backoffLimit", 0);
      if (!ask.queue.empty()) out.field("suspend", true);
      out.key("template");
      write_template(ask, out);
    });
  });
  return std::move(out).take();
}

}  // namespace berth::app
