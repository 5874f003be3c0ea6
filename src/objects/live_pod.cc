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

}  // namespace berth::objects
