#include "rules/limit_range.h"

#include <gtest/gtest.h>

#include "text/yaml.h"

namespace berth::rules {
namespace {

text::Document yaml_of(std::string_view yaml) {
  auto parsed = text::parse_yaml(yaml);
  EXPECT_TRUE(parsed.ok() && parsed->size() == 1) << yaml;
  return parsed.ok() && !parsed->empty() ? std::move(parsed->front()) : text::Document();
}

std::vector<RangeItem> range_of(std::string_view items) {
  const text::Document range = yaml_of("spec: {limits: [" + std::string(items) + "]}");
  return read_range(range.root());
}

std::string against(std::string_view items, std::string_view spec) {
  const text::Document pod = yaml_of(spec);
  return words_of(breaches_of(range_of(items), pod.root()));
}

TEST(LimitRange, FillsInWhatIsNotStated) {
  const auto range = range_of(
      "{type: Container, max: {memory: 4Gi}, default: {cpu: 2}, defaultRequest: {cpu: 1}}, "
      "{type: Pod, max: {cpu: 9}}");
  const text::Document spec = yaml_of(R"(
containers: [{name: a}, {name: b, resources: {limits: {cpu: 4, memory: 1Gi}}}]
initContainers: [{name: i, resources: {requests: {cpu: 500m}}}]
)");
  const auto filled = filled_by(range, spec.root());
  std::string told;
  for (const Filled& one : filled) {
    told += std::string(one.list.substr(0, 1)) + std::to_string(one.container) +
            (one.limit ? " limit " : " request ") + one.resource + "=" + one.amount + "; ";
  }
  EXPECT_EQ(told,
            "c0 limit cpu=2; c0 limit memory=4Gi; c0 request cpu=1; c0 request memory=4Gi; "
            "i0 limit cpu=2; i0 limit memory=4Gi; i0 request memory=4Gi; ");
  EXPECT_EQ(filled_note(filled, spec.root()),
            "LimitRanger plugin set: cpu, memory request for container a; cpu, memory limit for "
            "container a; memory request for init container i; cpu, memory limit for init "
            "container i");
}

TEST(LimitRange, Sentences) {
  struct Case {
    const char* items;
    const char* resources;
    const char* words;
  };
  const Case cases[] = {
      {"{type: Container, max: {cpu: 2}}", "{limits: {cpu: 4}}",
       "maximum cpu usage per Container is 2, but limit is 4"},
      {"{type: Container, max: {cpu: 2}}", "{requests: {cpu: 1}}",
       "maximum cpu usage per Container is 2.  No limit is specified"},
      {"{type: Container, max: {cpu: 2}}", "{limits: {cpu: 2}}", ""},
      {"{type: Container, min: {cpu: 500m}}", "{requests: {cpu: 100m}}",
       "minimum cpu usage per Container is 500m, but request is 100m"},
      {"{type: Container, min: {memory: 1Gi}}", "{}",
       "minimum memory usage per Container is 1Gi.  No request is specified"},
      {"{type: Container, min: {memory: 1Gi}}", "{requests: {memory: 1Gi}, limits: {memory: 1Mi}}",
       "minimum memory usage per Container is 1Gi, but limit is 1Mi"},
      {"{type: Container, maxLimitRequestRatio: {cpu: 2}}",
       "{requests: {cpu: 1}, limits: {cpu: 3}}",
       "cpu max limit to request ratio per Container is 2, but provided ratio is 3.000000"},
      {"{type: Container, maxLimitRequestRatio: {cpu: 2}}", "{requests: {cpu: 1}}",
       "cpu max limit to request ratio per Container is 2, but no limit is specified or limit is "
       "0"},
      {"{type: Container, maxLimitRequestRatio: {cpu: 2}}", "{}",
       "cpu max limit to request ratio per Container is 2, but no request is specified or request "
       "is 0"},
      {"{type: Pod, max: {cpu: 2}}", "{limits: {cpu: 4}}",
       "maximum cpu usage per Pod is 2, but limit is 4"},
      {"{type: Container, max: {cpu: 2, memory: 1Gi}}", "{limits: {cpu: 4, memory: 2Gi}}",
       "[maximum cpu usage per Container is 2, but limit is 4, maximum memory usage per Container "
       "is 1Gi, but limit is 2Gi]"},
      {"{type: PersistentVolumeClaim, max: {storage: 1Gi}}", "{limits: {cpu: 4}}", ""},
  };
  for (const Case& c : cases) {
    const std::string spec = "containers: [{name: c, resources: " + std::string(c.resources) + "}]";
    EXPECT_EQ(against(c.items, spec), c.words) << c.items << " " << c.resources;
  }
  // Two containers that say the same are told of once.
  EXPECT_EQ(against("{type: Container, max: {cpu: 2}}",
                    "containers: [{name: a, resources: {limits: {cpu: 4}}}, "
                    "{name: b, resources: {limits: {cpu: 4}}}]"),
            "maximum cpu usage per Container is 2, but limit is 4");
}

TEST(LimitRange, OfClaims) {
  const auto range =
      range_of("{type: PersistentVolumeClaim, min: {storage: 1Gi}, max: {storage: 2Gi}}");
  const auto words = [&](std::string_view asked) {
    const text::Document claim =
        yaml_of("spec: {resources: {requests: {storage: " + std::string(asked) + "}}}");
    return words_of(claim_breaches(range, claim.root()));
  };
  EXPECT_EQ(words("1Gi"), "");
  EXPECT_EQ(words("1Mi"),
            "minimum storage usage per PersistentVolumeClaim is 1Gi, but request is 1Mi");
  EXPECT_EQ(words("3Gi"),
            "maximum storage usage per PersistentVolumeClaim is 2Gi, but request is 3Gi");
}

}  // namespace
}  // namespace berth::rules
