// Rules about other pods in large numbers: who counts whom, how many are looked at, and ids beyond
// what 16 bits hold.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "base/random.h"
#include "model/match_index.h"
#include "model/rule_ledger.h"
#include "model/snapshot_builder.h"

namespace berth::model {
namespace {

PodSet pods_with(const std::string& ns, const std::string& key, const std::string& value) {
  return {.namespaces = {ns},
          .selector = {{.key = key, .op = text::Operator::kIn, .values = {value}}}};
}

PodSpec ruled(const std::string& ns, const std::string& name, int first, int terms) {
  PodSpec pod{.ns = ns, .name = name, .requests = {{"cpu", 100}}};
  for (int t = first; t < first + terms; ++t) {
    pod.anti_affinity.push_back(
        {.topology_key = kHostnameLabel, .pods = pods_with(ns, "app", fmt::format("x{}", t))});
  }
  return pod;
}

NodeSpec plain_node(const std::string& name) {
  return {.name = name,
          .labels = {{kHostnameLabel, name}},
          .allocatable = {{"cpu", 64000}, {"memory", 1 << 30}, {"pods", 1000}}};
}

PodSet random_set(Random& random) {
  PodSet out;
  const auto ns = [&] { return fmt::format("ns{}", random.below(4)); };
  out.all_namespaces = random.below(6) == 0;
  if (!out.all_namespaces) {
    std::set<std::string> names;
    for (std::uint64_t n = random.below(12); n < 12; n += 4) names.insert(ns());
    out.namespaces.assign(names.begin(), names.end());
  }
  for (std::uint64_t n = random.below(3); n > 0; --n) {
    text::Requirement r{.key = fmt::format("k{}", random.below(3)),
                        .op = static_cast<text::Operator>(random.below(4))};
    if (r.op == text::Operator::kIn || r.op == text::Operator::kNotIn) {
      for (std::uint64_t v = random.below(12); v < 12; v += 3) {
        r.values.push_back(fmt::format("v{}", random.below(4)));
      }
    }
    out.selector.push_back(std::move(r));
  }
  out.match_nothing = random.below(10) == 0;
  return out;
}

Shape random_shape(Random& random, std::uint32_t index) {
  Shape out;
  out.index = index;
  out.ns = fmt::format("ns{}", random.below(4));
  for (int k = 0; k < 3; ++k) {
    if (random.below(2) == 0) {
      out.labels[fmt::format("k{}", k)] = fmt::format("v{}", random.below(4));
    }
  }
  if (random.below(2) == 0) out.owner = out.ns + "/ReplicaSet/r" + std::to_string(random.below(3));
  return out;
}

Counter random_counter(Random& random, std::uint32_t index) {
  Counter out{.kind = static_cast<Counter::Kind>(random.below(3)), .index = index};
  if (out.kind == Counter::Kind::kOwner) {
    out.owner = fmt::format("ns{}/ReplicaSet/r{}", random.below(4), random.below(3));
  } else {
    out.pods = random_set(random);
  }
  return out;
}

// Everybody who matches is a candidate, whoever came first and whoever left since.
TEST(MatchIndex, LeavesNobodyOut) {
  Random random(7);
  for (int world = 0; world < 50; ++world) {
    MatchIndex index;
    std::vector<Shape> shapes;
    std::vector<Counter> counters;
    for (std::uint32_t i = 0; i < 40; ++i) {
      shapes.push_back(random_shape(random, i));
      counters.push_back(random_counter(random, i));
      index.add(shapes.back());
      index.add(counters.back());
      if (random.below(3) != 0) continue;
      const std::size_t again = random.below(i + 1);
      index.remove(shapes[again]);
      index.remove(counters[again]);
      shapes[again] = random_shape(random, shapes[again].index);
      counters[again] = random_counter(random, counters[again].index);
      index.add(shapes[again]);
      index.add(counters[again]);
    }
    for (const Shape& shape : shapes) {
      const auto found = index.counters_for(shape);
      for (const Counter& counter : counters) {
        const bool fits = counter.kind == Counter::Kind::kOwner
                              ? counter.owner == shape.owner
                              : matches(counter.pods, shape.ns, shape.labels);
        if (!fits) continue;
        EXPECT_TRUE(std::binary_search(found.begin(), found.end(), counter.index));
        const auto back = index.shapes_for(counter);
        EXPECT_TRUE(std::binary_search(back.begin(), back.end(), shape.index));
      }
    }
  }
}

// 70,000 rules of other tenants, of which each has a counter or two: two pods that must be apart
// are counted apart.
TEST(SnapshotBuilder, CountersBeyondSixteenBitsAreTheirOwn) {
  SnapshotBuilder builder;
  builder.upsert_node(plain_node("n0"));
  builder.upsert_node(plain_node("n1"));
  constexpr int kNamespaces = 35, kPods = 20, kTerms = 100;
  for (int n = 0; n < kNamespaces; ++n) {
    for (int p = 0; p < kPods; ++p) {
      builder.upsert_pod(ruled(fmt::format("t{}", n), fmt::format("p{}", p), p * kTerms, kTerms));
    }
  }
  ASSERT_GT(builder.book().counters(), 2 * std::size_t{65'536});
  ASSERT_TRUE(builder.state().crowded().empty());
  PodSpec first = ruled("victim", "a", 0, 1), second = ruled("victim", "b", 0, 1);
  first.labels = second.labels = {{"app", "x0"}};
  first.node_name = "n0";
  builder.upsert_pod(first);
  const PodId id = builder.upsert_pod(second);
  const ClusterState& state = builder.state();
  const Shape& shape = *state.pod(id).shape;
  ASSERT_EQ(shape.anti_affinity.size(), 1u);
  EXPECT_EQ(state.total(*shape.anti_affinity[0].counter), 1u);
  EXPECT_EQ(state.count(*shape.anti_affinity[0].counter, 0), 1u);
  EXPECT_EQ(state.count(*shape.anti_affinity[0].counter, 1), 0u);
  int bars = 0;
  state.for_each_bar(shape, [&](const Counter& bar) {
    ++bars;
    EXPECT_EQ(state.count(bar, 0), 1u);
  });
  EXPECT_EQ(bars, 1);
}

TEST(SnapshotBuilder, PodsOfOneNodeBeyondSixteenBitsAreCounted) {
  SnapshotBuilder builder;
  builder.upsert_node(plain_node("n0"));
  PodSpec asks = ruled("a", "asks", 0, 1);
  const PodId id = builder.upsert_pod(asks);
  PodSpec pod{.ns = "a", .labels = {{"app", "x0"}}, .node_name = "n0"};
  constexpr int kPods = 65'536 + 1;
  for (int i = 0; i < kPods; ++i) {
    pod.name = fmt::format("p{}", i);
    builder.upsert_pod(pod);
  }
  const ClusterState& state = builder.state();
  EXPECT_EQ(state.count(*state.pod(id).shape->anti_affinity[0].counter, 0), unsigned{kPods});
}

// Counts are the same whether a rule came before the pods that it counts, after them, or again.
TEST(SnapshotBuilder, CountsFollowWhoComesAndGoes) {
  Random random(3);
  for (int world = 0; world < 20; ++world) {
    SnapshotBuilder builder;
    for (int n = 0; n < 3; ++n) builder.upsert_node(plain_node(fmt::format("n{}", n)));
    std::map<std::string, PodSpec> there;
    for (int step = 0; step < 120; ++step) {
      PodSpec pod{.ns = fmt::format("ns{}", random.below(4)),
                  .name = fmt::format("p{}", random.below(12))};
      const std::string name = pod.ns + '/' + pod.name;
      if (random.below(4) == 0) {
        builder.remove_pod(name);
        there.erase(name);
      } else {
        for (int k = 0; k < 3; ++k) {
          if (random.below(2) == 0) {
            pod.labels[fmt::format("k{}", k)] = fmt::format("v{}", random.below(4));
          }
        }
        for (std::uint64_t t = random.below(3); t > 0; --t) {
          pod.anti_affinity.push_back({.topology_key = kHostnameLabel, .pods = random_set(random)});
        }
        if (random.below(2) == 0) pod.node_name = fmt::format("n{}", random.below(3));
        builder.upsert_pod(pod);
        there[name] = pod;
      }
      if (random.below(5) == 0) builder.publish();
    }
    SnapshotBuilder at_once;
    for (int n = 0; n < 3; ++n) at_once.upsert_node(plain_node(fmt::format("n{}", n)));
    for (const auto& [name, pod] : there) at_once.upsert_pod(pod);
    const ClusterState& state = builder.state();
    EXPECT_EQ(state.dump(), at_once.state().dump());
    for (const auto& [name, pod] : there) {
      const Shape& shape = *state.pod(*builder.find_pod(name)).shape;
      for (const TopologyTerm& term : shape.anti_affinity) {
        std::vector<unsigned> by_node(3);
        for (const auto& [other_name, other] : there) {
          if (other.node_name.empty()) continue;
          if (!matches(term.counter->pods, other.ns, other.labels)) continue;
          ++by_node[static_cast<std::size_t>(other.node_name[1] - '0')];
        }
        for (std::size_t n = 0; n < 3; ++n) EXPECT_EQ(state.count(*term.counter, n), by_node[n]);
      }
    }
  }
}

TEST(RuleLedger, EqualRulesCountOnceAndOnlySoManyAreLookedAt) {
  SnapshotBuilder builder;
  builder.upsert_node(plain_node("n0"));
  for (int i = 0; i < 200; ++i) builder.upsert_pod(ruled("a", fmt::format("same{}", i), 0, 100));
  EXPECT_TRUE(builder.state().crowded().empty()) << "replicas bring what one of them brings";
  for (int i = 0; i < 41; ++i) {
    builder.upsert_pod(ruled("a", fmt::format("p{}", i), (i + 1) * 100, 100));
  }
  const PodId other = builder.upsert_pod(ruled("b", "p", 0, 1));
  const PodId same = *builder.find_pod("a/same0"), last = *builder.find_pod("a/p40");
  EXPECT_EQ(
      builder.state().rule_excess(same),
      "the pods of namespace a have 4200 different rules about other pods (affinity, "
      "anti-affinity, spread); at most 4096 are looked at, so pods with such rules wait there");
  EXPECT_EQ(builder.state().rule_excess(other), "");
  EXPECT_TRUE(builder.state().pod(last).shape->quiet);
  builder.remove_pod("a/p0");
  builder.remove_pod("a/p1");
  EXPECT_EQ(builder.state().rule_excess(same), "");
  EXPECT_FALSE(builder.state().pod(*builder.find_pod("a/p40")).shape->quiet)
      << "its rules count again";
}

TEST(RuleLedger, OnePodAndReachingOtherNamespacesHaveBoundsOfTheirOwn) {
  SnapshotBuilder builder;
  builder.upsert_node(plain_node("n0"));
  const PodId heavy = builder.upsert_pod(ruled("a", "heavy", 0, 129));
  EXPECT_NE(builder.state().rule_excess(heavy).find("129 rules about other pods"),
            std::string::npos);
  EXPECT_TRUE(builder.state().pod(heavy).shape->anti_affinity.empty());
  for (int i = 0; i < 3; ++i) {
    PodSpec pod = ruled("b", fmt::format("p{}", i), i * 100, 100);
    for (auto& term : pod.anti_affinity) term.pods.namespaces = {"c"};
    builder.upsert_pod(pod);
  }
  const PodId last = *builder.find_pod("b/p2");
  EXPECT_NE(builder.state().rule_excess(last).find("300 different rules about pods of other"),
            std::string::npos);
  PodSpec wordy{.ns = "c", .name = "wordy"};
  wordy.required_nodes.push_back({});
  for (int i = 0; i < 5000; ++i) {
    wordy.required_nodes.back().labels.push_back(
        {.key = "k", .op = text::Operator::kIn, .values = {std::to_string(i)}});
  }
  EXPECT_NE(builder.state().rule_excess(builder.upsert_pod(wordy)).find("keys and values"),
            std::string::npos);
}

TEST(SnapshotBuilder, KeysThatNoNodeHasMakeNoInventory) {
  SnapshotBuilder builder;
  for (int n = 0; n < 10; ++n) builder.upsert_node(plain_node(fmt::format("n{}", n)));
  const std::uint64_t before = builder.state().inventory().version();
  for (int i = 0; i < 100; ++i) {
    PodSpec pod = ruled("a", fmt::format("p{}", i), 0, 1);
    pod.anti_affinity[0].topology_key = fmt::format("made.up/{}", i);
    pod.node_selector = {{fmt::format("made.up/{}", i), "x"}};
    builder.upsert_pod(pod);
  }
  EXPECT_EQ(builder.state().inventory().version(), before);
  NodeSpec with_key = plain_node("n0");
  with_key.labels["made.up/7"] = "x";
  builder.upsert_node(with_key);
  const ClusterState& state = builder.state();
  const int key = state.pod(*builder.find_pod("a/p7")).shape->anti_affinity[0].key;
  EXPECT_EQ(state.inventory().domains(key).values.size(), 1u);
}

}  // namespace
}  // namespace berth::model
