#include "app/snapshot_text.h"

#include <algorithm>

#include "text/json_writer.h"
#include "text/rfc3339.h"

namespace berth::app {

namespace {

using text::JsonWriter;
using text::Value;

constexpr std::string_view kLastApplied = "kubectl.kubernetes.io/last-applied-configuration";
constexpr std::string_view kLeftOut = "(left out)";

bool dropped(std::string_view key) {
  return key == "managedFields" || key == kLastApplied || key == "openAPIV3Schema";
}

bool about_gpus(std::string_view variable) {
  return variable.starts_with("NVIDIA_") || variable.starts_with("CUDA_") ||
         variable.starts_with("NCCL_");
}

void write_kept(const Value& v, JsonWriter& out);

void write_variable(const Value& v, JsonWriter& out) {
  const Value* name = v.find("name");
  const bool open = name != nullptr && about_gpus(name->string());
  out.begin_object();
  for (const text::Member& member : v.members()) {
    out.key(member.key);
    if (member.key == "value" && !open) {
      out.value(kLeftOut);
    } else {
      write_kept(member.value, out);
    }
  }
  out.end_object();
}

void write_member(const text::Member& member, JsonWriter& out) {
  if (dropped(member.key)) return;
  out.key(member.key);
  if (member.key != "env" || !member.value.is_array()) return write_kept(member.value, out);
  out.begin_array();
  for (const Value& variable : member.value.items()) {
    if (variable.is_object()) {
      write_variable(variable, out);
    } else {
      out.value(variable);
    }
  }
  out.end_array();
}

// Recursive to the depth of what the reader took (text::Limits).
void write_kept(const Value& v, JsonWriter& out) {
  if (v.is_object()) {
    out.begin_object();
    for (const text::Member& member : v.members()) write_member(member, out);
    out.end_object();
  } else if (v.is_array()) {
    out.begin_array();
    for (const Value& item : v.items()) write_kept(item, out);
    out.end_array();
  } else {
    out.value(v);
  }
}

std::string object_text(const kube::Resource& resource, const Value& item) {
  JsonWriter out;
  out.begin_object();
  out.field("apiVersion", resource.api_version());
  out.field("kind", resource.kind);
  for (const text::Member& member : item.members()) {
    if (member.key != "apiVersion" && member.key != "kind") write_member(member, out);
  }
  out.end_object();
  return std::move(out).take();
}

std::string in_lines(const std::vector<std::string>& texts) {
  std::string out;
  for (const std::string& text : texts) out += (out.empty() ? "" : "\n") + text;
  return out;
}

}  // namespace

std::string snapshot_text(const Listed& listed, std::string_view server, std::int64_t now_ns) {
  JsonWriter annotations;
  annotations.begin_object();
  annotations.field(kTakenAnnotation, text::format_rfc3339(now_ns));
  annotations.field(kServerAnnotation, server);
  annotations.field(kVersionAnnotation, listed.version.text);
  annotations.field(kUnseenAnnotation, in_lines(listed.unseen));
  annotations.field(kAbsentAnnotation, in_lines(listed.absent));
  annotations.end_object();
  std::string out = R"({"apiVersion":"v1","kind":"List","metadata":{"annotations":)" +
                    std::move(annotations).take() + "},\"items\":[";
  const char* before = "\n";
  for (const ListedPage& page : listed.pages) {
    const Value* items = page.document->root().find("items");
    if (items == nullptr) continue;
    for (const Value& item : items->items()) {
      if (!item.is_object()) continue;
      out += before + object_text(page.resource, item);
      before = ",\n";
    }
  }
  return out + "\n]}\n";
}

}  // namespace berth::app
