#include "app/views/snapshot_text.h"

#include "kinds/kept.h"
#include "text/json_writer.h"
#include "text/rfc3339.h"

namespace berth::app {

namespace {

using text::JsonWriter;
using text::Value;

std::string object_text(const kube::Resource& resource, const Value& item, bool arguments) {
  const kinds::KeepOptions keep = {.arguments = arguments};
  JsonWriter out;
  out.object([&] {
    out.field("apiVersion", resource.api_version());
    out.field("kind", resource.kind);
    for (const text::Member& member : item.members()) {
      if (member.key == "apiVersion" || member.key == "kind") continue;
      kinds::write_kept(out, member, keep);
    }
  });
  return std::move(out).take();
}

std::string in_lines(const std::vector<std::string>& texts) {
  std::string out;
  for (const std::string& text : texts) out += (out.empty() ? "" : "\n") + text;
  return out;
}

}  // namespace

std::string snapshot_text(const Listed& listed, std::string_view server, std::int64_t now_ns,
                          bool arguments) {
  JsonWriter annotations;
  annotations.object([&] {
    annotations.field(kTakenAnnotation, text::format_rfc3339(now_ns));
    annotations.field(kServerAnnotation, server);
    annotations.field(kVersionAnnotation, listed.version.text);
    annotations.field(kUnseenAnnotation, in_lines(listed.unseen));
    annotations.field(kAbsentAnnotation, in_lines(listed.absent));
  });
  std::string out = R"({"apiVersion":"v1","kind":"List","metadata":{"annotations":)" +
                    std::move(annotations).take() + "},\"items\":[";
  const char* before = "\n";
  for (const ListedPage& page : listed.pages) {
    const Value* items = page.document->root().find("items");
    if (items == nullptr) continue;
    for (const Value& item : items->items()) {
      if (!item.is_object()) continue;
      out += before + object_text(page.resource, item, arguments);
      before = ",\n";
    }
  }
  return out + "\n]}\n";
}

}  // namespace berth::app
