#include "control/controller.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <tuple>
#include <unordered_map>
#include <utility>

#include "control/binder.h"
#include "control/bodies.h"
#include "control/casualties.h"
#include "control/finalizers.h"
#include "control/kueue_lease.h"
#include "control/notices.h"
#include "control/queue_keeper.h"
#include "control/rejections.h"
#include "control/watches.h"
#include "control/world.h"
#include "control/writer.h"
#include "kinds/counted.h"
#include "kinds/group_status.h"
#include "kinds/quota_requests.h"
#include "kinds/readers.h"
#include "text/path.h"
#include "text/yaml.h"

namespace berth::control {

using text::Value;

namespace {

constexpr std::int64_t kTick = 1'000'000'000;
constexpr std::int64_t kQueueClock = 10 * kTick;  // rules of time: back-offs, timeouts
constexpr std::int64_t kLongPause = kTick / 4;    // after a cycle that was shorter than this
constexpr int kMostRejections = 8;                // of one gang, then it waits as long as it may
constexpr std::size_t kMostGroupsAtOnce = 100;
constexpr std::string_view kKueueGroup = "kueue.x-k8s.io";

// Whether a pod that waited for GPUs has a node now.
bool got_gpus(const kinds::LivePod& waited, const Value& pod) {
  return waited.body->object.spec.gpu.kind != model::GpuDemandSpec::Kind::kNone &&
         text_at(pod, "metadata.uid") == waited.uid && !text_at(pod, "spec.nodeName").empty();
}

}  // namespace

struct Controller::State {
  State(kube::Client& client_in, Random random, ControllerOptions options_in,
        std::function<bool()> leading_in, const Logger& log_in, MetricsRegistry& metrics_in,
        DecisionLog* decisions_in, WorldLog* inputs_in)
      : client(client_in),
        loop(client_in.loop()),
        options(std::move(options_in)),
        leading(std::move(leading_in)),
        log(log_in),
        decisions(decisions_in),
        input_log(inputs_in),
        world(options.scheduler_names, random.split("bodies").next(), options.policy,
              options.queue_policy),
        writer(loop.monotonic(), client, leading, options.max_writes_at_once, metrics_in),
        notices(loop, random.split("events"), writer),
        watches(
            client, random.split("watches"), metrics_in,
            [this](const kube::Resource& r, const kube::ObjectPtr& before,
                   const kube::ObjectPtr& after) { changed(r, before, after); },
            [this] { want_cycle(); }),
        binder(loop, world, writer, notices, watches.of("", "Pod"), log, metrics_in,
               [this] { want_cycle(); }),
        keeper(loop, world, writer, notices,
               {[this](const kinds::KindRow& row) -> kube::Informer& {
                  return watches.of(row.group, row.kind);
                },
                watches.of(kKueueGroup, "Workload"), watches.of(kKueueGroup, "ClusterQueue"),
                watches.of(kKueueGroup, "LocalQueue"), watches.of("", "Pod")},
               [this](const std::string& pod, const std::string& reason,
                      const std::string& message) { binder.send_away(pod, reason, message); }),
        rejections(loop, world, writer, notices, log, metrics_in),
        casualties(
            loop, world, notices, log, metrics_in, {options.sick_gpus, options.heed_notices},
            [this](const std::string& pod, std::string_view reason, const std::string& message) {
              return binder.send_away(pod, reason, message);
            },
            [this] { return manages_queues(); }),
        finalizers(loop, writer),
        cycles_metric(
            metrics_in
                .counter({.name = "berth_controller_cycles_total", .help = "Decision cycles."})
                .get()),
        duration_metric(metrics_in
                            .histogram({.name = "berth_controller_cycle_seconds",
                                        .help = "How long a decision cycle takes.",
                                        .buckets = {0.0001, 0.001, 0.005, 0.02, 0.1, 0.5, 2, 10}})
                            .get()),
        postponed_metric(metrics_in
                             .counter({.name = "berth_controller_cut_cycles_total",
                                       .help = "Cycles that left part of what waits to the next."})
                             .get()),
        rejected_metric(metrics_in
                            .counter({.name = "berth_controller_rejected_total",
                                      .help = "Pods that a kubelet refused."})
                            .get()),
        unread_metric(metrics_in.gauge(
            {.name = "berth_controller_unreadable_objects",
             .help = "Objects that count although part of them cannot be read, by kind.",
             .labels = {"kind"}})) {
    if (input_log != nullptr) world.record(input_log);
    if (!options.own_namespace.empty()) world.protect(options.own_namespace);
  }

  ~State() {
    if (cycle_timer != 0) loop.cancel(cycle_timer);
    if (tick_timer != 0) loop.cancel(tick_timer);
  }

  std::int64_t now() const { return loop.monotonic().ticks_ns(); }

  void changed(const kube::Resource& resource, const kube::ObjectPtr& before,
               const kube::ObjectPtr& after);
  kinds::Effect pod_changed(const kube::ObjectPtr& before, const kube::ObjectPtr& after);
  bool is_ours(const Value& pod) const;
  void config_changed(const kube::ObjectPtr& after);
  void rejected(const std::string& pod, const std::string& gang, const Value& object);
  void want_cycle();
  void tell_webhook();
  void tick();
  void refresh();
  void cycle();
  bool may_decide();
  void lose_lead();
  bool manages_queues() const;
  bool queues_due() const;  // by the clock alone
  void know_members(const kinds::Inputs& inputs);
  void carry_out(const model::Decision& decision);
  void tell(const model::Decision& decision);
  void tell_pod(const std::string& pod, const Notices::Wait& why);
  void note_groups(const model::Decision& decision);
  void undo_partial_gangs(const model::Decision& decision);
  void write_down(const model::Decision& decision);
  void keep_groups();

  kube::Client& client;
  Loop& loop;
  const ControllerOptions options;
  std::function<bool()> leading;
  const Logger& log;
  DecisionLog* decisions;
  WorldLog* input_log;
  World world;
  Writer writer;
  Notices notices;
  Watches watches;
  Binder binder;
  QueueKeeper keeper;
  Rejections rejections;
  Casualties casualties;
  Finalizers finalizers;
  Counter cycles_metric;
  Histogram duration_metric;
  Counter postponed_metric;
  Counter rejected_metric;
  GaugeFamily& unread_metric;
  std::map<std::string, std::size_t> unread_kinds;  // that the metric names

  KueueLease kueue;
  Loop::Timer cycle_timer = 0, tick_timer = 0;
  std::int64_t last_end = INT64_MIN / 2, last_took = 0;
  std::int64_t paused_until = 0;
  int pauses = 0;
  bool led = false, wanted = false, said_kueue = false;
  bool board_due = false, board_ours = false;
  bool room = false;  // may have grown since queues were decided
  std::int64_t queues_at = INT64_MIN / 2;
  std::uint64_t cycles = 0;
  std::uint64_t last_digest = 0;
  LastDecision last_decision;
  std::vector<model::Outcome> queue_outcomes;  // of the last cycle of queues
  std::unordered_map<std::string, std::vector<std::string>> queue_members;  // by waiting workload
  std::vector<std::pair<std::string, std::string>> beyond;                  // kinds::Inputs
  std::map<std::string, std::int64_t> partial_since;
  std::set<std::string> dirty_groups;  // ns/name
  // Gangs and workloads of queues that wait: reason and message.
  std::map<std::string, std::pair<std::string, std::string>> group_waits;
  std::size_t waiting = 0;  // pods, as of the last cycle
  std::string trouble = "starting";
};

// ---- what the API tells ----

void Controller::State::changed(const kube::Resource& resource, const kube::ObjectPtr& before,
                                const kube::ObjectPtr& after) {
  using kinds::Effect;
  const kube::Key& key = (after ? after : before)->key;
  if (resource.kind == "Pod") {
    if (pod_changed(before, after) == Effect::kNow) want_cycle();
    return;
  }
  if (resource.kind == "ConfigMap") return config_changed(after);
  if (resource.kind == "Lease") {
    if (after) {
      kueue.seen(after->root(), now());
    } else {
      kueue.gone();
    }
    return want_cycle();
  }
  const std::string version = resource.api_version();
  const Effect effect = after ? world.put(version, resource.kind, after->root())
                              : world.remove(version, resource.kind, key.ns, key.name);
  if (resource.kind == "Node" || resource.kind == "GpuNode") room = room || effect == Effect::kNow;
  if (resource.kind == "Node") {
    rejections.node_changed(key.name, after ? &after->root() : nullptr);
    const bool notice = casualties.node_changed(key.name, after ? &after->root() : nullptr);
    if (notice && led && leading() && watches.synced() && casualties.tick()) want_cycle();
  }
  if (resource.kind == "GpuNode") {
    rejections.agent_changed(key.name, after ? &after->root() : nullptr);
    casualties.agent_changed(key.name, after ? &after->root() : nullptr);
  }
  if (resource.kind == "Namespace" || resource.kind.ends_with("Queue")) board_due = true;
  if (resource.kind == "PodGroup") dirty_groups.insert(key.ns + '/' + key.name);
  if (effect == Effect::kNow) want_cycle();
}

kinds::Effect Controller::State::pod_changed(const kube::ObjectPtr& before,
                                             const kube::ObjectPtr& after) {
  using kinds::Effect;
  const kube::Key& key = (after ? after : before)->key;
  const std::string name = key.ns + '/' + key.name;
  const kinds::LivePod* old = world.objects().pod(name);
  const bool held_room = old != nullptr && !old->node.empty();
  const bool gated = old != nullptr && old->body->object.spec.gated;
  if (old != nullptr && !old->group().empty()) dirty_groups.insert(key.ns + '/' + old->group());
  Effect effect = Effect::kNone;
  if (after) {
    finalizers.pod_changed(key, after->root());
    const bool refused = refused_by_node(after->root());
    const bool was_ours = old != nullptr && !old->foreign && !old->finished();
    const bool ran = old != nullptr && old->phase == "Running";
    const std::string gang = refused && was_ours ? world.gang_of(name) : std::string();
    if (was_ours && !held_room && got_gpus(*old, after->root())) {
      rejections.pod_placed(name, after->root());
    }
    effect = world.put("v1", "Pod", after->root());
    if (refused && is_ours(after->root())) {
      const std::string owner = rejections.pod_refused(name, after->root(), was_ours);
      if (!owner.empty()) binder.back_off(owner);
      if (rejections.believe()) effect = Effect::kNow;
    }
    if (refused && was_ours) rejected(name, gang, after->root());
    const kinds::LivePod* live = world.objects().pod(name);
    if (!ran && live != nullptr && live->phase == "Running")
      rejections.pod_started(name, live->node);
  } else {
    effect = world.remove("v1", "Pod", key.ns, key.name);
    finalizers.pod_gone(key);
    notices.forget(name);
    rejections.pod_gone(name);
  }
  const kinds::LivePod* live = world.objects().pod(name);
  const bool holds_room = live != nullptr && !live->node.empty() && !live->finished();
  if (live != nullptr && !live->group().empty()) dirty_groups.insert(key.ns + '/' + live->group());
  if (world.assumed(name) != nullptr) {
    if (world.confirm(name)) {
      effect = Effect::kNone;
    } else if (gated) {
      effect = Effect::kNow;  // its gates may be gone: it can be bound
    }
  }
  if (held_room && !holds_room) {
    room = true;
    if (world.sweep_leaving()) binder.flush();
  }
  return effect;
}

bool Controller::State::is_ours(const Value& pod) const {
  const std::string_view name = text_at(pod, "spec.schedulerName");
  const auto& ours = options.scheduler_names;
  return std::find(ours.begin(), ours.end(), name) != ours.end();
}

void Controller::State::config_changed(const kube::ObjectPtr& after) {
  constexpr std::string_view kVersion = "config.kueue.x-k8s.io/v1beta2";
  bool read = false;
  if (after) {
    const std::string_view yaml = text_at(after->root(), "data[controller_manager_config.yaml]");
    auto documents = text::parse_yaml(yaml);
    if (documents.ok() && !documents->empty()) {
      const Value& root = documents->front().root();
      const Value* version = root.find("apiVersion");
      world.put(version == nullptr ? kVersion : version->string(), "Configuration", root);
      read = true;
    } else {
      log.warn("Kueue's Configuration cannot be read", {{"configmap", after->key.to_string()}});
    }
  }
  if (!read) world.remove(kVersion, "Configuration", "", "");
  board_due = true;
  want_cycle();
}

// The kubelet refused it: its gang starts over, later each time.
void Controller::State::rejected(const std::string& pod, const std::string& gang,
                                 const Value& object) {
  rejected_metric.add();
  const std::string reason(text_at(object, "status.reason"));
  log.warn("a kubelet refused a pod", {{"pod", pod},
                                       {"gang", gang},
                                       {"reason", reason},
                                       {"node", text_at(object, "spec.nodeName")}});
  if (gang.empty() || !leading()) return;
  std::vector<std::string> others;
  const model::ClusterState& state = world.builder().state();
  if (const auto index = world.builder().find_gang(gang)) {
    state.for_each_in_gang(*index, [&](model::PodId id) {
      const std::string& name = state.pod(id).info->name;
      const kinds::LivePod* live = world.objects().pod(name);
      if (name != pod && live != nullptr && !live->node.empty() && !live->owner().empty()) {
        others.push_back(name);
      }
    });
  }
  binder.back_off(gang);
  if (binder.failures_of(gang) > kMostRejections) {
    const std::size_t slash = gang.find('/');
    notices.event({"v1", "PodGroup", gang.substr(0, slash), gang.substr(slash + 1), ""}, "Warning",
                  "Rejected", "Scheduling",
                  fmt::format("kubelets refused its pods {} times, the last for {}",
                              binder.failures_of(gang), reason));
  }
  for (const std::string& other : others) {
    binder.send_away(other, "Rejected", "a kubelet refused " + pod + ": " + reason);
  }
}

// ---- when ----

void Controller::State::want_cycle() {
  wanted = true;
  if (cycle_timer != 0) return;
  const std::int64_t pause = std::min(4 * last_took, std::max(last_took, kLongPause));
  const std::int64_t gap = std::max(options.min_cycle_gap_ns, pause);
  const std::int64_t due = std::max(last_end + gap, paused_until);
  cycle_timer = loop.after(std::max<std::int64_t>(0, due - now()), [this] {
    cycle_timer = 0;
    if (wanted) cycle();
  });
}

void Controller::State::tick() {
  tick_timer = loop.after(kTick, [this] { tick(); });
  tell_webhook();
  const bool leads = leading();
  if (leads != led) want_cycle();
  if (!leads || !watches.synced()) return;
  binder.tick(options.bind_timeout_ns);
  if (rejections.tick()) want_cycle();
  if (casualties.tick()) want_cycle();
  if (manages_queues()) finalizers.tick();
  if (world.end_holds(now())) want_cycle();
  if (!world.reservations().empty() || !partial_since.empty()) want_cycle();
  if (world.objects().has_queues() && queues_due()) want_cycle();
  keep_groups();
}

// Standbys answer the webhook, too. Where Kueue runs, its own does what there is to do.
void Controller::State::tell_webhook() {
  if (options.board == nullptr) return;
  const bool ours = options.manage_queues && !kueue.live(now());
  if (!std::exchange(board_due, false) && ours == board_ours) return;
  board_ours = ours;
  options.board->tell(ours ? world.objects().queue_demands() : kinds::QueueDemands());
}

bool Controller::State::queues_due() const {
  return now() - queues_at >= kQueueClock || (manages_queues() && keeper.due(now()));
}

bool Controller::State::manages_queues() const {
  return options.manage_queues && world.objects().has_queues() && !kueue.live(now());
}

void Controller::State::lose_lead() {
  led = false;
  writer.clear();
  world.forget_everything();
  keeper.clear();
  binder.clear();
  notices.clear();
  rejections.clear();
  casualties.clear();
  finalizers.clear();
  partial_since.clear();
  queues_at = INT64_MIN / 2;
}

bool Controller::State::may_decide() {
  if (!leading()) {
    if (led) lose_lead();
    trouble = "another controller leads";
    return false;
  }
  led = true;
  if (!watches.synced()) {
    const auto missing = watches.missing();
    trouble = "not read yet: " + (missing.empty() ? std::string("nothing") : missing.front());
    return false;
  }
  if (writer.silent() >= 3 && writer.in_flight() == 0 && now() >= paused_until) {
    // The server is away: ask it again, less and less often.
    pauses = std::min(pauses + 1, 5);
    paused_until = now() + (kTick << pauses);
  } else if (writer.silent() == 0) {
    pauses = 0;
  }
  if (now() < paused_until && writer.silent() > 0) {
    trouble = "the API server does not answer writes";
  } else {
    trouble.clear();
  }
  if (options.manage_queues && kueue.live(now())) {
    trouble = "queues are left to Kueue, which is running: its lease is held by " + kueue.holder();
    if (!said_kueue) log.warn("queues are left to Kueue", {{"lease", kueue.holder()}});
    said_kueue = true;
  }
  return true;
}

// ---- a cycle ----

// Takes what changed into the model, and tells whom it concerns what of it cannot be read.
void Controller::State::refresh() {
  std::vector<kinds::Note> refused, unread;
  world.refresh(refused, unread);
  const auto pod_of = [](const kinds::Note& note) {
    constexpr std::string_view kKind = "Pod ";
    return note.object.starts_with(kKind) ? note.object.substr(kKind.size()) : std::string();
  };
  for (const kinds::Note& note : refused) {
    const std::string pod = pod_of(note);
    const kinds::LivePod* live = world.objects().pod(pod);
    if (live != nullptr && live->node.empty() && !live->foreign) {
      notices.waits(pod, live->uid, {false, "Invalid", note.path + ": " + note.message});
    }
  }
  for (const kinds::Note& note : unread) {
    const std::string message = note.path + ": " + note.message;
    const kinds::LivePod* live = world.objects().pod(pod_of(note));
    if (live != nullptr) {
      notices.event({"v1", "Pod", live->ns, live->name, live->uid}, "Warning", "Unreadable",
                    "Counting", fmt::format("{}; {}", message, kinds::kPodCounts));
    } else {
      log.warn("part of an object cannot be read", {{"object", note.object}, {"why", message}});
    }
  }
  for (auto& [kind, known] : unread_kinds) known = 0;
  for (const auto& [kind, count] : world.objects().unread()) unread_kinds[kind] = count;
  for (const auto& [kind, count] : unread_kinds) {
    unread_metric.with({kind}).set(static_cast<double>(count));
  }
}

void Controller::State::cycle() {
  wanted = false;
  const std::int64_t begin = now();
  if (!may_decide()) {
    last_end = now();
    return;
  }
  ++cycles;
  cycles_metric.add();
  world.begin_cycle(cycles);
  refresh();
  const bool queues =
      world.objects().has_queues() &&
      (world.objects().queues_changed() || (room && keeper.pending() > 0) || queues_due());
  std::optional<kinds::Inputs> inputs;
  if (queues) inputs = world.inputs();
  if (manages_queues()) {
    if (inputs) keeper.restore_places(*inputs);
    for (auto& [pod, where] : keeper.take_places(options.bind_timeout_ns)) {
      binder.place(pod, std::move(where));
    }
  }
  model::Decision decision = world.decide(loop.wall().now_ns());
  carry_out(decision);
  if (inputs && manages_queues()) {
    model::Decision more = world.decide_queues(*inputs, loop.wall().now_ns());
    for (const model::Placement& p : keeper.keep(*inputs, more)) {
      const kinds::LivePod* live = world.objects().pod(p.pod);
      if (live == nullptr || !live->node.empty()) continue;
      binder.place(p.pod, {.uid = live->uid, .node = p.node, .gang = p.gang, .gpus = p.gpus});
    }
    know_members(*inputs);
    queue_outcomes.clear();
    for (const model::Outcome& o : more.outcomes) queue_outcomes.push_back(o);
    std::move(more.placements.begin(), more.placements.end(),
              std::back_inserter(decision.placements));
    decision.admissions = std::move(more.admissions);
    decision.evictions = std::move(more.evictions);
    room = false;
    queues_at = now();
  } else if (!world.objects().has_queues()) {
    queue_outcomes.clear();
  } else if (inputs) {
    queues_at = now();
  }
  decision.outcomes.insert(decision.outcomes.end(), queue_outcomes.begin(), queue_outcomes.end());
  binder.flush();
  tell(decision);
  undo_partial_gangs(decision);
  write_down(decision);
  if (input_log != nullptr) input_log->flush();
  last_end = now();
  last_took = last_end - begin;
  if (decision.postponed > 0) {
    postponed_metric.add();
    want_cycle();
  }
  duration_metric.observe(static_cast<double>(last_took) * 1e-9);
}

// Pods that stand in a queue as they are: those of a Job that waits are not made yet.
void Controller::State::know_members(const kinds::Inputs& inputs) {
  queue_members.clear();
  beyond = inputs.beyond;
  for (const model::WorkloadSpec& spec : inputs.queues.workloads) {
    if (spec.admitted) continue;
    for (const model::PodSetSpec& set : spec.pod_sets) {
      if (set.pods.empty()) continue;
      auto& pods = queue_members[spec.ns + '/' + spec.name];
      pods.insert(pods.end(), set.pods.begin(), set.pods.end());
    }
  }
}

void Controller::State::carry_out(const model::Decision& decision) {
  for (const model::Preemption& victim : decision.preemptions) {
    binder.send_away(victim.pod, "PreemptionByScheduler",
                     "preempted to make room for " + victim.by);
  }
  std::map<std::string, std::pair<int, std::set<std::string>>> gangs;
  for (const model::Placement& p : decision.placements) {
    const kinds::LivePod* live = world.objects().pod(p.pod);
    if (live == nullptr || !live->node.empty()) continue;
    binder.place(p.pod, {.uid = live->uid, .node = p.node, .gang = p.gang, .gpus = p.gpus});
    if (p.gang.empty()) continue;
    auto& [pods, nodes] = gangs[p.gang];
    ++pods;
    nodes.insert(p.node);
  }
  for (const auto& [gang, what] : gangs) {
    const std::size_t slash = gang.find('/');
    notices.event({"v1", "PodGroup", gang.substr(0, slash), gang.substr(slash + 1), ""}, "Normal",
                  "Scheduled", "Binding",
                  fmt::format("{} pods placed on {} nodes", what.first, what.second.size()));
  }
}

// Why groups wait, for their status: told when it is another reason.
void Controller::State::note_groups(const model::Decision& decision) {
  if (watches.of("scheduling.run.ai", "PodGroup").size() == 0 && group_waits.empty()) return;
  std::map<std::string, std::pair<std::string, std::string>> now_wait;
  for (const model::Outcome& o : decision.outcomes) {
    if (o.verdict == model::Verdict::kPlaced) continue;
    if (!o.gang && !o.queued) continue;
    now_wait.emplace(o.workload, std::pair(std::string(model::name(o.reason)), o.message));
  }
  const auto mark = [this](const auto& from, const auto& other) {
    for (const auto& [name, why] : from) {
      const auto it = other.find(name);
      if (it == other.end() || it->second.first != why.first) dirty_groups.insert(name);
    }
  };
  mark(now_wait, group_waits);
  mark(group_waits, now_wait);
  group_waits = std::move(now_wait);
}

void Controller::State::tell_pod(const std::string& pod, const Notices::Wait& why) {
  const kinds::LivePod* live = world.objects().pod(pod);
  if (live == nullptr || !live->node.empty() || live->terminating) return;
  if (world.assumed(pod) != nullptr || live->body->object.spec.gated) return;
  notices.waits(pod, live->uid, why);
}

void Controller::State::tell(const model::Decision& decision) {
  waiting = 0;
  note_groups(decision);
  for (const auto& [pod, why] : beyond) {
    tell_pod(pod, {true, model::name(model::Reason::kWaitingForQuota), why});
  }
  for (const model::Outcome& o : decision.outcomes) {
    if (o.verdict == model::Verdict::kPlaced) continue;
    waiting += static_cast<std::size_t>(std::max(0, o.pods - o.placed));
    // Where nodes lack, autoscalers may help, whatever it waits in.
    const bool queued = o.queued && !model::is_of_nodes(o.reason);
    const auto one = [&](const std::string& pod) {
      tell_pod(pod, {queued, model::name(o.reason), o.message});
    };
    if (o.queued) {
      if (const auto known = queue_members.find(o.workload); known != queue_members.end()) {
        for (const std::string& pod : known->second) one(pod);
      }
      continue;
    }
    if (!o.gang) {
      one(o.workload);
      continue;
    }
    const auto gang = world.builder().find_gang(o.workload);
    if (!gang) continue;
    std::vector<std::string> members;
    const model::ClusterState& state = world.builder().state();
    state.for_each_in_gang(*gang, [&](model::PodId id) {
      if (state.pod(id).slot == model::kPending) members.push_back(state.pod(id).info->name);
    });
    for (const std::string& pod : members) one(pod);
  }
}

// A gang of which some members run and the others find no place: after a while those that run make
// way, unless nobody would make them again.
void Controller::State::undo_partial_gangs(const model::Decision& decision) {
  std::set<std::string> partial, waiting_gangs;
  const model::ClusterState& state = world.builder().state();
  for (const model::Outcome& o : decision.outcomes) {
    // What will never fit would not fit without them either.
    if (o.verdict == model::Verdict::kPlaced || o.verdict == model::Verdict::kNever) continue;
    if (o.gang && !o.queued) waiting_gangs.insert(o.workload);
    const auto members = o.queued ? queue_members.find(o.workload) : queue_members.end();
    if (members == queue_members.end()) continue;
    for (const std::string& pod : members->second) {  // one that came to a group that runs
      const kinds::LivePod* live = world.objects().pod(pod);
      if (live != nullptr && !live->group().empty()) {
        waiting_gangs.insert(live->ns + '/' + live->group());
      }
    }
  }
  for (const std::string& name : waiting_gangs) {
    const auto index = world.builder().find_gang(name);
    if (!index) continue;
    std::vector<std::string> bound;
    state.for_each_in_gang(*index, [&](model::PodId id) {
      const model::PodEntry& pod = state.pod(id);
      if (pod.slot >= 0 && world.assumed(pod.info->name) == nullptr)
        bound.push_back(pod.info->name);
    });
    int done = 0;  // members that have ended well count, as they do for Volcano
    world.objects().for_each_member(name, [&](const std::string&, const kinds::LivePod& pod) {
      done += pod.phase == "Succeeded" ? 1 : 0;
    });
    const int min_member = state.gang(*index).min_member - done;
    if (bound.empty() || static_cast<int>(bound.size()) >= min_member) continue;
    partial.insert(name);
    const auto [since, fresh] = partial_since.emplace(name, now());
    if (fresh || now() - since->second < options.bind_timeout_ns) continue;
    log.warn("a gang is partly bound for too long: it starts over",
             {{"gang", name}, {"bound", bound.size()}, {"min", min_member}});
    since->second = now();
    binder.back_off(name);
    for (const std::string& pod : bound) {
      const kinds::LivePod* live = world.objects().pod(pod);
      if (live == nullptr || live->owner().empty()) continue;
      binder.send_away(pod, "GangIncomplete", "its gang " + name + " does not fit as a whole");
    }
  }
  std::erase_if(partial_since, [&](const auto& entry) { return !partial.contains(entry.first); });
}

void Controller::State::write_down(const model::Decision& decision) {
  if (decisions == nullptr && input_log == nullptr && !options.name_decisions) return;
  const std::uint64_t digest = decision_digest(decision);
  if (digest == last_digest) return;
  last_digest = digest;
  const DecisionLine line{
      .cycle = cycles, .now_ns = loop.wall().now_ns(), .inputs = world.objects().digest()};
  last_decision = {decision_id(line, decision), line.now_ns, watches.version()};
  if (decisions != nullptr) decisions->write(decision_line(line, decision));
  if (input_log != nullptr) input_log->note("wrote", {{"id", last_decision.id}});
}

void Controller::State::keep_groups() {
  for (std::size_t n = 0; n < kMostGroupsAtOnce && !dirty_groups.empty(); ++n) {
    const std::string name = *dirty_groups.begin();
    dirty_groups.erase(dirty_groups.begin());
    const std::size_t slash = name.find('/');
    const kube::Key key{name.substr(0, slash), name.substr(slash + 1)};
    kinds::GroupCounts counts;
    world.objects().for_each_member(name, [&](const std::string&, const kinds::LivePod& pod) {
      ++counts.pods;
      counts.bound += pod.node.empty() ? 0 : 1;
      counts.running += pod.phase == "Running" ? 1 : 0;
      counts.succeeded += pod.phase == "Succeeded" ? 1 : 0;
      counts.failed += pod.phase == "Failed" ? 1 : 0;
      if (pod.finished() || !pod.body->valid) return;
      for (const auto& [resource, amount] : kinds::quota_requests(pod.body->object.spec, {})) {
        counts.requested[resource] += amount;
        if (!pod.node.empty()) counts.allocated[resource] += amount;
      }
    });
    if (const auto it = group_waits.find(name); it != group_waits.end()) {
      std::tie(counts.reason, counts.message) = it->second;
    }
    for (kube::Informer* informer : watches.groups()) {
      const kube::ObjectPtr object = informer->find(key);
      if (!object) continue;
      const Value* spec = object->root().find("spec");
      const Value* min = spec == nullptr ? nullptr : spec->find("minMember");
      if (min == nullptr) {
        min = find(object->root(), "spec.schedulingPolicy.gang.minCount");
      }
      if (min != nullptr) counts.min_member = static_cast<int>(min->as_int64().value_or(1));
      const kube::Resource& resource = informer->options().resource;
      std::string patch =
          kinds::group_status_patch(resource.group, object->root(), counts, loop.wall().now_ns());
      if (patch.empty()) continue;
      writer.add(
          WriteClass::kStatus, key.ns,
          [&resource, key, patch = std::move(patch)](kube::Client& c, kube::Client::Done done) {
            return c.patch(resource, key, kube::PatchType::kMerge, patch, {.subresource = "status"},
                           std::move(done));
          },
          [informer](kube::Answer answer) {
            if (answer.ok()) informer->absorb(std::move(answer.body));
          });
    }
  }
}

// ---- the outside ----

Controller::Controller(kube::Client& client, Random random, ControllerOptions options,
                       std::function<bool()> leading, const Logger& log, MetricsRegistry& metrics,
                       DecisionLog* decisions, WorldLog* inputs)
    : state_(std::make_unique<State>(client, random, std::move(options), std::move(leading), log,
                                     metrics, decisions, inputs)) {}
Controller::~Controller() = default;

void Controller::start() {
  if (state_->tick_timer != 0) return;
  state_->watches.start();
  state_->tick();
}

void Controller::wake() { state_->want_cycle(); }

ControllerSummary Controller::summary() const {
  const State& s = *state_;
  ControllerSummary out;
  out.synced = s.watches.synced();
  out.leading = s.led;
  out.cycles = s.cycles;
  out.bound = s.binder.bound();
  out.evicted = s.binder.evicted();
  out.failed_writes = s.writer.failed();
  out.nodes = s.world.objects().nodes();
  out.pending_pods = s.waiting;
  s.world.objects().for_each_pod([&out](const std::string&, const kinds::LivePod& pod) {
    out.running_pods += pod.node.empty() || pod.finished() ? 0 : 1;
  });
  out.trouble = s.trouble;
  out.last_cycle_ns = s.last_took;
  return out;
}

const LastDecision& Controller::last_decision() const { return state_->last_decision; }

kinds::Inputs Controller::inputs() const { return state_->world.objects().inputs(); }
std::shared_ptr<const kinds::ObjectSet> Controller::copy() const {
  return state_->world.objects().copy();
}
std::uint64_t Controller::revision() const { return state_->world.objects().revision(); }
std::map<std::string, int> Controller::counted() const { return state_->world.counted(); }
std::vector<Level> Controller::levels() const {
  const Writer& writer = state_->writer;
  const Notices& notices = state_->notices;
  return {{"writes under way", writer.in_flight(), writer.most_in_flight()},
          {"writes for people", writer.waiting(WriteClass::kTell), Writer::kMostTold},
          {"events remembered", notices.recent(), Notices::kMostRecent},
          {"pods that were told", notices.told(), Notices::kMostTold}};
}

}  // namespace berth::control
