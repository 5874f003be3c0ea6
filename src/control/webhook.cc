#include "control/webhook.h"

#include <vector>

#include "text/base64.h"
#include "text/json.h"
#include "text/json_writer.h"
#include "text/patch.h"

namespace berth::control {

namespace {

using text::Value;

constexpr int kMaxTemplateDepth = 12;
// An object has 3 MiB and comes twice; values of a few bytes each would take ten times its memory.
constexpr std::size_t kMostReviewValues = 1'000'000;
constexpr std::string_view kQueueName = "kueue.x-k8s.io/queue-name";

const Value* at(const Value* v, std::string_view key) {
  return v == nullptr ? nullptr : v->find(key);
}

bool asks_for_gpus(const Value& pod) {
  if (const Value* notes = at(at(&pod, "metadata"), "annotations")) {
    if (notes->find("gpu-fraction") != nullptr || notes->find("gpu-memory") != nullptr) return true;
  }
  const Value* spec = pod.find("spec");
  for (const std::string_view list : {"containers", "initContainers"}) {
    const Value* containers = at(spec, list);
    if (containers == nullptr) continue;
    for (const Value& container : containers->items()) {
      for (const std::string_view kind : {"limits", "requests"}) {
        const Value* amounts = at(container.find("resources"), kind);
        if (amounts == nullptr) continue;
        for (const text::Member& member : amounts->members()) {
          if (member.key.starts_with("nvidia.com/")) return true;
        }
      }
    }
  }
  return false;
}

class Review {
 public:
  explicit Review(const WebhookOptions& options) : options_(options) {}

  // Pod templates anywhere below, found by their shape: every kind that makes pods has them.
  void find_templates(const Value& v, int depth) {
    if (depth > kMaxTemplateDepth) return;
    for (const text::Member& member : v.members()) {
      path_.emplace_back(member.key);
      const Value* containers = at(member.value.find("spec"), "containers");
      if (member.key == "template" && containers != nullptr && containers->is_array()) {
        choose_scheduler(member.value);
      } else {
        find_templates(member.value, depth + 1);
      }
      path_.pop_back();
    }
    for (std::size_t i = 0; i < v.items().size(); ++i) {
      path_.push_back(std::to_string(i));
      find_templates(v.items()[i], depth + 1);
      path_.pop_back();
    }
  }

  void choose_scheduler(const Value& pod) {
    const Value* spec = pod.find("spec");
    if (spec == nullptr || !spec->is_object()) return;
    const Value* given = spec->find("schedulerName");
    const bool open = given == nullptr || given->is_null() || given->string().empty() ||
                      given->string() == "default-scheduler";
    if (!open || !(options_.every_pod || asks_for_gpus(pod))) return;
    std::vector<std::string> path = path_;
    path.insert(path.end(), {"spec", "schedulerName"});
    add(path, [this](text::JsonWriter& out) { out.field("value", options_.scheduler_name); });
  }

  void suspend(const Value& job) {
    const Value* labels = at(job.find("metadata"), "labels");
    const Value* queue = at(labels, kQueueName);
    const Value* spec = job.find("spec");
    if (queue == nullptr || queue->string().empty() || spec == nullptr) return;
    const Value* now = spec->find("suspend");
    if (now != nullptr && now->as_bool()) return;
    add({"spec", "suspend"}, [](text::JsonWriter& out) { out.field("value", true); });
  }

  // The patch, or nothing.
  std::string take() && {
    if (!any_) return {};
    patch_.end_array();
    return std::move(patch_).take();
  }

 private:
  template <class F>
  void add(const std::vector<std::string>& path, F value) {
    if (!any_) patch_.begin_array();
    any_ = true;
    patch_.begin_object();
    patch_.field("op", "add");  // it replaces what is there
    patch_.field("path", text::print_pointer(path));
    value(patch_);
    patch_.end_object();
  }

  const WebhookOptions& options_;
  std::vector<std::string> path_;
  text::JsonWriter patch_;
  bool any_ = false;
};

std::string patch_for(const Value& request, const WebhookOptions& options) {
  const Value* object = request.find("object");
  const Value* kind_value = at(request.find("kind"), "kind");
  const Value* operation = request.find("operation");
  if (object == nullptr || !object->is_object() || kind_value == nullptr) return {};
  const std::string_view kind = kind_value->string();
  const bool created = operation != nullptr && operation->string() == "CREATE";
  const bool renews = kind == "Deployment" || kind == "StatefulSet" || kind == "CronJob";
  if (!created && !renews) return {};
  Review review(options);
  if (kind == "Pod") {
    review.choose_scheduler(*object);
  } else {
    review.find_templates(*object, 0);
  }
  const Value* group = at(request.find("kind"), "group");
  const bool batch = group != nullptr && group->string() == "batch";
  if (options.suspend_queued_jobs && created && batch && kind == "Job") review.suspend(*object);
  return std::move(review).take();
}

}  // namespace

Result<std::string> review(std::string_view body, const WebhookOptions& options) {
  text::JsonOptions how;
  how.limits.max_nodes = kMostReviewValues;
  auto document = text::parse_json(body, how);
  if (!document.ok()) return document.error();
  const Value& root = document->root();
  const Value* kind = root.find("kind");
  const Value* version = root.find("apiVersion");
  const Value* request = root.find("request");
  if (kind == nullptr || kind->string() != "AdmissionReview") {
    return invalid("kind: want AdmissionReview");
  }
  if (version == nullptr || version->string() != "admission.k8s.io/v1") {
    return invalid("apiVersion: want admission.k8s.io/v1");
  }
  const Value* uid = at(request, "uid");
  if (uid == nullptr || uid->string().empty()) return invalid("request.uid: found nothing");
  const std::string patch = patch_for(*request, options);
  text::JsonWriter out;
  out.begin_object();
  out.field("apiVersion", "admission.k8s.io/v1");
  out.field("kind", "AdmissionReview");
  out.key("response");
  out.begin_object();
  out.field("uid", uid->string());
  out.field("allowed", true);
  if (!patch.empty()) {
    out.field("patchType", "JSONPatch");
    out.field("patch", text::base64_encode(patch));
  }
  out.end_object();
  out.end_object();
  return std::move(out).take();
}

}  // namespace berth::control
