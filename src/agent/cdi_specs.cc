#include "agent/cdi_specs.h"

#include <set>

#include "edge/host/host.h"

namespace berth::agent {

void CdiSpecs::write(const model::GpuInventory& gpus, const advertise::DriverFiles& files,
                     const advertise::Extras& extras) {
  if (!wanted()) return;
  const std::string start = folder_ + "/berth.dev-";
  const std::string spec = advertise::cdi_spec(gpus, files);
  if (spec.empty()) return;
  problem_.clear();
  std::set<std::string> named = {start + "gpu.json"};
  bool wrote = write_one(start + "gpu.json", spec);
  for (const advertise::DriverFiles::Extra& extra : extras.served) {
    const std::string path = start + extra.what + ".json";
    named.insert(path);
    wrote = write_one(path, advertise::cdi_spec(extra)) && wrote;
  }
  if (!wrote) return;
  for (const char* what : {"gdrcopy", "gds", "imex-channel", "mofed"}) {
    const std::string path = start + what + ".json";
    if (named.contains(path)) continue;
    host::remove_file(path);
    written_.erase(path);
  }
}

bool CdiSpecs::write_one(const std::string& path, const std::string& spec) {
  if (const auto known = written_.find(path); known != written_.end() && known->second == spec) {
    return true;
  }
  const Status wrote = host::write_atomically(path, spec);
  if (!wrote.ok()) {
    problem_ = wrote.error().to_string();
    log_.error("the CDI spec could not be written", {{"file", path}, {"why", problem_}});
    return false;
  }
  written_[path] = spec;
  log_.info("CDI spec written", {{"file", path}, {"bytes", spec.size()}});
  return true;
}

}  // namespace berth::agent
