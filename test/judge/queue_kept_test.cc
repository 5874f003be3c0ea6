// Queues that are kept from decision to decision against queues that are made at once of the same
// workloads: with the memory dropped they decide the same, and with it they overlook nobody.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "decide/queueing.h"
#include "decide/schedule/no_memo.h"
#include "judge/queue_generate.h"

namespace berth::judging {
namespace {

using SpecRef = std::shared_ptr<const model::WorkloadSpec>;

constexpr std::int64_t kSecond = 1'000'000'000;

// told: whose reasons count; the others were not looked at in it.
std::string text_of(const model::Decision& d, const std::set<std::string>& told) {
  std::set<std::string> lines;
  for (const auto& a : d.admissions) {
    std::string line = "admits " + a.workload + " in " + a.queue;
    for (const auto& set : a.pod_sets) {
      line += fmt::format(" {}x{}", set.name, set.count);
      for (const auto& [resource, flavor] : set.flavors) line += ' ' + resource + '@' + flavor;
    }
    lines.insert(line);
  }
  for (const auto& p : d.placements) lines.insert("places " + p.pod + " on " + p.node);
  for (const auto& e : d.evictions)
    lines.insert("evicts " + e.workload + " by " + e.by + ' ' + e.reason);
  for (const auto& o : d.outcomes) {
    if (!told.contains(o.workload)) continue;
    lines.insert(
        fmt::format("{} #{}: {} {}", o.workload, o.position, model::name(o.reason), o.message));
  }
  std::string out;
  for (const std::string& line : lines) out += line + '\n';
  return out;
}

std::set<std::string> told_in(const model::Decision& d) {
  std::set<std::string> out;
  for (const auto& o : d.outcomes) {
    if (o.reason != model::Reason::kPendingEvaluation || !o.message.empty()) out.insert(o.workload);
  }
  return out;
}

// Somebody's room is being made: who is next depends on who was told no before.
bool waits_for_others(const model::Decision& d) {
  return std::any_of(d.outcomes.begin(), d.outcomes.end(), [](const model::Outcome& o) {
    return o.reason == model::Reason::kWaitingForPreemptedWorkloads;
  });
}

// One decision, as the controller makes it.
model::Decision decide_now(decide::Queueing& queueing, std::int64_t now) {
  model::Decision out;
  for (int i = 0; i < 1'000 && out.evictions.empty(); ++i) {
    if (!queueing.cycle(now, out)) break;
  }
  queueing.report(out);
  return out;
}

class KeptHistory {
 public:
  KeptHistory(std::uint64_t seed, bool on_nodes) : random_(seed), on_nodes_(on_nodes) {
    mix_.odd_percent = 4;
    world_ = generate_queues(random_, mix_);
    for (model::WorkloadSpec& spec : world_.workloads) take(std::move(spec));
    world_.workloads.clear();
    for (int i = 0; on_nodes_ && i < 3; ++i) {
      model::NodeSpec node;
      node.name = fmt::format("n{}", i);
      node.labels = {{model::kHostnameLabel, node.name}};
      node.allocatable = {{"cpu", 20'000}, {"memory", 64LL << 30}, {"pods", 12}};
      nodes_.push_back(std::move(node));
    }
    for (const auto& node : nodes_) builder_.upsert_node(node);
    setting_ = std::make_unique<decide::QueueSetting>(
        world_, std::vector<const model::WorkloadSpec*>(), decide::InputIndex(nodes_, {}));
    setting_->marked = true;
    scratch_ = builder_;
    kept_ = std::make_unique<decide::Queueing>(*setting_, scratch_, placer_, now_);
  }

  // drops_memory: whoever was told no before is asked again, as after a restart.
  void step(bool drops_memory) {
    change();
    now_ += static_cast<std::int64_t>(random_.below(30)) * kSecond;
    std::vector<SpecRef> list;
    std::vector<const model::WorkloadSpec*> pointers;
    for (const auto& [key, spec] : workloads_) {
      list.push_back(spec);
      pointers.push_back(spec.get());
    }
    scratch_ = builder_;
    placer_.nos() = {};
    kept_->follow(list, now_, {.nodes = false, .room = true});
    if (drops_memory) kept_->retry();
    const model::Decision kept = decide_now(*kept_, now_);
    decide::QueueSetting setting(world_, pointers, decide::InputIndex(nodes_, {}));
    model::SnapshotBuilder builder = builder_;
    schedule::Placer placer;
    decide::Queueing made(setting, builder, placer, now_);
    const model::Decision anew = decide_now(made, now_);
    if (drops_memory) {
      ASSERT_EQ(text_of(kept, told_in(anew)), text_of(anew, told_in(anew)));
    } else if (kept.admissions.empty() && kept.evictions.empty() && !waits_for_others(kept)) {
      ASSERT_TRUE(anew.admissions.empty()) << text_of(anew, told_in(anew)) << "kept\n"
                                           << text_of(kept, told_in(kept));
    }
    decisions += kept.admissions.size() + kept.evictions.size();
    carry_out(kept);
  }

  std::size_t decisions = 0;

 private:
  using Key = std::pair<std::string, std::string>;

  void take(model::WorkloadSpec spec) {
    const Key key(spec.ns, spec.name);
    workloads_[key] = std::make_shared<const model::WorkloadSpec>(std::move(spec));
  }
  template <class Edit>
  void edit(const Key& key, const Edit& change) {
    model::WorkloadSpec spec = *workloads_.at(key);
    change(spec);
    take(std::move(spec));
  }
  Key some() {
    auto it = workloads_.begin();
    std::advance(it, static_cast<std::ptrdiff_t>(random_.below(workloads_.size())));
    return it->first;
  }

  void change() {
    for (std::uint64_t i = random_.below(4); i > 0; --i) {
      if (workloads_.empty() || random_.chance(1, 3)) {
        take(random_workload(random_, mix_, world_, serial_++, now_));
        continue;
      }
      const Key key = some();
      switch (random_.below(6)) {
        case 0:
        case 1:
          workloads_.erase(key);
          break;
        case 2:
          edit(key, [&](auto& spec) { spec.priority += static_cast<int>(random_.below(3)) - 1; });
          break;
        case 3:
          edit(key, [&](auto& spec) { spec.active = !spec.active; });
          break;
        case 4:
          edit(key, [&](auto& spec) { spec.pods_ready = random_.chance(3, 4); });
          break;
        default:
          edit(key, [&](auto& spec) {
            if (spec.admission && !spec.evicted.empty()) give_back(spec);
          });
      }
    }
  }
  static void give_back(model::WorkloadSpec& spec) {
    spec.admission.reset();
    spec.admitted = false;
    spec.evicted.clear();
  }

  void carry_out(const model::Decision& decision) {
    for (const auto& a : decision.admissions) {
      if (random_.chance(1, 6)) continue;  // the write failed
      const std::size_t slash = a.workload.find('/');
      edit({a.workload.substr(0, slash), a.workload.substr(slash + 1)}, [&](auto& spec) {
        spec.admission = {a.queue, a.pod_sets};
        spec.admitted = a.checks.empty();
        spec.reserved_ns = spec.admitted_ns = now_;
        spec.evicted.clear();
      });
    }
    for (const auto& e : decision.evictions) {
      if (random_.chance(1, 6)) continue;
      const std::size_t slash = e.workload.find('/');
      edit({e.workload.substr(0, slash), e.workload.substr(slash + 1)}, [&](auto& spec) {
        spec.evicted = "Preempted";
        spec.evicted_ns = now_;
        if (random_.chance(1, 2)) give_back(spec);
      });
    }
  }

  Random random_;
  bool on_nodes_;
  QueueMix mix_;
  model::QueueInputs world_;
  std::vector<model::NodeSpec> nodes_;
  std::map<Key, SpecRef> workloads_;
  model::SnapshotBuilder builder_, scratch_;
  schedule::Placer placer_;
  std::unique_ptr<decide::QueueSetting> setting_;
  std::unique_ptr<decide::Queueing> kept_;
  std::int64_t now_ = kQueuesAt;
  int serial_ = 1000;
};

constexpr std::uint64_t kHistories = 48 / BERTH_JUDGE_SHARE;

class Kept : public testing::TestWithParam<bool> {};

TEST_P(Kept, WithoutItsMemoryItDecidesAsIfMadeAtOnce) {
  std::size_t decisions = 0;
  for (std::uint64_t seed = 1; seed <= kHistories; ++seed) {
    KeptHistory history(seed, GetParam());
    for (int step = 0; step < 40; ++step) {
      history.step(true);
      if (testing::Test::HasFatalFailure()) FAIL() << "seed " << seed << ", step " << step;
    }
    decisions += history.decisions;
  }
  EXPECT_GT(decisions, 0u);
}

TEST_P(Kept, WithItNobodyIsOverlooked) {
  std::size_t decisions = 0;
  for (std::uint64_t seed = 1; seed <= kHistories; ++seed) {
    KeptHistory history(1'000 + seed, GetParam());
    for (int step = 0; step < 40; ++step) {
      history.step(false);
      if (testing::Test::HasFatalFailure()) FAIL() << "seed " << seed << ", step " << step;
    }
    decisions += history.decisions;
  }
  EXPECT_GT(decisions, 0u);
}

INSTANTIATE_TEST_SUITE_P(Ground, Kept, testing::Bool(),
                         [](const auto& which) { return which.param ? "nodes" : "quota"; });

}  // namespace
}  // namespace berth::judging
