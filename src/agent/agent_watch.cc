#include <algorithm>

#include "agent/agent_state.h"
#include "node/monitor/xid.h"

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
  if (inventory.gpus()) {
    // What the driver no longer lists, it cannot answer for.
    for (const model::GpuDevice& gpu : inventory.gpus()->gpus) {
      if (!inventory.vanished(gpu.uuid)) continue;
      model::GpuReading lost;
      lost.uuid = gpu.uuid;
      lost.answer = model::GpuAnswer::kLost;
      lost.error = "the driver does not list it";
      came.push_back(std::move(lost));
    }
  }
  readings = std::move(came);
  if (!readings.empty()) read_at = now;
  pods.find_processes(readings);
  if (mig) mig->use_changed();
  const std::vector<std::string> changed = health.book.readings(readings, now);
  if (changed.empty()) return render();
  verdicts_changed(changed);
}

void Agent::State::event_came(const model::GpuEvent& event) {
  using Kind = model::GpuEvent::Kind;
  if (event.kind == Kind::kMigChanged || event.kind == Kind::kInventory) return inventory.take();
  log.info("GPU event", {{"gpu", event.uuid},
                         {"kind", model::name(event.kind)},
                         {"code", event.code},
                         {"pid", event.pid}});
  const std::vector<std::string> changed = health.book.event(event, loop.wall().now_ns());
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
  if (!found || !inventory.gpus()) return;
  model::GpuEvent event;
  event.kind = model::GpuEvent::Kind::kXid;
  event.pci_bus_id = found->pci_bus_id;
  event.code = found->code;
  event.pid = found->pid;
  event.detail = found->detail;
  event.from_kernel_log = true;
  for (const model::GpuDevice& gpu : inventory.gpus()->gpus) {
    if (gpu.pci_bus_id == found->pci_bus_id) event.uuid = gpu.uuid;
  }
  if (event.uuid.empty()) return;
  event_came(event);  // the book knows what the driver said of the same
}

void Agent::State::verdicts_changed(const std::vector<std::string>& uuids) {
  // The kubelet first: it is the one that hands GPUs out.
  set_plugins();
  for (const std::string& uuid : uuids) {
    const monitor::Verdict& verdict = health.book.verdict(uuid);
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
              : uuid + ": " + verdict.text + ". Action: " + verdict.action +
                    ". It comes back when: " + std::string(monitor::name(verdict.heals)) + '.';
      link->tell(!verdict.healthy, verdict.healthy ? "GpuHealthy" : "GpuUnhealthy", note);
    }
  }
  note_events();
  health.keep();
  publish();
}

void Agent::State::note_events() {
  for (const monitor::Noted& noted : health.book.take_noted()) {
    log.info("noted", {{"gpu", noted.uuid}, {"code", noted.code}, {"what", noted.text}});
    if (link && noted.blames_job)
      link->tell(true, "GpuApplicationError", noted.uuid + ": " + noted.text);
  }
}

// An operator's word. It is written down who gave it, and what it ended.
Result<std::string> Agent::State::forgive(const Request& request) {
  const model::GpuDevice* gpu = nullptr;
  std::string known;
  if (inventory.gpus()) {
    for (const model::GpuDevice& one : inventory.gpus()->gpus) {
      if (one.uuid == request.gpu || std::to_string(one.index) == request.gpu) gpu = &one;
      known += (known.empty() ? "" : ", ") + std::to_string(one.index) + " (" + one.uuid + ')';
    }
  }
  if (gpu == nullptr) {
    return Error(Code::kNotFound, "gpu: found \"" + request.gpu + "\", want one of this node's: " +
                                      (known.empty() ? "it has none now" : known));
  }
  const std::string uuid = gpu->uuid,
                    called = "GPU " + std::to_string(gpu->index) + " (" + uuid + ')';
  const monitor::Verdict before = health.book.verdict(uuid);
  const std::vector<std::string> changed = health.book.forgive(uuid);
  const monitor::Verdict after = health.book.verdict(uuid);
  forgiven.add();
  log.warn("GPU forgiven", {{"gpu", uuid},
                            {"by", request.by},
                            {"why", request.why},
                            {"was", before.code},
                            {"is", after.code}});
  if (link) {
    link->tell(false, "GpuForgiven",
               uuid + " was forgiven by " + (request.by.empty() ? "an operator" : request.by) +
                   (request.why.empty() ? "" : ": " + request.why) +
                   (before.healthy ? "" : ". It was out: " + before.text));
  }
  if (changed.empty()) {
    health.keep();  // its flaps are gone all the same
    publish();
  } else {
    verdicts_changed(changed);
  }
  if (!after.healthy) {
    return Error(Code::kUnavailable, called + " is forgiven and stays out: " + after.text +
                                         ". Action: " + after.action + ". It comes back when: " +
                                         std::string(monitor::name(after.heals)));
  }
  return called + (before.healthy ? " was not out; what it did before is forgotten"
                                  : " was out (" + before.code + ") and takes pods again");
}

monitor::NodeSights Agent::State::sights() const {
  monitor::NodeSights out;
  out.driver_answers = inventory.gpus().has_value() && inventory.problem().empty();
  out.driver_error = inventory.problem();
  out.offer_error = offer.problem().empty() ? config_problem : offer.problem();
  out.cdi_wanted = cdi.wanted();
  out.cdi_written = cdi.written();
  out.cdi_error = cdi.problem();
  out.node_watched = link != nullptr;
  out.gpus_on_bus = inventory.gpus_on_bus();
  if (plugins) {
    for (const PluginState& plugin : plugins->states()) {
      monitor::NodeSights::Resource resource;
      resource.name = plugin.resource;
      resource.devices = plugin.devices;
      resource.healthy = plugin.healthy;
      resource.registered = plugin.registered;
      resource.error = plugin.problem;
      if (link && link->heard()) {
        const auto found = link->allocatable().find(plugin.resource);
        if (found != link->allocatable().end()) {
          resource.allocatable = static_cast<int>(found->second);
        }
      }
      out.resources.push_back(std::move(resource));
    }
  }
  if (mig && !mig->shown().state.empty()) {
    const MigShown& layout = mig->shown();
    out.mig = {layout.layout, layout.state, layout.reason, layout.text};
  }
  if (inventory.gpus()) {
    out.driver_version = inventory.gpus()->driver_version;
    for (const model::GpuDevice& gpu : inventory.gpus()->gpus) {
      out.gpus.push_back({gpu.index, gpu.uuid, health.book.verdict(gpu.uuid)});
    }
  }
  return out;
}

void Agent::State::render() {
  monitor::ExportInput input;
  if (inventory.gpus()) {
    input.inventory = &*inventory.gpus();
    input.readings = &readings;
    input.health = &health.book;
    input.holders = &pods.holders();
    input.processes = &pods.processes();
    input.sampled_ns = read_at;
    input.now_ns = loop.wall().now_ns();
  }
  shown.show(inventory.gpus() ? &input : nullptr, options.exporting, sights(),
             loop.monotonic().ticks_ns());
}

}  // namespace berth::agent
