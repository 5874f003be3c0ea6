#include "app/page/page_facts.h"

#include <algorithm>
#include <utility>

namespace berth::app {

namespace {

people::PageHours page_hours(std::string team, const account::Hours& hours) {
  return {std::move(team), hours.held, hours.busy, hours.idle, hours.unknown};
}

int gpu_load(const PageFactsKeeper::Loads& loads, std::string_view node, int gpu) {
  const auto found = loads.find(node);
  if (found == loads.end() || gpu < 0 || gpu >= static_cast<int>(found->second.size())) return -1;
  return found->second[static_cast<std::size_t>(gpu)];
}

// Adds what one pod holds. A pod whose devices are not known holds as many as it asked for.
void add_holding(const model::PodSpec& pod, const PageFactsKeeper::Loads& loads,
                 account::UsageSample& sample, int& held) {
  using Kind = model::GpuDemandSpec::Kind;
  const int count = std::max<int>(pod.gpu.count, static_cast<int>(pod.gpu_indices.size()));
  const int each = pod.gpu.kind == Kind::kFraction ? pod.gpu.milli : model::kMilliPerGpu;
  if (pod.gpu.kind != Kind::kWhole && pod.gpu.kind != Kind::kFraction) return;
  for (int i = 0; i < count; ++i) {
    const bool known = i < static_cast<int>(pod.gpu_indices.size());
    const int busy =
        known ? gpu_load(loads, pod.node_name, pod.gpu_indices[static_cast<std::size_t>(i)]) : -1;
    sample.holdings.push_back({pod.ns, each, busy < 0 ? std::nullopt : std::optional(busy)});
    held += each;
  }
}

}  // namespace

PageFactsKeeper::PageFactsKeeper(Loop& loop, const control::Controller& controller,
                                 std::string cluster, std::function<Readings()> readings)
    : loop_(loop),
      controller_(controller),
      cluster_(std::move(cluster)),
      readings_(std::move(readings)) {}

PageFactsKeeper::~PageFactsKeeper() {
  if (timer_ != 0) loop_.cancel(timer_);
}

void PageFactsKeeper::start() {
  since_ns_ = loop_.wall().now_ns();
  tick();
}

void PageFactsKeeper::tick() {
  timer_ = loop_.after(kSampleNs, [this] { tick(); });
  sample(controller_.inputs());
}

void PageFactsKeeper::sample(const kinds::Inputs& inputs) {
  const Loads loads = readings_ ? readings_().loads : Loads{};
  account::UsageSample sample;
  std::map<std::string_view, int> held;  // milli, by node
  for (const model::PodSpec& pod : inputs.pods) {
    if (!pod.node_name.empty()) add_holding(pod, loads, sample, held[pod.node_name]);
  }
  for (const model::NodeSpec& node : inputs.nodes) {
    std::int64_t usable = 0, out = 0;
    for (const model::GpuSpec& gpu : node.gpus) {
      const bool good = node.ready && gpu.health == model::Health::kHealthy && !gpu.reserved;
      (good ? usable : out) += model::kMilliPerGpu;
    }
    // What pods hold counts as theirs, also on a device that broke since.
    const std::int64_t rest = std::max<std::int64_t>(0, usable + out - held[node.name]);
    sample.free_milli += std::min(usable, rest);
    sample.out_milli += rest - std::min(usable, rest);
  }
  usage_.note(loop_.monotonic().ticks_ns(), sample);
  note_history(inputs, sample);
}

void PageFactsKeeper::note_history(const kinds::Inputs& inputs,
                                   const account::UsageSample& sample) {
  const std::int64_t now = loop_.wall().now_ns();
  account::FleetTrend::Sample fill{.free_milli = sample.free_milli, .out_milli = sample.out_milli};
  for (const account::Holding& holding : sample.holdings) {
    fill.used_milli += holding.milli;
    if (!holding.busy_per_cent) continue;
    fill.busy_sum += *holding.busy_per_cent;
    ++fill.busy_count;
  }
  trend_.note(now, fill);
  std::vector<account::HealthLog::Standing> standing;
  for (const model::NodeSpec& node : inputs.nodes) {
    if (node.gpus.empty()) continue;
    standing.push_back({node.name, -1, node.ready, node.ready ? "" : "not ready"});
    for (const model::GpuSpec& gpu : node.gpus) {
      standing.push_back(
          {node.name, gpu.index, gpu.health == model::Health::kHealthy, gpu.health_reason});
    }
  }
  health_.note(now, standing);
  for (const model::WorkloadSpec& workload : inputs.queues.workloads) {
    if (!workload.admission || workload.admitted_ns == 0) continue;
    // Evicted, it waited anew from then on.
    const bool again =
        workload.evicted_ns > workload.created_ns && workload.evicted_ns < workload.admitted_ns;
    waits_.note(workload.admission->queue, workload.ns + '/' + workload.name,
                again ? workload.evicted_ns : workload.created_ns, workload.admitted_ns, now);
  }
}

people::PageFacts PageFactsKeeper::facts() const {
  const control::ControllerSummary summary = controller_.summary();
  people::PageFacts out;
  out.cluster = cluster_;
  out.trouble = summary.trouble;
  out.leading = summary.leading;
  out.cycles = summary.cycles;
  out.bound = summary.bound;
  out.evicted = summary.evicted;
  out.failed_writes = summary.failed_writes;
  out.last_decision_ns = summary.last_cycle_ns;
  const std::int64_t now = loop_.wall().now_ns();
  if (readings_) {
    Readings readings = readings_();
    out.measured_nodes = readings.loads.size();
    out.silent_nodes = readings.silent_nodes;
    if (out.measured_nodes > 0) out.measured_ns = readings.oldest_ns > 0 ? readings.oldest_ns : now;
    out.busy = [loads = std::make_shared<const Loads>(std::move(readings.loads))](
                   std::string_view node, int gpu) { return gpu_load(*loads, node, gpu); };
  }
  constexpr double kSecondNs = 1e9;
  for (const auto& [queue, waits] : waits_.summaries(now)) {
    out.waits.push_back({queue, waits.count, static_cast<double>(waits.p50_ns) / kSecondNs,
                         static_cast<double>(waits.p95_ns) / kSecondNs});
  }
  for (account::HealthLog::Event& event : health_.events(now)) {
    out.health_events.push_back({event.at_ns, std::move(event.standing.node), event.standing.gpu,
                                 event.standing.in_service, std::move(event.standing.reason)});
  }
  for (const account::FleetTrend::Step& step : trend_.steps(now)) {
    out.trend.push_back({step.at_ns, step.used, step.free, step.out, step.busy});
  }
  out.usage_since_ns = since_ns_;
  for (const auto& [team, hours] : usage_.teams()) out.teams.push_back(page_hours(team, hours));
  out.all_teams = page_hours("", usage_.total());
  out.free_hours = usage_.free_hours();
  out.out_hours = usage_.out_hours();
  return out;
}

PageSource PageFactsKeeper::source() {
  return {.inputs =
              [this] {
                kinds::Inputs inputs = controller_.inputs();
                sample(inputs);
                return inputs;
              },
          .facts = [this] { return facts(); },
          .revision = [this] { return controller_.revision(); },
          .copy = [this] { return controller_.copy(); },
          .decided = [this]() -> people::Decided {
            const control::LastDecision& last = controller_.last_decision();
            return {last.id, last.at_ns, last.version};
          }};
}

}  // namespace berth::app
