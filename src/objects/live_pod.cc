#include "objects/gathered.h"
#include "objects/object_set.h"
#include "objects/pod_body.h"
#include "objects/readers.h"

namespace berth::objects {

using text::Value;

LivePod read_live_pod(const Value& v) {
  LivePod live;
  live.ns = text_in(v, {"metadata", "namespace"});
  live.name = text_in(v, {"metadata", "name"});
  live.uid = text_in(v, {"metadata", "uid"});
  live.node = text_in(v, {"spec", "nodeName"});
  live.gpus = text_in(v, {"metadata", "annotations", kGpusAnnotation});
  live.phase = text_in(v, {"status", "phase"});
  live.created_ns = time_in(v, {"metadata", "creationTimestamp"});
  live.started_ns = time_in(v, {"status", "startTime"});
  const Value* deleted = find_in(v, {"metadata", "deletionTimestamp"});
  live.terminating = deleted != nullptr && !deleted->is_null();
  if (const Value* conditions = find_in(v, {"status", "conditions"})) {
    for (const Value& c : conditions->items()) {
      if (text_in(c, {"type"}) == "Ready") live.ready = text_in(c, {"status"}) == "True";
    }
  }
  return live;
}

namespace {

// kube-scheduler knows nothing of such annotations: they got the pod no GPU.
bool means_nothing(const Value& v, const model::GpuDemandSpec& gpu) {
  using Kind = model::GpuDemandSpec::Kind;
  const std::string_view scheduler = text_in(v, {"spec", "schedulerName"});
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
    return entry.first == kGpusAnnotation || entry.first == kLastApplied;
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
  spec.created_ns = spec.started_ns = 0;
  spec.terminating = false;
  return body;
}

void hold_as_bound(const LivePod& before, LivePod& live) {
  live.gpus = before.gpus;
  const PodObject& was = before.body->object;
  if (live.body == before.body || was.spec.gpu == live.body->object.spec.gpu) return;
  auto body = std::make_shared<PodBody>(*live.body);
  body->object.spec.gpu = was.spec.gpu;
  body->object.spec.gpus_by_container = was.spec.gpus_by_container;
  body->object.gpus_read = was.gpus_read;
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
  if (!live.node.empty()) indices_of(live.gpus, pod.spec.gpu_indices);
  return pod;
}

std::vector<Note> complaints(const std::string& key, const LivePod& live) {
  std::vector<Note> out = live.body->notes;
  for (Note& note : out) note.object = "Pod " + key;
  return out;
}

}  // namespace berth::objects
