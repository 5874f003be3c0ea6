// The queue engine against the judge: the same worlds, the same operations, the same decisions.
//
//   queue_engine_vs_judge_test [--worlds N] [--seed S]: N worlds of each mix (default 400).
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <set>
#include <string>

#include "decide/admit/engine.h"
#include "judge/queue_generate.h"
#include "judge/queue_judge.h"

namespace berth::judging {
namespace {

int g_worlds = 400 / BERTH_JUDGE_SHARE;
std::uint64_t g_seed = 1;
std::uint64_t g_only = 0;
std::int64_t g_decisions = 0;

class Pair {
 public:
  explicit Pair(const model::QueueInputs& inputs)
      : book_(inputs),
        engine_(book_, nullptr, {.start_ns = kQueuesAt, .settles = false}),
        judge_(inputs, kQueuesAt) {
    for (const auto& spec : inputs.workloads) add_to_engine(spec);
  }

  void add(const model::WorkloadSpec& spec) {
    judge_.add(spec);
    add_to_engine(spec);
  }
  void finish(const std::string& workload) {
    judge_.finish(workload);
    engine_.finish(ids_.at(workload));
    leaving_.erase(std::remove(leaving_.begin(), leaving_.end(), ids_.at(workload)),
                   leaving_.end());
  }
  void evictions_done(std::int64_t now) {
    judge_.evictions_done();
    // In the order of names, as nothing else orders them.
    std::sort(leaving_.begin(), leaving_.end(), [&](admit::WorkloadId a, admit::WorkloadId b) {
      return engine_.workload(a).name < engine_.workload(b).name;
    });
    for (const auto id : leaving_) engine_.gone(id, now);
    leaving_.clear();
  }

  // What differs, or nothing.
  std::string cycle(std::int64_t now) {
    const QueueCycle judged = judge_.cycle(now);
    const admit::CycleResult found = engine_.cycle(now);
    g_decisions += found.tried;
    std::string theirs, ours;
    for (const auto& a : judged.admitted) theirs += show(a.workload, a.admission) + "\n";
    for (const auto id : found.admitted) ours += show(id) + "\n";
    // Who goes is a decision, in which order they are named is not.
    std::set<std::string> their_victims, our_victims;
    for (const auto& p : judged.preempted) {
      their_victims.insert(p.workload + " by " + p.by + " " + p.reason + "\n");
    }
    for (const auto& e : found.evicted) {
      our_victims.insert(engine_.workload(e.id).name + " by " + engine_.workload(e.by).name + " " +
                         std::string(admit::name(e.cause)) + "\n");
      leaving_.push_back(e.id);
    }
    for (const auto& line : their_victims) theirs += line;
    for (const auto& line : our_victims) ours += line;
    if (theirs != ours) {
      std::string left;
      for (const auto& l : judged.left) {
        left += l.workload + " " + l.reason + " " + l.detail + (l.parked ? " parked\n" : "\n");
      }
      std::string why;
      for (const auto& l : judged.left) {
        why += l.workload + ": " + engine_.workload(ids_.at(l.workload)).message + "\n";
      }
      return "judge:\n" + theirs + "engine:\n" + ours + "judge left:\n" + left + "engine says:\n" +
             why;
    }
    return places();
  }

  void trace() const {
    for (const auto& [name, id] : ids_) {
      const admit::Workload& w = engine_.workload(id);
      std::string tried;
      for (const auto t : w.progress.tried) tried += std::to_string(t) + " ";
      std::printf("  %s local %.17g q%d prio %d order %lld uid %s %s judge %s [%s] %s\n",
                  name.c_str(),
                  w.local == admit::kNoId ? -1.0 : engine_.ledger().local_usage[w.local],
                  static_cast<int>(w.queue), w.form ? w.priority() : -1,
                  static_cast<long long>(w.order_ns / 1000000000), w.uid.c_str(), place(id).c_str(),
                  judge_.place(name).c_str(), tried.c_str(), w.message.c_str());
    }
  }
  std::string check() const {
    if (const std::string wrong = judge_.check(); !wrong.empty()) return "judge: " + wrong;
    if (const std::string wrong = engine_.check(); !wrong.empty()) return "engine: " + wrong;
    return "";
  }
  std::vector<std::string> holders() const {
    std::vector<std::string> out;
    for (const auto& [name, id] : ids_) {
      if (admit::holds_quota(engine_.workload(id).stage)) out.push_back(name);
    }
    return out;
  }

 private:
  void add_to_engine(const model::WorkloadSpec& spec) {
    ids_[spec.ns + '/' + spec.name] = engine_.add(spec, kQueuesAt);
  }

  static std::string show(const std::string& name, const model::AdmissionSpec& admission) {
    std::string out = name + " in " + admission.queue;
    for (const auto& set : admission.pod_sets) {
      out += " " + set.name + "x" + std::to_string(set.count);
      for (const auto& [resource, flavor] : set.flavors) out += " " + resource + "@" + flavor;
    }
    return out;
  }
  std::string show(admit::WorkloadId id) const {
    const admit::Workload& w = engine_.workload(id);
    model::AdmissionSpec out;
    out.queue = book_.queue(w.queue).spec.name;
    for (std::size_t i = 0; i < w.admission.size(); ++i) {
      model::PodSetAdmission set;
      set.name = w.form->pod_sets[i].name;
      set.count = w.admission[i].count;
      for (const auto& [resource, flavor] : w.admission[i].flavors) {
        set.flavors[book_.resource(resource)] = book_.flavor(flavor).name;
      }
      out.pod_sets.push_back(std::move(set));
    }
    return show(w.name, out);
  }

  std::string place(admit::WorkloadId id) const {
    const admit::Workload& w = engine_.workload(id);
    switch (w.stage) {
      case admit::Stage::kHeld:
        return w.hold == admit::Hold::kBackoff ? "parked" : "out";
      case admit::Stage::kWaiting:
        return engine_.is_parked(id) ? "parked" : "heap";
      case admit::Stage::kReserved:
      case admit::Stage::kAdmitted:
        return "holding";
      case admit::Stage::kEvicting:
        return "leaving";
      case admit::Stage::kFinished:
        return "gone";
    }
    return "?";
  }
  std::string places() const {
    for (const auto& [name, id] : ids_) {
      std::string judged = judge_.place(name);
      const std::string ours = place(id);
      const bool idle = ours == "out" && (judged == "heap" || judged == "parked") &&
                        engine_.workload(id).hold == admit::Hold::kQueueInactive;
      // Evicted in the input: the judge calls that holding.
      const bool evicted = ours == "leaving" && judged == "holding" &&
                           std::find(leaving_.begin(), leaving_.end(), id) == leaving_.end();
      if (judged != ours && !idle && !evicted) {
        return name + ": judge has it " + judged + ", engine " + ours + " (" +
               engine_.workload(id).message + ")";
      }
    }
    return "";
  }

  admit::Book book_;
  admit::Engine engine_;
  QueueJudge judge_;
  std::map<std::string, admit::WorkloadId> ids_;
  std::vector<admit::WorkloadId> leaving_;
};

void compare(const QueueMix& mix) {
  for (int world = 0; world < g_worlds; ++world) {
    const std::uint64_t seed = g_seed * 1'000'000 + static_cast<std::uint64_t>(world);
    if (g_only != 0 && seed != g_only) continue;
    Random random(seed);
    const model::QueueInputs inputs = generate_queues(random, mix);
    Pair pair(inputs);
    std::int64_t now = kQueuesAt;
    for (int step = 0; step < 24; ++step) {
      now += 1'000'000'000;
      const QueueOperation op =
          random_operation(random, mix, inputs, pair.holders(), 1000 + step, now);
      std::string wrong;
      switch (op.kind) {
        case QueueOperation::Kind::kCycle:
          wrong = pair.cycle(now);
          break;
        case QueueOperation::Kind::kEvictionsDone:
          pair.evictions_done(now);
          break;
        case QueueOperation::Kind::kFinish:
          pair.finish(op.workload);
          break;
        case QueueOperation::Kind::kAdd:
          pair.add(op.spec);
          break;
      }
      if (std::getenv("TRACE") != nullptr) {
        std::printf("step %d op %d %s %s\n", step, static_cast<int>(op.kind), op.workload.c_str(),
                    op.spec.name.c_str());
        pair.trace();
      }
      if (wrong.empty()) wrong = pair.check();
      ASSERT_EQ(wrong, "") << "seed " << seed << " step " << step;
    }
  }
}

TEST(QueueEngineVsJudge, Classical) {
  QueueMix mix;
  mix.fair_sharing = false;
  compare(mix);
}
TEST(QueueEngineVsJudge, FairSharing) {
  QueueMix mix;
  mix.fair_sharing = true;
  compare(mix);
}
TEST(QueueEngineVsJudge, AdmissionFairSharing) {
  QueueMix mix;
  mix.admission_fair_sharing = true;
  compare(mix);
}
TEST(QueueEngineVsJudge, Plain) {
  QueueMix mix;
  mix.fair_sharing = false;
  mix.max_levels = 1;
  mix.odd_percent = 0;
  mix.choosy_percent = 0;
  mix.several_sets_percent = 0;
  mix.min_count_percent = 0;
  compare(mix);
}

// ---- the engine alone ----

// What must hold whatever happened; empty when it does.
std::string broken_invariant(const admit::Engine& engine) {
  if (const std::string wrong = engine.check(); !wrong.empty()) return wrong;
  std::vector<int> in_line(engine.size(), 0);
  for (admit::QueueId q = 0; q < engine.book().queues().size(); ++q) {
    for (const auto id : engine.pending(q)) ++in_line[id];
  }
  std::vector<int> seated(engine.size(), 0);
  for (const auto& holders : engine.ledger().holders) {
    for (const auto id : holders) ++seated[id];
  }
  for (admit::WorkloadId id = 0; id < engine.size(); ++id) {
    const admit::Workload& w = engine.workload(id);
    if (in_line[id] != (w.stage == admit::Stage::kWaiting ? 1 : 0)) {
      return w.name + " is in line " + std::to_string(in_line[id]) + " times and " +
             std::string(admit::name(w.stage));
    }
    if (seated[id] != (admit::holds_quota(w.stage) ? 1 : 0)) return w.name + " sits twice or not";
    if (!admit::holds_quota(w.stage) && !w.uses.empty()) return w.name + " keeps quota";
  }
  return "";
}

// All its pods, or as many as it may shrink to.
std::string partial_gang(const admit::Workload& w) {
  for (std::size_t i = 0; i < w.admission.size(); ++i) {
    const admit::PodSet& set = w.form->pod_sets[i];
    const int least = set.min_count < 0 ? set.count : set.min_count;
    if (w.admission[i].count < least || w.admission[i].count > set.count) {
      return w.name + " was admitted with " + std::to_string(w.admission[i].count) + " pods";
    }
  }
  return "";
}

class Alone {
 public:
  explicit Alone(const model::QueueInputs& inputs)
      : book_(inputs), engine_(book_, nullptr, {.start_ns = kQueuesAt, .settles = false}) {
    for (const auto& spec : inputs.workloads) ids_.push_back(engine_.add(spec, kQueuesAt));
  }
  std::string apply(const QueueOperation& op, std::int64_t now) {
    switch (op.kind) {
      case QueueOperation::Kind::kCycle: {
        const bool leaving = !leaving_.empty();
        const admit::CycleResult result = engine_.cycle(now);
        g_decisions += result.tried;
        for (const auto& e : result.evicted) leaving_.push_back(e.id);
        for (const auto id : result.admitted) {
          if (std::string wrong = partial_gang(engine_.workload(id)); !wrong.empty()) return wrong;
          if (!leaving && result.evicted.empty()) {
            if (std::string wrong = over_quota(id); !wrong.empty()) return wrong;
          }
        }
        break;
      }
      case QueueOperation::Kind::kEvictionsDone:
        for (const auto id : std::exchange(leaving_, {})) engine_.gone(id, now);
        break;
      case QueueOperation::Kind::kFinish:
        for (const auto id : ids_) {
          if (engine_.workload(id).name != op.workload) continue;
          std::erase(leaving_, id);
          engine_.finish(id);
        }
        break;
      case QueueOperation::Kind::kAdd:
        ids_.push_back(engine_.add(op.spec, now));
        break;
    }
    return broken_invariant(engine_);
  }
  std::vector<std::string> holders() const {
    std::vector<std::string> out;
    for (const auto id : ids_) {
      if (admit::holds_quota(engine_.workload(id).stage)) out.push_back(engine_.workload(id).name);
    }
    return out;
  }
  // Whoever holds anything leaves: nothing may be left in the tree.
  std::string empty_out() {
    for (const auto id : ids_) engine_.finish(id);
    const admit::QuotaTree& tree = engine_.ledger().tree;
    for (admit::NodeId n = 0; n < tree.size(); ++n) {
      for (admit::CellId c = 0; c < tree.cells(); ++c) {
        if (tree.usage(n, c) != admit::Amount(0)) return book_.node_name(n) + " is not empty";
      }
    }
    return broken_invariant(engine_);
  }
  // Until nothing changes, by steps or cycle by cycle; who holds quota then.
  std::string settle(std::int64_t now, bool by_steps) {
    for (int i = 0; i < 200; ++i) {
      const admit::CycleResult result = by_steps ? engine_.step(now) : engine_.cycle(now);
      if (by_steps ? result.admitted.empty() && result.evicted.empty() : !result.changed) break;
    }
    std::string out;
    for (const auto id : ids_) {
      const admit::Workload& w = engine_.workload(id);
      out += w.name + " " + std::string(admit::name(w.stage));
      for (const auto& use : w.uses) {
        out += " " + std::to_string(use.cell) + "=" + std::to_string(use.amount.value());
      }
      out += "\n";
    }
    return out;
  }

 private:
  // What was just admitted lies within what its queue may use at all.
  std::string over_quota(admit::WorkloadId id) const {
    const admit::Workload& w = engine_.workload(id);
    const admit::QuotaTree& tree = engine_.ledger().tree;
    for (const auto& use : w.uses) {
      if (use.amount > tree.potential(book_.queue(w.queue).node, use.cell)) {
        return w.name + " was admitted beyond what its queue could ever use";
      }
    }
    return "";
  }

  admit::Book book_;
  admit::Engine engine_;
  std::vector<admit::WorkloadId> ids_, leaving_;
};

TEST(QueueEngine, KeepsItsInvariantsOverRandomSequences) {
  for (int world = 0; world < g_worlds * 5; ++world) {
    const std::uint64_t seed = g_seed * 7'000'000 + static_cast<std::uint64_t>(world);
    Random random(seed);
    QueueMix mix;
    mix.admission_fair_sharing = world % 7 == 0;
    const model::QueueInputs inputs = generate_queues(random, mix);
    Alone alone(inputs);
    std::int64_t now = kQueuesAt;
    for (int step = 0; step < 24; ++step) {
      now += 1'000'000'000;
      const QueueOperation op =
          random_operation(random, mix, inputs, alone.holders(), 1000 + step, now);
      ASSERT_EQ(alone.apply(op, now), "") << "seed " << seed << " step " << step;
    }
    ASSERT_EQ(alone.empty_out(), "") << "seed " << seed;
  }
}

TEST(QueueEngine, AStepEndsWhereCyclesEnd) {
  for (int world = 0; world < g_worlds; ++world) {
    const std::uint64_t seed = g_seed * 9'000'000 + static_cast<std::uint64_t>(world);
    Random random(seed);
    const model::QueueInputs inputs = generate_queues(random, {});
    Alone by_steps(inputs), by_cycles(inputs);
    const std::int64_t now = kQueuesAt + 1'000'000'000;
    ASSERT_EQ(by_steps.settle(now, true), by_cycles.settle(now, false)) << "seed " << seed;
  }
}

}  // namespace
}  // namespace berth::judging

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  // Long runs: 20,000 worlds of each mix, and 100,000 sequences of the engine alone.
  if (std::getenv("BERTH_SOAK") != nullptr) berth::judging::g_worlds = 20'000;
  for (int i = 1; i + 1 < argc; ++i) {
    if (std::string_view(argv[i]) == "--worlds") berth::judging::g_worlds = std::atoi(argv[i + 1]);
    if (std::string_view(argv[i]) == "--only") {
      berth::judging::g_only = std::strtoull(argv[i + 1], nullptr, 10);
    }
    if (std::string_view(argv[i]) == "--seed") {
      berth::judging::g_seed = std::strtoull(argv[i + 1], nullptr, 10);
    }
  }
  const int code = RUN_ALL_TESTS();
  std::printf("%lld heads decided\n", static_cast<long long>(berth::judging::g_decisions));
  return code;
}
