// Reads the texts of the built-in types.
//
//   #io.k8s.api.core.v1                  the types below have this prefix
//   ContainerPort: containerPort!:i name:s protocol:s|SCTP|TCP|UDP="TCP"
//
// A field is name[!]:type, then what is special. ! is required. Types: s string, i int32, l int64,
// b bool, n number, q quantity, x int or string, t time, u time with microseconds, y bytes,
// d duration, a anything, a name of a type, [T] a list, {T} a map. A list is atomic unless @keys
// (a map by these keys) or ^ (a set) say otherwise; %key is the merge key of a strategic merge
// patch ($: the same as @), % alone merges primitives, ~ is retainKeys; & is atomic for apply; |a|b
// are the values that are allowed; =json is the default and comes last. * is written even when it
// is empty, ? is not written when it is zero. & after a type's name: always atomic.
#include "kinds/schema/table.h"

#include <algorithm>
#include <map>

#include "base/check.h"
#include "kinds/schema/node.h"
#include "text/json.h"

namespace berth::sim {
namespace {

using Hook = Schema::Hook;

constexpr std::pair<std::string_view, Hook> kHooks[] = {
    {"Container", Hook::kContainer},
    {"EphemeralContainer", Hook::kContainer},
    {"ResourceRequirements", Hook::kResources},
    {"PodSpec", Hook::kPodSpec},
    {"JobSpec", Hook::kJobSpec},
    {"DeploymentStrategy", Hook::kDeploymentStrategy},
    {"DaemonSetUpdateStrategy", Hook::kDaemonStrategy},
    {"StatefulSetUpdateStrategy", Hook::kStatefulStrategy},
    {"ServiceSpec", Hook::kServiceSpec},
    {"NodeStatus", Hook::kNodeStatus},
    {"ExactDeviceRequest", Hook::kDeviceRequest},
    {"DeviceSubRequest", Hook::kDeviceRequest},
    {"Volume", Hook::kVolume},
    {"HorizontalPodAutoscalerSpec", Hook::kAutoscalerSpec},
    {"Subject", Hook::kSubject},
    {"LimitRangeItem", Hook::kLimitRangeItem},
    {"PersistentVolumeClaim", Hook::kVolumeClaim},
    {"CustomResourceDefinitionNames", Hook::kCrdNames},
};

class TypeTable {
 public:
  TypeTable() {
    for (const char* text : {kTableCore, kTablePod, kTableWork, kTableMore}) declare(text);
    read_words(kTableWords);
    for (auto& [name, block] : blocks_) fill(block);
  }

  const Schema* find(std::string_view full_name) const {
    const auto found = blocks_.find(full_name);
    return found == blocks_.end() ? nullptr : found->second.schema;
  }

 private:
  struct Block {
    Schema* schema = nullptr;
    std::string_view prefix;
    std::string_view body;
  };

  static std::string_view line_of(std::string_view& rest) {
    const std::size_t end = rest.find('\n');
    const std::string_view line = rest.substr(0, end);
    rest.remove_prefix(end == std::string_view::npos ? rest.size() : end + 1);
    return line;
  }

  // Names first, so that types may refer to later ones and to themselves.
  void declare(std::string_view text) {
    std::string_view prefix;
    Block* open = nullptr;
    while (!text.empty()) {
      const std::string_view line = line_of(text);
      if (line.empty()) continue;
      if (line.front() == '#') {
        prefix = line.substr(1);
        open = nullptr;
      } else if (line.front() == ' ') {
        BERTH_ASSERT(open != nullptr, "a continued line follows a type");
        const char* from = open->body.data();
        open->body = {from, static_cast<std::size_t>(line.data() + line.size() - from)};
      } else {
        open = &start(prefix, line);
      }
    }
  }

  void read_words(std::string_view text) {
    while (!text.empty()) {
      const std::string_view line = line_of(text);
      const std::size_t space = line.find(' ');
      if (space == std::string_view::npos) continue;
      words_.emplace(line.substr(0, space), line.substr(space + 1));
    }
  }

  std::string_view words_of_field(std::string_view type, std::string_view field) const {
    std::string key(type);
    if (!field.empty()) key += "." + std::string(field);
    const auto found = words_.find(key);
    return found == words_.end() ? std::string_view{} : found->second;
  }

  Block& start(std::string_view prefix, std::string_view line) {
    const std::size_t colon = line.find(':');
    BERTH_ASSERT(colon != std::string_view::npos, "a type is Name: fields");
    std::string_view name = line.substr(0, colon);
    const bool atomic = name.ends_with('&');
    if (atomic) name.remove_suffix(1);
    Schema& schema = nodes_.emplace_back();
    schema.type = Schema::Type::kObject;
    schema.atomic_map = atomic;
    const std::string& full = texts_.emplace_back(std::string(prefix) + "." + std::string(name));
    schema.name = name;
    schema.full_name = full;
    for (const auto& [type, hook] : kHooks) {
      if (type == name) schema.hook = hook;
    }
    Block& block = blocks_[full];
    block = {&schema, prefix, line.substr(colon + 1)};
    short_names_.emplace(name, &block);
    return block;
  }

  void fill(Block& block) {
    block.schema->description = words_of_field(block.schema->name, {});
    std::string_view rest = block.body;
    while (true) {
      const std::size_t from = rest.find_first_not_of(" \n");
      if (from == std::string_view::npos) break;
      rest.remove_prefix(from);
      const std::size_t end = std::min(rest.find_first_of(" \n"), rest.size());
      add_field(block, rest.substr(0, end));
      rest.remove_prefix(end);
    }
    std::sort(block.schema->properties.begin(), block.schema->properties.end(),
              [](const auto& a, const auto& b) { return a.name < b.name; });
  }

  void add_field(const Block& block, std::string_view token) {
    const std::size_t colon = token.find(':');
    BERTH_ASSERT(colon != std::string_view::npos, "a field is name:type");
    Schema::Property property;
    property.name = token.substr(0, colon);
    if (property.name.ends_with('!')) {
      property.required = true;
      property.name.remove_suffix(1);
    }
    std::string_view rest = token.substr(colon + 1);
    const std::size_t special = std::min(rest.find_first_of("@^%~&|=*?$"), rest.size());
    const Schema* plain = type_of(block, rest.substr(0, special));
    rest.remove_prefix(special);
    property.description = words_of_field(block.schema->name, property.name);
    property.schema = rest.empty() ? plain : specials(property, plain, rest);
    block.schema->properties.push_back(property);
  }

  // The node with what follows its type; a shared type is only changed in a copy.
  const Schema* specials(Schema::Property& property, const Schema* plain, std::string_view rest) {
    Schema* own = nullptr;
    const auto owned = [&]() -> Schema& {
      if (own == nullptr) own = &copy(*plain);
      return *own;
    };
    while (!rest.empty()) {
      const char what = rest.front();
      rest.remove_prefix(1);
      const std::size_t end =
          what == '=' ? rest.size() : std::min(rest.find_first_of("@^%~&|=*?$"), rest.size());
      const std::string_view text = rest.substr(0, end);
      rest.remove_prefix(end);
      switch (what) {
        case '@':
          owned().list = Schema::List::kMap;
          split_keys(text, owned().map_keys);
          break;
        case '^':
          owned().list = Schema::List::kSet;
          break;
        case '%':
          owned().merge_list = true;
          owned().merge_key = text;
          break;
        case '$':
          owned().merge_list = true;
          owned().merge_key = owned().map_keys.front();
          break;
        case '~':
          property.retain_keys = true;
          break;
        case '&':
          owned().atomic_map = true;
          break;
        case '*':
          property.always = true;
          break;
        case '?':
          property.omit_zero = true;
          break;
        case '|':
          if (!owned().rules) owned().rules = std::make_unique<Rules>();
          owned().rules->enums.push_back(text::Value::make_string(text, 0));
          break;
        default:
          property.fallback = &parse(text);
      }
    }
    return own == nullptr ? plain : own;
  }

  static void split_keys(std::string_view text, std::vector<std::string_view>& out) {
    while (!text.empty()) {
      const std::size_t comma = std::min(text.find(','), text.size());
      out.push_back(text.substr(0, comma));
      text.remove_prefix(std::min(comma + 1, text.size()));
    }
  }

  Schema& copy(const Schema& from) {
    BERTH_ASSERT(from.properties.empty() && from.full_name.empty(),
                 "a shared type has no specials");
    Schema& to = nodes_.emplace_back();
    to.type = from.type;
    to.format = from.format;
    to.items = from.items;
    to.additional = from.additional;
    to.has_additional = from.has_additional;
    to.preserve_unknown = from.preserve_unknown;
    return to;
  }

  const Schema* type_of(const Block& block, std::string_view text) {
    BERTH_ASSERT(!text.empty(), "a field has a type");
    if (text.front() == '[' || text.front() == '{') {
      const Schema* inner = type_of(block, text.substr(1, text.size() - 2));
      const auto key = std::make_pair(text.front(), inner);
      if (const auto found = containers_.find(key); found != containers_.end()) {
        return found->second;
      }
      Schema& schema = nodes_.emplace_back();
      schema.type = text.front() == '[' ? Schema::Type::kArray : Schema::Type::kObject;
      schema.has_additional = text.front() == '{';
      (schema.has_additional ? schema.additional : schema.items) = inner;
      containers_.emplace(key, &schema);
      return &schema;
    }
    if (text.size() == 1) return scalar(text.front());
    const std::string near = std::string(block.prefix) + "." + std::string(text);
    if (const auto found = blocks_.find(near); found != blocks_.end()) return found->second.schema;
    if (text.find('.') != std::string_view::npos) {  // core.v1.Event
      const auto found = blocks_.find("io.k8s.api." + std::string(text));
      BERTH_ASSERT(found != blocks_.end(), "a type that is referred to is defined");
      return found->second.schema;
    }
    const auto found = short_names_.find(text);
    BERTH_ASSERT(found != short_names_.end(), "a type that is referred to is defined");
    return found->second->schema;
  }

  const Schema* scalar(char code) {
    using T = Schema::Type;
    using F = Schema::Format;
    struct Row {
      char code;
      T type;
      F format;
    };
    static constexpr Row kScalars[] = {
        {'s', T::kString, F::kNone},      {'i', T::kInteger, F::kInt32},
        {'l', T::kInteger, F::kInt64},    {'b', T::kBoolean, F::kNone},
        {'n', T::kNumber, F::kDouble},    {'q', T::kString, F::kQuantity},
        {'x', T::kIntOrString, F::kNone}, {'t', T::kString, F::kTime},
        {'u', T::kString, F::kMicroTime}, {'y', T::kString, F::kByte},
        {'d', T::kString, F::kDuration},  {'a', T::kAny, F::kNone},
    };
    for (const Row& row : kScalars) {
      if (row.code != code) continue;
      const Schema*& slot = scalars_[code];
      if (slot == nullptr) {
        Schema& schema = nodes_.emplace_back();
        schema.type = row.type;
        schema.format = row.format;
        schema.preserve_unknown = row.type == T::kAny;
        slot = &schema;
      }
      return slot;
    }
    BERTH_ASSERT(false, "an unknown letter for a type");
    return nullptr;
  }

  const text::Value& parse(std::string_view json) {
    auto document = text::parse_json(json);
    BERTH_ASSERT(document.ok(), "a default in the table is JSON");
    return documents_.emplace_back(std::move(document).value()).root();
  }

  std::deque<Schema> nodes_;
  std::deque<std::string> texts_;
  std::deque<text::Document> documents_;
  std::map<std::string, Block, std::less<>> blocks_;
  std::map<std::string_view, Block*> short_names_;
  std::map<std::string_view, std::string_view> words_;
  std::map<char, const Schema*> scalars_;
  std::map<std::pair<char, const Schema*>, const Schema*> containers_;
};

const TypeTable& type_table() {
  static const TypeTable table;
  return table;
}

}  // namespace

const Schema* builtin_type(std::string_view full_name) { return type_table().find(full_name); }

const Schema& object_meta() {
  static const Schema* meta = builtin_type("io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta");
  return *meta;
}

const Schema::Property* Schema::find(std::string_view key) const {
  const auto found = std::lower_bound(
      properties.begin(), properties.end(), key,
      [](const Property& property, std::string_view wanted) { return property.name < wanted; });
  return found != properties.end() && found->name == key ? &*found : nullptr;
}

}  // namespace berth::sim
