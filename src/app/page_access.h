// Who may look at the page of a cluster: the API server says whose token it is (TokenReview) and
// whether he may list what the page shows, pods and GpuNodes of the whole cluster
// (SubjectAccessReview).
//
// A "yes" is remembered for a minute, at most kMaxRemembered of them, in memory alone; a "no" is
// asked again each time. For one question about one workload the right to get that is enough;
// what else its owner may see is asked as well, and nothing of it is remembered. On the loop's
// thread.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>

#include "base/result.h"
#include "explain/sight.h"
#include "explain/unit.h"
#include "kube/client.h"

namespace berth::app {

class PageAccess {
 public:
  static constexpr std::size_t kMaxRemembered = 1'000;
  using Answer = std::function<void(Status)>;

  explicit PageAccess(kube::Client& client) : client_(client) {}

  void ask(const std::string& token, Answer answer);

  // What the owner of the token may see of an answer about the subject; an error when he may not
  // get anything of that name.
  struct WhyRights {
    std::set<std::string, std::less<>> kinds = {};  // that he may get: "pod", "job", ...
    explain::Sight sight = {.pods = false, .nodes = false};
  };
  using SightAnswer = std::function<void(Result<WhyRights>)>;
  void ask_sight(const std::string& token, const explain::Subject& subject, SightAnswer answer);

 private:
  using CallerKnown = std::function<void(Result<std::string>)>;
  struct SightQuestion;
  void ask_caller(const std::string& token, CallerKnown known);
  void ask_next(const std::shared_ptr<SightQuestion>& question);
  void ask_rights(const std::string& token, const std::string& caller, std::size_t which,
                  Answer answer);

  kube::Client& client_;
  std::map<std::string, std::int64_t> until_;  // by token
};

}  // namespace berth::app
