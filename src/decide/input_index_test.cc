#include "decide/input_index.h"

#include <gtest/gtest.h>

namespace berth::decide {
namespace {

model::PodSpec indexed_pod(const std::string& name, const std::string& owner,
                           const std::string& node) {
  model::PodSpec out;
  out.ns = "d";
  out.name = name;
  out.owner = owner;
  out.node_name = node;
  return out;
}

model::NodeSpec indexed_node(const std::string& name, const std::string& hostname) {
  model::NodeSpec out;
  out.name = name;
  if (!hostname.empty()) out.labels[model::kHostnameLabel] = hostname;
  return out;
}

TEST(InputIndex, FindsPodsByNameAndOwnerAndNodesByHostname) {
  const std::vector<model::NodeSpec> nodes = {indexed_node("a", "host-a"), indexed_node("b", "")};
  const std::vector<model::PodSpec> pods = {
      indexed_pod("one", "Job/j", "a"), indexed_pod("two", "Job/j", "b"),
      indexed_pod("three", "Job/j", ""), indexed_pod("four", "", "a")};
  const InputIndex index(nodes, pods);
  EXPECT_EQ(index.pod("d/three"), &pods[2]);
  EXPECT_EQ(index.pod("d/five"), nullptr);
  const auto running = index.running_of("d/Job/j");  // three has no node
  ASSERT_EQ(running.size(), 2u);
  EXPECT_EQ(running[0], &pods[0]);
  EXPECT_EQ(running[1], &pods[1]);
  EXPECT_TRUE(index.running_of("d/Job/k").empty());
  EXPECT_EQ(*index.node_of("host-a"), "a");
  EXPECT_EQ(*index.node_of("b"), "b");
  EXPECT_EQ(index.node_of("a"), nullptr);
}

TEST(InputIndex, ChangesOfACopyAreItsOwn) {
  const std::vector<model::NodeSpec> nodes = {indexed_node("a", ""), indexed_node("c", "")};
  const std::vector<model::PodSpec> pods = {indexed_pod("one", "Job/j", "a"),
                                            indexed_pod("two", "Job/j", "a")};
  const InputIndex index(nodes, pods);
  InputIndex copy = index;
  const model::NodeSpec between = indexed_node("b", ""), again = indexed_node("c", "");
  copy.put(between);
  copy.put(again);
  const model::PodSpec moved = indexed_pod("one", "Job/k", "c");
  const model::PodSpec fresh = indexed_pod("two", "Job/j", "c");
  copy.put(moved);
  copy.put(fresh);
  ASSERT_EQ(copy.nodes().size(), 3u);
  EXPECT_EQ(copy.nodes()[1], &between);
  EXPECT_EQ(copy.nodes()[2], &again);
  ASSERT_EQ(copy.running_of("d/Job/j").size(), 1u);
  EXPECT_EQ(copy.running_of("d/Job/j")[0], &fresh);
  EXPECT_EQ(copy.running_of("d/Job/k")[0], &moved);
  copy.remove_pod("d/two");
  copy.remove_pod("d/nobody");
  EXPECT_TRUE(copy.running_of("d/Job/j").empty());
  EXPECT_EQ(copy.pod("d/two"), nullptr);
  EXPECT_EQ(index.nodes().size(), 2u);
  EXPECT_EQ(index.pod("d/one"), &pods[0]);
  EXPECT_EQ(index.running_of("d/Job/j").size(), 2u);
}

}  // namespace
}  // namespace berth::decide
