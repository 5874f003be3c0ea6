#include "people/lint/checks.h"
#include "text/json.h"

namespace berth::lint {

namespace {

using text::YamlChange;

// ---- Argo ------------------------------------------------------------------------------------

std::string without(std::string_view text, std::string_view what) {
  std::string out;
  for (std::size_t at = 0; at < text.size();) {
    if (text.substr(at).starts_with(what)) {
      at += what.size();
    } else {
      out += text[at++];
    }
  }
  return out;
}

// A JSON list, or a place for one that Argo fills in.
bool is_list_or_template(std::string_view text) {
  if (text.find("{%") != std::string_view::npos) return false;
  const std::size_t first = text.find_first_not_of(" \t\r\n");
  if (first == std::string_view::npos) return false;
  if (text.substr(first).starts_with("{{")) return true;
  const auto read = text::parse_json(text);
  if (read.ok()) return read->root().is_array();
  return text.find("{{") != std::string_view::npos;  // parts of it are filled in
}

// Loops of Jinja over lists that are written out: what the author meant, as JSON. Nothing when it
// is more than that.
class Loops {
 public:
  static std::optional<std::string> expand(std::string_view text) {
    Loops loops;
    std::string out;
    if (!loops.run(text, out, 0) || loops.at_ != text.size()) return std::nullopt;
    for (std::size_t at = out.rfind(','); at != std::string::npos; at = out.rfind(',', at - 1)) {
      const std::size_t next = out.find_first_not_of(" \t\r\n,", at);
      if (next != std::string::npos && out[next] == ']') out.erase(at, 1);
      if (at == 0) break;
    }
    const auto read = text::parse_json(out);
    if (!read.ok() || !read->root().is_array() || read->root().size() > 1000) return std::nullopt;
    return text::to_json(read->root());
  }

 private:
  bool run(std::string_view text, std::string& out, int depth) {
    if (depth > 4) return false;
    while (at_ < text.size()) {
      const std::size_t tag = std::min(text.find("{%", at_), text.size());
      out += filled(text.substr(at_, tag - at_));
      at_ = tag;
      if (tag == text.size()) return true;
      const std::size_t close = text.find("%}", tag);
      if (close == std::string_view::npos) return false;
      std::string_view inside = text.substr(tag + 2, close - tag - 2);
      while (!inside.empty() && (inside.front() == ' ' || inside.front() == '-'))
        inside.remove_prefix(1);
      while (!inside.empty() && (inside.back() == ' ' || inside.back() == '-'))
        inside.remove_suffix(1);
      if (inside == "endfor") return depth > 0;
      at_ = close + 2;
      if (!loop(text, inside, out, depth)) return false;
    }
    return depth == 0;
  }

  bool loop(std::string_view text, std::string_view inside, std::string& out, int depth) {
    if (!inside.starts_with("for ")) return false;
    inside.remove_prefix(4);
    const std::size_t in = inside.find(" in ");
    if (in == std::string_view::npos) return false;
    const std::string variable = without(inside.substr(0, in), " ");
    const auto list = text::parse_json(inside.substr(in + 4));
    if (!list.ok() || !list->root().is_array() || list->root().size() == 0) return false;
    const std::size_t body = at_;
    for (const text::Value& item : list->root().items()) {
      if (out.size() > 100'000) return false;
      at_ = body;
      const std::string value = item.is_string() ? std::string(item.string()) : text::to_json(item);
      variables_.emplace_back(variable, value);
      const bool fine = run(text, out, depth + 1);
      variables_.pop_back();
      if (!fine) return false;
    }
    at_ = text.find("%}", at_) + 2;  // of the endfor that run() stopped at
    return true;
  }

  std::string filled(std::string_view text) const {
    std::string out;
    for (std::size_t at = 0; at < text.size();) {
      const std::size_t open = std::min(text.find("{{", at), text.size());
      out += text.substr(at, open - at);
      if (open == text.size()) break;
      const std::size_t close = text.find("}}", open);
      if (close == std::string_view::npos) return out + std::string(text.substr(open));
      const std::string variable = without(text.substr(open + 2, close - open - 2), " ");
      std::string value = "{{" + variable + "}}";
      for (const auto& [name, filled_in] : variables_) {
        if (name == variable) value = filled_in;
      }
      out += value;
      at = close + 2;
    }
    return out;
  }

  std::size_t at_ = 0;
  std::vector<std::pair<std::string, std::string>> variables_;
};

void check_step(const Place& step, Reporter& out) {
  const Place param = step["withParam"];
  if (!param.value().is_string() || is_list_or_template(param.text())) return;
  std::optional<Fix> edit;
  const auto list = Loops::expand(param.text());
  if (list && !step.has("withItems")) {
    Fix fix = one_change(put_value(step, {"withItems"}, *list));
    fix.changes.push_back(remove_at(param.path()));
    edit = std::move(fix);
  }
  const bool jinja = param.text().find("{%") != std::string_view::npos;
  out.add("argo-with-param", param,
          jinja ? "found a loop of Jinja in withParam, want a JSON list: Argo has no such loops"
                : "withParam is no JSON list",
          "write the list out under withItems, or a JSON list", std::move(edit));
}

bool asks_gpu(const Place& from) {
  bool found = false;
  walk(from, [&](const Place& place) {
    found = found ||
            (!place.path().empty() && is_gpu_resource(place.key()) && !place.value().is_object());
    return !found;
  });
  return found;
}

bool is_mentioned(const Place& from, std::string_view key) {
  bool found = false;
  walk(from, [&](const Place& place) {
    found = found || (!place.path().empty() && place.key() == key);
    return !found;
  });
  return found;
}

// Many GPU pods at once, and nothing that lets them in one after the other.
void check_fan_out(const Place& spec, Reporter& out) {
  if (!asks_gpu(spec["templates"])) return;
  if (is_mentioned(spec, "kueue.x-k8s.io/queue-name") || is_mentioned(spec, "parallelism") ||
      is_mentioned(spec, "synchronization")) {
    return;
  }
  for (const Place& one : spec["templates"].items()) {
    for (const char* loop : {"withItems", "withParam", "withSequence"}) {
      if (!is_mentioned(one, loop)) continue;
      out.add("argo-not-queued", one,
              "all pods of the loop are made at once and wait as pending pods: no queue, no "
              "parallelism and no semaphore orders them",
              "set podMetadata.labels of the workflow to kueue.x-k8s.io/queue-name: ..., or "
              "parallelism");
      return;
    }
  }
}

void check_argo(const Object& object, Reporter& out) {
  Place spec = object.root()["spec"];
  if (object.kind == "CronWorkflow") spec = spec["workflowSpec"];
  std::set<std::string> templates;
  for (const Place& one : spec["templates"].items()) {
    templates.insert(std::string(one["name"].text()));
    for (const Place& group : one["steps"].items()) {
      for (const Place& step : group.items()) check_step(step, out);
      if (group.value().is_object()) {
        check_step(group, out);
      }
    }
    for (const Place& task : one["dag"]["tasks"].items()) check_step(task, out);
  }
  check_fan_out(spec, out);
  const Place entry = spec["entrypoint"];
  if (entry && !templates.empty() && !templates.contains(std::string(entry.text())) &&
      object.kind != "WorkflowTemplate") {
    out.add("argo-entrypoint", entry, "no template is called " + entry.word(),
            "name one of the templates of the workflow");
  }
}

// ---- Tekton ----------------------------------------------------------------------------------

constexpr const char* kPodOnly[] = {"tolerations",   "nodeSelector",       "affinity",
                                    "podTemplate",   "serviceAccountName", "runtimeClassName",
                                    "schedulerName", "securityContext",    "hostNetwork"};

void check_task_spec(const Object& object, const Place& spec, Reporter& out) {
  for (const char* field : kPodOnly) {
    if (!spec.has(field)) continue;
    out.add("tekton-task-field", spec[field],
            "found " + std::string(field) + " in a task, which has none",
            "put it into the PipelineRun: spec.taskRunTemplate.podTemplate." + std::string(field));
  }
  for (const char* list : {"steps", "sidecars"}) {
    for (const Place& step : spec[list].items()) {
      if (!step.has("resources") || object.version == "v1beta1") continue;
      out.add("tekton-step-resources", step["resources"],
              "found resources in a step, want computeResources in tekton.dev/v1",
              "write computeResources",
              one_change(rename_key(step["resources"].path(), "computeResources")));
    }
  }
  if (spec["stepTemplate"].has("resources") && object.version != "v1beta1") {
    const Place resources = spec["stepTemplate"]["resources"];
    out.add("tekton-step-resources", resources,
            "found resources in a step template, want computeResources in tekton.dev/v1",
            "write computeResources", one_change(rename_key(resources.path(), "computeResources")));
  }
}

void check_pipeline(const Object& object, const Place& spec, Reporter& out) {
  bool after_evaluation = false;
  std::string evaluation;
  for (const Place& task : spec["tasks"].items()) {
    const std::string name(task["name"].text());
    if (task.has("taskSpec")) check_task_spec(object, task["taskSpec"], out);
    if (task["taskRef"]["name"].is("git-clone") && !task.has("workspaces")) {
      out.add("tekton-clone-workspace", task,
              "git-clone is given no workspace output, so it has nowhere to write",
              "add workspaces: [{name: output, workspace: source}]");
    }
    if (task.has("runAfter") || task.has("taskSpec")) {
      for (const Place& volume : task["taskSpec"]["volumes"].items()) {
        if (!volume.has("emptyDir") || !task.has("runAfter")) continue;
        out.add("tekton-empty-dir", volume,
                "the emptyDir " + volume["name"].word() +
                    " is empty here: every task runs in a pod of its own",
                "share files between tasks through a workspace");
      }
    }
    if (name.find("deploy") != std::string::npos && task.has("runAfter") && !task.has("when") &&
        after_evaluation) {
      out.add("tekton-always-deploys", task,
              "the task " + name + " runs whatever " + evaluation + " found: it has no when",
              "add when: [{input: $(tasks." + evaluation +
                  ".results.ok), operator: in, values: "
                  "[\"true\"]}]");
    }
    if (name.find("evaluat") != std::string::npos || name.find("validat") != std::string::npos) {
      after_evaluation = true;
      evaluation = name;
    }
  }
}

}  // namespace

void check_pipelines(const Object& object, Reporter& out) {
  if (object.group == "argoproj.io" &&
      (object.kind == "Workflow" || object.kind == "WorkflowTemplate" ||
       object.kind == "ClusterWorkflowTemplate" || object.kind == "CronWorkflow")) {
    check_argo(object, out);
  }
  if (object.group != "tekton.dev") return;
  const Place spec = object.root()["spec"];
  if (object.kind == "Task" || object.kind == "ClusterTask") check_task_spec(object, spec, out);
  if (object.kind == "TaskRun" && spec.has("taskSpec")) {
    check_task_spec(object, spec["taskSpec"], out);
  }
  if (object.kind == "Pipeline") check_pipeline(object, spec, out);
  if (object.kind == "PipelineRun") check_pipeline(object, spec["pipelineSpec"], out);
}

}  // namespace berth::lint
