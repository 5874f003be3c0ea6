#include "embedded/nodes/fleet.h"

#include <gtest/gtest.h>

#include <fstream>
#include <iterator>

#include "embedded/nodes/fault.h"

namespace berth::sim {
namespace {

std::string file_text(const std::string& name) {
  std::ifstream in(std::string(BERTH_FLEET_DIR) + "/" + name);
  return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
}

TEST(Fleet, FillsInByModel) {
  struct Case {
    const char* pool;
    const char* model;
    int gpus, nvlink;
    std::int64_t gpu_mib, cpu_milli, memory_gi;
  };
  const Case cases[] = {
      {"model: H100", "NVIDIA-H100-80GB-HBM3", 8, 8, 81559, 192'000, 2048},
      {"model: a100-sxm4-80gb, gpus: 4", "NVIDIA-A100-SXM4-80GB", 4, 4, 81920, 96'000, 1024},
      {"model: A100, nvlink: 4", "NVIDIA-A100-SXM4-80GB", 8, 4, 81920, 192'000, 2048},
      {"model: GB200", "NVIDIA-GB200", 4, 4, 189471, 144'000, 960},
      {"model: T4", "Tesla-T4", 1, 0, 15360, 12'000, 64},
      {"model: L4, cpu: 500m, memory: 1Gi", "NVIDIA-L4", 8, 0, 23034, 500, 1},
      {"gpus: 2", "NVIDIA-H100-80GB-HBM3", 2, 2, 81559, 48'000, 512},
      {"model: Home-Made, gpuMemory: 2Gi", "Home-Made", 1, 0, 2048, 12'000, 64},
      {"model: H100, gpus: 0", "", 0, 0, 81559, 32'000, 128},
      {"count: 3", "", 0, 0, 0, 32'000, 128},
  };
  for (const Case& c : cases) {
    const auto fleet = parse_fleet("pools: [{name: p, " + std::string(c.pool) + "}]");
    ASSERT_TRUE(fleet.ok()) << c.pool << ": " << fleet.error().to_string();
    const Pool& pool = fleet->pools[0];
    EXPECT_EQ(pool.model, c.model) << c.pool;
    EXPECT_EQ(pool.gpus, c.gpus) << c.pool;
    EXPECT_EQ(pool.nvlink, c.nvlink) << c.pool;
    EXPECT_EQ(pool.cpu_milli, c.cpu_milli) << c.pool;
    EXPECT_EQ(pool.memory_bytes >> 30, c.memory_gi) << c.pool;
    EXPECT_EQ(pool.gpus > 0 ? pool.gpu_memory_mib : c.gpu_mib, c.gpu_mib) << c.pool;
  }
}

TEST(Fleet, SaysWhereAFileIsWrong) {
  const std::pair<const char*, const char*> cases[] = {
      {"[]", "object"},
      {"pools: []", "at least one pool"},
      {"{}", "pools"},
      {"pools: [{count: 2}]", "pools[0].name"},
      {"pools: [{name: A_b}]", "pools[0].name: found \"A_b\""},
      {"pools: [{name: a}, {name: a}]", "twice"},
      {"pools: [{name: a, count: 0}]", "pools[0].count"},
      {"pools: [{name: a, count: 20000}, {name: b}]", "20001 nodes"},
      {"pools: [{name: a, model: Abacus}]", "pools[0].model: found \"Abacus\""},
      {"pools: [{name: a, model: H100, gpus: 17}]", "pools[0].gpus"},
      {"pools: [{name: a, model: H100, gpus: 2, nvlink: 3}]", "pools[0].nvlink"},
      {"pools: [{name: a, cpu: -1}]", "pools[0].cpu"},
      {"pools: [{name: a, memory: lots}]", "pools[0].memory"},
      {"pools: [{name: a, labels: {'bad key!': x}}]", "pools[0].labels"},
      {"pools: [{name: a, labels: {ok: 5}}]", "pools[0].labels.ok"},
      {"pools: [{name: a, taints: [x]}]", "pools[0].taints[0]"},
      {"pools: [{name: a, taints: ['k=v:Never']}]", "NoSchedule, PreferNoSchedule or NoExecute"},
      {"pools: [{name: a, model: T4, mig: 1g.5gb}]", "has no MIG"},
      {"pools: [{name: a, model: H100, mig: big}]", "MIG profile"},
      {"pools: [{name: a, model: H100, mig: 1g.10gb, shares: 2}]", "one of the two"},
      {"pools: [{name: a, gpu: 8}]", "pools[0].gpu"},
      {"pools: [{name: a}]\nfaults: {}", "faults: found object"},
      {"pools: [{name: a}]\nfaults: [{kind: reboot}]", "faults[0].node"},
      {"pools: [{name: a}]\nfaults: [{node: a-1, kind: reboot}]", "faults[0].node: found \"a-1\""},
      {"pools: [{name: a}]\nfaults: [{node: a-00, kind: reboot}]", "faults[0].node"},
      {"pools: [{name: a}]\nfaults: [{node: a-0, kind: boom}]", "faults[0].kind"},
      {"pools: [{name: a}]\nfaults: [{node: a-0, kind: xid, code: 79}]", "no GPUs"},
      {"pools: [{name: a, gpus: 2}]\nfaults: [{node: a-0, gpu: 2, kind: ecc}]", "want 0..1"},
      {"pools: [{name: a, gpus: 2}]\nfaults: [{node: a-0, kind: xid}]", "faults[0].code"},
      {"pools: [{name: a, gpus: 2}]\nfaults: [{node: a-0, gpu: 1, kind: reboot}]", "whole node"},
      {"pools: [{name: a}]\nfaults: [{node: a-0, kind: silent, at: -3s}]", "faults[0].at"},
      {"pools: [{name: a}]\nfaults: [{node: a-0, kind: refuse-pods, reason: No}]", "reason"},
      {"pools: [{name: a}]\n---\npools: []", "2 documents"},
      {"pools: [", "line"},
  };
  for (const auto& [yaml, wanted] : cases) {
    const auto fleet = parse_fleet(yaml);
    ASSERT_FALSE(fleet.ok()) << yaml;
    EXPECT_NE(fleet.error().to_string().find(wanted), std::string::npos)
        << yaml << "\n  " << fleet.error().to_string();
  }
}

TEST(Fleet, ReadsTheExamples) {
  const auto small = parse_fleet(file_text("small.yaml"));
  ASSERT_TRUE(small.ok()) << small.error().to_string();
  EXPECT_EQ(small->nodes(), 7u);
  EXPECT_EQ(small->gpus(), 40u);
  EXPECT_EQ(small->pools[0].rack_of(1), "h100-rack0");
  EXPECT_EQ(small->pools[0].rack_of(2), "h100-rack1");
  const auto rough = parse_fleet(file_text("rough-week.yaml"));
  ASSERT_TRUE(rough.ok()) << rough.error().to_string();
  EXPECT_EQ(rough->pools[1].taints[0].value, "notebooks");
  EXPECT_EQ(rough->pools[2].mig_slots, 7);
  ASSERT_EQ(rough->faults.size(), 6u);
  EXPECT_EQ(rough->faults[1].for_ns, 120'000'000'000);
}

TEST(Fleet, OfGpus) {
  struct Case {
    int gpus;
    std::size_t nodes, total;
  };
  for (const Case& c : {Case{0, 1, 0}, Case{1, 1, 1}, Case{8, 1, 8}, Case{32, 4, 32},
                        Case{35, 5, 35}, Case{-4, 1, 0}}) {
    const Fleet fleet = fleet_of_gpus(c.gpus);
    EXPECT_EQ(fleet.nodes(), c.nodes) << c.gpus;
    EXPECT_EQ(fleet.gpus(), c.total) << c.gpus;
    for (const Pool& pool : fleet.pools) EXPECT_GT(pool.cpu_milli, 0);
  }
  EXPECT_LE(fleet_of_gpus(2'000'000'000).nodes(), kMaxFleetNodes);
}

TEST(Fleet, FaultInWords) {
  const auto fault = parse_fault("xid gpu=3  code=79 for=5m", 8);
  ASSERT_TRUE(fault.ok());
  EXPECT_EQ(fault->gpu, 3);
  EXPECT_EQ(fault->code, 79);
  EXPECT_EQ(fault->for_ns, 300'000'000'000);
  const std::pair<const char*, const char*> wrong[] = {
      {"", "found nothing"},          {"boom", "want xid"},      {"xid gpu=9 code=1", "0..7"},
      {"xid gpu=1", "code"},          {"ecc gpu", "name=value"}, {"ecc speed=1", "want gpu, code"},
      {"reboot for=x", "for"},        {"xid code=x", "code"},    {"refuse-pods reason=x", "reason"},
      {"reboot gpu=1", "whole node"}, {"ecc agent=1s", "agent"}, {"refuse-pods gpu=8", "0..7"},
  };
  for (const auto& [text, wanted] : wrong) {
    const auto bad = parse_fault(text, 8);
    ASSERT_FALSE(bad.ok()) << text;
    EXPECT_NE(bad.error().to_string().find(wanted), std::string::npos)
        << text << ": " << bad.error().to_string();
  }
  EXPECT_EQ(parse_fault("reboot agent=20s", 8)->agent_ns, 20'000'000'000);
  EXPECT_EQ(parse_fault("refuse-pods gpu=3", 8)->gpu, 3);
  EXPECT_EQ(xid_effect(79), XidEffect::kGpu);
  EXPECT_EQ(xid_effect(31), XidEffect::kApp);
  EXPECT_EQ(xid_effect(63), XidEffect::kIgnore);
  EXPECT_EQ(xid_text(79), "Xid 79: GPU has fallen off the bus");
  EXPECT_EQ(xid_text(999), "Xid 999");
}

}  // namespace
}  // namespace berth::sim
