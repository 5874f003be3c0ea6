// Files that the agent finds in its own folders: what an operator asks of it, and what a change of
// MIG layouts was about. Each reads back as it was written.
#include "agent/mig_intent.h"
#include "agent/requests.h"
#include "fuzz.h"

BERTH_FUZZ_TARGET(agent_text) {
  using namespace berth;
  const std::string_view input = fuzz::text_of(data, size);
  if (const auto request = agent::read_request(input); request.ok()) {
    fuzz::check(request->verb == agent::kForgive, "there is one verb");
    for (const std::string* word : {&request->gpu, &request->by, &request->why}) {
      fuzz::check(word->size() <= 256, "words are bounded");
    }
    const auto again = agent::read_request(agent::write_request(*request));
    fuzz::check(again.ok() && *again == *request, "a request reads back");
  }
  if (const auto intent = agent::read_intent(input); intent.ok()) {
    const auto again = agent::read_intent(agent::write_intent(*intent));
    fuzz::check(again.ok() && *again == *intent, "an intent reads back");
  }
  return 0;
}
