#include "edge/kube/watch_line.h"

#include "text/builder.h"
#include "text/json.h"

namespace berth::kube {
namespace {

constexpr std::string_view kTypeStart = R"({"type":")";
constexpr std::string_view kObjectStart = R"(","object":)";

std::string joined_path(const std::string& prefix, std::string_view key) {
  return prefix.empty() ? std::string(key) : prefix + "." + std::string(key);
}

// True when some path starts with this one, so that its members have to be looked at.
bool leads_on(const std::vector<std::string>& paths, const std::string& path) {
  for (const std::string& p : paths) {
    if (p.size() > path.size() && p.starts_with(path) && p[path.size()] == '.') return true;
  }
  return false;
}

void copy_members(text::Builder& out, const text::Value& object,
                  const std::vector<std::string>& without, const std::string& prefix) {
  for (const text::Member& member : object.members()) {
    const std::string path = without.empty() ? std::string() : joined_path(prefix, member.key);
    bool dropped = false;
    for (const std::string& p : without) dropped = dropped || p == path;
    if (dropped) continue;
    out.key(out.copy(member.key), 0);
    if (member.value.is_object() && leads_on(without, path)) {
      out.begin_object(0);
      copy_members(out, member.value, without, path);
      out.end();
    } else {
      out.deep_copy(member.value);
    }
  }
}

}  // namespace

bool has_any_path(const text::Value& object, const std::vector<std::string>& paths) {
  for (std::string_view path : paths) {
    const text::Value* at = &object;
    while (at) {
      std::size_t dot = path.find('.');
      at = at->find(path.substr(0, dot));
      if (dot == std::string_view::npos) break;
      path.remove_prefix(dot + 1);
    }
    if (at) return true;
  }
  return false;
}

text::Document copy_object(const text::Value& object, const std::vector<std::string>& without,
                           std::string_view api_version, std::string_view kind) {
  text::Builder out(text::Limits{.max_depth = 1000});
  out.begin_object(0);
  if (!api_version.empty() && !object.find("apiVersion")) {
    out.key("apiVersion", 0);
    out.string(out.copy(api_version), 0);
  }
  if (!kind.empty() && !object.find("kind")) {
    out.key("kind", 0);
    out.string(out.copy(kind), 0);
  }
  copy_members(out, object, without, {});
  out.end();
  if (out.failed()) return {};
  return std::move(out).finish();
}

Result<WatchLine> read_watch_line(std::string_view line) {
  if (!line.empty() && line.back() == '\r') line.remove_suffix(1);
  if (line.starts_with(kTypeStart) && line.ends_with('}')) {
    std::size_t quote = line.find('"', kTypeStart.size());
    if (quote != std::string_view::npos && line.substr(quote).starts_with(kObjectStart)) {
      std::string_view inside = line.substr(quote + kObjectStart.size());
      inside.remove_suffix(1);
      auto object = text::parse_json(inside);
      auto type = watch_type_of(line.substr(kTypeStart.size(), quote - kTypeStart.size()));
      // A type that is not known may be spelled with escapes, or be no text at all.
      if (object.ok() && object->root().is_object() && type != WatchType::kUnknown) {
        return WatchLine{type, std::move(object).value()};
      }
    }
  }
  BERTH_TRY(text::Document whole, text::parse_json(line));
  const text::Value* type = whole.root().find("type");
  const text::Value* object = whole.root().find("object");
  if (!type || !type->is_string() || !object || !object->is_object()) {
    return invalid("a watch event without type or object");
  }
  return WatchLine{watch_type_of(type->string()), copy_object(*object, {}, {}, {})};
}

}  // namespace berth::kube
