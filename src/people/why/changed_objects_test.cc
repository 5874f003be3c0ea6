#include "people/why/changed_objects.h"

#include <gtest/gtest.h>

#include "text/json.h"

namespace berth::people {
namespace {

class TwoQueues : public ObjectSource {
 public:
  TwoQueues() : one_(*text::parse_json(R"({"spec":{"stop":1}})")), two_(*text::parse_json("{}")) {}
  std::optional<RawObject> find(std::string_view kind, std::string_view /*ns*/,
                                std::string_view name) const override {
    for (const RawObject& raw : of_kind(kind)) {
      if (raw.name == name) return raw;
    }
    return std::nullopt;
  }
  std::vector<RawObject> of_kind(std::string_view kind) const override {
    if (kind != "Queue") return {};
    return {{"v1", "Queue", "", "one", "u1", "7", &one_.root()},
            {"v1", "Queue", "", "two", "u2", "8", &two_.root()}};
  }

 private:
  text::Document one_, two_;
};

TEST(Behind, ChangedObjectsAreSeenAsTheyAreThen) {
  const TwoQueues below;
  Draft draft;
  (*draft.edit(&below, "Queue", "", "one"))["spec"].erase("stop");
  draft.remove(&below, "Queue", "", "two");
  Tree made;
  made["apiVersion"] = Tree::of_text("v1");
  made["kind"] = Tree::of_text("Queue");
  made["metadata"]["name"] = Tree::of_text("three");
  draft.create(std::move(made));
  const ChangedObjects then(below, draft.objects);
  ASSERT_TRUE(then.find("Queue", "", "one"));
  EXPECT_EQ(then.find("Queue", "", "one")->value->find("spec")->find("stop"), nullptr);
  EXPECT_EQ(then.find("Queue", "", "one")->uid, "u1");
  EXPECT_FALSE(then.find("Queue", "", "two"));
  EXPECT_TRUE(then.find("Queue", "", "three"));
  EXPECT_EQ(then.of_kind("Queue").size(), 2u);
  EXPECT_TRUE(then.of_kind("Pod").empty());
}

TEST(Behind, TwoChangesAreToldAsOne) {
  const TwoQueues below;
  Draft first;
  (*first.edit(&below, "Queue", "", "one"))["spec"]["stop"] = Tree::of_number(2);
  Tree made;
  made["kind"] = Tree::of_text("Queue");
  made["metadata"]["name"] = Tree::of_text("three");
  first.create(std::move(made));
  const ChangedObjects then(below, first.objects);
  Draft second;
  (*second.edit(&then, "Queue", "", "one"))["spec"]["more"] = Tree::of_number(3);
  second.remove(&then, "Queue", "", "three");
  second.remove(&then, "Queue", "", "two");
  const std::vector<ObjectChange> both = one_after_the_other(first.objects, second.objects);
  ASSERT_EQ(both.size(), 2u) << "what is made and deleted again is no change";
  EXPECT_EQ(both[0].before->find("spec")->find("stop")->string(), "1");
  EXPECT_EQ(both[0].after->find("spec")->find("stop")->string(), "2");
  EXPECT_EQ(both[0].after->find("spec")->find("more")->string(), "3");
  EXPECT_EQ(both[1].name, "two");
  EXPECT_FALSE(both[1].after);
}

}  // namespace
}  // namespace berth::people
