#include "text/patch.h"

#include <algorithm>
#include <charconv>
#include <deque>
#include <optional>
#include <utility>

#include "text/builder.h"
#include "text/decode.h"
#include "text/escape.h"
#include "text/members.h"

namespace berth::text {

namespace {

using Tokens = std::vector<std::string>;

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

const Value* child(const Value& parent, std::string_view token) {
  if (parent.is_object()) return parent.find(token);
  const std::optional<std::size_t> index = array_index(token);
  if (!parent.is_array() || !index || *index >= parent.size()) return nullptr;
  return &parent.items()[*index];
}

// A value while a patch is applied: as it came, or opened for changes. Opened once, a container
// costs its members; after that an operation costs a logarithm (objects) or a piece (arrays).
struct Open;
struct Node {
  Value value = {};
  Open* open = nullptr;    // owned by the Patcher, so that nothing is freed by recursion
  std::size_t height = 0;  // levels of it at most; 0: nobody asked yet
};

// Items of an array in pieces, so that inserting and removing move one piece and not all of it.
class Pieces {
 public:
  static constexpr std::size_t kPiece = 512;

  explicit Pieces(std::span<const Value> items) : size_(items.size()) {
    for (std::size_t i = 0; i < items.size(); i += kPiece / 2) {
      std::vector<Node>& piece = pieces_.emplace_back();
      for (const Value& item : items.subspan(i, std::min(kPiece / 2, items.size() - i))) {
        piece.push_back(Node{item});
      }
    }
  }

  std::size_t size() const { return size_; }
  Node& at(std::size_t index) {
    const std::size_t piece = find(index);
    return pieces_[piece][index];
  }
  void insert(std::size_t index, const Node& node) {
    if (pieces_.empty()) pieces_.emplace_back();
    const std::size_t at = find(index);
    std::vector<Node>& piece = pieces_[at];
    piece.insert(piece.begin() + static_cast<std::ptrdiff_t>(index), node);
    ++size_;
    if (piece.size() <= kPiece) return;
    std::vector<Node> second(piece.begin() + kPiece / 2, piece.end());
    piece.resize(kPiece / 2);
    pieces_.insert(pieces_.begin() + static_cast<std::ptrdiff_t>(at) + 1, std::move(second));
  }
  void remove(std::size_t index) {
    const std::size_t at = find(index);
    pieces_[at].erase(pieces_[at].begin() + static_cast<std::ptrdiff_t>(index));
    if (pieces_[at].empty()) pieces_.erase(pieces_.begin() + static_cast<std::ptrdiff_t>(at));
    --size_;
  }
  const std::vector<std::vector<Node>>& pieces() const { return pieces_; }

 private:
  // The piece that holds the index, which becomes the place within it; the end is in the last one.
  std::size_t find(std::size_t& index) const {
    std::size_t at = 0;
    while (at + 1 < pieces_.size() && index >= pieces_[at].size()) index -= pieces_[at++].size();
    return at;
  }

  std::vector<std::vector<Node>> pieces_;
  std::size_t size_;
};

struct Open {
  Pieces items;               // of an array
  MemberTable<Node> members;  // of an object
};

bool is_array(const Node& node) { return node.value.is_array(); }
bool is_object(const Node& node) { return node.value.is_object(); }
bool holds_others(const Node& node) { return is_array(node) || is_object(node); }
std::size_t size_of(const Node& node) {
  if (node.open == nullptr) return node.value.size();
  return is_array(node) ? node.open->items.size() : node.open->members.size();
}

// Visits what a node holds: Values in those that are as they came, Nodes in those that are open.
template <class Visit>
void each_child(const Node& node, const Visit& visit) {
  if (node.open == nullptr) {
    for (const Value& item : node.value.items()) visit(std::string_view(), Node{item});
    for (const Member& member : node.value.members()) visit(member.key, Node{member.value});
    return;
  }
  for (const std::vector<Node>& piece : node.open->items.pieces()) {
    for (const Node& item : piece) visit(std::string_view(), item);
  }
  for (const auto& slot : node.open->members.slots()) {
    if (!slot.gone) visit(slot.key, slot.value);
  }
}

// Applies operations to one tree of Nodes; finish() copies the result out.
class Patcher {
 public:
  Patcher(const Value& target, const PatchOptions& options) : root_{target}, options_(options) {}

  Status apply(const Value& operation);
  Result<Document> finish() {
    Builder builder(options_.limits);
    write(builder, root_);
    if (builder.failed()) return builder.error().context("the patched document");
    return std::move(builder).finish();
  }

 private:
  enum class Edit : std::uint8_t { kAdd, kRemove, kReplace };

  Status apply_named(std::string_view op, const Value& operation, const Tokens& path);
  Status transfer(bool move, const Value& operation, const Tokens& path);
  Status test(const Value& operation, const Tokens& path);
  Status edit(Edit edit, const Tokens& path, Node node);
  Status edit_object(Node& at, std::string_view key, Edit edit, const Node& node);
  Status edit_array(Node& at, std::string_view token, Edit edit, const Node& node);
  Open& opened(Node& node);
  Node* child_of(Node& parent, std::string_view token);
  Node* resolve(const Tokens& path);
  bool same(Node& have, const Value& want);
  Node cloned(const Node& node);
  Result<std::size_t> height_of(const Node& node, std::size_t depth);
  static Error too_deep() {
    return {Code::kExhausted,
            "the result is nested deeper than " + std::to_string(kDeepestPatch) + " levels"};
  }
  void count_copy(const Node& node);
  void write(Builder& out, const Node& node);

  Node root_;
  const PatchOptions& options_;
  Arena arena_;  // of keys
  std::deque<Open> opened_;
  std::size_t work_ = 0, copied_ = 0;
};

Open& Patcher::opened(Node& node) {
  if (node.open != nullptr) return *node.open;
  Open& open = opened_.emplace_back(Open{Pieces(node.value.items()), {}});
  for (const Member& member : node.value.members())
    open.members.put(member.key, Node{member.value});
  node.open = &open;
  return open;
}

// Wide containers are opened to look into them, so that the next look is quick.
Node* Patcher::child_of(Node& parent, std::string_view token) {
  if (is_object(parent)) return opened(parent).members.find(token);
  const std::optional<std::size_t> index = array_index(token);
  if (!is_array(parent) || !index || *index >= size_of(parent)) return nullptr;
  return &opened(parent).items.at(*index);
}

Node* Patcher::resolve(const Tokens& path) {
  Node* at = &root_;
  for (const std::string& token : path) {
    at = child_of(*at, token);
    if (at == nullptr) return nullptr;
  }
  return at;
}

// Levels of a value, itself among them. Keeps every tree within kDeepestPatch, so that recursion
// over it is safe. Asked once of a node, wherever it moves.
Result<std::size_t> Patcher::height_of(const Node& node, std::size_t depth) {
  if (node.height > 0) return node.height;
  if (depth > kDeepestPatch) return too_deep();
  const std::size_t limit = std::min<std::size_t>(options_.limits.max_nodes, 1u << 30) * 4;
  if (++work_ > limit) {
    return Error(Code::kExhausted, "the patch touches more than " + std::to_string(limit) +
                                       " values, which is the limit");
  }
  std::size_t below = 0;
  Status status;
  each_child(node, [&](std::string_view, const Node& inner) {
    if (!status.ok()) return;
    auto found = height_of(inner, depth + 1);
    if (!found.ok()) {
      status = std::move(found).error();
    } else {
      below = std::max(below, *found);
    }
  });
  BERTH_CHECK(status);
  return below + 1;
}

// Stops at the limit: a copy of copies must not be walked to its end first.
void Patcher::count_copy(const Node& node) {
  constexpr std::size_t kOpenBytes = 64;  // what is open is really copied, the rest is shared
  copied_ += 2 + node.value.string().size() + node.value.number_text().size();
  if (node.open != nullptr) copied_ += kOpenBytes;
  if (copied_ > options_.max_copied_bytes) return;
  each_child(node, [&](std::string_view key, const Node& inner) {
    copied_ += key.size();
    if (copied_ <= options_.max_copied_bytes) count_copy(inner);
  });
}

Node Patcher::cloned(const Node& node) {
  if (node.open == nullptr) return node;  // what nobody changed may be shared
  Node copy{node.value, &opened_.emplace_back(Open{Pieces({}), {}}), node.height};
  each_child(node, [&](std::string_view key, const Node& inner) {
    if (is_array(node)) {
      copy.open->items.insert(copy.open->items.size(), cloned(inner));
    } else {
      copy.open->members.put(key, cloned(inner));
    }
  });
  return copy;
}

Status Patcher::edit_object(Node& at, std::string_view key, Edit edit, const Node& node) {
  MemberTable<Node>& members = opened(at).members;
  Node* known = members.find(key);
  if (known == nullptr && edit != Edit::kAdd) {
    return Error(Code::kNotFound, "there is no member " + shown_token(key));
  }
  if (edit == Edit::kRemove) {
    members.remove(key);
  } else if (known != nullptr) {
    *known = node;
  } else {
    members.put(arena_.copy(key), node);
  }
  return {};
}

Status Patcher::edit_array(Node& at, std::string_view token, Edit edit, const Node& node) {
  Pieces& items = opened(at).items;
  std::optional<std::size_t> index = array_index(token);
  if (edit == Edit::kAdd && token == "-") index = items.size();
  if (!index) {
    return invalid("found " + shown_token(token) + " for an array, want an index" +
                   (edit == Edit::kAdd ? " or -" : ""));
  }
  const std::size_t last = edit == Edit::kAdd ? items.size() + 1 : items.size();
  if (*index >= last) {
    return Error(Code::kNotFound, "index " + std::to_string(*index) + " is past an array of " +
                                      std::to_string(items.size()));
  }
  if (edit == Edit::kAdd) {
    items.insert(*index, node);
  } else if (edit == Edit::kRemove) {
    items.remove(*index);
  } else {
    items.at(*index) = node;
  }
  return {};
}

Status Patcher::edit(Edit edit, const Tokens& path, Node node) {
  // Deeper than any document we hold: no such place.
  if (path.size() > kDeepestPatch) return Error(Code::kNotFound, "the path is too deep");
  if (edit != Edit::kRemove) {
    BERTH_TRY(node.height, height_of(node, path.size()));
    if (path.size() + node.height > kDeepestPatch) return too_deep();
  }
  if (path.empty()) {
    root_ = edit == Edit::kRemove ? Node{} : node;
    return {};
  }
  Node* at = &root_;
  for (std::size_t i = 0;; ++i) {
    if (!holds_others(*at)) {
      return Error(Code::kNotFound, "there is no " + shown_token(path[i]) + " in a " +
                                        std::string(name(at->value.kind())));
    }
    if (at->height > 0) at->height = std::max(at->height, path.size() - i + node.height);
    if (i + 1 == path.size()) break;
    at = child_of(*at, path[i]);
    if (at == nullptr) return Error(Code::kNotFound, "there is no " + shown_token(path[i]));
  }
  return is_object(*at) ? edit_object(*at, path.back(), edit, node)
                        : edit_array(*at, path.back(), edit, node);
}

// As equal() of the two; costs what is wanted, however much is there.
bool Patcher::same(Node& have, const Value& want) {
  if (have.open == nullptr) return equal(have.value, want);
  if (have.value.kind() != want.kind() || size_of(have) != want.size()) return false;
  for (std::size_t i = 0; const Value& item : want.items()) {
    if (!same(have.open->items.at(i++), item)) return false;
  }
  for (const Member& member : want.members()) {
    Node* found = have.open->members.find(member.key);
    if (found == nullptr || !same(*found, member.value)) return false;
  }
  return true;
}

Status Patcher::test(const Value& operation, const Tokens& path) {
  const Value* want = operation.find("value");
  if (want == nullptr) return invalid("\"value\" is missing");
  Node* have = resolve(path);
  if (have == nullptr) return Error(Code::kConflict, "nothing is there to compare");
  if (same(*have, *want)) return {};
  return Error(Code::kConflict, "found " + describe(have->value) + ", want " + describe(*want));
}

Status Patcher::transfer(bool move, const Value& operation, const Tokens& path) {
  const Value* from = operation.find("from");
  if (from == nullptr || !from->is_string()) return invalid("\"from\" is missing or not a string");
  BERTH_TRY(const Tokens source, parse_pointer(from->string()));
  const Node* found = resolve(source);
  if (found == nullptr) {
    return Error(Code::kNotFound, "there is nothing at " + shown_token(from->string()));
  }
  const Node node = *found;
  if (!move) {
    count_copy(node);  // before it is copied
    if (copied_ > options_.max_copied_bytes) {
      return Error(Code::kExhausted, "the copies of the patch are larger than " +
                                         std::to_string(options_.max_copied_bytes) +
                                         " bytes, which is the limit");
    }
    return edit(Edit::kAdd, path, cloned(node));
  }
  if (source == path) return {};
  if (path.size() > source.size() && std::equal(source.begin(), source.end(), path.begin())) {
    return invalid("a value cannot move into itself");
  }
  BERTH_CHECK(edit(Edit::kRemove, source, {}));
  return edit(Edit::kAdd, path, node);
}

// Recursive to kDeepestPatch, which measure() keeps.
void Patcher::write(Builder& out, const Node& node) {
  if (out.failed()) return;
  if (node.open == nullptr) return out.deep_copy(node.value);
  if (is_array(node)) {
    out.begin_array(node.value.line());
  } else {
    out.begin_object(node.value.line());
  }
  each_child(node, [&](std::string_view key, const Node& inner) {
    if (is_object(node)) out.key(out.copy(key), inner.value.line());
    write(out, inner);
  });
  out.end();
}

Status Patcher::apply_named(std::string_view op, const Value& operation, const Tokens& path) {
  if (op == "test") return test(operation, path);
  if (op == "remove") return edit(Edit::kRemove, path, {});
  if (op == "move" || op == "copy") return transfer(op == "move", operation, path);
  if (op != "add" && op != "replace") {
    return invalid("found op " + shown_token(op) +
                   ", want add, remove, replace, move, copy or test");
  }
  const Value* value = operation.find("value");
  if (value == nullptr) return invalid("\"value\" is missing");
  return edit(op == "add" ? Edit::kAdd : Edit::kReplace, path, Node{*value});
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

// Recursive to the depth of the patch, which a Builder has bounded.
void merge_into(Builder& out, const Value& target, const Value& patch) {
  if (out.failed()) return;
  if (!patch.is_object()) return out.deep_copy(patch);
  MemberIndex changes(patch);
  MemberIndex existing(target);
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
