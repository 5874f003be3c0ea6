// The authorities of a server that makes its own certificates: which one signs, which are trusted,
// when the next one is due.
//
// A pure function of what is stored and of the time: two replicas that read the same set do the
// same, and no step of a change has to be noted anywhere. There are at most two, the newest first.
// A new one is due after two thirds of the newest one's life. It is trusted from then on, and signs
// once it is settled: whoever checks certificates has had time to hear of it. The one before stays
// trusted to its own end, so that what it signed goes on.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "edge/serve/certificate.h"

namespace berth::serve {

struct RotationOptions {
  std::int64_t life_ns = 0;      // of an authority
  std::int64_t serving_ns = 0;   // of what it signs
  std::int64_t settle_ns = 0;    // from its making to its first signature
  std::int64_t backdate_ns = 0;  // clocks that are late see no certificate of the future
  std::int64_t look_ns = 0;      // how often the set is read again: several times while one settles
};
// All of it from the life of an authority: a year gives certificates of 90 days, five minutes to
// settle, a look every minute.
RotationOptions rotation_of(std::int64_t authority_life_ns);

struct Authority {
  Certificate pair;
  std::int64_t starts_ns = 0, ends_ns = 0;
};
// An authority as it was stored; not one, or a key that is not its own: an error.
Result<Authority> read_authority(Certificate pair);
Result<Authority> new_authority(const std::string& common_name, std::int64_t now_ns,
                                const RotationOptions& options);

class AuthoritySet {
 public:
  static constexpr std::size_t kMost = 2;

  AuthoritySet() = default;
  explicit AuthoritySet(std::vector<Authority> newest_first);

  const std::vector<Authority>& all() const { return all_; }
  bool wants_new(std::int64_t now_ns) const;
  void add(Authority authority);  // the newest; only the one before it is kept
  // Null when none is valid.
  const Authority* signer(std::int64_t now_ns, const RotationOptions& options) const;
  std::string bundle_pem(std::int64_t now_ns) const;  // those that have not ended, newest first

 private:
  std::vector<Authority> all_;
};

// Two thirds of the way from its start to its end are gone.
bool due(std::int64_t starts_ns, std::int64_t ends_ns, std::int64_t now_ns);

}  // namespace berth::serve
