#include "agent/agent.h"

#include <fmt/format.h>

#include <algorithm>

#include "agent/agent_state.h"
#include "node/advertise/labels.h"
#include "node/discover/gpu_node.h"

namespace berth::agent {

namespace {

constexpr std::int64_t kSecond = 1'000'000'000;

std::string uuid4(Random& random) {
  const std::uint64_t a = random.next(), b = random.next();
  return fmt::format("{:08x}-{:04x}-4{:03x}-{:04x}-{:012x}", a >> 32, (a >> 16) & 0xffff, a & 0xfff,
                     0x8000 | ((b >> 48) & 0x3fff), b & 0xffffffffffff);
}

}  // namespace

Agent::State::State(Loop& loop_in, discover::GpuSource& source_in, kube::Client* client_in,
                    Random random_in, AgentOptions options_in, const Logger& log_in,
                    MetricsRegistry& metrics_in)
    : loop(loop_in),
      source(source_in),
      client(client_in),
      random(random_in),
      options(std::move(options_in)),
      log(log_in),
      metrics(metrics_in),
      // The parts live no longer than this.
      inventory(loop, source,
                {.host_root = options.host_root,
                 .simulated = options.simulated,
                 .again_ns = options.inventory_ns,
                 .forget_ns = options.forget_ns},
                log, [this](GpuInventoryKeeper::Came came) { inventory_came(came); }),
      offer({options.host_root, options.simulated}, log),
      cdi(options.cdi_dir, log),
      pods(loop,
           {.kubelet_dir = options.kubelet_dir,
            .state_dir = options.state_dir,
            .host_root = options.host_root,
            .again_ns = options.pods_ns},
           log, metrics,
           [this] {
             join();
             if (mig) mig->use_changed();
             publish_later();
           }),
      health(options.health, options.state_dir.empty() ? "" : options.state_dir + "/health.json",
             log),
      shown(options.state_dir, log),
      verdict_changes(metrics.counter({.name = "berth_agent_verdict_changes_total",
                                       .help = "Changes of a GPU's health, by what it became.",
                                       .labels = {"became"}})),
      allocations(metrics.counter({.name = "berth_agent_allocations_total",
                                   .help = "Containers that asked for devices, by outcome.",
                                   .labels = {"resource", "outcome"}})),
      forgiven(metrics
                   .counter({.name = "berth_agent_forgiven_total",
                             .help = "Times that an operator forgave a GPU."})
                   .get()) {}

void Agent::State::start() {
  start_plugins();
  if (client != nullptr) {
    link = std::make_unique<NodeLink>(
        *client, random.split("link"), options.node_name,
        [this] {
          join();
          declare_mig();
          publish_later();
        },
        log, metrics);
  }
  health.restore(options.host_root);
  pods.start();
  open_requests();
  source.watch(mine([](State& self, const model::GpuEvent& event) { self.event_came(event); }));
  follow_kernel_log();
  start_mig();
  inventory.take();
  read_later(0);
  publish_later();
}

void Agent::State::start_plugins() {
  PluginOptions with;
  with.folder = options.kubelet_dir + "/device-plugins";
  with.instance = options.instance;
  with.take_over = options.take_over;
  PluginCalls calls;
  calls.prefer = [this](const std::string& resource, const std::vector<std::string>& available,
                        const std::vector<std::string>& must_include, int size) {
    return offer.prefer(resource, {available, must_include, size}, pods.ledger().open);
  };
  calls.allocate = [this](const std::string& resource, const std::vector<std::string>& ids) {
    return allocate(resource, ids);
  };
  calls.changed = [this] { publish_later(); };
  plugins = std::make_unique<Plugins>(loop, with, std::move(calls), log, metrics);
}

void Agent::State::open_requests() {
  if (options.state_dir.empty()) return;
  Result<std::unique_ptr<RequestInbox>> opened = RequestInbox::open(
      loop, requests_folder(options.state_dir),
      [this](const Request& request) { return forgive(request); }, log);
  if (opened.ok()) {
    requests = std::move(*opened);
  } else {
    log.warn("operators cannot ask for anything", {{"why", opened.error().to_string()}});
  }
}

void Agent::State::follow_kernel_log() {
  if (options.kernel_log.empty()) return;
  Result<std::unique_ptr<host::KernelLog>> opened = host::KernelLog::start(
      loop, options.kernel_log,
      mine([](State& self, const std::string& line) { self.kernel_line(line); }));
  if (opened.ok()) {
    kernel_log = std::move(*opened);
  } else {
    log.info("the kernel log is not read: Xids come from the driver alone",
             {{"why", opened.error().to_string()}});
  }
}

void Agent::State::inventory_came(GpuInventoryKeeper::Came came) {
  const auto& gpus = inventory.gpus();
  if (came.changed) {
    health.book.set_inventory(*gpus, loop.wall().now_ns());
    rebuild();
  }
  if (mig && gpus && !came.failed) mig->inventory_came(*gpus);
  publish_later();
}

void Agent::State::rebuild() {
  const auto& gpus = inventory.gpus();
  if (!gpus) return;
  if (!offer.make(*gpus, options.config)) return publish_later();
  // Before the kubelet hears of devices: a container that names one must find it.
  cdi.write(*gpus, offer.files(), offer.extras());
  say_labels();
  join();
  publish();
}

void Agent::State::join() { pods.join(inventory.gpus(), offer.resources(), link.get()); }

void Agent::State::say_labels() {
  if (!link || !inventory.gpus()) return;
  const std::int64_t now_s = loop.wall().now_ns() / kSecond;
  // The time of the labels is that of their last change.
  auto labels = advertise::gpu_labels(*inventory.gpus(), inventory.host(), options.config, now_s);
  auto without_time = labels;
  without_time.erase("nvidia.com/gfd.timestamp");
  if (without_time == labels_said) return;
  labels_said = std::move(without_time);
  link->want_gpu_labels(labels);
}

void Agent::State::publish_later() {
  if (std::exchange(publish_posted, true)) return;
  loop.post(mine([](State& self) {
    self.publish_posted = false;
    self.publish();
  }));
}

void Agent::State::publish() {
  set_plugins();
  say_node();
  render();
}

void Agent::State::set_plugins() {
  const auto& gpus = inventory.gpus();
  if (!gpus || !cdi.problem().empty()) return;
  std::vector<Plugins::Wanted> wanted;
  for (const model::OfferedResource& resource : offer.resources()) {
    Plugins::Wanted one;
    one.resource = resource.name;
    for (const model::OfferedDevice& device : resource.devices) {
      if (mig_withheld(device.gpu, device.uuid)) continue;
      const auto gpu =
          std::find_if(gpus->gpus.begin(), gpus->gpus.end(),
                       [&](const model::GpuDevice& found) { return found.index == device.gpu; });
      const bool healthy = gpu != gpus->gpus.end() && !inventory.vanished(gpu->uuid) &&
                           health.book.verdict(gpu->uuid).healthy;
      one.devices.push_back({device.id, healthy, device.numa});
    }
    wanted.push_back(std::move(one));
  }
  plugins->set(wanted);
}

void Agent::State::say_node() {
  if (!link) return;
  link->want_host_labels(advertise::host_labels(inventory.host()));
  const monitor::NodeState judged = monitor::node_state(sights());
  std::vector<NodeCondition> conditions;
  for (const monitor::NodeCondition& one : judged.conditions) {
    conditions.push_back(
        {std::string(one.type), std::string(one.status), std::string(one.reason), one.message});
  }
  if (auto layout = mig_condition()) conditions.push_back(std::move(*layout));
  link->want_conditions(conditions);
  if (judged.ready) link->want_no_startup_taint();
  const auto& gpus = inventory.gpus();
  if (!gpus) return;
  std::vector<discover::GpuStanding> standing;
  for (const model::GpuDevice& gpu : gpus->gpus) {
    const monitor::Verdict& verdict = health.book.verdict(gpu.uuid);
    discover::GpuStanding one;
    one.healthy = verdict.healthy && !inventory.vanished(gpu.uuid);
    one.reason = verdict.code;
    one.shares = offer.shares_of(gpu.index);
    const auto& holders = pods.ledger().holders;
    if (const auto found = holders.find(gpu.index); found != holders.end()) {
      one.holders = found->second;
    }
    standing.push_back(std::move(one));
  }
  link->want_gpu_node(discover::gpu_node(options.node_name, *gpus, inventory.host(), standing));
}

Result<model::ContainerGrant> Agent::State::allocate(const std::string& resource,
                                                     const std::vector<std::string>& ids) {
  const model::OfferedResource* found = offer.find(resource);
  if (found == nullptr || !inventory.gpus()) {
    allocations.with({resource, "refused"}).add();
    return Error(Code::kNotFound, resource + " is not offered by this node any more");
  }
  for (const model::OfferedDevice& device : found->devices) {
    if (std::find(ids.begin(), ids.end(), device.id) == ids.end()) continue;
    if (!mig_withheld(device.gpu, device.uuid)) continue;
    allocations.with({resource, "refused"}).add();
    return Error(Code::kUnavailable, device.id + ": the GPU's MIG layout is being changed");
  }
  Result<model::ContainerGrant> made = allocate::grant(
      *inventory.gpus(), *found, ids, offer.grant_rules(options.config), uuid4(random));
  allocations.with({resource, made.ok() ? "ok" : "refused"}).add();
  if (!made.ok()) {
    log.warn("devices refused", {{"resource", resource}, {"why", made.error().to_string()}});
    return made;
  }
  pods.handed_out(resource, ids);
  return made;
}

Agent::Agent(Loop& loop, discover::GpuSource& source, kube::Client* client, Random random,
             AgentOptions options, const Logger& log, MetricsRegistry& metrics)
    : state_(std::make_shared<State>(loop, source, client, random, std::move(options), log,
                                     metrics)) {}

Agent::~Agent() {
  // They call into the state; a callback on its way finds it gone.
  state_->mig.reset();
  state_->plugins.reset();
  state_->link.reset();
  state_->kernel_log.reset();
  state_->requests.reset();
}

void Agent::start() { state_->start(); }

void Agent::set_config(const advertise::PluginConfig& config) {
  state_->config_problem.clear();
  if (state_->options.config == config) return state_->publish_later();
  state_->log.info("configuration read");
  state_->options.config = config;
  state_->rebuild();
}

void Agent::set_config_problem(const std::string& problem) {
  state_->config_problem = problem;
  state_->log.error("the configuration could not be read: the one before holds",
                    {{"why", problem}});
  state_->publish_later();
}

bool Agent::ready() const { return monitor::node_state(state_->sights()).ready; }

std::string Agent::page() const { return state_->shown.page(); }
std::string Agent::status() const { return state_->shown.status(); }

bool Agent::live() const {
  return state_->loop.monotonic().ticks_ns() - state_->shown.shown_at() < 60 * kSecond;
}

}  // namespace berth::agent
