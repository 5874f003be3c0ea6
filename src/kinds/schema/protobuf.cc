// The table: "#section apiVersion" opens a group, then a line for each message (a line that begins
// with a space goes on with the last one): its name, then NUMBER:NAME:TYPE for each field.
//
//   s string  i integer  b boolean  y bytes  t Time  u MicroTime  q Quantity  o IntOrString
//   d double  r raw JSON  e strings in a message  Name or section.Name: a message  [T] list  {T}
//   map by string; a schema or, in its place, A: a list of them, O: a boolean, S: a list of strings
//   "!" after a type: written even when it is zero; an empty NAME: the message's fields are ours
#include "kinds/schema/protobuf.h"

#include <algorithm>
#include <bit>
#include <charconv>
#include <cstdint>
#include <map>
#include <vector>

#include "base/utf8.h"
#include "kinds/schema/protobuf_table.h"
#include "text/base64.h"
#include "text/json.h"
#include "text/json_writer.h"
#include "text/rfc3339.h"

namespace berth::sim {

namespace {

constexpr int kPbDeepest = 64;

struct PbField {
  std::string_view name, type;  // type without brackets and "!"
  bool repeated = false, map = false, keep_zero = false;
};
struct PbMessage {
  std::string_view section;
  std::map<std::uint32_t, PbField> fields;
};
struct PbTable {
  std::map<std::string, PbMessage, std::less<>> messages;           // by "section.Name"
  std::map<std::string_view, std::string_view> section_of_version;  // by apiVersion
};

std::string_view pb_next_word(std::string_view& text, char end) {
  const std::size_t at = std::min(text.find(end), text.size());
  const std::string_view word = text.substr(0, at);
  text.remove_prefix(std::min(at + 1, text.size()));
  return word;
}

void read_pb_fields(std::string_view words, PbMessage& into) {
  while (!words.empty()) {
    std::string_view word = pb_next_word(words, ' ');
    if (word.empty()) continue;
    const std::string_view digits = pb_next_word(word, ':');
    std::uint32_t number = 0;
    std::from_chars(digits.data(), digits.data() + digits.size(), number);
    PbField field;
    field.name = pb_next_word(word, ':');
    field.keep_zero = word.ends_with('!');
    if (field.keep_zero) word.remove_suffix(1);
    field.repeated = word.starts_with('[');
    field.map = word.starts_with('{');
    field.type = field.repeated || field.map ? word.substr(1, word.size() - 2) : word;
    into.fields[number] = field;
  }
}

void read_pb_table(std::string_view text, PbTable& into) {
  std::string_view section;
  PbMessage* last = nullptr;
  while (!text.empty()) {
    std::string_view line = pb_next_word(text, '\n');
    if (line.empty()) continue;
    if (line.front() == '#') {
      line.remove_prefix(1);
      section = pb_next_word(line, ' ');
      into.section_of_version[line] = section;
    } else if (line.front() == ' ') {
      if (last != nullptr) read_pb_fields(line, *last);
    } else {
      const std::string_view name = pb_next_word(line, ' ');
      last = &into.messages[std::string(section) + "." + std::string(name)];
      last->section = section;
      read_pb_fields(line, *last);
    }
  }
}

const PbTable& pb_table() {
  static const PbTable table = [] {
    PbTable out;
    read_pb_table(kProtobufCore, out);
    read_pb_table(kProtobufGroups, out);
    return out;
  }();
  return table;
}

Error bad_protobuf(std::string what) {
  return {Code::kInvalid, "the body is not protobuf of Kubernetes: " + std::move(what)};
}

// One field as it stands in the bytes.
struct PbEntry {
  std::uint32_t number = 0;
  std::uint64_t integer = 0;
  std::string_view bytes;
  bool is_bytes = false;
};

bool read_varint(std::string_view& bytes, std::uint64_t& out) {
  out = 0;
  for (int shift = 0; shift < 64 && !bytes.empty(); shift += 7) {
    const auto byte = static_cast<unsigned char>(bytes.front());
    bytes.remove_prefix(1);
    out |= static_cast<std::uint64_t>(byte & 0x7fU) << shift;
    if ((byte & 0x80U) == 0) return true;
  }
  return false;
}

bool read_entry(std::string_view& bytes, PbEntry& out) {
  std::uint64_t key = 0;
  if (!read_varint(bytes, key) || key >> 3U == 0 || key >> 3U > 0x1fff'ffffU) return false;
  out.number = static_cast<std::uint32_t>(key >> 3U);
  const std::uint64_t wire = key & 7U;
  if (wire == 0) return read_varint(bytes, out.integer);
  std::uint64_t size = wire == 1 ? 8 : 4;
  if (wire == 2 && !read_varint(bytes, size)) return false;
  if ((wire != 1 && wire != 2 && wire != 5) || size > bytes.size()) return false;
  out.is_bytes = wire == 2;
  out.bytes = bytes.substr(0, static_cast<std::size_t>(size));
  bytes.remove_prefix(static_cast<std::size_t>(size));
  return true;
}

// In order of field numbers; equal ones in the order they came.
Result<std::vector<PbEntry>> entries_of(std::string_view bytes) {
  std::vector<PbEntry> out;
  while (!bytes.empty()) {
    PbEntry entry;
    if (!read_entry(bytes, entry)) return bad_protobuf("it ends inside of a field");
    out.push_back(entry);
  }
  std::stable_sort(out.begin(), out.end(),
                   [](const PbEntry& a, const PbEntry& b) { return a.number < b.number; });
  return out;
}

// The last field of that number in a small message; an empty entry when there is none.
Result<PbEntry> entry_of(std::string_view bytes, std::uint32_t number) {
  BERTH_TRY(const std::vector<PbEntry> entries, entries_of(bytes));
  PbEntry out;
  for (const PbEntry& entry : entries) {
    if (entry.number == number) out = entry;
  }
  return out;
}

class PbWriter {
 public:
  explicit PbWriter(text::JsonWriter& out) : out_(out) {}

  // The members of a message, without braces.
  Status members(const PbMessage& message, std::string_view bytes, int depth);

 private:
  Status field(const PbMessage& message, const PbField& field, const PbEntry* first,
               const PbEntry* end, int depth);
  Status value(const PbMessage& owner, std::string_view type, const PbEntry& entry, int depth);
  Status map_of(const PbMessage& owner, std::string_view type, const PbEntry* first,
                const PbEntry* end, int depth);
  Status time(std::string_view bytes, bool micro);
  Status int_or_string(std::string_view bytes);
  Status raw_json(std::string_view bytes);
  Status number(std::string_view bytes);
  Status schema_or(const PbMessage& owner, char other, std::string_view bytes, int depth);

  text::JsonWriter& out_;
};

const PbMessage* message_named(const PbMessage& owner, std::string_view type) {
  const auto& messages = pb_table().messages;
  const auto found = type.find('.') == std::string_view::npos
                         ? messages.find(std::string(owner.section) + "." + std::string(type))
                         : messages.find(type);
  return found == messages.end() ? nullptr : &found->second;
}

bool is_message(std::string_view type) { return type.size() > 1; }

// Times without a value are left out; raw JSON and Quantities too.
bool pb_left_out(const PbField& field, const PbEntry& entry) {
  if (field.repeated || field.map || field.keep_zero || is_message(field.type)) return false;
  const char type = field.type.front();
  if (type == 'i' || type == 'b') return entry.integer == 0;
  return type != 'o' && type != 'q' && entry.bytes.empty();
}

Status PbWriter::members(const PbMessage& message, std::string_view bytes, int depth) {
  if (depth > kPbDeepest) return bad_protobuf("more than 64 messages inside of each other");
  BERTH_TRY(const std::vector<PbEntry> entries, entries_of(bytes));
  for (std::size_t first = 0; first < entries.size();) {
    std::size_t end = first + 1;
    while (end < entries.size() && entries[end].number == entries[first].number) ++end;
    const auto known = message.fields.find(entries[first].number);
    if (known != message.fields.end()) {
      BERTH_CHECK(
          field(message, known->second, entries.data() + first, entries.data() + end, depth));
    }
    first = end;
  }
  return {};
}

Status PbWriter::field(const PbMessage& message, const PbField& field, const PbEntry* first,
                       const PbEntry* end, int depth) {
  const PbEntry& last = *(end - 1);
  if (field.name.empty()) {
    const PbMessage* inlined = message_named(message, field.type);
    if (inlined == nullptr || !last.is_bytes) return bad_protobuf("a message is missing");
    return members(*inlined, last.bytes, depth + 1);
  }
  if (pb_left_out(field, last)) return {};
  out_.key(field.name);
  if (field.map) return map_of(message, field.type, first, end, depth);
  if (!field.repeated)
    return value(message, field.type, last, depth).context(std::string(field.name));
  return out_.array([&]() -> Status {
    for (const PbEntry* entry = first; entry != end; ++entry) {
      BERTH_CHECK(value(message, field.type, *entry, depth).context(std::string(field.name)));
    }
    return {};
  });
}

Status PbWriter::map_of(const PbMessage& owner, std::string_view type, const PbEntry* first,
                        const PbEntry* end, int depth) {
  // A key that comes twice counts as it came last.
  std::map<std::string_view, PbEntry> values;
  for (const PbEntry* pair = first; pair != end; ++pair) {
    BERTH_TRY(const PbEntry key, entry_of(pair->bytes, 1));
    BERTH_TRY(PbEntry content, entry_of(pair->bytes, 2));
    if (content.number == 0) content.is_bytes = type != "i" && type != "b";
    if (!is_utf8(key.bytes)) return bad_protobuf("a key is not UTF-8");
    values[key.bytes] = content;
  }
  return out_.object([&]() -> Status {
    for (const auto& [key, content] : values) {
      out_.key(key);
      BERTH_CHECK(value(owner, type, content, depth).context(std::string(key)));
    }
    return {};
  });
}

Status PbWriter::value(const PbMessage& owner, std::string_view type, const PbEntry& entry,
                       int depth) {
  const bool scalar = type == "i" || type == "b" || type == "d";
  if (scalar == entry.is_bytes) return bad_protobuf("a field has another type");
  if (is_message(type)) {
    const PbMessage* message = message_named(owner, type);
    if (message == nullptr) return bad_protobuf("no message " + std::string(type));
    return out_.object([&] { return members(*message, entry.bytes, depth + 1); });
  }
  switch (type.front()) {
    case 'i':
      out_.value(static_cast<std::int64_t>(entry.integer));
      return {};
    case 'b':
      out_.value(entry.integer != 0);
      return {};
    case 'y':
      out_.value(text::base64_encode(entry.bytes));
      return {};
    case 't':
    case 'u':
      return time(entry.bytes, type == "u");
    case 'q': {
      BERTH_TRY(const PbEntry quantity, entry_of(entry.bytes, 1));
      if (!is_utf8(quantity.bytes)) return bad_protobuf("a quantity is not UTF-8");
      out_.value(quantity.bytes.empty() ? std::string_view("0") : quantity.bytes);
      return {};
    }
    case 'd':
      return number(entry.bytes);
    case 'A':
    case 'O':
    case 'S':
      return schema_or(owner, type.front(), entry.bytes, depth + 1);
    case 'o':
      return int_or_string(entry.bytes);
    case 'r':
      return raw_json(entry.bytes);
    case 'e': {
      BERTH_TRY(const std::vector<PbEntry> items, entries_of(entry.bytes));
      for (const PbEntry& item : items) {
        if (!is_utf8(item.bytes)) return bad_protobuf("a string is not UTF-8");
      }
      out_.array([&] {
        for (const PbEntry& item : items) {
          if (item.number == 1) out_.value(item.bytes);
        }
      });
      return {};
    }
    default:
      if (!is_utf8(entry.bytes)) return bad_protobuf("a string is not UTF-8");
      out_.value(entry.bytes);
      return {};
  }
}

Status PbWriter::time(std::string_view bytes, bool micro) {
  BERTH_TRY(const PbEntry seconds, entry_of(bytes, 1));
  BERTH_TRY(const PbEntry nanos, entry_of(bytes, 2));
  const auto s = static_cast<std::int64_t>(seconds.integer);
  const auto ns = static_cast<std::int64_t>(nanos.integer);
  constexpr std::int64_t kPbSeconds = 9'000'000'000;  // what nanoseconds in 64 bits can hold
  if (s < -kPbSeconds || s > kPbSeconds || ns < 0 || ns >= 1'000'000'000) {
    return bad_protobuf("a time is out of range");
  }
  std::string text = text::format_rfc3339(s * 1'000'000'000);
  if (micro) {
    std::string fraction = std::to_string(1'000'000 + ns / 1000);
    fraction.front() = '.';
    text.insert(text.size() - 1, fraction);
  }
  out_.value(text);
  return {};
}

Status PbWriter::int_or_string(std::string_view bytes) {
  BERTH_TRY(const PbEntry type, entry_of(bytes, 1));
  BERTH_TRY(const PbEntry integer, entry_of(bytes, 2));
  BERTH_TRY(const PbEntry text, entry_of(bytes, 3));
  if (type.integer == 0) {
    out_.value(static_cast<std::int64_t>(integer.integer));
  } else {
    if (!is_utf8(text.bytes)) return bad_protobuf("a string is not UTF-8");
    out_.value(text.bytes);
  }
  return {};
}

Status PbWriter::raw_json(std::string_view bytes) {
  BERTH_TRY(const PbEntry raw, entry_of(bytes, 1));
  if (raw.bytes.empty()) {
    out_.null();
    return {};
  }
  BERTH_TRY(const text::Document document, text::parse_json(std::string(raw.bytes)));
  out_.value(document.root());
  return {};
}

Status PbWriter::number(std::string_view bytes) {
  if (bytes.size() != 8) return bad_protobuf("a field has another type");
  std::uint64_t bits = 0;
  for (std::size_t i = 8; i-- > 0;) bits = bits << 8U | static_cast<unsigned char>(bytes[i]);
  const auto value = std::bit_cast<double>(bits);
  if (value - value != 0) return bad_protobuf("a number is not finite");
  out_.value(value);
  return {};
}

// What JSON writes as a schema, or as something else in its place.
Status PbWriter::schema_or(const PbMessage& owner, char other, std::string_view bytes, int depth) {
  if (depth > kPbDeepest) return bad_protobuf("more than 64 messages inside of each other");
  const PbMessage* schema = message_named(owner, "JSONSchemaProps");
  if (schema == nullptr) return bad_protobuf("a message is missing");
  BERTH_TRY(const std::vector<PbEntry> entries, entries_of(bytes));
  const std::uint32_t of_schema = other == 'O' ? 2 : 1;
  std::vector<const PbEntry*> others;
  const PbEntry* one = nullptr;
  for (const PbEntry& entry : entries) {
    if (entry.number == of_schema) one = &entry;
    if (entry.number == 3 - of_schema) others.push_back(&entry);
    if (entry.is_bytes == (other == 'O' && entry.number == 1)) {
      return bad_protobuf("a field has another type");
    }
  }
  const bool listed = other != 'O' && !others.empty();
  if (one != nullptr && !listed) {
    return out_.object([&] { return members(*schema, one->bytes, depth); });
  }
  if (other == 'O') {
    out_.value(!others.empty() && others.back()->integer != 0);
    return {};
  }
  return out_.array([&]() -> Status {
    for (const PbEntry* entry : others) {
      const std::string_view type = other == 'A' ? "JSONSchemaProps" : "s";
      BERTH_CHECK(value(owner, type, *entry, depth));
    }
    return {};
  });
}

}  // namespace

Result<std::string> protobuf_to_json(std::string_view body) {
  constexpr std::string_view kMagic("k8s\0", 4);
  if (!body.starts_with(kMagic)) return bad_protobuf("it does not begin with k8s");
  body.remove_prefix(kMagic.size());
  BERTH_TRY(const PbEntry type, entry_of(body, 1));
  BERTH_TRY(const PbEntry raw, entry_of(body, 2));
  BERTH_TRY(const PbEntry encoding, entry_of(body, 3));
  if (!encoding.bytes.empty()) return bad_protobuf("its encoding is not known");
  BERTH_TRY(const PbEntry version, entry_of(type.bytes, 1));
  BERTH_TRY(const PbEntry kind, entry_of(type.bytes, 2));

  if (!is_utf8(version.bytes) || !is_utf8(kind.bytes)) return bad_protobuf("a name is not UTF-8");
  const PbTable& table = pb_table();
  const auto section = table.section_of_version.find(version.bytes);
  const PbMessage* message = nullptr;
  for (const std::string_view place :
       {section == table.section_of_version.end() ? std::string_view("meta") : section->second,
        std::string_view("meta")}) {
    const auto found = table.messages.find(std::string(place) + "." + std::string(kind.bytes));
    if (message == nullptr && found != table.messages.end()) message = &found->second;
  }
  if (message == nullptr) {
    return bad_protobuf("kind " + std::string(kind.bytes) + " of " + std::string(version.bytes) +
                        " is not built in; send it as application/json");
  }
  text::JsonWriter out;
  BERTH_CHECK(out.object([&] {
    out.field("apiVersion", version.bytes);
    out.field("kind", kind.bytes);
    return PbWriter(out).members(*message, raw.bytes, 0);
  }));
  return std::move(out).take();
}

}  // namespace berth::sim
