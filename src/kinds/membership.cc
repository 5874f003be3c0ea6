// Which group a pod belongs to.
#include "kinds/group.h"
#include "kinds/names.h"

namespace berth::kinds {

namespace {

const std::string* label_of(const Meta& meta, std::string_view key) {
  const auto it = meta.labels.find(key);
  return it == meta.labels.end() ? nullptr : &it->second;
}

void take_group(const text::Value& object, std::string_view key, const std::string* value,
                Membership& out, text::Decoder& d) {
  if (value == nullptr || value->empty()) return;
  if (!is_dns_subdomain(*value)) {
    annotation_error(object, key, "the name of a PodGroup", d);
  } else if (!out.group.empty() && out.group != *value) {
    annotation_error(object, key, "the same group as elsewhere on the pod: " + quoted(out.group),
                     d);
  } else {
    out.group = *value;
  }
}

void read_group_min(const text::Value& object, const Meta& meta, Membership& out,
                    text::Decoder& d) {
  constexpr std::string_view kKey = "scheduling.volcano.sh/group-min-member";
  const std::string* text = meta.annotation(kKey);
  if (text == nullptr) return;
  std::int64_t number = 0;
  if (!parse_int(*text, number) || number < 1 || number > 1'000'000) {
    return annotation_error(object, kKey, "a whole number 1..1000000", d);
  }
  out.group_min = static_cast<int>(number);
}

}  // namespace

void read_membership(const text::Value& object, const Meta& meta,
                     const std::string& scheduling_group, Membership& out, text::Decoder& d) {
  out.group = scheduling_group;
  for (const std::string_view key :
       {"scheduling.k8s.io/group-name", "scheduling.volcano.sh/group-name", "pod-group-name"}) {
    take_group(object, key, meta.annotation(key), out, d);
  }
  constexpr std::string_view kCoscheduling = "scheduling.x-k8s.io/pod-group";
  take_group(object, kCoscheduling, label_of(meta, kCoscheduling), out, d);
  read_group_min(object, meta, out, d);

  if (const std::string* task = meta.annotation("volcano.sh/task-spec")) {
    out.subgroup = *task;
  } else if (const std::string* name = label_of(meta, "kai.scheduler/subgroup-name")) {
    out.subgroup = *name;
  }
  for (const std::string_view key : {"kai.scheduler/queue", "kueue.x-k8s.io/queue-name"}) {
    const std::string* queue = label_of(meta, key);
    if (queue != nullptr && out.queue.empty()) out.queue = *queue;
  }
  const std::string* queue = meta.annotation("scheduling.volcano.sh/queue-name");
  if (queue != nullptr && out.queue.empty()) out.queue = *queue;
  read_topology(object, meta, out.topology, d);
}

}  // namespace berth::kinds
