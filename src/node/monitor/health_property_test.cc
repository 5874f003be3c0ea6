// Random histories of two GPUs, held to what docs/health.md promises.
#include <gtest/gtest.h>

#include <map>
#include <string>
#include <vector>

#include "base/random.h"
#include "node/monitor/health.h"
#include "node/monitor/xid.h"

namespace berth::monitor {
namespace {

using model::GpuAnswer;
using model::GpuEvent;
using model::GpuReading;
using model::RecoveryAction;

constexpr std::int64_t kTick = 1'000'000'000;
const std::vector<std::string> kUuids = {"GPU-0", "GPU-1"};

model::GpuInventory inventory_of(const std::vector<std::string>& uuids) {
  model::GpuInventory inventory;
  for (const auto& uuid : uuids) {
    model::GpuDevice gpu;
    gpu.uuid = uuid;
    gpu.index = static_cast<int>(inventory.gpus.size());
    inventory.gpus.push_back(gpu);
  }
  return inventory;
}

bool recommends(RecoveryAction action) {
  return action != RecoveryAction::kNone && action != RecoveryAction::kUnknown &&
         action != RecoveryAction::kRecoverImex;
}

// What the page says of one GPU, kept without looking at the book.
struct Expectation {
  bool error = false;    // an error that only a reset ends
  bool advised = false;  // the driver recommended something since
  bool reset = false;    // a reset was seen since
  int clean_reset = 0;   // readings in a row that show nothing wrong, after that reset
  bool showing = false;  // the last reading shows something wrong by itself
  int clean = 3;         // readings in a row that show nothing wrong

  void fatal_event() {
    error = true;
    advised = reset = false;
    clean_reset = 0;
  }
  void see(const GpuReading& r) {
    const bool fine = r.answer == GpuAnswer::kFine;
    const auto& c = r.condition;
    // Doubts of links, fabric and odd errors need a second reading; here any one is "showing" only
    // for signals that count at once.
    showing = r.answer == GpuAnswer::kSilent || r.answer == GpuAnswer::kLost ||
              (fine && (recommends(c.recovery) || c.remap_pending || c.remap_failed));
    clean = showing ? 0 : clean + 1;
    if (fine && c.remap_failed) fatal_event();
    if (r.answer == GpuAnswer::kLost) reset = true;
    if (fine && c.recovery != RecoveryAction::kNone && c.recovery != RecoveryAction::kUnknown) {
      advised = true;
    }
    if (fine && c.recovery == RecoveryAction::kNone && advised) reset = true;
    const bool passes = fine && reset && !showing && c.recovery != RecoveryAction::kRecoverImex;
    clean_reset = passes ? clean_reset + 1 : 0;
    if (error && clean_reset >= 3) error = false;
  }
  bool may_be_healthy() const { return !error && clean >= 3; }
};

GpuReading random_reading(Random& random, const std::string& uuid) {
  GpuReading r;
  r.uuid = uuid;
  r.condition.nvlinks_up = 18;
  if (random.chance(3, 4)) return r;
  switch (random.below(8)) {
    case 0:
      r.answer = GpuAnswer::kSilent;
      break;
    case 1:
      r.answer = GpuAnswer::kLost;
      break;
    case 2:
      r.answer = GpuAnswer::kError;
      break;
    case 3:
      r.condition.recovery = static_cast<RecoveryAction>(random.below(7));
      break;
    case 4:
      r.condition.remap_pending = true;
      break;
    case 5:
      r.condition.remap_failed = true;
      break;
    case 6:
      r.condition.nvlinks_up = 17;
      break;
    default:
      r.condition.thermal_slowdown = r.condition.fabric_trouble = true;
      break;
  }
  return r;
}

struct Step {
  std::vector<GpuReading> readings;
  GpuEvent event;
  std::int64_t now = 0;
};

Step random_step(Random& random, std::int64_t now) {
  Step step;
  step.now = now;
  if (random.chance(4, 5)) {
    for (const auto& uuid : kUuids) step.readings.push_back(random_reading(random, uuid));
    return step;
  }
  step.event.uuid = kUuids[random.below(2)];
  step.event.from_kernel_log = random.chance(1, 3);
  if (random.chance(1, 3)) {
    step.event.kind = static_cast<GpuEvent::Kind>(random.below(11));
  } else {
    const int codes[] = {13, 31, 43, 48, 63, 64, 74, 79, 94, 95, 109, 119, 149, 154, 158, 999};
    step.event.code = codes[random.below(std::size(codes))];
    if (step.event.code == 74) step.event.detail = "link 6(0x10000, 0x0, 0x0, 0x0, 0x0, 0x0, 0x0)";
  }
  return step;
}

bool needs_reset(const GpuEvent& event) {
  using Kind = GpuEvent::Kind;
  if (event.kind == Kind::kXid) {
    const XidFact* fact = find_xid(event.code);
    return event.code == 74 || (fact != nullptr && fact->takes_gpu_away);
  }
  return event.kind == Kind::kEccDouble || event.kind == Kind::kFatalPoison ||
         event.kind == Kind::kRemapFailed;
}

TEST(HealthProperty, HealthyMeansThatEveryProbePassed) {
  int healed = 0, sick = 0;
  for (std::uint64_t seed = 1; seed <= 200; ++seed) {
    Random random(seed);
    HealthOptions options;
    options.flap_limit = 0;  // flaps only keep more GPUs out
    HealthBook book(options), twin(options);
    std::int64_t now = kTick;
    book.set_inventory(inventory_of(kUuids), now);
    twin.set_inventory(inventory_of(kUuids), now);
    std::map<std::string, Expectation> expected;
    std::map<std::string, Verdict> told;
    for (const auto& uuid : kUuids) told[uuid] = book.verdict(uuid);
    for (int i = 0; i < 200; ++i) {
      now += static_cast<std::int64_t>(random.below(600)) * kTick;
      Step step = random_step(random, now);
      const bool reads = !step.readings.empty();
      auto changed = reads ? book.readings(step.readings, now) : book.event(step.event, now);
      ASSERT_EQ(changed, reads ? twin.readings(step.readings, now) : twin.event(step.event, now));
      for (const auto& r : step.readings) expected[r.uuid].see(r);
      if (!reads && needs_reset(step.event)) expected[step.event.uuid].fatal_event();
      if (!reads && step.event.kind == GpuEvent::Kind::kUnavailable) {
        expected[step.event.uuid].clean = 0;
      }
      for (const auto& uuid : kUuids) {
        const Verdict& verdict = book.verdict(uuid);
        if (verdict.healthy) {
          ASSERT_TRUE(expected[uuid].may_be_healthy()) << "seed " << seed << " step " << i;
        } else {
          ASSERT_NE(verdict.heals, Probe::kNone);
          ASSERT_FALSE(verdict.text.empty());
          ++sick;
        }
        const bool in_list = std::find(changed.begin(), changed.end(), uuid) != changed.end();
        ASSERT_EQ(in_list, verdict != told[uuid]);
        healed += verdict.healthy && !told[uuid].healthy;
        told[uuid] = verdict;
      }
      book.take_noted();
    }
    ASSERT_EQ(book.save(), twin.save());
    HealthBook restored(options);
    ASSERT_TRUE(restored.restore(book.save()).ok());
    ASSERT_EQ(restored.save(), book.save());
    for (const auto& uuid : kUuids) ASSERT_EQ(restored.verdict(uuid), book.verdict(uuid));
  }
  EXPECT_GT(healed, 100);  // the histories do both
  EXPECT_GT(sick, 1000);
}

TEST(HealthProperty, TimeAloneNeverHeals) {
  int sick = 0;
  for (std::uint64_t seed = 1; seed <= 100; ++seed) {
    Random random(seed);
    HealthBook book{HealthOptions()};
    std::int64_t now = kTick;
    book.set_inventory(inventory_of(kUuids), now);
    for (int i = 0; i < 30; ++i) {
      Step step = random_step(random, now += kTick);
      if (step.readings.empty()) {
        book.event(step.event, now);
      } else {
        book.readings(step.readings, now);
      }
    }
    std::map<std::string, Verdict> before;
    for (const auto& uuid : kUuids) before[uuid] = book.verdict(uuid);
    for (int day = 0; day < 365; ++day) {
      now += 86'400 * kTick;
      book.set_inventory(inventory_of(kUuids), now);
      book.readings({}, now);
    }
    for (const auto& uuid : kUuids) {
      EXPECT_EQ(book.verdict(uuid), before[uuid]);
      sick += !before[uuid].healthy;
    }
  }
  EXPECT_GT(sick, 20);
}

TEST(HealthProperty, ApplicationErrorsNeverTakeAGpuAway) {
  std::vector<int> codes;
  for (int code = 1; code < 200; ++code) {
    const XidFact* fact = find_xid(code);
    if (fact != nullptr &&
        (fact->action == XidAction::kRestartApp || fact->action == XidAction::kIgnore)) {
      codes.push_back(code);
    }
  }
  ASSERT_EQ(codes.size(), 70u);
  for (std::uint64_t seed = 1; seed <= 50; ++seed) {
    Random random(seed);
    HealthBook book{HealthOptions()};
    std::int64_t now = kTick;
    book.set_inventory(inventory_of(kUuids), now);
    for (int i = 0; i < 300; ++i) {
      GpuEvent event;
      event.uuid = kUuids[random.below(2)];
      event.code = codes[random.below(codes.size())];
      event.pid = static_cast<int>(random.below(5));
      event.from_kernel_log = random.chance(1, 2);
      event.detail = random.chance(1, 2) ? "GPC 1, TPC 2 to 0x1 (GPU Reset Required)" : "";
      ASSERT_TRUE(book.event(event, now += static_cast<std::int64_t>(random.below(kTick))).empty());
      GpuReading reading;
      reading.uuid = event.uuid;
      ASSERT_TRUE(book.readings({reading}, now).empty());
    }
    for (const auto& uuid : kUuids) ASSERT_EQ(book.verdict(uuid), Verdict());
  }
}

}  // namespace
}  // namespace berth::monitor
