#include "kinds/policy.h"

#include <fstream>
#include <iterator>

#include "base/random.h"
#include "kinds/object_set.h"
#include "kinds/read_for_test.h"
#include "text/json.h"
#include "text/path.h"

namespace berth::kinds {
namespace {

using model::PlacementPolicy;
using model::QueuePolicy;
using text::Value;

std::string policy_yaml(std::string_view spec, std::string_view name = "default") {
  return "apiVersion: berth.dev/v1alpha1\nkind: BerthPolicy\nmetadata: {name: " +
         std::string(name) + "}\nspec: {" + std::string(spec) + "}\n";
}

model::Policy full_policy() {
  model::Policy out;
  out.placement.packing = PlacementPolicy::Packing::kLeastAllocated;
  out.placement.classes = {{.name = "web",
                            .namespaces = {"a"},
                            .queues = {"q"},
                            .priority_classes = {"high"},
                            .selector = {{"app", text::Operator::kIn, {"x", "y"}}},
                            .spread = true,
                            .over = "topology.kubernetes.io/zone"}};
  out.placement.locality = {{"rack", "r1", 7}};
  out.queues = {.min_runtime_ns = 600'000'000'000,
                .budgets = true,
                .owners_first = true,
                .no_ping_pong = true,
                .max_evictions_per_hour = 3,
                .victims = QueuePolicy::Victims::kLeastLostWork};
  out.set_preemption(false);
  return out;
}

std::string spec_json(const model::Policy& policy) {
  text::JsonWriter out;
  encode_policy(policy, out);
  return std::move(out).take();
}

std::string object_json(const model::Policy& policy) {
  return R"({"apiVersion":"berth.dev/v1alpha1","kind":"BerthPolicy","metadata":{"name":"default"},)"
         R"("spec":)" +
         spec_json(policy) + "}";
}

TEST(Policy, IsReadAndNothingIsGuessed) {
  const Inputs inputs = read_clean(policy_yaml(
      "placement: {packing: MostAllocated, classes: [{name: web, match: {namespaces: [a], "
      "selector: "
      "{matchLabels: {app: x}}}, strategy: Spread, spreadOver: rack}], near: [{key: zone, value: "
      "b}]}, queues: {minRuntime: 1h30m, victims: FewestJobs}, preemption: {enabled: false}"));
  ASSERT_TRUE(inputs.policy);
  const PlacementPolicy& placement = inputs.policy->placement;
  EXPECT_EQ(placement.packing, PlacementPolicy::Packing::kMostAllocated);
  ASSERT_EQ(placement.classes.size(), 1u);
  EXPECT_EQ(placement.classes[0].over, "rack");
  EXPECT_EQ(print_label_selector(placement.classes[0].selector), "app=x");
  ASSERT_EQ(placement.locality.size(), 1u);
  EXPECT_EQ(placement.locality[0].weight, 1);
  EXPECT_FALSE(placement.preemption);
  EXPECT_EQ(inputs.policy->queues.min_runtime_ns, 5'400'000'000'000);
  EXPECT_EQ(inputs.policy->queues.victims, QueuePolicy::Victims::kFewestJobs);
  EXPECT_FALSE(read("{apiVersion: v1, kind: Namespace, metadata: {name: a}}\n").policy);
  EXPECT_EQ(read_clean(policy_yaml("")).policy, model::Policy());
}

TEST(Policy, WhatCannotBeReadIsAnErrorAndNothingOfItIsInForce) {
  constexpr std::pair<const char*, const char*> kWrong[] = {
      {"placements: {}", "spec.placements: found an unknown field"},
      {"placement: {Packing: x}", "spec.placement.Packing: found an unknown field, want packing"},
      {"placement: {packing: Best}", "want one of Fragmentation, MostAllocated, LeastAllocated"},
      {"placement: {classes: [{name: a, match: {}, strategy: Pack, spreadOver: rack}]}",
       "spec.placement.classes[0].spreadOver: found spreadOver with strategy Pack"},
      {"placement: {classes: [{name: a, match: {}}]}", "classes[0].strategy: found nothing"},
      {"placement: {classes: [{name: a, match: {}, strategy: Pack}, {name: a, match: {}, strategy: "
       "Pack}]}",
       "classes[1]: found a second class \"a\""},
      {"placement: {classes: [{name: a, match: {selector: {matchExpressions: [{key: k, operator: "
       "Is}]}}, strategy: Pack}]}",
       "matchExpressions[0].operator"},
      {"placement: {near: [{key: 'a b', value: x}]}", "near[0].key"},
      {"placement: {near: [{key: a, value: x, weight: 0}]}", "weight"},
      {"queues: {minRuntime: -1m}", "queues.minRuntime"},
      {"queues: {maxEvictionsPerHour: 65}", "want an integer 0..64"},
      {"preemption: {enabled: 'no'}", "preemption.enabled"},
      {"pools: []", "spec.pools: found an unknown field"},
  };
  for (const auto& [spec, says] : kWrong) {
    const Inputs inputs = read(policy_yaml(spec));
    EXPECT_FALSE(inputs.policy) << spec;
    EXPECT_NE(all(inputs.invalid).find(says), std::string::npos) << spec << "\n"
                                                                 << all(inputs.invalid);
  }
}

TEST(Policy, OnlyTheOneNamedDefaultCounts) {
  const Inputs inputs = read(policy_yaml("preemption: {enabled: false}", "other"));
  EXPECT_FALSE(inputs.policy);
  EXPECT_NE(all(inputs.warnings).find("only the BerthPolicy named default"), std::string::npos);
}

TEST(Policy, FlagsGoBeforeTheirPart) {
  const model::Policy object = full_policy();
  EXPECT_EQ(model::in_force(object, {}), object);
  model::PolicyFlags flags;
  flags.placement = PlacementPolicy();
  const model::Policy by_flag = model::in_force(object, flags);
  EXPECT_TRUE(by_flag.placement.classes.empty());
  EXPECT_FALSE(by_flag.placement.preemption) << "that is another part";
  EXPECT_EQ(by_flag.queues, object.queues);
  flags = {.queues = QueuePolicy()};
  EXPECT_FALSE(model::in_force(object, flags).queues.budgets);
  EXPECT_FALSE(model::in_force({}, {.no_preemption = true}).queues.preemption);
}

template <class E>
E any_of(Random& random, std::initializer_list<E> all) {
  return *(all.begin() + random.below(all.size()));
}

TEST(Policy, IsReadAsItIsWritten) {
  for (std::uint64_t seed = 1; seed <= 200; ++seed) {
    Random random(seed);
    model::Policy policy;
    using Packing = PlacementPolicy::Packing;
    policy.placement.packing = any_of(
        random, {Packing::kFragmentation, Packing::kMostAllocated, Packing::kLeastAllocated});
    for (std::uint64_t n = random.below(4); n > 0; --n) {
      PlacementPolicy::Class one{.name = "c" + std::to_string(n), .spread = random.chance(1, 2)};
      if (random.chance(1, 2)) one.namespaces = {"a", "b"};
      if (random.chance(1, 2)) one.queues = {"q"};
      if (random.chance(1, 2)) one.priority_classes = {"p"};
      if (random.chance(1, 2)) one.selector = {{"k", text::Operator::kExists, {}}};
      if (one.spread && random.chance(1, 2)) one.over = "rack";
      policy.placement.classes.push_back(std::move(one));
    }
    for (std::uint64_t n = random.below(3); n > 0; --n) {
      policy.placement.locality.push_back(
          {"zone", random.chance(1, 2) ? "a" : "", static_cast<int>(1 + random.below(9))});
    }
    using Victims = QueuePolicy::Victims;
    policy.queues = {
        .min_runtime_ns = static_cast<std::int64_t>(random.below(1'000'000)) * 1'000'000,
        .budgets = random.chance(1, 2),
        .owners_first = random.chance(1, 2),
        .no_ping_pong = random.chance(1, 2),
        .max_evictions_per_hour = static_cast<int>(random.below(65)),
        .victims = any_of(
            random, {Victims::kLowestPriority, Victims::kFewestJobs, Victims::kLeastLostWork})};
    policy.set_preemption(random.chance(1, 2));
    const Inputs inputs = read_clean(object_json(policy));
    ASSERT_TRUE(inputs.policy) << seed;
    ASSERT_EQ(*inputs.policy, policy) << object_json(policy);
  }
}

// deploy/crds/berthpolicies.yaml has every field that is written, and no other.
void check_fields(const Value& value, const Value& schema, const std::string& path) {
  const Value* properties = schema.find("properties");
  if (value.is_object() && properties != nullptr) {
    for (const text::Member& m : value.members()) {
      const Value* of = properties->find(m.key);
      ASSERT_NE(of, nullptr) << path << "." << m.key << " is not in the schema";
      check_fields(m.value, *of, path + "." + std::string(m.key));
    }
    for (const text::Member& m : properties->members()) {
      if (m.key == "matchLabels") continue;  // is written as an expression
      EXPECT_NE(value.find(m.key), nullptr) << path << "." << m.key << " is not written";
    }
  } else if (value.is_array()) {
    EXPECT_NE(schema.find("maxItems"), nullptr) << path << " has no bound";
    ASSERT_GT(value.size(), 0u) << path;
    check_fields(value.items()[0], *schema.find("items"), path + "[]");
  } else if (const Value* words = schema.find("enum")) {
    EXPECT_TRUE(std::any_of(words->items().begin(), words->items().end(), [&](const Value& word) {
      return word.string() == value.string();
    })) << path;
  }
}

TEST(Policy, TheSchemaHasWhatIsReadAndSaid) {
  std::ifstream file(BERTH_CRD_DIR "/berthpolicies.yaml");
  const std::string yaml{std::istreambuf_iterator<char>(file), {}};
  const auto crd = text::parse_yaml(yaml);
  ASSERT_TRUE(crd.ok()) << crd.error().to_string();
  const Value* versions = find(crd->at(0).root(), "spec.versions");
  const Value* schema = find(versions->items()[0], "schema.openAPIV3Schema.properties");
  const auto spec = text::parse_json(spec_json(full_policy()));
  check_fields(spec->root(), *schema->find("spec"), "spec");
  const auto object = text::parse_json(object_json(full_policy()));
  const auto patch = text::parse_json(policy_status_patch(object->root(), {"--policy=pack"}, 0));
  check_fields(*patch->root().find("status"), *schema->find("status"), "status");
}

// ---- status ----

std::string said(const std::string& yaml, const std::vector<std::string>& flags = {}) {
  const auto object = text::parse_yaml(yaml);
  return policy_status_patch(object->at(0).root(), flags, 1'735'732'800'000'000'000);
}

TEST(Policy, SaysWhetherItIsInForce) {
  EXPECT_EQ(said(policy_yaml("")),
            R"({"status":{"observedGeneration":0,"conditions":[{"type":"Valid","status":"True",)"
            R"("reason":"Read","message":"every field of it is read","observedGeneration":0,)"
            R"("lastTransitionTime":"2025-01-01T12:00:00Z"},{"type":"InForce","status":"True",)"
            R"("reason":"Read","message":"decisions are made by it","observedGeneration":0,)"
            R"("lastTransitionTime":"2025-01-01T12:00:00Z"}],"flags":[]}})");
  const std::string by_flag = said(policy_yaml(""), {"--policy=pack", "--no-preemption"});
  EXPECT_NE(by_flag.find(R"("reason":"FlagsGoBefore")"), std::string::npos) << by_flag;
  EXPECT_NE(by_flag.find(R"("flags":["--policy=pack","--no-preemption"])"), std::string::npos);
  const std::string wrong = said(policy_yaml("queues: {budgets: 3}"));
  EXPECT_NE(wrong.find(R"("message":"spec.queues.budgets: found number 3, want true or false")"),
            std::string::npos)
      << wrong;
  EXPECT_NE(wrong.find(R"("type":"InForce","status":"False","reason":"Invalid")"),
            std::string::npos);
  const std::string other = said(policy_yaml("", "other"), {"--policy=pack"});
  EXPECT_NE(other.find(R"("reason":"NotNamedDefault")"), std::string::npos);
  EXPECT_NE(other.find(R"("flags":[])"), std::string::npos);
}

TEST(Policy, SaysNothingTwice) {
  const std::string yaml = policy_yaml("queues: {budgets: true}");
  const auto first = text::parse_json(said(yaml, {"--policy=pack"}));
  const std::string now = yaml + "status: " + text::to_json(*first->root().find("status")) + "\n";
  EXPECT_EQ(said(now, {"--policy=pack"}), "");
  EXPECT_NE(said(now), "") << "the flag is gone";
}

// ---- in a cluster that lives ----

TEST(Policy, AChangeOfTheOneInForceIsFeltAndNoOther) {
  ObjectSet set;
  const auto put = [&](const std::string& yaml) {
    return set.put("berth.dev/v1alpha1", "BerthPolicy", text::parse_yaml(yaml)->at(0).root());
  };
  EXPECT_EQ(put(policy_yaml("queues: {budgets: true}", "other")), Effect::kNone);
  EXPECT_FALSE(set.policy());
  EXPECT_EQ(put(policy_yaml("queues: {budgets: true}")), Effect::kNow);
  ASSERT_TRUE(set.policy());
  EXPECT_TRUE(set.policy()->queues.budgets);
  EXPECT_TRUE(set.take_changes(10).everything);
  EXPECT_EQ(put(policy_yaml("queues: {budgets: true}") + "status: {flags: []}\n"), Effect::kNone);
  EXPECT_EQ(put(policy_yaml("queues: {budgets: 1}")), Effect::kNow) << "nothing of it is in force";
  EXPECT_FALSE(set.policy());
  put(policy_yaml("queues: {budgets: true}"));
  EXPECT_EQ(set.remove("berth.dev/v1alpha1", "BerthPolicy", "", "default"), Effect::kNow);
  EXPECT_FALSE(set.policy());
}

}  // namespace
}  // namespace berth::kinds
