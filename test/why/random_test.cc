// `berth why` on random clusters whose causes are known, by the same checks as the written cases.
// BERTH_SOAK=1 runs thousands; a failure names its seed, and BERTH_WHY_SEED=N runs that one alone.
#include <gtest/gtest.h>

#include <cstdlib>
#include <iostream>

#include "checks.h"
#include "generate.h"

namespace berth::why_corpus {
namespace {

#ifndef BERTH_WHY_SEEDS
#define BERTH_WHY_SEEDS 300
#endif
constexpr int kSeeds = BERTH_WHY_SEEDS, kSoakSeeds = 5000;

TEST(RandomWhy, FindsWhatWasPutIn) {
  const char* one = std::getenv("BERTH_WHY_SEED");  // NOLINT(concurrency-mt-unsafe)
  const int first = one == nullptr ? 1 : std::atoi(one);
  const char* soak = std::getenv("BERTH_SOAK");  // NOLINT(concurrency-mt-unsafe)
  const int many = soak == nullptr ? kSeeds : kSoakSeeds;
  const int last = one == nullptr ? many : first;
  Tally tally;
  int failed = 0, untold = 0;
  for (int seed = first; seed <= last && failed < 40; ++seed) {
    const Case made = random_case(static_cast<std::uint64_t>(seed));
    std::vector<std::string> lines = check_truth(made);
    for (std::string& line : check_case(made, tally)) lines.push_back(std::move(line));
    bool told = true;
    for (const std::string& line : lines) {
      if (line.starts_with("also: want")) {
        told = false;  // a second cause that is not named
        std::cout << made.name << ": " << line << "\n";
      } else {
        ADD_FAILURE() << made.name << ": " << line;
        ++failed;
      }
    }
    untold += told ? 0 : 1;
    if (one != nullptr) std::cout << made.objects.stream();
  }
  std::cout << "why random: " << summary(tally) << ", " << untold
            << " with a second cause that only its first fix would show\n";
  EXPECT_EQ(untold, 0);
}

TEST(RandomWhy, SameSeedSameCase) {
  EXPECT_EQ(random_case(7).objects.stream(), random_case(7).objects.stream());
  EXPECT_NE(random_case(7).objects.stream(), random_case(8).objects.stream());
}

}  // namespace
}  // namespace berth::why_corpus
