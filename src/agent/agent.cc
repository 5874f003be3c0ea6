#include "agent/agent.h"

#include <algorithm>

#include "agent/agent_state.h"
#include "node/discover/gpu_node.h"

namespace berth::agent {

namespace {

constexpr std::int64_t kRetryInventory = 5'000'000'000;
constexpr std::int64_t kSecond = 1'000'000'000;

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
      born(loop_in.monotonic().ticks_ns()),
      health(options.health),
      verdict_changes(metrics.counter({.name = "berth_agent_verdict_changes_total",
                                       .help = "Changes of a GPU's health, by what it became.",
                                       .labels = {"became"}})),
      allocations(metrics.counter({.name = "berth_agent_allocations_total",
                                   .help = "Containers that asked for devices, by outcome.",
                                   .labels = {"resource", "outcome"}})),
      hint_differences(
          metrics
              .counter({.name = "berth_agent_hint_differences_total",
                        .help = "Pods that got other GPUs than the controller had chosen."})
              .get()),
      forgiven(metrics
                   .counter({.name = "berth_agent_forgiven_total",
                             .help = "Times that an operator forgave a GPU."})
                   .get()) {}

void Agent::State::start() {
  PluginOptions plugin_options;
  plugin_options.folder = options.kubelet_dir + "/device-plugins";
  plugin_options.instance = options.instance;
  plugin_options.take_over = options.take_over;
  PluginCalls calls;
  // Plugins and what they call live no longer than this.
  calls.prefer = [this](const std::string& resource, const std::vector<std::string>& available,
                        const std::vector<std::string>& must_include,
                        int size) { return prefer(resource, available, must_include, size); };
  calls.allocate = [this](const std::string& resource, const std::vector<std::string>& ids) {
    return allocate(resource, ids);
  };
  calls.changed = [this] { publish_later(); };
  plugins = std::make_unique<Plugins>(loop, plugin_options, std::move(calls), log, metrics);
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
  host = host::read_host(options.host_root);
  const Result<std::string> boot =
      host::read_text(options.host_root + "/proc/sys/kernel/random/boot_id", 256);
  if (!options.state_dir.empty()) {
    const Result<std::string> kept = host::read_text(health_path());
    if (kept.ok()) {
      const Status restored = health.restore(*kept);
      if (!restored.ok()) {
        log.warn("what was known of the GPUs' health could not be read: it starts anew",
                 {{"file", health_path()}, {"error", restored.error().to_string()}});
      }
    }
  }
  if (boot.ok()) health.set_boot(*boot);
  start_pods();
  open_desk();
  source.watch(mine([](State& self, const model::GpuEvent& event) { self.event_came(event); }));
  if (!options.kernel_log.empty()) {
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
  start_mig();
  take_inventory();
  read_later(0);
  publish_later();
}

void Agent::State::open_desk() {
  if (options.state_dir.empty()) return;
  Result<std::unique_ptr<RequestInbox>> opened = RequestInbox::open(
      loop, requests_folder(options.state_dir),
      [this](const Request& request) { return forgive(request); }, log);
  if (opened.ok()) {
    desk = std::move(*opened);
  } else {
    log.warn("operators cannot ask for anything", {{"why", opened.error().to_string()}});
  }
}

void Agent::State::take_inventory() {
  if (asking_inventory) {
    ask_again = true;
    return;
  }
  asking_inventory = true;
  loop.cancel(inventory_timer);
  source.take_inventory(mine([](State& self, Result<model::GpuInventory> found) {
    self.inventory_came(std::move(found));
  }));
}

void Agent::State::inventory_came(Result<model::GpuInventory> found) {
  asking_inventory = false;
  const bool failed = !found.ok();
  inventory_timer = loop.after(failed ? kRetryInventory : options.inventory_ns,
                               mine([](State& self) { self.take_inventory(); }));
  if (failed) {
    if (!inventory && !options.simulated) host = host::read_host(options.host_root);
    const bool first = driver_problem.empty();
    if (driver_problem != found.error().to_string()) {
      driver_problem = found.error().to_string();
      if (inventory || gpus_on_bus() != 0) {
        log.warn("the GPU driver does not answer", {{"why", driver_problem}});
      } else if (first) {
        log.info("no GPU on the PCI bus, and no driver: nothing to do until there is one");
      }
    }
  } else {
    driver_problem.clear();
    model::HostFacts facts = host::read_host(options.host_root);
    if (!options.simulated) host::place_on_bus(options.host_root, *found, facts);
    host = std::move(facts);
    keep_vanished(*found);
    if (!inventory || *inventory != *found) {
      log.info("inventory", {{"gpus", found->gpus.size()}, {"driver", found->driver_version}});
      inventory = std::move(*found);
      health.set_inventory(*inventory, loop.wall().now_ns());
      rebuild();
    }
  }
  if (mig && inventory && !failed) mig->inventory_came(*inventory);
  publish_later();
  if (std::exchange(ask_again, false)) take_inventory();
}

// A GPU that the driver no longer lists is lost, not gone: it stays, unhealthy, for a while.
void Agent::State::keep_vanished(model::GpuInventory& found) {
  if (!inventory) return;
  const std::int64_t now = loop.monotonic().ticks_ns();
  for (const model::GpuDevice& before : inventory->gpus) {
    const bool there =
        std::any_of(found.gpus.begin(), found.gpus.end(),
                    [&](const model::GpuDevice& gpu) { return gpu.uuid == before.uuid; });
    const bool place_taken =
        std::any_of(found.gpus.begin(), found.gpus.end(),
                    [&](const model::GpuDevice& gpu) { return gpu.index == before.index; });
    if (there) {
      vanished.erase(before.uuid);
      continue;
    }
    const std::int64_t since = vanished.try_emplace(before.uuid, now).first->second;
    if (place_taken || now - since > options.forget_ns) {
      vanished.erase(before.uuid);
      continue;
    }
    found.gpus.push_back(before);
  }
  std::sort(found.gpus.begin(), found.gpus.end(),
            [](const model::GpuDevice& a, const model::GpuDevice& b) { return a.index < b.index; });
}

// In a container the host's driver root is mounted somewhere else; outside it is where it is.
advertise::DriverFiles Agent::State::find_files() const {
  const advertise::PluginConfig& config = options.config;
  const std::string root = options.host_root == "/" ? "" : options.host_root;
  host::SeenAt seen;
  seen.proc = root + "/proc";
  seen.sys = root + "/sys";
  if (host::is_folder(config.container_driver_root)) {
    seen.driver_root = config.container_driver_root;
    if (config.dev_root.empty() || config.dev_root == config.driver_root) {
      seen.dev_root = config.container_driver_root;
    }
  }
  return host::find_driver_files(config.driver_root, config.dev_root, *inventory, options.simulated,
                                 seen);
}

void Agent::State::rebuild() {
  if (!inventory) return;
  Result<advertise::Offer> made = advertise::offer(*inventory, options.config);
  if (!made.ok()) {
    offer_problem = made.error().to_string();
    log.error("these GPUs cannot be advertised with this configuration", {{"why", offer_problem}});
    return publish_later();
  }
  files = find_files();
  Result<advertise::Extras> besides = advertise::choose_extras(options.config, files);
  if (!besides.ok()) {
    offer_problem = besides.error().to_string();
    log.error("what the configuration requires is not here", {{"why", offer_problem}});
    return publish_later();
  }
  offer_problem.clear();
  for (const std::string& warning : made->warnings) log.warn("offer", {{"what", warning}});
  for (const std::string& warning : besides->warnings) log.warn("offer", {{"what", warning}});
  offer = std::move(*made);
  extras = std::move(*besides);
  choosers.clear();
  for (const model::OfferedResource& resource : offer.resources) {
    choosers[resource.name] = std::make_unique<allocate::Chooser>(
        *inventory, resource, options.config.shared_policy == advertise::SharedPolicy::kPacked);
  }
  write_cdi();
  say_labels();
  join();
  publish();
}

// Before the kubelet hears of devices: a container that names one must find it.
void Agent::State::write_cdi() {
  if (options.cdi_dir.empty()) return;
  const std::string start = options.cdi_dir + "/berth.dev-";
  const std::string gpus = advertise::cdi_spec(*inventory, files);
  if (gpus.empty()) return;
  cdi_problem.clear();
  std::set<std::string> wanted = {start + "gpu.json"};
  bool wrote = write_spec(start + "gpu.json", gpus);
  for (const advertise::DriverFiles::Extra& extra : extras.served) {
    const std::string path = start + extra.what + ".json";
    wanted.insert(path);
    wrote = write_spec(path, advertise::cdi_spec(extra)) && wrote;
  }
  if (!wrote) return;
  // Nothing names these any more, also those of an agent before this one.
  for (const char* what : {"gdrcopy", "gds", "imex-channel", "mofed"}) {
    const std::string path = start + what + ".json";
    if (wanted.contains(path)) continue;
    host::remove_file(path);
    cdi_written.erase(path);
  }
}

bool Agent::State::write_spec(const std::string& path, const std::string& spec) {
  if (const auto known = cdi_written.find(path);
      known != cdi_written.end() && known->second == spec) {
    return true;
  }
  const Status wrote = host::write_atomically(path, spec);
  if (!wrote.ok()) {
    cdi_problem = wrote.error().to_string();
    log.error("the CDI spec could not be written", {{"file", path}, {"why", cdi_problem}});
    return false;
  }
  cdi_written[path] = spec;
  log.info("CDI spec written", {{"file", path}, {"bytes", spec.size()}});
  return true;
}

void Agent::State::say_labels() {
  if (!link || !inventory) return;
  const std::int64_t now_s = loop.wall().now_ns() / kSecond;
  // The time of the labels is that of their last change.
  auto labels = advertise::gpu_labels(*inventory, host, options.config, now_s);
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
  if (!inventory || !cdi_problem.empty()) return;
  std::vector<Plugins::Wanted> wanted;
  for (const model::OfferedResource& resource : offer.resources) {
    Plugins::Wanted one;
    one.resource = resource.name;
    for (const model::OfferedDevice& device : resource.devices) {
      if (mig_withheld(device.gpu, device.uuid)) continue;
      const auto gpu =
          std::find_if(inventory->gpus.begin(), inventory->gpus.end(),
                       [&](const model::GpuDevice& found) { return found.index == device.gpu; });
      const bool healthy = gpu != inventory->gpus.end() && !vanished.contains(gpu->uuid) &&
                           health.verdict(gpu->uuid).healthy;
      one.devices.push_back({device.id, healthy, device.numa});
    }
    wanted.push_back(std::move(one));
  }
  plugins->set(wanted);
}

void Agent::State::say_node() {
  if (!link) return;
  link->want_host_labels(advertise::host_labels(host));
  const monitor::NodeState judged = monitor::node_state(sights());
  std::vector<NodeCondition> conditions;
  for (const monitor::NodeCondition& one : judged.conditions) {
    conditions.push_back(
        {std::string(one.type), std::string(one.status), std::string(one.reason), one.message});
  }
  if (auto layout = mig_condition()) conditions.push_back(std::move(*layout));
  link->want_conditions(conditions);
  if (judged.ready) link->want_no_startup_taint();
  if (!inventory) return;
  std::vector<discover::GpuStanding> standing;
  for (const model::GpuDevice& gpu : inventory->gpus) {
    const monitor::Verdict& verdict = health.verdict(gpu.uuid);
    discover::GpuStanding one;
    one.healthy = verdict.healthy && !vanished.contains(gpu.uuid);
    one.reason = verdict.code;
    for (const model::OfferedResource& resource : offer.resources) {
      for (const model::OfferedDevice& device : resource.devices) {
        if (device.gpu == gpu.index) one.shares = std::max(one.shares, resource.replicas);
      }
    }
    if (const auto found = ledger.holders.find(gpu.index); found != ledger.holders.end()) {
      one.holders = found->second;
    }
    standing.push_back(std::move(one));
  }
  link->want_gpu_node(discover::gpu_node(options.node_name, *inventory, host, standing));
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
  state_->desk.reset();
  state_->pod_resources.reset();
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

std::string Agent::page() const {
  const MutexLock lock(state_->mutex);
  return state_->page;
}

std::string Agent::status() const {
  const MutexLock lock(state_->mutex);
  return state_->status;
}

bool Agent::live() const {
  const MutexLock lock(state_->mutex);
  return state_->loop.monotonic().ticks_ns() - state_->page_at < 60 * kSecond;
}

}  // namespace berth::agent
