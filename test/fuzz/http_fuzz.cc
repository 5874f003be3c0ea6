// HTTP requests: however the bytes are cut, the same requests come out; bounds hold. (When
// nonsense is refused may differ: before its end has come, or after.)
#include <vector>

#include "edge/serve/http_parse.h"
#include "fuzz.h"

namespace {

constexpr std::size_t kMaxHead = 4'096, kMaxBody = 128;

struct Heard {
  std::vector<std::string> requests;
  bool failed = false;
};

// As a connection feeds it: what was not used comes again with more behind it.
Heard hear(std::string_view input, std::size_t part) {
  using berth::serve::HttpParser;
  Heard heard;
  HttpParser parser({.head_bytes = kMaxHead, .body_bytes = kMaxBody});
  std::string left;
  for (std::size_t at = 0; at < input.size() && !heard.failed; at += part) {
    left += input.substr(at, part);
    bool more = true;
    while (more && !heard.failed) {
      std::size_t used = 0;
      const HttpParser::State state = parser.feed(left, used);
      left.erase(0, used);
      more = state == HttpParser::State::kDone;
      heard.failed = state == HttpParser::State::kFailed;
      if (!more) continue;
      berth::serve::ParsedRequest parsed = parser.take();
      berth::fuzz::check(parsed.request.body.size() <= kMaxBody, "the body is bounded");
      std::string text = parsed.request.method + " " + parsed.request.target;
      for (const auto& header : parsed.request.headers)
        text += "\n" + header.name + ":" + header.value;
      heard.requests.push_back(text + "\n\n" + parsed.request.body);
      more = !left.empty();
    }
  }
  return heard;
}

}  // namespace

BERTH_FUZZ_TARGET(http) {
  if (size == 0 || size > kMaxHead) return 0;  // near the bound of a head the cut matters
  const std::size_t part = 1 + data[0] % 64;
  const std::string_view input = berth::fuzz::text_of(data + 1, size - 1);
  const Heard whole = hear(input, input.size() + 1);
  const Heard cut = hear(input, part);
  berth::fuzz::check(whole.requests == cut.requests, "cutting changes nothing");
  return 0;
}
