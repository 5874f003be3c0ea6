#include "node/advertise/plugin_config.h"

#include <algorithm>
#include <utility>

#include "kinds/readers.h"
#include "node/advertise/plugin_config_file.h"

namespace berth::advertise {
namespace {

using kinds::quoted;

// Errors say what is allowed; who gave the value is added where the names are known.
using Apply = Status (*)(PluginConfig&, std::string_view);

struct FlagRow {
  std::string_view flag, environment;
  std::string_view other_flag, other_environment;  // older names
  std::string_view what;
  Apply apply;
  std::string_view warning = {};  // for the log when it is given: it has no effect
};

template <auto Member>
Status set_bool(PluginConfig& config, std::string_view word) {
  for (std::string_view yes : {"1", "t", "T", "true", "TRUE", "True"}) {
    if (word == yes) {
      config.*Member = true;
      return {};
    }
  }
  for (std::string_view no : {"0", "f", "F", "false", "FALSE", "False"}) {
    if (word == no) {
      config.*Member = false;
      return {};
    }
  }
  return invalid("true or false");
}

template <auto Member, auto Parse>
Status set_word(PluginConfig& config, std::string_view word) {
  BERTH_TRY(config.*Member, Parse(word));
  return {};
}

template <auto Member, auto Check>
Status set_text(PluginConfig& config, std::string_view word) {
  BERTH_CHECK(Check(word));
  config.*Member = word;
  return {};
}

Status set_device_lists(PluginConfig& config, std::string_view words) {
  std::vector<DeviceList> lists;
  for (std::string_view word : kinds::split(words, ",")) {
    BERTH_TRY(const DeviceList list, device_list_of(kinds::trim(word)));
    if (std::find(lists.begin(), lists.end(), list) == lists.end()) lists.push_back(list);
  }
  config.device_list = std::move(lists);
  return {};
}

Status set_channels(PluginConfig& config, std::string_view words) {
  std::vector<int> channels;
  for (std::string_view word : kinds::split(words, ",")) {
    std::int64_t channel = 0;
    // Anything but a small number is refused below.
    channels.push_back(kinds::parse_int(kinds::trim(word), channel) && channel == 0 ? 0 : -1);
  }
  BERTH_CHECK(check_imex_channels(channels));
  config.imex_channels = std::move(channels);
  return {};
}

Status set_nothing(PluginConfig&, std::string_view) { return {}; }
Status check_bool(PluginConfig& config, std::string_view word) {
  PluginConfig apart = config;
  return set_bool<&PluginConfig::gds>(apart, word);
}

using C = PluginConfig;
constexpr FlagRow kFlagRows[] = {
    {"--mig-strategy", "MIG_STRATEGY", "", "", "how MIG devices are offered: none, single or mixed",
     set_word<&C::mig, mig_strategy_of>},
    {"--fail-on-init-error", "FAIL_ON_INIT_ERROR", "", "",
     "accepted; the agent waits for GPUs and driver, and does not end for want of them",
     check_bool},
    {"--driver-root", "NVIDIA_DRIVER_ROOT", "--nvidia-driver-root", "",
     "where the driver is installed on the host", set_text<&C::driver_root, check_path>},
    {"--dev-root", "NVIDIA_DEV_ROOT", "--nvidia-dev-root", "",
     "where its device nodes are; the driver root when not given",
     set_text<&C::dev_root, check_path>},
    {"--pass-device-specs", "PASS_DEVICE_SPECS", "", "",
     "name the device nodes to the kubelet as well", set_bool<&C::pass_device_specs>},
    {"--device-list-strategy", "DEVICE_LIST_STRATEGY", "", "",
     "how a container is given its devices: envvar, volume-mounts, cdi-annotations, cdi-cri, or "
     "several with commas",
     set_device_lists},
    {"--device-id-strategy", "DEVICE_ID_STRATEGY", "", "",
     "how devices are named there: uuid or index", set_word<&C::device_id, device_id_of>},
    {"--gdrcopy-enabled", "GDRCOPY_ENABLED", "", "", "containers get GDRCopy",
     set_bool<&C::gdrcopy>},
    {"--gds-enabled", "GDS_ENABLED", "", "", "containers get GPUDirect Storage", set_bool<&C::gds>},
    {"--mofed-enabled", "MOFED_ENABLED", "", "", "containers get the MOFED devices",
     set_bool<&C::mofed>},
    {"--cdi-annotation-prefix", "CDI_ANNOTATION_PREFIX", "", "",
     "how the names of CDI annotations begin",
     set_text<&C::cdi_annotation_prefix, check_annotation_prefix>},
    {"--nvidia-cdi-hook-path", "NVIDIA_CDI_HOOK_PATH", "--nvidia-ctk-path", "NVIDIA_CTK_PATH",
     "accepted; CDI specs have no hooks", set_nothing},
    {"--driver-root-ctr-path", "DRIVER_ROOT_CTR_PATH", "--container-driver-root",
     "CONTAINER_DRIVER_ROOT", "where the driver root is mounted in the agent's container",
     set_text<&C::container_driver_root, check_path>},
    {"--mps-root", "MPS_ROOT", "", "", "accepted; MPS is not yet served", set_nothing,
     kWarnMpsRoot},
    {"--shared-devices-allocation-policy", "SHARED_DEVICES_ALLOCATION_POLICY", "", "",
     "shares and MIG instances over the GPUs: distributed or packed",
     set_word<&C::shared_policy, shared_policy_of>},
    {"--device-discovery-strategy", "DEVICE_DISCOVERY_STRATEGY", "", "", "auto or nvml",
     [](PluginConfig&, std::string_view word) { return check_discovery(word); }},
    {"--imex-channel-ids", "IMEX_CHANNEL_IDS", "", "", "IMEX channels for containers: 0 or none",
     set_channels},
    {"--imex-required", "IMEX_REQUIRED", "", "",
     "end when the IMEX channel is not there, instead of going on without it",
     set_bool<&C::imex_required>},
    {"--kubelet-socket", "KUBELET_SOCKET", "", "", "accepted; the agent's --kubelet-dir says it",
     set_nothing, "the agent's --kubelet-dir says where the kubelet is"},
    {"--config-file", "CONFIG_FILE", "", "", "the file with these settings", set_nothing},
    {"--cdi-feature-flags", "CDI_FEATURE_FLAGS", "", "", "accepted; there are none here",
     set_nothing, "the agent's own CDI specs have no feature flags"},
    {"--cdi-disable-hooks", "CDI_DISABLE_HOOKS", "", "", "accepted; CDI specs have no hooks",
     set_nothing},
};

// Variables of NVIDIA's plugin that are no flags.
constexpr std::pair<std::string_view, std::string_view> kIdleVariables[] = {
    {"DP_DISABLE_HEALTHCHECKS",
     "health checks are always on; errors of applications do not take a GPU away"},
    {"DP_ENABLE_HEALTHCHECKS",
     "health checks are always on; errors of applications do not take a GPU away"},
};

const FlagRow* find_flag(std::string_view flag) {
  for (const FlagRow& row : kFlagRows) {
    if (flag == row.flag || (!flag.empty() && flag == row.other_flag)) return &row;
  }
  return nullptr;
}

Status apply_row(const FlagRow& row, std::string_view source, std::string_view value,
                 PluginConfig& out) {
  if (Status status = row.apply(out, value); !status.ok()) {
    return invalid(std::string(source) + ": found " + quoted(value) + ", want " +
                   status.error().message());
  }
  if (!row.warning.empty()) {
    out.warnings.push_back(std::string(source) + ": " + std::string(row.warning));
  }
  return {};
}

}  // namespace

std::string_view name(MigStrategy strategy) {
  switch (strategy) {
    case MigStrategy::kNone:
      return "none";
    case MigStrategy::kSingle:
      return "single";
    case MigStrategy::kMixed:
      return "mixed";
  }
  return "?";
}

std::string_view name(Sharing sharing) {
  switch (sharing) {
    case Sharing::kNone:
      return "none";
    case Sharing::kTimeSlicing:
      return "time-slicing";
    case Sharing::kMps:
      return "mps";
  }
  return "?";
}

const std::vector<PluginFlag>& plugin_flags() {
  static const std::vector<PluginFlag> flags = [] {
    std::vector<PluginFlag> out;
    for (const FlagRow& row : kFlagRows) {
      out.push_back({row.flag, row.environment, row.what});
      if (row.other_flag.empty()) continue;
      out.push_back({row.other_flag, row.other_environment, row.what});
    }
    return out;
  }();
  return flags;
}

Result<PluginConfig> read_plugin_config(std::string_view file,
                                        const std::map<std::string, std::string>& flags,
                                        const std::map<std::string, std::string>& environment) {
  PluginConfig out;
  BERTH_CHECK(read_config_file(file, out));
  for (const auto& [flag, value] : flags) {
    if (find_flag(flag) != nullptr) continue;
    std::string known;
    for (const FlagRow& row : kFlagRows) {
      known += (known.empty() ? "" : ", ") + std::string(row.flag);
    }
    return invalid(quoted(flag) + " is not a flag; want one of " + known);
  }
  for (const auto& [variable, warning] : kIdleVariables) {
    auto it = environment.find(std::string(variable));
    if (it == environment.end() || it->second.empty()) continue;
    out.warnings.push_back(std::string(variable) + ": " + std::string(warning));
  }
  for (const FlagRow& row : kFlagRows) {
    const auto given = [](const auto& map, std::string_view key) {
      return key.empty() ? map.end() : map.find(std::string(key));
    };
    auto flag = given(flags, row.flag);
    if (flag == flags.end()) flag = given(flags, row.other_flag);
    if (flag != flags.end()) {
      BERTH_CHECK(apply_row(row, flag->first, flag->second, out));
      continue;
    }
    // A variable that is set to nothing counts as not set: charts write it so.
    auto variable = given(environment, row.environment);
    if (variable == environment.end() || variable->second.empty()) {
      variable = given(environment, row.other_environment);
    }
    if (variable != environment.end() && !variable->second.empty()) {
      BERTH_CHECK(apply_row(row, variable->first, variable->second, out));
    }
  }
  return out;
}

}  // namespace berth::advertise
