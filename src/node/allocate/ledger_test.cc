#include "node/allocate/ledger.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "base/random.h"

namespace berth::allocate {
namespace {

model::GpuInventory ledger_machine() {
  model::GpuInventory out;
  for (int i = 0; i < 4; ++i) {
    model::GpuDevice gpu;
    gpu.index = i;
    gpu.uuid = "GPU-" + std::to_string(i);
    out.gpus.push_back(gpu);
  }
  out.gpus[3].mig_enabled = true;
  for (int j = 0; j < 2; ++j) {
    model::MigInstance mig;
    mig.uuid = "MIG-3-" + std::to_string(j);
    mig.profile = "3g.71gb";
    out.gpus[3].mig.push_back(mig);
  }
  return out;
}

NodePod node_pod(const std::string& name, std::vector<int> gpus, int size) {
  return {.uid = "uid-" + name,
          .ns = "team",
          .name = name,
          .gpus = std::move(gpus),
          .asks = {{"nvidia.com/gpu", size}}};
}

model::HeldDevices holds(const std::string& pod, std::vector<std::string> ids,
                         const std::string& container = "main") {
  return {"team", pod, container, "nvidia.com/gpu", std::move(ids)};
}

using Holders = std::map<int, std::vector<std::string>>;

TEST(Ledger, KubeletsWordGivesHolders) {
  const Ledger ledger = join(ledger_machine(), {},
                             {holds("a", {"GPU-1", "GPU-0"}), holds("b", {"GPU-2::0", "GPU-2::3"})},
                             {node_pod("a", {}, 2), node_pod("b", {}, 2)});
  EXPECT_EQ(ledger.holders, (Holders{{0, {"uid-a"}}, {1, {"uid-a"}}, {2, {"uid-b"}}}));
  EXPECT_TRUE(ledger.open.empty());
  EXPECT_TRUE(ledger.differing.empty());
}

TEST(Ledger, SharesAndInstancesOfOneGpuHaveSeveralHolders) {
  const Ledger ledger =
      join(ledger_machine(), {},
           {holds("b", {"GPU-2::1"}), holds("a", {"GPU-2::0"}), holds("c", {"MIG-3-1"})},
           {node_pod("b", {}, 1), node_pod("a", {}, 1), node_pod("c", {3}, 1)});
  EXPECT_EQ(ledger.holders, (Holders{{2, {"uid-a", "uid-b"}}, {3, {"uid-c"}}}));
  EXPECT_TRUE(ledger.differing.empty());
}

TEST(Ledger, PodsWithoutDevicesLeaveTheirHintsOpen) {
  NodePod two = node_pod("two", {2, 3}, 1);
  two.asks.push_back({"nvidia.com/gpu", 1});  // a second container that asks the same
  NodePod done = node_pod("done", {0}, 1);
  done.finished = true;
  const Ledger ledger = join(ledger_machine(), {}, {holds("a", {"GPU-0", "GPU-1"})},
                             {two, node_pod("a", {0, 1}, 2), done, node_pod("none", {}, 1)});
  ASSERT_EQ(ledger.open.size(), 1u);
  EXPECT_EQ(ledger.open[0], (Hint{"uid-two", {2, 3}, "nvidia.com/gpu", 1}));
  EXPECT_TRUE(ledger.differing.empty());
}

TEST(Ledger, DifferingPodsAreNamedOnce) {
  const Ledger ledger =
      join(ledger_machine(), {},
           {holds("a", {"GPU-2"}, "one"), holds("a", {"GPU-0"}, "two"), holds("b", {"GPU-1"})},
           {node_pod("a", {0, 1}, 1), node_pod("b", {1, 3}, 1)});
  EXPECT_EQ(ledger.differing, (std::vector<std::string>{"uid-a"}))
      << "b holds a part of its hint: its other container is still to come";
}

TEST(Ledger, DevicesPassedOnByAnInitContainerCountOnce) {
  const Ledger ledger =
      join(ledger_machine(), {},
           {holds("a", {"GPU-0", "GPU-1"}, "init"), holds("a", {"GPU-0", "GPU-1"}, "main")},
           {node_pod("a", {0, 1}, 2)});
  EXPECT_TRUE(ledger.differing.empty());
}

TEST(Ledger, SharesAreCountedAgainstTheHint) {
  EXPECT_TRUE(
      join(ledger_machine(), {}, {holds("a", {"GPU-2::0", "GPU-2::3"})}, {node_pod("a", {2, 2}, 2)})
          .differing.empty());
  EXPECT_EQ(
      join(ledger_machine(), {}, {holds("a", {"GPU-2::0", "GPU-2::3"})}, {node_pod("a", {1, 2}, 2)})
          .differing,
      (std::vector<std::string>{"uid-a"}));
}

TEST(Ledger, JournalSpeaksWhereTheKubeletIsSilent) {
  const std::vector<JournalEntry> journal = {
      {1, "nvidia.com/gpu", {"GPU-1"}, "team/a/main"},
      {2, "nvidia.com/gpu", {"GPU-3"}, "team/b/main"},
      {3, "nvidia.com/gpu", {"GPU-0"}, ""},
  };
  const Ledger ledger = join(ledger_machine(), journal, {holds("b", {"GPU-2"})},
                             {node_pod("a", {1}, 1), node_pod("b", {}, 1)});
  EXPECT_EQ(ledger.holders, (Holders{{1, {"uid-a"}}, {2, {"uid-b"}}}));
  EXPECT_TRUE(ledger.open.empty());
}

TEST(Ledger, UnknownDevicesAndHoldersAreLeftOut) {
  const Ledger ledger = join(ledger_machine(), {{1, "nvidia.com/gpu", {"GPU-1"}, "broken"}},
                             {holds("ghost", {"GPU-0"}), holds("a", {"GPU-9", "rdma0", ""})},
                             {node_pod("a", {1}, 1)});
  EXPECT_TRUE(ledger.holders.empty());
  EXPECT_EQ(ledger.open.size(), 1u);
}

TEST(Ledger, DeviceUuid) {
  EXPECT_EQ(device_uuid("GPU-1::12"), "GPU-1");
  EXPECT_EQ(device_uuid("MIG-GPU-1/3/0"), "MIG-GPU-1/3/0");
  EXPECT_EQ(device_uuid(""), "");
}

// What a restart sees: the journal read back from its file, the same answers in another order.
TEST(Ledger, EqualAfterARestart) {
  Random random(7);
  for (int round = 0; round < 200; ++round) {
    Journal journal;
    std::vector<model::HeldDevices> held;
    std::vector<NodePod> pods;
    for (int p = 0; p < 6; ++p) {
      const std::string name = "p" + std::to_string(p);
      std::vector<int> hint;
      if (random.chance(1, 2)) hint.push_back(static_cast<int>(random.below(4)));
      NodePod pod = node_pod(name, hint, 1);
      pod.finished = random.chance(1, 6);
      pods.push_back(pod);
      const std::string id = "GPU-" + std::to_string(random.below(5)) + "::" + std::to_string(p);
      if (random.chance(1, 2)) held.push_back(holds(name, {id}));
      if (random.chance(1, 2)) {
        journal.add(
            {p, "nvidia.com/gpu", {id}, random.chance(1, 2) ? "team/" + name + "/main" : ""});
      }
    }
    journal.reconcile(held, 10, 100);
    const Ledger before = join(ledger_machine(), journal.entries(), held, pods);
    const Journal again = Journal::read(journal.text());
    EXPECT_EQ(again.damaged(), 0u);
    random.shuffle(held);
    random.shuffle(pods);
    EXPECT_EQ(join(ledger_machine(), again.entries(), held, pods), before) << "round " << round;
  }
}

}  // namespace
}  // namespace berth::allocate
