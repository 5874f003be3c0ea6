#include <algorithm>

#include "kinds/gathered.h"
#include "kinds/object_set.h"
#include "kinds/pod_body.h"
#include "kinds/queue_marks.h"
#include "kinds/readers.h"
#include "text/path.h"

namespace berth::kinds {

using text::Value;

LivePod read_live_pod(const Value& v) {
  LivePod live;
  live.ns = text_at(v, "metadata.namespace");
  live.name = text_at(v, "metadata.name");
  live.uid = text_at(v, "metadata.uid");
  live.node = text_at(v, "spec.nodeName");
  live.gpus = at(v, "metadata.annotations")[kGpusAnnotation].string();
  live.charged = at(v, "metadata.annotations")[kChargedAnnotation].string();
  live.phase = text_at(v, "status.phase");
  live.created_ns = time_at(v, "metadata.creationTimestamp");
  live.started_ns = time_at(v, "status.startTime");
  const Value* deleted = find(v, "metadata.deletionTimestamp");
  live.terminating = deleted != nullptr && !deleted->is_null();
  if (const Value* conditions = find(v, "status.conditions")) {
    for (const Value& c : conditions->items()) {
      if (text_at(c, "type") == "Ready") live.ready = text_at(c, "status") == "True";
    }
  }
  return live;
}

namespace {

// kube-scheduler knows nothing of such annotations: they got the pod no GPU.
bool means_nothing(const Value& v, const model::GpuDemandSpec& gpu) {
  using Kind = model::GpuDemandSpec::Kind;
  const std::string_view scheduler = text_at(v, "spec.schedulerName");
  return scheduler == "default-scheduler" &&
         (gpu.kind == Kind::kFraction || gpu.kind == Kind::kMemory);
}

}  // namespace

std::shared_ptr<PodBody> read_pod_body(const Value& v, bool ours) {
  auto body = std::make_shared<PodBody>();
  PodObject& pod = body->object;
  body->notes = read_pod(v, pod);
  body->valid = body->notes.empty();
  pod.meta.name.clear();
  pod.meta.generate_name.clear();
  pod.meta.uid.clear();
  pod.meta.created_ns = 0;
  pod.meta.deleted = false;
  std::erase_if(pod.meta.annotations, [](const auto& entry) {
    return entry.first == kGpusAnnotation || entry.first == kChargedAnnotation ||
           entry.first == kLastApplied;
  });
  pod.phase.clear();
  model::PodSpec& spec = pod.spec;
  if (!ours && means_nothing(v, spec.gpu)) {
    spec.gpu = {};
    pod.gpus_read = true;
  }
  spec.name.clear();
  spec.uid.clear();
  spec.node_name.clear();
  spec.gpu_indices.clear();
  spec.charged.clear();
  spec.let_in_by.clear();
  spec.created_ns = spec.started_ns = 0;
  spec.terminating = false;
  return body;
}

namespace {

// What says which workload, group and queue a pod is of.
bool is_mark(std::string_view key) {
  for (const std::string_view prefix :
       {"kueue.x-k8s.io/", "kai.scheduler/", "scheduling.volcano.sh/", "volcano.sh/",
        "scheduling.k8s.io/", "scheduling.x-k8s.io/", "batch.kubernetes.io/"}) {
    if (key.starts_with(prefix)) return true;
  }
  return key == "job-name" || key == "controller-uid" || key == "pod-group-name" ||
         key == "runai/queue";
}

bool same_marks(const model::Labels& a, const model::Labels& b) {
  const auto held_by = [](const model::Labels& of, const model::Labels& other) {
    return std::all_of(of.begin(), of.end(), [&](const auto& entry) {
      const auto it = other.find(entry.first);
      return !is_mark(entry.first) || (it != other.end() && it->second == entry.second);
    });
  };
  return held_by(a, b) && held_by(b, a);
}

void take_marks(const model::Labels& from, model::Labels& to) {
  std::erase_if(to, [](const auto& entry) { return is_mark(entry.first); });
  for (const auto& entry : from) {
    if (is_mark(entry.first)) to.insert(entry);
  }
}

bool same_place_in_books(const PodObject& a, const PodObject& b) {
  const Owner* before = a.meta.controller();
  const Owner* now = b.meta.controller();
  if (before != nullptr && (now == nullptr || *before != *now)) return false;
  return same_marks(a.meta.labels, b.meta.labels) &&
         same_marks(a.meta.annotations, b.meta.annotations);
}

}  // namespace

void hold_as_bound(const LivePod& before, LivePod& live) {
  live.as_bound = live.gpus != before.gpus || live.charged != before.charged;
  live.gpus = before.gpus;
  live.charged = before.charged;
  if (live.body == before.body) return;
  const PodObject& was = before.body->object;
  const PodObject& is = live.body->object;
  const bool same_place = same_place_in_books(was, is);
  if (same_place && was.spec.gpu == is.spec.gpu) return;
  live.as_bound = true;
  auto body = std::make_shared<PodBody>(*live.body);
  PodObject& held = body->object;
  held.spec.gpu = was.spec.gpu;
  held.spec.gpus_by_container = was.spec.gpus_by_container;
  held.gpus_read = was.gpus_read;
  if (!same_place) {
    live.strayed = true;
    if (was.meta.controller() != nullptr) {
      held.meta.owners = was.meta.owners;
      held.spec.owner = was.spec.owner;
    }
    held.member = was.member;
    held.spec.queue = was.spec.queue;
    take_marks(was.meta.labels, held.meta.labels);
    take_marks(was.meta.labels, held.spec.labels);
    take_marks(was.meta.annotations, held.meta.annotations);
  }
  live.body = std::move(body);
}

PodObject live_object(const LivePod& live) {
  PodObject pod = live.body->object;
  pod.meta.name = pod.spec.name = live.name;
  pod.meta.uid = pod.spec.uid = live.uid;
  pod.meta.created_ns = pod.spec.created_ns = live.created_ns;
  pod.meta.deleted = pod.spec.terminating = live.terminating;
  pod.spec.started_ns = live.started_ns;
  pod.spec.node_name = live.node;
  pod.phase = live.phase;
  if (live.node.empty()) return pod;
  indices_of(live.gpus, pod.spec.gpu_indices);
  if (live.is_charged()) read_charge(live.charged, pod.spec);
  return pod;
}

std::vector<Note> complaints(const std::string& key, const LivePod& live) {
  std::vector<Note> out = live.body->notes;
  for (Note& note : out) note.object = "Pod " + key;
  return out;
}

}  // namespace berth::kinds
