#include "kinds/resolve/quota_left.h"

#include <gtest/gtest.h>

namespace berth::kinds {
namespace {

std::vector<model::ResourceGroup> cpus(std::int64_t nominal, std::optional<std::int64_t> borrow) {
  const model::ResourceQuota quota{
      .resource = "cpu", .nominal = nominal, .borrowing_limit = borrow, .lending_limit = {}};
  return {{.covered = {"cpu"}, .flavors = {{.flavor = "f", .resources = {quota}}}}};
}

model::WorkloadSpec holder(const std::string& queue, std::int64_t cpu) {
  model::WorkloadSpec out;
  out.admission.emplace();
  out.admission->queue = queue;
  out.admission->pod_sets.push_back(
      {.name = "main", .count = 1, .flavors = {{"cpu", "f"}}, .usage = {{"cpu", cpu}}});
  return out;
}

TEST(QuotaLeft, OwnBorrowedAndOfAllTogether) {
  model::QueueInputs in;
  in.queues.push_back({.name = "alone", .cohort = "", .groups = cpus(10, 5)});
  in.queues.push_back({.name = "a", .cohort = "below", .groups = cpus(10, 4)});
  in.queues.push_back({.name = "b", .cohort = "top", .groups = cpus(10, {})});
  in.cohorts.push_back({.name = "below", .parent = "top", .groups = {}});
  in.cohorts.push_back({.name = "top", .parent = "", .groups = cpus(3, {})});
  in.workloads = {holder("a", 8), holder("b", 2), holder("alone", 1)};
  QuotaLeft left(in);
  EXPECT_FALSE(left.take("alone", {{"f", "cpu", 10}})) << "nobody lends to it";
  EXPECT_TRUE(left.take("alone", {{"f", "cpu", 9}}));
  EXPECT_FALSE(left.take("alone", {{"f", "cpu", 1}})) << "what is taken is taken";
  EXPECT_FALSE(left.take("a", {{"f", "cpu", 7}})) << "4 borrowed, 2 of its own";
  EXPECT_FALSE(left.take("a", {{"f", "cpu", 2}, {"g", "cpu", 1}})) << "all of it or nothing";
  EXPECT_TRUE(left.take("a", {{"f", "cpu", 6}}));
  EXPECT_FALSE(left.take("b", {{"f", "cpu", 8}})) << "23 in all, 16 gone";
  EXPECT_TRUE(left.take("b", {{"f", "cpu", 7}}));
  EXPECT_FALSE(left.take("nobody", {{"f", "cpu", 1}}));
}

TEST(QuotaLeft, WhatIsNotLentIsItsOwners) {
  model::QueueInputs in;
  in.queues.push_back({.name = "a", .cohort = "c", .groups = cpus(10, {})});
  in.queues.push_back({.name = "b", .cohort = "c", .groups = cpus(10, {})});
  in.queues[1].groups[0].flavors[0].resources[0].lending_limit = 3;
  in.workloads = {holder("a", 4)};
  QuotaLeft left(in);
  EXPECT_FALSE(left.take("a", {{"f", "cpu", 10}})) << "6 of its own, 3 that b lends";
  EXPECT_EQ(left.take_most("a", {"f", "cpu", 100}), 9);
  EXPECT_EQ(left.take_most("a", {"f", "cpu", 1}), 0);
  EXPECT_EQ(left.take_most("b", {"f", "cpu", 100}), 7) << "what it keeps";
  EXPECT_EQ(left.take_most("b", {"f", "cpu", -1}), 0);
}

TEST(QuotaLeft, CirclesAndAmountsWithoutEnd) {
  model::QueueInputs in;
  in.queues.push_back({.name = "a", .cohort = "x", .groups = cpus(INT64_MAX, {})});
  in.queues.push_back({.name = "b", .cohort = "x", .groups = cpus(INT64_MAX, {})});
  in.cohorts.push_back({.name = "x", .parent = "y", .groups = {}});
  in.cohorts.push_back({.name = "y", .parent = "x", .groups = {}});
  in.workloads = {holder("a", INT64_MAX), holder("a", INT64_MAX - 5)};
  QuotaLeft left(in);
  EXPECT_FALSE(left.take("b", {{"f", "cpu", 6}}));
  EXPECT_TRUE(left.take("b", {{"f", "cpu", 5}})) << "of twice as much as a number holds";
}

}  // namespace
}  // namespace berth::kinds
