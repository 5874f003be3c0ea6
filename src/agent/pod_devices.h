// Which pods hold which devices: the kubelet's word, asked for from time to time and soon after
// something was handed out, with the names and UIDs that the API has.
//
// What was handed out is in a journal that a restart reads; a kubelet that does not answer leaves
// what was known. On the loop's thread.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "agent/node_link.h"
#include "base/log.h"
#include "base/loop.h"
#include "base/metrics.h"
#include "edge/kubelet/pod_resources.h"
#include "model/allocation.h"
#include "model/resource.h"
#include "node/allocate/journal.h"
#include "node/allocate/ledger.h"
#include "node/monitor/exporter.h"
#include "node/partition/mig_layout.h"

namespace berth::agent {

struct PodDevicesOptions {
  std::string kubelet_dir, state_dir;  // state_dir empty: no journal is kept
  std::string host_root = "/";
  std::int64_t again_ns = 10'000'000'000;
};

class PodDevices {
 public:
  // changed: the kubelet has spoken; join() is to be called.
  PodDevices(Loop& loop, PodDevicesOptions options, const Logger& log, MetricsRegistry& metrics,
             std::function<void()> changed);
  ~PodDevices();

  void start();
  void handed_out(const std::string& resource, const std::vector<std::string>& ids);
  // link: null where there is no API.
  void join(const std::optional<model::GpuInventory>& gpus,
            const std::vector<model::OfferedResource>& resources, const NodeLink* link);
  // The pods behind the processes on shared GPUs.
  void find_processes(const std::vector<model::GpuReading>& readings);

  const allocate::Ledger& ledger() const { return ledger_; }
  const monitor::Holders& holders() const { return holders_; }
  const std::map<int, monitor::Holder>& processes() const { return processes_; }
  // The kubelet's word, what was handed out since, and processes. Nothing while the kubelet has not
  // spoken: on a machine without a kubelet nobody was given anything.
  std::optional<partition::MigUse> use(bool kubelet_there,
                                       const std::vector<model::GpuReading>& readings) const;

 private:
  void list();
  void list_in(std::int64_t delay_ns);
  void came(Result<std::vector<model::HeldDevices>> held);
  std::string journal_path() const { return options_.state_dir + "/allocations.jsonl"; }

  Loop& loop_;
  PodDevicesOptions options_;
  const Logger& log_;
  std::function<void()> changed_;
  Counter hint_differences_;
  allocate::Journal journal_;
  std::unique_ptr<kubelet::PodResources> pod_resources_;
  std::vector<model::HeldDevices> held_;
  bool held_known_ = false, listing_ = false;
  Loop::Timer timer_ = 0;
  allocate::Ledger ledger_;
  std::set<std::string> differing_;  // pods whose difference was counted
  monitor::Holders holders_;
  std::map<int, monitor::Holder> processes_;
  std::map<std::string, std::string> container_names_;  // of this node's pods, by id
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

}  // namespace berth::agent
