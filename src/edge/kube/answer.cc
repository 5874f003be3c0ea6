#include "edge/kube/answer.h"

#include <algorithm>
#include <charconv>

#include "text/escape.h"
#include "text/json.h"
#include "text/path.h"

namespace berth::kube {
namespace {

constexpr std::size_t kMaxShown = 1'000;  // bytes of a foreign message
constexpr std::int64_t kSecond = 1'000'000'000;
constexpr std::int64_t kMaxRetryAfterSeconds = 3'600;

std::string shown(std::string_view foreign) {
  while (!foreign.empty() && (foreign.back() == '\n' || foreign.back() == '\r')) {
    foreign.remove_suffix(1);
  }
  if (foreign.size() <= kMaxShown) return text::terminal_safe(foreign);
  return text::terminal_safe(foreign.substr(0, kMaxShown)) + "...";
}

// Warning: 299 - "text"
std::string warning_text(std::string_view header) {
  std::size_t open = header.find('"');
  std::size_t close = header.rfind('"');
  if (open == std::string_view::npos || close <= open) return shown(header);
  return shown(header.substr(open + 1, close - open - 1));
}

bool is_json(const text::HttpHeaders& headers) {
  auto type = text::find_header(headers, "Content-Type");
  return !type || type->find("json") != std::string_view::npos;
}

void read_body(const text::HttpResponse& response, Answer& answer) {
  if (response.body.empty()) return;
  if (!is_json(response.headers)) {
    answer.message = shown(response.body);
    return;
  }
  auto parsed = text::parse_json(response.body);
  if (parsed.ok()) {
    if (!answer.ok()) {
      Answer status = read_status(parsed->root());
      answer.reason = std::move(status.reason);
      answer.message = std::move(status.message);
      answer.retry_after_ns = std::max(answer.retry_after_ns, status.retry_after_ns);
    }
    answer.body = std::move(parsed).value();
    return;
  }
  if (!answer.ok()) {
    answer.message = shown(response.body);
    return;
  }
  answer.status = 0;
  answer.maybe_carried_out = true;
  answer.message = "the server's answer cannot be read: " + parsed.error().to_string();
}

}  // namespace

std::int64_t retry_after_of(const text::HttpHeaders& headers) {
  auto value = text::find_header(headers, "Retry-After");
  if (!value) return 0;
  std::int64_t seconds = 0;
  auto [end, error] = std::from_chars(value->data(), value->data() + value->size(), seconds);
  if (error != std::errc() || end != value->data() + value->size() || seconds < 0) return 0;
  return std::min(seconds, kMaxRetryAfterSeconds) * kSecond;
}

Answer read_status(const text::Value& status) {
  Answer answer;
  if (const text::Value* code = status.find("code")) {
    std::int64_t number = code->as_int64().value_or(0);
    if (number >= 100 && number <= 599) answer.status = static_cast<int>(number);
  }
  answer.reason = shown(text_at(status, "reason"));
  answer.message = shown(text_at(status, "message"));
  if (const text::Value* details = status.find("details")) {
    if (const text::Value* after = details->find("retryAfterSeconds")) {
      std::int64_t seconds = after->as_int64().value_or(0);
      answer.retry_after_ns = std::clamp<std::int64_t>(seconds, 0, kMaxRetryAfterSeconds) * kSecond;
    }
  }
  return answer;
}

bool too_large_version(const text::Value& status) {
  const text::Value* details = status.find("details");
  const text::Value* causes = details ? details->find("causes") : nullptr;
  if (causes) {
    for (const text::Value& cause : causes->items()) {
      if (text_at(cause, "reason") == "ResourceVersionTooLarge") return true;
    }
  }
  return text_at(status, "message").find("Too large resource version") != std::string_view::npos;
}

Answer read_answer(const text::HttpResponse& response) {
  Answer answer;
  answer.status = response.status;
  answer.retry_after_ns = retry_after_of(response.headers);
  for (const text::HttpHeader& header : response.headers) {
    if (header.name.size() == 7 && text::find_header({header}, "Warning")) {
      answer.warnings.push_back(warning_text(header.value));
    }
  }
  read_body(response, answer);
  if (!answer.ok() && answer.reason.empty() && answer.status != 0) {
    answer.reason = std::string(text::http_reason(answer.status));
  }
  return answer;
}

Answer read_failure(const TransportError& error) {
  Answer answer;
  answer.message = error.message;
  answer.maybe_carried_out = error.maybe_carried_out;
  return answer;
}

Error Answer::error() const {
  Code code = Code::kUnavailable;
  if (status == 404) {
    code = Code::kNotFound;
  } else if (status == 409) {
    code = Code::kConflict;
  } else if (status >= 400 && status < 500 && status != 408 && status != 410 && status != 429) {
    code = Code::kInvalid;
  }
  std::string text = status == 0 ? "no answer" : std::to_string(status) + " " + reason;
  if (!message.empty()) text += ": " + message;
  return {code, std::move(text)};
}

}  // namespace berth::kube
