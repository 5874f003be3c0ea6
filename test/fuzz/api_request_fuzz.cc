// The embedded API server from outside, one request to a fresh one:
//
//   METHOD TARGET
//   Content-Type
//   Accept
//   body
//
// Every request gets one answer, an error is a Status, and what a read finds does not change.
#include <string>

#include "embedded/api/world_for_test.h"
#include "fuzz.h"

namespace {

using namespace berth;

std::string next_line(std::string_view& rest) {
  const std::size_t end = std::min(rest.find('\n'), rest.size());
  const std::string line(rest.substr(0, end));
  rest.remove_prefix(std::min(end + 1, rest.size()));
  return line;
}

}  // namespace

BERTH_FUZZ_TARGET(api_request) {
  std::string_view rest = fuzz::text_of(data, size);
  const std::string first = next_line(rest);
  const std::size_t blank = std::min(first.find(' '), first.size());
  const std::string method = first.substr(0, blank);
  const std::string target = first.substr(std::min(blank + 1, first.size()));
  const std::string type = next_line(rest), accept = next_line(rest);
  // A watch ends when its client goes.
  if (target.find("watch") != std::string::npos) return 0;
  sim::TestWorld world;
  world.post("/api/v1/namespaces/default/pods", world.pod("p"));
  const std::uint64_t before = world.server->version();
  const sim::TestAnswer answer = world.call(method, target, std::string(rest), type, accept);
  fuzz::check(answer.status >= 200 && answer.status <= 599, "every request is answered");
  const bool plain = answer.body.empty() || answer.body.front() != '{';
  if (answer.status >= 400 && !plain && answer.at("kind") == "Status") {
    fuzz::check(answer.at("status") == "Failure", "an error is a failure");
    fuzz::check(answer.at("code") == std::to_string(answer.status), "of the same code");
  }
  if (method == "GET" || answer.status >= 400) {
    fuzz::check(world.server->version() == before, "nothing changed");
  }
  fuzz::check(world.get("/api/v1/namespaces/kube-system").status == 200, "it goes on");
  return 0;
}
