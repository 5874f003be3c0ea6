#include "node/partition/mig_profile.h"

#include <gtest/gtest.h>

namespace berth::partition {
namespace {

TEST(MigProfile, NamesOfRealInstances) {
  constexpr std::int64_t kH200 = 143'771LL << 20, kA100 = 40'960LL << 20, kH100 = 81'559LL << 20;
  struct Case {
    int compute, gpu;
    std::int64_t mib, bytes;
    const char* attribute;
    const char* name;
  };
  constexpr Case kCases[] = {
      {1, 1, 16'384, kH200, "", "1g.18gb"},       {1, 1, 16'384, kH200, "+me", "1g.18gb+me"},
      {1, 1, 33'280, kH200, "", "1g.35gb"},       {2, 2, 33'280, kH200, "", "2g.35gb"},
      {3, 3, 71'424, kH200, "", "3g.71gb"},       {4, 4, 71'424, kH200, "", "4g.71gb"},
      {7, 7, 143'360, kH200, "", "7g.141gb"},     {1, 3, 71'424, kH200, "", "1c.3g.71gb"},
      {1, 1, 4'864, kA100, "", "1g.5gb"},         {3, 3, 19'968, kA100, "", "3g.20gb"},
      {1, 1, 9'984, kH100, "", "1g.10gb"},        {7, 7, 80'384, kH100, "", "7g.80gb"},
      {1, 1, 16'384, kH200, "-me", "1g.18gb-me"}, {1, 1, 0, 0, "", "1g.0gb"},
  };
  for (const Case& c : kCases) {
    EXPECT_EQ(mig_profile_name(c.compute, c.gpu, c.mib, c.bytes, c.attribute), c.name);
  }
}

}  // namespace
}  // namespace berth::partition
