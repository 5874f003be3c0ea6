// Typed structs from Values, by a table of fields that accounts for every field it meets.
//
//   struct Port { std::string name; int number = 0; };
//   constexpr Field<Port> kPortFields[] = {
//       field<&Port::name>("name"),
//       required(field<&Port::number, int_between<1, 65535>>("containerPort")),
//       skip<Port>("protocol"),  // known, of no interest
//   };
//   void decode(const Value& v, Port& out, Decoder& d) { decode_object(v, kPortFields, out, d); }
//
// Any type with a decode() in its namespace (or this one) can be a member, a vector element or a
// map value. A field that is null counts as absent. A wrong value leaves its member untouched and
// the rest is still read, so that one pass reports everything. An unknown field is a warning (an
// error while the Decoder is strict), a wrong or a missing one an error. Unit of memory: the path
// is a stack of views; text is made only for an issue, and at most Decoder::Options::max_issues are
// kept (all are counted).
#pragma once

#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "base/result.h"
#include "text/quantity.h"
#include "text/value.h"

namespace berth::text {

struct Issue {
  enum Severity : std::uint8_t { kWarning, kError };
  Severity severity = kError;
  std::string path;     // spec.containers[0].resources.requests["nvidia.com/gpu"]
  int line = 0;         // 0 when unknown
  std::string found;    // "string \"x\""
  std::string allowed;  // "an integer 0..65535"; may be empty

  std::string message() const;  // line 7: spec.x: found string "x", want an integer 0..65535
};

class Decoder {
 public:
  struct Options {
    std::size_t max_issues = 100;
  };
  Decoder() = default;
  explicit Decoder(Options options) : options_(options) {}

  void error(const Value& at, std::string found, std::string allowed);
  void warning(const Value& at, std::string found, std::string allowed);
  // error() with what the value is: found string "x", want <allowed>.
  void mismatch(const Value& at, std::string allowed);

  const std::vector<Issue>& issues() const { return issues_; }  // in the order of the text
  std::size_t errors() const { return errors_; }                // also those not kept
  std::size_t warnings() const { return warnings_; }
  bool ok() const { return errors_ == 0; }
  std::string path() const;  // "" at the root

  // All errors in one, for callers that cannot go on. Only when !ok().
  Error to_error() const;

  // While it lives, an unknown field is an error.
  class [[nodiscard]] Strict {
   public:
    explicit Strict(Decoder& decoder) : decoder_(decoder), before_(decoder.strict_) {
      decoder_.strict_ = true;
    }
    ~Strict() { decoder_.strict_ = before_; }
    Strict(const Strict&) = delete;
    Strict& operator=(const Strict&) = delete;

   private:
    Decoder& decoder_;
    bool before_;
  };
  bool strict() const { return strict_; }

  // One step of the path while it lives.
  class [[nodiscard]] Step {
   public:
    Step(Decoder& decoder, std::string_view key) : decoder_(decoder) {
      decoder_.path_.push_back({key, 0, false});
    }
    Step(Decoder& decoder, std::size_t index) : decoder_(decoder) {
      decoder_.path_.push_back({{}, index, true});
    }
    ~Step() { decoder_.path_.pop_back(); }
    Step(const Step&) = delete;
    Step& operator=(const Step&) = delete;

   private:
    Decoder& decoder_;
  };

 private:
  struct Part {
    std::string_view key;
    std::size_t index;
    bool is_index;
  };
  void add(Issue::Severity severity, int line, std::string found, std::string allowed);

  Options options_;
  bool strict_ = false;
  std::vector<Part> path_;
  std::vector<Issue> issues_;
  std::size_t errors_ = 0;
  std::size_t warnings_ = 0;
};

// What a value is, for messages: string "x", number 3, array of 2. Cut to about 60 characters.
std::string describe(const Value& value);

enum class Need : std::uint8_t { kOptional, kRequired };

template <class T>
struct Field {
  std::string_view name;
  void (*read)(const Value&, T&, Decoder&) = nullptr;
  Need need = Need::kOptional;
};

// ---- scalars -------------------------------------------------------------------------------
void decode(const Value& v, std::string& out, Decoder& d);
void decode(const Value& v, bool& out, Decoder& d);
void decode(const Value& v, double& out, Decoder& d);
void decode(const Value& v, Quantity& out, Decoder& d);  // a string or a number

// An integer from low to high; false and an issue when it is not.
bool decode_int(const Value& v, std::int64_t low, std::int64_t high, std::int64_t& out, Decoder& d);

// A number or a text, as ports and percentages are given.
struct IntOrString {
  bool is_string = false;
  std::int32_t number = 0;
  std::string text;
  friend bool operator==(const IntOrString&, const IntOrString&) = default;
};
void decode(const Value& v, IntOrString& out, Decoder& d);

template <class T>
concept PlainInt = std::is_integral_v<T> && !std::is_same_v<T, bool> && sizeof(T) <= 8 &&
                   (std::is_signed_v<T> || sizeof(T) < 8);

// Any integer type up to int64 (and uint32), checked against its range.
template <PlainInt T>
void decode(const Value& v, T& out, Decoder& d) {
  std::int64_t wide = 0;
  if (decode_int(v, std::numeric_limits<T>::min(), std::numeric_limits<T>::max(), wide, d)) {
    out = static_cast<T>(wide);
  }
}

// ---- containers ----------------------------------------------------------------------------
template <class T>
void decode(const Value& v, std::optional<T>& out, Decoder& d) {
  const std::size_t before = d.errors();
  T value{};
  decode(v, value, d);
  if (d.errors() == before) out = std::move(value);
}

template <class T>
void decode(const Value& v, std::vector<T>& out, Decoder& d) {
  if (!v.is_array()) return d.mismatch(v, "an array");
  out.clear();
  out.reserve(v.size());
  for (std::size_t i = 0; const Value& item : v.items()) {
    Decoder::Step step(d, i++);
    T value{};
    decode(item, value, d);
    out.push_back(std::move(value));
  }
}

// A null in a map reads as an empty value, as it does in Kubernetes.
template <class T, class Compare>
void decode(const Value& v, std::map<std::string, T, Compare>& out, Decoder& d) {
  if (!v.is_object()) return d.mismatch(v, "an object");
  out.clear();
  for (const Member& member : v.members()) {
    Decoder::Step step(d, member.key);
    T value{};
    if (!member.value.is_null()) decode(member.value, value, d);
    out.insert_or_assign(std::string(member.key), std::move(value));
  }
}

// ---- readers to name in a field ------------------------------------------------------------
template <std::int64_t Low, std::int64_t High, class T>
void int_between_impl(const Value& v, T& out, Decoder& d) {
  std::int64_t wide = 0;
  if (decode_int(v, Low, High, wide, d)) out = static_cast<T>(wide);
}
template <std::int64_t Low, std::int64_t High>
inline constexpr auto int_between =
    [](const Value& v, auto& out, Decoder& d) { int_between_impl<Low, High>(v, out, d); };

void read_time_ns(const Value& v, std::int64_t& out, Decoder& d);         // RFC 3339
void read_duration_ns(const Value& v, std::int64_t& out, Decoder& d);     // "1h30m"
void read_quantity_value(const Value& v, std::int64_t& out, Decoder& d);  // whole units
void read_quantity_milli(const Value& v, std::int64_t& out, Decoder& d);  // thousandths
void read_json(const Value& v, std::string& out, Decoder& d);             // any value, as JSON text

// One of a few words: static constexpr std::pair<std::string_view, Color> kColors[] = {...};
// field<&T::color, one_of<kColors>>("color").
template <class E>
void decode_word(const Value& v, std::span<const std::pair<std::string_view, E>> words, E& out,
                 Decoder& d) {
  if (v.is_string()) {
    for (const auto& [word, value] : words) {
      if (word == v.string()) {
        out = value;
        return;
      }
    }
  }
  std::string allowed = words.size() == 1 ? "" : "one of ";
  for (bool first = true; const auto& [word, value] : words) {
    if (word.empty()) continue;  // read, not advised
    allowed += first ? "" : ", ";
    allowed += word;
    first = false;
  }
  d.mismatch(v, std::move(allowed));
}
template <const auto& Words>
inline constexpr auto one_of = [](const Value& v, auto& out, Decoder& d) {
  using E = std::remove_reference_t<decltype(out)>;
  decode_word<E>(v, Words, out, d);
};

// ---- tables --------------------------------------------------------------------------------
namespace internal {
struct DefaultReader {
  template <class M>
  constexpr void operator()(const Value& v, M& out, Decoder& d) const {
    decode(v, out, d);
  }
};
template <class P>
struct MemberOf;
template <class T, class M>
struct MemberOf<M T::*> {
  using Class = T;
};
void unknown_field(const Member& member, std::span<const std::string_view> names, Decoder& d);
void missing_field(const Value& object, std::string_view name, Decoder& d);
}  // namespace internal

// Reads into a member; Reader(const Value&, M&, Decoder&) when decode() is not what is wanted.
template <auto MemberPtr, auto Reader = internal::DefaultReader{}>
constexpr auto field(std::string_view name) {
  using T = typename internal::MemberOf<decltype(MemberPtr)>::Class;
  return Field<T>{name, [](const Value& v, T& out, Decoder& d) { Reader(v, out.*MemberPtr, d); }};
}

// Reads with the whole struct at hand.
template <class T>
constexpr Field<T> custom(std::string_view name, void (*read)(const Value&, T&, Decoder&)) {
  return {name, read};
}

template <class T>
constexpr Field<T> required(Field<T> f) {
  f.need = Need::kRequired;
  return f;
}

// Known, not read, no warning.
template <class T>
constexpr Field<T> skip(std::string_view name) {
  return {name, [](const Value&, T&, Decoder&) {}};
}

constexpr std::size_t kMaxFields = 128;  // in one table

// Fields are looked for from where the last one was found, so tables in the order of the text are
// quick; otherwise linear in the table.
template <class T>
void decode_object(const Value& v, std::span<const Field<T>> fields, T& out, Decoder& d) {
  if (!v.is_object()) return d.mismatch(v, "an object");
  bool seen[kMaxFields] = {};
  std::size_t next = 0;
  for (const Member& member : v.members()) {
    std::size_t tried = 0;
    while (tried < fields.size() && fields[next].name != member.key) {
      next = next + 1 < fields.size() ? next + 1 : 0;
      ++tried;
    }
    if (tried == fields.size()) {
      std::vector<std::string_view> names;
      for (const Field<T>& f : fields) names.push_back(f.name);
      internal::unknown_field(member, names, d);
      continue;
    }
    if (member.value.is_null()) continue;
    if (next < kMaxFields) seen[next] = true;
    Decoder::Step step(d, member.key);
    fields[next].read(member.value, out, d);
  }
  for (std::size_t i = 0; i < fields.size() && i < kMaxFields; ++i) {
    if (fields[i].need == Need::kRequired && !seen[i]) {
      internal::missing_field(v, fields[i].name, d);
    }
  }
}
template <class T, std::size_t N>
void decode_object(const Value& v, const Field<T> (&fields)[N], T& out, Decoder& d) {
  static_assert(N <= kMaxFields);
  decode_object<T>(v, std::span<const Field<T>>(fields), out, d);
}

// An object whose fields belong to the same struct: inlined<kSpecFields>("spec").
template <const auto& Table>
constexpr auto inlined(std::string_view name) {
  return []<class T, std::size_t N>(const Field<T>(&)[N], std::string_view n) {
    return Field<T>{n, [](const Value& v, T& out, Decoder& d) { decode_object(v, Table, out, d); }};
  }(Table, name);
}

// The value of a whole document, or all of its errors in one. Warnings are dropped: use a Decoder
// where they matter.
template <class T>
Result<T> decode_all(const Value& v) {
  Decoder d;
  T out{};
  decode(v, out, d);
  if (!d.ok()) return d.to_error();
  return out;
}

}  // namespace berth::text
