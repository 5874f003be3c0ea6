#include "text/nearest.h"

#include <algorithm>

namespace berth::text {

namespace {

constexpr std::size_t kLongestWord = 256;

char folded(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

bool alike(char a, char b) { return folded(a) == folded(b); }

// One is the other with something before or behind it.
bool is_part(std::string_view a, std::string_view b) {
  if (a.size() > b.size()) std::swap(a, b);
  return a.size() >= 3 && (b.starts_with(a) || b.ends_with(a));
}

}  // namespace

std::size_t edits_between(std::string_view a, std::string_view b, std::size_t limit) {
  const std::size_t apart = a.size() > b.size() ? a.size() - b.size() : b.size() - a.size();
  if (apart > limit || a.size() > kLongestWord || b.size() > kLongestWord) return limit + 1;
  std::vector<std::size_t> before(b.size() + 1), above(b.size() + 1), row(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); ++j) above[j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t change = above[j - 1] + (alike(a[i - 1], b[j - 1]) ? 0 : 1);
      row[j] = std::min({above[j] + 1, row[j - 1] + 1, change});
      const bool swapped = i > 1 && j > 1 && alike(a[i - 1], b[j - 2]) && alike(a[i - 2], b[j - 1]);
      if (swapped) row[j] = std::min(row[j], before[j - 2] + 1);
    }
    std::swap(before, above);
    std::swap(above, row);
  }
  return std::min(above[b.size()], limit + 1);
}

std::string nearest(std::string_view word, const std::vector<std::string>& names) {
  const std::size_t limit = std::max<std::size_t>(1, word.size() / 3);
  std::size_t least = limit + 1;
  const std::string* best = nullptr;
  for (const std::string& name : names) {
    if (name == word) continue;
    const std::size_t edits = edits_between(word, name, limit);
    if (edits < least) {
      least = edits;
      best = &name;
    }
  }
  for (const std::string& name : names) {
    if (best != nullptr) break;
    if (name != word && is_part(word, name)) best = &name;
  }
  return best == nullptr ? "" : *best;
}

}  // namespace berth::text
