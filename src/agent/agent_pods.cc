#include <fmt/format.h>

#include <algorithm>

#include "agent/agent_state.h"

namespace berth::agent {

namespace {

constexpr std::int64_t kListDeadline = 5'000'000'000;
constexpr std::int64_t kSoonAfterAllocate = 1'000'000'000;
constexpr std::int64_t kJournalGrace = 600'000'000'000;  // of devices that nobody holds yet

std::string uuid4(Random& random) {
  const std::uint64_t a = random.next(), b = random.next();
  return fmt::format("{:08x}-{:04x}-4{:03x}-{:04x}-{:012x}", a >> 32, (a >> 16) & 0xffff, a & 0xfff,
                     0x8000 | ((b >> 48) & 0x3fff), b & 0xffffffffffff);
}

}  // namespace

void Agent::State::start_pods() {
  if (!options.state_dir.empty()) {
    if (const Result<std::string> kept = host::read_text(journal_path()); kept.ok()) {
      journal = allocate::Journal::read(*kept);
      if (journal.damaged() > 0) {
        log.warn("lines of the journal were damaged and are left out",
                 {{"file", journal_path()}, {"lines", journal.damaged()}});
      }
    }
  }
  pod_resources = std::make_unique<kubelet::PodResources>(
      loop, options.kubelet_dir + "/pod-resources/kubelet.sock");
  list_pods();
}

void Agent::State::list_pods_in(std::int64_t delay_ns) {
  loop.cancel(pods_timer);
  pods_timer = loop.after(delay_ns, mine([](State& self) { self.list_pods(); }));
}

void Agent::State::list_pods() {
  if (listing) return;
  listing = true;
  pod_resources->list(kListDeadline,
                      mine([](State& self, Result<std::vector<model::HeldDevices>> came) {
                        self.held_came(std::move(came));
                      }));
}

void Agent::State::held_came(Result<std::vector<model::HeldDevices>> came) {
  listing = false;
  list_pods_in(options.pods_ns);
  if (!came.ok()) return;  // a kubelet that restarts or limits us: what was known holds
  held = std::move(*came);
  held_known = true;
  if (journal.reconcile(held, loop.wall().now_ns(), kJournalGrace) && !options.state_dir.empty()) {
    const Status wrote = host::write_atomically(journal_path(), journal.text(), 0600);
    if (!wrote.ok()) log.warn("journal", {{"error", wrote.error().to_string()}});
  }
  join();
  if (mig) mig->use_changed();
  publish_later();
}

// Who holds what: the kubelet's word, with the names and UIDs that the API has.
void Agent::State::join() {
  std::vector<allocate::NodePod> bound;
  if (link) {
    for (const auto& [uid, pod] : link->pods()) bound.push_back(pod);
  }
  if (inventory) ledger = allocate::join(*inventory, journal.entries(), held, bound);
  for (const std::string& uid : ledger.differing) {
    if (differing.insert(uid).second) hint_differences.add();
  }
  // Those that are gone are not counted again: their UIDs never return.
  if (differing.size() > 10'000) differing = {ledger.differing.begin(), ledger.differing.end()};
  holders = monitor::holders_of(held, offer.resources);
  if (!link) return;
  std::map<std::pair<std::string, std::string>, std::string> uids;
  container_names.clear();
  for (const auto& [uid, pod] : link->pods()) {
    uids[{pod.ns, pod.name}] = uid;
    container_names.insert(pod.containers.begin(), pod.containers.end());
  }
  for (auto& [device, list] : holders) {
    for (monitor::Holder& holder : list) {
      const auto found = uids.find({holder.ns, holder.pod});
      if (found != uids.end()) holder.pod_uid = found->second;
    }
  }
}

// The pods behind the processes on shared GPUs.
void Agent::State::find_processes() {
  processes.clear();
  for (const model::GpuReading& reading : readings) {
    for (const model::GpuProcess& process : reading.processes) {
      const std::vector<model::ContainerPlace> places =
          host::containers_of(options.host_root, process.pid);
      if (places.empty()) continue;
      const monitor::Holder* holder = monitor::holder_at(holders, places, container_names);
      if (holder != nullptr) processes[process.pid] = *holder;
    }
  }
}

const model::OfferedResource* Agent::State::find_resource(const std::string& name) const {
  const auto found =
      std::find_if(offer.resources.begin(), offer.resources.end(),
                   [&](const model::OfferedResource& resource) { return resource.name == name; });
  return found == offer.resources.end() ? nullptr : &*found;
}

Result<std::vector<std::string>> Agent::State::prefer(const std::string& resource,
                                                      const std::vector<std::string>& available,
                                                      const std::vector<std::string>& must_include,
                                                      int size) {
  const auto chooser = choosers.find(resource);
  if (chooser == choosers.end()) {
    return Error(Code::kNotFound, resource + " is not offered by this node any more");
  }
  BERTH_TRY(allocate::Preference chosen,
            chooser->second->choose({available, must_include, size}, ledger.open));
  if (!chosen.followed.empty()) {
    log.debug("the controller's choice is followed", {{"pod", chosen.followed}});
  }
  return std::move(chosen.ids);
}

allocate::GrantRules Agent::State::grant_rules() const {
  using advertise::DeviceList;
  const advertise::PluginConfig& config = options.config;
  const auto listed = [&](DeviceList way) {
    return std::find(config.device_list.begin(), config.device_list.end(), way) !=
           config.device_list.end();
  };
  allocate::GrantRules out;
  out.env_var = listed(DeviceList::kEnvVar);
  out.volume_mounts = listed(DeviceList::kVolumeMounts);
  out.cdi_annotations = listed(DeviceList::kCdiAnnotations);
  out.cdi_cri = listed(DeviceList::kCdiCri);
  out.by_index = config.device_id == advertise::DeviceId::kIndex;
  out.pass_device_specs = config.pass_device_specs;
  out.gdrcopy = config.gdrcopy;
  out.gds = config.gds;
  out.mofed = config.mofed;
  for (const advertise::DriverFiles::Extra& extra : extras.served) {
    out.cdi_extras.push_back(advertise::cdi_name(extra));
    if (extra.what == "imex-channel") out.imex_channels = config.imex_channels;
    for (const advertise::DriverFiles::Mount& node : extra.nodes) {
      if (node.host != node.container) out.host_paths[node.container] = node.host;
    }
  }
  out.cdi_annotation_prefix = config.cdi_annotation_prefix;
  out.cdi_kind = advertise::kCdiKind;
  out.control_nodes = files.control_nodes;
  const auto on_host = [&](const std::string& path) {
    if (!files.dev_root.empty()) out.host_paths[path] = files.dev_root + path;
  };
  for (const std::string& path : files.control_nodes) on_host(path);
  for (const advertise::DriverFiles::GpuNodes& gpu : files.gpus) {
    for (const std::vector<std::string>& caps : gpu.mig_caps) {
      for (const std::string& path : caps) on_host(path);
    }
    std::vector<std::string> nodes;
    for (const advertise::DriverFiles::Mount& node : gpu.nodes) {
      nodes.push_back(node.container);
      if (node.host != node.container) out.host_paths[node.container] = node.host;
    }
    out.gpu_nodes.push_back(std::move(nodes));
    out.mig_nodes.push_back(gpu.mig_caps);
  }
  return out;
}

Result<model::ContainerGrant> Agent::State::allocate(const std::string& resource,
                                                     const std::vector<std::string>& ids) {
  const model::OfferedResource* found = find_resource(resource);
  if (found == nullptr || !inventory) {
    allocations.with({resource, "refused"}).add();
    return Error(Code::kNotFound, resource + " is not offered by this node any more");
  }
  for (const model::OfferedDevice& device : found->devices) {
    if (std::find(ids.begin(), ids.end(), device.id) == ids.end()) continue;
    if (!mig_withheld(device.gpu, device.uuid)) continue;
    allocations.with({resource, "refused"}).add();
    return Error(Code::kUnavailable, device.id + ": the GPU's MIG layout is being changed");
  }
  Result<model::ContainerGrant> made =
      allocate::grant(*inventory, *found, ids, grant_rules(), uuid4(random));
  allocations.with({resource, made.ok() ? "ok" : "refused"}).add();
  if (!made.ok()) {
    log.warn("devices refused", {{"resource", resource}, {"why", made.error().to_string()}});
    return made;
  }
  allocate::JournalEntry entry;
  entry.at_ns = loop.wall().now_ns();
  entry.resource = resource;
  entry.ids = ids;
  if (!options.state_dir.empty()) {
    // Not the container's fault: the kubelet keeps the truth.
    // Not synced to the disk: when the machine goes down, the containers went with it.
    const Status kept = host::append_line(journal_path(), journal.line(entry));
    if (!kept.ok()) log.warn("journal", {{"error", kept.error().to_string()}});
  }
  journal.add(std::move(entry));
  list_pods_in(kSoonAfterAllocate);
  return made;
}

}  // namespace berth::agent
