// Rows and columns for people (80 columns) and for spreadsheets (CSV).
//
// Cells are text from anywhere: both printers make them safe. A table never cuts numbers: where a
// line would be too long a column that wraps goes on in the lines below, then the columns that may
// give way do, widest first, cut in the middle, and in the end every column that is not a number.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace berth::app {

inline constexpr std::size_t kScreenWidth = 80;

struct SheetColumn {
  std::string head;
  bool right = false;  // numbers
  bool gives = false;  // may be cut, down to at_least
  std::size_t at_least = 8;
  bool wraps = false;  // of the last column: it goes on below itself, at blanks
  std::size_t at_most = kScreenWidth;
};

struct Sheet {
  std::vector<SheetColumn> columns;
  std::vector<std::vector<std::string>> rows;
};

// With heads; at most max_rows rows, then "+N more (see -o csv)": whole says where the rest is.
std::string table_text(const Sheet& sheet, std::size_t max_rows = 1000,
                       std::string_view whole = "-o csv");
std::string csv_text(const Sheet& sheet);  // RFC 4180, heads in lower case

// JSON text as YAML in block style.
std::string yaml_of(const std::string& json);

// "35 m", "2 h", "3 d": two digits or so, for people. Negative: "0 s".
std::string show_age(std::int64_t ns);

// Colours, or nothing at all.
class Paint {
 public:
  explicit Paint(bool on) : on_(on) {}
  bool on() const { return on_; }
  std::string red(std::string_view text) const { return in("31", text); }
  std::string yellow(std::string_view text) const { return in("33", text); }
  std::string green(std::string_view text) const { return in("32", text); }
  std::string faint(std::string_view text) const { return in("2", text); }
  std::string bold(std::string_view text) const { return in("1", text); }

 private:
  std::string in(std::string_view code, std::string_view text) const {
    if (!on_ || text.empty()) return std::string(text);
    return "\x1b[" + std::string(code) + 'm' + std::string(text) + "\x1b[0m";
  }
  bool on_;
};

// Text in lines that end before kScreenWidth (people/view/wrap.h): the first is printed behind
// indent columns of the caller's, the others begin with as many blanks. Made safe.
std::string wrapped(std::string_view text, std::size_t indent);

}  // namespace berth::app
