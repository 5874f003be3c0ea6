#include "kinds/topology.h"

#include "kinds/names.h"

namespace berth::kinds {

namespace {

constexpr std::string_view kRequiredKeys[] = {
    "berth.dev/topology-required",
    "kueue.x-k8s.io/podset-required-topology",
    "kai.scheduler/topology-required-placement",
};
constexpr std::string_view kPreferredKeys[] = {
    "berth.dev/topology-preferred",
    "kueue.x-k8s.io/podset-preferred-topology",
    "kai.scheduler/topology-preferred-placement",
};

struct Alias {
  std::string_view name;
  std::string_view keys[3];  // best first; unused ones are empty
};
constexpr Alias kAliases[] = {
    {"zone", {"topology.kubernetes.io/zone", "", ""}},
    {"region", {"topology.kubernetes.io/region", "", ""}},
    {"block",
     {"topology.kubernetes.io/block", "cloud.provider.com/topology-block",
      "network.topology.nvidia.com/block"}},
    {"rack", {"topology.kubernetes.io/rack", "cloud.provider.com/topology-rack", ""}},
    {"host", {"kubernetes.io/hostname", "", ""}},
    {"nvlink-domain", {"nvidia.com/gpu.clique", "network.topology.nvidia.com/accelerator", ""}},
};

void read_one_topology(const text::Value& object, const Meta& meta,
                       std::span<const std::string_view> keys, std::string& out, text::Decoder& d) {
  for (const std::string_view key : keys) {
    const std::string* value = meta.annotation(key);
    if (value == nullptr) continue;
    if (!is_topology_value(*value)) {
      annotation_error(object, key,
                       "a node label key, or zone, region, block, rack, host, nvlink-domain", d);
    } else if (!out.empty() && out != *value) {
      annotation_error(object, key, "the same topology as the other annotation: " + quoted(out), d);
    } else {
      out = *value;
    }
  }
}

}  // namespace

void read_topology(const text::Value& object, const Meta& meta, TopologyRequest& out,
                   text::Decoder& d) {
  read_one_topology(object, meta, kRequiredKeys, out.required, d);
  read_one_topology(object, meta, kPreferredKeys, out.preferred, d);
}

bool is_topology_value(std::string_view text) { return is_qualified_name(text); }

std::string topology_key(std::string_view value,
                         const std::set<std::string, std::less<>>& node_label_keys) {
  if (node_label_keys.contains(value)) return std::string(value);
  for (const Alias& alias : kAliases) {
    if (alias.name != value) continue;
    for (const std::string_view key : alias.keys) {
      if (node_label_keys.contains(key)) return std::string(key);
    }
    return std::string(alias.keys[0]);
  }
  return std::string(value);
}

}  // namespace berth::kinds
