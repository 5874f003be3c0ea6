// The labels of a node: the whole set of NVIDIA's feature discovery, the PCI labels of node feature
// discovery, and NVLink islands. Pure; docs/labels.md lists them.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "model/device.h"
#include "model/resource.h"
#include "node/advertise/plugin_config.h"

namespace berth::advertise {

using Labels = std::map<std::string, std::string>;

// Of the PCI bus and the kernel: known without a driver.
Labels host_labels(const model::HostFacts& host);

// Of the GPUs. now_s: for nvidia.com/gfd.timestamp, which is left out when config.no_timestamp.
// Several models on a node: the labels without a model are of the first GPU by index, and each
// model has its own set beside them.
Labels gpu_labels(const model::GpuInventory& inventory, const model::HostFacts& host,
                  const PluginConfig& config, std::int64_t now_s);

}  // namespace berth::advertise
