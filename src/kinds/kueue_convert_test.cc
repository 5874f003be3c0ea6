#include "kinds/kueue_convert.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <vector>

#include "base/random.h"
#include "kinds/kueue_convert_review.h"
#include "kinds/kueue_workload.h"
#include "kinds/read_for_test.h"
#include "text/json.h"
#include "text/yaml.h"

namespace berth::kinds {
namespace {

text::Document document(const std::string& yaml) {
  auto read = text::parse_yaml(yaml);
  EXPECT_TRUE(read.ok());
  return std::move(read->front());
}
text::Document converted(const text::Document& from, KueueVersion to) {
  auto read = text::parse_json(convert_kueue(from.root(), to));
  EXPECT_TRUE(read.ok());
  return std::move(*read);
}

constexpr const char* kQueue1 = R"(
apiVersion: kueue.x-k8s.io/v1beta1
kind: ClusterQueue
metadata: {name: team}
spec:
  cohort: org
  namespaceSelector: {}
  admissionChecks: [prov]
  flavorFungibility: {whenCanBorrow: Borrow, whenCanPreempt: Preempt}
  resourceGroups:
  - coveredResources: [cpu]
    flavors: [{name: f, resources: [{name: cpu, nominalQuota: 4, borrowingLimit: 2}]}]
)";

TEST(KueueConvert, AQueueReadsTheSameInBothVersions) {
  const text::Document first = document(kQueue1);
  const text::Document second = converted(first, KueueVersion::kV1beta2);
  EXPECT_EQ(second.root().find("apiVersion")->string(), "kueue.x-k8s.io/v1beta2");
  EXPECT_EQ(second.root().find("spec")->find("cohort"), nullptr);
  const text::Document back = converted(second, KueueVersion::kV1beta1);
  model::QueueSpec a, b, c;
  text::Decoder d;
  decode_cluster_queue(first.root(), KueueVersion::kV1beta1, a, d);
  decode_cluster_queue(second.root(), KueueVersion::kV1beta2, b, d);
  decode_cluster_queue(back.root(), KueueVersion::kV1beta1, c, d);
  EXPECT_TRUE(d.ok());
  EXPECT_TRUE(d.issues().empty());  // no field of the other version is left
  EXPECT_EQ(a, b);
  EXPECT_EQ(a, c);
  EXPECT_EQ(b.checks.size(), 1u);
}

constexpr const char* kWorkload1 = R"(
apiVersion: kueue.x-k8s.io/v1beta1
kind: Workload
metadata: {name: w, namespace: d}
spec:
  queueName: q
  priorityClassName: high
  priorityClassSource: kueue.x-k8s.io/workloadpriorityclass
  podSets:
  - name: main
    count: 3
    template: {spec: {containers: [{name: c, image: x}]}}
status:
  conditions: [{type: QuotaReserved, status: "True", reason: QuotaReserved}]
  accumulatedPastExexcutionTimeSeconds: 7
  admission:
    clusterQueue: team
    podSetAssignments:
    - name: main
      count: 3
      flavors: {cpu: f}
      resourceUsage: {cpu: "3"}
      topologyAssignment:
        levels: [rack, kubernetes.io/hostname]
        domains: [{values: [r1, n1], count: 2}, {values: [r2, n5], count: 1}]
)";

TEST(KueueConvert, AWorkloadReadsTheSameInBothVersions) {
  const text::Document first = document(kWorkload1);
  const text::Document second = converted(first, KueueVersion::kV1beta2);
  const text::Document back = converted(second, KueueVersion::kV1beta1);
  WorkloadObject a, b, c;
  text::Decoder d;
  decode_workload(first.root(), KueueVersion::kV1beta1, a, d);
  decode_workload(second.root(), KueueVersion::kV1beta2, b, d);
  decode_workload(back.root(), KueueVersion::kV1beta1, c, d);
  EXPECT_TRUE(d.ok());
  for (const WorkloadObject* other : {&b, &c}) {
    EXPECT_EQ(a.priority_class, other->priority_class);
    EXPECT_EQ(a.pod_class, other->pod_class);
    EXPECT_EQ(a.spec.past_execution_s, other->spec.past_execution_s);
    EXPECT_EQ(a.spec.admission, other->spec.admission);
  }
  ASSERT_TRUE(b.spec.admission->pod_sets[0].topology);
  EXPECT_EQ(b.spec.admission->pod_sets[0].topology->domains.size(), 2u);
  EXPECT_EQ(b.spec.past_execution_s, 7);
}

// ---- forms ----

text::Document object_of_kind(const std::string& kind, const char* version,
                              const std::string& body) {
  auto read = text::parse_json("{\"apiVersion\":\"kueue.x-k8s.io/" + std::string(version) +
                               "\",\"kind\":\"" + kind + "\"," + body + "}");
  EXPECT_TRUE(read.ok()) << body;
  return read.ok() ? std::move(*read) : text::Document();
}

struct ConvertRow {
  const char* kind;
  std::string first, second;  // v1beta1, v1beta2
  bool back = true;           // the way down gives the first again
};

void expect_row(const ConvertRow& row) {
  const text::Document first = object_of_kind(row.kind, "v1beta1", row.first);
  const text::Document second = object_of_kind(row.kind, "v1beta2", row.second);
  EXPECT_EQ(convert_kueue(first.root(), KueueVersion::kV1beta2), text::to_json(second.root()));
  if (row.back) {
    EXPECT_EQ(convert_kueue(second.root(), KueueVersion::kV1beta1), text::to_json(first.root()));
  }
}

TEST(KueueConvert, Fields) {
  const auto same = [](const char* kind, const char* body) { return ConvertRow{kind, body, body}; };
  const std::string classes = R"({"group":"scheduling.k8s.io","kind":"PriorityClass","name":"p"})";
  for (const ConvertRow& row : std::initializer_list<ConvertRow>{
           {"ClusterQueue", R"("spec":{"a":1,"cohort":"x","b":2})",
            R"("spec":{"a":1,"cohortName":"x","b":2})"},
           // One value said twice is one value; two values are kept.
           {"ClusterQueue", R"("spec":{"cohort":"x","cohortName":"x"})",
            R"("spec":{"cohortName":"x"})", false},
           same("ClusterQueue", R"("spec":{"cohort":"x","cohortName":"y"})"),
           {"ClusterQueue", R"("spec":{"cohort":null})", R"("spec":{"cohortName":null})"},
           {"ClusterQueue", R"("spec":{"admissionChecks":["a","b"]})",
            R"("spec":{"admissionChecksStrategy":{"admissionChecks":[{"name":"a"},{"name":"b"}]}})",
            false},
           same("ClusterQueue", R"("spec":{"admissionChecks":["a","a"]})"),
           same("ClusterQueue", R"("spec":{"admissionChecks":[]})"),
           same("ClusterQueue", R"("spec":{"admissionChecks":[1]})"),
           same("ClusterQueue", R"("spec":{"admissionChecks":["a"],"admissionChecksStrategy":{}})"),
           {"ClusterQueue",
            R"("spec":{"flavorFungibility":{"whenCanBorrow":"Borrow","whenCanPreempt":"Preempt"}})",
            R"("spec":{"flavorFungibility":{"whenCanBorrow":"MayStopSearch",)"
            R"("whenCanPreempt":"MayStopSearch"}})",
            false},
           same("ClusterQueue", R"("spec":{"flavorFungibility":{"whenCanBorrow":"Preempt"}})"),
           {"LocalQueue", R"("status":{"flavorUsage":[1]})", R"("status":{"flavorsUsage":[1]})"},
           same("ClusterQueue", R"("status":{"flavorUsage":[1]})"),
           {"Workload", R"("status":{"accumulatedPastExexcutionTimeSeconds":3})",
            R"("status":{"accumulatedPastExecutionTimeSeconds":3})"},
           {"Workload",
            R"("spec":{"priorityClassName":"p",)"
            R"("priorityClassSource":"scheduling.k8s.io/priorityclass"})",
            "\"spec\":{\"priorityClassRef\":" + classes + "}"},
           // What the other version cannot say.
           same("Workload", R"("spec":{"priorityClassName":"p"})"),
           same("Workload", R"("spec":{"priorityClassName":"p","priorityClassSource":"other"})"),
           same("Workload", R"("spec":{"priorityClassRef":{"group":"g","kind":"K","name":"n"}})"),
           same("Workload", R"("spec":{"priorityClassRef":{"name":"n"}})"),
           same("Workload", R"("spec":{"podSets":[{"topologyRequest":)"
                            R"({"podsetSliceRequiredTopologyConstraints":[{"size":2}]}}]})"),
           {"MultiKueueCluster", R"("spec":{"kubeConfig":{"location":"l"}})",
            R"("spec":{"clusterSource":{"kubeConfig":{"location":"l"}}})"},
           {"MultiKueueCluster", R"("spec":{"a":1,"clusterProfileRef":{"name":"n"}})",
            R"("spec":{"a":1,"clusterSource":{"clusterProfileRef":{"name":"n"}}})"},
           same("MultiKueueCluster", R"("spec":{"clusterSource":{}})"),
           same("MultiKueueCluster", R"("spec":{"clusterSource":["kubeConfig"]})"),
           same("MultiKueueCluster", R"("spec":{"clusterSource":{"other":1}})"),
           same("MultiKueueCluster", R"("spec":{"kubeConfig":1,"clusterSource":{"kubeConfig":2}})"),
           same("MultiKueueConfig", R"("spec":{"quotaManagement":"Manual"})"),
           same("Cohort", R"("spec":{"cohort":"x","parentName":"y"})"),
           same("ClusterQueue", R"("spec":["cohort"],"status":7)"),
           same("ClusterQueue", R"("metadata":{"cohort":"x"},"cohort":1)"),
           same("Workload", R"("status":{"admission":{"podSetAssignments":[1,{}],"x":{}}})"),
       }) {
    expect_row(row);
  }
}

std::string with_assignment(const std::string& assignment) {
  return R"("status":{"admission":{"podSetAssignments":[{"name":"m","topologyAssignment":)" +
         assignment + "}]}}";
}

TEST(KueueConvert, TopologyAssignmentsKeepTheirOrder) {
  const std::string domains = R"({"levels":["r","h"],"domains":[{"values":["b","n-2"],"count":1},)"
                              R"({"values":["b","n-1"],"count":2}]})";
  const std::string slices =
      R"({"levels":["r","h"],"slices":[{"domainCount":2,"valuesPerLevel":[{"universal":"b"},)"
      R"({"individual":{"roots":["n-2","n-1"]}}],"podCounts":{"individual":[1,2]}}]})";
  expect_row({"Workload", with_assignment(domains), with_assignment(slices)});
  // Packed otherwise, the same domains.
  const std::string otherwise =
      R"({"levels":["r","h"],"slices":[{"domainCount":1,"valuesPerLevel":[{"universal":"b"},)"
      R"({"individual":{"prefix":"n-","roots":["2"]}}],"podCounts":{"universal":1}},)"
      R"({"domainCount":1,"valuesPerLevel":[{"universal":"b"},)"
      R"({"individual":{"roots":["n"],"suffix":"-1"}}],"podCounts":{"individual":[2]}}]})";
  const text::Document packed = object_of_kind("Workload", "v1beta2", with_assignment(otherwise));
  EXPECT_EQ(convert_kueue(packed.root(), KueueVersion::kV1beta1),
            text::to_json(object_of_kind("Workload", "v1beta1", with_assignment(domains)).root()));
}

TEST(KueueConvert, WhatIsNoAssignmentStaysAsItIs) {
  const std::string slice =
      R"({"domainCount":9,"valuesPerLevel":[{"universal":"b"}],"podCounts":{"universal":1}})";
  for (const std::string& body : {
           std::string("7"),
           std::string(R"({"levels":[],"slices":[],"domains":[]})"),
           std::string(R"({"levels":["a"],"domains":[{"values":["x","y"],"count":1}]})"),
           std::string(R"({"levels":["a"],"domains":[{"values":["x"],"count":1.5}]})"),
           std::string(R"({"levels":["a"],"domains":[{"values":["x"],"count":1,"more":2}]})"),
           R"({"levels":["a","b"],"slices":[)" + slice + "]}",
           R"({"levels":["a"],"slices":[)" + slice + ",{}]}",
           std::string(R"({"levels":["a"],"slices":[{"domainCount":1,"valuesPerLevel":{"u":"b"},)"
                       R"("podCounts":{"universal":1}}]})"),
           R"({"levels":["a"],"domains":[],"slices":[)" + slice + "]}",
       }) {
    expect_row({"Workload", with_assignment(body), with_assignment(body)});
  }
}

TEST(KueueConvert, AFewBytesDoNotBecomeMany) {
  const std::string name(1'000, 'x');
  std::string sets;
  for (int i = 0; i < 50; ++i) {
    if (i > 0) sets += ",";
    sets += R"({"topologyAssignment":{"levels":["a"],"slices":[{"domainCount":1000,)"
            R"("valuesPerLevel":[{"universal":")" +
            name + R"("}],"podCounts":{"universal":1}}]}})";
  }
  const text::Document object = object_of_kind(
      "Workload", "v1beta2", R"("status":{"admission":{"podSetAssignments":[)" + sets + "]}}");
  const std::string down = convert_kueue(object.root(), KueueVersion::kV1beta1);
  EXPECT_LT(down.size(), std::size_t{9} << 20);
  EXPECT_NE(down.find("domains"), std::string::npos);
  EXPECT_NE(down.find("slices"), std::string::npos);
}

TEST(KueueConvert, WhatAServerHoldsUnconvertedIsReadAsItWasMeant) {
  const auto cohort_of = [](const std::string& metadata) {
    const Inputs in = read(R"(
{apiVersion: kueue.x-k8s.io/v1beta1, kind: ResourceFlavor, metadata: {name: f}}
---
apiVersion: kueue.x-k8s.io/v1beta2
kind: ClusterQueue
metadata: {name: team)" + metadata +
                           R"(}
spec:
  cohort: org
  resourceGroups:
  - coveredResources: [cpu]
    flavors: [{name: f, resources: [{name: cpu, nominalQuota: 4}]}]
)");
    return in.queues.queues.empty() ? std::string("no queue") : in.queues.queues[0].cohort;
  };
  EXPECT_EQ(cohort_of(", resourceVersion: '7'"), "org");
  EXPECT_EQ(cohort_of(""), "");  // a file is what it says
}

// ---- random objects ----

class KueueMaker {
 public:
  explicit KueueMaker(std::uint64_t seed) : random_(seed) {}

  // pure: as the version has it; otherwise any field with any value.
  std::string object(bool second, bool pure) {
    const char* kinds[] = {"ClusterQueue", "LocalQueue", "Workload", "MultiKueueCluster", "Cohort"};
    const std::string kind = kinds[random_.below(5)];
    std::string out = "{\"apiVersion\":\"kueue.x-k8s.io/v1beta" + std::string(second ? "2" : "1") +
                      "\",\"kind\":\"" + kind + "\",\"metadata\":{\"name\":" + word() + "}";
    if (random_.chance(9, 10)) out += ",\"spec\":" + fields(kind, true, second, pure);
    if (random_.chance(1, 2)) out += ",\"status\":" + fields(kind, false, second, pure);
    return out + "}";
  }

 private:
  std::string word() { return "\"w" + std::to_string(++words_) + "\""; }
  std::string any(int depth) {
    switch (random_.below(depth > 3 ? 4 : 6)) {
      case 0:
        return "null";
      case 1:
        return std::to_string(random_.between(-3, 300));
      case 2:
        return random_.chance(1, 2) ? "1.50" : "true";
      case 3:
        return word();
      case 4:
        return "[" + any(depth + 1) + "," + any(depth + 1) + "]";
      default:
        return "{" + word() + ":" + any(depth + 1) + "," + word() + ":" + any(depth + 1) + "}";
    }
  }
  std::string priority_ref() {
    const bool pod = random_.chance(1, 2);
    return std::string("{\"group\":\"") + (pod ? "scheduling.k8s.io" : "kueue.x-k8s.io") +
           "\",\"kind\":\"" + (pod ? "PriorityClass" : "WorkloadPriorityClass") +
           "\",\"name\":" + word() + "}";
  }
  std::string admission() {
    std::string slices;
    for (std::uint64_t i = 0, n = random_.below(3); i < n; ++i) {
      slices += i == 0 ? "" : ",";
      slices += R"({"domainCount":2,"valuesPerLevel":[{"universal":)" + word() +
                R"(},{"individual":{"prefix":"p","roots":[)" + word() + "," + word() +
                R"(]}}],"podCounts":{"universal":3}})";
    }
    return R"({"clusterQueue":)" + word() + R"(,"podSetAssignments":[{"name":)" + word() +
           R"(,"topologyAssignment":{"levels":["a","b"],"slices":[)" + slices + "]}}]}";
  }
  std::string fields(const std::string& kind, bool spec, bool second, bool pure) {
    std::vector<std::pair<std::string, std::string>> all = {{"x", any(0)}, {"y", any(0)}};
    if (pure && second) {
      if (kind == "ClusterQueue" && spec) {
        all.push_back({"cohortName", word()});
        all.push_back({"admissionChecksStrategy", any(0)});
        all.push_back({"flavorFungibility", R"({"whenCanBorrow":"MayStopSearch"})"});
      }
      if (kind == "Workload" && spec) all.push_back({"priorityClassRef", priority_ref()});
      if (kind == "Workload" && !spec) all.push_back({"admission", admission()});
      if (kind == "LocalQueue" && !spec) all.push_back({"flavorsUsage", any(0)});
      if (kind == "MultiKueueCluster" && spec) {
        all.push_back({"clusterSource", "{\"kubeConfig\":" + any(0) + "}"});
      }
    } else {
      for (const char* key :
           {"cohort", "cohortName", "admissionChecks", "admissionChecksStrategy",
            "flavorFungibility", "priorityClassName", "priorityClassSource", "priorityClassRef",
            "flavorUsage", "flavorsUsage", "accumulatedPastExexcutionTimeSeconds",
            "accumulatedPastExecutionTimeSeconds", "kubeConfig", "clusterProfileRef",
            "clusterSource", "admission"}) {
        if (random_.chance(1, 3)) all.push_back({key, any(0)});
      }
      if (random_.chance(1, 3)) all.push_back({"other", admission()});
    }
    random_.shuffle(all);
    std::string out = "{";
    for (std::size_t i = 0; i < all.size(); ++i) {
      if (i > 0) out += ",";
      out += "\"" + all[i].first + "\":" + all[i].second;
    }
    return out + "}";
  }

  Random random_;
  int words_ = 0;
};

TEST(KueueConvert, DownAndUpAgainIsTheSameObject) {
  const int rounds = std::getenv("BERTH_SOAK") != nullptr ? 200'000 : 2'000;
  KueueMaker maker(7);
  for (int i = 0; i < rounds; ++i) {
    const std::string json = maker.object(true, true);
    const auto object = text::parse_json(json);
    ASSERT_TRUE(object.ok()) << json;
    const text::Document down = converted(*object, KueueVersion::kV1beta1);
    const text::Document again = converted(down, KueueVersion::kV1beta2);
    // Slices may be packed otherwise: seen from v1beta1 they are the same.
    ASSERT_TRUE(text::equal(converted(again, KueueVersion::kV1beta1).root(), down.root())) << json;
    if (json.find("slices") == std::string::npos) {
      ASSERT_TRUE(text::equal(again.root(), object->root())) << json;
    }
  }
}

TEST(KueueConvert, WhateverComesSettlesAfterOneRound) {
  const int rounds = std::getenv("BERTH_SOAK") != nullptr ? 200'000 : 2'000;
  KueueMaker maker(11);
  for (int i = 0; i < rounds; ++i) {
    const std::string json = maker.object(i % 2 == 0, false);
    const auto object = text::parse_json(json);
    ASSERT_TRUE(object.ok()) << json;
    const text::Document up = converted(*object, KueueVersion::kV1beta2);
    const text::Document down = converted(up, KueueVersion::kV1beta1);
    const text::Document up2 = converted(down, KueueVersion::kV1beta2);
    ASSERT_TRUE(text::equal(up.root(), up2.root())) << json;
    ASSERT_TRUE(text::equal(*up.root().find("metadata"), *object->root().find("metadata")));
  }
}

// ---- reviews ----

std::string conversion_review(const std::string& to, const std::string& objects) {
  return R"({"kind":"ConversionReview","apiVersion":"apiextensions.k8s.io/v1",)"
         R"("request":{"uid":"u-1",)"
         R"("desiredAPIVersion":")" +
         to + R"(","objects":[)" + objects + "]}}";
}

TEST(KueueConvertReview, ConvertsEveryObjectInItsOrder) {
  const auto answer = review_conversion(conversion_review(
      "kueue.x-k8s.io/v1beta2",
      R"({"apiVersion":"kueue.x-k8s.io/v1beta1","kind":"ClusterQueue","spec":{"cohort":"a"}},)"
      R"({"apiVersion":"kueue.x-k8s.io/v1beta2","kind":"ClusterQueue","spec":{"cohort":"b"}})"));
  ASSERT_TRUE(answer.ok());
  EXPECT_TRUE(answer->converted);
  EXPECT_EQ(
      answer->body,
      R"({"kind":"ConversionReview","apiVersion":"apiextensions.k8s.io/v1",)"
      R"("response":{"uid":"u-1",)"
      R"("result":{"status":"Success"},"convertedObjects":[)"
      R"({"apiVersion":"kueue.x-k8s.io/v1beta2","kind":"ClusterQueue","spec":{"cohortName":"a"}},)"
      R"({"apiVersion":"kueue.x-k8s.io/v1beta2","kind":"ClusterQueue","spec":{"cohort":"b"}}]}})");
}

TEST(KueueConvertReview, NamesTheObjectAndTheFieldThatStopIt) {
  const std::string good = R"({"apiVersion":"kueue.x-k8s.io/v1beta1","kind":"Workload"},)";
  const std::pair<std::string, const char*> rows[] = {
      {R"({"apiVersion":"batch/v1","kind":"Job","metadata":{"namespace":"n","name":"j"}})",
       R"(objects[1] ("Job" "n/j"): apiVersion: found "batch/v1", want kueue.x-k8s.io/v1beta1 or )"
       "kueue.x-k8s.io/v1beta2"},
      {R"({"apiVersion":"kueue.x-k8s.io/v1alpha1","kind":"Cohort"})", R"(objects[1] ("Cohort"))"},
      {"7", "objects[1]: object: found \"number\", want an object"},
      {R"({"apiVersion":"kueue.x-k8s.io/v1beta1"})", "objects[1]: kind"},
  };
  for (const auto& [object, why] : rows) {
    const auto answer =
        review_conversion(conversion_review("kueue.x-k8s.io/v1beta2", good + object));
    ASSERT_TRUE(answer.ok());
    EXPECT_FALSE(answer->converted);
    EXPECT_NE(answer->why.find(why), std::string::npos) << answer->why;
    const auto read = text::parse_json(answer->body);
    ASSERT_TRUE(read.ok());
    const text::Value& response = *read->root().find("response");
    EXPECT_EQ(response.find("result")->find("status")->string(), "Failure");
    EXPECT_EQ(response.find("result")->find("message")->string(), answer->why);
    EXPECT_EQ(response.find("convertedObjects"), nullptr);
  }
  const auto other = review_conversion(conversion_review("kueue.x-k8s.io/v1beta3", ""));
  ASSERT_TRUE(other.ok());
  EXPECT_NE(other->why.find("desiredAPIVersion"), std::string::npos);
}

TEST(KueueConvertReview, WhatIsNoReviewIsRefused) {
  for (const char* body :
       {"", "7", "{", "[]", "{}",
        R"({"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1"})",
        R"({"kind":"ConversionReview","apiVersion":"apiextensions.k8s.io/v1beta1"})",
        R"({"kind":"ConversionReview","apiVersion":"apiextensions.k8s.io/v1"})",
        R"({"kind":"ConversionReview","apiVersion":"apiextensions.k8s.io/v1",)"
        R"("request":{"uid":""}})"}) {
    EXPECT_FALSE(review_conversion(body).ok()) << body;
  }
  const std::string deep = std::string(2'000, '[') + std::string(2'000, ']');
  EXPECT_FALSE(review_conversion(conversion_review("kueue.x-k8s.io/v1beta2", deep)).ok());
}

TEST(KueueConvertReview, AnAnswerHasABound) {
  std::string objects;
  for (int i = 0; i < 20; ++i) {
    if (i > 0) objects += ",";
    objects += R"({"apiVersion":"kueue.x-k8s.io/v1beta2","kind":"Workload",)" +
               with_assignment(R"({"levels":["a"],"slices":[{"domainCount":99999,)"
                               R"("valuesPerLevel":[{"universal":"aaaaaaaaaaaaaaaa"}],)"
                               R"("podCounts":{"universal":1}}]})") +
               "}";
  }
  const auto answer = review_conversion(conversion_review("kueue.x-k8s.io/v1beta1", objects));
  ASSERT_TRUE(answer.ok());
  EXPECT_FALSE(answer->converted);
  EXPECT_LT(answer->body.size(), 1'000u);
}

}  // namespace
}  // namespace berth::kinds
