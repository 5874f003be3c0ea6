// Stored objects as answers: in the version, and in the shape, that was asked for. Pure.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "embedded/api/object.h"
#include "embedded/api/registry.h"
#include "embedded/api/request.h"

namespace berth::sim::api {

// The object in the version of the type, as a value. Stored versions pass through unchanged; those
// of Kueue's kinds (kinds/kueue_convert.h) and of autoscalers (autoscaler_forms.h) are converted,
// of others only apiVersion differs.
Value to_served(const Type& type, text::Editor& edit, const Value& stored);
Value to_stored(const Type& type, text::Editor& edit, const Value& served);
// For managers whose fields are those of another version of the type; empty where all are alike.
OtherVersions other_versions(const Registry& registry, const Type& type);

// Whole, with kind and apiVersion. Cost: a copy; other versions are parsed and printed.
std::string render_object(const Type& type, const Object& object);
// As the request wants it: object, table of one row, or metadata alone.
std::string render_for(const Request& request, const Object& object, std::int64_t now_ns,
                       bool columns = true);
// A value that is not stored (dry run, Scale); always the object itself unless it is of the type.
std::string render_value_for(const Request& request, const Value& served, std::int64_t now_ns);

struct ListAnswer {
  std::uint64_t version = 0;
  std::string next;         // continue
  std::int64_t remain = 0;  // remainingItemCount; 0 is not said
};
// A list in pieces: what comes before the items, an item (with a comma unless it is the first), and
// what comes after. In the request's shape, as JSON or as YAML.
std::string list_head(const Request& request, const ListAnswer& meta);
void append_list_item(const Request& request, const Object& object, bool first, std::int64_t now_ns,
                      std::string& out);
std::string list_tail(const Request& request, const ListAnswer& meta);

// The object of a BOOKMARK; initial_end marks the end of the initial events.
std::string render_bookmark(const Request& request, std::uint64_t version, bool initial_end);

}  // namespace berth::sim::api
