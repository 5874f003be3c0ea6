#include "node/allocate/journal.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "base/random.h"

namespace berth::allocate {
namespace {

JournalEntry entry(std::int64_t at, std::vector<std::string> ids, std::string pod = "") {
  return {at, "nvidia.com/gpu", std::move(ids), std::move(pod)};
}

model::HeldDevices container(const std::string& pod, const std::string& name,
                             std::vector<std::string> ids) {
  return {"team", pod, name, "nvidia.com/gpu", std::move(ids)};
}

TEST(Journal, ReadsBackWhatItWrote) {
  Journal journal;
  journal.add(entry(1, {"GPU-1", "GPU-2"}));
  journal.add(entry(2, {"MIG-3::4"}, "team/a/main"));
  journal.add(entry(3, {}, "a \"quoted\"\nname\\"));
  const Journal again = Journal::read(journal.text());
  EXPECT_EQ(again.entries(), journal.entries());
  EXPECT_EQ(again.damaged(), 0u);
  EXPECT_EQ(again.text(), journal.text());
  std::string appended;
  for (const JournalEntry& e : journal.entries()) appended += journal.line(e);
  EXPECT_EQ(Journal::read(appended).entries(), journal.entries());
  EXPECT_EQ(Journal::read(appended).damaged(), 0u);
}

TEST(Journal, TheFormatStays) {
  EXPECT_EQ(
      Journal().line(entry(5, {"GPU-1"}, "team/a/main")),
      "\n{\"at\":5,\"resource\":\"nvidia.com/gpu\",\"ids\":[\"GPU-1\"],\"pod\":\"team/a/main\","
      "\"sum\":\"319a5905bb6c75ad\"}\n");
}

TEST(Journal, ATornEndIsDroppedAndTheRestHolds) {
  const Journal empty;
  const std::string first = empty.line(entry(1, {"GPU-1"}));
  const std::string second = empty.line(entry(2, {"GPU-2"})).substr(1);
  for (std::size_t cut = 0; cut < second.size(); ++cut) {
    const Journal read = Journal::read(first + second.substr(0, cut));
    const bool whole = cut + 1 == second.size();  // only the end of the line is missing
    EXPECT_EQ(read.entries().size(), whole ? 2u : 1u) << cut;
    EXPECT_EQ(read.damaged(), whole || cut == 0 ? 0u : 1u) << cut;
    const std::string next = empty.line(entry(3, {"GPU-3"}));
    const Journal later = Journal::read(first + second.substr(0, cut) + next);
    ASSERT_EQ(later.entries().size(), read.entries().size() + 1) << cut;
    EXPECT_EQ(later.entries().back(), entry(3, {"GPU-3"}));
  }
}

TEST(Journal, EveryFlippedBitIsSeen) {
  const std::string line = Journal().line(entry(1, {"GPU-1", "GPU-2"}, "team/a/main"));
  for (std::size_t byte = 1; byte + 1 < line.size(); ++byte) {
    for (int bit = 0; bit < 8; ++bit) {
      std::string bad = line;
      bad[byte] = static_cast<char>(bad[byte] ^ (1 << bit));
      const Journal read = Journal::read(bad);
      EXPECT_TRUE(read.entries().empty()) << byte << " " << bit;
      EXPECT_GE(read.damaged(), 1u);
    }
  }
}

// Whatever happens to the file, an entry that is read was written.
TEST(Journal, RandomDamageNeverInventsAnEntry) {
  Random random(11);
  for (int round = 0; round < 400; ++round) {
    Journal journal;
    const std::uint64_t entries = 1 + random.below(8);
    for (std::uint64_t i = 0; i < entries; ++i) {
      journal.add(entry(static_cast<std::int64_t>(i), {"GPU-" + std::to_string(random.below(9))},
                        random.chance(1, 2) ? "team/p/main" : ""));
    }
    std::string text = journal.text();
    const std::uint64_t blows = random.below(6);
    for (std::uint64_t i = 0; i < blows && !text.empty(); ++i) {
      const std::size_t at = random.below(text.size());
      switch (random.below(5)) {
        case 0:
          text[at] = static_cast<char>(random.below(256));
          break;
        case 1:
          text.erase(at, 1 + random.below(40));
          break;
        case 2:
          text.insert(at, text.substr(random.below(text.size()), random.below(60)));
          break;
        case 3:
          text.insert(at, std::string(1 + random.below(5), "\n\"{}[,\0:1e"[random.below(10)]));
          break;
        default:
          text.resize(at);
      }
    }
    const Journal read = Journal::read(text);
    for (const JournalEntry& e : read.entries()) {
      EXPECT_NE(std::find(journal.entries().begin(), journal.entries().end(), e),
                journal.entries().end())
          << "round " << round;
    }
    if (blows == 0) {
      EXPECT_EQ(read.entries(), journal.entries());
    }
    EXPECT_EQ(Journal::read(read.text()).entries(), read.entries());
  }
}

TEST(Journal, LinesOfAnotherShapeAreDamage) {
  for (const char* line : {"{}", "[]", "null", "1", "x", "{\"at\":1}", " ", "\xff",
                           "{\"at\":1,\"resource\":\"r\",\"ids\":[],\"pod\":\"\",\"sum\":\"\"}"}) {
    EXPECT_EQ(Journal::read(line).damaged(), 1u) << line;
  }
  EXPECT_EQ(Journal::read(std::string(1000, '[')).damaged(), 1u);
  EXPECT_EQ(Journal::read("\n\n").damaged(), 0u);
}

TEST(Journal, TheOldestGoWhenThereAreTooMany) {
  Journal journal;
  std::string text;
  for (std::size_t i = 0; i < kMaxJournal + 3; ++i) {
    const JournalEntry e = entry(static_cast<std::int64_t>(i), {"GPU-1"});
    text += journal.line(e);
    journal.add(e);
  }
  ASSERT_EQ(journal.entries().size(), kMaxJournal);
  EXPECT_EQ(journal.entries().front().at_ns, 3);
  EXPECT_EQ(Journal::read(text).entries(), journal.entries());
}

TEST(Journal, ReconcileNamesThePods) {
  Journal journal;
  journal.add(entry(1, {"GPU-2", "GPU-1"}));
  journal.add(entry(2, {"GPU-3"}));
  EXPECT_TRUE(journal.reconcile(
      {container("b", "main", {"GPU-3"}), container("a", "main", {"GPU-1", "GPU-2"})}, 5, 10));
  EXPECT_EQ(journal.entries()[0].pod, "team/a/main");
  EXPECT_EQ(journal.entries()[1].pod, "team/b/main");
  EXPECT_FALSE(journal.reconcile(
      {container("b", "main", {"GPU-3"}), container("a", "main", {"GPU-1", "GPU-2"})}, 900, 10))
      << "what is held stays, however old";
}

TEST(Journal, ReconcileDropsWhatNobodyHoldsAfterTheGrace) {
  Journal journal;
  journal.add(entry(100, {"GPU-1"}));
  EXPECT_FALSE(journal.reconcile({}, 110, 10));
  EXPECT_EQ(journal.entries().size(), 1u) << "the kubelet may not list it yet";
  EXPECT_TRUE(journal.reconcile({}, 111, 10));
  EXPECT_TRUE(journal.entries().empty());
  journal.add(entry(1000, {"GPU-1"}));
  EXPECT_TRUE(journal.reconcile({}, 100, 10)) << "a clock that was set back";
}

TEST(Journal, ReconcileOtherResourceIsAnotherDevice) {
  Journal journal;
  journal.add({100, "nvidia.com/gpu.shared", {"GPU-1"}, ""});
  EXPECT_TRUE(journal.reconcile({container("a", "main", {"GPU-1"})}, 200, 10));
  EXPECT_TRUE(journal.entries().empty());
}

TEST(Journal, ReconcileTheLaterEntryOfADeviceHolds) {
  Journal journal;
  journal.add(entry(1, {"GPU-1"}, "team/old/main"));
  journal.add(entry(50, {"GPU-1"}));
  EXPECT_TRUE(journal.reconcile({container("new", "main", {"GPU-1"})}, 60, 20));
  ASSERT_EQ(journal.entries().size(), 1u);
  EXPECT_EQ(journal.entries()[0], entry(50, {"GPU-1"}, "team/new/main"));
}

TEST(Journal, ReconcileDevicesPassedOnByAnInitContainer) {
  Journal journal;
  journal.add(entry(1, {"GPU-1", "GPU-2"}));
  journal.add(entry(2, {"GPU-1"}));
  journal.reconcile({container("a", "init", {"GPU-1", "GPU-2"}), container("a", "main", {"GPU-1"})},
                    900, 10);
  ASSERT_EQ(journal.entries().size(), 2u);
  EXPECT_EQ(journal.entries()[0].pod, "team/a/init");
  EXPECT_EQ(journal.entries()[1].pod, "team/a/main");
}

}  // namespace
}  // namespace berth::allocate
