// Admission reviews: whatever the object, it is let through, the answer is for the request that was
// asked, and its patch can be applied.
#include <string>

#include "control/webhook.h"
#include "fuzz.h"
#include "text/base64.h"
#include "text/json.h"
#include "text/patch.h"

namespace {

using namespace berth;

constexpr text::Limits kDeep = {.max_depth = 1'000};

void check_patch(const text::Value& request, std::string_view encoded) {
  const auto bytes = text::base64_decode(encoded);
  fuzz::check(bytes.ok(), "a patch is base64");
  const auto patch = text::parse_json(*bytes, {.limits = kDeep});
  fuzz::check(patch.ok() && patch->root().is_array() && patch->root().size() > 0, "of operations");
  const auto changed = text::apply_json_patch(*request.find("object"), patch->root());
  fuzz::check(changed.ok(), "that fit the object");
  fuzz::check(!text::equal(changed->root(), *request.find("object")), "and change it");
}

}  // namespace

BERTH_FUZZ_TARGET(webhook) {
  if (size == 0) return 0;
  const std::string_view body = fuzz::text_of(data + 1, size - 1);
  control::WebhookOptions options;
  options.suspend_queued_jobs = (data[0] & 1) != 0;
  options.refuse_bypasses = (data[0] & 4) != 0;
  const auto answer = control::review(std::string(body), options);
  const auto twice = control::review(std::string(body), options);
  fuzz::check(answer.ok() == twice.ok(), "asked twice, the same");
  if (!answer.ok()) return 0;
  fuzz::check(*answer == *twice, "the same answer");
  if (answer->find("too large to be looked at") != std::string::npos) return 0;  // it was not read
  const auto asked = text::parse_json(body, {.limits = kDeep});
  const auto told = text::parse_json(*answer, {.limits = kDeep});
  fuzz::check(asked.ok() && told.ok(), "the answer is JSON");
  const text::Value& request = *asked->root().find("request");
  const text::Value& response = *told->root().find("response");
  const bool allowed = response.find("allowed")->as_bool();
  fuzz::check(allowed || options.refuse_bypasses, "nothing is refused unasked");
  fuzz::check(allowed || response.find("patch") == nullptr, "what is refused is not changed");
  const text::Value* uid = request.find("uid");
  fuzz::check(uid != nullptr && text::equal(*uid, *response.find("uid")), "the uid is the same");
  if (const text::Value* patch = response.find("patch")) check_patch(request, patch->string());
  return 0;
}
