// The agent's side of MIG layouts: what is declared, who holds what, what is told.
#include <algorithm>
#include <utility>

#include "agent/agent_state.h"
#include "agent/mig_keeper.h"

namespace berth::agent {

namespace {

constexpr const char* kConfigLabel = "nvidia.com/mig.config";
constexpr const char* kStateLabel = "nvidia.com/mig.config.state";

}  // namespace

void Agent::State::start_mig() {
  if (options.mig_driver == nullptr) return;
  MigKeeperOptions keeper;
  keeper.state_dir = options.state_dir;
  MigWorld world;
  // The keeper lives no longer than this.
  world.use = [this] { return pods.use(plugins->kubelet_there(), readings); };
  world.changed = [this] {
    follow_mig();
    publish();
  };
  world.look_again = [this] { inventory.take(); };
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

void Agent::State::follow_mig() {
  if (!mig || !link) return;
  const std::string& state = mig->shown().state;
  std::map<std::string, std::string> labels;
  if (!state.empty()) labels[kStateLabel] = state;
  link->want_mig_labels(labels);
}

bool Agent::State::mig_withheld(int gpu, const std::string& uuid) const {
  if (!mig || !mig->changing() || !inventory.gpus()) return false;
  return std::any_of(inventory.gpus()->gpus.begin(), inventory.gpus()->gpus.end(),
                     [&](const model::GpuDevice& one) {
                       return one.index == gpu && mig->withheld(one.uuid, uuid);
                     });
}

std::optional<NodeCondition> Agent::State::mig_condition() const {
  if (!mig || mig->shown().state.empty()) return std::nullopt;
  const MigShown& layout = mig->shown();
  const std::string holds = layout.state == "success"  ? "True"
                            : layout.state == "failed" ? "False"
                                                       : "Unknown";
  return NodeCondition{"MigLayoutApplied", holds, layout.reason,
                       layout.layout + ": " + layout.text};
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
