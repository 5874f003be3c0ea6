#include "kinds/names.h"

#include <algorithm>

#include "text/selector.h"

namespace berth::kinds {

namespace {

bool lower_or_digit(char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9'); }

bool dns_label_form(std::string_view text) {
  return !text.empty() && lower_or_digit(text.front()) && lower_or_digit(text.back()) &&
         std::all_of(text.begin(), text.end(),
                     [](char c) { return lower_or_digit(c) || c == '-'; });
}

}  // namespace

bool is_dns_label(std::string_view text) { return text.size() <= 63 && dns_label_form(text); }

bool is_dns_subdomain(std::string_view text) {
  if (text.empty() || text.size() > 253) return false;
  while (true) {
    const std::size_t dot = text.find('.');
    if (!dns_label_form(text.substr(0, dot))) return false;
    if (dot == std::string_view::npos) return true;
    text.remove_prefix(dot + 1);
  }
}

bool is_qualified_name(std::string_view text) { return text::validate_label_key(text).ok(); }

std::string qualified(const std::string& ns, const std::string& name) { return ns + '/' + name; }

}  // namespace berth::kinds
