// The engine against the judge: the same placements, verdicts, reasons and certificates on random
// clusters and request sequences; and a builder that saw the changes one by one against one that
// sees the result at once. BERTH_SOAK=1 runs the long version.
#include <gtest/gtest.h>

#include <cstdlib>
#include <map>

#include "decide/decide.h"
#include "decide/schedule/worth.h"
#include "judge/generate.h"
#include "judge/judge.h"
#include "model/snapshot_builder.h"

namespace berth::judging {
namespace {

constexpr std::int64_t kNow = kGeneratedAt + 3600 * kSecond;

model::Decision without_messages(model::Decision decision) {
  for (auto& outcome : decision.outcomes) outcome.message.clear();
  return decision;
}

std::string show(const model::Certificate& c) {
  std::string out = "nodes " + std::to_string(c.nodes) + " fitting " +
                    std::to_string(c.fitting_nodes) + " binding " + std::string(name(c.binding)) +
                    " free " + std::to_string(c.free_gpu_milli) + "/" +
                    std::to_string(c.largest_free_milli) + " needed " +
                    std::to_string(c.needed_pods) + " exact " + std::to_string(c.exact);
  for (int i = 0; i < model::kConstraints; ++i) {
    auto at = static_cast<std::size_t>(i);
    if (c.removed[at] != 0) {
      out += " " + std::string(name(static_cast<model::Constraint>(i))) + " " +
             std::to_string(c.removed[at]) + "/" + std::to_string(c.only[at]);
    }
  }
  for (const auto& d : c.domains) out += " " + d.name + ":" + std::to_string(d.fits);
  return out;
}

std::string show(const model::Decision& d) {
  std::string out;
  for (const auto& p : d.placements) {
    out += p.pod + " on " + p.node + " gpus";
    for (int g : p.gpus) out += " " + std::to_string(g);
    out += " milli " + std::to_string(p.gpu_milli) + (p.after_preemption ? " after" : "") + "\n";
  }
  for (const auto& p : d.preemptions) {
    out += p.pod + " off " + p.node + " for " + p.by + (p.breaks_budget ? " breaks" : "") + "\n";
  }
  for (const auto& o : d.outcomes) {
    out += o.workload + " " + std::to_string(o.placed) + "/" + std::to_string(o.pods) + " " +
           std::string(name(o.verdict)) + " " + std::string(name(o.reason)) + " [" +
           show(o.certificate) + "]\n";
  }
  return out;
}

// The engine's side: a builder that is told of every change, and one placer for the whole sequence.
class Engine {
 public:
  explicit Engine(const model::PlacementPolicy& policy)
      : builder_(schedule::keeps_apart(policy)), placer_(policy) {}

  // The mix of the pods that are there now, for the fragmentation score.
  const schedule::MixSnapshot& learn() {
    placer_.learn_present(builder_.state());
    return placer_.mix();
  }

  void follow(const JudgeCluster& cluster) {
    for (const auto& node : cluster.nodes) {
      if (nodes_.contains(node.name) && nodes_.at(node.name) == node) continue;
      builder_.upsert_node(node);
      nodes_.insert_or_assign(node.name, node);
    }
    for (const auto& gang : cluster.gangs) builder_.upsert_gang(gang);
    builder_.set_budgets(cluster.budgets);
    std::map<std::string, model::PodSpec> now;
    for (const auto& pod : cluster.pods) now.emplace(pod.ns + "/" + pod.name, pod);
    for (const auto& [name, pod] : pods_) {
      if (!now.contains(name)) builder_.remove_pod(name);
    }
    for (const auto& [name, pod] : now) {
      if (!pods_.contains(name) || !(pods_.at(name) == pod)) builder_.upsert_pod(pod);
    }
    pods_ = std::move(now);
  }

  std::map<std::string, std::size_t> classes() {
    std::map<std::string, std::size_t> out;
    const auto& state = builder_.state();
    for (std::size_t i = 0; i < state.nodes(); ++i) {
      out.emplace(state.info(i).name, placer_.node_class(i));
    }
    return out;
  }

  model::Decision decide() { return decide::decide(builder_.publish(), kNow, placer_); }
  std::string dump() { return builder_.publish()->dump(); }

 private:
  model::SnapshotBuilder builder_;
  schedule::Placer placer_;
  std::map<std::string, model::NodeSpec> nodes_;
  std::map<std::string, model::PodSpec> pods_;
};

// The packing score of the page, computed for one node from scratch: no index, no memo.
class DirectScore {
 public:
  explicit DirectScore(const schedule::MixSnapshot& mix) : scale_(mix) {}

  std::int64_t operator()(const JudgeNodeView& view, const model::PodSpec& pod) {
    model::ShapeBook book;
    auto core = book.intern(pod).shape->demand->core;
    model::NodeInfo info = model::make_node_info(view.node, book.strings());
    model::NodeState state = model::empty_state(info);
    state.cpu = view.free_cpu_milli;
    for (std::size_t i = 0; i < view.node.gpus.size(); ++i) {
      auto g = static_cast<std::size_t>(view.node.gpus[i].index);
      state.gpu[g] = static_cast<std::int16_t>(view.gpu_free_milli[i]);
      if (state.gpu[g] != model::kMilliPerGpu) {
        state.whole = static_cast<std::uint16_t>(state.whole & ~(1u << g));
      }
    }
    auto before = schedule::room_of(info, state);
    auto after = schedule::room_after(before, info, *core);
    return scale_.score(scale_.worth(before), scale_.worth(after), classes_.at(view.node.name),
                        core->count * schedule::score_milli(info, *core));
  }

  std::map<std::string, std::size_t> classes_;  // by node

 private:
  schedule::WorthScale scale_;
};

int run_sequences(
    Mix mix, int sequences, int steps, std::uint64_t seed,
    model::PlacementPolicy::Packing packing = model::PlacementPolicy::Packing::kMostAllocated) {
  const bool fragmentation = packing == model::PlacementPolicy::Packing::kFragmentation;
  // Services spread over nodes, those of one namespace over racks first, and so do the pods of an
  // app that is none.
  const auto is = [](const char* app) {
    return text::Selector{{"app", text::Operator::kIn, {app}}};
  };
  const model::PlacementPolicy engine_policy{
      .packing = packing,
      .classes = {
          {.name = "db", .namespaces = {"a"}, .selector = is("db"), .spread = true, .over = "rack"},
          {.name = "other db", .selector = is("db"), .spread = true},
          {.name = "web", .selector = is("web"), .spread = true, .over = model::kZoneLabel}}};
  int decisions = 0;
  for (int s = 0; s < sequences; ++s) {
    Random random = Random(seed).split(std::to_string(s));
    GenerateOptions options{.mix = mix};
    JudgeCluster cluster = generate(random.split("cluster"), options);
    Engine engine(engine_policy);
    for (int step = 0; step < steps; ++step) {
      engine.follow(cluster);
      JudgePolicy policy;
      policy.spreads = [](const model::PodSpec& pod) -> std::optional<std::string> {
        const auto it = pod.labels.find("app");
        const std::string app = it == pod.labels.end() ? "" : it->second;
        if (app == "db") return pod.ns == "a" ? "rack" : "";
        if (app == "web") return model::kZoneLabel;
        return pod.service ? std::optional(std::string()) : std::nullopt;
      };
      if (fragmentation) {
        DirectScore direct(engine.learn());
        direct.classes_ = engine.classes();
        policy.score = direct;
      }
      auto expected = judge(cluster, policy, kNow, true);
      auto found = without_messages(engine.decide());
      decisions += static_cast<int>(expected.outcomes.size());
      EXPECT_EQ(show(expected), show(found)) << "mix " << static_cast<int>(mix) << " seed " << seed
                                             << " sequence " << s << " step " << step;
      EXPECT_EQ(show(found), show(without_messages(engine.decide()))) << "asked again";
      if (!(expected == found)) {
        ADD_FAILURE() << "decisions differ beyond what is shown";
        return decisions;
      }
      apply(expected, kNow, cluster);
      finish_some(random, 4, cluster);
      add_request(random, options, 1000 + step, cluster);
      if (s % 16 == 0) {
        engine.follow(cluster);
        Engine fresh(engine_policy);
        fresh.follow(cluster);
        EXPECT_EQ(engine.dump(), fresh.dump()) << "incremental and at once, sequence " << s;
      }
      if (::testing::Test::HasFailure()) return decisions;
    }
  }
  return decisions;
}

// How many of a mix are run.
int sequences(int usual) {
  return std::getenv("BERTH_SOAK") != nullptr ? 40 * usual : usual / BERTH_JUDGE_SHARE;
}

std::uint64_t seed() {
  const char* text = std::getenv("BERTH_SEED");
  return text == nullptr ? 1 : std::strtoull(text, nullptr, 10);
}

TEST(EngineVsJudge, PlainPods) {
  std::printf("decisions: %d\n", run_sequences(Mix::kPlain, sequences(400), 8, seed()));
}
TEST(EngineVsJudge, Constraints) {
  std::printf("decisions: %d\n", run_sequences(Mix::kConstraints, sequences(400), 8, seed() + 1));
}
TEST(EngineVsJudge, Gangs) {
  std::printf("decisions: %d\n", run_sequences(Mix::kGangs, sequences(300), 8, seed() + 2));
}
TEST(EngineVsJudge, Preemption) {
  std::printf("decisions: %d\n", run_sequences(Mix::kPreemption, sequences(300), 8, seed() + 3));
}

// The default policy, with the mix of the pods that are there.
TEST(EngineVsJudge, Fragmentation) {
  int count = run_sequences(Mix::kPlain, sequences(150), 8, seed() + 4,
                            model::PlacementPolicy::Packing::kFragmentation);
  count += run_sequences(Mix::kGangs, sequences(60), 8, seed() + 5,
                         model::PlacementPolicy::Packing::kFragmentation);
  std::printf("decisions: %d\n", count);
}

// An overlay that is changed and dropped leaves the snapshot as it was.
TEST(EngineVsJudge, DroppedOverlayLeavesTheSnapshot) {
  for (int s = 0; s < 50; ++s) {
    Random random = Random(7).split(std::to_string(s));
    JudgeCluster cluster = generate(random, {.mix = Mix::kPreemption});
    model::SnapshotBuilder builder;
    for (const auto& node : cluster.nodes) builder.upsert_node(node);
    for (const auto& gang : cluster.gangs) builder.upsert_gang(gang);
    for (const auto& pod : cluster.pods) builder.upsert_pod(pod);
    auto snapshot = builder.publish();
    std::string before = snapshot->dump();
    {
      model::ClusterState overlay = *snapshot;
      for (model::PodId id = 0; id < overlay.pod_ids(); ++id) {
        if (overlay.pod(id).info && overlay.pod(id).slot >= 0) overlay.unbind(id);
      }
      EXPECT_NE(overlay.dump(), before);
    }
    builder.upsert_pod({.ns = "other", .name = "late"});  // the builder goes on as well
    builder.publish();
    EXPECT_EQ(snapshot->dump(), before);
  }
}

}  // namespace
}  // namespace berth::judging
