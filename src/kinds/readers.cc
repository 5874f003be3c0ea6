#include "kinds/readers.h"

#include <charconv>

#include "text/escape.h"

namespace berth::kinds {

bool to_amount(const text::Value& at, std::string_view resource, const text::Quantity& quantity,
               std::int64_t& out, text::Decoder& d) {
  if (quantity.is_negative()) {
    d.mismatch(at, "an amount of at least 0");
    return false;
  }
  const std::int64_t amount = resource == "cpu" ? quantity.milli_value() : quantity.value();
  if (amount > kMaxAmount) {
    d.mismatch(at, resource == "cpu" ? "at most 9007199254740 cpus" : "at most 8Pi");
    return false;
  }
  out = amount;
  return true;
}

void read_amounts(const text::Value& v, model::Amounts& out, text::Decoder& d) {
  if (!v.is_object()) return d.mismatch(v, "an object");
  for (const text::Member& member : v.members()) {
    text::Decoder::Step step(d, member.key);
    const std::size_t before = d.errors();
    text::Quantity quantity;
    decode(member.value, quantity, d);
    std::int64_t amount = 0;
    if (member.key.starts_with("nvidia.com/") && !quantity.is_integer()) {
      d.mismatch(member.value, "a whole number");
    }
    if (d.errors() == before && to_amount(member.value, member.key, quantity, amount, d)) {
      out.insert_or_assign(std::string(member.key), amount);
    }
  }
}

std::vector<std::string_view> split(std::string_view text, std::string_view separator) {
  std::vector<std::string_view> parts;
  while (true) {
    const std::size_t at = text.find(separator);
    parts.push_back(text.substr(0, at));
    if (at == std::string_view::npos) return parts;
    text.remove_prefix(at + separator.size());
  }
}

std::string_view trim(std::string_view text) {
  while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) text.remove_prefix(1);
  while (!text.empty() && (text.back() == ' ' || text.back() == '\t')) text.remove_suffix(1);
  return text;
}

bool parse_int(std::string_view text, std::int64_t& out) {
  if (text.empty() || text.front() == '-') return false;
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return false;
  out = value;
  return true;
}

std::string quoted(std::string_view text) {
  return '"' + text::terminal_safe(text::elide_middle(text, 60)) + '"';
}

}  // namespace berth::kinds
