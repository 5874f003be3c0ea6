#include "edge/serve/authority_set.h"

#include <algorithm>
#include <utility>

namespace berth::serve {

namespace {

constexpr std::int64_t kRotationSecond = 1'000'000'000;
constexpr std::int64_t kRotationHour = 3'600 * kRotationSecond;

}  // namespace

RotationOptions rotation_of(std::int64_t authority_life_ns) {
  RotationOptions out;
  out.life_ns = authority_life_ns;
  out.serving_ns = std::min(90 * 24 * kRotationHour, authority_life_ns / 3);
  out.settle_ns = std::min(300 * kRotationSecond, authority_life_ns / 12);
  out.backdate_ns = std::min(kRotationHour, authority_life_ns / 12);
  out.look_ns = out.settle_ns / 5;
  return out;
}

bool due(std::int64_t starts_ns, std::int64_t ends_ns, std::int64_t now_ns) {
  return now_ns >= starts_ns + (ends_ns - starts_ns) / 3 * 2;
}

Result<Authority> read_authority(Certificate pair) {
  BERTH_CHECK(check_pair(pair));
  Authority out;
  BERTH_TRY(out.starts_ns, starts_ns(pair.certificate_pem));
  BERTH_TRY(out.ends_ns, expires_ns(pair.certificate_pem));
  out.pair = std::move(pair);
  return out;
}

Result<Authority> new_authority(const std::string& common_name, std::int64_t now_ns,
                                const RotationOptions& options) {
  BERTH_TRY(Certificate made, make_authority({.common_name = common_name,
                                              .hosts = {},
                                              .not_before_ns = now_ns - options.backdate_ns,
                                              .valid_ns = options.life_ns + options.backdate_ns}));
  return read_authority(std::move(made));
}

AuthoritySet::AuthoritySet(std::vector<Authority> newest_first) : all_(std::move(newest_first)) {
  if (all_.size() > kMost) all_.resize(kMost);
}

bool AuthoritySet::wants_new(std::int64_t now_ns) const {
  return all_.empty() || due(all_.front().starts_ns, all_.front().ends_ns, now_ns);
}

void AuthoritySet::add(Authority authority) {
  all_.insert(all_.begin(), std::move(authority));
  if (all_.size() > kMost) all_.resize(kMost);
}

const Authority* AuthoritySet::signer(std::int64_t now_ns, const RotationOptions& options) const {
  const Authority* unsettled = nullptr;
  for (const Authority& one : all_) {
    if (one.ends_ns <= now_ns) continue;
    if (now_ns >= one.starts_ns + options.backdate_ns + options.settle_ns) return &one;
    if (unsettled == nullptr) unsettled = &one;
  }
  return unsettled;  // there is no other to go on with
}

std::string AuthoritySet::bundle_pem(std::int64_t now_ns) const {
  std::string out;
  for (const Authority& one : all_) {
    if (one.ends_ns > now_ns) out += one.pair.certificate_pem;
  }
  return out;
}

}  // namespace berth::serve
