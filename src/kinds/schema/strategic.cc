// Strategic merge patch: lists by their keys, and the directives that kubectl writes.
#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <utility>

#include "kinds/schema/node.h"
#include "text/editor.h"
#include "text/identity.h"
#include "text/members.h"

namespace berth::sim {
namespace {

constexpr std::string_view kDirective = "$patch";
constexpr std::string_view kRetain = "$retainKeys";
constexpr std::string_view kOrder = "$setElementOrder/";
constexpr std::string_view kDeletes = "$deleteFromPrimitiveList/";
constexpr int kDeepestPatch = 100;

using Members = text::MemberTable<Value>;

// What tells the items of a list apart: the merge key, or all of it where there is none.
std::string identity_by(const Value& item, std::string_view key) {
  if (key.empty()) return text::identity_of(item);
  const Value* value = item.find(key);
  return value == nullptr ? std::string() : text::identity_of(*value);
}

// Where items stand in a list, by what tells them apart. One without a key is nowhere.
class Places {
 public:
  Places(std::span<const Value> list, std::string_view key) : key_(key) {
    made_.reserve(list.size());
    for (std::size_t i = 0; i < list.size(); ++i) {
      std::string identity = identity_by(list[i], key_);
      if (!identity.empty()) made_.push_back({std::move(identity), i});
    }
    const auto before = [](const Place& a, const Place& b) {
      return a.identity == b.identity ? a.at < b.at : text::shorter_first(a.identity, b.identity);
    };
    if (!std::is_sorted(made_.begin(), made_.end(), before)) {
      std::sort(made_.begin(), made_.end(), before);
    }
  }

  void add(const Value& item, std::size_t place) {
    std::string identity = identity_by(item, key_);
    if (!identity.empty()) added_[std::move(identity)].push_back(place);
  }
  // The first of those that are like it; nothing: none is.
  std::optional<std::size_t> first(const Value& like) {
    const std::string identity = identity_by(like, key_);
    if (const auto made = find(identity); made != made_.end() && !made->taken) return made->at;
    const auto found = added_.find(identity);
    if (found == added_.end()) return std::nullopt;
    return found->second.front();
  }
  std::vector<std::size_t> take(const Value& like) {
    const std::string identity = identity_by(like, key_);
    std::vector<std::size_t> out;
    for (auto it = find(identity); it != made_.end() && it->identity == identity; ++it) {
      if (!std::exchange(it->taken, true)) out.push_back(it->at);
    }
    if (const auto found = added_.find(identity); found != added_.end()) {
      out.insert(out.end(), found->second.begin(), found->second.end());
      added_.erase(found);
    }
    return out;
  }

 private:
  struct Place {
    std::string identity;
    std::size_t at;
    bool taken = false;
  };
  std::vector<Place>::iterator find(const std::string& identity) {
    if (next_ < made_.size() && made_[next_].identity == identity &&
        (next_ == 0 || made_[next_ - 1].identity != identity)) {
      return made_.begin() + static_cast<std::ptrdiff_t>(next_++);
    }
    const auto it = std::lower_bound(
        made_.begin(), made_.end(), identity,
        [](const Place& a, const std::string& b) { return text::shorter_first(a.identity, b); });
    if (it == made_.end() || it->identity != identity) return made_.end();
    next_ = static_cast<std::size_t>(it - made_.begin()) + 1;
    return it;
  }

  std::string_view key_;
  std::vector<Place> made_;  // in order
  std::size_t next_ = 0;     // after the one found last: who asks, often asks in order
  std::map<std::string, std::vector<std::size_t>> added_;
};

class StrategicMerge {
 public:
  explicit StrategicMerge(text::Editor& edit) : edit_(edit) {}

  // live may be null: the patch is then cleaned of its directives.
  Result<Value> object(const Schema* schema, const Value& live, const Value& patch, bool retain) {
    if (++depth_ > kDeepestPatch) return invalid("the patch is nested too deeply");
    auto made = merge_objects(schema, live, patch, retain);
    --depth_;
    return made;
  }

 private:
  Result<Value> merge_objects(const Schema* schema, const Value& live, const Value& patch,
                              bool retain) {
    if (const Value* directive = patch.find(kDirective); directive != nullptr) {
      if (directive->string() == "replace") return edit_.without(patch, kDirective);
      if (directive->string() == "delete") return edit_.object({});
      if (directive->string() != "merge") {
        return invalid("unrecognized value for $patch: " + go_quote(directive->string()));
      }
    }
    Members out;
    for (const Member& member : live.members()) out.put(member.key, member.value);
    BERTH_CHECK(retain_keys(patch, retain, out));
    for (const Member& member : patch.members()) {
      if (member.key == kDirective || member.key == kRetain) continue;
      if (member.key.starts_with(kOrder) || member.key.starts_with(kDeletes)) continue;
      BERTH_CHECK(field(schema, member, out));
    }
    BERTH_CHECK(list_directives(schema, live, patch, out));
    std::vector<Member> left;
    for (const Members::Slot& slot : out.slots()) {
      if (!slot.gone) left.push_back({slot.key, slot.value});
    }
    return edit_.object(left);
  }

  Status retain_keys(const Value& patch, bool allowed, Members& out) {
    const Value* retain = patch.find(kRetain);
    if (retain == nullptr) return {};
    if (!retain->is_array()) return invalid("$retainKeys is not a list");
    (void)allowed;
    std::set<std::string_view> kept;
    for (const Value& name : retain->items()) kept.insert(name.string());
    for (const Member& member : patch.members()) {
      if (member.key.starts_with('$') || member.value.is_null()) continue;
      if (!kept.contains(member.key)) {
        return invalid("the patch sets " + go_quote(member.key) + ", which $retainKeys leaves out");
      }
    }
    std::vector<std::string_view> dropped;
    for (const Members::Slot& slot : out.slots()) {
      if (!slot.gone && !kept.contains(slot.key)) dropped.push_back(slot.key);
    }
    for (const std::string_view key : dropped) out.remove(key);
    return {};
  }

  Status field(const Schema* schema, const Member& member, Members& out) {
    const Value* known = out.find(member.key);
    if (member.value.is_null()) {
      out.remove(member.key);
      return {};
    }
    const Schema::Property* property = schema == nullptr ? nullptr : schema->find(member.key);
    const Schema* inner = property != nullptr ? property->schema
                          : schema == nullptr ? nullptr
                                              : schema->additional;
    const Value live = known == nullptr ? Value() : *known;
    if (member.value.is_object()) {
      if (member.value[kDirective].string() == "delete") {
        out.remove(member.key);
        return {};
      }
      const bool retain = property != nullptr && property->retain_keys;
      BERTH_TRY(const Value made,
                object(inner, live.is_object() ? live : Value(), member.value, retain));
      out.put(member.key, made);
      return {};
    }
    if (member.value.is_array() && inner != nullptr && inner->merge_list) {
      BERTH_TRY(const Value made, list(*inner, live, member.value));
      out.put(member.key, made);
      return {};
    }
    out.put(member.key, member.value);
    return {};
  }

  // Directives of lists that the patch does not otherwise touch, and deletions of primitives.
  Status list_directives(const Schema* schema, const Value& live, const Value& patch,
                         Members& out) {
    for (const Member& member : patch.members()) {
      if (!member.key.starts_with(kDeletes)) continue;
      Value* list = out.find(member.key.substr(kDeletes.size()));
      if (list == nullptr || !member.value.is_array()) continue;
      Places gone(member.value.items(), {});
      std::vector<Value> kept;
      for (const Value& item : list->items()) {
        if (!gone.first(item)) kept.push_back(item);
      }
      *list = edit_.array(kept);
    }
    for (const Member& member : patch.members()) {
      if (!member.key.starts_with(kOrder)) continue;
      const std::string_view name = member.key.substr(kOrder.size());
      Value* list = out.find(name);
      const Schema::Property* property = schema == nullptr ? nullptr : schema->find(name);
      if (list == nullptr || property == nullptr || !list->is_array()) continue;
      if (!member.value.is_array()) return invalid(std::string(member.key) + " is not a list");
      const std::vector<Value> items(list->items().begin(), list->items().end());
      *list = in_order(items, member.value, live[name], property->schema->merge_key);
    }
    return {};
  }

  // A list while the items of a patch are merged into it.
  struct Merged {
    Merged(const Value& live, std::string_view key)
        : items(live.items().begin(), live.items().end()), places(items, key) {}
    void add(const Value& item) {
      places.add(item, items.size());
      items.push_back(item);
    }
    std::vector<Value> left() const {
      std::vector<Value> out;
      for (std::size_t i = 0; i < items.size(); ++i) {
        if (!gone.contains(i)) out.push_back(items[i]);
      }
      return out;
    }

    std::vector<Value> items;
    Places places;
    std::set<std::size_t> gone;
  };

  Result<Value> list(const Schema& schema, const Value& live, const Value& patch) {
    const std::string_view key = schema.merge_key;
    Merged out(live, key);
    if (key.empty()) {
      for (const Value& item : patch.items()) {
        if (!out.places.first(item)) out.add(item);
      }
      return in_order(out.items, patch, live, key);
    }
    for (const Value& item : patch.items()) {
      if (item[kDirective].string() == "replace") return replaced(patch);
    }
    for (const Value& item : patch.items()) BERTH_CHECK(list_item(schema, item, out));
    return in_order(out.left(), patch, live, key);
  }

  Value replaced(const Value& patch) {
    std::vector<Value> kept;
    for (const Value& item : patch.items()) {
      if (item[kDirective].string() != "replace") {
        kept.push_back(edit_.without(item, kDirective));
      } else if (item.size() > 1) {
        kept.push_back(edit_.without(item, kDirective));
      }
    }
    return edit_.array(kept);
  }

  Status list_item(const Schema& schema, const Value& item, Merged& out) {
    const std::string_view key = schema.merge_key;
    if (!item.is_object()) return invalid("a list that merges by key holds something else");
    if (item.find(key) == nullptr) {
      return invalid("map: " + show_value(item) +
                     " does not contain declared merge key: " + std::string(key));
    }
    if (item[kDirective].string() == "delete") {
      for (const std::size_t place : out.places.take(item)) out.gone.insert(place);
      return {};
    }
    const std::optional<std::size_t> place = out.places.first(item);
    BERTH_TRY(const Value made,
              object(schema.items, place ? out.items[*place] : Value(), item, false));
    if (place) {
      out.items[*place] = made;
    } else {
      out.add(made);
    }
    return {};
  }

  // Items that the order names stand in it. Another one comes before the next of them only where
  // live has both that way round.
  Value in_order(const std::vector<Value>& items, const Value& order, const Value& live,
                 std::string_view key) {
    Places ordered(order.items(), key);
    const std::size_t absent = live.items().size();
    std::vector<std::pair<std::size_t, Value>> named;
    std::vector<Value> others;
    for (const Value& item : items) {
      if (const auto place = ordered.first(item)) {
        named.emplace_back(*place, item);
      } else {
        others.push_back(item);
      }
    }
    std::stable_sort(named.begin(), named.end(),
                     [](const auto& a, const auto& b) { return a.first < b.first; });
    Places before(others.empty() ? std::span<const Value>() : live.items(), key);
    std::vector<Value> out;
    std::size_t next = 0;
    for (const auto& [rank, item] : named) {
      if (next == others.size()) {
        out.push_back(item);
        continue;
      }
      const auto place = before.first(item);
      while (next < others.size() && place &&
             before.first(others[next]).value_or(absent) < *place) {
        out.push_back(others[next++]);
      }
      out.push_back(item);
    }
    out.insert(out.end(), others.begin() + static_cast<std::ptrdiff_t>(next), others.end());
    return edit_.array(out);
  }

  text::Editor& edit_;
  int depth_ = 0;
};

}  // namespace

Result<text::Document> strategic_merge_patch(const Kind& kind, const Value& live,
                                             const Value& patch) {
  if (kind.custom) {
    return invalid("strategic merge patch is not supported for custom resources");
  }
  if (!patch.is_object()) return invalid("the patch is not an object");
  text::Editor edit;
  StrategicMerge merge(edit);
  BERTH_TRY(const Value made, merge.object(kind.schema.get(), live, patch, false));
  return text::Editor::finish(made);
}

}  // namespace berth::sim
