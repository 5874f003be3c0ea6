#include "people/view/wrap.h"

#include <algorithm>
#include <vector>

#include "people/view/words.h"
#include "text/columns.h"

namespace berth::people {

namespace {

constexpr std::string_view kGlue = "\u00a0";

std::string unglued(std::string word) {
  for (std::size_t at = word.find(kGlue); at != std::string::npos; at = word.find(kGlue)) {
    word.replace(at, kGlue.size(), " ");
  }
  return word;
}

// What was glued, part by part.
std::vector<std::string> parted(const std::string& word) {
  std::vector<std::string> out;
  for (std::size_t at = 0; at <= word.size();) {
    const std::size_t end = std::min(word.find(kGlue, at), word.size());
    if (end > at) out.push_back(word.substr(at, end - at));
    at = end + kGlue.size();
  }
  return out;
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
  const auto turn = [&] {
    out += line + '\n';
    line = std::string(hang, ' ');
    width = hang;
    fresh = true;
  };
  const auto put = [&](std::string word) {
    const std::size_t blank = fresh ? 0 : 1;
    if (width > hang && width + blank + width_of(word) > kColumns) turn();
    if (!fresh) line += ' ';
    width += fresh ? 0 : 1;
    while (width + width_of(word) > kColumns) {  // longer than a line: nothing of it is lost
      const std::string part(text::first_columns(word, std::max(kColumns, width + 2) - width));
      line += part;
      word.erase(0, part.size());
      turn();
    }
    line += word;
    width += width_of(word);
    fresh = false;
  };
  const std::size_t room = kColumns > hang ? kColumns - hang : 2;
  for (std::size_t at = 0; at < body.size();) {
    const std::size_t end = std::min(body.find(' ', at), body.size());
    const std::string word = body.substr(at, end - at);
    at = end + 1;
    if (word.empty()) continue;
    if (width_of(word) <= room) {
      put(unglued(word));
    } else {
      for (const std::string& part : parted(word)) put(part);
    }
  }
  out += line + '\n';
}

}  // namespace berth::people
