#include <algorithm>
#include <array>

#include "people/lint/checks.h"
#include "text/nearest.h"
#include "text/quantity.h"

namespace berth::lint {

namespace {

using text::Quantity;

constexpr std::array<std::string_view, 30> kNodeLabels = {"cuda.driver.major",
                                                          "cuda.driver.minor",
                                                          "cuda.driver.rev",
                                                          "cuda.driver-version.major",
                                                          "cuda.driver-version.minor",
                                                          "cuda.driver-version.revision",
                                                          "cuda.driver-version.full",
                                                          "cuda.runtime.major",
                                                          "cuda.runtime.minor",
                                                          "cuda.runtime-version.major",
                                                          "cuda.runtime-version.minor",
                                                          "cuda.runtime-version.full",
                                                          "gfd.timestamp",
                                                          "gpu.machine",
                                                          "gpu.count",
                                                          "gpu.product",
                                                          "gpu.memory",
                                                          "gpu.family",
                                                          "gpu.compute.major",
                                                          "gpu.compute.minor",
                                                          "gpu.replicas",
                                                          "gpu.sharing-strategy",
                                                          "gpu.mode",
                                                          "gpu.clique",
                                                          "mig.capable",
                                                          "mps.capable",
                                                          "mig.strategy",
                                                          "gpu.present",
                                                          "gpu.multiprocessors",
                                                          "mig.config"};

// Labels under nvidia.com/ that nodes really have; families of them by their beginning.
bool is_known_label(std::string_view name) {
  for (const std::string_view prefix : {"gpu.deploy.",
                                        "mig-",
                                        "gpu.slices.",
                                        "gpu.engines.",
                                        "vgpu.",
                                        "gpu.model.",
                                        "mig.config",
                                        "gpu-operator.",
                                        "gpu-driver-upgrade",
                                        "gpu.workload.config",
                                        "gdrcopy.",
                                        "gds.",
                                        "peermem.",
                                        "device-plugin.config",
                                        "cc.",
                                        "dra",
                                        "rdma",
                                        "ofed",
                                        "gpu-driver",
                                        "gpu.imex",
                                        "gpu.vgpu",
                                        "gpu-feature",
                                        "gpu.nvlink",
                                        "driver",
                                        "nvswitch",
                                        "gpu.driver"}) {
    if (name.starts_with(prefix)) return true;
  }
  return std::find(kNodeLabels.begin(), kNodeLabels.end(), name) != kNodeLabels.end();
}

std::string nearest_label(std::string_view name) {
  std::string best;
  std::size_t least = 5;
  for (const std::string_view known : kNodeLabels) {
    const std::size_t far = text::edits_between(name, known, 4);
    if (far < least) {
      least = far;
      best = known;
    }
  }
  return best;
}

// value: one that a node must have; absent when only the key is asked for.
void check_label(const Place& where, std::string_view key, std::string_view value, Reporter& out) {
  constexpr std::string_view kPrefix = "nvidia.com/";
  if (!key.starts_with(kPrefix)) return;
  const std::string_view name = key.substr(kPrefix.size());
  if (name == "gpu" || !is_known_label(name)) {
    const std::string near = nearest_label(name);
    std::string fix =
        "use a label that GPU Feature Discovery writes: nvidia.com/gpu.product, "
        "nvidia.com/gpu.count, nvidia.com/gpu.memory";
    if (!near.empty()) fix = "write nvidia.com/" + near;
    out.add("gpu-label-unknown", where,
            "nodes do not have the label " + std::string(key) + ": no NVIDIA component writes it",
            fix);
    return;
  }
  if (name != "gpu.product" || value.empty()) return;
  if (value.find('-') != std::string_view::npos && value.find(' ') == std::string_view::npos) {
    return;
  }
  out.add("gpu-product-value", where,
          "found nvidia.com/gpu.product " + std::string(value) +
              ", want the full name as the label has it",
          "write the label's value, for example NVIDIA-H100-80GB-HBM3 (kubectl get nodes -L "
          "nvidia.com/gpu.product)");
}

void check_node_terms(const Place& affinity, Reporter& out) {
  walk(affinity, [&](const Place& place) {
    if (!place.has("key") || !place.has("operator")) return true;
    const Place values = place["values"];
    if (!place["operator"].is("In") || values.size() == 0) {
      check_label(place["key"], place["key"].text(), {}, out);
      return false;
    }
    for (const Place& value : values.items()) {
      check_label(value, place["key"].text(), value.text(), out);
    }
    return false;
  });
}

void check_selector(const Place& selector, Reporter& out) {
  for (const Place& label : selector.members()) {
    if (!label.value().is_string()) {
      if (label.value().is_number() || label.value().is_bool()) {
        out.add(
            "label-not-string", label,
            "found " + label.word() + " for " + label.key() + ", want a string: a label is text",
            "put it in quotes: \"" + label.word() + "\"",
            one_change(set_text(label.path(), label.word())));
      }
      continue;
    }
    check_label(label, label.key(), label.text(), out);
  }
}

std::optional<Quantity> amount(const Place& place) {
  if (!place.value().is_string() && !place.value().is_number()) return std::nullopt;
  auto read = text::parse_quantity(place.word());
  if (!read.ok()) return std::nullopt;
  return *read;
}

void check_amount(const Place& place, Reporter& out) {
  const auto value = amount(place);
  if (!value) return;
  const std::string& name = place.key();
  if (value->is_negative()) {
    out.add("resource-negative", place,
            "found " + place.word() + " of " + name + ", want 0 or more",
            "write how many devices the container needs");
  } else if (!value->is_integer()) {
    std::string fix = "ask for whole devices";
    if (is_gpu_resource(name)) {
      fix += "; share a GPU by MIG (nvidia.com/mig-1g.10gb: 1) or time-slicing instead";
    }
    out.add("resource-fraction", place,
            "found " + place.word() + " of " + name + ", want a whole number", fix);
  }
}

// Of requests and limits of a container: devices are given whole, and requests equal limits.
void check_resources(const Place& resources, Reporter& out) {
  const Place limits = resources["limits"];
  const Place requests = resources["requests"];
  for (const Place& limit : limits.members()) {
    if (!is_extended_resource(limit.key())) continue;
    check_amount(limit, out);
    if (limit.key().starts_with("nvidia.com/rdma_") || limit.key().starts_with("nvidia.com/hca_")) {
      const std::string real = "rdma/" + limit.key().substr(11);
      out.add(
          "rdma-prefix", limit,
          "found " + limit.key() + ": the RDMA shared device plugin calls it " + real +
              " unless its configuration sets resourcePrefix",
          "write " + real + ", or set resourcePrefix: nvidia.com in the plugin's configuration");
    }
  }
  for (const Place& request : requests.members()) {
    if (!is_extended_resource(request.key())) continue;
    check_amount(request, out);
    const Place limit = limits[request.key()];
    const auto asked = amount(request);
    if (!limit) {
      out.add("resource-without-limit", request,
              request.key() + " is in requests and not in limits",
              "put the same amount under limits: for devices the limit is what counts",
              one_change(
                  put_value(resources, {"limits", request.key()}, text::to_json(request.value()))));
      continue;
    }
    const auto most = amount(limit);
    if (asked && most && !(*asked == *most)) {
      out.add("resource-not-equal", request,
              "requests " + request.word() + " and limits " + limit.word() + " of " +
                  request.key() + " differ, want them equal",
              "give only limits, or the same amount in both");
    }
  }
}

bool is_mig_profile(std::string_view name) {  // 1g.10gb, 1c.3g.20gb, 1g.10gb.me
  const std::size_t g = name.find("g.");
  return g != std::string_view::npos && g > 0 && name.find("gb") != std::string_view::npos;
}

void check_mig_name(const Place& place, Reporter& out) {
  const std::string& name = place.key();
  for (const std::string_view prefix :
       {"nvidia.com/mig", "nvidia.com/gpu-mig", "nvidia.com/gpu.mig", "nvidia.com/"}) {
    if (!name.starts_with(prefix)) continue;
    const std::string_view rest = std::string_view(name).substr(prefix.size());
    if (!is_mig_profile(rest)) continue;
    if (prefix == "nvidia.com/mig" && rest.front() == '-') {
      return;
    }
    std::string_view profile = rest;
    while (!profile.empty() && (profile.front() < '0' || profile.front() > '9')) {
      profile.remove_prefix(1);
    }
    out.add("mig-resource-name", place,
            "found " + name + ", want nvidia.com/mig-" + std::string(profile),
            "write nvidia.com/mig-" + std::string(profile),
            one_change(rename_key(place.path(), "nvidia.com/mig-" + std::string(profile))));
    return;
  }
}

void check_tolerations(const Place& spec, Reporter& out) {
  for (const Place& toleration : spec["tolerations"].items()) {
    const bool exists = toleration["operator"].is("Exists");
    if (exists && !toleration["value"].text().empty()) {
      out.add("toleration-exists-value", toleration["value"],
              "found a value with operator Exists, want none: Exists tolerates every value",
              "remove value, or use operator: Equal",
              one_change(remove_at(toleration["value"].path())));
    }
  }
}

}  // namespace

bool is_extended_resource(std::string_view name) {
  const std::size_t slash = name.find('/');
  if (slash == std::string_view::npos) return false;
  const std::string_view domain = name.substr(0, slash);
  return domain != "kubernetes.io" && !domain.ends_with(".kubernetes.io") &&
         !domain.starts_with("requests.") && !domain.starts_with("limits.");
}

bool is_gpu_resource(std::string_view name) {
  return name == "nvidia.com/gpu" || name == "nvidia.com/gpu.shared" ||
         name.starts_with("nvidia.com/mig-") || name == "amd.com/gpu" ||
         name == "gpu.intel.com/i915";
}

std::vector<Place> pod_specs(const Object& object) {
  std::vector<Place> out;
  if (object.kind == "CustomResourceDefinition") return out;
  walk(object.root(), [&](const Place& place) {
    if (place.has("containers") && place["containers"].value().is_array()) {
      out.push_back(place);
    }
    return true;
  });
  return out;
}

std::vector<Place> containers_of(const Place& spec) {
  std::vector<Place> out;
  for (const char* list : {"initContainers", "containers", "ephemeralContainers"}) {
    for (Place& item : spec[list].items()) out.push_back(std::move(item));
  }
  return out;
}

std::string namespace_of(const Object& object) { return object.ns.empty() ? "default" : object.ns; }

void check_gpus(const Object& object, Reporter& out) {
  if (object.kind == "CustomResourceDefinition" || object.kind == "ConfigMap") return;
  walk(object.root(), [&](const Place& place) {
    if (place.path().empty()) return true;
    const std::string& key = place.key();
    if ((key == "resources" || key == "computeResources") && place.value().is_object()) {
      if (place.has("limits") || place.has("requests")) check_resources(place, out);
    }
    if (key == "limits" || key == "requests") {
      for (const Place& resource : place.members()) check_mig_name(resource, out);
    }
    if (key == "nodeSelector" && place.value().is_object()) check_selector(place, out);
    if (key == "nodeAffinity") check_node_terms(place, out);
    if (key == "nodeLabels" && object.kind == "ResourceFlavor") check_selector(place, out);
    if (place.has("tolerations")) check_tolerations(place, out);
    return true;
  });
  if (object.group.empty() && object.kind == "Node") {
    for (const Place& label : object.root()["metadata"]["labels"].members()) {
      if (!label.key().starts_with("gpu.nvidia.com/nvlink")) continue;
      out.add("node-label-by-hand", label,
              label.key() + " is set by hand: no NVIDIA component keeps it true",
              "let berth's agent write it (docs/labels.md), or label the node with kubectl label");
    }
  }
}

}  // namespace berth::lint
