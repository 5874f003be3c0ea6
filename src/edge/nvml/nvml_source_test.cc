#include "edge/nvml/nvml_source.h"

#include <dlfcn.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>

#include "edge/nvml/event_session.h"
#include "edge/nvml/fake_driver/fake_driver.h"
#include "node/discover/source_suite_for_test.h"

namespace berth::nvml {
namespace {

using discover::HandLoop;
using discover::inventory_of;
using discover::readings_of;
using model::GpuAnswer;
using EventKind = model::GpuEvent::Kind;

constexpr std::int64_t kSec = 1'000'000'000;

FakeDriver& driver_at(const char* path) {
  void* library = dlopen(path, RTLD_LAZY | RTLD_LOCAL);
  EXPECT_NE(library, nullptr) << path;
  return *reinterpret_cast<FakeDriver* (*)()>(dlsym(library, "fake_driver"))();
}

std::vector<FakeGpu> machine(int count) {
  std::vector<FakeGpu> gpus;
  for (int i = 0; i < count; ++i) {
    FakeGpu& gpu = gpus.emplace_back();
    gpu.uuid = "GPU-" + std::to_string(i);
    gpu.bus = 0x18 + static_cast<unsigned int>(i);
    gpu.links.resize(18);
  }
  return gpus;
}

FakeMig slice(const std::string& uuid, unsigned int gi, unsigned int start, unsigned int profile) {
  FakeMig mig;
  mig.uuid = uuid;
  mig.gpu_instance = gi;
  mig.memory_mib = 16'384;
  mig.multiprocessors = 16;
  mig.profile = profile;
  mig.placement = {start, 1};
  return mig;
}

// A source on the fake driver. At the end what hangs is let go and every thread has ended.
class NvmlSourceTest : public testing::Test {
 protected:
  NvmlSourceTest() : driver(driver_at(BERTH_FAKE_DRIVER)) {
    driver.reset();
    options.library = BERTH_FAKE_DRIVER;
    options.event_wait_ms = 50;
  }
  ~NvmlSourceTest() override {
    source.reset();
    driver.reset();
    if (threads == nullptr) return;
    EXPECT_TRUE(threads->wait_ended(60 * kSec));
    EXPECT_EQ(driver.event_sets(), 0);
    EXPECT_EQ(driver.gpm_samples(), 0);
  }
  void start() {
    options.exit_grace_ns = 0;
    source = std::make_unique<NvmlSource>(loop, options, Random(7));
    threads = source->threads();
  }
  void watch() {
    source->watch([this](const model::GpuEvent& event) { events.push_back(event); });
  }
  // Until the event set is registered: then events are not lost any more.
  void watch_and_wait() {
    watch();
    loop.run_until([&] { return source->registered_events() != 0; });
  }
  // A reading while one GPU of so many hangs: the others have answered when as many posts ran, and
  // so many calls hang by then.
  std::vector<model::GpuReading> read_past_deadline(int gpus, int hanging) {
    std::vector<model::GpuReading> got;
    const int before = loop.posts_run();
    source->read([&](std::vector<model::GpuReading> readings) { got = std::move(readings); });
    loop.run_until(
        [&] { return loop.posts_run() - before >= gpus && driver.hanging() == hanging; });
    loop.advance(options.reading_deadline_ns);
    return got;
  }

  FakeDriver& driver;
  FakeClock clock;
  HandLoop loop{clock};
  NvmlOptions options;
  std::unique_ptr<NvmlSource> source;
  std::shared_ptr<DriverThreads> threads;
  std::vector<model::GpuEvent> events;
};

TEST_F(NvmlSourceTest, KeepsTheSuite) {
  driver.set_gpus(machine(4));
  discover::SourceCase fixture;
  fixture.make = [&](Loop& on) {
    options.exit_grace_ns = 0;
    auto made = std::make_unique<NvmlSource>(on, options, Random(7));
    threads = made->threads();
    return made;
  };
  fixture.emit = [&](const std::string& uuid, int xid) {
    driver.push({uuid.back() - '0', kEventXid, static_cast<unsigned long long>(xid)});
  };
  fixture.hush = [&](const std::string& uuid) {
    driver.change(uuid.back() - '0', [](FakeGpu& gpu) { gpu.hangs = true; });
  };
  // Three GPUs, the reading's own; waits for events come on top.
  fixture.posts_when_hushed = 4;
  fixture.deadline_ns = options.reading_deadline_ns;
  options.event_wait_ms = 60'000;
  discover::check_source(fixture);
  driver.change(3, [](FakeGpu& gpu) { gpu.hangs = false; });
  driver.push({0, kEventXid, 1});  // wakes the thread that waits for events
  EXPECT_TRUE(threads->wait_ended(60 * kSec));
}

TEST_F(NvmlSourceTest, InventoryOfAMixedMachine) {
  std::vector<FakeGpu> gpus = machine(3);
  gpus[1].mig_enabled = true;
  gpus[1].mig = {slice("MIG-b", 9, 3, 7), slice("MIG-a", 2, 0, 0)};
  gpus[1].mig[1].gpu_slices = 3;
  gpus[1].mig[1].memory_mib = 71'424;
  gpus[1].mig[1].placement = {4, 4};
  gpus[2].links = {{true, kRemoteGpu, 0x18}, {true, kRemoteGpu, 0x18}, {false, kRemoteGpu, 0x18}};
  gpus[2].cluster = 0xab;
  driver.set_gpus(gpus);
  start();
  Result<model::GpuInventory> taken = inventory_of(loop, *source);
  ASSERT_TRUE(taken.ok()) << taken.error().to_string();
  EXPECT_EQ(taken->driver_version, "580.159.04");
  EXPECT_EQ(taken->cuda_major, 13);
  ASSERT_EQ(taken->gpus.size(), 3u);
  const model::GpuDevice& first = taken->gpus[0];
  EXPECT_EQ(first.uuid, "GPU-0");
  EXPECT_EQ(first.name, "NVIDIA H200");
  EXPECT_EQ(first.pci_bus_id, "0000:18:00.0");
  EXPECT_EQ(first.pci_device, 0x233510deu);
  EXPECT_EQ(first.memory_mib, 143'771);
  EXPECT_EQ(first.compute_major, 9);
  EXPECT_TRUE(first.mig_capable);
  EXPECT_FALSE(first.mig_enabled);
  EXPECT_EQ(first.nvlinks, (std::vector<int>{0, 18, 0}));  // over the switch, not to the third
  EXPECT_EQ(first.fabric_clique, -1);
  EXPECT_EQ(taken->gpus[2].nvlinks, (std::vector<int>{2, 0, 0}));
  EXPECT_EQ(taken->gpus[2].fabric_cluster, "abababab-abab-abab-abab-abababababab");
  EXPECT_EQ(taken->gpus[2].fabric_clique, 7);
  ASSERT_EQ(taken->gpus[1].mig.size(), 2u);
  const model::MigInstance& big = taken->gpus[1].mig[0];
  EXPECT_EQ(big.uuid, "MIG-a");
  EXPECT_EQ(big.profile, "1c.3g.71gb");
  EXPECT_EQ(std::pair(big.start, big.slots), std::pair(4, 4));
  EXPECT_EQ(taken->gpus[1].mig[1].profile, "1g.18gb+me");
  EXPECT_EQ(driver.inits(), 1);
}

TEST_F(NvmlSourceTest, ReadingsOfAGpuAndItsInstances) {
  std::vector<FakeGpu> gpus = machine(2);
  gpus[0].mig_enabled = true;
  gpus[0].mig = {slice("MIG-a", 2, 0, 0), slice("MIG-b", 9, 1, 0)};
  gpus[0].processes = {{42, 100ULL << 20, 9, 0}, {41, kNoValue, kNoInstance, kNoInstance}};
  gpus[0].processes.resize(100, {7, 0, kNoInstance, kNoInstance});  // more than the first array
  gpus[1].recovery = 4;
  gpus[1].remap_pending = gpus[1].remap_failed = true;
  gpus[1].reasons = kReasonHwThermal;
  gpus[1].health_mask = 1;
  gpus[1].links[3].up = false;
  driver.set_gpus(gpus);
  start();
  ASSERT_TRUE(inventory_of(loop, *source).ok());
  std::vector<model::GpuReading> got = readings_of(loop, *source);
  ASSERT_EQ(got.size(), 2u);
  EXPECT_FALSE(got[1].counters.sm_active.has_value());  // a rate needs two samples
  got = readings_of(loop, *source);
  const model::GpuCounters& counters = got[0].counters;
  EXPECT_EQ(counters.sm_clock_mhz, 1980);
  EXPECT_EQ(counters.power_w, 76.5);
  EXPECT_EQ(counters.gpu_temperature, 30);
  EXPECT_EQ(counters.memory_temperature, 40);
  EXPECT_FALSE(counters.gpu_utilization.has_value());  // not with MIG
  EXPECT_EQ(got[1].counters.gpu_utilization, 42);
  EXPECT_EQ(counters.memory_used_mib, 4u);
  EXPECT_EQ(counters.memory_reserved_mib, 600u);
  EXPECT_EQ(counters.nvlink_bandwidth, 10'000'000'000u);
  EXPECT_EQ(counters.ecc_double_aggregate, 11u);
  EXPECT_FALSE(counters.tensor_active.has_value());  // its instances are profiled
  EXPECT_EQ(got[1].counters.tensor_active, 0.05);
  EXPECT_EQ(got[1].counters.pcie_tx_bytes, 20 * 1'048'576.0);
  EXPECT_FALSE(got[1].counters.fp16_active.has_value());
  EXPECT_FALSE(counters.encoder_utilization.has_value());  // the library lacks it
  ASSERT_EQ(got[0].mig.size(), 2u);
  EXPECT_EQ(got[0].mig[1].first, "MIG-b");
  EXPECT_EQ(got[0].mig[1].second.sm_active, 0.02);
  EXPECT_EQ(got[0].mig[1].second.memory_free_mib, 16'384u - 604);
  ASSERT_EQ(got[0].processes.size(), 3u);  // each pid once
  EXPECT_EQ(got[0].processes[2].pid, 42);
  EXPECT_EQ(got[0].processes[2].mig_uuid, "MIG-b");
  EXPECT_EQ(got[0].processes[2].utilization, 55);
  EXPECT_EQ(got[0].processes[1].memory_mib, 0u);

  const model::GpuCondition& condition = got[1].condition;
  EXPECT_EQ(condition.recovery, model::RecoveryAction::kDrainAndReset);
  EXPECT_TRUE(condition.remap_pending && condition.remap_failed && condition.thermal_slowdown);
  EXPECT_TRUE(condition.fabric_trouble);
  EXPECT_EQ(std::pair(condition.nvlinks_up, condition.nvlinks_down), std::pair(17, 1));
  EXPECT_FALSE(got[0].condition.fabric_trouble);

  // A slice goes, and its sample with it.
  driver.change(0, [](FakeGpu& gpu) { gpu.mig.pop_back(); });
  EXPECT_EQ(readings_of(loop, *source)[0].mig.size(), 1u);
  readings_of(loop, *source);
  EXPECT_EQ(driver.gpm_samples(), 2);
}

TEST_F(NvmlSourceTest, LinksThatNeverCameUpAreNotDown) {
  std::vector<FakeGpu> gpus = machine(2);
  for (FakeLink& link : gpus[0].links) link.up = false;
  driver.set_gpus(gpus);
  start();
  ASSERT_TRUE(inventory_of(loop, *source).ok());
  std::vector<model::GpuReading> got = readings_of(loop, *source);
  EXPECT_EQ(got[0].condition.nvlinks_down, 0);
  driver.change(1, [](FakeGpu& gpu) {
    for (FakeLink& link : gpu.links) link.up = false;
  });
  got = readings_of(loop, *source);
  EXPECT_EQ(got[1].condition.nvlinks_down, 18);
}

TEST_F(NvmlSourceTest, ALostGpuIsSaidToBeLostAndStaysInTheInventory) {
  driver.set_gpus(machine(3));
  start();
  const model::GpuInventory before = *inventory_of(loop, *source);
  driver.change(1, [](FakeGpu& gpu) { gpu.broken = kGpuLost; });
  driver.change(2, [](FakeGpu& gpu) { gpu.broken = kUnknownError; });
  for (int round = 0; round < 2; ++round) {
    std::vector<model::GpuReading> got = readings_of(loop, *source);
    ASSERT_EQ(got.size(), 3u);
    EXPECT_EQ(got[0].answer, GpuAnswer::kFine);
    EXPECT_EQ(got[1].answer, GpuAnswer::kLost);
    EXPECT_EQ(got[1].uuid, "GPU-1");
    EXPECT_EQ(got[2].answer, GpuAnswer::kError);
    EXPECT_NE(got[2].error.find("unknown error (code 999)"), std::string::npos) << got[2].error;
  }
  EXPECT_EQ(*inventory_of(loop, *source), before);
  driver.change(1, [](FakeGpu& gpu) { gpu.broken = kSuccess; });
  EXPECT_EQ(readings_of(loop, *source)[1].answer, GpuAnswer::kFine);
}

TEST_F(NvmlSourceTest, AGpuThatHangsIsSilentAloneAndComesBack) {
  driver.set_gpus(machine(4));
  start();
  const model::GpuInventory before = *inventory_of(loop, *source);
  driver.change(2, [](FakeGpu& gpu) { gpu.hangs = true; });
  std::vector<model::GpuReading> got = read_past_deadline(4, 1);
  ASSERT_EQ(got.size(), 4u);
  EXPECT_EQ(got[2].answer, GpuAnswer::kSilent);
  EXPECT_EQ(got[2].uuid, "GPU-2");
  EXPECT_EQ(got[3].answer, GpuAnswer::kFine);
  EXPECT_EQ(threads->left_hanging(), 1);

  // While it hangs it is silent at once, and costs no further thread.
  got = readings_of(loop, *source);
  EXPECT_EQ(got[2].answer, GpuAnswer::kSilent);
  EXPECT_EQ(got[0].answer, GpuAnswer::kFine);
  EXPECT_EQ(threads->left_hanging(), 1);
  EXPECT_EQ(*inventory_of(loop, *source), before);

  // After some time it is tried again.
  loop.advance(60 * kSec);
  got = read_past_deadline(4, 2);
  ASSERT_EQ(got.size(), 4u);
  EXPECT_EQ(got[2].answer, GpuAnswer::kSilent);
  EXPECT_EQ(threads->left_hanging(), 2);

  driver.change(2, [](FakeGpu& gpu) { gpu.hangs = false; });
  loop.run_until([&] { return threads->left_hanging() == 0; });
  EXPECT_EQ(readings_of(loop, *source)[2].answer, GpuAnswer::kFine);
}

TEST_F(NvmlSourceTest, ThreadsLeftHangingAreBounded) {
  options.most_hanging_threads = 2;
  driver.set_gpus(machine(1));
  start();
  ASSERT_TRUE(inventory_of(loop, *source).ok());
  driver.change(0, [](FakeGpu& gpu) { gpu.hangs = true; });
  for (int i = 0; i < 8; ++i) {
    const std::vector<model::GpuReading> got = read_past_deadline(1, std::min(i + 1, 2));
    ASSERT_EQ(got.size(), 1u);
    EXPECT_EQ(got[0].answer, GpuAnswer::kSilent);
    loop.advance(2 * 3'600 * kSec);
  }
  EXPECT_EQ(threads->left_hanging(), 2);
}

TEST_F(NvmlSourceTest, AbsentLibraryIsTriedAgainAndTold) {
  // A name of its own each time: what was opened once is found again without the file.
  static int times = 0;
  const std::string link = testing::TempDir() + "/libnvidia-ml-" + std::to_string(getpid()) + "-" +
                           std::to_string(times++) + ".so.1";
  std::filesystem::remove(link);
  driver.set_gpus(machine(1));
  options.library = link;
  start();
  watch();
  Result<model::GpuInventory> taken = inventory_of(loop, *source);
  ASSERT_FALSE(taken.ok());
  EXPECT_EQ(taken.error().code(), Code::kUnavailable);
  const std::string text = taken.error().to_string();
  EXPECT_NE(text.find(link + " is not found"), std::string::npos) << text;
  EXPECT_NE(text.find("; the next try is in "), std::string::npos) << text;
  EXPECT_FALSE(inventory_of(loop, *source).ok());  // answered at once from what is known
  EXPECT_TRUE(readings_of(loop, *source).empty());

  std::filesystem::create_symlink(BERTH_FAKE_DRIVER, link);
  loop.advance(options.first_retry_ns * 2);
  loop.run_until([&] { return !events.empty(); });
  EXPECT_EQ(events[0].kind, EventKind::kInventory);
  EXPECT_EQ(readings_of(loop, *source).size(), 1u);
  taken = inventory_of(loop, *source);
  EXPECT_TRUE(taken.ok());
  std::filesystem::remove(link);
}

TEST_F(NvmlSourceTest, RetriesBackOffWithJitterAndABound) {
  driver.set_init(kVersionMismatch, false);
  start();
  Result<model::GpuInventory> taken = inventory_of(loop, *source);
  ASSERT_FALSE(taken.ok());
  EXPECT_NE(taken.error().to_string().find(
                "the library and the kernel module are of different versions (code 18)"),
            std::string::npos);
  std::int64_t base = options.first_retry_ns;
  for (int i = 0; i < 8; ++i) {
    const std::int64_t delay = loop.next_timer_in();
    EXPECT_GE(delay, base) << i;
    EXPECT_LE(delay, 2 * base) << i;
    base = std::min(2 * base, options.longest_retry_ns);
    const int before = loop.posts_run();
    loop.advance(delay);
    loop.run_until([&] { return loop.posts_run() > before; });
  }
  EXPECT_FALSE(inventory_of(loop, *source).ok());
}

TEST_F(NvmlSourceTest, ADriverThatHangsAtStartIsAnErrorAndMends) {
  driver.set_gpus(machine(2));
  driver.set_init(kSuccess, true);
  start();
  watch();
  std::vector<Result<model::GpuInventory>> got;
  source->take_inventory([&](const Result<model::GpuInventory>& taken) { got.push_back(taken); });
  loop.advance(options.inventory_deadline_ns);
  ASSERT_EQ(got.size(), 1u);
  ASSERT_FALSE(got[0].ok());
  EXPECT_NE(got[0].error().to_string().find("does not answer (not within 30 s)"),
            std::string::npos);
  driver.set_init(kSuccess, false);
  loop.run_until([&] { return threads->left_hanging() == 0; });
  loop.advance(2 * kSec);
  loop.run_until([&] { return !events.empty(); });
  EXPECT_EQ(events[0].kind, EventKind::kInventory);
  EXPECT_EQ(inventory_of(loop, *source)->gpus.size(), 2u);
}

TEST_F(NvmlSourceTest, AGpuThatHangsFromTheStartIsListedWhenItAnswers) {
  std::vector<FakeGpu> gpus = machine(2);
  gpus[1].hangs = true;
  driver.set_gpus(gpus);
  start();
  std::vector<Result<model::GpuInventory>> got;
  source->take_inventory([&](const Result<model::GpuInventory>& taken) { got.push_back(taken); });
  loop.run_until([&] { return loop.posts_run() >= 2; });  // the basics, and the GPU that answers
  loop.advance(options.inventory_deadline_ns);
  ASSERT_EQ(got.size(), 1u);
  ASSERT_TRUE(got[0].ok());
  EXPECT_EQ(got[0]->gpus.size(), 1u);
  driver.change(1, [](FakeGpu& gpu) { gpu.hangs = false; });
  loop.run_until([&] { return threads->left_hanging() == 0; });
  watch();
  loop.advance(options.check_every_ns);
  loop.run_until([&] { return !events.empty(); });
  EXPECT_EQ(events[0].kind, EventKind::kInventory);
  EXPECT_EQ(inventory_of(loop, *source)->gpus.size(), 2u);
}

TEST_F(NvmlSourceTest, ChangesAreNoticedByLooking) {
  std::vector<FakeGpu> gpus = machine(2);
  gpus[0].mig_enabled = true;
  driver.set_gpus(gpus);
  start();
  ASSERT_TRUE(inventory_of(loop, *source).ok());
  watch_and_wait();
  driver.change(0, [](FakeGpu& gpu) { gpu.mig = {slice("MIG-a", 2, 0, 0)}; });
  loop.advance(options.check_every_ns);
  loop.run_until([&] { return !events.empty(); });
  EXPECT_EQ(events[0].kind, EventKind::kMigChanged);
  EXPECT_EQ(events[0].uuid, "GPU-0");
  EXPECT_EQ(inventory_of(loop, *source)->gpus[0].mig.size(), 1u);
  // The driver tells of changes itself, and then it is looked at again: it may have told early.
  driver.push({0, kEventMig, 0});
  loop.run_until([&] { return events.size() == 2; });
  driver.change(0, [](FakeGpu& gpu) { gpu.mig.push_back(slice("MIG-b", 3, 1, 0)); });
  loop.advance(options.check_every_ns);
  loop.run_until([&] { return events.size() == 3; });
  EXPECT_EQ(events[2].kind, EventKind::kMigChanged);
  EXPECT_EQ(inventory_of(loop, *source)->gpus[0].mig.size(), 2u);
  events.clear();

  std::vector<FakeGpu> more = machine(3);
  more[0].mig_enabled = true;
  more[0].mig = {slice("MIG-a", 2, 0, 0), slice("MIG-b", 3, 1, 0)};
  driver.set_gpus(more);
  loop.advance(options.check_every_ns);
  loop.run_until([&] { return !events.empty(); });
  EXPECT_EQ(events[0].kind, EventKind::kInventory);
  loop.advance(options.check_every_ns);  // told once, and nobody has to ask at once
  EXPECT_EQ(inventory_of(loop, *source)->gpus.size(), 3u);
  EXPECT_EQ(events.size(), 1u);
  loop.run_until([&] { return driver.registered(2) != 0; });  // for the new one too

  // The driver goes and comes back.
  driver.set_init(kDriverNotLoaded, false);
  loop.advance(options.check_every_ns);
  loop.run_until([&] { return events.size() > 1; });
  EXPECT_EQ(events[1].kind, EventKind::kInventory);
  EXPECT_FALSE(inventory_of(loop, *source).ok());
  driver.set_init(kSuccess, false);
  loop.advance(2 * options.first_retry_ns);
  loop.run_until([&] { return events.size() > 2; });
  EXPECT_EQ(events[2].kind, EventKind::kInventory);
  EXPECT_EQ(inventory_of(loop, *source)->gpus.size(), 3u);
  EXPECT_EQ(driver.inits(), 2);
  driver.push({2, kEventXid, 79});
  loop.run_until([&] { return events.size() > 3; });
  EXPECT_EQ(events[3].uuid, "GPU-2");
}

TEST_F(NvmlSourceTest, EventsOfTheDriver) {
  driver.set_gpus(machine(2));
  start();
  ASSERT_TRUE(inventory_of(loop, *source).ok());
  watch_and_wait();
  EXPECT_EQ(driver.registered(1), 0xff0aULL);  // not clocks, power and corrected errors
  driver.push({1, kEventXid, 94, 3, 0});
  loop.run_until([&] { return events.size() == 1; });
  EXPECT_EQ(events[0].kind, EventKind::kXid);
  EXPECT_EQ(events[0].uuid, "GPU-1");
  EXPECT_EQ(events[0].code, 94);
  EXPECT_EQ(std::pair(events[0].gpu_instance, events[0].compute_instance), std::pair(3, 0));

  // The set breaks because a GPU fell off the bus: it is told, and another set is made later.
  driver.set_event_error(kGpuLost);
  loop.run_until([&] { return events.size() == 2; });
  EXPECT_EQ(events[1].kind, EventKind::kRecoveryAction);
  EXPECT_EQ(events[1].uuid, "");
  EXPECT_EQ(source->registered_events(), 0u);
  driver.push({0, kEventRecovery, 1});
  loop.advance(5 * kSec);
  loop.run_until([&] { return events.size() == 3; });
  EXPECT_EQ(events[2].kind, EventKind::kRecoveryAction);
  EXPECT_EQ(events[2].uuid, "GPU-0");
  EXPECT_EQ(events[2].gpu_instance, -1);
}

TEST_F(NvmlSourceTest, AnOldDriverCostsWhatItDoesNotKnow) {
  FakeDriver& old = driver_at(BERTH_FAKE_OLD_DRIVER);
  old.reset();
  old.set_gpus(machine(2));
  options.library = BERTH_FAKE_OLD_DRIVER;
  start();
  Result<model::GpuInventory> taken = inventory_of(loop, *source);
  ASSERT_TRUE(taken.ok());
  EXPECT_EQ(taken->gpus[0].name, "NVIDIA H200");
  EXPECT_FALSE(taken->gpus[0].mig_capable);
  EXPECT_TRUE(taken->gpus[0].nvlinks.empty());
  std::vector<model::GpuReading> got = readings_of(loop, *source);
  ASSERT_EQ(got.size(), 2u);
  EXPECT_EQ(got[1].answer, GpuAnswer::kFine);
  EXPECT_EQ(got[1].counters.gpu_utilization, 42);
  EXPECT_EQ(got[1].counters.memory_used_mib, 4u);
  EXPECT_FALSE(got[1].counters.memory_reserved_mib.has_value());
  EXPECT_EQ(got[1].condition.recovery, model::RecoveryAction::kNone);
}

TEST(EventTranslation, EveryTypeThatSaysSomethingAboutHealth) {
  constexpr std::pair<unsigned long long, EventKind> kTypes[] = {
      {0x2, EventKind::kEccDouble},      {0x8, EventKind::kXid},
      {0x100, EventKind::kMigChanged},   {0x200, EventKind::kEccStorm},
      {0x400, EventKind::kRemapped},     {0x800, EventKind::kRemapFailed},
      {0x1000, EventKind::kPoison},      {0x2000, EventKind::kFatalPoison},
      {0x4000, EventKind::kUnavailable}, {0x8000, EventKind::kRecoveryAction}};
  for (const auto& [type, kind] : kTypes) {
    const auto event = translate({nullptr, type, 5, kNoInstance, kNoInstance});
    ASSERT_TRUE(event.has_value()) << type;
    EXPECT_EQ(event->kind, kind);
    EXPECT_EQ(event->code, 5);
    EXPECT_EQ(event->gpu_instance, -1);
  }
  for (const unsigned long long type : {0x1ULL, 0x4ULL, 0x10ULL, 0x80ULL, 0x10000ULL}) {
    EXPECT_FALSE(translate({nullptr, type, 0, 0, 0}).has_value());
  }
}

TEST(NvmlLoading, SaysWhereItLooked) {
  Result<std::shared_ptr<const Api>> loaded = load_nvml("libnvidia-ml.so.1", "/no/such/root");
  ASSERT_FALSE(loaded.ok());
  EXPECT_NE(loaded.error().to_string().find("is not found below /no/such/root"), std::string::npos);
  const std::string root = testing::TempDir() + "/driver-root-" + std::to_string(getpid());
  std::filesystem::create_directories(root + "/usr/lib64");
  std::filesystem::create_symlink(BERTH_FAKE_DRIVER, root + "/usr/lib64/libnvidia-ml.so.1");
  EXPECT_TRUE(load_nvml("libnvidia-ml.so.1", root).ok());
  std::filesystem::remove_all(root);
  EXPECT_FALSE(load_nvml("libc.so.6", "").ok());  // a library, but not that one
}

}  // namespace
}  // namespace berth::nvml
