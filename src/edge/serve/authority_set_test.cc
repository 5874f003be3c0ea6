#include "edge/serve/authority_set.h"

#include <gtest/gtest.h>
#include <openssl/pem.h>
#include <openssl/x509.h>

namespace berth::serve {
namespace {

constexpr std::int64_t kSetStart = 1'700'000'000'000'000'000, kSetSecond = 1'000'000'000;
constexpr std::int64_t kSetDay = 86'400 * kSetSecond;

Authority authority_at(std::int64_t now, const RotationOptions& options) {
  auto made = new_authority("berth webhook", now, options);
  EXPECT_TRUE(made.ok()) << made.error().to_string();
  return *made;
}

std::size_t certificates_in(const std::string& pem) {
  std::size_t out = 0;
  for (std::size_t at = 0; (at = pem.find("BEGIN CERTIFICATE", at)) != std::string::npos; ++at) {
    ++out;
  }
  return out;
}

TEST(AuthoritySet, TimesOfAYear) {
  const RotationOptions year = rotation_of(365 * kSetDay);
  EXPECT_EQ(year.serving_ns, 90 * kSetDay);
  EXPECT_EQ(year.settle_ns, 300 * kSetSecond);
  EXPECT_EQ(year.backdate_ns, 3'600 * kSetSecond);
  EXPECT_EQ(year.look_ns, 60 * kSetSecond);
  // Short ones keep the order: a look is shorter than settling, settling than a serving life.
  const RotationOptions brief = rotation_of(24 * kSetSecond);
  EXPECT_LT(brief.look_ns, brief.settle_ns);
  EXPECT_LT(brief.settle_ns, brief.serving_ns);
  EXPECT_LT(brief.serving_ns + brief.settle_ns, brief.life_ns * 2 / 3);
}

TEST(AuthoritySet, TheFirstSignsAtOnce) {
  const RotationOptions options = rotation_of(365 * kSetDay);
  AuthoritySet set;
  EXPECT_TRUE(set.wants_new(kSetStart));
  EXPECT_EQ(set.signer(kSetStart, options), nullptr);
  EXPECT_EQ(set.bundle_pem(kSetStart), "");
  set.add(authority_at(kSetStart, options));
  EXPECT_FALSE(set.wants_new(kSetStart));
  ASSERT_NE(set.signer(kSetStart, options), nullptr);
  EXPECT_EQ(certificates_in(set.bundle_pem(kSetStart)), 1u);
}

TEST(AuthoritySet, ANewOneIsTrustedBeforeItSigns) {
  const RotationOptions options = rotation_of(360 * kSetDay);
  AuthoritySet set({authority_at(kSetStart, options)});
  const std::string first = set.all()[0].pair.certificate_pem;
  EXPECT_FALSE(set.wants_new(kSetStart + 239 * kSetDay));
  const std::int64_t turn = kSetStart + 241 * kSetDay;
  ASSERT_TRUE(set.wants_new(turn));
  set.add(authority_at(turn, options));
  EXPECT_FALSE(set.wants_new(turn));
  EXPECT_EQ(set.bundle_pem(turn), set.all()[0].pair.certificate_pem + first);
  EXPECT_EQ(set.signer(turn, options)->pair.certificate_pem, first);
  EXPECT_EQ(set.signer(turn + options.settle_ns - kSetSecond, options), &set.all()[1]);
  EXPECT_EQ(set.signer(turn + options.settle_ns, options), &set.all()[0]);
  // What the old one signed is good to the old one's end, and not longer.
  EXPECT_EQ(certificates_in(set.bundle_pem(kSetStart + 360 * kSetDay - kSetSecond)), 2u);
  EXPECT_EQ(certificates_in(set.bundle_pem(kSetStart + 360 * kSetDay)), 1u);
}

TEST(AuthoritySet, AfterALongSleepTheNewOneSignsUnsettled) {
  const RotationOptions options = rotation_of(30 * kSetDay);
  AuthoritySet set({authority_at(kSetStart, options)});
  const std::int64_t late = kSetStart + 400 * kSetDay;
  EXPECT_EQ(set.signer(late, options), nullptr);
  EXPECT_EQ(set.bundle_pem(late), "");
  ASSERT_TRUE(set.wants_new(late));
  set.add(authority_at(late, options));
  EXPECT_EQ(set.signer(late, options), &set.all()[0]);
  EXPECT_EQ(certificates_in(set.bundle_pem(late)), 1u);
}

TEST(AuthoritySet, NeverMoreThanTwo) {
  const RotationOptions options = rotation_of(30 * kSetDay);
  AuthoritySet set;
  for (int i = 0; i < 4; ++i) set.add(authority_at(kSetStart + i * kSetDay, options));
  ASSERT_EQ(set.all().size(), AuthoritySet::kMost);
  EXPECT_GT(set.all()[0].starts_ns, set.all()[1].starts_ns);
}

// A simulated decade: at every moment what is served was signed by an authority that was trusted
// for a settling time before, and is still trusted.
TEST(AuthoritySet, ADecadeWithoutAGap) {
  const RotationOptions options = rotation_of(365 * kSetDay);
  AuthoritySet set;
  std::string bundle_before;
  int turns = 0;
  for (std::int64_t now = kSetStart; now < kSetStart + 3'650 * kSetDay; now += kSetDay) {
    if (set.wants_new(now)) set.add(authority_at(now, options)), ++turns;
    const Authority* signer = set.signer(now, options);
    ASSERT_NE(signer, nullptr);
    ASSERT_GT(signer->ends_ns, now + options.serving_ns);
    ASSERT_NE(set.bundle_pem(now).find(signer->pair.certificate_pem), std::string::npos);
    if (!bundle_before.empty()) {
      ASSERT_NE(bundle_before.find(signer->pair.certificate_pem), std::string::npos) << turns;
    }
    bundle_before = set.bundle_pem(now);
  }
  EXPECT_GE(turns, 14);
  EXPECT_LE(turns, 16);
}

TEST(AuthoritySet, WhatIsStoredIsChecked) {
  const RotationOptions options = rotation_of(30 * kSetDay);
  const Authority one = authority_at(kSetStart, options);
  const Authority other = authority_at(kSetStart, options);
  EXPECT_TRUE(read_authority(one.pair).ok());
  EXPECT_FALSE(read_authority({one.pair.certificate_pem, other.pair.key_pem}).ok());
  EXPECT_FALSE(read_authority({"", one.pair.key_pem}).ok());
  EXPECT_FALSE(read_authority({one.pair.certificate_pem, ""}).ok());
}

}  // namespace
}  // namespace berth::serve
