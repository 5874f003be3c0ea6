#include "serve/http_parse.h"

#include <boost/beast/http/basic_parser.hpp>
#include <optional>

#include "base/check.h"

namespace berth::serve {
namespace {

namespace http = boost::beast::http;
using View = boost::beast::string_view;
using BeastError = boost::beast::error_code;

constexpr std::size_t kReserve = 64 * 1024;  // a stranger's Content-Length reserves no more

}  // namespace

// Named, because g++ warns of members of unnamed types in unity builds.
class BeastReader final : public http::basic_parser<true> {
 public:
  ParsedRequest parsed;
  bool head_done = false;
  bool expects = false;

 private:
  void on_request_impl(http::verb, View method, View target, int version, BeastError&) override {
    parsed.request.method.assign(method.data(), method.size());
    parsed.request.target.assign(target.data(), target.size());
    parsed.http10 = version < 11;
  }
  void on_response_impl(int, View, int, BeastError&) override {}
  void on_field_impl(http::field field, View name, View value, BeastError&) override {
    if (head_done) return;  // a trailer: read, and of no use to anybody here
    if (field == http::field::expect && value == "100-continue") expects = true;
    parsed.request.headers.push_back(
        {std::string(name.data(), name.size()), std::string(value.data(), value.size())});
  }
  void on_header_impl(BeastError&) override { head_done = true; }
  void on_body_init_impl(const boost::optional<std::uint64_t>& size, BeastError&) override {
    if (size) parsed.request.body.reserve(std::min<std::size_t>(*size, kReserve));
  }
  std::size_t on_body_impl(View bytes, BeastError&) override {
    parsed.request.body.append(bytes.data(), bytes.size());
    return bytes.size();
  }
  void on_chunk_header_impl(std::uint64_t, View, BeastError&) override {}
  std::size_t on_chunk_body_impl(std::uint64_t, View bytes, BeastError&) override {
    parsed.request.body.append(bytes.data(), bytes.size());
    return bytes.size();
  }
  void on_finish_impl(BeastError&) override {}
};

struct HttpParser::Reader {
  std::size_t max_head, max_body;
  std::optional<BeastReader> beast;
  int status = 0;
  std::string problem;

  State fail(int with_status, std::string why) {
    status = with_status;
    problem = std::move(why);
    return State::kFailed;
  }
  State fail(const BeastError& error) {
    if (error == http::error::header_limit) return fail(431, "the head of the request is too long");
    if (error == http::error::body_limit || error == http::error::buffer_overflow) {
      return fail(413,
                  "the body of the request is longer than " + std::to_string(max_body) + " bytes");
    }
    if (error == http::error::bad_version)
      return fail(505, "only HTTP/1.0 and HTTP/1.1 are spoken");
    return fail(400, "not an HTTP request: " + error.message());
  }
};

HttpParser::HttpParser(std::size_t max_head_bytes, std::size_t max_body_bytes)
    : reader_(std::make_unique<Reader>()) {
  reader_->max_head = max_head_bytes;
  reader_->max_body = max_body_bytes;
}

HttpParser::~HttpParser() = default;

HttpParser::State HttpParser::feed(std::string_view bytes, std::size_t& used) {
  used = 0;
  if (!reader_->beast) {
    // Empty lines between requests, as some old clients send.
    while (used < bytes.size() && (bytes[used] == '\r' || bytes[used] == '\n')) ++used;
    if (used == bytes.size()) return State::kMore;
    reader_->beast.emplace();
    reader_->beast->eager(true);
    reader_->beast->header_limit(static_cast<std::uint32_t>(reader_->max_head));
    reader_->beast->body_limit(reader_->max_body);
  }
  BeastReader& beast = *reader_->beast;
  std::string_view rest = bytes.substr(used);
  // The shortest end of chunks has five bytes. Beast asserts that it sees them when it is asked a
  // second time about the last chunk, and a stranger decides how the bytes are cut.
  if (rest.empty() || (beast.head_done && beast.chunked() && rest.size() < 5)) return State::kMore;
  BeastError error;
  used += beast.put(boost::asio::const_buffer(rest.data(), rest.size()), error);
  if (error && error != http::error::need_more) return reader_->fail(error);
  if (beast.parsed.request.body.size() > reader_->max_body) {
    return reader_->fail(http::make_error_code(http::error::body_limit));
  }
  if (beast.is_done()) {
    beast.parsed.keep_alive = beast.keep_alive();
    return State::kDone;
  }
  if (bytes.size() - used > reader_->max_head) {  // a chunk's head without an end, say
    return reader_->fail(http::make_error_code(http::error::header_limit));
  }
  return State::kMore;
}

ParsedRequest HttpParser::take() {
  BERTH_ASSERT(reader_->beast && reader_->beast->is_done(), "a request is taken after kDone");
  ParsedRequest parsed = std::move(reader_->beast->parsed);
  reader_->beast.reset();
  return parsed;
}

bool HttpParser::idle() const { return !reader_->beast; }

bool HttpParser::asks_to_continue() {
  return reader_->beast && reader_->beast->head_done &&
         std::exchange(reader_->beast->expects, false);
}

int HttpParser::status() const { return reader_->status; }
std::string_view HttpParser::problem() const { return reader_->problem; }

}  // namespace berth::serve
