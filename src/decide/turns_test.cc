#include "decide/turns.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "decide/decide.h"

namespace berth::decide {
namespace {

struct Line {
  std::vector<std::string> names;
  std::vector<Turns::Item> items;
  void add(const std::string& ns, int count, std::int64_t work) {
    for (int i = 0; i < count; ++i) names.push_back(fmt::format("{}/{:04}", ns, i));
    of.emplace_back(names.size(), work);
  }
  const std::vector<Turns::Item>& in_order() {
    items.clear();
    std::size_t i = 0;
    for (const auto& [end, work] : of) {
      for (; i < end; ++i) {
        const std::string_view name = names[i];
        items.push_back(
            {.ns = name.substr(0, name.find('/')), .key = {0, 0, name, true}, .work = work});
      }
    }
    std::sort(items.begin(), items.end(),
              [](const auto& a, const auto& b) { return a.key < b.key; });
    return items;
  }
  std::vector<std::pair<std::size_t, std::int64_t>> of;
};

// One cycle in which everybody costs what he said; who was looked at.
std::vector<std::string_view> cycle(Turns& turns, const std::vector<Turns::Item>& items) {
  std::vector<std::string_view> out;
  std::vector<const Turns::Item*> later;
  if (!turns.begin(items)) return out;
  const auto look = [&](const Turns::Item& item, bool again) {
    if (!turns.may(item, again)) return false;
    out.push_back(std::get<2>(item.key));
    turns.paid(item, item.work);
    return true;
  };
  for (const Turns::Item& item : items) {
    if (!look(item, false)) later.push_back(&item);
  }
  for (const Turns::Item* item : later) {
    if (!look(*item, true)) turns.postponed(*item);
  }
  turns.end({});
  return out;
}

int of_namespace(const std::vector<std::string_view>& names, std::string_view ns) {
  return static_cast<int>(std::count_if(names.begin(), names.end(), [&](std::string_view name) {
    return name.substr(0, name.find('/')) == ns;
  }));
}

TEST(Turns, WhatFitsIntoACycleIsNotCut) {
  Turns turns;
  Line line;
  line.add("a", 1000, 50);
  EXPECT_FALSE(turns.begin(line.in_order()));
}

TEST(Turns, NamespacesShareACycleAndLittleIsDoneAtOnce) {
  Turns turns;
  Line line;
  line.add("loud", 10'000, 100);
  line.add("louder", 1'000, 10'000);
  line.add("quiet", 3, 100);
  const auto seen = cycle(turns, line.in_order());
  EXPECT_EQ(of_namespace(seen, "quiet"), 3);
  EXPECT_NEAR(of_namespace(seen, "loud"), 250, 2);
  EXPECT_NEAR(of_namespace(seen, "louder"), 3, 1);
}

TEST(Turns, EverybodyHasHisTurnBeforeAnybodyHasASecond) {
  Turns turns;
  Line line;
  line.add("a", 700, 1'000);
  line.add("b", 30, 100'000);  // each is more than a cycle
  std::map<std::string_view, int> looks;
  for (int n = 0; n < 30; ++n) {
    for (const std::string_view name : cycle(turns, line.in_order())) ++looks[name];
  }
  EXPECT_EQ(looks.size(), 730u);
  for (const auto& [name, times] : looks) EXPECT_LE(times, name[0] == 'b' ? 1 : 2) << name;
}

model::PodSpec with_rules(const std::string& ns, int number, int terms) {
  model::PodSpec pod;
  pod.ns = ns;
  pod.name = fmt::format("p{:03}", number);
  pod.labels = {{"app", "x"}};
  pod.requests = {{"cpu", 100'000'000}};  // fits nowhere
  for (int t = 0; t < terms; ++t) {
    pod.anti_affinity.push_back(
        {.topology_key = model::kHostnameLabel,
         .pods = {.namespaces = {ns},
                  .selector = {{.key = "app",
                                .op = text::Operator::kIn,
                                .values = {fmt::format("x{}", number * terms + t)}}}}});
  }
  return pod;
}

// A tenant whose pods take more than a cycle, and one whose single pod is last of all.
TEST(Decide, ALoudNamespaceDoesNotKeepAnotherWaiting) {
  model::SnapshotBuilder builder;
  for (int n = 0; n < 300; ++n) {
    builder.upsert_node({.name = fmt::format("n{:03}", n),
                         .labels = {{model::kHostnameLabel, fmt::format("n{:03}", n)}},
                         .allocatable = {{"cpu", 64'000}, {"memory", 1LL << 40}, {"pods", 110}}});
  }
  for (int i = 0; i < 40; ++i) builder.upsert_pod(with_rules("loud", i, 100));
  for (int i = 0; i < 12'000; ++i) {
    model::PodSpec pod = with_rules("many", i, 0);
    pod.name = fmt::format("q{}", i);
    pod.labels = {{"n", std::to_string(i)}};
    builder.upsert_pod(pod);
  }
  model::PodSpec quiet;
  quiet.ns = "quiet";
  quiet.name = "late";
  quiet.requests = {{"cpu", 1000}};
  quiet.priority = -1;
  builder.upsert_pod(quiet);
  schedule::Placer placer;
  Turns turns;
  const model::ClusterSnapshot snapshot = builder.publish();
  const model::Decision first =
      decide(snapshot, 0, placer, {.certificates = false, .turns = &turns});
  EXPECT_GT(first.postponed, 0);
  ASSERT_EQ(first.placements.size(), 1u);
  EXPECT_EQ(first.placements[0].pod, "quiet/late");
  EXPECT_EQ(first.outcomes.size(), 12'041u) << "who waits for his turn is told so";
  int cycles = 1;
  while (cycles < 50 &&
         decide(snapshot, 0, placer, {.certificates = false, .turns = &turns}).postponed > 0) {
    ++cycles;
  }
  EXPECT_GT(cycles, 1);
  EXPECT_LT(cycles, 50) << "it ends";
}

}  // namespace
}  // namespace berth::decide
