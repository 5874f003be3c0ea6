#include "edge/serve/body_buffer.h"

#include <gtest/gtest.h>

#include "base/random.h"

namespace berth::serve {
namespace {

TEST(BodyBuffer, GivesWhatCameHoweverItWasCut) {
  Random random(5);
  BodyBuffer buffer;
  for (int i = 0; i < 40; ++i) {
    std::string all;
    const std::size_t most = i % 2 == 0 ? 1'000 : 200'000;
    for (std::uint64_t n = random.below(12); n > 0; --n) {
      all.append(random.below(most), static_cast<char>('a' + n));
      const std::size_t before = buffer.size();
      ASSERT_TRUE(buffer.append(std::string_view(all).substr(before)));
      EXPECT_EQ(buffer.size(), all.size());
      EXPECT_LE(buffer.held(), all.size() + BodyBuffer::kSmall + 64);
    }
    EXPECT_EQ(buffer.take(), all);
    EXPECT_EQ(buffer.size(), 0u);
  }
}

}  // namespace
}  // namespace berth::serve
