// What the client reads of servers, plugins and files. The first byte says which: lines of a watch,
// kubeconfig, the answer of a credential plugin, an answer of the API server, its discovery.
#include <algorithm>
#include <string>

#include "base/utf8.h"
#include "edge/kube/answer.h"
#include "edge/kube/config.h"
#include "edge/kube/credentials.h"
#include "edge/kube/discovery.h"
#include "edge/kube/watch_line.h"
#include "fuzz.h"
#include "text/escape.h"
#include "text/json.h"

namespace {

using namespace berth;

constexpr std::int64_t kNow = 1'800'000'000'000'000'000;

// A blank before it sends a line past the quick path: both must say the same.
void check_line(std::string_view input) {
  if (input.find('\n') != std::string_view::npos) return;
  const auto quick = kube::read_watch_line(input);
  const auto slow = kube::read_watch_line(" " + std::string(input));
  if (slow.ok()) fuzz::check(quick.ok(), "what can be read is read");
  if (!quick.ok()) return;
  fuzz::check(quick->object.root().is_object(), "an event is about an object");
  if (!slow.ok()) return;  // one level deeper it may be too deep
  fuzz::check(quick->type == slow->type, "the type is the same");
  fuzz::check(text::equal(quick->object.root(), slow->object.root()), "the object is the same");
}

void check_headers(const kube::Identity& identity) {
  const auto one_line = [](const std::string& text) {
    for (const char c : text) {
      if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) return false;
    }
    return true;
  };
  fuzz::check(one_line(identity.authorization), "a header is one line");
  for (const std::string& line : identity.extra_headers) {
    fuzz::check(one_line(line), "each header is one line");
  }
}

void check_call(const kube::Credentials& credentials) {
  const auto call = credentials.plugin_call({});
  if (!call.ok()) return;
  for (const auto* words : {&call->argv, &call->envp}) {
    for (const std::string& word : *words) {
      fuzz::check(word.find('\0') == std::string::npos, "what is passed is passed whole");
    }
  }
}

void check_config(std::string_view input) {
  const auto read = [&](const std::string& path) -> Result<std::string> {
    if (path == "/home/config") return std::string(input);
    return Error(Code::kNotFound, path + ": no such file");
  };
  const kube::ConfigChoice choice{.kubeconfig = "/home/config"};
  const kube::Environment environment = {{"PATH", "/bin"}};
  const auto names = kube::config_names(choice, environment, read);
  const auto config = kube::find_config(choice, environment, read);
  const auto again = kube::find_config(choice, environment, read);
  fuzz::check(config.ok() == again.ok(), "read twice, the same");
  if (!config.ok()) {
    fuzz::check(config.error().to_string() == again.error().to_string(), "refused alike");
    return;
  }
  fuzz::check(config->server == again->server && config->token == again->token, "the same values");
  fuzz::check(config->server.starts_with("https://") || config->server.starts_with("http://"),
              "the server is a URL");
  fuzz::check(!config->server.ends_with('/'), "without a slash at its end");
  fuzz::check(!names.contexts.empty() || !names.clusters.empty(), "something was named");
  kube::Credentials credentials(*config, environment, read);
  const kube::Credentials::Now now{1, kNow};
  if (credentials.needs_plugin(now)) return check_call(credentials);
  if (const auto identity = credentials.identity(now); identity.ok()) check_headers(*identity);
}

void check_plugin(std::string_view input) {
  kube::Config config;
  config.server = "https://s";
  config.exec = kube::ExecPlugin{.api_version = "client.authentication.k8s.io/v1", .command = "p"};
  kube::Credentials credentials(config, {}, [](const std::string& path) -> Result<std::string> {
    return Error(Code::kNotFound, path);
  });
  const kube::Credentials::Now now{1, kNow};
  const Status failed = credentials.plugin_done(now, 1, "", std::string(input));
  fuzz::check(text::terminal_safe(failed.error().to_string()) == failed.error().to_string(),
              "what it complained of is safe to show");
  if (!credentials.plugin_done(now, 0, std::string(input), "").ok()) {
    return fuzz::check(credentials.needs_plugin(now), "a bad answer is none");
  }
  if (credentials.needs_plugin(now)) return;  // too old already
  if (const auto identity = credentials.identity(now); identity.ok()) {
    fuzz::check(!identity->authorization.empty() || !identity->cert_pem.empty(), "somebody");
    check_headers(*identity);
  }
}

void check_answer(std::string_view input) {
  if (input.empty()) return;
  text::HttpResponse response;
  response.status = 100 + static_cast<unsigned char>(input.front()) * 2;
  input.remove_prefix(1);
  const std::size_t split = std::min(input.find('\n'), input.size());
  response.headers = {{"Retry-After", std::string(input.substr(0, split))},
                      {"Warning", std::string(input.substr(0, split))}};
  response.body = input.substr(std::min(split + 1, input.size()));
  const kube::Answer answer = kube::read_answer(response);
  fuzz::check(answer.retry_after_ns >= 0 && answer.retry_after_ns <= 3'600'000'000'000,
              "a wait is bounded");
  fuzz::check(answer.ok() || !answer.error().to_string().empty(), "an error says something");
  for (const std::string* shown : {&answer.reason, &answer.message}) {
    fuzz::check(is_utf8(*shown) && text::terminal_safe(*shown) == *shown, "safe to show");
  }
  kube::too_large_version(answer.body.root());
}

void check_discovery(std::string_view input) {
  const auto document = text::parse_json(input);
  if (!document.ok()) return;
  kube::ServerResources groups, list;
  kube::read_group_discovery(document->root(), groups);
  kube::read_resource_list(document->root(), list);
  for (const auto* found : {&groups, &list}) {
    for (const kube::FoundResource& one : found->all()) {
      fuzz::check(found->has(one.resource), "what was found is there");
    }
  }
}

}  // namespace

BERTH_FUZZ_TARGET(kube_text) {
  if (size == 0) return 0;
  const std::string_view input = fuzz::text_of(data + 1, size - 1);
  switch (data[0] % 6) {
    case 0:
      check_line(input);
      break;
    case 1:
      check_config(input);
      break;
    case 2:
      check_plugin(input);
      break;
    case 3:
      check_answer(input);
      break;
    case 4:
      check_discovery(input);
      break;
    default:
      if (const auto wait = kube::parse_request_timeout(input); wait.ok()) {
        fuzz::check(*wait >= 0, "no wait is negative");
      }
  }
  return 0;
}
