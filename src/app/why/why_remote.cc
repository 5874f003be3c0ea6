#include "app/why/why_remote.h"

#include <fmt/format.h>

#include <charconv>

#include "base/run_loop.h"
#include "edge/kube/curl_transport.h"
#include "text/escape.h"
#include "text/http.h"

namespace berth::app {

namespace {

constexpr std::int64_t kRemoteTimeoutNs = 20'000'000'000;
constexpr std::size_t kLongestAnswer = 8 * 1024 * 1024;

bool on_this_machine(std::string_view url) {
  for (const std::string_view host : {"http://127.0.0.1", "http://localhost", "http://[::1]"}) {
    if (!url.starts_with(host)) continue;
    const std::string_view rest = url.substr(host.size());
    if (rest.empty() || rest.front() == ':' || rest.front() == '/') return true;
  }
  return false;
}

// The token as text; those of plugins stay with the transport.
std::string token_of(const kube::Config& config) {
  if (!config.token_file.empty()) {
    Result<std::string> read = kube::read_small_file(config.token_file);
    if (read.ok()) {
      while (read->ends_with('\n') || read->ends_with(' ')) read->pop_back();
      return *read;
    }
  }
  return config.token;
}

kube::Config at_url(const kube::Config& config, const ControllerPlace& place) {
  kube::Config out;
  out.server = place.url;
  out.ca_file = place.ca_file;
  if (place.url.starts_with("http://")) return out;  // this machine: nothing is asked
  out.token = config.token;
  out.token_file = config.token_file;
  out.exec = config.exec;
  return out;
}

std::string target_of(const ControllerPlace& place, const RemoteQuestion& question) {
  const people::Subject& subject = question.subject;
  std::string out;
  if (place.url.empty()) {
    out = fmt::format("/api/v1/namespaces/{}/services/https:{}:{}/proxy", place.ns, place.service,
                      place.port);
  }
  return out + fmt::format("/api/why?kind={}&namespace={}&name={}&output={}{}",
                           text::percent_encode(subject.kind), text::percent_encode(subject.ns),
                           text::percent_encode(subject.name),
                           text::percent_encode(question.output),
                           question.holders ? "&holders=all" : "");
}

RemoteWhy outcome_of(const text::HttpResponse& answer) {
  const auto code = text::find_header(answer.headers, "Berth-Exit-Code");
  if (answer.status == 200 && code) {
    RemoteWhy out{.how = RemoteWhy::How::kAnswered, .text = answer.body};
    const auto [stop, failed] =
        std::from_chars(code->data(), code->data() + code->size(), out.code);
    if (failed == std::errc() && stop == code->data() + code->size()) return out;
  }
  std::string said = answer.body.substr(0, 500);
  while (said.ends_with('\n')) said.pop_back();
  said = text::terminal_safe(said);
  const bool ours = text::find_header(answer.headers, "Berth-Answer").has_value();
  if (ours && answer.status == 404) return {.how = RemoteWhy::How::kUnknown, .text = said};
  if (ours && (answer.status == 400 || answer.status == 403)) {
    return {.how = RemoteWhy::How::kRefused, .text = said};
  }
  if (ours) return {.text = said};
  return {.text = fmt::format("{} {}", answer.status, text::http_reason(answer.status))};
}

}  // namespace

Result<ControllerPlace> parse_controller_place(std::string_view text) {
  ControllerPlace out;
  if (text.empty()) return out;
  if (text.starts_with("https://") || on_this_machine(text)) {
    out.url = text;
    while (out.url.ends_with('/')) out.url.pop_back();
    return out;
  }
  const Error wrong = invalid("found \"" + text::terminal_safe(std::string(text)) +
                              "\", want https://HOST:PORT or NAMESPACE/SERVICE[:PORT]");
  const std::size_t slash = text.find('/');
  if (slash == std::string_view::npos || text.find("://") != std::string_view::npos) return wrong;
  const std::size_t colon = text.find(':', slash);
  out.ns = text.substr(0, slash);
  out.service = text.substr(slash + 1, colon == std::string_view::npos ? colon : colon - slash - 1);
  if (colon != std::string_view::npos) out.port = text.substr(colon + 1);
  for (const std::string& part : {out.ns, out.service, out.port}) {
    if (part.empty() ||
        part.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789-.") != std::string::npos) {
      return wrong;
    }
  }
  return out;
}

RemoteWhy ask_controller(const kube::Config& config, const ControllerPlace& place,
                         const RemoteQuestion& question, Terminal& terminal) {
  RunLoop loop(terminal.monotonic, terminal.wall);
  kube::CurlTransport transport(loop, place.url.empty() ? config : at_url(config, place),
                                terminal.environment, {.max_answer_bytes = kLongestAnswer});
  text::HttpRequest request;
  request.method = "GET";
  request.target = target_of(place, question);
  request.headers = {{"Accept", "*/*"}, {"User-Agent", "berth-cli"}};
  const std::string token = token_of(config);
  if (place.url.empty() && !token.empty() && config.server.starts_with("https://")) {
    request.headers.push_back({"Berth-Token", token});
  }
  RemoteWhy out;
  transport.send(std::move(request), {.timeout_ns = kRemoteTimeoutNs},
                 [&](const text::HttpResponse& answer, const kube::TransportError* error) {
                   if (error != nullptr) {
                     out.text = text::terminal_safe(error->message);
                   } else {
                     out = outcome_of(answer);
                   }
                   loop.stop();
                 });
  loop.run();
  return out;
}

}  // namespace berth::app
