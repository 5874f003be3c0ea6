#include "app/page/page_access.h"

#include <algorithm>
#include <array>
#include <utility>

#include "kinds/readers.h"
#include "text/json_writer.h"
#include "text/path.h"

namespace berth::app {

// Of this file alone; not unnamed, because questions have members of it.
struct NeededRight {
  const char *group, *resource;
};

namespace {

constexpr std::int64_t kRememberNs = 60'000'000'000;
constexpr std::int64_t kNoNs = 10'000'000'000;
constexpr std::int64_t kOldOneNs = 600'000'000'000;  // a good token is no stranger's for so long
constexpr std::size_t kLongestToken = 16 * 1024;

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

// The members user, uid and groups of an access review, from a TokenReview's status.
std::string caller_of(const text::Value& user) {
  text::JsonWriter out;
  out.object([&] {
    for (const auto& [from, to] : {std::pair("username", "user"), std::pair("uid", "uid"),
                                   std::pair("groups", "groups"), std::pair("extra", "extra")}) {
      if (const text::Value* value = user.find(from)) out.field(to, *value);
    }
  });
  const std::string text = std::move(out).take();
  return text.substr(1, text.size() - 2);
}

// name, ns: empty for all of them.
std::string access_review(const std::string& caller, const NeededRight& right,
                          const char* verb = "list", const std::string& ns = {},
                          const std::string& name = {}) {
  text::JsonWriter out;
  out.object([&] {
    out.field("verb", verb);
    out.field("group", right.group);
    out.field("resource", right.resource);
    if (!ns.empty()) out.field("namespace", ns);
    if (!name.empty()) out.field("name", name);
  });
  return R"({"apiVersion":"authorization.k8s.io/v1","kind":"SubjectAccessReview","spec":{)" +
         caller + R"(,"resourceAttributes":)" + std::move(out).take() + "}}";
}

bool may(const kube::Answer& answer, std::string_view what) {
  const text::Value* value = at(answer.body.root(), "status").find(what);
  return value != nullptr && value->as_bool();
}

}  // namespace

PageAccess::PageAccess(kube::Client& client, MetricsRegistry* metrics)
    : client_(client),
      put_off_(metrics == nullptr
                   ? Counter(nullptr)
                   : metrics
                         ->counter({.name = "berth_page_tokens_put_off_total",
                                    .help = "Tokens that the API server was not asked about, "
                                            "because too many came."})
                         .get()) {}

// The bucket holds kMostAtOnce and fills by kPerSecond.
bool PageAccess::Pace::take(std::int64_t now) {
  constexpr std::int64_t kEach = 1'000'000'000 / kPerSecond;
  filled_at = std::max(filled_at, now - kMostAtOnce * kEach);
  if (filled_at + kEach > now) return false;
  filled_at += kEach;
  return true;
}

void PageAccess::forget_old() {
  const std::int64_t time = now();
  std::erase_if(known_, [&](const auto& e) { return e.second.until + kOldOneNs <= time; });
  std::erase_if(refused_, [&](const auto& e) { return e.second <= time; });
}

void PageAccess::ask(const std::string& token, Answer answer) {
  const auto at = known_.find(token);
  if (at != known_.end() && at->second.answered_until > now()) return answer(at->second.may);
  ask_caller(token, [this, token, reply = std::move(answer)](Result<std::string> caller) {
    if (!caller.ok()) return reply(std::move(caller).error());
    ask_rights(token, *caller, 0, reply);
  });
}

void PageAccess::ask_caller(const std::string& token, CallerKnown known) {
  if (token.size() > kLongestToken) {
    return known(Error(Code::kInvalid, "the token is longer than any"));
  }
  const auto at = known_.find(token);
  if (at != known_.end() && at->second.until > now()) return known(at->second.caller);
  const auto no = refused_.find(token);
  if (no != refused_.end() && no->second > now()) {
    return known(Error(Code::kInvalid, "the cluster does not know this token"));
  }
  const auto same = under_way_.find(token);
  const bool joins = same != under_way_.end();
  const bool room = joins ? same->second.size() < kMaxWaiting
                          : under_way_.size() < kMaxUnderWay &&
                                (at != known_.end() ? old_ones_ : strangers_).take(now());
  if (!room) {
    put_off_.add();
    return known(Error(Code::kUnavailable, "too many tokens come at once; try again in a second"));
  }
  under_way_[token].push_back(std::move(known));
  if (joins) return;
  forget_old();
  review(token);
}

void PageAccess::review(const std::string& token) {
  text::JsonWriter out;
  out.object([&] {
    out.field("apiVersion", token_reviews().api_version());
    out.field("kind", token_reviews().kind);
    out.object("spec", [&] { out.field("token", token); });
  });
  client_.create(
      token_reviews(), "", std::move(out).take(), {}, [this, token](const kube::Answer& answer) {
        if (!answer.ok()) {
          return reviewed(token, answer.error().context("whose token it is cannot be told"));
        }
        const text::Value* user = find(answer.body.root(), "status.user");
        if (may(answer, "authenticated") && user != nullptr) {
          return reviewed(token, caller_of(*user));
        }
        known_.erase(token);
        if (refused_.size() >= kMaxRefused) refused_.erase(refused_.begin());
        refused_[token] = now() + kNoNs;
        reviewed(token, Error(Code::kInvalid, "the cluster does not know this token"));
      });
}

void PageAccess::reviewed(const std::string& token, const Result<std::string>& caller) {
  if (caller.ok()) {
    if (!known_.contains(token) && known_.size() >= kMaxRemembered) {
      known_.erase(std::min_element(known_.begin(), known_.end(), [](const auto& a, const auto& b) {
        return a.second.until < b.second.until;
      }));
    }
    known_[token] = {.caller = *caller, .until = now() + kRememberNs};
  }
  const auto waited = under_way_.extract(token);
  if (waited.empty()) return;
  for (const CallerKnown& known : waited.mapped()) known(caller);
}

void PageAccess::remember_may(const std::string& token, const Status& may, std::int64_t for_ns) {
  const auto at = known_.find(token);
  if (at == known_.end()) return;
  at->second.may = may;
  at->second.answered_until = std::min(now() + for_ns, at->second.until);
}

void PageAccess::ask_rights(const std::string& token, const std::string& caller, std::size_t which,
                            Answer answer) {
  if (which == kNeededRights.size()) {
    remember_may(token, {}, kRememberNs);
    return answer({});
  }
  client_.create(
      access_reviews(), "", access_review(caller, kNeededRights[which]), {},
      [this, token, caller, which, reply = std::move(answer)](const kube::Answer& review) {
        if (!review.ok()) {
          return reply(review.error().context("what the token may see cannot be told"));
        }
        if (!may(review, "allowed")) {
          const Status no =
              Error(Code::kInvalid, std::string("the page needs the right to list ") +
                                        kNeededRights[which].resource + " in all namespaces");
          remember_may(token, no, kNoNs);
          return reply(no);
        }
        ask_rights(token, caller, which + 1, reply);
      });
}

// One after the other: may he get the subject under any of its kinds, then what else he may see.
struct PageAccess::VisibilityQuestion {
  enum class Gives : std::uint8_t { kSubject, kPods, kNodes, kOwnPods, kRules };
  struct Step {
    Gives gives = Gives::kSubject;
    NeededRight right = {};
    const char* verb = "list";
    std::string ns = {}, name = {}, kind = {};
  };
  people::Subject subject;
  std::string caller;
  std::vector<Step> steps;
  std::size_t at = 0;
  WhyRights rights;
  VisibilityAnswer answer;

  // Steps that could add nothing are left out.
  void skip() {
    const auto settled = [this](const Step& step) {
      if (step.gives == Gives::kSubject) return rights.kinds.contains(step.kind);
      return step.gives == Gives::kOwnPods && rights.visibility.pods;
    };
    while (at < steps.size() && settled(steps[at])) ++at;
  }

  void take() {  // the step's answer is yes
    const Step& step = steps[at];
    if (step.gives == Gives::kSubject) rights.kinds.insert(step.kind);
    rights.visibility.pods |= step.gives == Gives::kPods;
    rights.visibility.nodes |= step.gives == Gives::kNodes;
    if (step.gives == Gives::kOwnPods) rights.visibility.namespaces.insert(step.ns);
    if (step.gives == Gives::kRules) rights.visibility.unseen.erase(step.kind);
  }
};

namespace {

struct AskedKind {
  std::string_view kind;
  NeededRight right;
};
constexpr std::array<AskedKind, 7> kAskedKinds = {{
    {"pod", {"", "pods"}},
    {"job", {"batch", "jobs"}},
    {"job", {"batch.volcano.sh", "jobs"}},
    {"workload", {"kueue.x-k8s.io", "workloads"}},
    {"podgroup", {"scheduling.volcano.sh", "podgroups"}},
    {"podgroup", {"scheduling.x-k8s.io", "podgroups"}},
    {"podgroup", {"scheduling.run.ai", "podgroups"}},
}};

// What rules of the API server are read from: those of the subject's namespace, and classes.
struct RuleKind {
  const char* kind;
  NeededRight right;
  bool of_namespace;
};
constexpr std::array<RuleKind, 6> kRuleKinds = {{
    {"ResourceQuota", {"", "resourcequotas"}, true},
    {"LimitRange", {"", "limitranges"}, true},
    {"ServiceAccount", {"", "serviceaccounts"}, true},
    {"PersistentVolumeClaim", {"", "persistentvolumeclaims"}, true},
    {"RuntimeClass", {"node.k8s.io", "runtimeclasses"}, false},
    {"StorageClass", {"storage.k8s.io", "storageclasses"}, false},
}};

Error may_not_get(const people::Subject& subject) {
  const std::string kind = subject.kind.empty() ? "pod" : subject.kind;
  return {Code::kInvalid, "you may not get " + kind + ' ' + subject.ns + '/' + subject.name +
                              "; ask who runs the cluster for a Role that may get " + kind +
                              "s there, and check with: kubectl auth can-i get " + kind + "s -n " +
                              subject.ns};
}

}  // namespace

void PageAccess::ask_visibility(const std::string& token, const people::Subject& subject,
                                VisibilityAnswer answer) {
  using Gives = VisibilityQuestion::Gives;
  auto question = std::make_shared<VisibilityQuestion>();
  question->subject = subject;
  question->answer = std::move(answer);
  for (const AskedKind& asked : kAskedKinds) {
    if (!subject.kind.empty() && subject.kind != asked.kind) continue;
    question->steps.push_back({.gives = Gives::kSubject,
                               .right = asked.right,
                               .verb = "get",
                               .ns = subject.ns,
                               .name = subject.name,
                               .kind = std::string(asked.kind)});
  }
  question->steps.push_back({.gives = Gives::kPods, .right = {"", "pods"}});
  question->steps.push_back({.gives = Gives::kNodes, .right = {"", "nodes"}});
  question->steps.push_back({.gives = Gives::kOwnPods, .right = {"", "pods"}, .ns = subject.ns});
  for (const RuleKind& rule : kRuleKinds) {
    question->rights.visibility.unseen.insert(rule.kind);
    question->steps.push_back({.gives = Gives::kRules,
                               .right = rule.right,
                               .ns = rule.of_namespace ? subject.ns : std::string(),
                               .kind = rule.kind});
  }
  question->rights.visibility.unseen.insert("Namespace");
  question->steps.push_back({.gives = Gives::kRules,
                             .right = {"", "namespaces"},
                             .verb = "get",
                             .ns = subject.ns,
                             .name = subject.ns,
                             .kind = "Namespace"});
  ask_caller(token, [this, question](Result<std::string> caller) {
    if (!caller.ok()) return question->answer(std::move(caller).error());
    question->caller = std::move(*caller);
    ask_next(question);
  });
}

void PageAccess::ask_next(const std::shared_ptr<VisibilityQuestion>& question) {
  question->skip();
  const bool all = question->at == question->steps.size();
  const bool subject_known =
      all || question->steps[question->at].gives != VisibilityQuestion::Gives::kSubject;
  if (subject_known && question->rights.kinds.empty()) {
    return question->answer(may_not_get(question->subject));
  }
  if (all) return question->answer(question->rights);
  const VisibilityQuestion::Step& step = question->steps[question->at];
  client_.create(
      access_reviews(), "",
      access_review(question->caller, step.right, step.verb, step.ns, step.name), {},
      [this, question](const kube::Answer& review) {
        if (!review.ok()) {
          return question->answer(review.error().context("what the token may see cannot be told"));
        }
        if (may(review, "allowed")) question->take();
        ++question->at;
        ask_next(question);
      });
}

}  // namespace berth::app
