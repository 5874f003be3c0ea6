// Namespaces that require a queue, and inputs without any.
#include "kinds/queues_for_test.h"

namespace berth::kinds::resolve_queues_test {
namespace {

// ---- no queues ----

TEST(NoQueues, EverythingIsAsWithoutThem) {
  const std::string yaml = kQueues.substr(kQueues.rfind("---")) +
                           job_body(kInQ, "parallelism: 2,") + pod("p", kInQ) +
                           pod("g", kInQ, "schedulingGates: [{name: kueue.x-k8s.io/admission}],") +
                           workload_body("uid: u");
  const Inputs in = read_clean(yaml);
  EXPECT_EQ(pod_names(in), (Names{"g", "j-0", "j-1", "p"}));
  for (const auto& p : in.pods) {
    EXPECT_FALSE(p.queued) << p.name;
    EXPECT_EQ(p.gated, p.name == "g");
  }
  EXPECT_TRUE(in.queues.workloads.empty());
  EXPECT_EQ(in.notes.size(), 1u) << all(in.notes);
  EXPECT_NE(all(read_clean(pod("p", kInQ)).notes).find("has no ClusterQueue"), std::string::npos);
  EXPECT_TRUE(read_clean(pod("p", "uid: u")).notes.empty());
  EXPECT_TRUE(read_clean(pod("p", kInQ, "schedulingGates: [{name: kueue.x-k8s.io/admission}],"))
                  .notes.empty())
      << "it says itself that it waits";
  EXPECT_EQ(read_clean(job_body(kInQ)).notes.size(), 1u);
}

// ---- namespaces that require a queue ----

std::string required_ns(const std::string& value) {
  return "---\n{apiVersion: v1, kind: Namespace, metadata: {name: ml, labels: "
         "{berth.dev/queue-required: '" +
         value + "'}}}\n";
}
std::string queue_wanted(const Inputs& in) {
  std::string out;
  for (const model::PodSpec& p : in.pods) {
    if (p.needs_queue) out += p.name + ' ';
  }
  return out;
}

TEST(ResolveQueues, ANamespaceMayRequireAQueue) {
  const std::string pods = pod("free", "") + pod("queued", kInQ) +
                           pod("runs", "", "nodeName: n1,") +
                           pod("gated", "", "schedulingGates: [{name: kueue.x-k8s.io/admission}],");
  EXPECT_EQ(queue_wanted(read(kQueues + pods)), "");
  EXPECT_EQ(queue_wanted(read(kQueues + required_ns("false") + pods)), "");
  const Inputs in = read(kQueues + required_ns("true") + pods);
  EXPECT_EQ(queue_wanted(in), "free gated ");
  for (const model::PodSpec& p : in.pods) EXPECT_FALSE(p.gated) << p.name;
  // What cannot be read is taken as a yes.
  const Inputs bad = read(kQueues + required_ns("yes") + pods);
  EXPECT_EQ(queue_wanted(bad), "free gated ");
  EXPECT_NE(all(bad.warnings).find("queue-required"), std::string::npos);
  // Also where there is no queue at all, and whoever names one that is not there.
  EXPECT_EQ(queue_wanted(read(required_ns("true") + pods)), "free gated queued ");
}

TEST(ResolveQueues, ConfigurationThatManagesWhatNamesNoQueue) {
  const std::string on = config_body("manageJobsWithoutQueueName: true");
  const std::string pods = pod("free", "") + pod("queued", kInQ);
  EXPECT_EQ(queue_wanted(read(kQueues + config_body("manageJobsWithoutQueueName: false") + pods)),
            "");
  EXPECT_EQ(queue_wanted(read(kQueues + on + pods)), "free ");
  EXPECT_EQ(queue_wanted(read(kQueues +
                              config_body("manageJobsWithoutQueueName: true, integrations: "
                                          "{frameworks: [batch/job]}") +
                              pods)),
            "")
      << "pods are not looked after";
  EXPECT_EQ(
      queue_wanted(read(kQueues +
                        config_body("manageJobsWithoutQueueName: true, "
                                    "managedJobsNamespaceSelector: {matchLabels: {team: a}}") +
                        pods)),
      "");
  const Inputs jobs = read(kQueues + on + job_body(""));
  ASSERT_EQ(jobs.queues.workloads.size(), 1u);
  EXPECT_EQ(jobs.queues.workloads[0].queue, "");
  EXPECT_TRUE(jobs.pods.empty());
}

TEST(ResolveQueues, JobsOfARequiringNamespaceWaitForTheirQueue) {
  const Inputs in = read(kQueues + required_ns("true") + job_body(""));
  ASSERT_EQ(in.queues.workloads.size(), 1u);
  EXPECT_EQ(in.queues.workloads[0].queue, "");
  EXPECT_TRUE(in.pods.empty());
  // Without Kueue's queues no workload stands for it: its pods wait.
  EXPECT_EQ(queue_wanted(read(required_ns("true") + job_body("", "parallelism: 1,"))), "j-0 ");
  // What runs goes on; what would come does not.
  const Inputs running = read(kQueues + required_ns("true") + job_body("", "parallelism: 2,") +
                              pod("j-x", kOwned, "nodeName: n1,"));
  EXPECT_TRUE(running.queues.workloads.empty());
  EXPECT_EQ(running.pods.size(), 2u);
  EXPECT_EQ(queue_wanted(running).substr(0, 2), "j-");
  // A Workload stands for what made the Job: the Job waits for nothing by itself, its pods for
  // that.
  const std::string set =
      "ownerReferences: [{apiVersion: jobset.x-k8s.io/v1alpha2, kind: JobSet, "
      "name: s, uid: u, controller: true}]";
  EXPECT_EQ(queue_wanted(read(kQueues + required_ns("true") + job_body(set, "parallelism: 1,") +
                              workload_body(set, "", kHolds))),
            "");
  const Inputs waits =
      read(kQueues + required_ns("true") + job_body(set, "parallelism: 1,") + workload_body(set));
  EXPECT_EQ(waits.queues.workloads.size(), 1u);
  ASSERT_EQ(waits.pods.size(), 1u);
  EXPECT_TRUE(waits.pods[0].queued);
}

}  // namespace
}  // namespace berth::kinds::resolve_queues_test
