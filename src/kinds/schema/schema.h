// What the embedded API server knows about kinds: fields, defaults, rules, patches, apply, columns.
//
// Pure functions over text::Value; no I/O, no clock (times are given in). Used by sim/api; a Kind
// is immutable and may be read from many threads. Whatever comes back in a Document shares no
// memory with what went in. Nothing here trusts its input: wrong values become causes or errors,
// never a crash; depth and sizes are bounded by the text::Limits that the reader applied.
//
// The order of a write on the main endpoint, as kube-apiserver does it:
//
//   parse_body -> (patches: strategic_merge_patch, apply_config, text/patch.h on the live object)
//   -> normalize (drops unknown fields, fills in defaults) -> track_update (not after apply)
//   -> admission, and normalize again when it changed something -> for_create / for_update
//   -> validate / validate_update
//
// Fields that admission or a strategy adds belong to no manager, so track_update comes first.
//
// Not evaluated: CEL rules of CRDs (x-kubernetes-validations) are kept in the schema and shown in
// OpenAPI, but no rule is run; a CRD's conversion webhook is refused, but for Kueue's kinds, which
// the API server converts by itself.
//
// Cost: normalize and validate are linear in the object, about 7 us each for a pod of 3 KB;
// apply_config and track_update 30 to 60 us. The table of kinds is read at first use (3 ms).
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "text/json_writer.h"
#include "text/value.h"

namespace berth::sim {

struct Schema;  // kinds/schema/node.h; nobody outside of this folder needs to look into it

// ---- kinds ---------------------------------------------------------------------------------

struct Column {  // of `kubectl get`
  std::string name;
  std::string type = "string";  // string, integer, number, boolean, date
  std::string format;           // "name" for the first
  std::string description;
  int priority = 0;       // above 0: only with -o wide
  std::string json_path;  // CRDs only
};

struct ScalePaths {             // "" when the kind has no scale subresource
  std::string spec_replicas;    // ".spec.replicas"
  std::string status_replicas;  // ".status.replicas"
  std::string label_selector;   // ".status.selector"; may be empty
};

// One kind in one version.
struct Kind {
  std::string group;  // "" for core
  std::string version;
  std::string kind;
  std::string list_kind;
  std::string plural;
  std::string singular;
  std::vector<std::string> short_names;
  std::vector<std::string> categories;
  bool namespaced = true;
  bool custom = false;    // from a CustomResourceDefinition
  bool served = true;     // CRD versions may be known and not served
  bool storage = true;    // the version that is stored
  bool status = false;    // has the status subresource
  bool finalize = false;  // Namespace
  ScalePaths scale;
  std::vector<std::string> subresources;  // further ones: "binding", "eviction", "log", "approval"
  std::vector<Column> columns;            // the first is always Name
  std::vector<std::string>
      selectable_fields;  // beside metadata.name and .namespace; "spec.nodeName"
  bool deprecated = false;
  std::string deprecation_warning;
  std::shared_ptr<const Schema> schema;

  std::string api_version() const { return group.empty() ? version : group + "/" + version; }
  std::string group_resource() const { return group.empty() ? plural : plural + "." + group; }
  std::string group_kind() const { return group.empty() ? kind : kind + "." + group; }
  bool has_scale() const { return !scale.spec_replicas.empty(); }
};
using KindPtr = std::shared_ptr<const Kind>;

// Every built-in kind, in the order discovery lists groups and, within a group, versions (preferred
// first) and resources. Made at first use; thread-safe.
const std::vector<KindPtr>& builtin_kinds();

// All versions of a CRD, served or not; the first error when it cannot be used. The CRD should have
// passed validate(); read_crd() checks again what it depends on.
Result<std::vector<KindPtr>> read_crd(const text::Value& crd);

// ---- bodies --------------------------------------------------------------------------------

struct Body {
  text::Document object;
  std::vector<std::string> duplicates;  // 'duplicate field "spec.a"'; the last one counts
};
// JSON, where a duplicate key is reported rather than refused. yaml: the same from YAML (duplicate
// keys are refused there).
inline constexpr std::size_t kMostYamlNodes = 60'000;
Result<Body> parse_body(std::string_view bytes, bool yaml = false, const text::Limits& limits = {});

// ---- reading an object into its kind -------------------------------------------------------

struct Normalized {
  text::Document object;
  std::vector<std::string>
      unknown;  // 'unknown field "spec.foo"', sorted; as Strict and Warn say it
};
struct NormalizeOptions {
  bool defaults = true;
  bool prune = true;  // false: unknown fields are reported and kept
};
// Drops unknown fields, drops nulls as Go decoding would, fills in defaults, brings quantities to
// their canonical form (built-in kinds). kind and apiVersion are set to the Kind's. An error is a
// value that Go could not decode in a built-in kind (HTTP 400): "json: cannot unmarshal string into
// Go struct field PodSpec.spec.priority of type int32". Custom kinds give no error: validate() says
// what is wrong with their types.
Result<Normalized> normalize(const Kind& kind, const text::Value& object,
                             const NormalizeOptions& options = {});

// What the kind's strategy does before a create: status emptied (Pod: phase and qosClass set),
// generation 1 where the kind has one, a Job's selector and labels from the uid that metadata must
// already hold. The caller sets name, uid, creationTimestamp.
text::Document for_create(const Kind& kind, const text::Value& object);
// The class of service of a pod with that spec, as status.qosClass says it.
std::string_view qos_class(const text::Value& spec);
// Before an update: "" takes status from live and raises generation when the spec changed;
// "status" takes everything but status (and managed metadata) from live. Both keep name, namespace,
// uid, creationTimestamp, deletion fields and generation of live.
text::Document for_update(const Kind& kind, const text::Value& live, const text::Value& object,
                          std::string_view subresource = {});

// ---- validation ----------------------------------------------------------------------------

struct Cause {          // of a Status with reason Invalid
  std::string reason;   // FieldValueInvalid, FieldValueRequired, FieldValueNotSupported, ...
  std::string field;    // spec.containers[0].image
  std::string message;  // Required value: ...
  friend bool operator==(const Cause&, const Cause&) = default;
};

// Of a normalized object with its name set; at most 100 causes. Includes metadata.
std::vector<Cause> validate(const Kind& kind, const text::Value& object);
// What must not change, then validate(). subresource: "" or "status".
std::vector<Cause> validate_update(const Kind& kind, const text::Value& live,
                                   const text::Value& object, std::string_view subresource = {});
// 'Pod "a" is invalid: spec.x: Required value' or '... is invalid: [f: m, g: n]'.
std::string invalid_message(const Kind& kind, std::string_view name, std::span<const Cause> causes);

// Names, "" when fine, otherwise the sentence of Kubernetes.
std::string check_dns1123_label(std::string_view name);
std::string check_dns1123_subdomain(std::string_view name);
std::string check_dns1035_label(std::string_view name);
std::string check_path_segment(std::string_view name);  // RBAC names
std::string check_label_key(std::string_view key);
std::string check_label_value(std::string_view value);

// ---- patches -------------------------------------------------------------------------------

// Strategic merge patch; only for built-in kinds (a custom one is an error: 415).
// Errors are 400; the directives are removed from the result.
Result<text::Document> strategic_merge_patch(const Kind& kind, const text::Value& live,
                                             const text::Value& patch);

// ---- server-side apply ---------------------------------------------------------------------

// An object in another version of its kind, for managers whose fields are named there; nothing
// where there is no such version.
struct OtherVersion {
  KindPtr kind;
  text::Document object;
};
using OtherVersions = std::function<std::optional<OtherVersion>(std::string_view api_version,
                                                                const text::Value& object)>;

struct ManagerOptions {
  std::string_view manager;      // fieldManager; Update: may be empty ("unknown")
  std::string_view now;          // "2026-01-02T03:04:05Z"
  std::string_view subresource;  // "status" etc.
  bool force = false;            // apply only
  OtherVersions other = {};      // empty: fields have the same names in all versions
};
struct Applied {
  text::Document object;  // with managedFields; not yet normalized
  // Not empty: nothing was applied (409). reason FieldManagerConflict, message
  // 'conflict with "manager" using v1', field ".spec.replicas".
  std::vector<Cause> conflicts;
  std::string conflict_message;  // of the Status: 'Apply failed with 1 conflict: conflict with ...'
};
// live is null (a null Value) when the object is created. Errors: config is not usable (a list
// without its keys, metadata.managedFields set, ...): 400.
Result<Applied> apply_config(const Kind& kind, const text::Value& live, const text::Value& config,
                             const ManagerOptions& options);

// managedFields of an object that was created (live null) or updated by anything but apply; not to
// be called after apply_config(). The entries that object brings along count when it has any,
// otherwise live's; [{}] forgets all of them. Where nothing changed, nothing is added.
text::Document track_update(const Kind& kind, const text::Value& live, const text::Value& object,
                            const ManagerOptions& options);

// Equal apart from metadata.managedFields and resourceVersion: such a write changes nothing.
bool same_apart_from_managers(const text::Value& a, const text::Value& b);

// ---- tables --------------------------------------------------------------------------------

// columnDefinitions: an array.
void write_columns(const Kind& kind, text::JsonWriter& out);
// cells of one row: an array.
void write_cells(const Kind& kind, const text::Value& object, std::int64_t now_ns,
                 text::JsonWriter& out);
std::string human_duration(std::int64_t ns);  // "5m10s", as ages are printed

// ---- paths and scale -----------------------------------------------------------------------

// A simple path ".spec.replicas" or "status.phase"; nullptr when absent. Keys with dots in
// ['a.b'] form; [0] picks an item.
const text::Value* find_path(const text::Value& object, std::string_view path);
// The same object with the value at a dotted path put in (objects on the way are made).
text::Document with_path(const text::Value& object, std::string_view path,
                         const text::Value& value);

// ---- OpenAPI -------------------------------------------------------------------------------

// The v3 document of one group and version; all kinds must be of it. With paths (whose parameters
// say that fieldValidation and dryRun work) and x-kubernetes-group-version-kind.
std::string openapi_v3(std::span<const KindPtr> kinds, std::string_view server_version);
// The index: /openapi/v3. hash: one per group version, in the order of first appearance in kinds.
std::string openapi_v3_index(std::span<const KindPtr> kinds,
                             const std::function<std::string(std::string_view gv_path)>& hash);
// One document of everything: /openapi/v2 as JSON (and as text for protobuf encoders).
std::string openapi_v2(std::span<const KindPtr> kinds, std::string_view server_version);

}  // namespace berth::sim
