// What a node's agent reads of others: the config file of NVIDIA's plugin, and its own journal
// after a crash.
#include <algorithm>
#include <string>

#include "fuzz.h"
#include "node/advertise/resources.h"
#include "node/allocate/journal.h"

BERTH_FUZZ_TARGET(node_config) {
  using namespace berth;
  const std::string_view input = fuzz::text_of(data, size);
  if (const auto config = advertise::read_plugin_config(input, {}, {}); config.ok()) {
    fuzz::check(!config->device_list.empty(), "a container is told of its devices somehow");
    model::GpuInventory machine;
    for (int i = 0; i < 2; ++i) {
      model::GpuDevice gpu;
      gpu.index = i;
      gpu.uuid = "GPU-" + std::to_string(i);
      gpu.name = "NVIDIA H200";
      machine.gpus.push_back(gpu);
    }
    if (const auto offer = advertise::offer(machine, *config); offer.ok()) {
      std::size_t devices = 0;
      for (const auto& resource : offer->resources) {
        fuzz::check(resource.name.starts_with("nvidia.com/"), "a name of NVIDIA's");
        fuzz::check(!resource.devices.empty(), "no resource without devices");
        devices += resource.devices.size();
      }
      fuzz::check(devices >= 2 && devices <= advertise::kMaxOffered, "each GPU, within the bound");
    }
  }
  const allocate::Journal journal = allocate::Journal::read(input);
  const auto lines = static_cast<std::size_t>(std::count(input.begin(), input.end(), '\n')) + 1;
  fuzz::check(journal.entries().size() + journal.damaged() <= lines, "a line is one or the other");
  const allocate::Journal again = allocate::Journal::read(journal.text());
  fuzz::check(again.damaged() == 0 && again.entries() == journal.entries(), "reads back");
  return 0;
}
