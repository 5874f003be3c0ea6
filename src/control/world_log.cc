#include "control/world_log.h"

#include "kinds/kept.h"
#include "kinds/policy.h"
#include "text/path.h"

namespace berth::control {

using text::JsonWriter;
using text::Value;

namespace {

std::string object_key(std::string_view version, std::string_view kind, std::string_view ns,
                       std::string_view name) {
  std::string out(version);
  for (const std::string_view part : {kind, ns, name}) out.append("|").append(part);
  return out;
}

}  // namespace

Result<model::PolicyFlags> read_flags(const Value& line) {
  model::PolicyFlags flags;
  text::Decoder d;
  const text::Decoder::Strict strict(d);
  if (const Value* placement = line.find("placement")) {
    kinds::read_placement(*placement, flags.placement.emplace(), d);
  }
  if (const Value* queues = line.find("queues")) {
    kinds::read_queue_policy(*queues, flags.queues.emplace(), d);
  }
  flags.no_preemption = true_at(line, "noPreemption");
  if (!d.ok()) return d.to_error();
  return flags;
}

void WorldLog::begin(const std::vector<std::string>& scheduler_names,
                     const model::PolicyFlags& flags) {
  JsonWriter out;
  out.object([&] {
    out.field("op", "begin");
    out.field("format", kWorldLogFormat);
    out.list("schedulerNames", scheduler_names);
    if (flags.placement) {
      out.key("placement");
      kinds::encode_placement(*flags.placement, out);
    }
    if (flags.queues) {
      out.key("queues");
      kinds::encode_queue_policy(*flags.queues, out);
    }
    if (flags.no_preemption) out.field("noPreemption", true);
  });
  start_file(std::move(out).take());
}

void WorldLog::put(std::string_view version, std::string_view kind, const Value& object) {
  JsonWriter out;
  out.object([&] {
    out.field("op", "put");
    out.field("v", version);
    out.field("k", kind);
    out.key("o");
    kinds::write_kept(out, object, {.arguments = false, .node_images = false});
  });
  const Value* meta = object.find("metadata");
  const Value none;
  const Value& m = meta == nullptr ? none : *meta;
  write_object(object_key(version, kind, text_at(m, "namespace"), text_at(m, "name")),
               std::move(out).take(), true);
}

void WorldLog::keep_before(std::string_view version, std::string_view kind, std::string_view ns,
                           std::string_view name) {
  keep_line_before(object_key(version, kind, ns, name));
}

void WorldLog::remove(std::string_view version, std::string_view kind, std::string_view ns,
                      std::string_view name) {
  JsonWriter out;
  out.object([&] {
    out.field("op", "remove");
    out.field("v", version);
    out.field("k", kind);
    out.field("ns", ns);
    out.field("name", name);
  });
  write_object(object_key(version, kind, ns, name), std::move(out).take(), false);
}

void WorldLog::note(std::string_view op, std::initializer_list<Field> fields) {
  JsonWriter out;
  out.object([&] {
    out.field("op", op);
    for (const auto& [key, word] : fields) {
      std::visit([&, name = key](const auto& value) { out.field(name, value); }, word);
    }
  });
  write(std::move(out).take());
}

void WorldLog::note_names(std::string_view op, const std::set<std::string>& names) {
  JsonWriter out;
  out.object([&] {
    out.field("op", op);
    out.list("names", names);
  });
  write(std::move(out).take());
}

}  // namespace berth::control
