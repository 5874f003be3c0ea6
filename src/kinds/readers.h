// Small readers shared by the codecs of this folder; see text/decode.h for how they are named.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "model/spec.h"
#include "text/decode.h"

namespace berth::kinds {

// A vector whose elements have a reader of their own: field<&T::x, list_of<read_x>>("x").
template <auto Reader>
inline constexpr auto list_of = [](const text::Value& v, auto& out, text::Decoder& d) {
  if (!v.is_array()) return d.mismatch(v, "an array");
  out.clear();
  for (std::size_t i = 0; const text::Value& item : v.items()) {
    text::Decoder::Step step(d, i++);
    typename std::remove_reference_t<decltype(out)>::value_type value{};
    Reader(item, value, d);
    out.push_back(std::move(value));
  }
};

// A table of its own for one member: field<&T::x, object_of<kXFields>>("x").
template <const auto& Table>
inline constexpr auto object_of = [](const text::Value& v, auto& out, text::Decoder& d) {
  text::decode_object(v, Table, out, d);
};

// True when the field was there, whatever it holds.
inline constexpr auto is_present = [](const text::Value&, bool& out, text::Decoder&) {
  out = true;
};

// Reads the fields of an object that the cluster itself writes (status): what is not in the table
// is not the user's doing, so nothing unknown warns there.
template <class T>
void decode_lenient(const text::Value& v, std::span<const text::Field<T>> fields, T& out,
                    text::Decoder& d) {
  if (!v.is_object()) return d.mismatch(v, "an object");
  for (const text::Field<T>& f : fields) {
    const text::Value* found = v.find(f.name);
    if (found == nullptr || found->is_null()) continue;
    text::Decoder::Step step(d, f.name);
    f.read(*found, out, d);
  }
}
template <class T, std::size_t N>
void decode_lenient(const text::Value& v, const text::Field<T> (&fields)[N], T& out,
                    text::Decoder& d) {
  decode_lenient<T>(v, std::span<const text::Field<T>>(fields), out, d);
}

// The word of a table for text::one_of that stands for the value; its first where none does.
template <class E, std::size_t N>
std::string_view word_of(const std::pair<std::string_view, E> (&words)[N], E value) {
  for (const auto& [word, v] : words) {
    if (v == value) return word;
  }
  return words[0].first;
}

// One resource amount in the units of model/spec.h: cpu in milli, others whole, both rounded up.
// Negative amounts and amounts above kMaxAmount are errors.
inline constexpr std::int64_t kMaxAmount = std::int64_t{1} << 53;
bool to_amount(const text::Value& at, std::string_view resource, const text::Quantity& quantity,
               std::int64_t& out, text::Decoder& d);
void read_amounts(const text::Value& v, model::Amounts& out, text::Decoder& d);

std::vector<std::string_view> split(std::string_view text, std::string_view separator);
std::string_view trim(std::string_view text);
// Decimal digits only; false when it is anything else or does not fit.
bool parse_int(std::string_view text, std::int64_t& out);
// "x" with quotes, cut and made safe to print.
std::string quoted(std::string_view text);

}  // namespace berth::kinds
