#include "app/page_access.h"

#include <array>

#include "objects/readers.h"
#include "text/json_writer.h"

namespace berth::app {

namespace {

constexpr std::int64_t kRememberNs = 60'000'000'000;
constexpr std::size_t kLongestToken = 16 * 1024;

struct NeededRight {
  const char *group, *resource;
};
constexpr std::array<NeededRight, 2> kNeededRights = {{{"", "pods"}, {"berth.dev", "gpunodes"}}};

const kube::Resource& token_reviews() {
  static const kube::Resource resource = {"authentication.k8s.io", "v1", "tokenreviews",
                                          "TokenReview", false};
  return resource;
}

const kube::Resource& access_reviews() {
  static const kube::Resource resource = {"authorization.k8s.io", "v1", "subjectaccessreviews",
                                          "SubjectAccessReview", false};
  return resource;
}

void begin_review(text::JsonWriter& out, const kube::Resource& review) {
  out.begin_object();
  out.field("apiVersion", review.api_version());
  out.field("kind", review.kind);
  out.key("spec");
  out.begin_object();
}

// The members user, uid and groups of an access review, from a TokenReview's status.
std::string caller_of(const text::Value& user) {
  text::JsonWriter out;
  out.begin_object();
  for (const auto& [from, to] : {std::pair("username", "user"), std::pair("uid", "uid"),
                                 std::pair("groups", "groups"), std::pair("extra", "extra")}) {
    if (const text::Value* value = user.find(from)) out.field(to, *value);
  }
  out.end_object();
  const std::string text = std::move(out).take();
  return text.substr(1, text.size() - 2);
}

std::string access_review(const std::string& caller, const NeededRight& right) {
  text::JsonWriter out;
  out.begin_object();
  out.field("verb", "list");
  out.field("group", right.group);
  out.field("resource", right.resource);
  out.end_object();
  return R"({"apiVersion":"authorization.k8s.io/v1","kind":"SubjectAccessReview","spec":{)" +
         caller + R"(,"resourceAttributes":)" + std::move(out).take() + "}}";
}

bool says(const kube::Answer& answer, std::string_view what) {
  const text::Value* value = objects::find_in(answer.body.root(), {"status", what});
  return value != nullptr && value->as_bool();
}

}  // namespace

void PageAccess::ask(const std::string& token, Answer answer) {
  const std::int64_t now = client_.loop().monotonic().ticks_ns();
  std::erase_if(until_, [&](const auto& entry) { return entry.second <= now; });
  if (until_.contains(token)) return answer({});
  if (token.size() > kLongestToken) {
    return answer(Error(Code::kInvalid, "the token is longer than any"));
  }
  text::JsonWriter out;
  begin_review(out, token_reviews());
  out.field("token", token);
  out.end_object();
  out.end_object();
  client_.create(token_reviews(), "", std::move(out).take(), {},
                 [this, token, reply = std::move(answer)](const kube::Answer& review) {
                   if (!review.ok()) {
                     return reply(review.error().context("whose token it is cannot be told"));
                   }
                   const text::Value* user =
                       objects::find_in(review.body.root(), {"status", "user"});
                   if (!says(review, "authenticated") || user == nullptr) {
                     return reply(Error(Code::kInvalid, "the cluster does not know this token"));
                   }
                   ask_rights(token, caller_of(*user), 0, reply);
                 });
}

void PageAccess::ask_rights(const std::string& token, const std::string& caller, std::size_t which,
                            Answer answer) {
  if (which == kNeededRights.size()) {
    if (until_.size() < kMaxRemembered) {
      until_[token] = client_.loop().monotonic().ticks_ns() + kRememberNs;
    }
    return answer({});
  }
  client_.create(
      access_reviews(), "", access_review(caller, kNeededRights[which]), {},
      [this, token, caller, which, reply = std::move(answer)](const kube::Answer& review) {
        if (!review.ok()) {
          return reply(review.error().context("what the token may see cannot be told"));
        }
        if (!says(review, "allowed")) {
          return reply(Error(Code::kInvalid, std::string("the page needs the right to list ") +
                                                 kNeededRights[which].resource +
                                                 " in all namespaces"));
        }
        ask_rights(token, caller, which + 1, reply);
      });
}

}  // namespace berth::app
