// Random trees against what the rules of topology_tree.h promise.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <map>
#include <optional>
#include <set>
#include <tuple>

#include "base/random.h"
#include "decide/schedule/topology_tree_for_test.h"

namespace berth::schedule {
namespace {

using model::TopologyAsk;

// A random question with the definitions worked out by hand, without the tree: which totals each
// domain can take is found by adding up sets of totals, not by dividing.
class Puzzle {
 public:
  static constexpr int kLevels = 3;
  using Totals = std::set<int>;

  explicit Puzzle(Random& random) {
    const auto blocks = random.between(1, 3);
    for (int b = 0; b < blocks; ++b) {
      const auto racks = random.between(1, 3);
      for (int r = 0; r < racks; ++r) {
        const auto count = random.between(1, 3);
        for (int h = 0; h < count; ++h) {
          const std::string name =
              "h" + std::to_string(random.below(1000)) + "-" + std::to_string(hosts.size());
          hosts.push_back(
              {"b" + std::to_string(b), "r" + std::to_string(r), name, random.between(0, 6)});
        }
      }
    }
    std::sort(hosts.begin(), hosts.end(), [](const At& a, const At& b) {
      return std::tie(a.block, a.rack, a.host) < std::tie(b.block, b.rack, b.host);
    });
    set = pods(0, {}, random.between(1, 2));
    mode = static_cast<int>(random.below(4));
    level = static_cast<int>(random.below(kLevels));
    make_slices(random);
    const int size = layers.empty() ? 1 : layers.front().second;
    set.count = size * static_cast<int>(random.between(1, 12 / size + 1));
    if (mode == 0) set.ask.mode = TopologyAsk::Mode::kRequired;
    if (mode == 1) set.ask.mode = TopologyAsk::Mode::kPreferred;
    if (mode == 2) set.ask.mode = TopologyAsk::Mode::kUnconstrained;
    if (mode <= 1) set.ask.level = kNames[level];
    if (mode > 1) level = layers.empty() ? kLevels - 1 : 0;
    if (random.chance(1, 3)) leader = pods(1, set.ask, random.between(1, 5));
  }

  // Free of the leaf for workers, in pods, where the leader may sit there too.
  int room(std::size_t leaf, bool leads) const {
    const auto free = hosts[leaf].free - (leads ? leader->per_pod[0] : 0);
    return static_cast<int>(std::max<std::int64_t>(free, 0) / set.per_pod[0]);
  }

  // The domain of a leaf at a level, -1 being the whole tree.
  std::string domain(std::size_t leaf, int at) const {
    const At& host = hosts[leaf];
    if (at < 0) return "";
    if (at == 0) return host.block;
    return at == 1 ? host.block + "/" + host.rack : host.block + "/" + host.rack + "/" + host.host;
  }
  int size_at(int at) const {
    for (const auto& [l, size] : layers) {
      if (l == at) return size;
    }
    return 1;
  }

  // Totals of workers that the leaves of one domain can take; led: with the leader among them.
  Totals totals(int at, const std::string& name, bool led) const {
    Totals out;
    if (at == kLevels - 1) {
      for (std::size_t l = 0; l < hosts.size(); ++l) {
        if (domain(l, at) != name || (led && hosts[l].free < leader->per_pod[0])) continue;
        for (int n = 0; n <= room(l, led); ++n) out.insert(n);
      }
    } else {
      out = sums(at, name, led);
    }
    std::erase_if(out, [&](int n) { return n % size_at(at) != 0; });
    return out;
  }

  std::vector<std::string> domains(int at, const std::string& inside = "",
                                   int inside_at = -1) const {
    std::vector<std::string> out;
    for (std::size_t l = 0; l < hosts.size(); ++l) {
      if (domain(l, inside_at) != inside) continue;
      if (out.empty() || out.back() != domain(l, at)) out.push_back(domain(l, at));
    }
    return out;
  }

  TopologyAnswer ask(const TopologyTree& tree, TopologyOptions options = {}) const {
    std::vector<TopologyPodSet> group{set};
    if (leader) group.push_back(*leader);
    // Two single pods: the first leads.
    if (leader && set.count == 1) std::swap(group[0], group[1]);
    auto answer = tree.place(group, options);
    if (answer.ok && leader && set.count == 1)
      std::swap(answer.assignments[0], answer.assignments[1]);
    return answer;
  }

  std::vector<At> hosts;  // by values
  TopologyPodSet set;
  std::optional<TopologyPodSet> leader;
  int mode = 0, level = 0;
  std::vector<std::pair<int, int>> layers;  // level and size

 private:
  static constexpr const char* kNames[] = {"block", "rack", model::kHostnameLabel};

  void make_slices(Random& random) {
    if (!random.chance(2, 3)) return;
    int at = mode <= 1 ? static_cast<int>(random.between(level, kLevels - 1))
                       : static_cast<int>(random.below(kLevels));
    int size = random.chance(1, 2) ? 4 : static_cast<int>(random.between(1, 4));
    for (; at < kLevels; ++at) {
      layers.emplace_back(at, size);
      set.ask.slices.push_back({kNames[at], size});
      if (size % 2 != 0 || random.chance(1, 2)) break;
      size /= 2;
    }
  }

  Totals sums(int at, const std::string& name, bool led) const {
    Totals plain{0}, with_leader;
    for (const auto& child : domains(at + 1, name, at)) {
      const Totals more = totals(at + 1, child, false);
      Totals next_led;
      if (led) {
        const Totals here = totals(at + 1, child, true);
        for (const int a : plain) {
          for (const int b : here) next_led.insert(a + b);
        }
        for (const int a : with_leader) {
          for (const int b : more) next_led.insert(a + b);
        }
      }
      Totals next;
      for (const int a : plain) {
        for (const int b : more) next.insert(a + b);
      }
      plain = std::move(next);
      with_leader = std::move(next_led);
    }
    return led ? with_leader : plain;
  }
};

// Workers by leaf of the puzzle.
std::vector<int> by_leaf(const Puzzle& puzzle, const model::TopologyAssignment& assignment) {
  std::vector<int> out(puzzle.hosts.size(), 0);
  std::size_t last = 0;
  for (const auto& d : assignment.domains) {
    for (std::size_t l = 0; l < out.size(); ++l) {
      if (puzzle.hosts[l].host != d.values.at(0)) continue;
      EXPECT_EQ(out[l], 0) << "named twice";
      EXPECT_TRUE(last <= l) << "not sorted";
      EXPECT_GT(d.count, 0);
      out[l] = d.count;
      last = l;
    }
  }
  return out;
}

std::map<std::string, int> by_domain(const Puzzle& puzzle, const std::vector<int>& workers,
                                     int level) {
  std::map<std::string, int> out;
  for (std::size_t l = 0; l < workers.size(); ++l) {
    if (workers[l] > 0) out[puzzle.domain(l, level)] += workers[l];
  }
  return out;
}

// Amounts, slices, and the leader beside its workers.
void check_lawful(const Puzzle& puzzle, const TopologyAnswer& answer) {
  const auto workers = by_leaf(puzzle, answer.assignments.at(0));
  int total = 0;
  std::vector<int> leads(workers.size(), 0);
  if (puzzle.leader) leads = by_leaf(puzzle, answer.assignments.at(1));
  EXPECT_EQ(std::count(leads.begin(), leads.end(), 1), puzzle.leader ? 1 : 0);
  for (std::size_t l = 0; l < workers.size(); ++l) {
    total += workers[l];
    EXPECT_LE(workers[l], puzzle.room(l, leads[l] > 0));
    if (leads[l] > 0) {
      EXPECT_GE(puzzle.hosts[l].free, puzzle.leader->per_pod[0]);
    }
  }
  EXPECT_EQ(total, puzzle.set.count);
  for (const auto& [level, size] : puzzle.layers) {
    for (const auto& [name, count] : by_domain(puzzle, workers, level))
      EXPECT_EQ(count % size, 0) << name;
  }
}

bool fits_one(const Puzzle& puzzle, int level) {
  const auto names = puzzle.domains(level);
  return std::any_of(names.begin(), names.end(), [&](const std::string& name) {
    return puzzle.totals(level, name, puzzle.leader.has_value()).contains(puzzle.set.count);
  });
}

// The narrowest level, from the asked one up, at which one domain takes everything; -1: none.
int narrowest(const Puzzle& puzzle) {
  for (int level = puzzle.level; level >= 0; --level) {
    if (fits_one(puzzle, level)) return level;
    if (puzzle.mode != 1) return -1;
  }
  return -1;
}

int slices_in(const Puzzle& puzzle, const Puzzle::Totals& totals) {
  const int size = puzzle.layers.empty() ? 1 : puzzle.layers.front().second;
  int most = 0;
  for (const int total : totals) {
    if (total % size == 0) most = std::max(most, total / size);
  }
  return most;
}

// Feasible exactly when the definition says so; a "no" tells the most that fits.
void check_feasible(const Puzzle& puzzle, const TopologyAnswer& answer) {
  const bool led = puzzle.leader.has_value();
  int most = slices_in(puzzle, puzzle.totals(-1, "", led));
  if (puzzle.mode == 0) {
    most = 0;
    for (const auto& name : puzzle.domains(puzzle.level))
      most = std::max(most, slices_in(puzzle, puzzle.totals(puzzle.level, name, led)));
  }
  const int size = puzzle.layers.empty() ? 1 : puzzle.layers.front().second;
  EXPECT_EQ(answer.ok, most >= puzzle.set.count / size);
  EXPECT_FALSE(answer.invalid) << answer.message;
  if (answer.ok) {
    check_lawful(puzzle, answer);
  } else {
    EXPECT_EQ(answer.fits, most);
  }
}

// The level is the narrowest possible; below it, down to the slices, the number of domains is the
// least that has room. Not for unconstrained asks, which use up fragments.
void check_few(const Puzzle& puzzle, const TopologyAnswer& answer) {
  const int level = narrowest(puzzle);
  const auto workers = by_leaf(puzzle, answer.assignments.at(0));
  if (level >= 0) {
    EXPECT_EQ(by_domain(puzzle, workers, level).size(), 1U);
  }
  if (puzzle.mode > 1 || puzzle.leader) return;
  const int slice_level = puzzle.layers.empty() ? Puzzle::kLevels - 1 : puzzle.layers.front().first;
  for (int at = std::max(level, -1); at < slice_level; ++at) {
    std::vector<int> rooms;
    for (const auto& [name, count] : by_domain(puzzle, workers, at)) {
      for (const auto& child : puzzle.domains(at + 1, name, at))
        rooms.push_back(slices_in(puzzle, puzzle.totals(at + 1, child, false)));
    }
    std::sort(rooms.rbegin(), rooms.rend());
    int wanted = puzzle.set.count / (puzzle.layers.empty() ? 1 : puzzle.layers.front().second);
    std::size_t least = 0;
    while (wanted > 0) wanted -= rooms.at(least++);
    EXPECT_EQ(by_domain(puzzle, workers, at + 1).size(), least) << "level " << at + 1;
  }
}

// One domain: the tightest. Unconstrained without slices: the least free first.
void check_tight(const Puzzle& puzzle, const TopologyAnswer& answer) {
  if (puzzle.leader) return;
  const int level = narrowest(puzzle);
  const auto workers = by_leaf(puzzle, answer.assignments.at(0));
  if (level >= 0) {
    const auto used = by_domain(puzzle, workers, level);
    const auto room = [&](const std::string& name) {
      return slices_in(puzzle, puzzle.totals(level, name, false));
    };
    const int mine = room(used.begin()->first);
    for (const auto& name : puzzle.domains(level)) {
      const int other = room(name);
      EXPECT_FALSE(other < mine && puzzle.totals(level, name, false).contains(puzzle.set.count));
    }
  } else if (puzzle.mode > 1 && puzzle.layers.empty()) {
    std::vector<std::pair<int, std::size_t>> order;
    for (std::size_t l = 0; l < workers.size(); ++l) order.emplace_back(puzzle.room(l, false), l);
    std::sort(order.begin(), order.end());
    int left = puzzle.set.count;
    for (const auto& [room, l] : order) {
      EXPECT_EQ(workers[l], std::min(room, left));
      left -= workers[l];
    }
  }
}

int rounds() { return std::getenv("BERTH_SOAK") != nullptr ? 100'000 : 3'000; }

TEST(TopologyProperty, AnswersAreAsDefined) {
  Random random(20261);
  int yes = 0, led = 0;
  for (int i = 0; i < rounds() && !::testing::Test::HasFailure(); ++i) {
    SCOPED_TRACE(i);
    const Puzzle puzzle(random);
    const auto tree = tree_of(puzzle.hosts);
    const auto answer = puzzle.ask(tree);
    check_feasible(puzzle, answer);
    if (!answer.ok) continue;
    ++yes;
    led += puzzle.leader ? 1 : 0;
    check_few(puzzle, answer);
    check_tight(puzzle, answer);
  }
  EXPECT_GT(yes, rounds() / 3);
  EXPECT_GT(led, rounds() / 20);
}

TEST(TopologyProperty, OrderOfHostsAndPastUsageDoNotMatter) {
  Random random(20262);
  for (int i = 0; i < rounds() / 3 && !::testing::Test::HasFailure(); ++i) {
    SCOPED_TRACE(i);
    Puzzle puzzle(random);
    const TopologyOptions options{.balanced = random.chance(1, 3), .mixed = random.chance(1, 2)};
    const auto expected = puzzle.ask(tree_of(puzzle.hosts), options);
    auto shuffled = puzzle.hosts;
    random.shuffle(shuffled);
    // Usage of half of the hosts is free in the tree and added; of others it is added and taken.
    std::vector<std::pair<std::string, int>> kept, gone;
    for (At& at : shuffled) {
      const int used = static_cast<int>(random.below(4));
      (random.chance(1, 2) ? kept : gone).emplace_back(at.host, used);
      if (!kept.empty() && kept.back().first == at.host) at.free += used;
    }
    auto tree = tree_of(shuffled);
    const std::vector<std::int64_t> one{1};
    const auto usage = [&](const auto& list, bool add) {
      for (const auto& [host, used] : list) {
        const std::vector<std::string> values{host};
        add ? tree.add(values, used, one) : tree.take(values, used, one);
      }
    };
    usage(gone, true);
    usage(kept, true);
    usage(gone, false);
    const auto answer = puzzle.ask(tree, options);
    EXPECT_EQ(answer.ok, expected.ok);
    EXPECT_EQ(answer.assignments, expected.assignments);
    EXPECT_EQ(answer.message, expected.message);
    EXPECT_EQ(answer.fits, expected.fits);
    // An empty cluster: what was added does not count, what nodes lack does.
    auto full = tree_of(puzzle.hosts);
    for (const At& at : puzzle.hosts) full.add(std::vector<std::string>{at.host}, 100, one);
    EXPECT_FALSE(puzzle.ask(full, options).ok);
    TopologyOptions empty = options;
    empty.empty = true;
    EXPECT_EQ(puzzle.ask(full, empty).assignments, expected.assignments);
  }
}

// The largest least share over all sets of domains at the balanced level under one parent.
int best_threshold(const Puzzle& puzzle, int parents, int at) {
  const int size = puzzle.layers.empty() ? 1 : puzzle.layers.front().second;
  const int wanted = puzzle.set.count / size;
  int best = 0;
  for (const auto& parent : puzzle.domains(parents)) {
    std::vector<int> rooms;
    for (const auto& name : puzzle.domains(at, parent, parents))
      rooms.push_back(slices_in(puzzle, puzzle.totals(at, name, false)));
    for (unsigned mask = 1; mask < 1U << rooms.size(); ++mask) {
      int sum = 0, least = INT32_MAX, count = 0;
      for (std::size_t i = 0; i < rooms.size(); ++i) {
        if ((mask >> i & 1U) == 0) continue;
        sum += rooms[i];
        least = std::min(least, rooms[i]);
        ++count;
      }
      if (sum >= wanted) best = std::max(best, std::min(least, wanted / count));
    }
  }
  return best;
}

// Of all sets of siblings that can give the threshold and take everything, the used one has the
// fewest members and the least room.
void check_tightest(const Puzzle& puzzle, const std::map<std::string, int>& used,
                    const std::string& parent, int threshold) {
  const int size = puzzle.layers.empty() ? 1 : puzzle.layers.front().second;
  std::vector<int> rooms;
  std::pair<int, int> mine{static_cast<int>(used.size()), 0}, best{INT32_MAX, 0};
  for (const auto& name : puzzle.domains(puzzle.level, parent, puzzle.level - 1)) {
    rooms.push_back(slices_in(puzzle, puzzle.totals(puzzle.level, name, false)));
    if (used.contains(name)) mine.second += rooms.back();
  }
  for (unsigned mask = 1; mask < 1U << rooms.size(); ++mask) {
    std::pair<int, int> set{0, 0};
    bool enough = true;
    for (std::size_t i = 0; i < rooms.size(); ++i) {
      if ((mask >> i & 1U) == 0) continue;
      ++set.first;
      set.second += rooms[i];
      enough = enough && rooms[i] >= threshold;
    }
    if (enough && set.second >= puzzle.set.count / size) best = std::min(best, set);
  }
  EXPECT_EQ(mine, best);
}

TEST(TopologyProperty, BalancedReachesTheThresholdOrFallsBack) {
  Random random(20263);
  int balanced = 0;
  for (int i = 0; i < rounds() && !::testing::Test::HasFailure(); ++i) {
    SCOPED_TRACE(i);
    const Puzzle puzzle(random);
    if (puzzle.mode != 1) continue;
    const auto tree = tree_of(puzzle.hosts);
    const auto plain = puzzle.ask(tree);
    const auto even = puzzle.ask(tree, {.balanced = true});
    check_feasible(puzzle, even);
    if (puzzle.leader || !even.ok) continue;
    const int slice_level = puzzle.layers.empty() ? 2 : puzzle.layers.front().first;
    const int at = puzzle.level < slice_level ? puzzle.level + 1 : puzzle.level;
    const int threshold = best_threshold(puzzle, puzzle.level - 1, at);
    const int size = puzzle.layers.empty() ? 1 : puzzle.layers.front().second;
    int least = INT32_MAX;
    const auto workers = by_leaf(puzzle, even.assignments.at(0));
    for (const auto& [name, count] : by_domain(puzzle, workers, at))
      least = std::min(least, count / size);
    if (threshold == 0 || least < threshold) {
      EXPECT_EQ(even.assignments, plain.assignments) << "fell back";
    } else {
      ++balanced;
      EXPECT_EQ(least, threshold);
      const auto parent = by_domain(puzzle, workers, puzzle.level - 1);
      EXPECT_EQ(parent.size(), 1U) << "under one parent";
      if (at == puzzle.level && plain.assignments != even.assignments)
        check_tightest(puzzle, by_domain(puzzle, workers, at), parent.begin()->first, threshold);
    }
  }
  EXPECT_GT(balanced, rounds() / 20);
}

TEST(TopologyProperty, ReplacingKeepsTheRestAndTheRules) {
  Random random(20264);
  int replaced = 0, failed = 0;
  for (int i = 0; i < rounds() && !::testing::Test::HasFailure(); ++i) {
    SCOPED_TRACE(i);
    Puzzle puzzle(random);
    puzzle.leader.reset();
    auto tree = tree_of(puzzle.hosts);
    const auto first = puzzle.ask(tree);
    if (!first.ok) continue;
    const auto& now = first.assignments.at(0);
    for (const auto& d : now.domains) tree.add(d.values, d.count, puzzle.set.per_pod);
    const auto& lost = now.domains[random.below(now.domains.size())];
    const auto answer = tree.replace(puzzle.set, now, lost.values[0]);
    if (!answer.ok) {
      ++failed;
      continue;
    }
    ++replaced;
    check_lawful(puzzle, answer);
    const auto workers = by_leaf(puzzle, answer.assignments.at(0));
    const auto before = by_leaf(puzzle, now);
    for (std::size_t l = 0; l < workers.size(); ++l) {
      if (puzzle.hosts[l].host == lost.values[0]) {
        EXPECT_EQ(workers[l], 0);
      } else {
        EXPECT_GE(workers[l], before[l]);
      }
    }
    if (puzzle.mode == 0) {
      EXPECT_EQ(by_domain(puzzle, workers, puzzle.level).size(), 1U);
    }
  }
  EXPECT_GT(replaced, rounds() / 10);
  EXPECT_GT(failed, rounds() / 50);
}

}  // namespace
}  // namespace berth::schedule
