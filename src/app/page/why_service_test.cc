#include "app/page/why_service.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "app/why/read_budget.h"
#include "text/yaml.h"

namespace berth::app {
namespace {

constexpr std::int64_t kDeskNow = 1'750'000'000'000'000'000;

// The objects of a YAML text, as they are written and as a controller keeps them.
class WrittenObjects : public people::ObjectSource {
 public:
  explicit WrittenObjects(const std::string& yaml) {
    auto parsed = text::parse_yaml(yaml);
    EXPECT_TRUE(parsed.ok()) << yaml;
    if (parsed.ok()) documents_ = std::move(*parsed);
    for (const text::Document& document : documents_) {
      const text::Value& root = document.root();
      if (!root.is_object()) continue;
      const text::Value& meta = *root.find("metadata");
      const auto text = [](const text::Value& in, const char* key) {
        const text::Value* found = in.find(key);
        return found == nullptr ? std::string() : std::string(found->string());
      };
      objects_.push_back({text(root, "apiVersion"), text(root, "kind"), text(meta, "namespace"),
                          text(meta, "name"), text(meta, "uid"), "1", &root});
    }
  }
  std::optional<people::RawObject> find(std::string_view kind, std::string_view ns,
                                        std::string_view name) const override {
    for (const people::RawObject& object : objects_) {
      if (object.kind == kind && object.ns == ns && object.name == name) return object;
    }
    return std::nullopt;
  }
  std::vector<people::RawObject> of_kind(std::string_view kind) const override {
    std::vector<people::RawObject> out;
    for (const people::RawObject& object : objects_) {
      if (object.kind == kind) out.push_back(object);
    }
    return out;
  }
  ClusterCopy kept() const {
    kinds::ObjectSet set({.scheduler_names = {"berth"}, .seed = 3});
    for (const people::RawObject& object : objects_) {
      set.put(object.api_version, object.kind, *object.value);
    }
    return set.copy();
  }

 private:
  std::vector<text::Document> documents_;
  std::vector<people::RawObject> objects_;
};

std::string desk_node(const std::string& name) {
  return fmt::format(
      "apiVersion: v1\nkind: Node\nmetadata: {{name: {0}, labels: {{kubernetes.io/hostname: "
      "{0}}}}}\nstatus: {{allocatable: {{cpu: '64', memory: 512Gi, pods: '110', nvidia.com/gpu: "
      "'8'}}, conditions: [{{type: Ready, status: 'True'}}]}}\n---\n",
      name);
}

std::string desk_job(const std::string& more = "") {
  return "apiVersion: batch/v1\nkind: Job\nmetadata: {name: train, namespace: team, uid: j}\n"
         "spec: {parallelism: 2, completions: 2, template: {spec: {" +
         more +
         "restartPolicy: Never, schedulerName: berth, containers: [{name: main, resources: "
         "{limits: {nvidia.com/gpu: 2}}}]}}}\n---\n";
}

std::string desk_pod(const std::string& name, int gpus, const std::string& more) {
  return fmt::format(
      "apiVersion: v1\nkind: Pod\nmetadata: {{name: {0}, namespace: team, uid: u-{0}}}\nspec: {{{2}"
      "containers: [{{name: main, resources: {{limits: {{nvidia.com/gpu: {1}}}}}}}]}}\nstatus: "
      "{{phase: Pending}}\n---\n",
      name, gpus, more);
}

constexpr const char* kDeskQuota =
    "apiVersion: v1\nkind: ResourceQuota\nmetadata: {name: gold, namespace: team}\n"
    "spec: {hard: {requests.nvidia.com/gpu: 2}}\n---\n";
constexpr const char* kDeskAccounts =
    "apiVersion: v1\nkind: ServiceAccount\nmetadata: {name: default, namespace: team}\n---\n"
    "apiVersion: v1\nkind: ServiceAccount\nmetadata: {name: trainer, namespace: team}\n---\n";

WhyService::Question about(const people::Subject& subject, const std::string& yaml,
                           bool with_cluster = true) {
  auto objects = std::make_shared<const WrittenObjects>(yaml);
  WhyService::Question out;
  out.subject = subject;
  out.plan.now_ns = kDeskNow;
  if (with_cluster) out.cluster = objects->kept();
  out.objects = objects;
  return out;
}

people::Answer answer_of(WhyService& desk, const WhyService::Question& question) {
  Result<WhyService::Answered> out = desk.answer(question);
  EXPECT_TRUE(out.ok()) << out.error().to_string();
  return out.ok() ? std::move(out->answer) : people::Answer();
}

std::vector<std::string> kinds_of(const people::Answer& answer) {
  std::vector<std::string> out;
  for (const people::Fix& fix : answer.fixes) out.push_back(fix.kind);
  return out;
}

// What `berth why` says of the same objects when it reads them all itself.
people::Answer read_at_once(const people::Subject& subject, const std::string& yaml) {
  const WrittenObjects objects(yaml);
  const ClusterCopy kept = objects.kept();
  const kinds::Inputs inputs = kept->inputs();
  people::WhyOptions how;
  how.plan.now_ns = kDeskNow;
  how.live = true;
  how.objects = &objects;
  how.reread = [&kept](const std::vector<people::ObjectChange>& changes) {
    return inputs_with(*kept, changes);
  };
  Result<people::Answer> out = people::Examiner(inputs, how).why(subject);
  EXPECT_TRUE(out.ok());
  return out.ok() ? std::move(*out) : people::Answer();
}

TEST(WhyService, RulesOfTheServerAreLookedAt) {
  const people::Subject job{"job", "team", "train"};
  struct Row {
    std::string yaml, word;
    model::Reason reason;
    std::string kind, fix;
  };
  const Row rows[] = {
      {desk_job() + kDeskQuota, "the ResourceQuota gold allows 2", model::Reason::kWaitingForQuota,
       "ResourceQuota", "namespace-quota"},
      {desk_job("serviceAccountName: trainr, ") + kDeskAccounts, "the ServiceAccount trainr",
       model::Reason::kMisconfigured, "ServiceAccount", "service-account"},
      {desk_job("runtimeClassName: nvidea, ") +
           "apiVersion: node.k8s.io/v1\nkind: RuntimeClass\nmetadata: {name: nvidia}\n---\n",
       "the RuntimeClass nvidea does not exist", model::Reason::kMisconfigured, "RuntimeClass",
       "other-class"},
      {desk_job() + "apiVersion: v1\nkind: Namespace\nmetadata: {name: team, deletionTimestamp: "
                    "'2026-01-01T00:00:00Z'}\nstatus: {phase: Terminating}\n---\n",
       "the namespace team is being deleted", model::Reason::kMisconfigured, "Namespace", ""},
  };
  for (const Row& row : rows) {
    const std::string yaml = desk_node("n1") + row.yaml;
    WhyService desk;
    const people::Answer answer = answer_of(desk, about(job, yaml));
    EXPECT_EQ(answer.reason, row.reason) << answer.line;
    EXPECT_NE(answer.line.find(row.word), std::string::npos) << answer.line;
    EXPECT_EQ(answer.rule.kind, row.kind);
    EXPECT_TRUE(answer.line.find(answer.rule.message) != std::string::npos) << answer.line;
    const std::vector<std::string> kinds = kinds_of(answer);
    EXPECT_TRUE(row.fix.empty() || std::find(kinds.begin(), kinds.end(), row.fix) != kinds.end())
        << answer.line;
    EXPECT_EQ(people::why_json(answer), people::why_json(read_at_once(job, yaml)));
  }
}

TEST(WhyService, PodsThatAreYetToBeMadeAreThoughtOf) {
  WhyService desk;
  const std::string big = desk_node("n1") + desk_pod("holder", 7, "nodeName: n1, ");
  const people::Answer answer = answer_of(desk, about({"job", "team", "train"}, big + desk_job()));
  EXPECT_EQ(answer.need.pods, 2) << answer.line;
  EXPECT_EQ(answer.standing, people::Standing::kWaiting);
  EXPECT_NE(answer.reason, model::Reason::kPendingEvaluation) << answer.line;
}

TEST(WhyService, OneExaminerServesAStateAndNoLonger) {
  const std::string yaml = desk_node("n1") + desk_pod("a", 9, "schedulerName: berth, ") +
                           desk_pod("b", 1, "schedulerName: berth, ");
  WhyService desk;
  WhyService::Question first = about({"pod", "team", "a"}, yaml);
  EXPECT_FALSE(WhyService().answer(about({"pod", "team", "a"}, yaml, false)).ok());
  const people::Answer a = answer_of(desk, first);
  EXPECT_EQ(a.standing, people::Standing::kNever) << a.line;
  EXPECT_EQ(desk.examined(), 1);

  WhyService::Question again = about({"pod", "team", "a"}, yaml, false);
  again.plan.now_ns = kDeskNow + WhyService::kFreshNs - 1;
  EXPECT_EQ(people::why_json(answer_of(desk, again)), people::why_json(a));
  EXPECT_NE(answer_of(desk, about({"pod", "team", "b"}, yaml, false)).line, a.line);
  EXPECT_EQ(desk.examined(), 1);

  again.plan.now_ns = kDeskNow + WhyService::kFreshNs;
  EXPECT_EQ(answer_of(desk, again).evaluated_ns, again.plan.now_ns);
  EXPECT_EQ(desk.examined(), 2) << "the same objects, at another time";

  const std::string grown = yaml + desk_node("n2");
  EXPECT_EQ(answer_of(desk, about({"pod", "team", "a"}, grown)).have.nodes, 2);
  EXPECT_EQ(desk.examined(), 3) << "other objects";
  desk.forget();
  EXPECT_FALSE(desk.answer(again).ok());
}

TEST(WhyService, ManyObjectsAreReadAnewAFewTimes) {
  const auto readings = [](std::size_t objects) {
    ReadBudget budget(objects);
    int out = 0;
    while (out < 1000 && budget.take().ok()) ++out;
    return out;
  };
  EXPECT_EQ(readings(ReadBudget::kFew), 1000) << "as often as wanted";
  EXPECT_EQ(readings(10'000), 30);
  EXPECT_EQ(readings(1'000'000), 8);
  ReadBudget spent(1'000'000);
  for (int i = 0; i < 8; ++i) EXPECT_TRUE(spent.take().ok());
  EXPECT_EQ(spent.take().error().code(), Code::kExhausted);
}

// What was not tried is neither offered nor said to be in vain.
TEST(WhyService, WhenReadingsAreSpentTheReasonStays) {
  const WrittenObjects objects(desk_node("n1") + desk_job() + kDeskQuota);
  const ClusterCopy kept = objects.kept();
  const kinds::Inputs inputs = kept->inputs();
  people::WhyOptions how;
  how.plan.now_ns = kDeskNow;
  how.live = how.model_first = true;
  how.objects = &objects;
  int left = 1;
  how.reread = [&](const std::vector<people::ObjectChange>& changes) -> Result<kinds::Inputs> {
    if (left-- <= 0) return Error(Code::kExhausted, "enough");
    return inputs_with(*kept, changes);
  };
  const auto answer = people::Examiner(inputs, how).why({"job", "team", "train"});
  ASSERT_TRUE(answer.ok());
  EXPECT_EQ(answer->reason, model::Reason::kWaitingForQuota) << answer->line;
  EXPECT_TRUE(answer->fixes.empty());
  EXPECT_TRUE(answer->in_vain.empty());
  EXPECT_FALSE(answer->start.at_ns);
}

// The watch is behind what was fetched, or another scheduler binds the pod.
TEST(WhyService, PodsThatTheCopyLacksAreLookedAtToo) {
  const std::string yaml = desk_node("n1") + desk_pod("stranger", 9, "schedulerName: other, ");
  WhyService desk;
  const people::Answer answer = answer_of(desk, about({"pod", "team", "stranger"}, yaml));
  EXPECT_EQ(answer.standing, people::Standing::kNever) << answer.line;
  EXPECT_EQ(answer.reason, model::Reason::kNeverFits) << answer.line;
}

}  // namespace
}  // namespace berth::app
