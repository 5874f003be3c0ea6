// Bodies in Kubernetes' protobuf form: whatever is taken becomes JSON that our own reader takes.
#include "fuzz.h"
#include "kinds/schema/protobuf.h"
#include "text/json.h"

BERTH_FUZZ_TARGET(protobuf) {
  const auto json = berth::sim::protobuf_to_json(berth::fuzz::text_of(data, size));
  if (!json.ok()) {
    berth::fuzz::check(!json.error().to_string().empty(), "a refusal has a message");
    return 0;
  }
  berth::fuzz::check(berth::text::parse_json(*json).ok(), "what is taken is JSON");
  return 0;
}
