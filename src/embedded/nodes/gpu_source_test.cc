#include "embedded/nodes/gpu_source.h"

#include <gtest/gtest.h>

#include "node/discover/source_suite_for_test.h"

namespace berth::sim {
namespace {

using discover::HandLoop;
using discover::inventory_of;
using discover::readings_of;
using model::GpuAnswer;
using model::GpuEvent;

constexpr std::int64_t kOneSecond = 1'000'000'000;

std::unique_ptr<SimGpuSource> source_of(Loop& loop, const std::string& yaml,
                                        const std::string& node = "m-0") {
  auto fleet = parse_fleet(yaml);
  EXPECT_TRUE(fleet.ok()) << fleet.error().to_string();
  auto made = SimGpuSource::make(loop, *fleet, node);
  EXPECT_TRUE(made.ok()) << made.error().to_string();
  return made.ok() ? std::move(*made) : nullptr;
}

constexpr const char* kPool = "pools: [{name: m, count: 2, model: NVIDIA-H100-80GB-HBM3, gpus: 8}]";

TEST(SimGpuSource, KeepsTheSuite) {
  SimGpuSource* made = nullptr;
  discover::SourceCase fixture;
  fixture.make = [&](Loop& loop) {
    auto source = source_of(loop, kPool);
    made = source.get();
    return source;
  };
  // The suite names the first GPU. An Xid that takes the GPU away would silence it.
  fixture.emit = [&](const std::string&, int xid) {
    Fault fault;
    fault.kind = FaultKind::kXid;
    fault.gpu = 0;
    fault.code = xid;
    made->inject(fault);
    fault.kind = FaultKind::kRecover;
    if (xid == 79) made->inject(fault);
  };
  fixture.hush = [&](const std::string&) {
    Fault fault;
    fault.kind = FaultKind::kGpuSilent;
    fault.gpu = made->gpus() - 1;
    made->inject(fault);
  };
  fixture.deadline_ns = kOneSecond;
  discover::check_source(fixture);
}

TEST(SimGpuSource, SaysWhatTheMachinesGpuNodeSays) {
  FakeClock clock;
  HandLoop loop(clock);
  auto source = source_of(loop,
                          "pools: [{name: m, count: 2, model: NVIDIA-H100-80GB-HBM3, gpus: "
                          "2, mig: 1g.10gb}]");
  const auto inventory = inventory_of(loop, *source);
  ASSERT_TRUE(inventory.ok());
  ASSERT_EQ(inventory->gpus.size(), 2u);
  EXPECT_EQ(inventory->gpus[0].name, "NVIDIA H100 80GB HBM3");
  EXPECT_EQ(inventory->gpus[1].mig.size(), 7u);
  EXPECT_EQ(readings_of(loop, *source)[1].mig.size(), 7u);
}

TEST(SimGpuSource, FaultsAreWhatADriverWouldTell) {
  FakeClock clock;
  HandLoop loop(clock);
  auto source = source_of(
      loop, std::string(kPool) +
                "\nfaults: [{at: 5s, node: m-0, gpu: 1, kind: gpu-lost, for: 10s}, {at: 5s, node: "
                "m-1, gpu: 2, kind: gpu-lost}]");
  ASSERT_TRUE(inventory_of(loop, *source).ok());
  std::vector<GpuEvent::Kind> events;
  source->watch([&](const GpuEvent& event) { events.push_back(event.kind); });
  loop.advance(6 * kOneSecond);
  EXPECT_EQ(readings_of(loop, *source)[1].answer, GpuAnswer::kLost);
  EXPECT_EQ(readings_of(loop, *source)[2].answer, GpuAnswer::kFine);  // another machine's fault
  loop.advance(10 * kOneSecond);
  EXPECT_EQ(readings_of(loop, *source)[1].answer, GpuAnswer::kFine);
  EXPECT_EQ(events, (std::vector{GpuEvent::Kind::kUnavailable, GpuEvent::Kind::kRecoveryAction}));
}

TEST(SimGpuSource, AMachineThatTheFleetLacksIsRefused) {
  FakeClock clock;
  HandLoop loop(clock);
  auto fleet = parse_fleet(kPool);
  ASSERT_TRUE(fleet.ok());
  const auto made = SimGpuSource::make(loop, *fleet, "other");
  ASSERT_FALSE(made.ok());
  EXPECT_NE(made.error().to_string().find("m-0"), std::string::npos);
}

}  // namespace
}  // namespace berth::sim
