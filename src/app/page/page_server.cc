#include "app/page/page_server.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <deque>
#include <thread>

#include "app/page/page_files.h"
#include "app/shell_word.h"
#include "app/views/sheet.h"
#include "base/bounded_queue.h"
#include "edge/serve/server_kinds.h"
#include "people/why/visibility.h"
#include "people/why/why.h"
#include "text/http.h"
#include "text/rfc3339.h"

namespace berth::app {

namespace {

constexpr std::int64_t kPageSecond = 1'000'000'000;
constexpr std::int64_t kLongestWait = 20 * kPageSecond;
constexpr std::int64_t kFresh = 2 * kPageSecond;      // older facts are gathered anew first
constexpr std::size_t kMostWaiting = 256;             // requests for a page
constexpr std::size_t kMostJobs = 16;                 // of the worker
constexpr std::int64_t kDeskIdle = 60 * kPageSecond;  // then what why looked at is dropped
constexpr const char* kContentPolicy =
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
    "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

text::HttpResponse answer_of(int status, std::string_view type, std::string body) {
  text::HttpResponse out;
  out.status = status;
  out.headers = {{"Content-Type", std::string(type)},
                 {"Content-Security-Policy", kContentPolicy},
                 {"X-Content-Type-Options", "nosniff"},
                 {"Referrer-Policy", "no-referrer"},
                 {"Cross-Origin-Resource-Policy", "same-origin"},
                 {"Cache-Control", "no-store"}};
  out.body = std::move(body);
  return out;
}

text::HttpResponse refusal(int status, std::string_view why) {
  return answer_of(status, "text/plain; charset=utf-8", std::string(why) + '\n');
}

text::HttpResponse json_answer(std::string body) {
  return answer_of(200, "application/json", std::move(body));
}

// A name that only this machine has: "127.0.0.1:8080", "localhost", "[::1]:80".
bool names_this_machine(std::string_view host) {
  const std::size_t bracket = host.find(']');
  const std::size_t colon = host.find(':', bracket == std::string_view::npos ? 0 : bracket);
  const std::string_view name = host.substr(0, colon);
  return name == "127.0.0.1" || name == "localhost" || name == "[::1]";
}

// As the explainer names it; anything of that name where it has no word for the kind.
std::string asked_kind(std::string kind) {
  for (char& c : kind) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  const bool known = kind == "pod" || kind == "job" || kind == "workload" || kind == "podgroup";
  return known ? kind : std::string();
}

text::HttpResponse why_refusal(int status, std::string_view why) {
  text::HttpResponse out = refusal(status, why);
  out.headers.push_back({"Berth-Answer", "refused"});
  return out;
}

// Somebody may not see it, or it cannot be told now whether he may.
text::HttpResponse denial(const Error& why) {
  return why_refusal(why.code() == Code::kUnavailable ? 503 : 403, why.to_string());
}

std::string bearer_of(const text::HttpRequest& request) {
  constexpr std::string_view kBearer = "Bearer ";
  if (const auto own = text::find_header(request.headers, "Berth-Token")) return std::string(*own);
  const auto header = text::find_header(request.headers, "Authorization");
  if (!header || !header->starts_with(kBearer)) return {};
  return std::string(header->substr(kBearer.size()));
}

struct WhyQuestion {
  people::Subject subject;
  std::string output = "json";
  bool holders = false;  // all of them
};

Result<WhyQuestion> question_of(const text::HttpTarget& target) {
  constexpr std::size_t kLongestName = 253;
  WhyQuestion out;
  people::Subject& subject = out.subject;
  for (const auto& [key, value] :
       {std::pair("kind", &subject.kind), std::pair("namespace", &subject.ns),
        std::pair("name", &subject.name), std::pair("output", &out.output)}) {
    if (const auto given = target.get(key)) *value = std::string(*given);
    if (value->size() > kLongestName) {
      return invalid(fmt::format("{}: longer than {}", key, kLongestName));
    }
  }
  if (subject.name.empty()) return invalid("name: want one");
  if (out.output != "json" && out.output != "table" && out.output != "yaml") {
    return invalid("output: want json, table or yaml");
  }
  if (const auto all = target.get("holders")) {
    if (*all != "all") return invalid("holders: want all, or leave it out");
    out.holders = true;
  }
  subject.kind = asked_kind(subject.kind);
  return out;
}

text::HttpResponse why_answer(const people::Answer& answer, const WhyQuestion& question) {
  const std::string& output = question.output;
  text::HttpResponse out =
      output == "table"
          ? answer_of(200, "text/plain; charset=utf-8", why_table(answer, question.holders))
      : output == "yaml" ? answer_of(200, "application/yaml", yaml_of(why_json(answer)))
                         : json_answer(why_json(answer));
  out.headers.push_back({"Berth-Exit-Code", std::to_string(people::exit_code(answer.standing))});
  return out;
}

}  // namespace

struct PageServer::State : std::enable_shared_from_this<State> {
  State(Loop& on, PageOptions with, PageSource from)
      : loop(on), options(std::move(with)), source(std::move(from)), jobs(kMostJobs) {
    worker = std::thread([this] {
      while (auto job = jobs.pop()) (*job)();
    });
  }

  ~State() {
    jobs.close();
    worker.join();
  }

  struct Waiter {
    std::shared_ptr<serve::Exchange> exchange;
    std::uint64_t after = 0;
    std::int64_t until = 0;
  };

  Loop& loop;
  PageOptions options;
  PageSource source;
  BoundedQueue<std::function<void()>> jobs;
  std::thread worker;
  std::unique_ptr<serve::HttpServer> server;

  std::deque<Waiter> waiters;
  std::uint64_t revision = 0;
  people::PageMembers members;
  std::int64_t made_at = INT64_MIN / 2, took = 0;
  bool making = false;
  Loop::Timer timer = 0;

  WhyService desk;                             // the worker's
  std::optional<std::uint64_t> desk_revision;  // of what it was given last
  std::int64_t asked_at = 0;
  Loop::Timer desk_timer = 0;

  std::int64_t now() const { return loop.monotonic().ticks_ns(); }

  // On the server's thread.
  void handle(const text::HttpRequest& request, std::shared_ptr<serve::Exchange> exchange) {
    if (request.method != "GET" && request.method != "HEAD") {
      return exchange->respond(refusal(405, "the page is only read: GET"));
    }
    const auto host = text::find_header(request.headers, "Host");
    if (!options.allow && !(host && names_this_machine(*host))) {
      return exchange->respond(refusal(403, "open it as 127.0.0.1 or localhost"));
    }
    const std::string path = request.target.substr(0, request.target.find('?'));
    if (const PageFile* file = find_page_file(path == "/index.html" ? "/" : path)) {
      return exchange->respond(answer_of(200, file->type, std::string(file->bytes)));
    }
    const Result<text::HttpTarget> target = text::parse_http_target(request.target);
    if (!target.ok()) return exchange->respond(refusal(400, target.error().to_string()));
    if (path != "/api/page" && path != "/api/why") {
      return exchange->respond(refusal(404, "there are /, /api/page and /api/why"));
    }
    loop.post([self = weak_from_this(), asked = *target, token = bearer_of(request),
               to = std::move(exchange)] {
      if (const auto state = self.lock()) state->admit(asked, token, to);
    });
  }

  // On the loop from here on.
  void admit(const text::HttpTarget& target, const std::string& token,
             const std::shared_ptr<serve::Exchange>& exchange) {
    if (!options.allow) return dispatch(target, exchange);
    if (token.empty()) return exchange->respond(why_refusal(401, "a bearer token is needed"));
    if (target.path.back() == "why" && options.allow_why) return admit_why(target, token, exchange);
    options.allow(token, [self = weak_from_this(), target, exchange](Status allowed) {
      if (!allowed.ok()) return exchange->respond(denial(allowed.error()));
      if (const auto state = self.lock()) state->dispatch(target, exchange);
    });
  }

  void dispatch(const text::HttpTarget& target, const std::shared_ptr<serve::Exchange>& exchange) {
    if (target.path.back() == "why") {
      const Result<WhyQuestion> question = question_of(target);
      if (!question.ok()) return exchange->respond(why_refusal(400, question.error().to_string()));
      return why(*question, std::nullopt, exchange);
    }
    std::uint64_t after = 0;
    if (const auto text = target.get("after")) {
      const auto [stop, code] = std::from_chars(text->data(), text->data() + text->size(), after);
      if (code != std::errc() || stop != text->data() + text->size()) {
        return exchange->respond(refusal(400, "after: want the revision of a page, a number"));
      }
    }
    if (waiters.size() >= kMostWaiting) {
      return exchange->respond(refusal(503, "too many pages are open; try again"));
    }
    waiters.push_back({exchange, after, now() + kLongestWait});
    if (revision > 0 && now() - made_at < kFresh) answer_waiters();
    if (!waiters.empty()) make();
  }

  void admit_why(const text::HttpTarget& target, const std::string& token,
                 const std::shared_ptr<serve::Exchange>& exchange);
  void why(const WhyQuestion& question, const std::optional<PageAccess::WhyRights>& rights,
           const std::shared_ptr<serve::Exchange>& exchange);
  void why_with(const WhyQuestion& question, const std::optional<PageAccess::WhyRights>& rights,
                const FetchedObjects& objects, const std::shared_ptr<serve::Exchange>& exchange);
  void clear_desk_later();
  void clear_desk();

  // Makes the page when it is time, and comes back while somebody waits.
  void make() {
    if (making || timer != 0) return;
    const std::int64_t due = made_at + std::max(kPageSecond, 4 * took);
    if (now() < due) {
      timer = loop.after(due - now(), [self = weak_from_this()] {
        if (const auto state = self.lock()) {
          state->timer = 0;
          state->make();
        }
      });
      return;
    }
    making = true;
    const std::int64_t begin = now();
    const bool taken = jobs.try_push(
        [self = weak_from_this(), inputs = std::make_shared<kinds::Inputs>(source.inputs()),
         facts = std::make_shared<people::PageFacts>(source.facts()), wall = loop.wall().now_ns(),
         policy = options.policy, begin, &on = loop] {
          people::PlanOptions how;
          how.flags = policy;
          how.now_ns = wall;
          people::PageMembers made =
              people::page_members(*inputs, people::make_plan(*inputs, how), *facts, wall);
          on.post([self, begin, text = std::move(made)]() mutable {
            if (const auto state = self.lock()) state->take(std::move(text), begin);
          });
        });
    if (!taken) {
      making = false;
      made_at = now();
    }
  }

  void take(people::PageMembers made, std::int64_t begin) {
    making = false;
    made_at = now();
    took = made_at - begin;
    if (made.facts != members.facts) ++revision;
    members = std::move(made);
    answer_waiters();
    if (!waiters.empty()) make();
  }

  void answer_waiters() {
    std::deque<Waiter> still;
    std::string body;
    for (Waiter& waiter : waiters) {
      if (waiter.exchange->gone()) continue;
      if (waiter.after == revision && now() < waiter.until) {
        still.push_back(std::move(waiter));
        continue;
      }
      if (body.empty()) {
        body = fmt::format(R"({{"version":"berth.dev/page/v1","revision":{},"time":"{}",{},{}}})",
                           revision, text::format_rfc3339(loop.wall().now_ns()), members.facts,
                           members.counts);
      }
      waiter.exchange->respond(json_answer(body));
    }
    waiters = std::move(still);
  }
};

void PageServer::State::admit_why(const text::HttpTarget& target, const std::string& token,
                                  const std::shared_ptr<serve::Exchange>& exchange) {
  const Result<WhyQuestion> question = question_of(target);
  if (!question.ok()) return exchange->respond(why_refusal(400, question.error().to_string()));
  if (question->subject.ns.empty()) {
    return exchange->respond(why_refusal(400, "namespace: want one"));
  }
  options.allow_why(token, question->subject,
                    [self = weak_from_this(), asked = *question,
                     exchange](const Result<PageAccess::WhyRights>& rights) {
                      if (!rights.ok()) return exchange->respond(denial(rights.error()));
                      if (const auto state = self.lock()) state->why(asked, *rights, exchange);
                    });
}

void PageServer::State::why(const WhyQuestion& question,
                            const std::optional<PageAccess::WhyRights>& rights,
                            const std::shared_ptr<serve::Exchange>& exchange) {
  if (!source.objects || question.subject.ns.empty()) {
    return why_with(question, rights, nullptr, exchange);
  }
  source.objects(question.subject.ns, [self = weak_from_this(), question, rights,
                                       exchange](const FetchedObjects& objects) {
    if (const auto state = self.lock()) {
      state->why_with(question, rights, objects, exchange);
    }
  });
}

// The answer is worked out beside the loop, on a copy; a second one waits for the first.
void PageServer::State::why_with(const WhyQuestion& question,
                                 const std::optional<PageAccess::WhyRights>& rights,
                                 const FetchedObjects& objects,
                                 const std::shared_ptr<serve::Exchange>& exchange) {
  const people::Subject& subject = question.subject;
  const std::uint64_t now_revision = source.revision();
  WhyService::Question asked;
  asked.subject = subject;
  asked.plan.flags = options.policy;
  asked.plan.now_ns = loop.wall().now_ns();
  asked.objects = objects;
  asked.decided = source.decided();
  asked.holders = question.holders;
  asked.replay = options.decision_inputs.empty() || asked.decided.id.empty()
                     ? fmt::format("berth why {}{}{}/{}", subject.kind,
                                   subject.kind.empty() ? "" : " ", subject.ns, subject.name)
                     : fmt::format("berth replay {} --at {}", shell_word(options.decision_inputs),
                                   asked.decided.id);
  if (desk_revision != now_revision) asked.cluster = source.copy();
  // The worker ends before we do.
  const bool taken = jobs.try_push([this, asked, rights, exchange, question] {
    Result<WhyService::Answered> found = desk.answer(asked);
    if (!found.ok()) return exchange->respond(why_refusal(404, found.error().to_string()));
    if (rights) {
      if (!rights->kinds.contains(asked_kind(found->answer.kind))) {
        return exchange->respond(why_refusal(403, "you may not get what has that name"));
      }
      people::summarise(*found->inputs, rights->visibility, found->answer);
    }
    exchange->respond(why_answer(found->answer, question));
  });
  if (!taken) return exchange->respond(why_refusal(503, "too many questions at once; try again"));
  desk_revision = now_revision;
  asked_at = now();
  clear_desk_later();
}

// What was looked at last is worth its memory while questions come.
void PageServer::State::clear_desk_later() {
  if (desk_timer != 0) return;
  const std::int64_t wait = std::max(kPageSecond, asked_at + kDeskIdle - now());
  desk_timer = loop.after(wait, [self = weak_from_this()] {
    if (const auto state = self.lock()) state->clear_desk();
  });
}

void PageServer::State::clear_desk() {
  desk_timer = 0;
  const bool idle = now() - asked_at >= kDeskIdle;
  if (!idle || !jobs.try_push([this] { desk.forget(); })) return clear_desk_later();
  desk_revision.reset();
}

PageServer::PageServer(std::shared_ptr<State> state) : state_(std::move(state)) {}
PageServer::~PageServer() { state_->server.reset(); }
std::uint16_t PageServer::port() const { return state_->server->port(); }

void PageServer::answer_why(const std::string& target,
                            const std::shared_ptr<serve::Exchange>& exchange) {
  const Result<text::HttpTarget> parsed = text::parse_http_target(target);
  const Result<WhyQuestion> question =
      parsed.ok() ? question_of(*parsed) : Result<WhyQuestion>(parsed.error());
  if (!question.ok()) return exchange->respond(why_refusal(400, question.error().to_string()));
  state_->why(*question, std::nullopt, exchange);
}

Result<std::unique_ptr<PageServer>> PageServer::start(Loop& loop, PageOptions options,
                                                      PageSource source, MetricsRegistry& metrics) {
  serve::HttpServerOptions http = serve::page_server();
  http.address = options.address;
  http.port = options.port;
  http.tls = options.tls;
  auto state = std::make_shared<State>(loop, std::move(options), std::move(source));
  BERTH_TRY(state->server,
            serve::HttpServer::start(
                http,
                [self = std::weak_ptr<State>(state)](const text::HttpRequest& request,
                                                     std::shared_ptr<serve::Exchange> exchange) {
                  if (const auto alive = self.lock()) {
                    alive->handle(request, std::move(exchange));
                  }
                },
                &metrics));
  return std::unique_ptr<PageServer>(new PageServer(std::move(state)));
}

}  // namespace berth::app
