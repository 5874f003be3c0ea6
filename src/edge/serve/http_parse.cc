#include "edge/serve/http_parse.h"

#include <algorithm>
#include <boost/beast/http/basic_parser.hpp>
#include <optional>

#include "base/check.h"
#include "edge/serve/body_buffer.h"

namespace berth::serve {
namespace {

namespace http = boost::beast::http;
using View = boost::beast::string_view;
using BeastError = boost::beast::error_code;

constexpr std::size_t kMaxBlankLines = 4;  // before a request, as some old clients send

bool is_host_char(char c) {
  const bool word = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
  return word || std::string_view("-._~%!$&'()*+;=:[]").find(c) != std::string_view::npos;
}

bool is_host(View value) {
  return !value.empty() && std::all_of(value.begin(), value.end(), is_host_char);
}

}  // namespace

// Named, because g++ warns of members of unnamed types in unity builds.
class BeastReader final : public http::basic_parser<true> {
 public:
  explicit BeastReader(const ParseLimits& with) : limits(with), max_body(with.body_bytes) {
    eager(true);
    header_limit(static_cast<std::uint32_t>(std::min<std::size_t>(with.head_bytes, UINT32_MAX)));
    body_limit(with.body_bytes);
  }

  const ParseLimits& limits;
  ParsedRequest parsed;
  BodyBuffer body;
  bool head_done = false;
  bool expects = false;
  std::size_t max_body;
  int refused = 0;  // the status, when it is not Beast that finds fault
  const char* why = "";

 private:
  void refuse(int status, const char* problem, BeastError& error) {
    refused = status;
    why = problem;
    error = http::error::bad_value;
  }
  void on_request_impl(http::verb, View method, View target, int version,
                       BeastError& error) override {
    parsed.request.method.assign(method.data(), method.size());
    parsed.request.target.assign(target.data(), target.size());
    parsed.http10 = version < 11;
    if (target != "*" && !target.starts_with('/')) {
      refuse(400, "the target of a request is a path here, without a host", error);
    }
  }
  void on_response_impl(int, View, int, BeastError&) override {}
  void on_field_impl(http::field field, View name, View value, BeastError& error) override {
    if (head_done) return refuse(400, "fields behind the body are not taken", error);
    if (parsed.request.headers.size() >= kMaxFields) {
      return refuse(431, "the request has too many fields", error);
    }
    if (field == http::field::expect && value == "100-continue") expects = true;
    if (field == http::field::content_length) {
      const bool digits =
          std::all_of(value.begin(), value.end(), [](char c) { return c >= '0' && c <= '9'; });
      if (++lengths_ > 1 || !digits) {
        return refuse(400, "Content-Length: want one number, once", error);
      }
    }
    if (field == http::field::transfer_encoding) {
      if (++encodings_ > 1) return refuse(400, "Transfer-Encoding: want it once", error);
      if (value != "chunked") return refuse(501, "Transfer-Encoding: want chunked", error);
    }
    if (field == http::field::host && (++hosts_ > 1 || !is_host(value))) {
      return refuse(400, "Host: want one name, with a port or without, once", error);
    }
    parsed.request.headers.push_back(
        {std::string(name.data(), name.size()), std::string(value.data(), value.size())});
  }
  void on_header_impl(BeastError& error) override {
    head_done = true;
    if (hosts_ == 0 && !parsed.http10) return refuse(400, "Host: found none", error);
    if (encodings_ > 0 && (lengths_ > 0 || parsed.http10)) {
      return refuse(400, "Transfer-Encoding: neither in HTTP/1.0 nor beside Content-Length", error);
    }
    if (limits.body_bytes_of) {
      max_body = std::min(max_body, limits.body_bytes_of(parsed.request));
    }
    const auto announced = content_length();
    if (announced && *announced > max_body) error = http::error::body_limit;
    if (encodings_ > 0 && max_body == 0) error = http::error::body_limit;
  }
  void on_body_init_impl(const boost::optional<std::uint64_t>&, BeastError&) override {}
  std::size_t on_body_impl(View bytes, BeastError& error) override { return add(bytes, error); }
  void on_chunk_header_impl(std::uint64_t, View extensions, BeastError& error) override {
    if (!extensions.empty()) refuse(400, "extensions of chunks are not taken", error);
  }
  std::size_t on_chunk_body_impl(std::uint64_t, View bytes, BeastError& error) override {
    return add(bytes, error);
  }
  void on_finish_impl(BeastError&) override {}

  std::size_t add(View bytes, BeastError& error) {
    if (bytes.size() > max_body - std::min(max_body, body.size())) {
      error = http::error::body_limit;
      return 0;
    }
    if (!body.append({bytes.data(), bytes.size()})) {
      refuse(503, "there is no memory for the request", error);
      return 0;
    }
    return bytes.size();
  }

  static constexpr std::size_t kMaxFields = HttpParser::kMaxHeaders;
  int lengths_ = 0, encodings_ = 0, hosts_ = 0;
};

struct HttpParser::Reader {
  ParseLimits limits;
  std::optional<BeastReader> beast;  // from a whole head on
  std::size_t seen = 0;              // of a head that is not whole
  std::size_t blank_lines = 0;
  int status = 0;
  std::string problem;

  State fail(int with_status, std::string why) {
    status = with_status;
    problem = std::move(why);
    return State::kFailed;
  }
  State fail(const BeastError& error) {
    if (beast && beast->refused != 0) return fail(beast->refused, beast->why);
    if (error == http::error::header_limit) return fail(431, "the head of the request is too long");
    if (error == http::error::body_limit || error == http::error::buffer_overflow) {
      const std::size_t most = beast ? beast->max_body : limits.body_bytes;
      return fail(413, most == 0 ? "no body is taken here"
                                 : "the body of the request is longer than " +
                                       std::to_string(most) + " bytes");
    }
    if (error == http::error::bad_version) {
      return fail(505, "only HTTP/1.0 and HTTP/1.1 are spoken");
    }
    return fail(400, "not an HTTP request: " + error.message());
  }

  State skip_blank_lines(std::string_view bytes, std::size_t& used);
  State look_at_head(std::string_view head);
};

// kDone: what follows begins a request.
HttpParser::State HttpParser::Reader::skip_blank_lines(std::string_view bytes, std::size_t& used) {
  if (seen > 0) return State::kDone;
  while (bytes.substr(used).starts_with("\r\n")) {
    used += 2;
    if (++blank_lines > kMaxBlankLines) return fail(400, "not an HTTP request: empty lines");
  }
  return used == bytes.size() || bytes.substr(used) == "\r" ? State::kMore : State::kDone;
}

// kDone: it is whole. Refuses what makes readers disagree about lines, as soon as it is seen.
HttpParser::State HttpParser::Reader::look_at_head(std::string_view head) {
  for (; seen < head.size(); ++seen) {
    const auto c = static_cast<unsigned char>(head[seen]);
    const char before = seen == 0 ? '\n' : head[seen - 1];
    if (seen >= limits.head_bytes) return fail(http::make_error_code(http::error::header_limit));
    if ((before == '\r') != (c == '\n')) {
      return fail(400, "not an HTTP request: a line ends with CR and LF");
    }
    if (before == '\n' && (c == ' ' || c == '\t')) {
      return fail(400, "not an HTTP request: a line begins with a space; fields are not folded");
    }
    if ((c < 0x20 && c != '\r' && c != '\n' && c != '\t') || c == 0x7F) {
      return fail(400, "not an HTTP request: a control character");
    }
    if (c == '\n' && seen >= 3 && head[seen - 2] == '\n') return State::kDone;
  }
  return State::kMore;
}

HttpParser::HttpParser(ParseLimits limits) : reader_(std::make_unique<Reader>()) {
  reader_->limits = std::move(limits);
}

HttpParser::~HttpParser() = default;

HttpParser::State HttpParser::feed(std::string_view bytes, std::size_t& used) {
  used = 0;
  if (!reader_->beast) {
    State state = reader_->skip_blank_lines(bytes, used);
    if (state == State::kDone) state = reader_->look_at_head(bytes.substr(used));
    if (state != State::kDone) return state;
    reader_->beast.emplace(reader_->limits);
  }
  BeastReader& beast = *reader_->beast;
  std::string_view rest = bytes.substr(used);
  // The shortest end of chunks has five bytes. Beast asserts that it sees them when it is asked a
  // second time about the last chunk, and a stranger decides how the bytes are cut.
  if (rest.empty() || (beast.head_done && beast.chunked() && rest.size() < 5)) return State::kMore;
  BeastError error;
  used += beast.put(boost::asio::const_buffer(rest.data(), rest.size()), error);
  if (error && error != http::error::need_more) return reader_->fail(error);
  if (beast.is_done()) {
    beast.parsed.keep_alive = beast.keep_alive();
    return State::kDone;
  }
  // A chunk's head without an end, say.
  if (bytes.size() - used > reader_->limits.head_bytes) {
    return reader_->fail(http::make_error_code(http::error::header_limit));
  }
  return State::kMore;
}

ParsedRequest HttpParser::take() {
  BERTH_ASSERT(reader_->beast && reader_->beast->is_done(), "a request is taken after kDone");
  ParsedRequest parsed = std::move(reader_->beast->parsed);
  parsed.request.body = reader_->beast->body.take();
  drop();
  return parsed;
}

void HttpParser::drop() {
  reader_->beast.reset();
  reader_->seen = 0;
  reader_->blank_lines = 0;
}

bool HttpParser::idle() const { return !reader_->beast && reader_->seen == 0; }

bool HttpParser::head_done() const { return reader_->beast && reader_->beast->head_done; }

std::size_t HttpParser::held() const {
  if (!reader_->beast) return 0;
  const text::HttpRequest& request = reader_->beast->parsed.request;
  return reader_->beast->body.held() + 2 * reader_->seen +
         request.headers.capacity() * sizeof(text::HttpHeader);
}

bool HttpParser::asks_to_continue() {
  return reader_->beast && reader_->beast->head_done &&
         std::exchange(reader_->beast->expects, false);
}

int HttpParser::status() const { return reader_->status; }
std::string_view HttpParser::problem() const { return reader_->problem; }

}  // namespace berth::serve
