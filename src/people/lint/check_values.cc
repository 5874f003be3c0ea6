// Values of the GPU Operator's chart, in files and on command lines.
#include <algorithm>
#include <array>

#include "people/lint/checks.h"
#include "text/nearest.h"

namespace berth::lint {

namespace {

constexpr std::array<std::string_view, 40> kChartTop = {"platform",
                                                        "nfd",
                                                        "node-feature-discovery",
                                                        "psa",
                                                        "psp",
                                                        "cdi",
                                                        "sandboxWorkloads",
                                                        "daemonsets",
                                                        "validator",
                                                        "operator",
                                                        "mig",
                                                        "driver",
                                                        "toolkit",
                                                        "devicePlugin",
                                                        "dcgm",
                                                        "dcgmExporter",
                                                        "gfd",
                                                        "migManager",
                                                        "nodeStatusExporter",
                                                        "gds",
                                                        "gdrcopy",
                                                        "vgpuManager",
                                                        "vgpuDeviceManager",
                                                        "vfioManager",
                                                        "kataManager",
                                                        "sandboxDevicePlugin",
                                                        "kataSandboxDevicePlugin",
                                                        "ccManager",
                                                        "hostPaths",
                                                        "extraObjects",
                                                        "global",
                                                        "fullnameOverride",
                                                        "nameOverride",
                                                        "draDriver",
                                                        "gpuCluster",
                                                        "clusterPolicy",
                                                        "nvidiaDriver",
                                                        "upgradeCRD",
                                                        "imagePullSecrets",
                                                        "peermem"};

// Values that people set and the chart does not have, with what they want instead.
struct Wrong {
  std::string_view key;  // itself and everything below
  std::string_view rename, instead;
};
constexpr Wrong kWrong[] = {
    {"mig.config", "migManager.config.default",
     "set migManager.config.default, or label nodes with nvidia.com/mig.config"},
    {"mig.enabled", "", "set mig.strategy, and migManager.enabled"},
    {"mps", "",
     "give the device plugin a configuration with sharing.mps.resources, and name it in "
     "devicePlugin.config.name"},
    {"timeSlicing", "",
     "give the device plugin a configuration with sharing.timeSlicing.resources, and name it in "
     "devicePlugin.config.name"},
    {"devicePlugin.mps.enabled", "", "give the device plugin a configuration with sharing.mps"},
    {"devicePlugin.mps.replicas", "", "give the device plugin a configuration with sharing.mps"},
    {"devicePlugin.timeSlicing", "",
     "give the device plugin a configuration with sharing.timeSlicing.resources"},
    {"operator.defaultRuntime", "", "remove it: the operator finds the runtime itself"},
    {"dcgmPodExporter", "dcgmExporter", "set dcgmExporter"},
};

bool under(std::string_view key, std::string_view parent) {
  return key == parent || (key.starts_with(parent) && key.size() > parent.size() &&
                           (key[parent.size()] == '.' || key[parent.size()] == '['));
}

bool is_bare_version(std::string_view value) {
  return !value.empty() && value.front() >= '0' && value.front() <= '9' &&
         std::count(value.begin(), value.end(), '.') == 2 &&
         value.find_first_not_of("0123456789.") == std::string_view::npos;
}

std::string nearest_top(std::string_view key) {
  std::string best;
  std::size_t least = 4;
  for (const std::string_view known : kChartTop) {
    const std::size_t far = text::edits_between(key, known, 3);
    if (far < least) {
      least = far;
      best = known;
    }
  }
  return best;
}

// Values of this chart: no object, and more than one of its own names at the top, or one that only
// it has.
bool looks_like_operator(const Place& root) {
  std::size_t known = 0;
  bool own = false;
  for (const Place& member : root.members()) {
    if (std::find(kChartTop.begin(), kChartTop.end(), member.key()) != kChartTop.end()) ++known;
    own = own || member.key() == "migManager" || member.key() == "dcgmExporter" ||
          member.key() == "devicePlugin" || member.key() == "toolkit" || member.key() == "gfd";
  }
  return own || known >= 2;
}

}  // namespace

std::optional<ValueTrouble> gpu_operator_value(std::string_view key, std::string_view value) {
  for (const Wrong& wrong : kWrong) {
    if (!under(key, wrong.key)) continue;
    ValueTrouble out{"helm-value", "the chart gpu-operator has no value " + std::string(key),
                     std::string(wrong.instead), ""};
    if (!wrong.rename.empty() && key == wrong.key) out.rename = wrong.rename;
    return out;
  }
  const std::string_view top = key.substr(0, key.find_first_of(".["));
  if (std::find(kChartTop.begin(), kChartTop.end(), top) == kChartTop.end()) {
    const std::string near = nearest_top(top);
    ValueTrouble out{"helm-value", "the chart gpu-operator has no value " + std::string(key),
                     "remove it, or see helm show values nvidia/gpu-operator", ""};
    if (!near.empty()) {
      out.fix = "write " + near + std::string(key.substr(top.size()));
      out.rename = near + std::string(key.substr(top.size()));
    }
    return out;
  }
  if (key == "mig.strategy" && value != "none" && value != "single" && value != "mixed" &&
      !value.empty() && value.find('$') == std::string_view::npos) {
    return ValueTrouble{"helm-value",
                        "found mig.strategy " + std::string(value) + ", want none, single or mixed",
                        "write single or mixed", ""};
  }
  if ((key == "toolkit.version" || key == "devicePlugin.version" || key == "migManager.version" ||
       key == "gfd.version") &&
      is_bare_version(value)) {
    return ValueTrouble{"helm-image-tag",
                        "found " + std::string(key) + " " + std::string(value) +
                            ", want a tag of its image: there is none without a v",
                        "write v" + std::string(value) +
                            ", with the suffix that the tags of that release have, or leave it out",
                        ""};
  }
  return std::nullopt;
}

void check_values(const Object& object, Reporter& out) {
  if (!object.kind.empty() || !object.api.empty()) return;
  const Place root = object.root();
  if (!looks_like_operator(root)) return;
  for (const Wrong& wrong : kWrong) {
    Place at = root;
    std::string_view rest = wrong.key;
    while (!rest.empty()) {
      const std::string_view step = rest.substr(0, rest.find('.'));
      at = at[step];
      rest.remove_prefix(std::min(step.size() + 1, rest.size()));
    }
    if (!at) continue;
    out.add("helm-value", at, "the chart gpu-operator has no value " + std::string(wrong.key),
            std::string(wrong.instead));
  }
  for (const Place& top : root.members()) {
    if (out.claimed(top.path())) continue;
    if (std::find(kChartTop.begin(), kChartTop.end(), top.key()) != kChartTop.end()) continue;
    const std::string near = nearest_top(top.key());
    if (near.empty()) continue;
    out.add("helm-value", top, "the chart gpu-operator has no value " + top.key(), "write " + near,
            one_change(rename_key(top.path(), near)));
  }
  for (const char* component : {"toolkit", "devicePlugin", "migManager", "gfd"}) {
    const Place version = root[component]["version"];
    const std::string key = std::string(component) + ".version";
    if (auto trouble = gpu_operator_value(key, version.word())) {
      out.add(trouble->rule, version, std::move(trouble->what), std::move(trouble->fix));
    }
  }
  const Place strategy = root["mig"]["strategy"];
  const Place layout = root["migManager"]["config"]["default"];
  if (layout && !layout.text().empty() && !layout.is("all-disabled") && !strategy) {
    out.add("mig-layout-strategy", layout,
            "nodes are cut into " + layout.word() +
                " and mig.strategy is not set: with single, the default, they offer nvidia.com/gpu "
                "and no nvidia.com/mig-...",
            "set mig.strategy: mixed when pods ask for nvidia.com/mig-...");
  }
  if (auto trouble = gpu_operator_value("mig.strategy", strategy.word())) {
    out.add(trouble->rule, strategy, std::move(trouble->what), std::move(trouble->fix));
  }
}

}  // namespace berth::lint
