#include "kinds/kueue_convert_review.h"

#include <optional>

#include "kinds/kueue_convert.h"
#include "kinds/readers.h"
#include "text/json.h"
#include "text/json_writer.h"
#include "text/path.h"

namespace berth::kinds {

namespace {

using text::Value;

constexpr std::string_view kReviewApi = "apiextensions.k8s.io/v1";
constexpr std::string_view kVersionsHere = "kueue.x-k8s.io/v1beta1 or kueue.x-k8s.io/v1beta2";
// A template of pods may nest as deep as the API server takes it; readers stop at this.
constexpr int kReviewDepth = 1'000;
constexpr std::size_t kMostReviewNodes =
    2'000'000;  // values of real objects have 20 bytes of text, and more

Error wrong_review(std::string_view field, std::string_view found, std::string_view want) {
  return invalid(std::string(field) + ": found " + quoted(found) + ", want " + std::string(want));
}

// "objects[3] (Workload ns/name)"
std::string place_in_review(const Value& object, std::size_t index) {
  std::string out = "objects[" + std::to_string(index) + "]";
  const Value* metadata = object.find("metadata");
  const std::string_view kind = text_at(object, "kind");
  if (kind.empty()) return out;
  out += " (" + quoted(kind);
  if (metadata != nullptr) {
    const std::string_view ns = text_at(*metadata, "namespace");
    out += " " + quoted(std::string(ns) + (ns.empty() ? "" : "/") +
                        std::string(text_at(*metadata, "name")));
  }
  return out + ")";
}

Status convert_one(const Value& object, KueueVersion to, std::string& out) {
  if (!object.is_object()) return wrong_review("object", text::name(object.kind()), "an object");
  if (text_at(object, "kind").empty()) return wrong_review("kind", "", "a kind of kueue.x-k8s.io");
  const std::optional<KueueVersion> from = kueue_version(text_at(object, "apiVersion"));
  if (!from) return wrong_review("apiVersion", text_at(object, "apiVersion"), kVersionsHere);
  out += *from == to ? text::to_json(object) : convert_kueue(object, to);
  if (out.size() > kMostReviewAnswerBytes) {
    return Error(Code::kExhausted, "the answer would have more than " +
                                       std::to_string(kMostReviewAnswerBytes) + " bytes");
  }
  return {};
}

// The converted objects, one after the other with commas.
Result<std::string> convert_all(const Value& request) {
  const std::string_view wanted = text_at(request, "desiredAPIVersion");
  const std::optional<KueueVersion> to = kueue_version(wanted);
  if (!to) return wrong_review("desiredAPIVersion", wanted, kVersionsHere);
  const Value* objects = request.find("objects");
  if (objects == nullptr || !objects->is_array()) {
    return wrong_review("objects", objects == nullptr ? "" : text::name(objects->kind()),
                        "an array");
  }
  std::string out;
  for (std::size_t i = 0; i < objects->size(); ++i) {
    const Value& object = objects->items()[i];
    if (i > 0) out += ',';
    if (Status one = convert_one(object, *to, out); !one.ok()) {
      return std::move(one).error().context(place_in_review(object, i));
    }
  }
  return out;
}

}  // namespace

Result<ConversionAnswer> review_conversion(std::string_view body) {
  text::JsonOptions how;
  how.limits.max_depth = kReviewDepth;
  how.limits.max_bytes = kMostReviewBytes;
  how.limits.max_nodes = kMostReviewNodes;
  BERTH_TRY(const text::Document review, text::parse_json(body, how));
  const Value& root = review.root();
  if (text_at(root, "kind") != "ConversionReview") {
    return wrong_review("kind", text_at(root, "kind"), "ConversionReview");
  }
  if (text_at(root, "apiVersion") != kReviewApi) {
    return wrong_review("apiVersion", text_at(root, "apiVersion"), kReviewApi);
  }
  const Value* request = root.find("request");
  const std::string_view uid = request == nullptr ? "" : text_at(*request, "uid");
  if (uid.empty()) return wrong_review("request.uid", "", "the uid of the request");

  Result<std::string> objects = convert_all(*request);
  text::JsonWriter result;
  result.object([&] {
    result.field("status", objects.ok() ? "Success" : "Failure");
    if (!objects.ok()) result.field("message", objects.error().to_string());
  });

  ConversionAnswer out;
  out.converted = objects.ok();
  if (!objects.ok()) out.why = objects.error().to_string();
  out.body = "{\"kind\":\"ConversionReview\",\"apiVersion\":\"" + std::string(kReviewApi) +
             "\",\"response\":{\"uid\":";
  text::append_json_string(out.body, uid);
  out.body += ",\"result\":" + std::move(result).take();
  if (objects.ok()) out.body += ",\"convertedObjects\":[" + *objects + "]";
  out.body += "}}";
  return out;
}

}  // namespace berth::kinds
