// Who may look at the page of a cluster: the API server says whose token it is (TokenReview) and
// whether he may list what the page shows, pods and GpuNodes of the whole cluster
// (SubjectAccessReview).
//
// A "yes" is remembered for a minute, at most kMaxRemembered of them, in memory alone; a "no" is
// asked again each time. On the loop's thread.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>

#include "base/result.h"
#include "kube/client.h"

namespace berth::app {

class PageAccess {
 public:
  static constexpr std::size_t kMaxRemembered = 1'000;
  using Answer = std::function<void(Status)>;

  explicit PageAccess(kube::Client& client) : client_(client) {}

  void ask(const std::string& token, Answer answer);

 private:
  void ask_rights(const std::string& token, const std::string& caller, std::size_t which,
                  Answer answer);

  kube::Client& client_;
  std::map<std::string, std::int64_t> until_;  // by token
};

}  // namespace berth::app
