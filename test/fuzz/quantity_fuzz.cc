// Quantities: the reader against a slow model on decimal strings; printing is stable.
#include <algorithm>
#include <string>

#include "fuzz.h"
#include "text/quantity.h"

namespace {

using berth::text::Int128;

std::string doubled(const std::string& digits) {
  std::string out;
  int carry = 0;
  for (auto c = digits.rbegin(); c != digits.rend(); ++c) {
    const int v = 2 * (*c - '0') + carry;
    out += static_cast<char>('0' + v % 10);
    carry = v / 10;
  }
  if (carry != 0) out += '1';
  std::reverse(out.begin(), out.end());
  return out;
}

// Nano units of an accepted text, as a decimal string; "" when the exponent is out of the model.
std::string model_nano(std::string_view text, bool& binary) {
  if (text.front() == '+' || text.front() == '-') text.remove_prefix(1);
  const std::size_t end = std::min(text.find_first_not_of("0123456789."), text.size());
  const std::string_view number = text.substr(0, end);
  const std::string_view suffix = text.substr(end);
  std::string digits;
  long fraction = 0;
  bool point = false;
  for (const char c : number) {
    if (c == '.') {
      point = true;
    } else {
      digits += c;
      fraction += point ? 1 : 0;
    }
  }
  long exponent = 0;
  binary = suffix.size() == 2 && suffix[1] == 'i';
  if (binary) {
    const auto power = 10 * (1 + std::string_view("KMGTPE").find(suffix[0]));
    for (std::size_t i = 0; i < power; ++i) digits = doubled(digits);
  } else if (suffix.size() > 1) {
    exponent = std::strtol(std::string(suffix.substr(1)).c_str(), nullptr, 10);
    if (exponent > 300 || exponent < -300) return "";
  } else if (suffix.size() == 1) {
    exponent = 3 * static_cast<long>(std::string_view("num kMGTPE").find(suffix[0])) - 9;
  }
  long shift = exponent + 9 - fraction;
  for (; shift > 0; --shift) digits += '0';
  bool lost = false;
  for (; shift < 0; ++shift) {
    if (digits.empty()) break;
    lost = lost || digits.back() != '0';
    digits.pop_back();
  }
  for (std::size_t i = digits.size(); lost;) {  // one more, with its carries
    if (i == 0) {
      digits.insert(0, "1");
      break;
    }
    if (digits[--i] != '9') {
      ++digits[i];
      break;
    }
    digits[i] = '0';
  }
  digits.erase(0, std::min(digits.find_first_not_of('0'), digits.size()));
  return digits.empty() ? "0" : digits;
}

std::string plain(Int128 v) {
  if (v < 0) v = -v;
  std::string out;
  do {
    out += static_cast<char>('0' + static_cast<int>(v % 10));
    v /= 10;
  } while (v > 0);
  std::reverse(out.begin(), out.end());
  return out;
}

bool less(const std::string& a, const std::string& b) {
  return a.size() != b.size() ? a.size() < b.size() : a < b;
}

}  // namespace

BERTH_FUZZ_TARGET(quantity) {
  using namespace berth;
  const std::string_view input = fuzz::text_of(data, size);
  if (size > 300) return 0;
  const auto parsed = text::parse_quantity(input);
  if (!parsed.ok()) return 0;
  bool binary = false;
  std::string want = model_nano(input, binary);
  if (!want.empty()) {
    const std::string cap =
        binary ? "9223372036854775807000000000" : "170141183460469231731687303715884105727";
    if (less(cap, want)) want = cap;
    fuzz::check(plain(parsed->nano()) == want, "the model's amount");
  }
  fuzz::check(parsed->is_zero() || parsed->is_negative() == (input.front() == '-'), "the sign");
  const std::string printed = parsed->to_string();
  const auto again = text::parse_quantity(printed);
  fuzz::check(again.ok() && *again == *parsed, "printing keeps the amount");
  // 93.75Ki is printed as 96000, which is then a decimal amount: 96k, as in Kubernetes.
  fuzz::check(again->format() != parsed->format() || again->to_string() == printed,
              "printing is stable");
  const text::Quantity zero = *parsed - *parsed;
  fuzz::check(zero.is_zero() && zero + *parsed == *parsed, "adding nothing");
  return 0;
}
