#include "agent/mig_keeper.h"

#include <algorithm>
#include <filesystem>
#include <set>
#include <system_error>
#include <utility>

#include "agent/mig_intent.h"
#include "base/crash_point.h"
#include "edge/host/host.h"

namespace berth::agent {

namespace {

using partition::MigGpu;
using partition::MigPlan;
using partition::MigReason;
using partition::MigStep;
using partition::MigUse;
using partition::MigWish;
using Wishes = std::map<std::string, MigWish>;

constexpr int kMostSettles = 5;  // inventories that are waited for after a change

}  // namespace

struct MigKeeper::State : std::enable_shared_from_this<State> {
  State(Loop& loop_in, partition::MigDriver& driver_in, MigKeeperOptions options_in,
        MigWorld world_in, const Logger& log_in, MetricsRegistry& metrics)
      : loop(loop_in),
        driver(driver_in),
        options(std::move(options_in)),
        world(std::move(world_in)),
        log(log_in),
        changes(metrics.counter({.name = "berth_agent_mig_changes_total",
                                 .help = "Changes of MIG layouts, by outcome.",
                                 .labels = {"outcome"}})) {}

  Loop& loop;
  partition::MigDriver& driver;
  const MigKeeperOptions options;
  const MigWorld world;
  const Logger& log;
  CounterFamily& changes;

  // ---- what is wanted
  std::string declared, config_problem;
  bool declaration_known = false;
  std::shared_ptr<const partition::MigConfig> config;
  std::optional<model::GpuInventory> inventory;

  // ---- what is done
  std::optional<MigIntent> intent;  // as in the file
  std::vector<MigGpu> seen;         // at the last look
  bool looked = false;              // once at least
  bool under_way = false;           // a look or a step is asked for
  bool again = false;               // something changed meanwhile
  bool rewished = false;            // what is wanted did
  bool backing_off = false;         // after a failure, until the timer
  bool check_posted = false;
  std::vector<MigStep> steps;
  std::size_t next_step = 0;
  int failures = 0, silent_looks = 0;
  std::string failure;      // of the last step
  std::string given_up_on;  // what the driver failed at for good: not tried until it differs
  Loop::Timer retry = 0;
  std::set<std::string> changing, kept;
  bool settling = false;  // done; the inventory does not show it yet
  int settles = 0;
  std::optional<MigUse> last_use;
  MigShown shown;

  template <class F>
  auto mine(F work) {
    return [weak = weak_from_this(), work](auto&&... values) {
      if (const auto self = weak.lock()) work(*self, std::forward<decltype(values)>(values)...);
    };
  }

  std::string intent_path() const { return options.state_dir + "/mig-intent.json"; }
  void start();
  void check_later();
  void check();
  bool is_so_by_inventory() const;
  bool holders_unknown();
  Result<Wishes> declared_wishes(const std::vector<MigGpu>& gpus) const;
  void look();
  void looked_at(Result<std::vector<MigGpu>> found);
  void decide();
  void settle(MigReason reason, const std::string& refusal);
  void begin(const MigPlan& plan, bool back);
  Status keep_intent(const MigPlan& plan);
  void drop_intent();
  void take_step();
  void stepped(const Status& done);
  void failed(const std::string& why);
  void retry_in(std::int64_t delay_ns);
  void show(std::string state, std::string reason, std::string text);
  void release();
  std::string attempt() const;
};

void MigKeeper::State::start() {
  if (!options.state_dir.empty()) {
    const Result<std::string> text = host::read_text(intent_path(), 1 << 20);
    if (text.ok()) {
      Result<MigIntent> read = read_intent(*text);
      if (!read.ok()) {
        log.warn("the note of a MIG change that was cut off is damaged: what was before is unknown",
                 {{"file", intent_path()}, {"error", read.error().to_string()}});
        read = MigIntent{};
      }
      intent = std::move(*read);
      log.warn("a change of MIG layouts was cut off: it is carried on",
               {{"layout", intent->layout}});
      for (const auto& [uuid, wish] : intent->before) changing.insert(uuid);
      // Until it is heard what is declared now; an API server may be away for long.
      if (!declaration_known) declared = intent->layout;
    }
  }
  check_later();
}

void MigKeeper::State::check_later() {
  if (std::exchange(check_posted, true)) return;
  loop.post(mine([](State& self) {
    self.check_posted = false;
    self.check();
  }));
}

Result<Wishes> MigKeeper::State::declared_wishes(const std::vector<MigGpu>& gpus) const {
  if (!config_problem.empty()) return invalid(config_problem);
  partition::MigLayout layout;
  if (config == nullptr) {
    BERTH_TRY(layout, partition::usual_layout(declared, gpus));
  } else {
    const auto found = config->find(declared);
    if (found == config->end()) {
      std::string names;
      for (const auto& [name, entries] : *config) names += (names.empty() ? "" : ", ") + name;
      return Error(Code::kNotFound,
                   "found layout \"" + declared + "\", want one of " +
                       (names.size() > 512 ? names.substr(0, 512) + "..." : names));
    }
    layout = found->second;
  }
  Result<Wishes> out = partition::wishes(layout, gpus);
  return std::move(out).context(declared);
}

// Without asking the driver: a helper process for every change of an inventory is too much.
bool MigKeeper::State::is_so_by_inventory() const {
  if (!inventory || intent || (config == nullptr && !looked)) return false;
  std::vector<MigGpu> gpus;
  for (const model::GpuDevice& gpu : inventory->gpus) {
    const auto known = std::find_if(seen.begin(), seen.end(),
                                    [&](const MigGpu& one) { return one.uuid == gpu.uuid; });
    if (config == nullptr && known == seen.end()) return false;
    gpus.push_back(partition::mig_gpu_of(
        gpu, known == seen.end() ? partition::MigGeometry{} : known->geometry));
  }
  const Result<Wishes> wanted = declared_wishes(gpus);
  if (!wanted.ok()) return false;
  return std::all_of(gpus.begin(), gpus.end(), [&](const MigGpu& gpu) {
    const auto wish = wanted->find(gpu.uuid);
    if (wish == wanted->end()) return true;
    if (!gpu.capable && !wish->second.enabled) return true;
    const bool whole =
        std::all_of(gpu.cuts.begin(), gpu.cuts.end(),
                    [](const partition::MigCut& cut) { return cut.compute.size() == 1; });
    return whole && partition::wish_of(gpu) == wish->second;
  });
}

void MigKeeper::State::check() {
  if (under_way || !steps.empty() || (backing_off && !rewished)) {
    again = true;
    return;
  }
  if (!inventory || (!declaration_known && !intent)) return;  // too early
  if (declared.empty() && !intent) {
    if (!settling) release();
    return show("", "", "");
  }
  if (!declared.empty() && is_so_by_inventory()) {
    given_up_on.clear();
    release();
    return show("success", "LayoutApplied", "the GPUs are cut as declared");
  }
  if (!intent && !given_up_on.empty() && given_up_on == attempt()) return;
  if (holders_unknown()) return;  // a look costs a process
  look();
}

bool MigKeeper::State::holders_unknown() {
  last_use = world.use();
  if (last_use) return false;
  show("pending", "HoldersUnknown", "the kubelet has not told yet which devices pods hold");
  return true;
}

void MigKeeper::State::look() {
  loop.cancel(std::exchange(retry, 0));
  under_way = true;
  again = rewished = backing_off = false;
  driver.look(mine(
      [](State& self, Result<std::vector<MigGpu>> found) { self.looked_at(std::move(found)); }));
}

void MigKeeper::State::looked_at(Result<std::vector<MigGpu>> found) {
  under_way = false;
  if (!found.ok()) {
    show("pending", "MigDriverUnavailable", found.error().to_string());
    backing_off = true;
    return retry_in(options.first_retry_ns << std::min(++silent_looks, 6));
  }
  silent_looks = 0;
  seen = std::move(*found);
  looked = true;
  decide();
}

// What the driver was asked to make.
std::string MigKeeper::State::attempt() const {
  std::string out = declared + '\n';
  if (config == nullptr || !config->contains(declared)) return out;
  for (const partition::MigEntry& entry : config->at(declared)) {
    out += describe(entry.wish) + (entry.all_devices ? " all" : "");
    for (const int index : entry.devices) out += " " + std::to_string(index);
    for (const std::uint32_t device : entry.filter) out += " " + std::to_string(device);
    out += '\n';
  }
  return out;
}

void MigKeeper::State::decide() {
  rewished = false;
  if (holders_unknown()) return;
  const std::optional<MigUse>& use = last_use;
  MigPlan plan;
  const bool tried_enough = failures >= options.tries;
  const Result<Wishes> wanted = declared.empty() ? Result<Wishes>(Wishes()) : declared_wishes(seen);
  if (!wanted.ok()) {
    plan.reason = MigReason::kBadLayout;
    plan.refusal = wanted.error().to_string();
  } else if (!declared.empty()) {
    plan = partition::plan_mig(seen, *wanted, *use);
  }
  if (!declared.empty() && !plan.refused() && !tried_enough) {
    if (plan.steps.empty()) return settle(MigReason::kNone, "");
    return begin(plan, false);
  }
  // Refused, or nothing is declared: what a change that was cut off left is put back.
  const std::string refusal = plan.refused() ? plan.refusal : failure;
  const MigReason reason = plan.reason;
  if (intent && failures < 2 * options.tries) {
    const MigPlan back = partition::plan_mig(seen, intent->before, *use);
    if (!back.refused() && !back.steps.empty()) return begin(back, true);
    if (back.refused()) log.warn("what was before cannot be put back", {{"why", back.refusal}});
  }
  settle(reason, refusal);
}

// Nothing more is to be done.
void MigKeeper::State::settle(MigReason reason, const std::string& refusal) {
  const bool met = reason == MigReason::kNone && refusal.empty();
  const bool stuck = !met && failures >= 2 * options.tries;  // not even what was before
  if (intent && !stuck) drop_intent();
  if (!changing.empty() && !settling) changes.with({met ? "applied" : "failed"}).add();
  if (declared.empty()) {
    show("", "", "");
  } else if (met) {
    given_up_on.clear();
    show("success", "LayoutApplied", "the GPUs are cut as declared");
  } else {
    show("failed", std::string(reason == MigReason::kNone ? "MigFailed" : name(reason)), refusal);
  }
  failures = 0;
  failure.clear();
  if (!changing.empty()) {
    // Also when it was so before: an inventory that came during the look was not heard.
    if (!std::exchange(settling, true)) settles = 0;
    world.look_again();
  }
  if (!met && !declared.empty()) {
    if (reason == MigReason::kNone) given_up_on = attempt();
    retry_in(options.give_up_ns);
  }
  if (again) check_later();
}

Status MigKeeper::State::keep_intent(const MigPlan& plan) {
  MigIntent wanted = intent.value_or(MigIntent{});
  wanted.layout = declared;
  for (const std::string& uuid : plan.changing) {
    for (const MigGpu& gpu : seen) {
      // The first note of a GPU holds what was good; later ones may be of a half-done change.
      if (gpu.uuid == uuid) wanted.before.try_emplace(uuid, partition::wish_of(gpu));
    }
  }
  if (intent == wanted) return {};
  if (!options.state_dir.empty()) {
    BERTH_CHECK(host::write_atomically(intent_path(), write_intent(wanted), 0600));
  }
  intent = std::move(wanted);
  return {};
}

void MigKeeper::State::drop_intent() {
  BERTH_CRASH_POINT("mig-before-done");
  if (!options.state_dir.empty()) {
    std::error_code failed;
    std::filesystem::remove(intent_path(), failed);
    // It stays then, and the next agent finds that there is nothing to do.
    if (failed) log.warn("the note of a MIG change stays", {{"why", failed.message()}});
  }
  intent.reset();
}

void MigKeeper::State::begin(const MigPlan& plan, bool back) {
  if (const Status kept_note = keep_intent(plan); !kept_note.ok()) {
    // Without the note a crash could not be made good: nothing is begun.
    failures = 0;
    show("failed", "MigFailed", kept_note.error().to_string());
    given_up_on = attempt();
    return retry_in(options.give_up_ns);
  }
  BERTH_CRASH_POINT("mig-after-intent");
  settling = false;
  steps = plan.steps;
  next_step = 0;
  changing.insert(plan.changing.begin(), plan.changing.end());
  kept = {plan.kept.begin(), plan.kept.end()};
  log.info(back ? "MIG layouts go back to what they were" : "MIG layouts change",
           {{"layout", declared}, {"steps", steps.size()}});
  show(
      "pending", back ? "MigGoingBack" : "MigChanging",
      std::to_string(steps.size()) + " steps on " + std::to_string(plan.changing.size()) + " GPUs");
  world.changed();  // devices are out of the lists before the first step
  take_step();
}

void MigKeeper::State::take_step() {
  BERTH_CRASH_POINT("mig-before-step");
  under_way = true;
  driver.carry_out(steps[next_step],
                   mine([](State& self, const Status& done) { self.stepped(done); }));
}

void MigKeeper::State::stepped(const Status& done) {
  under_way = false;
  BERTH_CRASH_POINT("mig-after-step");
  const MigStep& step = steps[next_step];
  if (!done.ok()) {
    log.warn("a step of a MIG change failed",
             {{"step", describe(step)}, {"error", done.error().to_string()}});
    return failed(describe(step) + ": " + done.error().to_string());
  }
  log.info("MIG step", {{"step", describe(step)}});
  ++next_step;
  // Another wish meanwhile: the rest of this plan is not what is wanted.
  if (next_step < steps.size() && !rewished) return take_step();
  steps.clear();
  look();
}

void MigKeeper::State::failed(const std::string& why) {
  steps.clear();
  failure = why;
  ++failures;
  show("pending", "MigRetrying", why);
  backing_off = true;
  retry_in(options.first_retry_ns << std::min(failures, 6));
}

void MigKeeper::State::retry_in(std::int64_t delay_ns) {
  loop.cancel(retry);
  retry = loop.after(delay_ns, mine([](State& self) {
                       self.retry = 0;
                       self.backing_off = false;
                       self.given_up_on.clear();
                       if (!self.under_way && self.steps.empty()) self.look();
                     }));
}

void MigKeeper::State::show(std::string state, std::string reason, std::string text) {
  MigShown now{declared, std::move(state), std::move(reason), std::move(text)};
  if (now.text.size() > 1'000) now.text.resize(1'000);
  if (now == shown) return;
  const bool news = now.state != shown.state || now.reason != shown.reason;
  shown = std::move(now);
  if (news && !shown.state.empty()) {
    log.info("MIG layout", {{"layout", shown.layout},
                            {"state", shown.state},
                            {"reason", shown.reason},
                            {"text", shown.text}});
    world.tell(shown.state == "failed", shown.reason,
               "MIG layout " + shown.layout + ": " + shown.text);
  }
  world.changed();
}

// Devices may be handed out again.
void MigKeeper::State::release() {
  settling = false;
  if (changing.empty()) return;
  changing.clear();
  kept.clear();
  world.changed();
}

MigKeeper::MigKeeper(Loop& loop, partition::MigDriver& driver, MigKeeperOptions options,
                     MigWorld world, const Logger& log, MetricsRegistry& metrics)
    : state_(std::make_shared<State>(loop, driver, std::move(options), std::move(world), log,
                                     metrics)) {}

MigKeeper::~MigKeeper() { state_->loop.cancel(state_->retry); }

void MigKeeper::start() { state_->start(); }

void MigKeeper::declare(const std::string& layout) {
  const bool first = !std::exchange(state_->declaration_known, true);
  if (first) state_->check_later();
  if (state_->declared == layout) return;
  state_->declared = layout;
  state_->failures = 0;
  state_->rewished = true;
  state_->check_later();
}

void MigKeeper::set_config(std::shared_ptr<const partition::MigConfig> config) {
  state_->config_problem.clear();
  state_->config = std::move(config);
  state_->failures = 0;
  state_->rewished = true;
  state_->check_later();
}

void MigKeeper::set_config_problem(const std::string& problem) {
  state_->config_problem = problem;
  state_->rewished = true;
  state_->check_later();
}

void MigKeeper::inventory_came(const model::GpuInventory& inventory) {
  State& state = *state_;
  const bool differs = !state.inventory || *state.inventory != inventory;
  if (differs) state.inventory = inventory;
  if (state.settling && !state.under_way && state.steps.empty()) {
    const bool shows = std::all_of(state.seen.begin(), state.seen.end(), [&](const MigGpu& gpu) {
      return std::any_of(
          inventory.gpus.begin(), inventory.gpus.end(), [&](const model::GpuDevice& one) {
            return one.uuid == gpu.uuid && partition::wish_of(one) == partition::wish_of(gpu);
          });
    });
    if (shows || ++state.settles >= kMostSettles) {
      state.release();
    } else {
      state.world.look_again();
    }
  }
  if (differs) state.check_later();
}

void MigKeeper::use_changed() {
  State& state = *state_;
  // Only who waits for holders, or for their going, needs to know.
  if (!state.intent && (state.shown.state == "success" || state.declared.empty())) return;
  const std::optional<MigUse> now = state.world.use();
  if (now != state.last_use) state.check_later();
}

bool MigKeeper::withheld(const std::string& gpu, const std::string& device) const {
  return state_->changing.contains(gpu) && !state_->kept.contains(device);
}
bool MigKeeper::changing() const { return !state_->changing.empty(); }
const MigShown& MigKeeper::shown() const { return state_->shown; }

}  // namespace berth::agent
