#include "control/webhook.h"

#include <algorithm>
#include <set>
#include <utility>
#include <vector>

#include "control/bypass.h"
#include "kinds/kind_table.h"
#include "text/base64.h"
#include "text/json.h"
#include "text/json_writer.h"
#include "text/patch.h"
#include "text/path.h"

namespace berth::control {

namespace {

using text::Value;

constexpr int kMaxTemplateDepth = 12;
// Values of a few bytes each take ten times the memory of their text. No pod of use has as many.
constexpr std::size_t kMostReviewValues = 500'000;
constexpr std::size_t kMostContainers = 1'000;  // that are changed: a patch is held, too
constexpr std::string_view kVisibleDevices = "NVIDIA_VISIBLE_DEVICES";
constexpr std::string_view kQueueName = "kueue.x-k8s.io/queue-name";

// By annotations, as shares of GPUs are asked for.
bool asks_for_shares(const Value& pod) {
  const Value* notes = find(pod, "metadata.annotations");
  return find(notes, "gpu-fraction") != nullptr || find(notes, "gpu-memory") != nullptr;
}

// "0", 0, "0e3" and "0.0Ki" ask for nothing.
bool is_zero(const Value& amount) {
  const std::string_view text = amount.is_number() ? amount.number_text() : amount.string();
  return text.substr(0, text.find_first_of("eE")).find_first_of("123456789") == text.npos;
}

bool container_asks_for_gpus(const Value& container, bool nothing_counts) {
  for (const std::string_view kind : {"limits", "requests"}) {
    const Value* amounts = container["resources"].find(kind);
    if (amounts == nullptr) continue;
    for (const text::Member& member : amounts->members()) {
      if (member.key.starts_with("nvidia.com/") && (nothing_counts || !is_zero(member.value))) {
        return true;
      }
    }
  }
  return false;
}

bool asks_for_gpus(const Value& pod) {
  if (asks_for_shares(pod)) return true;
  for (const std::string_view list : {"containers", "initContainers"}) {
    const Value* containers = pod["spec"].find(list);
    if (containers == nullptr) continue;
    for (const Value& container : containers->items()) {
      if (container_asks_for_gpus(container, true)) return true;
    }
  }
  return false;
}

std::string_view name_of(const Value& v) {
  const Value* name = v.find("name");
  return name == nullptr ? std::string_view() : name->string();
}

std::set<std::string_view> names_of(const Value* list) {
  std::set<std::string_view> out;
  if (list == nullptr) return out;
  for (const Value& one : list->items()) out.insert(name_of(one));
  return out;
}

class Review {
 public:
  explicit Review(const WebhookOptions& options) : options_(options) {}

  // Pod templates anywhere below, found by their shape: every kind that makes pods has them.
  void find_templates(const Value& v, int depth) {
    if (depth > kMaxTemplateDepth) return;
    for (const text::Member& member : v.members()) {
      path_.emplace_back(member.key);
      const Value* containers = find(member.value.find("spec"), "containers");
      if (member.key == "template" && containers != nullptr && containers->is_array()) {
        choose_scheduler(member.value);
        if (bypasses_.empty()) bypasses_ = find_bypasses(member.value, dotted(path_), false);
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

  // True: it is ours.
  bool choose_scheduler(const Value& pod) {
    const Value* spec = pod.find("spec");
    if (spec == nullptr || !spec->is_object()) return false;
    const Value* given = spec->find("schedulerName");
    const bool open = given == nullptr || given->is_null() || given->string().empty() ||
                      given->string() == "default-scheduler";
    if (!open) return given->string() == options_.scheduler_name;
    if (!asks_for_gpus(pod)) return false;
    std::vector<std::string> path = path_;
    path.insert(path.end(), {"spec", "schedulerName"});
    add(path, [this](text::JsonWriter& out) { out.field("value", options_.scheduler_name); });
    return true;
  }

  void give_default_queue(const Value& object) {
    const Value* labels = find(object.find("metadata"), "labels");
    std::vector<std::string> path = {"metadata", "labels"};
    if (labels != nullptr && labels->is_object()) {
      path.emplace_back(kQueueName);
      return add(path, [](text::JsonWriter& out) { out.field("value", "default"); });
    }
    add(path, [](text::JsonWriter& out) {
      out.object("value", [&] { out.field(kQueueName, "default"); });
    });
  }

  void suspend(const Value& object, const kinds::PodMaker& maker) {
    if (kinds::rests(maker, object) || !object["spec"].is_object()) return;
    std::vector<std::string> path;
    const Value* now = &object;
    for (std::size_t i = 0; i < maker.suspend->size(); ++i) {
      path.emplace_back((*maker.suspend)[i]);
      const bool last = i + 1 == maker.suspend->size();
      now = now->find(path.back());
      if (last || now != nullptr) continue;
      add(path, [](text::JsonWriter& out) { out.object("value", [] {}); });
      static const Value kNothing;
      now = &kNothing;
    }
    add(path, [](text::JsonWriter& out) { out.field("value", true); });
  }

  // A variable of the pod's own wins over those of its image and of ConfigMaps (envFrom), which
  // cannot be seen from here. Containers that are there already (before) cannot be changed. Devices
  // of claims come by CDI, which does not read it.
  void hide_gpus(const Value& pod, std::string_view list, const Value* before) {
    const Value* containers = pod["spec"].find(list);
    if (containers == nullptr || asks_for_shares(pod)) return;
    if (containers->items().size() > kMostContainers) {
      bypasses_.push_back("spec." + std::string(list) + ": too many to be looked at");
      return;
    }
    const std::set<std::string_view> known = names_of(at(before, "spec").find(list));
    for (std::size_t i = 0; i < containers->items().size(); ++i) {
      const Value& container = containers->items()[i];
      const Value* variables = container.find("env");
      if (!container.is_object() || container_asks_for_gpus(container, false) ||
          names_of(variables).contains(kVisibleDevices) || known.contains(name_of(container))) {
        continue;
      }
      const bool some = variables != nullptr && variables->is_array();
      std::vector<std::string> path = {"spec", std::string(list), std::to_string(i), "env"};
      if (some) path.emplace_back("-");
      add(path, [some](text::JsonWriter& out) {
        const auto variable = [&out] {
          out.object([&] {
            out.field("name", kVisibleDevices);
            out.field("value", "void");
          });
        };
        out.key("value");
        if (some) return variable();
        out.array(variable);
      });
    }
  }

  void look_for_bypasses(const Value& pod, bool fresh) {
    bypasses_ = find_bypasses(pod, "", fresh);
  }

  std::vector<std::string> take_bypasses() { return std::move(bypasses_); }

  // The patch, or nothing.
  std::string take() && { return patch_.empty() ? patch_ : "[" + patch_ + "]"; }

 private:
  template <class F>
  void add(const std::vector<std::string>& path, F value) {
    text::JsonWriter out;
    out.object([&] {
      out.field("op", "add");  // it replaces what is there
      out.field("path", text::print_pointer(path));
      value(out);
    });
    if (!patch_.empty()) patch_ += ',';
    patch_ += out.text();
  }

  static std::string dotted(const std::vector<std::string>& path) {
    std::string out;
    for (const std::string& part : path) out += (out.empty() ? "" : ".") + part;
    return out;
  }

  const WebhookOptions& options_;
  std::vector<std::string> path_, bypasses_;
  std::string patch_;  // its operations, commas between them
};

bool names_queue(const Value& object) {
  const Value* queue = at(object, "metadata.labels").find(kQueueName);
  return queue != nullptr && !queue->string().empty();
}

// What controls it; null for nobody.
const Value* controller_of(const Value& object) {
  for (const Value& owner : at(object, "metadata.ownerReferences").items()) {
    if (true_at(owner, "controller")) return &owner;
  }
  return nullptr;
}
std::string_view controlling_kind(const Value& object) {
  const Value* owner = controller_of(object);
  return owner == nullptr ? std::string_view() : text_at(*owner, "kind");
}

// Whoever made it waits as a whole, and lets it go on. Where that one waits in no queue the
// controller tells this one to rest.
bool is_made_by_queued(const Value& object) {
  const Value* owner = controller_of(object);
  if (owner == nullptr) return false;
  const kinds::KindRow* row =
      kinds::find_kind_of(text_at(*owner, "apiVersion"), text_at(*owner, "kind"));
  return row != nullptr && row->maker != nullptr && row->maker->queued();
}

// Whether its pods wait in a group or queue of another scheduler.
bool waits_elsewhere(const Value& job) {
  const Value& labels = at(job, "spec.template.metadata.labels");
  const Value& notes = at(job, "spec.template.metadata.annotations");
  for (const std::string_view key : {"kai.scheduler/queue", "scheduling.x-k8s.io/pod-group"}) {
    if (labels.find(key) != nullptr) return true;
  }
  for (const std::string_view key :
       {"scheduling.volcano.sh/queue-name", "scheduling.k8s.io/group-name",
        "scheduling.volcano.sh/group-name", "pod-group-name"}) {
    if (notes.find(key) != nullptr) return true;
  }
  return false;
}

// What waits as a whole, as it is made, in a namespace. What something else than a CronJob made is
// left alone: who made it waits.
void review_maker(const Value& object, const kinds::PodMaker& maker, const std::string& ns,
                  const WebhookOptions& options, Review& review) {
  if (is_made_by_queued(object)) return;
  if (names_queue(object)) return review.suspend(object, maker);
  const std::string_view made_by = controlling_kind(object);
  if (options.board == nullptr || !(made_by.empty() || made_by == "CronJob")) return;
  const QueueBoard::Demands demands = options.board->read();
  if (demands->defaulted.contains(ns)) {
    review.give_default_queue(object);
    review.suspend(object, maker);
  } else if (demands->kueue && demands->required.contains(ns) && !waits_elsewhere(object)) {
    review.suspend(object, maker);
  }
}

void review_pod(const Value& pod, const std::string& ns, const WebhookOptions& options,
                Review& review) {
  const bool ours = review.choose_scheduler(pod);
  if (!ours || options.board == nullptr || names_queue(pod)) return;
  const std::string_view maker = controlling_kind(pod);
  const QueueBoard::Demands demands = options.board->read();
  if (demands->pods && demands->defaulted.contains(ns) &&
      (maker.empty() || maker == "ReplicaSet")) {
    review.give_default_queue(pod);
  }
}

struct Findings {
  std::string patch;
  std::vector<std::string> bypasses;
  bool judged_before = false;  // by whoever let it in: nothing is refused now
  bool past_queue = false;     // its namespace requires a queue, and it would run without
};

// Where a queue is required, or may be, nobody gets past it by choosing the node himself.
bool goes_past_queue(const Findings& found, const std::string& ns, const WebhookOptions& options) {
  if (options.board == nullptr) return false;
  const QueueBoard::Demands demands = options.board->read();
  return (!demands->known || demands->required.contains(ns)) &&
         std::any_of(found.bypasses.begin(), found.bypasses.end(),
                     [](const std::string& bypass) { return bypass.starts_with("spec.nodeName"); });
}

// Of pods that are there only what is new in them is looked at: ephemeral containers.
Findings look_at(const Value& request, const WebhookOptions& options) {
  Findings out;
  const Value* object = request.find("object");
  const Value* kind_value = find(request.find("kind"), "kind");
  const Value* operation = request.find("operation");
  if (object == nullptr || !object->is_object() || kind_value == nullptr) return out;
  const std::string_view kind = kind_value->string();
  const bool created = operation != nullptr && operation->string() == "CREATE";
  const bool renews = kind == "Deployment" || kind == "StatefulSet" || kind == "CronJob";
  const Value* part = request.find("subResource");
  const bool fresh = kind == "Pod" && part != nullptr && part->string() == "ephemeralcontainers";
  if (!created && !renews && !fresh) return out;
  Review review(options);
  const Value* ns_value = request.find("namespace");
  const std::string ns(ns_value == nullptr ? std::string_view() : ns_value->string());
  if (kind == "Pod") {
    if (!fresh) review_pod(*object, ns, options, review);
    review.look_for_bypasses(*object, fresh);
    if (options.refuse_bypasses && fresh) {
      review.hide_gpus(*object, "ephemeralContainers", request.find("oldObject"));
    } else if (options.refuse_bypasses) {
      review.hide_gpus(*object, "containers", nullptr);
      review.hide_gpus(*object, "initContainers", nullptr);
    }
  } else {
    review.find_templates(*object, 0);
  }
  const kinds::KindRow* row = kinds::find_kind(text_at(request, "kind.group"), kind);
  const bool waits = row != nullptr && row->maker != nullptr && row->maker->queued();
  if (options.suspend_queued_jobs && created && waits) {
    review_maker(*object, *row->maker, ns, options, review);
  }
  out.bypasses = review.take_bypasses();
  out.past_queue = kind == "Pod" && !fresh && goes_past_queue(out, ns, options);
  out.judged_before = !created && !fresh;
  out.patch = std::move(review).take();
  return out;
}

void write_strings(text::JsonWriter& out, std::string_view key,
                   const std::vector<std::string>& list) {
  out.array(key, [&] {
    for (const std::string& one : list) out.value("berth: " + one);
  });
}

// The first says enough; the others stand beside it as warnings.
void write_refusal(text::JsonWriter& out, const std::vector<std::string>& bypasses, bool unread) {
  out.object("status", [&] {
    out.field("code", 403);
    out.field("reason", "Forbidden");
    out.field("message",
              bypasses.front() + " (this cluster refuses ways around its GPUs' books" +
                  (unread ? "; the controller has just started: try again in a moment)" : ")"));
  });
}

std::string answer(std::string_view uid, const Findings& found, const WebhookOptions& options) {
  const bool refused =
      (options.refuse_bypasses && !found.bypasses.empty() && !found.judged_before) ||
      found.past_queue;
  text::JsonWriter out;
  out.object([&] {
    out.field("apiVersion", "admission.k8s.io/v1");
    out.field("kind", "AdmissionReview");
    out.object("response", [&] {
      out.field("uid", uid);
      out.field("allowed", !refused);
      const bool unread = options.board != nullptr && !options.board->read()->known;
      if (refused) write_refusal(out, found.bypasses, unread);
      if (!found.bypasses.empty()) write_strings(out, "warnings", found.bypasses);
      if (!refused && !found.patch.empty()) {
        out.field("patchType", "JSONPatch");
        out.field("patch", text::base64_encode(found.patch));
      }
    });
  });
  return std::move(out).take();
}

// Of a review that is not read to its end: an API server writes it first. Whoever gets an error
// lets the object in (failurePolicy Ignore), so this has to be an answer.
std::string_view uid_of_unread(std::string_view body) {
  constexpr std::string_view kBefore = R"("request":{"uid":")";
  constexpr std::size_t kSoon = 512, kLongest = 128;
  const std::size_t found = body.substr(0, kSoon).find(kBefore);
  if (found == std::string_view::npos) return {};
  const std::string_view uid = body.substr(found + kBefore.size(), kLongest);
  return uid.substr(0, uid.find_first_not_of("0123456789abcdefABCDEF-"));
}

}  // namespace

Result<std::string> review(std::string body, const WebhookOptions& options) {
  text::JsonOptions how;
  how.limits.max_nodes = kMostReviewValues;
  auto document = text::parse_json_in_place(body, how);
  if (!document.ok()) {
    const std::string_view uid = uid_of_unread(body);
    if (document.error().code() != Code::kExhausted || uid.empty()) return document.error();
    // What it holds and where it runs is not known, so where queues are required it is kept out.
    const QueueBoard::Demands demands = options.board ? options.board->read() : nullptr;
    const bool past = demands && (!demands->known || !demands->required.empty());
    return answer(uid, {.bypasses = {"it is too large to be looked at"}, .past_queue = past},
                  options);
  }
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
  const Value* uid = find(request, "uid");
  if (uid == nullptr || uid->string().empty()) return invalid("request.uid: found nothing");
  return answer(uid->string(), look_at(*request, options), options);
}

}  // namespace berth::control
