// Who may look at the page of a cluster: the API server says whose token it is (TokenReview) and
// whether he may list what the page shows, pods and GpuNodes of the whole cluster
// (SubjectAccessReview).
//
// Whose token it is and a "yes" are remembered for a minute, a "no" for ten seconds, in memory
// alone and a bounded number of them. For one question about one workload the right to get that is
// enough; what else its owner may see is asked as well, and of that nothing is remembered.
//
// Anybody can send tokens, so the API server is asked about unknown ones at a pace that it does not
// feel, whatever comes in; beyond it the answer is Code::kUnavailable at once. Tokens that were
// good before have a pace of their own and are not in the strangers' queue. On the loop's thread.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "base/metrics.h"
#include "base/result.h"
#include "edge/kube/client.h"
#include "people/why/unit.h"
#include "people/why/visibility.h"

namespace berth::app {

class PageAccess {
 public:
  static constexpr std::size_t kMaxRemembered = 1'000, kMaxRefused = 256;
  static constexpr std::size_t kMaxUnderWay = 16;                   // TokenReviews
  static constexpr std::size_t kMaxWaiting = 64;                    // for the same token
  static constexpr std::int64_t kMostAtOnce = 20, kPerSecond = 10;  // TokenReviews
  using Answer = std::function<void(Status)>;

  explicit PageAccess(kube::Client& client, MetricsRegistry* metrics = nullptr);

  void ask(const std::string& token, Answer answer);

  // What the owner of the token may see of an answer about the subject; an error when he may not
  // get anything of that name.
  struct WhyRights {
    std::set<std::string, std::less<>> kinds = {};  // that he may get: "pod", "job", ...
    people::Visibility visibility = {.pods = false, .nodes = false};
  };
  using VisibilityAnswer = std::function<void(Result<WhyRights>)>;
  void ask_visibility(const std::string& token, const people::Subject& subject,
                      VisibilityAnswer answer);

 private:
  using CallerKnown = std::function<void(Result<std::string>)>;
  struct VisibilityQuestion;
  struct Known {  // a token that was good
    std::string caller;
    std::int64_t until = 0;           // the caller is believed
    std::int64_t answered_until = 0;  // and what he may see
    Status may = {};
  };
  struct Pace {  // tokens of a bucket, in nanoseconds of waiting
    std::int64_t filled_at = INT64_MIN / 2;
    bool take(std::int64_t now);
  };

  std::int64_t now() const { return client_.loop().monotonic().ticks_ns(); }
  void forget_old();
  void ask_caller(const std::string& token, CallerKnown known);
  void review(const std::string& token);
  void reviewed(const std::string& token, const Result<std::string>& caller);
  void ask_next(const std::shared_ptr<VisibilityQuestion>& question);
  void ask_rights(const std::string& token, const std::string& caller, std::size_t which,
                  Answer answer);
  void remember_may(const std::string& token, const Status& may, std::int64_t for_ns);

  kube::Client& client_;
  Counter put_off_;
  std::map<std::string, Known> known_;           // by token
  std::map<std::string, std::int64_t> refused_;  // by token: until
  std::map<std::string, std::vector<CallerKnown>> under_way_;
  Pace strangers_, old_ones_;
};

}  // namespace berth::app
