#include "edge/nvml/recording.h"

#include <gtest/gtest.h>

#include <fstream>
#include <sstream>

#include "edge/nvml/recorded_source.h"
#include "edge/nvml/recorder.h"
#include "node/discover/source_suite_for_test.h"

namespace berth::nvml {
namespace {

using discover::HandLoop;

constexpr std::int64_t kRecordedSecond = 1'000'000'000;

std::string file(const std::string& name) {
  std::ifstream in(std::string(BERTH_RECORDINGS) + "/" + name);
  std::ostringstream text;
  text << in.rdbuf();
  EXPECT_FALSE(text.str().empty()) << name;
  return text.str();
}

Recording two_gpus() {
  Recording recording;
  recording.started_ns = 1'700'000'000 * kRecordedSecond;
  recording.inventory.driver_version = "580.159.04";
  for (int i = 0; i < 2; ++i) {
    model::GpuDevice& gpu = recording.inventory.gpus.emplace_back();
    gpu.index = gpu.minor = i;
    gpu.uuid = "GPU-" + std::to_string(i);
    gpu.name = "NVIDIA H200";
  }
  for (int s = 0; s < 3; ++s) {
    Recording::Sample& sample = recording.samples.emplace_back();
    sample.at_ns = s * kRecordedSecond;
    for (int i = 0; i < 2; ++i) {
      sample.gpus.emplace_back().uuid = "GPU-" + std::to_string(i);
      sample.gpus.back().counters.power_w = 100.5 + s;
    }
  }
  for (const std::int64_t at : {1, 1, 5}) {
    recording.events.push_back({at * kRecordedSecond, {}});
    recording.events.back().event.uuid = "GPU-1";
    recording.events.back().event.code = static_cast<int>(recording.events.size());
  }
  return recording;
}

// Everything there is, so that nothing is forgotten by writer or reader.
Recording full() {
  Recording recording = two_gpus();
  recording.host = {"DGX", "6.1.0", {{"ID", "debian"}}, {}, {}};
  recording.host.pci = {{"0000:18:00.0", 0x030200, 0x10de, 0x2335, 0x10de, 0x18bf, 1, true}};
  recording.host.nics = {{"mlx5_0", "0000:19:00.0", "InfiniBand", 1, 2}};
  model::GpuDevice& gpu = recording.inventory.gpus[1];
  gpu.pci_bus_id = "0000:18:00.0";
  gpu.pci_device = 0x233510de;
  gpu.memory_mib = 143'771;
  gpu.compute_major = 9;
  gpu.numa = 1;
  gpu.pcie_switch = 2;
  gpu.nvlinks = {18, 0};
  gpu.fabric_cluster = "abababab-abab-abab-abab-abababababab";
  gpu.fabric_clique = 3;
  gpu.mig_capable = gpu.mig_enabled = true;
  gpu.mig = {{"MIG-a", "1g.18gb", 3, 0, 2, 1, 16'384, 16, 1, 1, {1, 2, 3, 4, 5}}};
  model::GpuReading& reading = recording.samples[0].gpus[1];
  reading.answer = model::GpuAnswer::kError;
  reading.error = "odd \"text\"\n";
  reading.condition = {model::RecoveryAction::kDrainP2p, true, true, 17, 1, true, true};
  reading.counters.energy_mj = 1ULL << 62;
  reading.counters.throttle_reasons = 0x40;
  reading.mig = {{"MIG-a", reading.counters}};
  reading.processes = {{42, 100, 55.5, "MIG-a"}, {43, 0, std::nullopt, ""}};
  model::GpuEvent& event = recording.events[0].event;
  event.kind = model::GpuEvent::Kind::kFatalPoison;
  event.pci_bus_id = "0000:18:00.0";
  event.gpu_instance = event.compute_instance = 1;
  event.pid = 7;
  event.detail = "more";
  event.from_kernel_log = true;
  return recording;
}

TEST(Recording, ReadsBackWhatWasWritten) {
  for (const Recording& recording : {Recording{}, two_gpus(), full()}) {
    const std::string text = write_recording(recording);
    Result<Recording> back = read_recording(text);
    ASSERT_TRUE(back.ok()) << back.error().to_string();
    EXPECT_EQ(write_recording(*back), text);
    EXPECT_EQ(back->inventory, recording.inventory);
    EXPECT_EQ(back->host, recording.host);
    EXPECT_EQ(back->started_ns, recording.started_ns);
    ASSERT_EQ(back->samples.size(), recording.samples.size());
    ASSERT_EQ(back->events.size(), recording.events.size());
  }
  const Recording back = *read_recording(write_recording(full()));
  EXPECT_EQ(back.samples[0].gpus[1].error, "odd \"text\"\n");
  EXPECT_EQ(back.samples[0].gpus[1].processes[0].utilization, 55.5);
  EXPECT_EQ(back.samples[0].gpus[1].counters.energy_mj, 1ULL << 62);
  EXPECT_EQ(back.samples[0].gpus[1].condition.recovery, model::RecoveryAction::kDrainP2p);
  EXPECT_TRUE(back.events[0].event.from_kernel_log);
}

TEST(Recording, RefusesWithThePath) {
  const std::string good = write_recording(full());
  struct Case {
    const char *from, *to, *text;
  };
  constexpr Case kCases[] = {
      {"\"version\": 1", "\"version\": 2", "version"},
      {"\"smClockMhz\"", "\"powerW\"", "powerW"},
      {"\"powerW\": 100.5", "\"powerX\": 100.5", "readings[0].gpus[0].counters.powerX"},
      {"\"powerW\": 100.5", "\"powerW\": 1e999", "readings[0].gpus[0].counters.powerW"},
      {"\"answer\": \"error\"", "\"answer\": \"bad\"", "readings[0].gpus[1].answer"},
      {"\"kind\": \"fatal-poison\"", "\"kind\": \"x\"", "events[0].kind"},
      {"\"uuid\": \"GPU-1\",\n     \"name\"", "\"uuid\": \"GPU-0\",\n     \"name\"",
       "inventory: gpus[1].uuid: \"GPU-0\" twice"},
      {"\"driverVersion\"", "\"driverVersio\"", "driverVersio"},
      {"\"atMs\": 2000", "\"atMs\": 500", "readings[2].atMs"},
      {"\"atMs\": 5000", "\"atMs\": 0", "events[2].atMs"},
      {"\"pid\": 42", "\"pid\": \"42\"", "readings[0].gpus[1].processes[0].pid"},
      {"\"started\"", "\"begun\"", "begun"},
  };
  for (const Case& c : kCases) {
    std::string text = good;
    const std::size_t at = text.find(c.from);
    if (at == std::string::npos) continue;  // the first reading has no clock to rename
    text.replace(at, std::string(c.from).size(), c.to);
    Result<Recording> back = read_recording(text);
    ASSERT_FALSE(back.ok()) << c.to;
    EXPECT_NE(back.error().to_string().find(c.text), std::string::npos) << back.error().to_string();
  }
  EXPECT_FALSE(read_recording("").ok());
  EXPECT_FALSE(read_recording("[]").ok());
  EXPECT_FALSE(read_recording(std::string(100, '[')).ok());
}

TEST(RecordedSource, KeepsTheSuite) {
  discover::SourceCase fixture;
  fixture.make = [](Loop& loop) {
    Recording recording = two_gpus();
    recording.events.clear();
    return std::make_unique<RecordedSource>(loop, std::move(recording));
  };
  discover::check_source(fixture);
}

TEST(RecordedSource, PlaysReadingsInTurnAndEventsByTheirTime) {
  FakeClock clock;
  HandLoop loop(clock);
  RecordedSource source(loop, two_gpus());
  ASSERT_TRUE(inventory_of(loop, source).ok());
  std::vector<int> told;
  source.watch([&](const model::GpuEvent& event) { told.push_back(event.code); });
  for (const double watts : {100.5, 101.5, 102.5, 102.5}) {
    EXPECT_EQ(readings_of(loop, source)[1].counters.power_w, watts);
  }
  EXPECT_TRUE(told.empty());
  loop.advance(kRecordedSecond);
  EXPECT_EQ(told, (std::vector<int>{1, 2}));
  loop.advance(3 * kRecordedSecond);
  EXPECT_EQ(told.size(), 2u);
  loop.advance(kRecordedSecond);
  EXPECT_EQ(told, (std::vector<int>{1, 2, 3}));

  Recording silent = two_gpus();
  silent.samples.clear();
  RecordedSource mute(loop, silent);
  ASSERT_TRUE(inventory_of(loop, mute).ok());
  EXPECT_EQ(readings_of(loop, mute)[1].answer, model::GpuAnswer::kSilent);
}

TEST(Recorder, RecordsWhatASourceSays) {
  FakeClock clock(1'700'000'000 * kRecordedSecond);
  HandLoop loop(clock);
  RecordedSource source(loop, two_gpus());
  std::vector<Result<Recording>> made;
  Recorder recorder(
      loop, source, {"DGX", "", {}, {}, {}}, {.duration_ns = 4 * kRecordedSecond},
      [&](Result<Recording> recording) { made.push_back(std::move(recording)); },
      [](model::GpuInventory& inventory) { inventory.gpus[0].numa = 1; });
  loop.advance(10 * kRecordedSecond);
  ASSERT_EQ(made.size(), 1u);
  ASSERT_TRUE(made[0].ok());
  const Recording& recording = *made[0];
  EXPECT_EQ(recording.host.machine, "DGX");
  EXPECT_EQ(recording.inventory.gpus[0].numa, 1);
  ASSERT_EQ(recording.samples.size(), 4u);
  EXPECT_EQ(recording.samples[3].at_ns, 3 * kRecordedSecond);
  EXPECT_EQ(recording.samples[1].gpus[0].counters.power_w, 101.5);
  EXPECT_EQ(recording.events.size(), 2u);  // the third came after the end
  EXPECT_TRUE(read_recording(write_recording(recording)).ok());
}

TEST(Recordings, OfARealH200) {
  Result<Recording> whole = read_recording(file("h200.json"));
  ASSERT_TRUE(whole.ok()) << whole.error().to_string();
  ASSERT_EQ(whole->inventory.gpus.size(), 1u);
  const model::GpuDevice& gpu = whole->inventory.gpus[0];
  EXPECT_EQ(gpu.name, "NVIDIA H200");
  EXPECT_EQ(gpu.memory_mib, 143'771);
  EXPECT_EQ(gpu.pci_device, 0x233510deu);
  EXPECT_TRUE(gpu.mig_capable && !gpu.mig_enabled);
  ASSERT_GE(whole->samples.size(), 4u);
  const model::GpuReading& busy = whole->samples.back().gpus[0];
  EXPECT_EQ(busy.answer, model::GpuAnswer::kFine);
  EXPECT_GT(busy.counters.gpu_utilization.value_or(0), 90);
  EXPECT_GT(busy.counters.sm_active.value_or(0), 0.9);
  EXPECT_LE(busy.counters.sm_active.value_or(2), 1);
  EXPECT_EQ(busy.processes.size(), 1u);
  EXPECT_EQ(write_recording(*whole), file("h200.json"));

  Result<Recording> mig = read_recording(file("h200-mig.json"));
  ASSERT_TRUE(mig.ok()) << mig.error().to_string();
  std::vector<std::string> profiles;
  for (const model::MigInstance& instance : mig->inventory.gpus[0].mig) {
    profiles.push_back(instance.profile);
  }
  EXPECT_EQ(profiles, (std::vector<std::string>{"3g.71gb", "2g.35gb", "1g.18gb", "1g.18gb+me"}));
  const model::GpuReading& reading = mig->samples.back().gpus[0];
  ASSERT_EQ(reading.mig.size(), 4u);
  EXPECT_GT(reading.mig[0].second.sm_active.value_or(0), 0.5);  // the load runs on the 3g
  EXPECT_EQ(reading.mig[1].second.sm_active.value_or(1), 0);
  EXPECT_FALSE(reading.counters.gpu_utilization.has_value());
  ASSERT_EQ(reading.processes.size(), 1u);
  EXPECT_EQ(reading.processes[0].mig_uuid, reading.mig[0].first);
}

}  // namespace
}  // namespace berth::nvml
