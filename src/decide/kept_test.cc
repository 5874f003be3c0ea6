// Queues that are kept from decision to decision, on nodes with a topology. Histories against
// queues made at once are in test/judge/queue_kept_test.cc.
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "decide/queueing.h"
#include "decide/schedule/placer.h"

namespace berth::decide {
namespace {

using SpecRef = Queueing::Spec;

model::NodeSpec host(const std::string& name) {
  model::NodeSpec out;
  out.name = name;
  out.labels = {{model::kHostnameLabel, name}};
  out.allocatable = {{"cpu", 8'000}, {"memory", 1LL << 40}, {"pods", 110}};
  return out;
}

model::PodSpec whole_host(const std::string& name, const std::string& node) {
  model::PodSpec out;
  out.ns = "d";
  out.name = name;
  out.owner = "Job/" + name.substr(0, name.find('-'));
  out.requests = {{"cpu", 8'000}};
  out.node_name = node;
  out.queued = true;
  return out;
}

model::WorkloadSpec one_pod(const std::string& name, int priority) {
  model::WorkloadSpec out;
  out.ns = "d";
  out.name = name;
  out.queue = "q";
  out.owner = "Job/" + name;
  out.priority = priority;
  out.pod_sets.emplace_back();
  out.pod_sets[0].requests = {{"cpu", 8'000}};
  out.pod_sets[0].pod = std::make_shared<const model::PodSpec>(whole_host("", ""));
  return out;
}

model::WorkloadSpec on_host(model::WorkloadSpec spec, const std::string& node) {
  model::PodSetAdmission set;
  set.name = "main";
  set.count = 1;
  set.flavors = {{"cpu", "f"}};
  set.usage = {{"cpu", 8'000}};
  set.topology = model::TopologyAssignment{{std::string(model::kHostnameLabel)}, {{{node}, 1}}};
  spec.admission = model::AdmissionSpec{"q", {set}};
  spec.admitted = true;
  spec.reserved_ns = spec.admitted_ns = 1;
  spec.pod_sets[0].pods = {"d/" + spec.name + "-0"};
  return spec;
}

model::QueueRules two_hosts() {
  model::QueueRules out;
  model::FlavorSpec flavor;
  flavor.name = "f";
  flavor.topology = "t";
  out.flavors = {flavor};
  out.topologies = {{"t", {std::string(model::kHostnameLabel)}}};
  model::QueueSpec queue;
  queue.name = "q";
  queue.namespaces = text::Selector{};
  queue.groups = {
      {.covered = {"cpu"},
       .flavors = {{.flavor = "f", .resources = {{.resource = "cpu", .nominal = 16'000}}}}}};
  out.queues = {queue};
  out.local_queues = {{.ns = "d", .name = "q", .queue = "q"}};
  return out;
}

// The places of a holder that has just left are nobody's in the very decision that sees it gone,
// also where its pods went before it did.
TEST(KeptQueues, WhoLeavesWithAHostLeavesNobodyInIt) {
  const model::QueueRules rules = two_hosts();
  const std::vector<model::NodeSpec> nodes{host("n1"), host("n2")};
  const std::vector<model::PodSpec> pods{whole_host("v-0", "n2")};
  const auto put = [](model::WorkloadSpec spec) {
    return std::make_shared<const model::WorkloadSpec>(std::move(spec));
  };
  const SpecRef waits = put(one_pod("b", 10)), stays = put(on_host(one_pod("v", 5), "n2"));
  const SpecRef leaves = put(on_host(one_pod("w", 0), "n1"));
  model::SnapshotBuilder base;
  for (const model::NodeSpec& node : nodes) base.upsert_node(node);
  for (const model::PodSpec& pod : pods) base.upsert_pod(pod);
  schedule::Placer placer;
  model::SnapshotBuilder scratch = base;
  QueueSetting setting(rules, {}, InputIndex(nodes, pods));
  setting.marked = true;
  Queueing kept(setting, scratch, placer, 2);
  const auto decide = [&](const std::vector<SpecRef>& workloads, std::int64_t now) {
    scratch = base;
    kept.follow(workloads, now, {.nodes = false, .room = true});
    model::Decision out;
    while (kept.cycle(now, out)) {
    }
    return out;
  };
  EXPECT_TRUE(decide({waits, stays, leaves}, 3).admissions.empty());
  const model::Decision after = decide({waits, stays}, 4);
  ASSERT_EQ(after.admissions.size(), 1u);
  EXPECT_EQ(after.admissions[0].workload, "d/b");
  ASSERT_EQ(after.placements.size(), 1u);
  EXPECT_EQ(after.placements[0].node, "n1");
  EXPECT_TRUE(after.evictions.empty());
}

}  // namespace
}  // namespace berth::decide
