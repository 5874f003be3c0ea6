#include "app/job_manifest.h"

#include "text/json_writer.h"

namespace berth::app {

namespace {

void write_container(const JobAsk& ask, text::JsonWriter& out) {
  out.begin_object();
  out.field("name", "main");
  out.field("image", ask.image);
  if (!ask.command.empty()) {
    out.key("command");
    out.begin_array();
    for (const std::string& word : ask.command) out.value(word);
    out.end_array();
  }
  out.key("resources");
  out.begin_object();
  out.key("requests");
  out.begin_object();
  out.field("cpu", ask.cpu);
  out.field("memory", ask.memory);
  out.end_object();
  if (ask.gpus > 0) {
    out.key("limits");
    out.begin_object();
    out.field("nvidia.com/gpu", std::to_string(ask.gpus));
    out.end_object();
  }
  out.end_object();
  out.end_object();
}

void write_template(const JobAsk& ask, text::JsonWriter& out) {
  out.begin_object();
  out.key("metadata");
  out.begin_object();
  if (ask.seconds >= 0 || ask.exit_code != 0) {
    out.key("annotations");
    out.begin_object();
    if (ask.seconds >= 0) out.field("sim.berth.dev/run-seconds", std::to_string(ask.seconds));
    if (ask.exit_code != 0) out.field("sim.berth.dev/exit-code", std::to_string(ask.exit_code));
    out.end_object();
  }
  out.end_object();
  out.key("spec");
  out.begin_object();
  out.field("schedulerName", ask.scheduler_name);
  out.field("restartPolicy", "Never");
  if (!ask.priority_class.empty()) out.field("priorityClassName", ask.priority_class);
  out.key("containers");
  out.begin_array();
  write_container(ask, out);
  out.end_array();
  out.end_object();
  out.end_object();
}

}  // namespace

std::string job_manifest(const JobAsk& ask) {
  text::JsonWriter out;
  out.begin_object();
  out.field("apiVersion", "batch/v1");
  out.field("kind", "Job");
  out.key("metadata");
  out.begin_object();
  out.field("name", ask.name);
  out.field("namespace", ask.ns);
  if (!ask.queue.empty()) {
    out.key("labels");
    out.begin_object();
    out.field("kueue.x-k8s.io/queue-name", ask.queue);
    out.end_object();
  }
  out.end_object();
  out.key("spec");
  out.begin_object();
  out.field("parallelism", ask.pods);
  out.field("completions", ask.pods);
  out.field("backoffLimit", 0);
  if (!ask.queue.empty()) out.field("suspend", true);
  out.key("template");
  write_template(ask, out);
  out.end_object();
  out.end_object();
  return std::move(out).take();
}

}  // namespace berth::app
