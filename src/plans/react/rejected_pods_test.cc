#include "plans/react/rejected_pods.h"

#include <gtest/gtest.h>

#include "base/random.h"

namespace berth::react {
namespace {

constexpr std::int64_t kSecond = 1'000'000'000;

RejectedPod refused_pod(const std::string& name, std::int64_t at, const std::string& node = "n0",
                        const std::string& owner = "default/ReplicaSet/r") {
  return {.name = "default/" + name,
          .uid = "u-" + name,
          .owner = owner,
          .replaced_beside = owner.find("/ReplicaSet/") != std::string::npos,
          .node = node,
          .reason = "UnexpectedAdmissionError",
          .at = at};
}

std::string names_of(const std::vector<PodToDelete>& pods) {
  std::string out;
  for (const PodToDelete& pod : pods) out += pod.name.substr(pod.name.find('/') + 1) + ' ';
  return out;
}

TEST(RejectedPods, OldOnesAreDeletedAndTheLatestStay) {
  RejectedPods react;
  for (int i = 0; i < 5; ++i) react.rejected(refused_pod("p" + std::to_string(i), i), 10);
  react.rejected(refused_pod("alone", 3, "n1", ""), 10);
  EXPECT_EQ(names_of(react.due(kSecond).deletes), "p0 p1 p2 ");
  EXPECT_EQ(names_of(react.due(2 * kSecond).deletes), "") << "told once";
  react.not_deleted("default/p1");
  EXPECT_EQ(names_of(react.due(3 * kSecond).deletes), "p1 ");
  react.rejected(refused_pod("p4", 4), 10);
  EXPECT_EQ(names_of(react.due(4 * kSecond).deletes), "") << "the same UID again";
  for (const char* name : {"p0", "p1", "p2", "p3"}) react.gone(std::string("default/") + name);
  EXPECT_EQ(react.kept(), 2u);
}

TEST(RejectedPods, AnOwnerThatWaitsForTheNameGetsItBack) {
  RejectedPods react;
  react.rejected(refused_pod("worker-0", 1, "n0", "default/PyTorchJob/t"), 1);
  EXPECT_EQ(names_of(react.due(2).deletes), "worker-0 ");
}

TEST(RejectedPods, AStormIsDeletedAtABoundedRate) {
  RejectedPods react;
  for (int i = 0; i < 1000; ++i) {
    react.rejected(refused_pod("p" + std::to_string(1000 + i), i, "n" + std::to_string(i)), 1000);
  }
  std::size_t deleted = 0;
  for (int second = 1; second <= 50; ++second) {
    const std::size_t now = react.due(second * kSecond).deletes.size();
    EXPECT_LE(now, 10u);
    deleted += now;
  }
  EXPECT_EQ(deleted, 500u);
  for (int second = 51; second <= 200; ++second) {
    deleted += react.due(second * kSecond).deletes.size();
  }
  EXPECT_EQ(deleted, 998u);
}

TEST(RejectedPods, ANodeThatKeepsRefusingIsAvoidedLongerEachTime) {
  RejectedPods react;
  std::int64_t now = 100 * kSecond;
  react.rejected(refused_pod("a", now), now);
  react.rejected(refused_pod("b", now), now);
  EXPECT_FALSE(react.avoids("n0"));
  react.rejected(refused_pod("c", now), now);
  ASSERT_TRUE(react.avoids("n0"));
  Reaction what = react.due(now);
  ASSERT_EQ(what.avoid.size(), 1u);
  EXPECT_EQ(what.avoid[0].level, 0);
  EXPECT_EQ(what.avoid[0].refused, 3);
  EXPECT_EQ(what.avoid[0].for_ns, 60 * kSecond);
  EXPECT_EQ(react.due(now + kSecond).avoid.size(), 1u) << "until the API shows it";
  react.marked("n0", RejectedPods::Mark{}, now);
  EXPECT_EQ(react.due(now + 2 * kSecond).avoid.size(), 0u);
  for (int level = 1; level <= 7; ++level) {
    const std::int64_t span = std::min<std::int64_t>(60 << (level - 1), 1920) * kSecond;
    EXPECT_EQ(react.due(now + span - 1).release.size(), 0u) << level;
    ASSERT_EQ(react.due(now + span).release.size(), 1u) << level;
    react.marked("n0", std::nullopt, now + span);
    EXPECT_FALSE(react.avoids("n0"));
    now += span + kSecond;
    react.rejected(refused_pod("t" + std::to_string(level), now), now);  // one is enough on trial
    ASSERT_TRUE(react.avoids("n0")) << level;
    what = react.due(now);
    ASSERT_EQ(what.avoid.size(), 1u);
    EXPECT_EQ(what.avoid[0].level, level);
    react.marked("n0", RejectedPods::Mark{level, 0}, now);
  }
}

TEST(RejectedPods, EvidenceReleasesANode) {
  RejectedPods react;
  using Source = RejectedPods::Source;
  react.facts("n0", Source::kNode, 7);
  std::int64_t now = 0;
  for (const char* name : {"a", "b", "c"}) react.rejected(refused_pod(name, now), now);
  react.marked("n0", RejectedPods::Mark{}, now);
  react.facts("n0", Source::kNode, 7);
  react.facts("n0", Source::kAgent, 1);  // first seen: nothing changed
  EXPECT_EQ(react.due(15 * kSecond).release.size(), 0u);
  react.facts("n0", Source::kAgent, 2);
  const Reaction what = react.due(16 * kSecond);
  ASSERT_EQ(what.release.size(), 1u);
  EXPECT_TRUE(what.release[0].changed);
  react.marked("n0", std::nullopt, 17 * kSecond);
  react.started("n0", 18 * kSecond);  // the trial is over: three are needed again
  now = 19 * kSecond;
  react.rejected(refused_pod("d", now), now);
  react.rejected(refused_pod("e", now), now);
  EXPECT_FALSE(react.avoids("n0"));
  react.rejected(refused_pod("f", now), now);
  EXPECT_TRUE(react.avoids("n0"));
  EXPECT_EQ(react.due(now).avoid.at(0).level, 1) << "and it is remembered";
}

TEST(RejectedPods, AChangeIsBelievedAfterAWhileOnly) {
  RejectedPods react;
  react.facts("n0", RejectedPods::Source::kNode, 1);
  for (const char* name : {"a", "b", "c"}) react.rejected(refused_pod(name, 0), 0);
  react.marked("n0", RejectedPods::Mark{}, 0);
  react.facts("n0", RejectedPods::Source::kNode, 2);
  EXPECT_EQ(react.due(10 * kSecond - 1).release.size(), 0u);
  EXPECT_EQ(react.due(10 * kSecond).release.size(), 1u);
}

TEST(RejectedPods, ARestartLearnsFromTheApi) {
  RejectedPods react;
  const std::int64_t now = 10'000 * kSecond;
  react.marked("n0", RejectedPods::Mark{2, 100 * kSecond}, now);
  EXPECT_TRUE(react.avoids("n0"));
  EXPECT_EQ(react.due(now + 139 * kSecond).release.size(), 0u);
  EXPECT_EQ(react.due(now + 140 * kSecond).release.size(), 1u);
  // What was refused long ago says nothing about a node now.
  for (const char* name : {"a", "b", "c"}) {
    react.rejected(refused_pod(name, now - 700 * kSecond, "n1"), now);
  }
  EXPECT_FALSE(react.avoids("n1"));
  for (const char* name : {"d", "e", "f"}) {
    react.rejected(refused_pod(name, now - 500 * kSecond, "n1"), now);
  }
  EXPECT_TRUE(react.avoids("n1"));
}

TEST(RejectedPods, AHandThatTakesTheTaintAwayIsBelieved) {
  RejectedPods react;
  for (const char* name : {"a", "b", "c"}) react.rejected(refused_pod(name, 0), 0);
  react.marked("n0", RejectedPods::Mark{}, 1);
  react.marked("n0", std::nullopt, 2);
  EXPECT_FALSE(react.avoids("n0"));
  EXPECT_TRUE(react.due(3).avoid.empty());
}

TEST(RejectedPods, RulesOfThePodDoNotSpeakAgainstTheNode) {
  RejectedPods react;
  for (int i = 0; i < 5; ++i) {
    RejectedPod pod = refused_pod("p" + std::to_string(i), i);
    pod.reason = "NodeAffinity";
    react.rejected(pod, 10);
  }
  EXPECT_FALSE(react.avoids("n0"));
  EXPECT_EQ(react.due(20).deletes.size(), 3u);
  EXPECT_TRUE(rejection_reason("OutOfnvidia.com/gpu"));
  EXPECT_FALSE(rejection_reason("Evicted"));
  EXPECT_FALSE(rejection_reason(""));
}

// A pod that somebody else put on a node says nothing about it: its author may have asked for what
// no node has.
TEST(RejectedPods, OnlyWhatWePlacedSpeaksAgainstANode) {
  RejectedPods react;
  for (int i = 0; i < 24; ++i) {
    RejectedPod pod = refused_pod("p" + std::to_string(i), i, "n" + std::to_string(i % 8), "");
    pod.placed = false;
    react.rejected(pod, 100);
  }
  EXPECT_TRUE(react.avoided().empty());
  EXPECT_TRUE(react.due(200).avoid.empty());
  EXPECT_EQ(react.kept(), 24u);
}

// An owner that is refused wherever it comes is at fault itself: of it one refusal counts.
TEST(RejectedPods, OneOwnerTakesAFewNodesAtMost) {
  RejectedPods react, agreed;
  for (int node = 0; node < 100; ++node) {
    react.in_fleet("n" + std::to_string(node), true);
    agreed.in_fleet("n" + std::to_string(node), true);
  }
  int made = 0;
  for (const char* owner : {"default/ReplicaSet/r", ""}) {
    for (int node = 0; node < 8; ++node) {
      for (int i = 0; i < 3; ++i) {
        const std::string name = "p" + std::to_string(made++);
        react.rejected(refused_pod(name, 0, "n" + std::to_string(node), owner), 0);
      }
    }
  }
  EXPECT_EQ(react.avoided(), (std::set<std::string>{"n0", "n1", "n2"}));
  EXPECT_TRUE(react.wanders("default/ReplicaSet/r"));
  EXPECT_FALSE(react.wanders("default/ReplicaSet/other"));
  react.due(601 * kSecond);
  EXPECT_FALSE(react.wanders("default/ReplicaSet/r")) << "long ago";
  // Three owners agree: it is the node.
  for (const char* owner : {"a/ReplicaSet/r", "b/ReplicaSet/r", "c/Job/j"}) {
    agreed.rejected(refused_pod(std::string("elsewhere-") + owner, 0, "n7", owner), 0);
    agreed.rejected(refused_pod(std::string("here-") + owner, 0, "n1", owner), 0);
  }
  EXPECT_EQ(agreed.avoided(), (std::set<std::string>{"n1", "n7"}));
}

TEST(RejectedPods, AShareOfTheFleetIsNeverAvoided) {
  RejectedPods react;
  for (int node = 0; node < 8; ++node) react.in_fleet("n" + std::to_string(node), true);
  EXPECT_EQ(react.most_avoided(), 2u);
  for (int node = 0; node < 8; ++node) {
    for (const char* ns : {"a", "b", "c"}) {
      const std::string name = std::string(ns) + std::to_string(node);
      react.rejected(refused_pod(name, 0, "n" + std::to_string(node),
                                 std::string(ns) + "/ReplicaSet/" + std::to_string(node)),
                     0);
    }
  }
  EXPECT_TRUE(react.avoids("n0") && react.avoids("n1") && !react.avoids("n2"));
  EXPECT_EQ(react.avoided().size(), 8u) << "for a moment nobody is sent to the others either";
  EXPECT_TRUE(react.due(10 * kSecond).avoid.size() == 2 && react.avoided().size() == 2);
  Reaction what = react.due(11 * kSecond);
  EXPECT_EQ(what.avoid.size(), 2u);
  EXPECT_EQ(what.spared.size(), 6u);
  // One comes back: the next one's turn, as long as its refusals are fresh.
  react.marked("n0", RejectedPods::Mark{}, kSecond);
  react.marked("n1", RejectedPods::Mark{}, kSecond);
  what = react.due(61 * kSecond);
  EXPECT_EQ(what.release.size(), 2u);
  react.marked("n0", std::nullopt, 62 * kSecond);
  react.marked("n1", std::nullopt, 62 * kSecond);
  what = react.due(63 * kSecond);
  EXPECT_EQ(react.avoided(), (std::set<std::string>{"n2", "n3"}));
  EXPECT_EQ(react.due(700 * kSecond).spared.size(), 0u) << "what was refused long ago is forgotten";
}

// Whatever happens: of an owner never more than `keep` stay undeleted, no pod is told twice, the
// rate holds, and an avoided node is released within its time.
TEST(RejectedPods, RandomHistoriesKeepTheBounds) {
  for (std::uint64_t seed = 1; seed <= 50; ++seed) {
    Random random(seed);
    RejectedPods react;
    std::set<std::string> there, asked;
    std::map<std::string, std::int64_t> avoided_since;
    std::int64_t now = 0;
    int made = 0;
    for (int step = 0; step < 400; ++step) {
      now += random.between(0, 20) * kSecond;
      const std::string node = "n" + std::to_string(random.below(3));
      switch (random.below(6)) {
        case 0:
        case 1:
        case 2: {
          const std::string name = "p" + std::to_string(made++);
          react.rejected(refused_pod(name, now, node), now);
          there.insert("default/" + name);
          break;
        }
        case 3:
          react.started(node, now);
          break;
        case 4:
          react.facts(node, RejectedPods::Source::kNode, random.below(2));
          break;
        default:
          if (random.chance(1, 4)) react.marked(node, std::nullopt, now);
      }
      const Reaction what = react.due(now);
      EXPECT_LE(what.deletes.size(), 10u);
      for (const PodToDelete& pod : what.deletes) {
        EXPECT_TRUE(asked.insert(pod.name).second);
        react.gone(pod.name);
        there.erase(pod.name);
      }
      for (const NodeToAvoid& one : what.avoid) {
        react.marked(one.node, RejectedPods::Mark{one.level, 0}, now);
      }
      for (const NodeToRelease& one : what.release) react.marked(one.node, std::nullopt, now);
      EXPECT_EQ(react.kept(), there.size());
      for (int i = 0; i < 3; ++i) {
        const std::string name = "n" + std::to_string(i);
        if (!react.avoids(name)) {
          avoided_since.erase(name);
          continue;
        }
        const auto since = avoided_since.emplace(name, now).first->second;
        EXPECT_LE(now - since, 1940 * kSecond);
      }
    }
    EXPECT_LE(there.size(), 2u + 20u);
  }
}

}  // namespace
}  // namespace berth::react
