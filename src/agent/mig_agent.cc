// The agent's side of MIG layouts: what is declared, who holds what, what is told.
#include <algorithm>
#include <utility>

#include "agent/agent_state.h"
#include "agent/mig_keeper.h"

namespace berth::agent {

namespace {

constexpr const char* kConfigLabel = "nvidia.com/mig.config";
constexpr const char* kStateLabel = "nvidia.com/mig.config.state";
// How long the kubelet may need to list what it was just given.
constexpr std::int64_t kListedWithin = 60'000'000'000;

void add_holder(partition::MigUse& use, const std::string& id, const std::string& holder) {
  std::vector<std::string>& of = use[std::string(allocate::device_uuid(id))];
  if (std::find(of.begin(), of.end(), holder) == of.end()) of.push_back(holder);
}

}  // namespace

void Agent::State::start_mig() {
  if (options.mig_driver == nullptr) return;
  MigKeeperOptions keeper;
  keeper.state_dir = options.state_dir;
  MigWorld world;
  // The keeper lives no longer than this.
  world.use = [this] { return mig_use(); };
  world.changed = [this] {
    follow_mig();
    publish();
  };
  world.look_again = [this] { take_inventory(); };
  world.tell = [this](bool warning, const std::string& reason, const std::string& note) {
    if (link) link->tell(warning, reason, note);
  };
  mig = std::make_unique<MigKeeper>(loop, *options.mig_driver, keeper, std::move(world), log,
                                    metrics);
  mig->set_config(options.mig_config);
  if (!options.mig_config_problem.empty()) mig->set_config_problem(options.mig_config_problem);
  mig->start();
  declare_mig();
}

// The Node's label, and where there is none what the command line says.
void Agent::State::declare_mig() {
  if (!mig || (link && !link->heard())) return;
  if (link) {
    const auto label = link->labels().find(kConfigLabel);
    if (label != link->labels().end() && !label->second.empty()) return mig->declare(label->second);
  }
  mig->declare(options.mig_layout);
}

// The kubelet's word, what was handed out since, and processes. Nothing while the kubelet has not
// spoken: on a machine without a kubelet nobody was given anything.
std::optional<partition::MigUse> Agent::State::mig_use() const {
  if (!held_known && (plugins->kubelet_there() || !journal.entries().empty())) return std::nullopt;
  partition::MigUse use;
  for (const model::HeldDevices& one : held) {
    for (const std::string& id : one.ids) add_holder(use, id, one.ns + "/" + one.pod);
  }
  const std::int64_t now = loop.wall().now_ns();
  for (const allocate::JournalEntry& entry : journal.entries()) {
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

void Agent::State::follow_mig() {
  if (!mig || !link) return;
  const std::string& state = mig->shown().state;
  std::map<std::string, std::string> labels;
  if (!state.empty()) labels[kStateLabel] = state;
  link->want_mig_labels(labels);
}

bool Agent::State::mig_withheld(int gpu, const std::string& uuid) const {
  if (!mig || !mig->changing() || !inventory) return false;
  return std::any_of(inventory->gpus.begin(), inventory->gpus.end(),
                     [&](const model::GpuDevice& one) {
                       return one.index == gpu && mig->withheld(one.uuid, uuid);
                     });
}

std::optional<NodeCondition> Agent::State::mig_condition() const {
  if (!mig || mig->shown().state.empty()) return std::nullopt;
  const MigShown& shown = mig->shown();
  const std::string holds = shown.state == "success"  ? "True"
                            : shown.state == "failed" ? "False"
                                                      : "Unknown";
  return NodeCondition{"MigLayoutApplied", holds, shown.reason, shown.layout + ": " + shown.text};
}

void Agent::set_mig_config(std::shared_ptr<const partition::MigConfig> config) {
  state_->options.mig_config = std::move(config);
  if (state_->mig) state_->mig->set_config(state_->options.mig_config);
}

void Agent::set_mig_config_problem(const std::string& problem) {
  state_->log.error("the MIG layouts could not be read", {{"why", problem}});
  if (state_->mig) state_->mig->set_config_problem(problem);
}

}  // namespace berth::agent
