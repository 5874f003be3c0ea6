// A controller's decisions: victims take time to leave, pods take time to come.
#include <gtest/gtest.h>

#include "decide/decide.h"

namespace berth::decide {
namespace {

constexpr std::int64_t kSecond = 1'000'000'000;

model::NodeSpec cpu_node(const std::string& name, std::int64_t cpus) {
  model::NodeSpec out;
  out.name = name;
  out.labels = {{model::kHostnameLabel, name}};
  out.allocatable = {{"cpu", cpus * 1000}, {"memory", 1LL << 40}, {"pods", 110}};
  return out;
}

model::PodSpec cpu_pod(const std::string& name, std::int64_t cpus, int priority,
                       const std::string& node = "") {
  model::PodSpec out;
  out.ns = "d";
  out.name = name;
  out.requests = {{"cpu", cpus * 1000}};
  out.priority = priority;
  out.node_name = node;
  return out;
}

// One cluster, decided again and again as a controller would.
struct World {
  std::vector<model::NodeSpec> nodes;
  std::vector<model::PodSpec> pods;
  model::QueueInputs queues;

  Run decide_live(std::int64_t now_ns = kSecond) const {
    const model::PlacementPolicy policy;
    model::SnapshotBuilder builder(schedule::keeps_apart(policy));
    for (const auto& node : nodes) builder.upsert_node(node);
    for (const auto& pod : pods) builder.upsert_pod(pod);
    const QueueSetting setting(queues, nodes, pods);
    return run(builder, policy, now_ns, 100, {.live = true},
               queues.queues.empty() ? nullptr : &setting);
  }
};

const model::Outcome* outcome_for(const Run& run, const std::string& name) {
  for (const auto& outcome : run.decision.outcomes) {
    if (outcome.workload == name) return &outcome;
  }
  return nullptr;
}

TEST(LivePods, APreemptorWaitsUntilItsVictimsAreGone) {
  World world;
  world.nodes = {cpu_node("n1", 8)};
  world.pods = {cpu_pod("low", 6, 0, "n1"), cpu_pod("urgent", 8, 10), cpu_pod("small", 2, 5)};
  const auto first = world.decide_live();
  ASSERT_EQ(first.decision.preemptions.size(), 1u);
  EXPECT_EQ(first.decision.preemptions[0].pod, "d/low");
  ASSERT_EQ(first.decision.placements.size(), 1u);  // small does not get the room beside
  EXPECT_TRUE(first.decision.placements[0].after_preemption);
  EXPECT_EQ(outcome_for(first, "d/urgent")->reason, model::Reason::kWaitingForPreemptedWorkloads);
  EXPECT_EQ(outcome_for(first, "d/urgent")->verdict, model::Verdict::kWait);

  world.pods[0].terminating = true;
  const auto second = world.decide_live();
  EXPECT_TRUE(second.decision.preemptions.empty());
  ASSERT_EQ(second.decision.placements.size(), 1u);
  EXPECT_EQ(second.decision.placements[0].pod, "d/urgent");
  EXPECT_TRUE(second.decision.placements[0].after_preemption);

  world.pods.erase(world.pods.begin());
  const auto third = world.decide_live();
  ASSERT_EQ(third.decision.placements.size(), 1u);
  EXPECT_EQ(third.decision.placements[0].pod, "d/urgent");
  EXPECT_FALSE(third.decision.placements[0].after_preemption);
}

TEST(LivePods, RoomBesideThoseThatTerminateIsTakenAtOnce) {
  World world;
  world.nodes = {cpu_node("n1", 8), cpu_node("n2", 8)};
  world.pods = {cpu_pod("gone", 6, 0, "n1"), cpu_pod("a", 8, 5), cpu_pod("b", 2, 0)};
  world.pods[0].terminating = true;
  const auto run = world.decide_live();
  ASSERT_EQ(run.decision.placements.size(), 2u);
  for (const auto& placement : run.decision.placements) EXPECT_FALSE(placement.after_preemption);
}

// A queue of 8 cpus of one flavor.
void add_queue(World& world, model::PreemptWithin within = model::PreemptWithin::kLowerPriority) {
  model::FlavorSpec flavor;
  flavor.name = "f";
  world.queues.flavors = {flavor};
  model::QueueSpec queue;
  queue.name = "q";
  queue.namespaces = text::Selector{};
  queue.within = within;
  queue.groups = {{.covered = {"cpu"},
                   .flavors = {{.flavor = "f",
                                .resources = {{.resource = "cpu",
                                               .nominal = 8000,
                                               .borrowing_limit = {},
                                               .lending_limit = {}}}}}}};
  world.queues.queues = {queue};
  world.queues.local_queues = {{.ns = "d", .name = "q", .queue = "q"}};
}

model::WorkloadSpec queued(const std::string& name, int pods, std::int64_t cpus, int priority) {
  model::WorkloadSpec out;
  out.ns = "d";
  out.name = name;
  out.queue = "q";
  out.owner = "Job/" + name;
  out.priority = priority;
  out.created_ns = kSecond;
  out.pod_sets.emplace_back();
  out.pod_sets[0].count = pods;
  out.pod_sets[0].requests = {{"cpu", cpus * 1000}};
  auto pod = std::make_shared<model::PodSpec>(cpu_pod("", cpus, priority));
  pod->ns = "d";
  out.pod_sets[0].pod = pod;
  return out;
}

void admit_in(model::WorkloadSpec& spec) {
  model::PodSetAdmission set;
  set.name = "main";
  set.count = spec.pod_sets[0].count;
  set.flavors = {{"cpu", "f"}};
  set.usage = {{"cpu", spec.pod_sets[0].requests["cpu"] * set.count}};
  spec.admission = model::AdmissionSpec{"q", {set}};
  spec.admitted = true;
  spec.reserved_ns = spec.admitted_ns = kSecond;
}

TEST(LiveQueues, AnEvictedWorkloadHoldsItsQuotaUntilItsPodsAreGone) {
  World world;
  world.nodes = {cpu_node("n1", 8)};
  add_queue(world);
  world.queues.workloads = {queued("low", 1, 8, 0), queued("urgent", 1, 8, 10)};
  admit_in(world.queues.workloads[0]);
  world.pods = {cpu_pod("low-0", 8, 0, "n1")};
  world.pods[0].owner = "Job/low";
  world.queues.workloads[0].pod_sets[0].pods = {"d/low-0"};
  const auto first = world.decide_live();
  ASSERT_EQ(first.decision.evictions.size(), 1u);
  EXPECT_EQ(first.decision.evictions[0].reason, "InClusterQueue");
  EXPECT_TRUE(first.decision.admissions.empty());
  EXPECT_EQ(outcome_for(first, "d/urgent")->reason, model::Reason::kWaitingForPreemptedWorkloads);

  world.queues.workloads[0].evicted = "Preempted";
  world.queues.workloads[0].evicted_ns = kSecond;
  const auto second = world.decide_live();
  EXPECT_TRUE(second.decision.evictions.empty());
  EXPECT_TRUE(second.decision.admissions.empty());
  EXPECT_TRUE(second.decision.released.empty());

  world.pods.clear();
  world.queues.workloads[0].pod_sets[0].pods.clear();
  const auto third = world.decide_live();
  EXPECT_EQ(third.decision.released, std::vector<std::string>{"d/low"});
  ASSERT_EQ(third.decision.admissions.size(), 1u);
  EXPECT_EQ(third.decision.admissions[0].workload, "d/urgent");
  EXPECT_FALSE(third.decision.admissions[0].after_preemption);
}

TEST(LiveQueues, SeatsKeepTheirRoomAndPodsGetThem) {
  World world;
  world.nodes = {cpu_node("n1", 8), cpu_node("n2", 8)};
  add_queue(world);
  world.queues.workloads = {queued("train", 2, 4, 0)};
  admit_in(world.queues.workloads[0]);
  world.queues.workloads[0].seats = {{"main", "n1", {}}, {"main", "n2", {}}};
  world.pods = {cpu_pod("other", 6, 0)};
  EXPECT_TRUE(world.decide_live().decision.placements.empty());  // 4 of 8 cpus are kept on each

  world.pods.push_back(cpu_pod("train-x7f", 4, 0));
  world.pods.back().owner = "Job/train";
  world.queues.workloads[0].pod_sets[0].pods = {"d/train-x7f"};
  const auto run = world.decide_live();
  ASSERT_EQ(run.decision.placements.size(), 1u);
  EXPECT_EQ(run.decision.placements[0].pod, "d/train-x7f");
  EXPECT_EQ(run.decision.placements[0].node, "n1");
  EXPECT_EQ(run.decision.placements[0].gang, "d/train");
}

// Anybody may write a second Workload of his own Job: its pods are the first one's.
TEST(LiveQueues, APodOfTwoWorkloadsIsHeldByOne) {
  World world;
  world.nodes = {cpu_node("n1", 8), cpu_node("n2", 8)};
  add_queue(world);
  world.queues.workloads = {queued("a", 1, 4, 0), queued("b", 1, 4, 0), queued("urgent", 1, 8, 10)};
  for (std::size_t i : {0u, 1u}) {
    admit_in(world.queues.workloads[i]);
    world.queues.workloads[i].owner = "Job/a";
    world.queues.workloads[i].pod_sets[0].pods = {"d/a-0"};
  }
  world.pods = {cpu_pod("a-0", 4, 0, "n1")};
  world.pods[0].owner = "Job/a";
  EXPECT_EQ(world.decide_live().decision.evictions.size(), 2u);

  for (auto& workload : world.queues.workloads) workload.seats = {{"main", "n2", {}}};
  world.queues.workloads[0].evicted = "Preempted";
  world.pods[0].node_name.clear();
  EXPECT_NO_FATAL_FAILURE(world.decide_live());
}

// Whoever asks for more pods than the nodes have slots is told so, and no pod is made for it.
TEST(LiveQueues, PodsBeyondAllSlotsAreNotMade) {
  World world;
  world.nodes = {cpu_node("n1", 8), cpu_node("n2", 8)};
  add_queue(world);
  world.queues.workloads = {queued("large", 200'000, 0, 0), queued("fits", 220, 0, 0)};
  const auto run = world.decide_live();
  const model::Outcome* no = outcome_for(run, "d/large");
  ASSERT_NE(no, nullptr);
  EXPECT_EQ(no->reason, model::Reason::kNeverFits);
  EXPECT_EQ(no->message, "its 200000 pods are more than the 220 that 2 nodes take in all");
  ASSERT_EQ(run.decision.admissions.size(), 1u);
  EXPECT_EQ(run.decision.admissions[0].workload, "d/fits");

  world.queues.workloads = {queued("long", 200, 0, 0)};
  auto pod = *world.queues.workloads[0].pod_sets[0].pod;
  for (int i = 0; i < 20'000; ++i) pod.labels["l" + std::to_string(i)] = "x";
  world.queues.workloads[0].pod_sets[0].pod = std::make_shared<const model::PodSpec>(pod);
  const auto second = world.decide_live();
  EXPECT_EQ(outcome_for(second, "d/long")->reason, model::Reason::kTooManyRules);
}

// Nor do two that wait get one pod.
TEST(LiveQueues, APodOfTwoThatWaitIsPlacedOnce) {
  World world;
  world.nodes = {cpu_node("n1", 8), cpu_node("n2", 8)};
  add_queue(world);
  world.queues.workloads = {queued("a", 1, 4, 0), queued("b", 1, 4, 0)};
  world.pods = {cpu_pod("a-0", 4, 0)};
  world.pods[0].queued = true;
  for (auto& workload : world.queues.workloads) {
    workload.owner = "Job/a";
    workload.pod_sets[0].pods = {"d/a-0"};
  }
  const auto run = world.decide_live();
  int placed = 0;
  for (const auto& placement : run.decision.placements) placed += placement.pod == "d/a-0" ? 1 : 0;
  EXPECT_EQ(placed, 1);
}

TEST(LiveQueues, TimeAloneIsAReasonToDecideAgain) {
  World world;
  add_queue(world);
  world.queues.workloads = {queued("train", 1, 4, 0), queued("late", 1, 2, 0)};
  admit_in(world.queues.workloads[0]);
  world.queues.workloads[0].max_execution_s = 100;
  EXPECT_EQ(world.decide_live(2 * kSecond).due_ns, 102 * kSecond);
  world.queues.workloads[1].requeue_at_ns = 50 * kSecond;
  EXPECT_EQ(world.decide_live(2 * kSecond).due_ns, 50 * kSecond);
}

}  // namespace
}  // namespace berth::decide
