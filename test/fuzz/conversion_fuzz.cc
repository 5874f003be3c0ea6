// ConversionReviews of Kueue's kinds: whatever the bytes, the answer is JSON with the same uid and
// either all objects or none, and what was converted settles.
#include <string>

#include "fuzz.h"
#include "kinds/kueue_convert.h"
#include "kinds/kueue_convert_review.h"
#include "text/json.h"

namespace {

using namespace berth;

void check_converted(const text::Value& object) {
  if (!object.is_object()) return;
  const auto turned = [](const text::Value& from, kinds::KueueVersion to) {
    auto read = text::parse_json(kinds::convert_kueue(from, to), {.limits = {.max_depth = 1'000}});
    fuzz::check(read.ok(), "a converted object is JSON");
    return std::move(*read);
  };
  const text::Document up = turned(object, kinds::KueueVersion::kV1beta2);
  const text::Document down = turned(up.root(), kinds::KueueVersion::kV1beta1);
  const text::Document again = turned(down.root(), kinds::KueueVersion::kV1beta2);
  const text::Document settled = turned(again.root(), kinds::KueueVersion::kV1beta1);
  fuzz::check(text::equal(down.root(), settled.root()), "a second round changes nothing");
}

}  // namespace

BERTH_FUZZ_TARGET(conversion) {
  const std::string_view body = fuzz::text_of(data, size);
  const auto answer = kinds::review_conversion(body);
  if (!answer.ok()) return 0;
  const auto asked = text::parse_json(body, {.limits = {.max_depth = 1'000}});
  const auto told = text::parse_json(answer->body, {.limits = {.max_depth = 1'000}});
  fuzz::check(asked.ok() && told.ok(), "the answer is JSON");
  const text::Value& request = *asked->root().find("request");
  const text::Value& response = *told->root().find("response");
  fuzz::check(text::equal(*request.find("uid"), *response.find("uid")), "the uid is the same");
  const text::Value* converted = response.find("convertedObjects");
  fuzz::check((converted != nullptr) == answer->converted, "all objects or none");
  fuzz::check(answer->converted == answer->why.empty(), "a failure says why");
  if (converted != nullptr) {
    fuzz::check(converted->size() == request.find("objects")->size(), "one for each");
    for (const text::Value& object : request.find("objects")->items()) check_converted(object);
  }
  return 0;
}
