#include <algorithm>

#include "agent/agent_state.h"
#include "monitor/xid.h"

namespace berth::agent {

void Agent::State::read_later(std::int64_t delay_ns) {
  loop.cancel(read_timer);
  read_timer = loop.after(delay_ns, mine([](State& self) { self.read(); }));
}

void Agent::State::read() {
  if (std::exchange(read_under_way, true)) return;
  source.read(mine([](State& self, std::vector<model::GpuReading> came) {
    self.readings_came(std::move(came));
  }));
}

void Agent::State::readings_came(std::vector<model::GpuReading> came) {
  read_under_way = false;
  read_later(options.read_ns);
  const std::int64_t now = loop.wall().now_ns();
  if (inventory) {
    // What the driver no longer lists, it cannot answer for.
    for (const model::GpuDevice& gpu : inventory->gpus) {
      if (!vanished.contains(gpu.uuid)) continue;
      model::GpuReading lost;
      lost.uuid = gpu.uuid;
      lost.answer = model::GpuAnswer::kLost;
      lost.error = "the driver does not list it";
      came.push_back(std::move(lost));
    }
  }
  readings = std::move(came);
  if (!readings.empty()) read_at = now;
  find_processes();
  const std::vector<std::string> changed = health.readings(readings, now);
  if (changed.empty()) return render();
  verdicts_changed(changed);
}

void Agent::State::event_came(const model::GpuEvent& event) {
  using Kind = model::GpuEvent::Kind;
  if (event.kind == Kind::kMigChanged || event.kind == Kind::kInventory) return take_inventory();
  log.info("GPU event", {{"gpu", event.uuid},
                         {"kind", model::name(event.kind)},
                         {"code", event.code},
                         {"pid", event.pid}});
  const std::vector<std::string> changed = health.event(event, loop.wall().now_ns());
  if (changed.empty()) {
    note_events();
  } else {
    verdicts_changed(changed);
  }
  // Its recovery action and counters are worth a look now.
  read();
}

void Agent::State::kernel_line(const std::string& line) {
  const std::optional<monitor::XidLine> found = monitor::parse_xid_line(line);
  if (!found || !inventory) return;
  model::GpuEvent event;
  event.kind = model::GpuEvent::Kind::kXid;
  event.pci_bus_id = found->pci_bus_id;
  event.code = found->code;
  event.pid = found->pid;
  event.detail = found->detail;
  event.from_kernel_log = true;
  for (const model::GpuDevice& gpu : inventory->gpus) {
    if (gpu.pci_bus_id == found->pci_bus_id) event.uuid = gpu.uuid;
  }
  if (event.uuid.empty()) return;
  event_came(event);  // the book knows what the driver said of the same
}

void Agent::State::verdicts_changed(const std::vector<std::string>& uuids) {
  // The kubelet first: it is the one that hands GPUs out.
  set_plugins();
  for (const std::string& uuid : uuids) {
    const monitor::Verdict& verdict = health.verdict(uuid);
    verdict_changes.with({verdict.healthy ? "healthy" : "unhealthy"}).add();
    log.warn(verdict.healthy ? "GPU is healthy again" : "GPU is unhealthy",
             {{"gpu", uuid},
              {"code", verdict.code},
              {"why", verdict.text},
              {"action", verdict.action},
              {"heals", monitor::name(verdict.heals)}});
    if (link) {
      const std::string note =
          verdict.healthy
              ? uuid + " is healthy again"
              : uuid + ": " + verdict.text + " Action: " + verdict.action +
                    ". It comes back when: " + std::string(monitor::name(verdict.heals)) + '.';
      link->tell(!verdict.healthy, verdict.healthy ? "GpuHealthy" : "GpuUnhealthy", note);
    }
  }
  note_events();
  keep_health();
  publish();
}

void Agent::State::note_events() {
  for (const monitor::Noted& noted : health.take_noted()) {
    log.info("noted", {{"gpu", noted.uuid}, {"code", noted.code}, {"what", noted.text}});
    if (link && noted.blames_job)
      link->tell(true, "GpuApplicationError", noted.uuid + ": " + noted.text);
  }
}

void Agent::State::keep_health() {
  if (options.state_dir.empty()) return;
  std::string text = health.save();
  if (text == health_written) return;
  const Status wrote = host::write_atomically(health_path(), text);
  if (wrote.ok()) {
    health_written = std::move(text);
  } else {
    log.warn("verdicts could not be kept", {{"error", wrote.error().to_string()}});
  }
}

monitor::NodeInputs Agent::State::node_inputs() const {
  monitor::NodeInputs out;
  out.node = options.node_name;
  out.driver_problem = driver_problem;
  out.driver_answers = inventory.has_value() && driver_problem.empty();
  out.offer_problem = offer_problem.empty() ? config_problem : offer_problem;
  out.cdi_wanted = !options.cdi_dir.empty();
  out.cdi_problem = cdi_problem;
  out.cdi_written = !cdi_written.empty();
  out.has_api = link != nullptr;
  if (plugins) {
    for (const PluginState& plugin : plugins->states()) {
      monitor::ResourceInput resource;
      resource.name = plugin.resource;
      resource.devices = plugin.devices;
      resource.healthy = plugin.healthy;
      resource.registered = plugin.registered;
      resource.problem = plugin.problem;
      if (link && link->heard()) {
        const auto found = link->allocatable().find(plugin.resource);
        resource.allocatable =
            found == link->allocatable().end() ? 0 : static_cast<int>(found->second);
      }
      out.resources.push_back(std::move(resource));
    }
  }
  if (inventory) {
    for (const model::GpuDevice& gpu : inventory->gpus) {
      out.gpus.push_back({gpu.index, gpu.uuid, gpu.name, health.verdict(gpu.uuid)});
    }
  }
  return out;
}

void Agent::State::render() {
  const std::int64_t now = loop.wall().now_ns();
  std::string metrics_text;
  if (inventory) {
    monitor::ExportInput input;
    input.inventory = &*inventory;
    input.readings = &readings;
    input.health = &health;
    input.holders = &holders;
    input.processes = &processes;
    input.sampled_ns = read_at;
    input.now_ns = now;
    metrics_text = monitor::export_metrics(input, options.exporting);
  }
  std::string status_text = monitor::report_json(monitor::node_report(node_inputs()));
  if (!options.state_dir.empty() && status_text != status_file) {
    status_file = status_text;
    const Status wrote = host::write_atomically(status_path(), status_text);
    if (!wrote.ok()) log.warn("status could not be kept", {{"error", wrote.error().to_string()}});
  }
  const MutexLock lock(mutex);
  page.swap(metrics_text);
  status.swap(status_text);
  page_at = loop.monotonic().ticks_ns();
}

}  // namespace berth::agent
