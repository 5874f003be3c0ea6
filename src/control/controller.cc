#include "control/controller.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "control/binder.h"
#include "control/decision_line.h"
#include "control/finalizers.h"
#include "control/gangs.h"
#include "control/group_statuses.h"
#include "control/kueue_presence.h"
#include "control/policy_status.h"
#include "control/queue_keeper.h"
#include "control/rejected_pods.h"
#include "control/sick_gpus.h"
#include "control/wait_notices.h"
#include "control/watches.h"
#include "control/world.h"
#include "control/writer.h"
#include "text/path.h"

namespace berth::control {

namespace {

constexpr std::int64_t kTick = 1'000'000'000;
constexpr std::int64_t kQueueClock = 10 * kTick;  // rules of time: back-offs, timeouts
constexpr std::int64_t kLongPause = kTick / 4;    // after a cycle that was shorter than this
constexpr std::string_view kKueueGroup = "kueue.x-k8s.io";

}  // namespace

struct Controller::State {
  State(kube::Client& client, Random random, ControllerOptions options_in,
        std::function<bool()> leading_in, const Logger& log, MetricsRegistry& metrics,
        DecisionLog* decisions_in, WorldLog* inputs_in)
      : loop(client.loop()),
        options(std::move(options_in)),
        leading(std::move(leading_in)),
        decisions(decisions_in),
        input_log(inputs_in),
        world(options.scheduler_names, random.split("bodies").next(), options.policy),
        writer(loop.monotonic(), client, leading, options.max_writes_at_once, metrics),
        notices(loop, random.split("events"), writer),
        common{.loop = loop,
               .world = world,
               .writer = writer,
               .notices = notices,
               .log = log,
               .metrics = metrics,
               .acting = [this] { return led && leading() && watches.synced(); },
               .queues_are_ours = [this] { return kueue.queues_are_ours(); }},
        watches(
            client, random.split("watches"), metrics,
            [this](const kube::Resource& r, const kube::ObjectPtr& before,
                   const kube::ObjectPtr& after) { changed(r, before, after); },
            [this] {
              tell_webhook();
              want_cycle();
            }),
        kueue(common, options.manage_queues, options.board),
        binder(common, watches.of("", "Pod"), options.bind_timeout_ns, [this] { want_cycle(); }),
        finalizers(common),
        rejected_pods(common, binder),
        gangs(common, binder, options.bind_timeout_ns),
        sick_gpus(common, binder, {options.sick_gpus, options.heed_notices}),
        groups(common, watches),
        waits(common),
        policy(common, watches.of("berth.dev", "BerthPolicy"), options.policy.words),
        keeper(common, binder,
               {[this](const kinds::KindRow& row) -> kube::Informer& {
                  return watches.of(row.group, row.kind);
                },
                watches.of(kKueueGroup, "Workload"), watches.of(kKueueGroup, "ClusterQueue"),
                watches.of(kKueueGroup, "LocalQueue"), watches.of("", "Pod")}),
        parts{&kueue,  &finalizers, &rejected_pods, &gangs,  &sick_gpus,
              &groups, &waits,      &policy,        &keeper, &binder},
        cycles_metric(
            metrics.counter({.name = "berth_controller_cycles_total", .help = "Decision cycles."})
                .get()),
        duration_metric(metrics
                            .histogram({.name = "berth_controller_cycle_seconds",
                                        .help = "How long a decision cycle takes.",
                                        .buckets = {0.0001, 0.001, 0.005, 0.02, 0.1, 0.5, 2, 10}})
                            .get()),
        postponed_metric(metrics
                             .counter({.name = "berth_controller_cut_cycles_total",
                                       .help = "Cycles that left part of what waits to the next."})
                             .get()) {
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
  bool take_in(const Change& change);  // into the world; true: there is something to decide
  bool is_ours(const text::Value& pod) const;
  Change::PodBefore known_of(const kube::Key& pod) const;
  void want_cycle();
  void tell_webhook();
  void tick();
  void cycle();
  bool may_decide();
  void lose_lead();
  bool queues_due() const;  // by the clock alone
  void decide_queues(model::Decision& decision);
  void know_members();
  void write_down(const model::Decision& decision);

  Loop& loop;
  const ControllerOptions options;
  std::function<bool()> leading;
  DecisionLog* decisions;
  WorldLog* input_log;
  World world;
  Writer writer;
  Notices notices;
  Common common;
  Watches watches;

  KueuePresence kueue;
  Binder binder;
  Finalizers finalizers;
  RejectedPods rejected_pods;
  Gangs gangs;
  SickGpus sick_gpus;
  GroupStatuses groups;
  WaitNotices waits;
  PolicyStatus policy;
  QueueKeeper keeper;
  // In the order in which they hear of a change: who writes what waited for it is the last.
  const std::vector<Part*> parts;

  Counter cycles_metric;
  Histogram duration_metric;
  Counter postponed_metric;
  Loop::Timer cycle_timer = 0, tick_timer = 0;
  std::int64_t last_end = INT64_MIN / 2, last_took = 0;
  std::int64_t paused_until = 0;
  int pauses = 0;
  bool led = false, wanted = false;
  bool room = false;   // may have grown since queues were decided
  bool again = false;  // a write met something newer: queues are compared once more
  std::int64_t queues_at = INT64_MIN / 2;
  std::uint64_t cycles = 0;
  std::uint64_t last_digest = 0;
  LastDecision last_decision;
  model::Decision queue_decision;  // the last of queues, but for what has been carried out
  Decided::Members queue_members;
  std::vector<std::pair<std::string, std::string>> beyond;  // kinds::Inputs
  std::string trouble = "starting";
};

// ---- what the API tells ----

void Controller::State::changed(const kube::Resource& resource, const kube::ObjectPtr& before,
                                const kube::ObjectPtr& after) {
  const kube::Key& key = (after ? after : before)->key;
  Change change{.resource = resource, .key = key, .object = after ? &after->root() : nullptr};
  if (change.is("Pod")) {
    change.ours = after && is_ours(after->root());
    change.before = known_of(key);
  }
  bool news = take_in(change);
  for (Part* part : parts) news = part->changed(change) || news;
  if (news) want_cycle();
}

bool Controller::State::is_ours(const text::Value& pod) const {
  const std::string_view name = text_at(pod, "spec.schedulerName");
  const auto& ours = options.scheduler_names;
  return std::find(ours.begin(), ours.end(), name) != ours.end();
}

Change::PodBefore Controller::State::known_of(const kube::Key& pod) const {
  const std::string name = pod.to_string();
  const kinds::LivePod* live = world.objects().pod(name);
  if (live == nullptr) return {};
  const model::PodSpec& spec = live->body->object.spec;
  const bool ours = !live->foreign && !live->finished();
  return {.known = true,
          .ours = ours,
          .bound = !live->node.empty(),
          .running = live->phase == "Running",
          .gated = spec.gated,
          .wants_gpus = spec.gpu.kind != model::GpuDemandSpec::Kind::kNone,
          .uid = live->uid,
          .gang = ours ? world.gang_of(name) : std::string(),
          .group = live->group()};
}

bool Controller::State::take_in(const Change& change) {
  using kinds::Effect;
  const kube::Key& key = change.key;
  if (change.is("ConfigMap") || change.is("Lease")) return false;  // Kueue's own
  const std::string version = change.resource.api_version();
  Effect effect = change.object != nullptr
                      ? world.put(version, change.resource.kind, *change.object)
                      : world.remove(version, change.resource.kind, key.ns, key.name);
  if (change.is("Node") || change.is("GpuNode")) room = room || effect == Effect::kNow;
  if (!change.is("Pod")) return effect == Effect::kNow;
  const std::string name = change.name();
  const kinds::LivePod* live = world.objects().pod(name);
  if (change.before.bound && (live == nullptr || live->node.empty() || live->finished())) {
    room = true;
  }
  if (world.assumed(name) == nullptr) return effect == Effect::kNow;
  if (world.confirm(name)) return false;
  return effect == Effect::kNow || change.before.gated;  // without its gates it can be bound
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

// What was read in part would let in what the rest forbids.
void Controller::State::tell_webhook() {
  if (watches.synced()) kueue.tell_webhook();
}

void Controller::State::tick() {
  tick_timer = loop.after(kTick, [this] { tick(); });
  tell_webhook();
  const bool leads = leading();
  if (leads != led) want_cycle();
  if (!leads || !watches.synced()) return;
  again = writer.tick(now()) || again;
  for (Part* part : parts) {
    if (part->tick(now())) want_cycle();
  }
  if (world.end_holds(now())) want_cycle();
  if (!world.reservations().empty()) want_cycle();
  if (world.objects().has_queues() && queues_due()) want_cycle();
}

bool Controller::State::queues_due() const {
  const bool ours = kueue.queues_are_ours();
  return now() - queues_at >= kQueueClock || (ours && (again || keeper.due(now())));
}

void Controller::State::lose_lead() {
  led = false;
  writer.clear();
  world.forget_everything();
  for (Part* part : parts) part->clear();
  notices.clear();
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
  if (std::string why = kueue.trouble(); !why.empty()) trouble = std::move(why);
  return true;
}

// ---- a cycle ----

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
  std::vector<kinds::Note> refused, unread;
  world.refresh(refused, unread);
  waits.tell_unread(refused, unread);
  const bool queues =
      world.objects().has_queues() &&
      (world.objects().queues_changed() || (room && keeper.pending() > 0) || queues_due());
  if (queues) world.read_queues();
  const bool ours = kueue.queues_are_ours();
  if (ours) {
    if (queues) keeper.restore_places();
    for (auto& [pod, where] : keeper.take_places(options.bind_timeout_ns)) {
      binder.place(pod, std::move(where));
    }
  }
  model::Decision decision = world.decide(loop.wall().now_ns());
  binder.carry_out(decision);
  if (queues && ours) decide_queues(decision);
  if (queues) {
    queues_at = now();
    again = false;
  } else if (!world.objects().has_queues()) {
    queue_decision = {};
  }
  decision.outcomes.insert(decision.outcomes.end(), queue_decision.outcomes.begin(),
                           queue_decision.outcomes.end());
  binder.flush();
  for (Part* part : parts) part->decided({decision, queue_members, beyond});
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

void Controller::State::decide_queues(model::Decision& decision) {
  std::optional<model::Decision> more = world.decide_queues(loop.wall().now_ns(), again);
  const bool same = !more;
  if (more) queue_decision = std::move(*more);
  for (const model::Placement& p : keeper.keep(queue_decision, {.all = again, .same = same})) {
    const kinds::LivePod* live = world.objects().pod(p.pod);
    // One of another scheduler is let in, and placed by that.
    if (live == nullptr || !live->node.empty() || live->foreign) continue;
    binder.place(p.pod, {.uid = live->uid, .node = p.node, .gang = p.gang, .gpus = p.gpus});
  }
  know_members();
  for (model::Placement& p : std::exchange(queue_decision.placements, {})) {
    decision.placements.push_back(std::move(p));
  }
  decision.admissions = std::exchange(queue_decision.admissions, {});
  decision.evictions = std::exchange(queue_decision.evictions, {});
  room = false;
}

// Pods that stand in a queue as they are: those of a Job that waits are not made yet.
void Controller::State::know_members() {
  queue_members.clear();
  beyond = world.queues().beyond;
  for (const auto& spec : world.queues().workloads) {
    if (spec->admitted) continue;
    for (const model::PodSetSpec& set : spec->pod_sets) {
      if (set.pods.empty()) continue;
      auto& pods = queue_members[spec->ns + '/' + spec->name];
      pods.insert(pods.end(), set.pods.begin(), set.pods.end());
    }
  }
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
  out.failed_writes = s.writer.failures();
  out.nodes = s.world.objects().nodes();
  out.pending_pods = s.waits.waiting();
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
