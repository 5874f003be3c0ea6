// The way of a write: decoded, admitted, validated, tracked, committed, answered.
#include <utility>

#include "embedded/api/server.h"
#include "text/json_writer.h"
#include "text/path.h"

namespace berth::sim::api {

namespace {

constexpr std::string_view kBodyTypes = "application/json, application/yaml";

std::string strict_message(const Kind& kind, const std::vector<std::string>& problems) {
  std::string message = kind.kind + " in version " + quoted(kind.version) +
                        " cannot be handled as a " + kind.kind + ": strict decoding error: ";
  for (std::size_t i = 0; i < problems.size(); ++i) {
    if (i > 0) message += ", ";
    message += problems[i];
  }
  return message;
}

// What a Go package of internal types is called: "core.ConfigMap".
std::string internal_name(const Kind& kind) {
  const std::string package =
      kind.group.empty() ? "core" : kind.group.substr(0, kind.group.find('.'));
  return package + "." + kind.kind;
}

MaybeError check_kind(const Kind& kind, const Value& object) {
  const std::string_view api = text_at(object, "apiVersion");
  const std::string_view found = text_at(object, "kind");
  if (kind.custom && (api.empty() || found.empty())) {
    return bad_request("the object provided is unrecognized (must be of type " + kind.kind +
                       "): couldn't get version/kind; Object 'Kind' or 'apiVersion' is missing");
  }
  if (kind.custom && found != kind.kind) {
    return invalid_object(kind.group, kind.kind, text_at(object, "metadata.name"),
                          {invalid_value("kind", quoted(found), "must be " + kind.kind)});
  }
  if (!api.empty() && api != kind.api_version()) {
    return bad_request("the API version in the data (" + std::string(api) +
                       ") does not match the expected API version (" + kind.api_version() + ")");
  }
  if (!found.empty() && found != kind.kind) {
    return bad_request(std::string(found) + " in version " + quoted(kind.version) +
                       " cannot be handled as a " + kind.kind + ": converting (" + kind.version +
                       "." + std::string(found) + ") to (" + internal_name(kind) +
                       "): unknown conversion");
  }
  return std::nullopt;
}

}  // namespace

namespace {

// Who manages which fields, whenever they did.
bool same_managers(const Value& a, const Value& b) {
  const Value* one = find(a, "metadata.managedFields");
  const Value* two = find(b, "metadata.managedFields");
  const std::size_t size = one ? one->size() : 0;
  if (size != (two ? two->size() : 0)) return false;
  for (std::size_t i = 0; i < size; ++i) {
    for (const std::string_view key : {"manager", "operation", "subresource", "apiVersion"}) {
      if (one->items()[i][key].string() != two->items()[i][key].string()) return false;
    }
    const Value* fields = find(one->items()[i], "fieldsV1");
    const Value* others = find(two->items()[i], "fieldsV1");
    if (!fields != !others || (fields && !text::equal(*fields, *others))) return false;
  }
  return true;
}

ApiError patch_refused(const Request& request, std::string_view why) {
  ApiError error =
      invalid_object("", "", "", {invalid_value("patch", quoted(request.http.body), why)});
  error.message = " " + quoted("") + " is invalid: patch: " + error.causes[0].message;
  return error;
}

}  // namespace

MaybeError Server::check_fields(Request& request, const std::vector<std::string>& problems) const {
  if (problems.empty() || request.field_check == FieldCheck::kIgnore) return std::nullopt;
  if (request.field_check == FieldCheck::kStrict) {
    if (request.method() == "PATCH" && !request.applies) {
      const std::string whole = strict_message(*request.type->kind, problems);
      return patch_refused(request, std::string_view(whole).substr(whole.find("strict decoding")));
    }
    return bad_request(strict_message(*request.type->kind, problems));
  }
  for (const std::string& problem : problems) request.warn(problem);
  return std::nullopt;
}

MaybeError Server::decode_body(Request& request, text::Editor& edit, Value& out) const {
  const auto header = text::find_header(request.http.headers, "Content-Type");
  const std::string_view media = media_type(header.value_or("application/json"));
  const bool yaml = media == "application/yaml";
  if (!media.empty() && media != "application/json" && !yaml) {
    return unsupported_media_type(kBodyTypes);
  }
  auto body = parse_body(request.http.body, yaml);
  const Kind& kind = *request.type->kind;
  if (!body.ok()) {
    return bad_request(
        "the object provided is unrecognized (must be of type " + kind.kind +
        "): couldn't get version/kind; json parse error: " + body.error().to_string());
  }
  const std::vector<std::string> duplicates = std::move(body.value().duplicates);
  out = edit.keep(std::move(body.value().object));
  if (!out.is_object()) {
    return bad_request("the object provided is unrecognized (must be of type " + kind.kind +
                       "): couldn't get version/kind; json parse error: json: cannot unmarshal " +
                       std::string(text::name(out.kind())) + " into Go value of type struct");
  }
  if (auto error = check_kind(kind, out)) return error;
  return check_fields(request, duplicates);
}

MaybeError Server::normalize_draft(Draft& draft) {
  const Kind& kind = *draft.type->kind;
  auto normal = normalize(kind, draft.object);
  if (!normal.ok() && draft.request->method() == "PATCH" && !draft.request->applies) {
    return patch_refused(*draft.request, normal.error().to_string());
  }
  if (!normal.ok()) {
    return bad_request(kind.kind + " in version " + quoted(kind.version) +
                       " cannot be handled as a " + kind.kind + ": " + normal.error().to_string());
  }
  if (auto error = check_fields(*draft.request, normal.value().unknown)) return error;
  draft.object = draft.edit.keep(std::move(normal.value().object));
  return std::nullopt;
}

MaybeError Server::load_live(Draft& draft) {
  draft.live = draft.type->shelf->latest(draft.key());
  if (!draft.live) return not_found(draft.type->resource(), draft.name);
  const auto parsed = draft.edit.parse(draft.live->json);
  if (!parsed.ok()) return internal_error(parsed.error().to_string());
  draft.live_value = to_served(*draft.type, draft.edit, parsed.value());
  return std::nullopt;
}

void Server::carry_out(const DraftPtr& draft) {
  if (auto error = admit_builtin(*draft)) return draft->request->fail(*error);
  const Value before = draft->object;
  webhooks.mutate(draft, [this, draft, before](const MaybeError& refused) {
    if (refused) return draft->request->fail(*refused);
    const Kind& kind = *draft->type->kind;
    // Admission has changed it: a value is 16 bytes that say where its members are.
    if (draft->object.members().data() != before.members().data()) {
      auto normal = normalize(kind, draft->object);
      if (!normal.ok()) return draft->request->fail(internal_error(normal.error().to_string()));
      draft->object = draft->edit.keep(std::move(normal.value().object));
      if (draft->applied) draft->applied_as = before;
    }
    if (draft->create() && draft->type->role == Role::kPod) {  // by what admission made of it
      draft->object = draft->edit.with_at(draft->object, "status.qosClass",
                                          draft->edit.string(qos_class(draft->object["spec"])));
    }
    if (!draft->checked) {
      std::vector<Cause> causes =
          draft->create()
              ? validate(kind, draft->object)
              : validate_update(kind, draft->live_value, draft->object, draft->subresource);
      if (!causes.empty()) {
        return draft->request->fail(
            invalid_object(kind.group, kind.kind, draft->name, std::move(causes)));
      }
    }
    if (auto error = check_builtin(*draft)) return draft->request->fail(*error);
    webhooks.validate(draft, [this, draft](const MaybeError& denied) {
      if (denied) return draft->request->fail(*denied);
      if (auto error = check_quotas(*draft)) return draft->request->fail(*error);
      commit(draft);
    });
  });
}

ApiError Server::store_error(const Error& error) {
  return error.code() == Code::kExhausted ? no_room(error.message())
                                          : internal_error(error.to_string());
}

// Worded as kube-apiserver words it, whose store says no.
MaybeError Server::check_size(const Kind& kind, const Object& object) const {
  // There, objects of built-in kinds are smaller by some as protobuf.
  const std::size_t limit =
      kind.custom ? options.max_object_bytes : options.max_object_bytes * 4 / 3;
  if (object.json.size() <= limit) return std::nullopt;
  ApiError error;
  error.message = "etcdserver: request is too large";
  return error;
}

void Server::answer_stored(Request& request, int status, const ObjectPtr& object) {
  request.answer(status, render_for(request, *object, loop.wall().now_ns()));
}

void Server::commit(const DraftPtr& draft) {
  Request& request = *draft->request;
  Shelf& shelf = *draft->type->shelf;
  if (shelf.latest(draft->key()) != draft->live) {
    if (draft->again && ++draft->tries < 20) return draft->again();
    if (!draft->create()) return request.fail(modified(draft->type->resource(), draft->name));
    ApiError there = already_exists(draft->type->resource(), draft->name);
    const ObjectPtr holder = shelf.latest(draft->key());
    if (holder && holder->terminating) there.message = "object is being deleted: " + there.message;
    return request.fail(there);
  }
  const Kind& kind = *draft->type->kind;
  const std::string now = now_text();
  const ManagerOptions manager{request.manager, now, draft->subresource, false,
                               other_versions(registry, *draft->type)};
  if (draft->applied) {
    // Apply has named the managers; what webhooks changed since then is added to them.
    if (!draft->applied_as.is_null()) {
      draft->object =
          draft->edit.keep(track_update(kind, draft->applied_as, draft->object, manager));
    }
  } else if (!draft->checked) {
    draft->object = draft->edit.keep(track_update(kind, draft->live_value, draft->object, manager));
  }
  const int status = draft->create() ? 201 : 200;
  if (!draft->create() && same_apart_from_managers(draft->live_value, draft->object) &&
      same_managers(draft->live_value, draft->object)) {
    if (draft->answer) return draft->answer(draft->live);
    return answer_stored(request, status, draft->live);
  }
  const Value stored = to_stored(*draft->type, draft->edit, draft->object);
  if (request.dry_run) {
    const ObjectPtr shown =
        make_object(*shelf.kind, draft->edit, stored, draft->live ? draft->live->version : 0);
    if (draft->answer) return draft->answer(shown);
    return answer_stored(request, status, shown);
  }
  if (storage.broken()) return request.fail(internal_error("the store failed"));
  const ObjectPtr object = make_object(*shelf.kind, draft->edit, stored, storage.reserve());
  if (auto error = check_size(kind, *object)) return request.fail(*error);
  const auto done = [this, draft, object, status](const Status& committed) {
    if (!committed.ok()) {
      return draft->request->fail(store_error(committed.error()));
    }
    if (draft->answer) return draft->answer(object);
    answer_stored(*draft->request, status, object);
  };
  if (!draft->create() && finished(*draft->type, draft->object)) {
    storage.remove(shelf, object, done);
  } else {
    storage.put(shelf, object, done);
  }
}

void Server::rewrite(Shelf& shelf, const std::string& key, const Edit& edit,
                     std::function<void()> done) {
  const ObjectPtr live = shelf.latest(key);
  if (!live || storage.broken()) {
    if (done) done();
    return;
  }
  text::Editor editor;
  const auto parsed = editor.parse(live->json);
  const std::optional<Value> edited =
      parsed.ok() ? edit(editor, parsed.value()) : std::optional<Value>();
  const TypePtr type = registry.of_shelf(shelf);
  if (!edited || !type) {
    if (done) done();
    return;
  }
  const ObjectPtr object = make_object(*shelf.kind, editor, *edited, storage.reserve());
  const auto told = [done = std::move(done)](const Status&) {
    if (done) done();
  };
  if (finished(*type, *edited)) {
    storage.remove(shelf, object, told);
  } else {
    storage.put(shelf, object, told);
  }
}

}  // namespace berth::sim::api
