#include "decide/admit/quota_tree.h"

#include <gtest/gtest.h>

#include <map>

#include "base/random.h"

namespace berth::admit {
namespace {

TEST(Amount, UnlimitedAbsorbs) {
  const Amount all = Amount::unlimited();
  EXPECT_TRUE((all + 5).is_unlimited());
  EXPECT_TRUE((all - 5).is_unlimited());
  EXPECT_EQ(all - all, Amount(0));
  EXPECT_LT(Amount(7) - all, Amount(-1'000'000'000));
  EXPECT_EQ(Amount(INT64_MIN) - 1, Amount(INT64_MIN)) << "saturates";
  EXPECT_TRUE((Amount(INT64_MAX - 1) + 5).is_unlimited());
}

// a and b share a cohort: each has 10.
struct Flat {
  Flat(const Quota& a_quota, const Quota& b_quota) {
    cohort = tree.add_node(kNoParent, false);
    a = tree.add_node(cohort, true);
    b = tree.add_node(cohort, true);
    tree.set_quota(a, 0, a_quota);
    tree.set_quota(b, 0, b_quota);
    tree.seal();
  }
  QuotaTree tree{{0}};
  NodeId cohort = 0, a = 0, b = 0;
};

TEST(QuotaTree, AQueueBorrowsWhatOthersLeave) {
  Flat f({.nominal = 10}, {.nominal = 10});
  EXPECT_EQ(f.tree.available(f.a, 0), Amount(20));
  f.tree.add(f.b, 0, 4);
  EXPECT_EQ(f.tree.available(f.a, 0), Amount(16));
  EXPECT_FALSE(f.tree.borrows(f.a, 0, 10));
  EXPECT_TRUE(f.tree.borrows(f.a, 0, 11));
  EXPECT_EQ(f.tree.reach(f.a, 0, 10).level, 0);
  EXPECT_EQ(f.tree.reach(f.a, 0, 11).level, 1);
  EXPECT_FALSE(f.tree.reach(f.a, 0, 11).inside) << "the cohort is the whole tree";
}

TEST(QuotaTree, LimitsOfBorrowingAndLending) {
  Flat f({.nominal = 10, .borrowing_limit = 3}, {.nominal = 10, .lending_limit = 2});
  EXPECT_EQ(f.tree.available(f.a, 0), Amount(12)) << "b lends 2";
  EXPECT_EQ(f.tree.potential(f.a, 0), Amount(12));
  EXPECT_EQ(f.tree.kept(f.b, 0), Amount(8));
  f.tree.add(f.b, 0, 9);
  EXPECT_EQ(f.tree.usage(f.cohort, 0), Amount(1)) << "8 of the 9 are kept by b";
  EXPECT_EQ(f.tree.available(f.a, 0), Amount(11));
  f.tree.take(f.b, 0, 5);
  EXPECT_EQ(f.tree.usage(f.cohort, 0), Amount(0));
  Flat tight({.nominal = 10, .borrowing_limit = 0}, {.nominal = 10});
  EXPECT_EQ(tight.tree.available(tight.a, 0), Amount(10));
}

TEST(QuotaTree, AShrunkQuotaLeavesNothingAndNotLess) {
  Flat f({.nominal = 0}, {.nominal = 1});
  f.tree.add(f.b, 0, 5);
  EXPECT_EQ(f.tree.available(f.a, 0), Amount(0));
  EXPECT_EQ(f.tree.available(f.b, 0), Amount(0));
}

TEST(QuotaTree, AQueueAloneHasItsOwn) {
  QuotaTree tree({0});
  auto queue = tree.add_node(kNoParent, true);
  tree.set_quota(queue, 0, {.nominal = 7});
  tree.seal();
  tree.add(queue, 0, 3);
  EXPECT_EQ(tree.available(queue, 0), Amount(4));
  EXPECT_EQ(tree.reach(queue, 0, 100).level, 0);
  EXPECT_EQ(tree.share(queue).value(), 0);
}

TEST(QuotaTree, UnlimitedQuota) {
  Flat f({.nominal = Amount::unlimited()}, {.nominal = 1});
  f.tree.add(f.a, 0, 1'000'000);
  EXPECT_TRUE(f.tree.available(f.b, 0).is_unlimited());
  f.tree.take(f.a, 0, 1'000'000);
  EXPECT_EQ(f.tree.usage(f.cohort, 0), Amount(0));
}

TEST(QuotaTree, ReachStopsAtTheLowestCohortWithRoom) {
  QuotaTree tree({0});
  auto root = tree.add_node(kNoParent, false), left = tree.add_node(root, false);
  auto a = tree.add_node(left, true), b = tree.add_node(left, true), c = tree.add_node(root, true);
  for (auto queue : {a, b, c}) tree.set_quota(queue, 0, {.nominal = 10});
  tree.seal();
  EXPECT_EQ(tree.reach(a, 0, 15).level, 1);
  EXPECT_TRUE(tree.reach(a, 0, 15).inside);
  EXPECT_EQ(tree.reach(a, 0, 25).level, 2);
  EXPECT_EQ(tree.reach(a, 0, 99).level, 2) << "nowhere: as far as the root";
}

TEST(QuotaTree, SharesAreThousandthsOfWhatCouldBeLent) {
  QuotaTree tree({0, 1});  // one flavor, two resources
  auto root = tree.add_node(kNoParent, false);
  auto a = tree.add_node(root, true, 2), b = tree.add_node(root, true),
       z = tree.add_node(root, true, 0);
  for (CellId c : {0u, 1u}) {
    tree.set_quota(a, c, {.nominal = 10});
    tree.set_quota(b, c, {.nominal = 10});
  }
  tree.seal();
  EXPECT_EQ(tree.share(a).value(), 0) << "within its own";
  tree.add(a, 1, 12);
  EXPECT_EQ(tree.share(a).value(), 50) << "2 of 20, weight 2";
  EXPECT_EQ(tree.share(a).resource, 1u);
  const Use more[] = {{0, 14}};
  EXPECT_EQ(tree.share(a, more).value(), 100);
  tree.add(z, 0, 1);
  EXPECT_TRUE(tree.share(a) < tree.share(z)) << "weight 0 is infinite";
}

// Random trees and histories against the definitions, computed anew each time.
struct Naive {
  struct Node {
    NodeId parent = kNoParent;
    bool queue = false;
    std::vector<Quota> quota;
    std::vector<std::int64_t> used;  // of queues
  };
  std::vector<Node> nodes;

  Amount subtree(NodeId n, CellId c) const {
    Amount sum = nodes[n].quota[c].nominal;
    for (NodeId k = 0; k < nodes.size(); ++k) {
      if (nodes[k].parent == n) sum += subtree(k, c) - kept(k, c);
    }
    return sum;
  }
  Amount kept(NodeId n, CellId c) const {
    const auto& limit = nodes[n].quota[c].lending_limit;
    return limit ? std::max(Amount(0), subtree(n, c) - *limit) : Amount(0);
  }
  Amount usage(NodeId n, CellId c) const {
    if (nodes[n].queue) return nodes[n].used[c];
    Amount sum = 0;
    for (NodeId k = 0; k < nodes.size(); ++k) {
      if (nodes[k].parent == n) sum += std::max(Amount(0), usage(k, c) - kept(k, c));
    }
    return sum;
  }
  Amount room(NodeId n, CellId c) const {
    if (nodes[n].parent == kNoParent) return subtree(n, c) - usage(n, c);
    Amount above = room(nodes[n].parent, c), own = kept(n, c);
    if (const auto& limit = nodes[n].quota[c].borrowing_limit) {
      above =
          std::min(above, subtree(n, c) - own - std::max(Amount(0), usage(n, c) - own) + *limit);
    }
    return std::max(Amount(0), own - usage(n, c)) + above;
  }
};

TEST(QuotaTree, AgreesWithTheDefinitionsOnRandomHistories) {
  constexpr CellId kCells = 2;
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    Random random = Random(seed).split("quota");
    QuotaTree tree({0, 1});
    Naive naive;
    std::vector<NodeId> cohorts, queues;
    auto count = static_cast<int>(random.between(2, 12));
    for (int i = 0; i < count; ++i) {
      bool queue = !cohorts.empty() && random.chance(2, 3);
      NodeId parent = cohorts.empty() || random.chance(1, 8)
                          ? kNoParent
                          : cohorts[random.below(cohorts.size())];
      auto id = tree.add_node(parent, queue);
      naive.nodes.push_back({.parent = parent, .queue = queue, .quota = {}, .used = {0, 0}});
      (queue ? queues : cohorts).push_back(id);
      for (CellId c = 0; c < kCells; ++c) {
        Quota quota{.nominal = random.between(0, 20)};
        if (parent != kNoParent && random.chance(1, 3))
          quota.borrowing_limit = random.between(0, 10);
        if (parent != kNoParent && random.chance(1, 3)) quota.lending_limit = random.between(0, 10);
        if (random.chance(1, 30)) quota.nominal = Amount::unlimited();
        tree.set_quota(id, c, quota);
        naive.nodes.back().quota.push_back(quota);
      }
    }
    tree.seal();
    if (queues.empty()) continue;
    std::vector<std::tuple<NodeId, CellId, std::int64_t>> held;
    for (int step = 0; step < 40; ++step) {
      if (!held.empty() && random.chance(2, 5)) {
        auto at = random.below(held.size());
        auto [queue, cell, amount] = held[at];
        held.erase(held.begin() + static_cast<std::ptrdiff_t>(at));
        tree.take(queue, cell, amount);
        naive.nodes[queue].used[cell] -= amount;
      } else {
        auto queue = queues[random.below(queues.size())];
        auto cell = static_cast<CellId>(random.below(kCells));
        auto amount = random.between(1, 8);
        held.emplace_back(queue, cell, amount);
        tree.add(queue, cell, amount);
        naive.nodes[queue].used[cell] += amount;
      }
      for (NodeId n = 0; n < tree.size(); ++n) {
        for (CellId c = 0; c < kCells; ++c) {
          ASSERT_EQ(tree.usage(n, c), naive.usage(n, c)) << "seed " << seed << " node " << n;
          ASSERT_EQ(tree.subtree(n, c), naive.subtree(n, c)) << "seed " << seed << " node " << n;
          ASSERT_EQ(tree.available(n, c), std::max(Amount(0), naive.room(n, c))) << "seed " << seed;
          ASSERT_LE(tree.subtree(n, c) - tree.kept(n, c), tree.subtree(n, c));
        }
      }
    }
    for (auto [queue, cell, amount] : held) tree.take(queue, cell, amount);
    for (NodeId n = 0; n < tree.size(); ++n) {
      for (CellId c = 0; c < kCells; ++c) ASSERT_EQ(tree.usage(n, c), Amount(0)) << "seed " << seed;
    }
  }
}

}  // namespace
}  // namespace berth::admit
