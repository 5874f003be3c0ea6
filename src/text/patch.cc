#include "text/patch.h"

#include <algorithm>
#include <charconv>
#include <optional>

#include "text/builder.h"
#include "text/decode.h"
#include "text/escape.h"

namespace berth::text {

namespace {

using Tokens = std::vector<std::string>;
using TokenSpan = std::span<const std::string>;

constexpr std::size_t kDeepestPatch = 1000;  // as deep as a Builder goes

// Array indices are digits without leading zeros.
std::optional<std::size_t> array_index(std::string_view token) {
  if (token.empty() || token.size() > 9 || (token.size() > 1 && token[0] == '0')) {
    return std::nullopt;
  }
  std::size_t index = 0;
  const char* end = token.data() + token.size();
  const auto [stop, code] = std::from_chars(token.data(), end, index);
  if (code != std::errc() || stop != end) return std::nullopt;
  return index;
}

std::string shown_token(std::string_view token) {
  return "\"" + elide_middle(terminal_safe(token.substr(0, 256)), 60) + "\"";
}

std::size_t member_index(const Value& object, std::string_view key) {
  const auto members = object.members();
  const auto at =
      std::find_if(members.begin(), members.end(), [key](const Member& m) { return m.key == key; });
  return static_cast<std::size_t>(at - members.begin());
}

const Value* child(const Value& parent, std::string_view token) {
  if (parent.is_object()) return parent.find(token);
  const std::optional<std::size_t> index = array_index(token);
  if (!parent.is_array() || !index || *index >= parent.size()) return nullptr;
  return &parent.items()[*index];
}

// Applies operations to Values that share what they do not change. Values live in the inputs or
// in arena_, so nothing here owns them; run() copies the result out.
class Patcher {
 public:
  Patcher(const Value& target, const PatchOptions& options) : root_(target), options_(options) {}

  Status apply(const Value& operation);
  Result<Document> finish() const {
    Builder builder(options_.limits);
    builder.deep_copy(root_);
    if (builder.failed()) return builder.error().context("the patched document");
    return std::move(builder).finish();
  }

 private:
  enum class Edit : std::uint8_t { kAdd, kRemove, kReplace };

  Status apply_named(std::string_view op, const Value& operation, const Tokens& path);
  Status transfer(bool move, const Value& operation, const Tokens& path);
  Status test(const Value& operation, const Tokens& path);
  Status edit(Edit edit, const Tokens& path, const Value& value);
  Result<Value> edited(const Value& at, TokenSpan path, Edit edit, const Value& value);
  Result<Value> edited_object(const Value& at, std::string_view key, Edit edit, const Value& value);
  Result<Value> edited_array(const Value& at, std::string_view token, Edit edit,
                             const Value& value);
  Value with_child(const Value& parent, std::string_view token, const Value& value);
  Status charge(std::size_t nodes);
  Status measure(const Value& value, std::size_t depth);

  Value root_;
  const PatchOptions& options_;
  Arena arena_;
  std::size_t work_ = 0;
};

// Work is bounded like the result: a patch of copies of copies grows without end.
Status Patcher::charge(std::size_t nodes) {
  work_ += nodes + 1;
  const std::size_t limit = std::min<std::size_t>(options_.limits.max_nodes, 1u << 30) * 4;
  if (work_ <= limit) return {};
  return Error(Code::kExhausted, "the patch touches more than " + std::to_string(limit) +
                                     " values, which is the limit");
}

// Charges for a value that will hang at this depth. Keeps every tree within kDeepestPatch, so that
// recursion over it is safe.
Status Patcher::measure(const Value& value, std::size_t depth) {
  if (depth > kDeepestPatch) {
    return Error(Code::kExhausted,
                 "the result is nested deeper than " + std::to_string(kDeepestPatch) + " levels");
  }
  BERTH_CHECK(charge(0));
  for (const Value& item : value.items()) BERTH_CHECK(measure(item, depth + 1));
  for (const Member& member : value.members()) BERTH_CHECK(measure(member.value, depth + 1));
  return {};
}

Value Patcher::with_child(const Value& parent, std::string_view token, const Value& value) {
  if (parent.is_object()) {
    Member* members = arena_.allocate<Member>(parent.size());
    std::copy(parent.members().begin(), parent.members().end(), members);
    members[member_index(parent, token)].value = value;
    return Value::make_object({members, parent.size()}, parent.line());
  }
  Value* items = arena_.allocate<Value>(parent.size());
  std::copy(parent.items().begin(), parent.items().end(), items);
  items[array_index(token).value_or(0)] = value;
  return Value::make_array({items, parent.size()}, parent.line());
}

Result<Value> Patcher::edited_object(const Value& at, std::string_view key, Edit edit,
                                     const Value& value) {
  const std::size_t index = member_index(at, key);
  const bool exists = index < at.size();
  if (!exists && edit != Edit::kAdd) {
    return Error(Code::kNotFound, "there is no member " + shown_token(key));
  }
  if (edit != Edit::kRemove && exists) return with_child(at, key, value);
  const std::size_t size = edit == Edit::kRemove ? at.size() - 1 : at.size() + 1;
  Member* members = arena_.allocate<Member>(size);
  Member* out = members;
  for (const Member& member : at.members()) {
    if (edit != Edit::kRemove || member.key != key) *out++ = member;
  }
  if (edit == Edit::kAdd) *out = {arena_.copy(key), value};
  return Value::make_object({members, size}, at.line());
}

Result<Value> Patcher::edited_array(const Value& at, std::string_view token, Edit edit,
                                    const Value& value) {
  std::optional<std::size_t> index = array_index(token);
  if (edit == Edit::kAdd && token == "-") index = at.size();
  if (!index) {
    return invalid("found " + shown_token(token) + " for an array, want an index" +
                   (edit == Edit::kAdd ? " or -" : ""));
  }
  const std::size_t last = edit == Edit::kAdd ? at.size() + 1 : at.size();
  if (*index >= last) {
    return Error(Code::kNotFound, "index " + std::to_string(*index) + " is past an array of " +
                                      std::to_string(at.size()));
  }
  if (edit == Edit::kReplace) return with_child(at, token, value);
  const auto items = at.items();
  const std::size_t size = edit == Edit::kRemove ? at.size() - 1 : at.size() + 1;
  Value* to = arena_.allocate<Value>(size);
  Value* out = std::copy_n(items.begin(), *index, to);
  if (edit == Edit::kAdd) *out++ = value;
  const std::size_t resume = edit == Edit::kRemove ? *index + 1 : *index;
  std::copy(items.begin() + static_cast<std::ptrdiff_t>(resume), items.end(), out);
  return Value::make_array({to, size}, at.line());
}

Result<Value> Patcher::edited(const Value& at, TokenSpan path, Edit edit, const Value& value) {
  BERTH_CHECK(charge(at.size()));
  if (!at.is_object() && !at.is_array()) {
    return Error(Code::kNotFound, "there is no " + shown_token(path.front()) + " in a " +
                                      std::string(name(at.kind())));
  }
  if (path.size() == 1) {
    return at.is_object() ? edited_object(at, path.front(), edit, value)
                          : edited_array(at, path.front(), edit, value);
  }
  const Value* next = child(at, path.front());
  if (next == nullptr) return Error(Code::kNotFound, "there is no " + shown_token(path.front()));
  BERTH_TRY(const Value below, edited(*next, path.subspan(1), edit, value));
  return with_child(at, path.front(), below);
}

Status Patcher::edit(Edit edit, const Tokens& path, const Value& value) {
  // Deeper than any document we hold: no such place, and no recursion to look for it.
  if (path.size() > kDeepestPatch) return Error(Code::kNotFound, "the path is too deep");
  if (edit != Edit::kRemove) BERTH_CHECK(measure(value, path.size()));
  if (path.empty()) {
    root_ = edit == Edit::kRemove ? Value() : value;
    return {};
  }
  BERTH_TRY(root_, edited(root_, path, edit, value));
  return {};
}

Status Patcher::test(const Value& operation, const Tokens& path) {
  const Value* want = operation.find("value");
  if (want == nullptr) return invalid("\"value\" is missing");
  const Value* have = resolve_pointer(root_, path);
  if (have == nullptr) return Error(Code::kConflict, "nothing is there to compare");
  BERTH_CHECK(measure(*have, path.size()));
  if (equal(*have, *want)) return {};
  return Error(Code::kConflict, "found " + describe(*have) + ", want " + describe(*want));
}

Status Patcher::transfer(bool move, const Value& operation, const Tokens& path) {
  const Value* from = operation.find("from");
  if (from == nullptr || !from->is_string()) return invalid("\"from\" is missing or not a string");
  BERTH_TRY(const Tokens source, parse_pointer(from->string()));
  const Value* found = resolve_pointer(root_, source);
  if (found == nullptr) {
    return Error(Code::kNotFound, "there is nothing at " + shown_token(from->string()));
  }
  const Value value = *found;
  if (!move) return edit(Edit::kAdd, path, value);
  if (source == path) return {};
  if (path.size() > source.size() && std::equal(source.begin(), source.end(), path.begin())) {
    return invalid("a value cannot move into itself");
  }
  BERTH_CHECK(edit(Edit::kRemove, source, Value()));
  return edit(Edit::kAdd, path, value);
}

Status Patcher::apply_named(std::string_view op, const Value& operation, const Tokens& path) {
  if (op == "test") return test(operation, path);
  if (op == "remove") return edit(Edit::kRemove, path, Value());
  if (op == "move" || op == "copy") return transfer(op == "move", operation, path);
  if (op != "add" && op != "replace") {
    return invalid("found op " + shown_token(op) +
                   ", want add, remove, replace, move, copy or test");
  }
  const Value* value = operation.find("value");
  if (value == nullptr) return invalid("\"value\" is missing");
  return edit(op == "add" ? Edit::kAdd : Edit::kReplace, path, *value);
}

Status Patcher::apply(const Value& operation) {
  if (!operation.is_object()) return invalid("found " + describe(operation) + ", want an object");
  const Value* op = operation.find("op");
  const Value* path = operation.find("path");
  if (op == nullptr || !op->is_string()) return invalid("\"op\" is missing or not a string");
  if (path == nullptr || !path->is_string()) return invalid("\"path\" is missing or not a string");
  BERTH_TRY(const Tokens tokens, parse_pointer(path->string()));
  return apply_named(op->string(), operation, tokens);
}

std::string operation_name(std::size_t index, const Value& operation) {
  std::string out = "operation " + std::to_string(index);
  const Value* op = operation.find("op");
  const Value* path = operation.find("path");
  if (op == nullptr || path == nullptr) return out;
  const std::string both =
      std::string(op->string().substr(0, 32)) + " " + std::string(path->string().substr(0, 512));
  return out + " (" + elide_middle(terminal_safe(both), 80) + ")";
}

// Finds members by key; sorted when there are many, so that merging is not quadratic.
class MemberIndex {
 public:
  explicit MemberIndex(const Value& object) : object_(object) {
    if (object.size() <= 16) return;
    for (const Member& member : object.members()) sorted_.push_back(&member);
    std::sort(sorted_.begin(), sorted_.end(),
              [](const Member* a, const Member* b) { return a->key < b->key; });
  }

  const Value* find(std::string_view key) const {
    if (sorted_.empty()) return object_.find(key);
    const auto at =
        std::lower_bound(sorted_.begin(), sorted_.end(), key,
                         [](const Member* m, std::string_view k) { return m->key < k; });
    return at != sorted_.end() && (*at)->key == key ? &(*at)->value : nullptr;
  }

 private:
  const Value& object_;
  std::vector<const Member*> sorted_;
};

// Recursive to the depth of the patch, which a Builder has bounded.
void merge_into(Builder& out, const Value& target, const Value& patch) {
  if (out.failed()) return;
  if (!patch.is_object()) return out.deep_copy(patch);
  const MemberIndex changes(patch);
  const MemberIndex existing(target);
  out.begin_object(target.is_object() ? target.line() : patch.line());
  for (const Member& member : target.members()) {
    const Value* change = changes.find(member.key);
    if (change != nullptr && change->is_null()) continue;
    out.key(out.copy(member.key), member.value.line());
    if (change == nullptr) {
      out.deep_copy(member.value);
    } else {
      merge_into(out, member.value, *change);
    }
    if (out.failed()) return;
  }
  for (const Member& member : patch.members()) {
    if (member.value.is_null() || existing.find(member.key) != nullptr) continue;
    out.key(out.copy(member.key), member.value.line());
    merge_into(out, Value(), member.value);
    if (out.failed()) return;
  }
  out.end();
}

}  // namespace

Result<std::vector<std::string>> parse_pointer(std::string_view pointer) {
  Tokens tokens;
  if (pointer.empty()) return tokens;
  if (pointer.front() != '/') {
    return invalid("found pointer " + shown_token(pointer) + ", want it empty or starting with /");
  }
  for (std::size_t i = 0; i < pointer.size(); ++i) {
    if (pointer[i] == '/') {
      tokens.emplace_back();
    } else if (pointer[i] != '~') {
      tokens.back() += pointer[i];
    } else if (i + 1 < pointer.size() && (pointer[i + 1] == '0' || pointer[i + 1] == '1')) {
      tokens.back() += pointer[++i] == '0' ? '~' : '/';
    } else {
      return invalid("found pointer " + shown_token(pointer) + ", want ~0 or ~1 after ~");
    }
  }
  return tokens;
}

std::string print_pointer(const std::vector<std::string>& tokens) {
  std::string out;
  for (const std::string& token : tokens) {
    out += '/';
    for (const char c : token) {
      if (c == '~') {
        out += "~0";
      } else if (c == '/') {
        out += "~1";
      } else {
        out += c;
      }
    }
  }
  return out;
}

const Value* resolve_pointer(const Value& root, const std::vector<std::string>& tokens) {
  const Value* at = &root;
  for (const std::string& token : tokens) {
    at = child(*at, token);
    if (at == nullptr) return nullptr;
  }
  return at;
}

Result<Document> apply_json_patch(const Value& target, const Value& patch,
                                  const PatchOptions& options) {
  if (!patch.is_array())
    return invalid("found " + describe(patch) + ", want an array of operations");
  if (patch.size() > options.max_operations) {
    return Error(Code::kExhausted, "found " + std::to_string(patch.size()) +
                                       " operations, want at most " +
                                       std::to_string(options.max_operations));
  }
  Patcher patcher(target, options);
  for (std::size_t i = 0; const Value& operation : patch.items()) {
    if (Status done = patcher.apply(operation); !done.ok()) {
      return std::move(done).error().context(operation_name(i, operation));
    }
    ++i;
  }
  return patcher.finish();
}

Result<Document> apply_merge_patch(const Value& target, const Value& patch,
                                   const PatchOptions& options) {
  Builder builder(options.limits);
  merge_into(builder, target, patch);
  if (builder.failed()) return builder.error().context("the patched document");
  return std::move(builder).finish();
}

}  // namespace berth::text
