#include "people/why/makers.h"

#include <gtest/gtest.h>

#include "kinds/kind_table.h"
#include "text/yaml.h"

namespace berth::people {
namespace {

// One object, and nothing else of its kind.
class OneObject : public ObjectSource {
 public:
  OneObject(const std::string& kind, const std::string& rest, bool queues = false)
      : queues_(queues) {
    auto parsed = text::parse_yaml("kind: " + kind + "\nmetadata: {name: x, namespace: team, " +
                                   "labels: {kueue.x-k8s.io/queue-name: main}}\n" + rest);
    EXPECT_TRUE(parsed.ok() && parsed->size() == 1) << rest;
    if (parsed.ok()) documents_ = std::move(*parsed);
    raw_ = {.api_version = "v1",
            .kind = kind,
            .ns = "team",
            .name = "x",
            .uid = {},
            .resource_version = {},
            .value = &documents_.front().root()};
  }
  const RawObject& object() const { return raw_; }
  std::optional<RawObject> find(std::string_view, std::string_view,
                                std::string_view) const override {
    return std::nullopt;
  }
  std::vector<RawObject> of_kind(std::string_view kind) const override {
    return queues_ && kind == "ClusterQueue" ? std::vector<RawObject>(1) : std::vector<RawObject>();
  }

  int pods() const {
    int out = 0;
    for (const TemplatePlace& place : places_of(raw_)) out += pods_at(*this, raw_, place);
    return out;
  }
  // "Pod x-0", "Workload jobset-x".
  std::string makes() const {
    Draft draft;
    make_next(*this, raw_, Tree(*raw_.value), draft);
    std::string out;
    for (const ObjectChange& change : draft.objects) {
      out += (out.empty() ? "" : ", ") + change.kind + ' ' + change.name;
    }
    return out;
  }

 private:
  bool queues_;
  std::vector<text::Document> documents_;
  RawObject raw_;
};

int pods_of(const std::string& kind, const std::string& rest) {
  return OneObject(kind, rest).pods();
}

const std::string kPods = "template: {spec: {containers: []}}";

TEST(Makers, OneTemplate) {
  EXPECT_EQ(pods_of("Deployment", "spec: {" + kPods + "}\n"), 1);
  EXPECT_EQ(pods_of("StatefulSet", "spec: {replicas: 3, " + kPods + "}\n"), 3);
  EXPECT_EQ(pods_of("Deployment", "spec: {replicas: 100000, " + kPods + "}\n"), 256);
  EXPECT_EQ(pods_of("Deployment", "spec: {replicas: -1, " + kPods + "}\n"), 0);
  EXPECT_EQ(pods_of("Deployment", "spec: {}\n"), 0) << "no template";
  EXPECT_EQ(pods_of("Job", "spec: {" + kPods + "}\n"), 1);
  EXPECT_EQ(pods_of("Job", "spec: {parallelism: 4, completions: 6, " + kPods +
                               "}\nstatus: {succeeded: 4}\n"),
            2);
  EXPECT_EQ(pods_of("CronJob", "spec: {jobTemplate: {spec: {parallelism: 2, " + kPods + "}}}\n"),
            2);
}

TEST(Makers, SeveralTemplates) {
  EXPECT_EQ(pods_of("JobSet",
                    "spec: {replicatedJobs: [{name: a, replicas: 2, template: {spec: "
                    "{parallelism: 3, " +
                        kPods + "}}}, {name: b, template: {spec: {" + kPods + "}}}]}\n"),
            7);
  EXPECT_EQ(pods_of("PyTorchJob", "spec: {pytorchReplicaSpecs: {Master: {" + kPods +
                                      "}, Worker: {replicas: 3, " + kPods + "}}}\n"),
            4);
  EXPECT_EQ(pods_of("RayJob", "spec: {rayClusterSpec: {headGroupSpec: {" + kPods +
                                  "}, workerGroupSpecs: [{groupName: w, replicas: 2, numOfHosts: "
                                  "2, " +
                                  kPods + "}]}}\n"),
            5);
  EXPECT_EQ(pods_of("LeaderWorkerSet",
                    "spec: {replicas: 2, leaderWorkerTemplate: {size: 4, leaderTemplate: {spec: "
                    "{}}, workerTemplate: {spec: {}}}}\n"),
            4)
      << "of one group";
}

TEST(Makers, WhatRestsMakesNothing) {
  EXPECT_EQ(pods_of("Job", "spec: {suspend: true, " + kPods + "}\n"), 1) << "for its queue";
  EXPECT_EQ(pods_of("CronJob", "spec: {suspend: true, jobTemplate: {spec: {" + kPods + "}}}\n"), 0);
  const std::string roles =
      "spec: {runPolicy: {suspend: true}, mpiReplicaSpecs: {Worker: {" + kPods + "}}}\n";
  EXPECT_EQ(pods_of("MPIJob", roles), 0);
  EXPECT_EQ(held_by_field(OneObject("MPIJob", roles).object()), "spec.runPolicy.suspend");
  EXPECT_EQ(OneObject("MPIJob", roles, true).pods(), 1) << "its queue lets it go";
}

TEST(Makers, WhatComesNext) {
  EXPECT_EQ(OneObject("Deployment", "spec: {replicas: 2, " + kPods + "}\n", true).makes(),
            "Pod x-0, Pod x-1");
  EXPECT_EQ(OneObject("Deployment", "spec: {paused: true, " + kPods + "}\n").makes(), "");
  EXPECT_EQ(OneObject("CronJob", "spec: {jobTemplate: {spec: {" + kPods + "}}}\n").makes(),
            "Job x-next");
  const std::string set =
      "spec: {suspend: true, replicatedJobs: [{name: a, template: {spec: {" + kPods + "}}}]}\n";
  EXPECT_EQ(OneObject("JobSet", set, true).makes(), "Workload jobset-x");
  EXPECT_EQ(OneObject("JobSet", set).makes(), "") << "no queue lets it go";
}

TEST(Makers, OddObjectsMakeNothing) {
  for (const kinds::KindRow& row : kinds::kind_table()) {
    if (row.maker == nullptr) continue;
    const std::string kind(row.kind);
    for (const char* rest :
         {"{}\n", "spec: 1\n", "spec: {template: 1, replicas: x}\n",
          "spec: {replicatedJobs: {}, rayClusterSpec: [], leaderWorkerTemplate: 3}\n",
          "spec: {replicatedJobs: [1, {name: 2}], mpiReplicaSpecs: {a: 1}}\n"}) {
      const OneObject odd(kind, std::string(rest) == "{}\n" ? "" : rest, true);
      EXPECT_EQ(odd.pods(), 0) << kind << ' ' << rest;
      EXPECT_EQ(odd.makes(), "") << kind << ' ' << rest;
    }
  }
}

}  // namespace
}  // namespace berth::people
