// Rows of `kubectl get`.
#include "kinds/schema/columns.h"

#include <algorithm>
#include <charconv>

#include "text/path.h"
#include "text/rfc3339.h"

namespace berth::sim {
namespace {

using text::Value;

struct SimpleCell {
  std::string_view kind;
  std::string_view column;
  std::string_view path;
  std::string_view absent = {};  // what stands there when the path leads nowhere
};

// Cells that are one field. Age and Name are the same everywhere.
constexpr SimpleCell kSimple[] = {
    {"PodDisruptionBudget", "Min Available", "spec.minAvailable", "N/A"},
    {"PodDisruptionBudget", "Max Unavailable", "spec.maxUnavailable", "N/A"},
    {"PodDisruptionBudget", "Allowed Disruptions", "status.disruptionsAllowed", "0"},
    {"PriorityClass", "Value", "value", "0"},
    {"PriorityClass", "Global-Default", "globalDefault", "false"},
    {"PriorityClass", "PreemptionPolicy", "preemptionPolicy"},
    {"Lease", "Holder", "spec.holderIdentity"},
    {"RuntimeClass", "Handler", "handler"},
    {"StorageClass", "Provisioner", "provisioner"},
    {"StorageClass", "ReclaimPolicy", "reclaimPolicy", "Delete"},
    {"StorageClass", "VolumeBindingMode", "volumeBindingMode", "Immediate"},
    {"StorageClass", "AllowVolumeExpansion", "allowVolumeExpansion", "false"},
    {"VolumeAttachment", "Attacher", "spec.attacher"},
    {"VolumeAttachment", "PV", "spec.source.persistentVolumeName"},
    {"VolumeAttachment", "Node", "spec.nodeName"},
    {"VolumeAttachment", "Attached", "status.attached", "false"},
    {"CSIStorageCapacity", "StorageClassName", "storageClassName"},
    {"CSIStorageCapacity", "Capacity", "capacity", "<unset>"},
    {"CSIDriver", "AttachRequired", "spec.attachRequired", "true"},
    {"CSIDriver", "PodInfoOnMount", "spec.podInfoOnMount", "false"},
    {"CSIDriver", "StorageCapacity", "spec.storageCapacity", "false"},
    {"CSIDriver", "RequiresRepublish", "spec.requiresRepublish", "false"},
    {"IngressClass", "Controller", "spec.controller"},
    {"IngressClass", "Parameters", "spec.parameters.name", "<none>"},
    {"Ingress", "Class", "spec.ingressClassName", "<none>"},
    {"ControllerRevision", "Revision", "revision", "0"},
    {"ResourceSlice", "Node", "spec.nodeName", "<unset>"},
    {"ResourceSlice", "Driver", "spec.driver"},
    {"ResourceSlice", "Pool", "spec.pool.name"},
    {"EndpointSlice", "AddressType", "addressType"},
};

// One step of a JSON path: a name, [n], [*] or [?(@.a=="b")].
class JsonPath {
 public:
  // The first value the path leads to; nullptr when there is none.
  static const Value* first(const Value& value, std::string_view path, int depth = 0) {
    if (path.empty() || path == ".") return &value;
    if (depth > 50) return nullptr;
    if (path.front() == '.') return by_name(value, path.substr(1), depth);
    if (path.front() != '[') return by_name(value, path, depth);
    const std::size_t end = closing(path);
    if (end == std::string_view::npos) return nullptr;
    const std::string_view inside = path.substr(1, end - 1);
    return by_bracket(value, inside, path.substr(end + 1), depth);
  }

 private:
  static std::size_t closing(std::string_view path) {
    char quote = 0;
    for (std::size_t i = 1; i < path.size(); ++i) {
      if (quote != 0) {
        if (path[i] == quote) quote = 0;
      } else if (path[i] == '"' || path[i] == '\'') {
        quote = path[i];
      } else if (path[i] == ']') {
        return i;
      }
    }
    return std::string_view::npos;
  }

  // A backslash keeps the dot after it: .metadata.labels.a\.b
  static const Value* by_name(const Value& value, std::string_view path, int depth) {
    std::string name;
    std::size_t i = 0;
    for (; i < path.size() && path[i] != '.' && path[i] != '['; ++i) {
      if (path[i] == '\\' && i + 1 < path.size()) ++i;
      name += path[i];
    }
    const Value* next = name.empty() ? &value : value.find(name);
    return next == nullptr ? nullptr : first(*next, path.substr(i), depth + 1);
  }

  static const Value* by_bracket(const Value& value, std::string_view inside, std::string_view rest,
                                 int depth) {
    if (inside.size() >= 2 && (inside.front() == '\'' || inside.front() == '"')) {
      const Value* next = value.find(inside.substr(1, inside.size() - 2));
      return next == nullptr ? nullptr : first(*next, rest, depth + 1);
    }
    if (inside == "*" || inside.starts_with("?(")) {
      for (const Value& item : value.items()) {
        if (inside != "*" && !passes(item, inside)) continue;
        const Value* found = first(item, rest, depth + 1);
        if (found != nullptr) return found;
      }
      return nullptr;
    }
    const auto size = static_cast<std::int64_t>(value.items().size());
    std::int64_t index = 0;
    const std::size_t colon = inside.find(':');  // of a slice only the first is shown
    const std::string_view from = inside.substr(0, colon);
    if (!from.empty()) {
      const auto [end, code] = std::from_chars(from.data(), from.data() + from.size(), index);
      if (code != std::errc() || end != from.data() + from.size()) return nullptr;
    } else if (colon == std::string_view::npos) {
      return nullptr;
    }
    if (index < 0)
      index =
          colon == std::string_view::npos ? index + size : std::max<std::int64_t>(index + size, 0);
    if (index < 0 || index >= size) return nullptr;
    return first(value.items()[static_cast<std::size_t>(index)], rest, depth + 1);
  }

  // ?(@.type=="Ready")
  static bool passes(const Value& item, std::string_view filter) {
    filter.remove_prefix(2);
    if (filter.ends_with(')')) filter.remove_suffix(1);
    const std::size_t equals = filter.find("==");
    if (equals == std::string_view::npos || !filter.starts_with("@")) return false;
    const auto trim = [](std::string_view text) {
      while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
      while (!text.empty() && text.back() == ' ') text.remove_suffix(1);
      return text;
    };
    std::string_view want = trim(filter.substr(equals + 2));
    if (want.size() >= 2 && (want.front() == '"' || want.front() == '\'')) {
      want = want.substr(1, want.size() - 2);
    }
    const Value* found = first(item, trim(filter.substr(1, equals - 1)), 1);
    if (found == nullptr) return false;
    return found->is_string() ? found->string() == want : text::to_json(*found) == want;
  }
};

void write_text_cell(const Value& value, text::JsonWriter& out) {
  if (value.is_string()) {
    out.value(value.string());
  } else {
    out.value(text::to_json(value));
  }
}

void custom_cell(const Column& column, const Value& object, std::int64_t now_ns,
                 text::JsonWriter& out) {
  if (column.json_path.empty()) return out.value(text_at(object, "metadata.name"));
  const Value* value = JsonPath::first(object, column.json_path);
  if (value == nullptr || value->is_null()) return out.null();
  if (column.type == "date") return out.value(age_of(*value, now_ns));
  if (column.type == "string") return write_text_cell(*value, out);
  const bool fits = (column.type == "integer" && value->as_int64()) ||
                    (column.type == "number" && value->is_number()) ||
                    (column.type == "boolean" && value->is_bool());
  if (fits) {
    out.value(*value);
  } else {
    out.null();
  }
}

// A cell that is one field; false when the column is no such one.
bool simple_cell(const Kind& kind, const Column& column, const Value& object,
                 text::JsonWriter& out) {
  for (const SimpleCell& cell : kSimple) {
    if (cell.kind != kind.kind || cell.column != column.name || cell.path.empty()) continue;
    const Value* value = find_path(object, cell.path);
    if (value != nullptr && !value->is_null()) {
      if (column.type == "string" && !value->is_bool()) {
        write_text_cell(*value, out);
      } else {
        out.value(*value);
      }
    } else if (column.type == "string" && cell.absent != "false") {
      out.value(cell.absent);
    } else {
      out.raw(cell.absent.empty() ? "null" : cell.absent);
    }
    return true;
  }
  return false;
}

}  // namespace

std::string lower_case(std::string_view text) {
  std::string out(text);
  for (char& c : out) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c + ('a' - 'A'));
  }
  return out;
}

std::string joined_words(const std::vector<std::string>& words, std::string_view by) {
  std::string out;
  for (std::size_t i = 0; i < words.size(); ++i) {
    if (i > 0) out += by;
    out += words[i];
  }
  return out;
}

std::string or_none(std::string_view text) { return text.empty() ? "<none>" : std::string(text); }

std::string human_duration(std::int64_t ns) {
  const std::int64_t seconds = ns / 1'000'000'000;
  const auto pair = [](std::int64_t a, char x, std::int64_t b, char y) {
    std::string out = std::to_string(a) + x;
    if (b != 0) out += std::to_string(b) + y;
    return out;
  };
  if (seconds < -1) return "<invalid>";
  if (seconds < 0) return "0s";
  if (seconds < 120) return std::to_string(seconds) + "s";
  const std::int64_t minutes = seconds / 60;
  if (minutes < 10) return pair(minutes, 'm', seconds % 60, 's');
  if (minutes < 180) return std::to_string(minutes) + "m";
  const std::int64_t hours = minutes / 60;
  if (hours < 8) return pair(hours, 'h', minutes % 60, 'm');
  if (hours < 48) return std::to_string(hours) + "h";
  if (hours < 192) return pair(hours / 24, 'd', hours % 24, 'h');
  if (hours < 24 * 365 * 2) return std::to_string(hours / 24) + "d";
  if (hours < 24 * 365 * 8) return pair(hours / 24 / 365, 'y', (hours / 24) % 365, 'd');
  return std::to_string(hours / 24 / 365) + "y";
}

std::string age_of(const Value& time, std::int64_t now_ns) {
  if (!time.is_string()) return "<unknown>";
  const auto parsed = text::parse_rfc3339(time.string());
  if (!parsed.ok()) return "<invalid>";
  return human_duration(now_ns - *parsed);
}

void write_columns(const Kind& kind, text::JsonWriter& out) {
  out.array([&] {
    for (const Column& column : kind.columns) {
      out.object([&] {
        out.field("name", column.name);
        out.field("type", column.type);
        out.field("format", column.format);
        out.field("description", column.description);
        out.field("priority", column.priority);
      });
    }
  });
}

void write_cells(const Kind& kind, const Value& object, std::int64_t now_ns,
                 text::JsonWriter& out) {
  out.array([&] {
    if (!kind.custom && special_cells(kind, object, now_ns, out)) return;
    const Value& meta = at(object, "metadata");
    for (const Column& column : kind.columns) {
      if (kind.custom) {
        custom_cell(column, object, now_ns, out);
      } else if (column.name == "Name") {
        out.value(text_at(meta, "name"));
      } else if (column.name == "Age") {
        out.value(age_of(at(meta, "creationTimestamp"), now_ns));
      } else if (column.name == "Created At") {
        out.value(text_at(meta, "creationTimestamp"));
      } else if (!simple_cell(kind, column, object, out)) {
        out.value("");
      }
    }
  });
}

}  // namespace berth::sim
