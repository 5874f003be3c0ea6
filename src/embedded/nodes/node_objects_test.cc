// What a simulated node says of itself is read as what it is: its objects against their readers.
#include "embedded/nodes/node_objects.h"

#include <gtest/gtest.h>

#include "base/random.h"
#include "kinds/node.h"
#include "text/json.h"
#include "text/patch.h"

namespace berth::sim {
namespace {

constexpr const char* kPools[] = {
    "model: H100, nvlink: 8, racks: 4, block: b0, zone: z1",
    "model: A100, gpus: 4, nvlink: 4, numaPolicy: restricted, numaScope: pod",
    "model: L4, gpus: 2, shares: 4",
    "model: A100, gpus: 8, mig: 1g.5gb",
    "model: GB200, gpus: 4, labels: {team: a, nvidia.com/gpu.product: Mine}",
    "gpus: 0, cpu: 16, memory: 64Gi, taints: [{key: only, value: batch, effect: NoSchedule}]",
    "model: T4, gpus: 1, pods: 30, taints: [{key: spot, effect: PreferNoSchedule}]",
};

template <class T>
T read_back(const text::Value& value) {
  text::Decoder d;
  T out;
  decode(value, out, d);
  EXPECT_TRUE(d.ok()) << d.to_error().message();
  return out;
}

TEST(NodeObjects, AreReadAsTheMachineThatSaysThem) {
  Random random(7);
  int looked = 0;
  for (const char* words : kPools) {
    const auto fleet = parse_fleet("pools: [{name: p, count: 9, " + std::string(words) + "}]");
    ASSERT_TRUE(fleet.ok()) << words << ": " << fleet.error().to_string();
    const Pool& pool = fleet->pools[0];
    for (int round = 0; round < 20; ++round) {
      const int number = static_cast<int>(random.below(9));
      Machine machine(pool, number);
      std::vector<std::vector<std::string>> holders(static_cast<std::size_t>(pool.gpus));
      for (int gpu = 0; gpu < machine.gpu_count(); ++gpu) {
        if (random.chance(1, 4)) machine.break_gpu(gpu, "Xid 79");
        if (random.chance(1, 3))
          holders[static_cast<std::size_t>(gpu)] = {std::string("uid-") + std::to_string(gpu)};
      }
      const NodeView view{.machine = &machine,
                          .number = number,
                          .ready = random.chance(3, 4),
                          .now = 1'700'000'000'000'000'000};
      const auto object = text::parse_json(node_object(pool, number, view));
      ASSERT_TRUE(object.ok());
      kinds::NodeObject node = read_back<kinds::NodeObject>(object->root());
      EXPECT_EQ(node.spec.name, pool.node_name(number));
      EXPECT_EQ(node.spec.ready, view.ready);
      const auto labels = node_labels(pool, number);
      EXPECT_EQ(node.spec.labels, model::Labels(labels.begin(), labels.end()));
      for (const auto& [key, value] : pool.labels) EXPECT_EQ(node.spec.labels[key], value);
      ASSERT_EQ(node.spec.taints.size(), pool.taints.size());
      for (std::size_t i = 0; i < pool.taints.size(); ++i) {
        EXPECT_EQ(node.spec.taints[i].key, pool.taints[i].key);
        EXPECT_EQ(node.spec.taints[i].value, pool.taints[i].value);
        EXPECT_EQ(node.spec.taints[i].effect, pool.taints[i].effect == "NoSchedule"
                                                  ? model::TaintEffect::kNoSchedule
                                                  : model::TaintEffect::kPreferNoSchedule);
      }
      EXPECT_EQ(node.spec.allocatable["cpu"], pool.cpu_milli);
      EXPECT_EQ(node.spec.allocatable["memory"], pool.memory_bytes);
      EXPECT_EQ(node.spec.allocatable["ephemeral-storage"], pool.storage_bytes);
      EXPECT_EQ(node.spec.allocatable["pods"], pool.pods);

      const auto bare = text::parse_json(gpu_node_object(machine.name(), "uid"));
      const auto status = text::parse_json(gpu_node_status_patch(machine, holders));
      ASSERT_TRUE(bare.ok() && status.ok());
      const auto whole = text::apply_merge_patch(bare->root(), status->root());
      ASSERT_TRUE(whole.ok());
      const kinds::GpuNode published = read_back<kinds::GpuNode>(whole->root());
      EXPECT_EQ(published.name, machine.name());
      std::vector<kinds::GpuNodeGpu> want = machine.published();
      for (std::size_t i = 0; i < want.size(); ++i) want[i].holders = holders[i];
      EXPECT_EQ(published.gpus, want);
      EXPECT_EQ(published.numa_policy, pool.numa_policy);
      EXPECT_EQ(published.numa_scope, pool.numa_scope);
      // And the two together.
      const kinds::GpuFacts facts = fill_gpus(pool.gpus > 0 ? &published : nullptr, node.spec);
      EXPECT_TRUE(facts.errors.empty()) << facts.errors.front();
      EXPECT_TRUE(facts.warnings.empty()) << words << ": " << facts.warnings.front();
      EXPECT_EQ(node.spec.gpus.size(), static_cast<std::size_t>(machine.gpu_count()));
      ++looked;
    }
  }
  EXPECT_EQ(looked, 140);
}

}  // namespace
}  // namespace berth::sim
