#include "text/columns.h"

#include <algorithm>
#include <iterator>

#include "base/utf8.h"

namespace berth::text {

namespace {

struct CodeRange {
  char32_t first, last;
};

constexpr CodeRange kWide[] = {
    {0x1100, 0x115f},   {0x231a, 0x231b},   {0x2329, 0x232a},   {0x23e9, 0x23ec},
    {0x23f0, 0x23f0},   {0x23f3, 0x23f3},   {0x25fd, 0x25fe},   {0x2614, 0x2615},
    {0x2630, 0x2637},   {0x2648, 0x2653},   {0x267f, 0x267f},   {0x268a, 0x2693},
    {0x26a1, 0x26a1},   {0x26aa, 0x26ab},   {0x26bd, 0x26be},   {0x26c4, 0x26c5},
    {0x26ce, 0x26ce},   {0x26d4, 0x26d4},   {0x26ea, 0x26ea},   {0x26f2, 0x26f5},
    {0x26fa, 0x26fd},   {0x2705, 0x2705},   {0x270a, 0x270b},   {0x2728, 0x2728},
    {0x274c, 0x274e},   {0x2753, 0x2757},   {0x2795, 0x2797},   {0x27b0, 0x27b0},
    {0x27bf, 0x27bf},   {0x2b1b, 0x2b1c},   {0x2b50, 0x2b50},   {0x2b55, 0x2b55},
    {0x2e80, 0x303e},   {0x3041, 0x4dff},   {0x4e00, 0xa4cf},   {0xa960, 0xa97f},
    {0xac00, 0xd7a3},   {0xf900, 0xfaff},   {0xfe10, 0xfe19},   {0xfe30, 0xfe6f},
    {0xff00, 0xff60},   {0xffe0, 0xffe6},   {0x16fe0, 0x1b2ff}, {0x1d300, 0x1d37f},
    {0x1f004, 0x1f004}, {0x1f0cf, 0x1f0cf}, {0x1f18e, 0x1f19a}, {0x1f1e6, 0x1f64f},
    {0x1f680, 0x1f6ff}, {0x1f7e0, 0x1f7f0}, {0x1f900, 0x1f9ff}, {0x1fa70, 0x1faff},
    {0x20000, 0x3fffd},
};

constexpr CodeRange kMarks[] = {
    {0x0300, 0x036f}, {0x0483, 0x0489}, {0x0591, 0x05bd}, {0x0610, 0x061a}, {0x064b, 0x065f},
    {0x06d6, 0x06dc}, {0x0730, 0x074a}, {0x0941, 0x0948}, {0x094d, 0x094d}, {0x0e34, 0x0e3a},
    {0x0e47, 0x0e4e}, {0x1ab0, 0x1ace}, {0x1dc0, 0x1dff}, {0x200c, 0x200d}, {0x20d0, 0x20f0},
    {0x302a, 0x302d}, {0x3099, 0x309a}, {0xfe00, 0xfe0f}, {0xfe20, 0xfe2f},
};

template <std::size_t n>
bool in_ranges(const CodeRange (&ranges)[n], char32_t code) {
  const auto* after =
      std::upper_bound(std::begin(ranges), std::end(ranges), code,
                       [](char32_t c, const CodeRange& range) { return c < range.first; });
  return after != std::begin(ranges) && code <= std::prev(after)->last;
}

// Walks over characters with their widths.
class ColumnWalk {
 public:
  explicit ColumnWalk(std::string_view text) : text_(text) {}
  bool done() const { return at_ == text_.size(); }
  std::size_t at() const { return at_; }

  // Goes over the next character; how many columns it takes.
  std::size_t step() {
    const Utf8Char c = decode_utf8(text_.substr(at_));
    at_ += c.size;
    if (in_ranges(kMarks, c.code)) {
      // A pile of marks takes room: nobody hides a page of text on one character.
      constexpr int kMostMarks = 4;
      return ++marks_ > kMostMarks ? 1 : 0;
    }
    marks_ = 0;
    return in_ranges(kWide, c.code) ? 2 : 1;
  }

 private:
  std::string_view text_;
  std::size_t at_ = 0;
  int marks_ = 0;
};

}  // namespace

std::size_t columns_of(std::string_view text) {
  std::size_t out = 0;
  for (ColumnWalk walk(text); !walk.done();) out += walk.step();
  return out;
}

std::string_view first_columns(std::string_view text, std::size_t columns) {
  ColumnWalk walk(text);
  std::size_t end = 0, width = 0;
  while (!walk.done()) {
    width += walk.step();
    if (width > columns) break;
    end = walk.at();
  }
  return text.substr(0, end);
}

std::string_view last_columns(std::string_view text, std::size_t columns) {
  const std::size_t all = columns_of(text);
  std::size_t before = 0;
  for (ColumnWalk walk(text); !walk.done();) {
    const std::size_t at = walk.at();
    const std::size_t width = walk.step();
    if (all - before <= columns && width > 0) return text.substr(at);
    before += width;
  }
  return {};
}

}  // namespace berth::text
