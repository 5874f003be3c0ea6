#include <algorithm>
#include <charconv>

#include "people/lint/checks.h"
#include "text/yaml.h"

namespace berth::lint {

namespace {

using text::YamlChange;

// ---- NVIDIA's device plugin ------------------------------------------------------------------

bool is_plugin_config(const Place& config) {
  return config["version"].is("v1") &&
         (config.has("sharing") || config.has("flags") || config.has("resources") ||
          config["timeSlicing"].value().is_object() || config["mps"].value().is_object());
}

void check_replicas(const Place& holder, const Place& resource, Reporter& out) {
  const Place replicas = resource["replicas"];
  const auto count = replicas.value().as_int64();
  if (replicas && (!count || *count < 2)) {
    out.add_inside("plugin-replicas", holder, replicas,
                   "found replicas " + replicas.word() + ", want a whole number of 2 or more",
                   "write into how many shares a GPU is cut, or remove the resource");
  }
  if (!resource.has("name")) {
    out.add_inside("plugin-sharing", holder, resource, "the shared resource has no name",
                   "add name: nvidia.com/gpu");
  } else if (!replicas) {
    out.add_inside("plugin-sharing", holder, resource,
                   "the shared resource " + resource["name"].word() + " has no replicas",
                   "add replicas: 4, or how many shares a GPU has");
  }
}

// timeSlicing: {replicas: 4} is what people write; the plugin wants a list of resources.
void check_shared(const Place& holder, const Place& config, const std::string& way, Reporter& out) {
  const Place sharing = config["sharing"][way];
  if (!sharing) return;
  const Place replicas = sharing["replicas"];
  for (const Place& resource : sharing["resources"].items()) {
    check_replicas(holder, resource, out);
  }
  if (replicas) {
    std::optional<Fix> edit;
    if (!sharing.has("resources") && replicas.value().as_int64().has_value()) {
      Fix fix;
      fix.changes.push_back(put_value(sharing, {"resources"}, "[{\"name\":\"nvidia.com/gpu\"}]"));
      YamlChange move{.kind = YamlChange::Kind::kMove, .at = replicas.path()};
      move.to = sharing["resources"][std::size_t{0}].path();
      fix.changes.push_back(std::move(move));
      const bool mixed = config["flags"]["migStrategy"].is("mixed");
      if (!mixed) edit = std::move(fix);
    }
    out.add_inside("plugin-sharing", holder, replicas,
                   "found sharing." + way + ".replicas, want sharing." + way +
                       ".resources[].replicas: replicas belong to a resource",
                   "write resources: [{name: nvidia.com/gpu, replicas: " + replicas.word() + "}]",
                   std::move(edit));
  } else if (!sharing.has("resources")) {
    out.add_inside("plugin-sharing", holder, sharing, "sharing." + way + " lists no resources",
                   "add resources: [{name: nvidia.com/gpu, replicas: 4}]");
  }
  for (const Place& field : sharing.members()) {
    const std::string& key = field.key();
    if (key != "replicas" && key != "resources" && key != "renameByDefault" &&
        key != "failRequestsGreaterThanOne") {
      out.add_inside("plugin-field", holder, field,
                     "found " + key + " in sharing." + way +
                         ", want renameByDefault, failRequestsGreaterThanOne or resources",
                     "remove " + key);
    }
  }
}

void check_plugin_config(const Object& object, const Place& holder, const Place& config,
                         Reporter& out) {
  const Place strategy = config["flags"]["migStrategy"];
  if (strategy && !strategy.is("none") && !strategy.is("single") && !strategy.is("mixed")) {
    out.add_inside("plugin-field", holder, strategy,
                   "found migStrategy " + strategy.word() + ", want none, single or mixed",
                   "write migStrategy: single or mixed");
  }
  check_shared(holder, config, "timeSlicing", out);
  check_shared(holder, config, "mps", out);
  if (config["sharing"].has("timeSlicing") && config["sharing"].has("mps")) {
    out.add_inside("plugin-two-ways", holder, config["sharing"],
                   "found timeSlicing and mps, want one of them",
                   "keep the one that is meant; the plugin takes mps");
  }
  for (const Place& field : config.members()) {
    const std::string& key = field.key();
    if (key == "version" || key == "flags" || key == "resources" || key == "sharing" ||
        key == "imex" || key == "health") {
      continue;
    }
    if (key == "timeSlicing" || key == "mps") {
      out.add_inside("plugin-sharing", holder, field,
                     "found " + key + " beside version, want it in sharing",
                     "put " + key +
                         " under sharing, with resources: [{name: nvidia.com/gpu, "
                         "replicas: 4}]");
      continue;
    }
    out.add_inside("plugin-field", holder, field,
                   "found " + key + ", want version, flags, resources, sharing or imex",
                   "remove " + key + " or put it where it belongs");
  }
  if (object.ns.empty()) {
    out.add("plugin-config-namespace", object.root()["metadata"]["namespace"],
            "the configuration of the device plugin names no namespace",
            "set metadata.namespace to the one the GPU Operator runs in (gpu-operator)");
  }
}

// ---- cluster-autoscaler ----------------------------------------------------------------------

bool names(std::string_view pattern, std::initializer_list<std::string_view> words) {
  std::string lower(pattern);
  std::transform(lower.begin(), lower.end(), lower.begin(), [](char c) {
    return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  });
  return std::any_of(words.begin(), words.end(),
                     [&](std::string_view word) { return lower.find(word) != std::string::npos; });
}

void check_expander(const Place& holder, const Place& priorities, Reporter& out) {
  std::int64_t spot = -1, steady = -1;
  Place spot_at;
  for (const Place& entry : priorities.members()) {
    std::int64_t number = 0;
    const std::string& key = entry.key();
    const auto [end, code] = std::from_chars(key.data(), key.data() + key.size(), number);
    if (code != std::errc() || end != key.data() + key.size()) {
      out.add_inside("expander-priority", holder, entry,
                     "found the priority " + key + ", want a whole number",
                     "write a number; the highest wins");
      continue;
    }
    for (const Place& pattern : entry.items()) {
      if (names(pattern.text(), {"spot", "preempt"})) {
        if (number > spot) spot_at = entry;
        spot = std::max(spot, number);
      } else if (names(pattern.text(), {"ondemand", "on-demand", "on_demand", "reserved"})) {
        steady = std::max(steady, number);
      }
    }
  }
  if (spot < 0 || steady < 0 || spot <= steady) return;
  out.add_inside("expander-priority-order", holder, spot_at,
                 "spot groups have priority " + std::to_string(spot) + ", on-demand groups " +
                     std::to_string(steady) + ": the highest number wins, so spot comes first",
                 "swap the numbers when on-demand nodes are to come first");
}

}  // namespace

void check_sharing(const Object& object, Reporter& out) {
  if (!object.is("", "ConfigMap")) return;
  const Place data = object.root()["data"];
  for (const Place& entry : data.members()) {
    if (!entry.value().is_string() || entry.text().size() > (1u << 20)) continue;
    const auto inner = text::parse_yaml(
        entry.text(), {.limits = {.max_nodes = 200'000}, .max_alias_nodes = 1'000});
    if (!inner.ok() || inner->size() != 1 || !inner->front().root().is_object()) continue;
    const Place config(inner->front().root(), {});
    if (is_plugin_config(config)) check_plugin_config(object, entry, config, out);
    if (entry.key() == "priorities" && object.name.find("priority-expander") != std::string::npos) {
      check_expander(entry, config, out);
    }
  }
}

}  // namespace berth::lint
