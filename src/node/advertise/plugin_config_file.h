// The config file of NVIDIA's device plugin, version v1: the part of plugin_config.h that reads the
// file. Only plugin_config.cc calls it.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"
#include "node/advertise/plugin_config.h"

namespace berth::advertise {

// Fills in what the file says and leaves the rest. Every mistake of the file is in the one error.
Status read_config_file(std::string_view file, PluginConfig& out);

// The words of the configuration, shared by the file, the flags and the environment. The
// text of an error is what is allowed.
Result<MigStrategy> mig_strategy_of(std::string_view word);
Result<DeviceId> device_id_of(std::string_view word);
Result<SharedPolicy> shared_policy_of(std::string_view word);
Result<DeviceList> device_list_of(std::string_view word);
Status check_discovery(std::string_view word);            // auto or nvml
Status check_path(std::string_view path);                 // absolute
Status check_annotation_prefix(std::string_view prefix);  // of a label key
Status check_imex_channels(const std::vector<int>& channels);

inline constexpr std::string_view kWarnMpsRoot = "MPS is not served, so its root is not used";

}  // namespace berth::advertise
