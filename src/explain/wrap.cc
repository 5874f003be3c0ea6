#include "explain/wrap.h"

#include <algorithm>

#include "explain/words.h"

namespace berth::explain {

namespace {

constexpr std::string_view kGlue = "\u00a0";

std::string unglued(std::string word) {
  for (std::size_t at = word.find(kGlue); at != std::string::npos; at = word.find(kGlue)) {
    word.replace(at, kGlue.size(), " ");
  }
  return word;
}

}  // namespace

std::string glued(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c == ' ') {
      out += kGlue;
    } else {
      out += c;
    }
  }
  return out;
}

void wrap(std::string head, std::size_t hang, const std::string& body, std::string& out) {
  std::string line = std::move(head);
  std::size_t width = width_of(line);
  bool fresh = true;
  for (std::size_t at = 0; at < body.size();) {
    const std::size_t end = std::min(body.find(' ', at), body.size());
    const std::string word = body.substr(at, end - at);
    at = end + 1;
    if (word.empty()) continue;
    if (!fresh && width + 1 + width_of(word) > kColumns) {
      out += line + '\n';
      line = std::string(hang, ' ');
      width = hang;
      fresh = true;
    }
    if (!fresh) line += ' ';
    width += width_of(word) + (fresh ? 0 : 1);
    line += unglued(word);
    fresh = false;
  }
  out += line + '\n';
}

}  // namespace berth::explain
