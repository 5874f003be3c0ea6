// Requests that two readers may understand differently. Whatever stands behind one of them on its
// connection is never taken for a request.
#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "base/mutex.h"
#include "edge/serve/http_parse.h"
#include "edge/serve/http_server.h"
#include "edge/serve/peer_for_test.h"

namespace berth::serve {
namespace {

struct SmuggleCase {
  const char* what;
  std::string bytes;
  int status;  // 200: it is a request, and what follows is the next one
};

// A request with these fields and this body.
std::string post(const std::string& fields, const std::string& body = {}) {
  return "POST /first HTTP/1.1\r\nHost: h\r\n" + fields + "\r\n" + body;
}
std::string get(const std::string& line, const std::string& fields) {
  return line + "\r\n" + fields + "\r\n";
}
std::string chunked(const std::string& chunks) {
  return post("Transfer-Encoding: chunked\r\n", chunks);
}

void add_lengths(std::vector<SmuggleCase>& out) {
  const std::string end = "0\r\n\r\n";
  const std::string te = "Transfer-Encoding: ";
  for (auto& c : std::vector<SmuggleCase>{
           {"length", post("Content-Length: 2\r\n", "ab"), 200},
           {"chunks", chunked("2\r\nab\r\n" + end), 200},
           {"length, then chunks", post("Content-Length: 5\r\n" + te + "chunked\r\n", end), 400},
           {"chunks, then length", post(te + "chunked\r\nContent-Length: 5\r\n", end), 400},
           {"chunks twice", post(te + "chunked\r\n" + te + "chunked\r\n", end), 400},
           {"chunks, then identity", post(te + "chunked\r\n" + te + "identity\r\n", end), 400},
           {"identity, then chunks", post(te + "identity\r\n" + te + "chunked\r\n", end), 501},
           {"chunked, chunked", post(te + "chunked, chunked\r\n", end), 501},
           {"gzip, chunked", post(te + "gzip, chunked\r\n", end), 501},
           {"chunked, identity", post(te + "chunked, identity\r\n", end), 501},
           {"identity", post(te + "identity\r\n", end), 501},
           {"identity and a length", post(te + "identity\r\nContent-Length: 5\r\n", end), 501},
           {"xchunked", post(te + "xchunked\r\n", end), 501},
           {"Chunked", post(te + "Chunked\r\n", end), 501},
           {"chunked;a=b", post(te + "chunked;a=b\r\n", end), 501},
           {"\"chunked\"", post(te + "\"chunked\"\r\n", end), 501},
           {"chunked,", post(te + "chunked,\r\n", end), 501},
           {"no encoding", post(te + "\r\n", end), 501},
           {"a vertical tab before chunked",
            post(te + "\x0b"
                      "chunked\r\n",
                 end),
            400},
           {"a tab before the colon", post("Transfer-Encoding\t: chunked\r\n", end), 400},
           {"a space before the colon", post("Transfer-Encoding : chunked\r\n", end), 400},
           {"a space before the name", post(" Transfer-Encoding: chunked\r\n", end), 400},
           {"chunks in 1.0", "POST / HTTP/1.0\r\nHost: h\r\n" + te + "chunked\r\n\r\n" + end, 400},
           {"two lengths", post("Content-Length: 2\r\nContent-Length: 3\r\n", "ab"), 400},
           {"the same length twice", post("Content-Length: 2\r\nContent-Length: 2\r\n", "ab"), 400},
           {"a list of lengths", post("Content-Length: 2, 2\r\n", "ab"), 400},
           {"length with a plus", post("Content-Length: +2\r\n", "ab"), 400},
           {"length with a minus", post("Content-Length: -2\r\n", "ab"), 400},
           {"length with a space inside", post("Content-Length: 2 0\r\n", "ab"), 400},
           {"length in hex", post("Content-Length: 0x2\r\n", "ab"), 400},
           {"length with a point", post("Content-Length: 2.0\r\n", "ab"), 400},
           {"no length", post("Content-Length: \r\n", "ab"), 400},
           {"a space before the colon of a length", post("Content-Length : 2\r\n", "ab"), 400},
           {"length beyond 64 bits", post("Content-Length: 18446744073709551618\r\n", "ab"), 400},
           {"length beyond the bound", post("Content-Length: 9223372036854775807\r\n", "ab"), 413},
       }) {
    out.push_back(c);
  }
}

void add_chunks(std::vector<SmuggleCase>& out) {
  const std::string end = "0\r\n\r\n";
  for (auto& c : std::vector<SmuggleCase>{
           {"a chunk extension", chunked("2;a=b\r\nab\r\n" + end), 400},
           {"an extension of the last chunk", chunked("2\r\nab\r\n0;a=b\r\n\r\n"), 400},
           {"an extension with a bare LF", chunked("2;\nxx\r\nab\r\n" + end), 400},
           {"a space behind a chunk's size", chunked("2 \r\nab\r\n" + end), 400},
           {"a space before a chunk's size", chunked(" 2\r\nab\r\n" + end), 400},
           {"a chunk's size with a plus", chunked("+2\r\nab\r\n" + end), 400},
           {"a chunk's size with a minus", chunked("-2\r\nab\r\n" + end), 400},
           {"a chunk's size with 0x", chunked("0x2\r\nab\r\n" + end), 400},
           {"a chunk without a size", chunked("\r\nab\r\n" + end), 400},
           {"a chunk beyond 64 bits", chunked("10000000000000002\r\nab\r\n" + end), 400},
           {"a chunk of all bits", chunked("ffffffffffffffff\r\nab\r\n" + end), 413},
           {"a chunk that is longer", chunked("2\r\nabc\r\n" + end), 400},
           {"a chunk ended by LF", chunked("2\r\nab\n" + end + "\r\n"), 400},
           {"a chunk's size ended by LF", chunked("2\nab\r\n" + end), 400},
           {"a trailer", chunked("2\r\nab\r\n0\r\nX: y\r\n\r\n"), 400},
           {"a length in a trailer", chunked("2\r\nab\r\n0\r\nContent-Length: 9\r\n\r\n"), 400},
           {"a Host in a trailer", chunked("2\r\nab\r\n0\r\nHost: other\r\n\r\n"), 400},
       }) {
    out.push_back(c);
  }
}

void add_lines(std::vector<SmuggleCase>& out) {
  const std::string ok = "GET / HTTP/1.1", host = "Host: h\r\n";
  for (auto& c : std::vector<SmuggleCase>{
           {"plain", get(ok, host), 200},
           {"no Host", get(ok, ""), 400},
           {"no Host in 1.0", get("GET / HTTP/1.0", "Connection: keep-alive\r\n"), 200},
           {"two Hosts", get(ok, host + "Host: other\r\n"), 400},
           {"the same Host twice", get(ok, host + host), 400},
           {"two Hosts in 1.0", get("GET / HTTP/1.0", host + "Host: other\r\n"), 400},
           {"an empty Host", get(ok, "Host: \r\n"), 400},
           {"two names in a Host", get(ok, "Host: h, other\r\n"), 400},
           {"a space in a Host", get(ok, "Host: h other\r\n"), 400},
           {"a user in a Host", get(ok, "Host: me@h\r\n"), 400},
           {"a path in a Host", get(ok, "Host: h/x\r\n"), 400},
           {"another host in the target", get("GET http://other/ HTTP/1.1", host), 400},
           {"the same host in the target", get("GET http://h/ HTTP/1.1", host), 400},
           {"CONNECT", get("CONNECT h:443 HTTP/1.1", host), 400},
           {"no slash", get("GET x HTTP/1.1", host), 400},
           {"a folded field", get(ok, host + "X: a\r\n b\r\n"), 400},
           {"a field folded by a tab", get(ok, host + "X: a\r\n\tb\r\n"), 400},
           {"a fold that hides chunks", get(ok, host + "X: a\r\n Transfer-Encoding: chunked\r\n"),
            400},
           {"a fold of nothing", get(ok, host + "X: a\r\n \r\n"), 400},
           {"a fold before the first field", get(ok, " X: a\r\n" + host), 400},
           {"bare LFs", "GET / HTTP/1.1\nHost: h\n\n", 400},
           {"one bare LF", "GET / HTTP/1.1\r\nHost: h\nX: y\r\n\r\n", 400},
           {"an end by a bare LF", "GET / HTTP/1.1\r\nHost: h\r\n\n", 400},
           {"a bare CR in a value", get(ok, host + "X: a\rb\r\n"), 400},
           {"a bare CR before a name", get(ok, host + "\rX: a\r\n"), 400},
           {"two CRs", "GET / HTTP/1.1\r\r\nHost: h\r\n\r\n", 400},
           {"NUL in a value", get(ok, host + std::string("X: a\0b\r\n", 8)), 400},
           {"NUL in a name", get(ok, host + std::string("X\0: a\r\n", 7)), 400},
           {"NUL in the target", get(std::string("GET /\0 HTTP/1.1", 15), host), 400},
           {"NUL in Host", get(ok, std::string("Host: h\0\r\n", 10)), 400},
           {"DEL in a value", get(ok, host + "X: \x7f\r\n"), 400},
           {"a field without a name", get(ok, host + ": a\r\n"), 400},
           {"a field without a colon", get(ok, host + "X\r\n"), 400},
           {"two spaces in the line", get("GET  / HTTP/1.1", host), 400},
           {"a tab in the line", get("GET\t/ HTTP/1.1", host), 400},
           {"a space at the line's end", get("GET / HTTP/1.1 ", host), 505},
           {"no version", get("GET /", host), 400},
           {"a version in small letters", get("GET / http/1.1", host), 505},
           {"HTTP/1.2", get("GET / HTTP/1.2", host), 505},
           {"HTTP/2's first bytes", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 505},
           {"a bare LF before a request", "\n" + get(ok, host), 400},
           {"many empty lines", "\r\n\r\n\r\n\r\n\r\n\r\n" + get(ok, host), 400},
       }) {
    out.push_back(c);
  }
}

std::vector<SmuggleCase> smuggle_cases() {
  std::vector<SmuggleCase> out;
  add_lengths(out);
  add_chunks(out);
  add_lines(out);
  return out;
}

TEST(HttpSmuggling, IsRefusedHoweverTheBytesAreCut) {
  for (const SmuggleCase& c : smuggle_cases()) {
    for (std::size_t part : {c.bytes.size(), std::size_t{1}, std::size_t{5}}) {
      SCOPED_TRACE(std::string(c.what) + " in parts of " + std::to_string(part));
      HttpParser parser({.head_bytes = 4'096, .body_bytes = 1'000});
      HttpParser::State state = HttpParser::State::kMore;
      std::string left;
      for (std::size_t at = 0; at < c.bytes.size() && state == HttpParser::State::kMore;
           at += part) {
        left += c.bytes.substr(at, part);
        std::size_t used = 0;
        state = parser.feed(left, used);
        left.erase(0, used);
      }
      if (c.status == 200) {
        EXPECT_EQ(state, HttpParser::State::kDone) << parser.problem();
        continue;
      }
      EXPECT_EQ(state, HttpParser::State::kFailed);
      EXPECT_EQ(parser.status(), c.status) << parser.problem();
    }
  }
}

TEST(HttpSmuggling, NothingBehindItIsARequest) {
  Mutex mutex;
  std::vector<std::string> targets;
  auto server = HttpServer::start({.max_body_bytes = 1'000},
                                  [&](text::HttpRequest request, std::shared_ptr<Exchange> to) {
                                    MutexLock lock(mutex);
                                    targets.push_back(request.target);
                                    to->respond({200, {}, ""});
                                  });
  ASSERT_TRUE(server.ok());
  for (const SmuggleCase& c : smuggle_cases()) {
    SCOPED_TRACE(c.what);
    TestPeer peer((*server)->port());
    peer.send(c.bytes + "GET /smuggled HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n");
    EXPECT_EQ(peer.response().status, c.status);
    if (c.status == 200) {
      EXPECT_EQ(peer.response().status, 200);
    }
    EXPECT_TRUE(peer.closed());
    MutexLock lock(mutex);
    EXPECT_EQ(std::count(targets.begin(), targets.end(), "/smuggled"), c.status == 200 ? 1 : 0);
    EXPECT_EQ(targets.size(), c.status == 200 ? 2u : 0u);
    targets.clear();
  }
}

}  // namespace
}  // namespace berth::serve
