// Strategic merge patch: lists by their keys, and the directives that kubectl writes.
#include <algorithm>

#include "sim/schema/edit.h"
#include "sim/schema/node.h"

namespace berth::sim {
namespace {

constexpr std::string_view kDirective = "$patch";
constexpr std::string_view kRetain = "$retainKeys";
constexpr std::string_view kOrder = "$setElementOrder/";
constexpr std::string_view kDeletes = "$deleteFromPrimitiveList/";
constexpr int kDeepestPatch = 100;

bool same_key(const Value& a, const Value& b, std::string_view key) {
  const Value* x = a.find(key);
  const Value* y = b.find(key);
  return x != nullptr && y != nullptr && text::equal(*x, *y);
}

const Value* find_item(const std::vector<Value>& list, const Value& like, std::string_view key) {
  for (const Value& item : list) {
    if (key.empty() ? text::equal(item, like) : same_key(item, like, key)) return &item;
  }
  return nullptr;
}

class StrategicMerge {
 public:
  explicit StrategicMerge(Draft& draft) : draft_(draft) {}

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
      if (directive->string() == "replace") return draft_.unset(patch, kDirective);
      if (directive->string() == "delete") return draft_.object({});
      if (directive->string() != "merge") {
        return invalid("unrecognized value for $patch: " + go_quote(directive->string()));
      }
    }
    std::vector<Member> out(live.members().begin(), live.members().end());
    BERTH_CHECK(retain_keys(patch, retain, out));
    for (const Member& member : patch.members()) {
      if (member.key == kDirective || member.key == kRetain) continue;
      if (member.key.starts_with(kOrder) || member.key.starts_with(kDeletes)) continue;
      BERTH_CHECK(field(schema, member, out));
    }
    BERTH_CHECK(list_directives(schema, live, patch, out));
    return draft_.object(out);
  }

  Status retain_keys(const Value& patch, bool allowed, std::vector<Member>& out) {
    const Value* retain = patch.find(kRetain);
    if (retain == nullptr) return {};
    if (!retain->is_array()) return invalid("$retainKeys is not a list");
    (void)allowed;
    const auto kept = [&](std::string_view key) {
      for (const Value& name : retain->items()) {
        if (name.string() == key) return true;
      }
      return false;
    };
    for (const Member& member : patch.members()) {
      if (member.key.starts_with('$') || member.value.is_null()) continue;
      if (!kept(member.key)) {
        return invalid("the patch sets " + go_quote(member.key) + ", which $retainKeys leaves out");
      }
    }
    std::erase_if(out, [&](const Member& member) { return !kept(member.key); });
    return {};
  }

  static Member* find_member(std::vector<Member>& members, std::string_view key) {
    for (Member& member : members) {
      if (member.key == key) return &member;
    }
    return nullptr;
  }

  static void put(std::vector<Member>& out, std::string_view key, const Value& value) {
    if (Member* known = find_member(out, key); known != nullptr) {
      known->value = value;
    } else {
      out.push_back({key, value});
    }
  }

  Status field(const Schema* schema, const Member& member, std::vector<Member>& out) {
    Member* known = find_member(out, member.key);
    if (member.value.is_null()) {
      std::erase_if(out, [&](const Member& one) { return one.key == member.key; });
      return {};
    }
    const Schema::Property* property = schema == nullptr ? nullptr : schema->find(member.key);
    const Schema* inner = property != nullptr ? property->schema
                          : schema == nullptr ? nullptr
                                              : schema->additional;
    const Value live = known == nullptr ? Value() : known->value;
    if (member.value.is_object()) {
      if (text_at(member.value, kDirective) == "delete") {
        std::erase_if(out, [&](const Member& one) { return one.key == member.key; });
        return {};
      }
      const bool retain = property != nullptr && property->retain_keys;
      BERTH_TRY(const Value made,
                object(inner, live.is_object() ? live : Value(), member.value, retain));
      put(out, member.key, made);
      return {};
    }
    if (member.value.is_array() && inner != nullptr && inner->merge_list) {
      BERTH_TRY(const Value made, list(*inner, live, member.value));
      put(out, member.key, made);
      return {};
    }
    put(out, member.key, member.value);
    return {};
  }

  // Directives of lists that the patch does not otherwise touch, and deletions of primitives.
  Status list_directives(const Schema* schema, const Value& live, const Value& patch,
                         std::vector<Member>& out) {
    for (const Member& member : patch.members()) {
      if (member.key.starts_with(kDeletes)) {
        const std::string_view name = member.key.substr(kDeletes.size());
        Member* list = find_member(out, name);
        if (list == nullptr || !member.value.is_array()) continue;
        std::vector<Value> kept;
        for (const Value& item : list->value.items()) {
          bool gone = false;
          for (const Value& one : member.value.items()) gone = gone || text::equal(one, item);
          if (!gone) kept.push_back(item);
        }
        list->value = draft_.array(kept);
      }
    }
    for (const Member& member : patch.members()) {
      if (!member.key.starts_with(kOrder)) continue;
      const std::string_view name = member.key.substr(kOrder.size());
      Member* list = find_member(out, name);
      const Schema::Property* property = schema == nullptr ? nullptr : schema->find(name);
      if (list == nullptr || property == nullptr || !list->value.is_array()) continue;
      if (!member.value.is_array()) return invalid(std::string(member.key) + " is not a list");
      const std::vector<Value> items(list->value.items().begin(), list->value.items().end());
      list->value = in_order(items, member.value, at(live, name), property->schema->merge_key);
    }
    return {};
  }

  Result<Value> list(const Schema& schema, const Value& live, const Value& patch) {
    const std::string_view key = schema.merge_key;
    std::vector<Value> out(live.items().begin(), live.items().end());
    if (key.empty()) {
      for (const Value& item : patch.items()) {
        if (find_item(out, item, {}) == nullptr) out.push_back(item);
      }
      return in_order(out, patch, live, key);
    }
    for (const Value& item : patch.items()) {
      if (text_at(item, kDirective) == "replace") return replaced(patch);
    }
    for (const Value& item : patch.items()) BERTH_CHECK(list_item(schema, item, out));
    return in_order(out, patch, live, key);
  }

  Value replaced(const Value& patch) {
    std::vector<Value> kept;
    for (const Value& item : patch.items()) {
      if (text_at(item, kDirective) != "replace") {
        kept.push_back(draft_.unset(item, kDirective));
      } else if (item.size() > 1) {
        kept.push_back(draft_.unset(item, kDirective));
      }
    }
    return draft_.array(kept);
  }

  Status list_item(const Schema& schema, const Value& item, std::vector<Value>& out) {
    const std::string_view key = schema.merge_key;
    if (!item.is_object()) return invalid("a list that merges by key holds something else");
    if (item.find(key) == nullptr) {
      return invalid("map: " + show_value(item) +
                     " does not contain declared merge key: " + std::string(key));
    }
    const Value* known = find_item(out, item, key);
    if (text_at(item, kDirective) == "delete") {
      std::erase_if(out, [&](const Value& one) { return same_key(one, item, key); });
      return {};
    }
    const std::size_t place =
        known == nullptr ? out.size() : static_cast<std::size_t>(known - out.data());
    BERTH_TRY(const Value made,
              object(schema.items, known == nullptr ? Value() : *known, item, false));
    if (place == out.size()) {
      out.push_back(made);
    } else {
      out[place] = made;
    }
    return {};
  }

  static std::size_t place_in(const Value& list, const Value& item, std::string_view key) {
    for (std::size_t i = 0; i < list.items().size(); ++i) {
      const Value& one = list.items()[i];
      if (key.empty() ? text::equal(one, item) : same_key(one, item, key)) return i;
    }
    return list.items().size();
  }

  // Items that the order names stand in it. Another one comes before the next of them only where
  // live has both that way round.
  Value in_order(const std::vector<Value>& items, const Value& order, const Value& live,
                 std::string_view key) {
    std::vector<std::pair<std::size_t, Value>> named;
    std::vector<Value> others;
    for (const Value& item : items) {
      const std::size_t place = place_in(order, item, key);
      if (place < order.items().size()) {
        named.emplace_back(place, item);
      } else {
        others.push_back(item);
      }
    }
    std::stable_sort(named.begin(), named.end(),
                     [](const auto& a, const auto& b) { return a.first < b.first; });
    const std::size_t absent = live.items().size();
    std::vector<Value> out;
    std::size_t next = 0;
    for (const auto& [rank, item] : named) {
      const std::size_t place = place_in(live, item, key);
      while (next < others.size() && place != absent && place_in(live, others[next], key) < place) {
        out.push_back(others[next++]);
      }
      out.push_back(item);
    }
    out.insert(out.end(), others.begin() + static_cast<std::ptrdiff_t>(next), others.end());
    return draft_.array(out);
  }

  Draft& draft_;
  int depth_ = 0;
};

}  // namespace

Result<text::Document> strategic_merge_patch(const Kind& kind, const Value& live,
                                             const Value& patch) {
  if (kind.custom) {
    return invalid("strategic merge patch is not supported for custom resources");
  }
  if (!patch.is_object()) return invalid("the patch is not an object");
  Draft draft;
  StrategicMerge merge(draft);
  BERTH_TRY(const Value made, merge.object(kind.schema.get(), live, patch, false));
  return Draft::finish(made);
}

}  // namespace berth::sim
