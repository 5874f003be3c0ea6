#include "agent/pod_devices.h"

#include <algorithm>
#include <utility>

#include "edge/host/host.h"

namespace berth::agent {

namespace {

constexpr std::int64_t kListDeadline = 5'000'000'000;
constexpr std::int64_t kSoonAfterAllocate = 1'000'000'000;
constexpr std::int64_t kJournalGrace = 600'000'000'000;  // of devices that nobody holds yet
// How long the kubelet may need to list what it was just given.
constexpr std::int64_t kListedWithin = 60'000'000'000;

void add_holder(partition::MigUse& use, const std::string& id, const std::string& holder) {
  std::vector<std::string>& of = use[std::string(allocate::device_uuid(id))];
  if (std::find(of.begin(), of.end(), holder) == of.end()) of.push_back(holder);
}

}  // namespace

PodDevices::PodDevices(Loop& loop, PodDevicesOptions options, const Logger& log,
                       MetricsRegistry& metrics, std::function<void()> changed)
    : loop_(loop),
      options_(std::move(options)),
      log_(log),
      changed_(std::move(changed)),
      hint_differences_(
          metrics
              .counter({.name = "berth_agent_hint_differences_total",
                        .help = "Pods that got other GPUs than the controller had chosen."})
              .get()) {}

PodDevices::~PodDevices() { loop_.cancel(timer_); }

void PodDevices::start() {
  if (!options_.state_dir.empty()) {
    if (const Result<std::string> kept = host::read_text(journal_path()); kept.ok()) {
      journal_ = allocate::Journal::read(*kept);
      if (journal_.damaged() > 0) {
        log_.warn("lines of the journal were damaged and are left out",
                  {{"file", journal_path()}, {"lines", journal_.damaged()}});
      }
    }
  }
  pod_resources_ = std::make_unique<kubelet::PodResources>(
      loop_, options_.kubelet_dir + "/pod-resources/kubelet.sock");
  list();
}

void PodDevices::list_in(std::int64_t delay_ns) {
  loop_.cancel(timer_);
  timer_ = loop_.after(delay_ns, [this] { list(); });
}

void PodDevices::list() {
  if (listing_) return;
  listing_ = true;
  pod_resources_->list(kListDeadline, [this, alive = std::weak_ptr<bool>(alive_)](
                                          Result<std::vector<model::HeldDevices>> held) {
    if (!alive.expired()) came(std::move(held));
  });
}

void PodDevices::came(Result<std::vector<model::HeldDevices>> held) {
  listing_ = false;
  list_in(options_.again_ns);
  if (!held.ok()) return;  // a kubelet that restarts or limits us: what was known holds
  held_ = std::move(*held);
  held_known_ = true;
  if (journal_.reconcile(held_, loop_.wall().now_ns(), kJournalGrace) &&
      !options_.state_dir.empty()) {
    const Status wrote = host::write_atomically(journal_path(), journal_.text(), 0600);
    if (!wrote.ok()) log_.warn("journal", {{"error", wrote.error().to_string()}});
  }
  changed_();
}

void PodDevices::handed_out(const std::string& resource, const std::vector<std::string>& ids) {
  allocate::JournalEntry entry;
  entry.at_ns = loop_.wall().now_ns();
  entry.resource = resource;
  entry.ids = ids;
  if (!options_.state_dir.empty()) {
    // Not the container's fault: the kubelet keeps the truth.
    // Not synced to the disk: when the machine goes down, the containers went with it.
    const Status kept = host::append_line(journal_path(), journal_.line(entry));
    if (!kept.ok()) log_.warn("journal", {{"error", kept.error().to_string()}});
  }
  journal_.add(std::move(entry));
  list_in(kSoonAfterAllocate);
}

void PodDevices::join(const std::optional<model::GpuInventory>& gpus,
                      const std::vector<model::OfferedResource>& resources, const NodeLink* link) {
  std::vector<allocate::NodePod> bound;
  if (link != nullptr) {
    for (const auto& [uid, pod] : link->pods()) bound.push_back(pod);
  }
  if (gpus) ledger_ = allocate::join(*gpus, journal_.entries(), held_, bound);
  for (const std::string& uid : ledger_.differing) {
    if (differing_.insert(uid).second) hint_differences_.add();
  }
  // Those that are gone are not counted again: their UIDs never return.
  if (differing_.size() > 10'000) differing_ = {ledger_.differing.begin(), ledger_.differing.end()};
  holders_ = monitor::holders_of(held_, resources);
  if (link == nullptr) return;
  std::map<std::pair<std::string, std::string>, std::string> uids;
  container_names_.clear();
  for (const auto& [uid, pod] : link->pods()) {
    uids[{pod.ns, pod.name}] = uid;
    container_names_.insert(pod.containers.begin(), pod.containers.end());
  }
  for (auto& [device, list] : holders_) {
    for (monitor::Holder& holder : list) {
      const auto found = uids.find({holder.ns, holder.pod});
      if (found != uids.end()) holder.pod_uid = found->second;
    }
  }
}

void PodDevices::find_processes(const std::vector<model::GpuReading>& readings) {
  processes_.clear();
  for (const model::GpuReading& reading : readings) {
    for (const model::GpuProcess& process : reading.processes) {
      const std::vector<model::ContainerPlace> places =
          host::containers_of(options_.host_root, process.pid);
      if (places.empty()) continue;
      const monitor::Holder* holder = monitor::holder_at(holders_, places, container_names_);
      if (holder != nullptr) processes_[process.pid] = *holder;
    }
  }
}

std::optional<partition::MigUse> PodDevices::use(
    bool kubelet_there, const std::vector<model::GpuReading>& readings) const {
  if (!held_known_ && (kubelet_there || !journal_.entries().empty())) return std::nullopt;
  partition::MigUse use;
  for (const model::HeldDevices& one : held_) {
    for (const std::string& id : one.ids) add_holder(use, id, one.ns + "/" + one.pod);
  }
  const std::int64_t now = loop_.wall().now_ns();
  for (const allocate::JournalEntry& entry : journal_.entries()) {
    if (!entry.pod.empty() || now - entry.at_ns > kListedWithin) continue;
    for (const std::string& id : entry.ids) {
      if (!use.contains(allocate::device_uuid(id))) add_holder(use, id, "a starting container");
    }
  }
  for (const model::GpuReading& reading : readings) {
    for (const model::GpuProcess& process : reading.processes) {
      const std::string& device = process.mig_uuid.empty() ? reading.uuid : process.mig_uuid;
      if (use.contains(device)) continue;  // the pod's name says more
      add_holder(use, device, "process " + std::to_string(process.pid));
    }
  }
  return use;
}

}  // namespace berth::agent
