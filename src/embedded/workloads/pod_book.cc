#include "embedded/workloads/pod_book.h"

#include <algorithm>

#include "embedded/workloads/read.h"
#include "text/path.h"

namespace berth::sim {

namespace {

using text::Value;

PodPhase read_phase(std::string_view word) {
  if (word == "Running") return PodPhase::kRunning;
  if (word == "Succeeded") return PodPhase::kSucceeded;
  if (word == "Failed") return PodPhase::kFailed;
  return word == "Unknown" ? PodPhase::kUnknown : PodPhase::kPending;
}

int number_in(const Value& annotations, std::string_view key) {
  const Value* found = annotations.find(key);
  if (found == nullptr) return 0;
  std::string_view text = found->string();
  const bool negative = text.starts_with('-');
  std::int64_t number = 0;
  if (!kinds::parse_int(negative ? text.substr(1) : text, number) || number > 2'000'000'000) {
    return 0;
  }
  return static_cast<int>(negative ? -number : number);
}

void read_pod_meta(const Value& meta, PodInfo& out) {
  out.key = {std::string(text_at(meta, "namespace")), std::string(text_at(meta, "name"))};
  out.uid = text_at(meta, "uid");
  out.created_ns = time_at(meta, "creationTimestamp");
  out.deleted_ns = time_at(meta, "deletionTimestamp");
  out.deleting = meta.find("deletionTimestamp") != nullptr;
  for (const text::Member& label : at(meta, "labels").members()) {
    out.labels.emplace(label.key, label.value.string());
  }
  for (const Value& owner : at(meta, "ownerReferences").items()) {
    if (!true_at(owner, "controller")) continue;
    out.owner_kind = text_at(owner, "kind");
    out.owner_name = text_at(owner, "name");
    out.owner_uid = text_at(owner, "uid");
  }
  for (const Value& finalizer : at(meta, "finalizers").items()) {
    out.tracked |= finalizer.string() == kJobFinalizer;
  }
  const Value& annotations = at(meta, "annotations");
  if (annotations.find(kIndexKey) != nullptr) out.index = number_in(annotations, kIndexKey);
  out.index_failures = number_in(annotations, "batch.kubernetes.io/job-index-failure-count");
  out.index_ignored = number_in(annotations, "batch.kubernetes.io/job-index-ignored-failure-count");
  out.deletion_cost = number_in(annotations, "controller.kubernetes.io/pod-deletion-cost");
}

void read_tolerations(const Value& list, PodInfo& out) {
  for (const Value& t : list.items()) {
    const std::string_view effect = text_at(t, "effect");
    if (!effect.empty() && effect != "NoExecute") continue;
    NoExecuteToleration toleration;
    toleration.rule.key = text_at(t, "key");
    toleration.rule.value = text_at(t, "value");
    toleration.rule.op = text_at(t, "operator") == "Exists" ? model::Toleration::Op::kExists
                                                            : model::Toleration::Op::kEqual;
    toleration.rule.effect = model::TaintEffect::kNoExecute;
    if (t.find("tolerationSeconds") != nullptr) {
      toleration.seconds = std::max<std::int64_t>(0, int_at(t, "tolerationSeconds"));
    }
    out.tolerations.push_back(std::move(toleration));
  }
}

bool usual_condition(std::string_view type) {
  return type == "PodScheduled" || type == "Initialized" || type == "Ready" ||
         type == "ContainersReady" || type == "PodReadyToStartContainers";
}

void read_pod_status(const Value& status, PodInfo& out) {
  out.phase = read_phase(text_at(status, "phase"));
  for (const Value& c : at(status, "conditions").items()) {
    const std::string_view type = text_at(c, "type");
    const std::string_view word = text_at(c, "status");
    if (type == "Ready") {
      out.ready = word == "True";
      out.ready_ns = time_at(c, "lastTransitionTime");
    }
    if (usual_condition(type)) continue;
    out.disruption_target |= type == "DisruptionTarget" && word == "True";
    out.conditions.emplace_back(type, word);
  }
  for (const std::string_view list : {"initContainerStatuses", "containerStatuses"}) {
    for (const Value& c : status[list].items()) {
      out.restarts += static_cast<int>(int_at(c, "restartCount"));
      const Value& ended = at(c, "state.terminated");
      if (!ended.is_object()) continue;
      out.finished_ns = std::max(out.finished_ns, time_at(ended, "finishedAt"));
      const auto code = static_cast<int>(int_at(ended, "exitCode"));
      if (code != 0) out.ends.push_back({std::string(text_at(c, "name")), code});
    }
  }
}

}  // namespace

PodInfo read_pod_info(const Value& pod) {
  PodInfo out;
  read_pod_meta(at(pod, "metadata"), out);
  out.node = text_at(pod, "spec.nodeName");
  read_tolerations(at(pod, "spec.tolerations"), out);
  read_pod_status(at(pod, "status"), out);
  return out;
}

void PodBook::put(PodPtr pod) {
  if (!pod->owner_uid.empty()) by_owner_[pod->key.ns + '/' + pod->owner_uid].insert(pod->key);
  if (!pod->node.empty()) by_node_[pod->node].insert(pod->key);
  pods_[pod->key] = std::move(pod);
}

void PodBook::take(const kube::Key& key) {
  const auto it = pods_.find(key);
  if (it == pods_.end()) return;
  const auto drop = [&key](Index& index, const std::string& name) {
    const auto at = index.find(name);
    if (at == index.end()) return;
    at->second.erase(key);
    if (at->second.empty()) index.erase(at);
  };
  drop(by_owner_, key.ns + '/' + it->second->owner_uid);
  drop(by_node_, it->second->node);
  pods_.erase(it);
}

void PodBook::apply(const kube::ObjectPtr& before, const kube::ObjectPtr& after) {
  const kube::Key key = after != nullptr ? after->key : before->key;
  const auto it = pods_.find(key);
  const PodPtr old = it == pods_.end() ? nullptr : it->second;
  PodPtr now;
  if (after != nullptr) now = std::make_shared<const PodInfo>(read_pod_info(after->root()));
  take(key);
  if (now != nullptr) put(now);
  for (const Watcher& watcher : watchers_) watcher(old.get(), now.get());
}

const PodInfo* PodBook::find(const kube::Key& key) const {
  const auto it = pods_.find(key);
  return it == pods_.end() ? nullptr : it->second.get();
}

std::vector<PodBook::PodPtr> PodBook::found(const Index& index, const std::string& name) const {
  std::vector<PodPtr> out;
  const auto at = index.find(name);
  if (at == index.end()) return out;
  for (const kube::Key& key : at->second) out.push_back(pods_.at(key));
  return out;
}

std::vector<PodBook::PodPtr> PodBook::of_owner(const std::string& ns,
                                               const std::string& uid) const {
  return found(by_owner_, ns + '/' + uid);
}

std::vector<PodBook::PodPtr> PodBook::on_node(const std::string& node) const {
  return found(by_node_, node);
}

std::vector<PodBook::PodPtr> PodBook::in_namespace(const std::string& ns) const {
  std::vector<PodPtr> out;
  for (auto it = pods_.lower_bound({ns, ""}); it != pods_.end() && it->first.ns == ns; ++it) {
    out.push_back(it->second);
  }
  return out;
}

}  // namespace berth::sim
