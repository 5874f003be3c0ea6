#include "edge/serve/http_parse.h"

#include <gtest/gtest.h>

#include "base/random.h"
#include "edge/serve/http_format.h"

namespace berth::serve {
namespace {

struct ParseCase {
  const char* what;
  std::string bytes;
  int status;  // 0: accepted
  std::string body = {};
  bool keep_alive = true;
};

std::vector<ParseCase> parse_cases() {
  return {
      {"plain", "GET / HTTP/1.1\r\nHost: h\r\n\r\n", 0},
      {"empty lines before", "\r\n\r\nGET / HTTP/1.1\r\nHost: h\r\n\r\n", 0},
      {"body", "POST /a HTTP/1.1\r\nHost: h\r\nContent-Length: 5\r\n\r\nhello", 0, "hello"},
      {"chunks",
       "POST /a HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: "
       "chunked\r\n\r\n2\r\nhe\r\n3\r\nllo\r\n0\r\n\r\n",
       0, "hello"},
      {"no chunk but the last",
       "POST /a HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 0},
      {"close", "GET / HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n", 0, "", false},
      {"1.0", "GET / HTTP/1.0\r\n\r\n", 0, "", false},
      {"1.0 kept", "GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n", 0, ""},
      {"no request", "hello\r\n\r\n", 400},
      {"bytes", std::string("\x16\x03\x01\x00\xf0\x01\r\n\r\n", 10), 400},
      {"version", "GET / HTTP/3.0\r\n\r\n", 505},
      {"two lengths",
       "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab", 400},
      {"length and chunks",
       "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 1\r\nTransfer-Encoding: "
       "chunked\r\n\r\n0\r\n\r\n",
       400},
      {"length is no number", "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 1x\r\n\r\na", 400},
      {"space before the colon", "GET / HTTP/1.1\r\nHost : h\r\n\r\n", 400},
      {"chunk size is no number",
       "POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n\r\n", 400},
      {"long body", "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 101\r\n\r\n", 413},
      {"long chunks",
       "POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n40\r\n" +
           std::string(64, 'a') + "\r\n40\r\n" + std::string(64, 'a') + "\r\n",
       413},
      {"long head", "GET / HTTP/1.1\r\nHost: h\r\nX: " + std::string(600, 'a') + "\r\n\r\n", 431},
      {"long chunk head",
       "POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n1;" +
           std::string(2'000, 'a'),
       431},
  };
}

// Feeds as a connection does: what is not used comes again with more behind it.
HttpParser::State feed_in_parts(HttpParser& parser, const std::string& bytes, std::size_t part) {
  std::string left;
  for (std::size_t at = 0; at < bytes.size(); at += part) {
    left += bytes.substr(at, part);
    std::size_t used = 0;
    HttpParser::State state = parser.feed(left, used);
    if (state != HttpParser::State::kMore) return state;
    left.erase(0, used);
  }
  return HttpParser::State::kMore;
}

TEST(HttpParse, TakesWhatIsWholeAndRefusesTheRestHoweverItIsCut) {
  for (const ParseCase& c : parse_cases()) {
    for (std::size_t part : {c.bytes.size(), std::size_t{1}, std::size_t{3}, std::size_t{7}}) {
      SCOPED_TRACE(std::string(c.what) + " in parts of " + std::to_string(part));
      HttpParser parser({.head_bytes = 512, .body_bytes = 100});
      HttpParser::State state = feed_in_parts(parser, c.bytes, part);
      if (c.status != 0) {
        ASSERT_EQ(state, HttpParser::State::kFailed);
        EXPECT_EQ(parser.status(), c.status) << parser.problem();
        EXPECT_FALSE(parser.problem().empty());
        continue;
      }
      ASSERT_EQ(state, HttpParser::State::kDone) << parser.problem();
      ParsedRequest parsed = parser.take();
      EXPECT_EQ(parsed.request.body, c.body);
      EXPECT_EQ(parsed.keep_alive, c.keep_alive);
      EXPECT_TRUE(parser.idle());
    }
  }
}

TEST(HttpParse, OneRequestBehindTheOther) {
  HttpParser parser({.head_bytes = 512, .body_bytes = 100});
  std::string bytes =
      "PUT /a HTTP/1.1\r\nHost: h\r\nContent-Length: 2\r\nX-A: b\r\n\r\nhiGET /b HTTP/1.1\r\nHost: "
      "h\r\n\r\n";
  std::size_t used = 0;
  ASSERT_EQ(parser.feed(bytes, used), HttpParser::State::kDone);
  ParsedRequest first = parser.take();
  EXPECT_EQ(first.request.method, "PUT");
  EXPECT_EQ(first.request.target, "/a");
  EXPECT_EQ(first.request.body, "hi");
  EXPECT_EQ(text::find_header(first.request.headers, "x-a"), "b");
  bytes.erase(0, used);
  ASSERT_EQ(parser.feed(bytes, used), HttpParser::State::kDone);
  EXPECT_EQ(parser.take().request.target, "/b");
  EXPECT_EQ(used, bytes.size());
}

TEST(HttpParse, ChangedBytesNeverCrash) {
  Random random(7);
  std::vector<ParseCase> cases = parse_cases();
  for (int i = 0; i < 3'000; ++i) {
    std::string bytes = cases[random.below(cases.size())].bytes;
    for (std::uint64_t n = random.below(4); n > 0; --n) {
      bytes[random.below(bytes.size())] = static_cast<char>(random.below(256));
    }
    HttpParser parser({.head_bytes = 512, .body_bytes = 100});
    if (feed_in_parts(parser, bytes, 1 + random.below(bytes.size())) == HttpParser::State::kDone) {
      EXPECT_LE(parser.take().request.body.size(), 100u);
    }
  }
}

TEST(HttpFormat, AValueCannotAddAHeaderAndFramingIsOurs) {
  std::string out;
  append_head(
      out,
      {201, {{"Warning", "a\r\nX-Bad: 1"}, {"content-length", "7"}, {"Connection", "upgrade"}}, ""},
      {.body_size = 3, .date = http_date(784'111'777)});
  EXPECT_EQ(
      out,
      "HTTP/1.1 201 Created\r\nWarning: a  X-Bad: 1\r\nDate: Sun, 06 Nov 1994 08:49:37 GMT\r\n"
      "Content-Length: 3\r\n\r\n");
  out.clear();
  append_head(out, {204, {}, ""}, {.keep_alive = false});
  EXPECT_EQ(out, "HTTP/1.1 204 No Content\r\nConnection: close\r\n\r\n");
  out.clear();
  append_head(out, {200, {}, ""},
              {.framing = Framing::kClose, .keep_alive = false, .http10 = true});
  EXPECT_EQ(out, "HTTP/1.0 200 OK\r\nConnection: close\r\n\r\n");
}

}  // namespace
}  // namespace berth::serve
