// DELETE: grace, finalizers, propagation; one object or a collection.
#include <algorithm>
#include <charconv>
#include <utility>

#include "embedded/api/server.h"
#include "text/json_writer.h"
#include "text/path.h"
#include "text/rfc3339.h"

namespace berth::sim::api {

namespace {

constexpr std::string_view kOrphan = "orphan";
constexpr std::string_view kForeground = "foregroundDeletion";

MaybeError read_seconds(std::string_view text, std::optional<std::int64_t>& out) {
  if (text.empty()) return std::nullopt;
  std::int64_t seconds = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), seconds);
  if (error != std::errc() || end != text.data() + text.size()) {
    return bad_request("strconv.ParseInt: parsing " + quoted(text) + ": invalid syntax");
  }
  out = seconds;
  return std::nullopt;
}

MaybeError read_wish_body(const Request& request, DeleteWish& out) {
  if (request.http.body.empty()) return std::nullopt;
  const auto header = text::find_header(request.http.headers, "Content-Type");
  const bool yaml = media_type(header.value_or("application/json")) == "application/yaml";
  const auto body = parse_body(request.http.body, yaml);
  if (!body.ok()) {
    return bad_request("could not decode DeleteOptions: " + body.error().to_string());
  }
  const Value& root = body.value().object.root();
  const std::string_view kind = text_at(root, "kind");
  if (!kind.empty() && kind != "DeleteOptions") {
    return bad_request("decoded object cannot be converted to DeleteOptions");
  }
  if (const Value* grace = find(root, "gracePeriodSeconds")) out.grace_seconds = grace->as_int64();
  if (const Value* orphan = find(root, "orphanDependents")) {
    out.propagation = orphan->as_bool() ? "Orphan" : "Background";
  }
  if (const Value* policy = find(root, "propagationPolicy")) out.propagation = policy->string();
  out.uid = text_at(root, "preconditions.uid");
  out.version = text_at(root, "preconditions.resourceVersion");
  if (const Value* dry = find(root, "dryRun")) out.dry_run = dry->size() > 0;
  return std::nullopt;
}

Value with_finalizer(text::Editor& edit, const Value& meta, std::string_view finalizer) {
  const Value* list = find(meta, "finalizers");
  const Value none = edit.array({});
  const Value& from = list ? *list : none;
  for (const Value& item : from.items()) {
    if (item.string() == finalizer) return meta;
  }
  return edit.with(meta, "finalizers", edit.append(from, edit.string(finalizer)));
}

// How long the object may still take; 0: none.
std::int64_t grace_of(const Type& type, const Value& object, const DeleteWish& wish) {
  if (type.role != Role::kPod) return 0;
  const std::int64_t own = int_at(object, "spec.terminationGracePeriodSeconds", 30);
  std::int64_t grace = wish.grace_seconds.value_or(own);
  if (grace < 0) grace = 1;
  const std::string_view phase = text_at(object, "status.phase");
  if (text_at(object, "spec.nodeName").empty() || phase == "Succeeded" || phase == "Failed") {
    grace = 0;
  }
  return grace;
}

std::string success_json(const Type& type, const Object& object) {
  text::JsonWriter out;
  out.object([&] {
    out.field("kind", "Status");
    out.field("apiVersion", "v1");
    out.object("metadata", [&] {});
    out.field("status", "Success");
    out.object("details", [&] {
      out.field("name", object.name);
      if (!type.kind->group.empty()) out.field("group", type.kind->group);
      out.field("kind", type.kind->plural);
      out.field("uid", object.uid);
    });
  });
  return std::move(out).take();
}

}  // namespace

MaybeError Server::read_delete_wish(const Request& request, DeleteWish& out) const {
  if (auto error = read_wish_body(request, out)) return error;
  if (auto error = read_seconds(request.query("gracePeriodSeconds"), out.grace_seconds)) {
    return error;
  }
  if (!request.query("propagationPolicy").empty()) {
    out.propagation = request.query("propagationPolicy");
  }
  if (request.target.get("orphanDependents")) {
    out.propagation = request.query_true("orphanDependents") ? "Orphan" : "Background";
  }
  if (request.query("dryRun") == "All") out.dry_run = true;
  const std::string& policy = out.propagation;
  if (!policy.empty() && policy != "Background" && policy != "Foreground" && policy != "Orphan") {
    return invalid_object("meta.k8s.io", "DeleteOptions", "",
                          {not_supported("propagationPolicy", policy,
                                         {"Foreground", "Background", "Orphan", "nil"})});
  }
  return std::nullopt;
}

bool Server::finished(const Type& type, const Value& object) const {
  if (find(object, "metadata.deletionTimestamp") == nullptr) return false;
  const Value* finalizers = find(object, "metadata.finalizers");
  if (finalizers != nullptr && finalizers->size() > 0) return false;
  if (type.role == Role::kNamespace) {
    const Value* spec = find(object, "spec.finalizers");
    return spec == nullptr || spec->size() == 0;
  }
  if (type.role == Role::kPod) {
    return int_at(object, "metadata.deletionGracePeriodSeconds", 0) == 0;
  }
  return true;
}

void Server::delete_object(const TypePtr& type, const std::string& key, const DeleteWish& wish,
                           DeleteDone done) {
  Shelf& shelf = *type->shelf;
  const ObjectPtr live = shelf.latest(key);
  const std::string name = live ? live->name : key.substr(key.find('/') + 1);
  if (!live) return done(not_found(type->resource(), name), {});
  if (!wish.uid.empty() && wish.uid != live->uid) {
    return done(conflict(type->resource(), name,
                         "the UID in the precondition (" + wish.uid +
                             ") does not match the UID in record (" + live->uid +
                             "). The object might have been deleted and then recreated"),
                {});
  }
  if (!wish.version.empty() && wish.version != std::to_string(live->version)) {
    return done(
        conflict(type->resource(), name,
                 "the ResourceVersion in the precondition (" + wish.version +
                     ") does not match the ResourceVersion in record (" +
                     std::to_string(live->version) + "). The object might have been modified"),
        {});
  }
  if (storage.broken()) return done(internal_error("the store failed"), {});
  text::Editor edit;
  const auto parsed = edit.parse(live->json);
  if (!parsed.ok()) return done(internal_error(parsed.error().to_string()), {});
  Value object = parsed.value();
  Value meta = *object.find("metadata");
  const std::int64_t grace = grace_of(*type, object, wish);
  bool changed = false;
  if (!live->terminating) {
    if (wish.propagation == "Orphan") meta = with_finalizer(edit, meta, kOrphan);
    if (wish.propagation == "Foreground") meta = with_finalizer(edit, meta, kForeground);
  }
  const std::int64_t before = int_at(meta, "deletionGracePeriodSeconds", -1);
  if (!live->terminating || (before > grace && (wish.grace_seconds || grace == 0))) {
    const std::int64_t now_ns = loop.wall().now_ns() / 1'000'000'000 * 1'000'000'000;
    meta = edit.with(meta, "deletionTimestamp",
                     edit.string(text::format_rfc3339(now_ns + grace * 1'000'000'000)));
    meta = edit.with(meta, "deletionGracePeriodSeconds", edit.number(grace));
    if (find(meta, "generation")) {
      meta = edit.with(meta, "generation", edit.number(int_at(meta, "generation", 0) + 1));
    }
    changed = true;
  }
  object = edit.with(object, "metadata", meta);
  if (type->role == Role::kNamespace) {
    object = edit.with_at(object, "status.phase", edit.string("Terminating"));
  }
  const bool gone = finished(*type, object);
  if (gone) object = parsed.value();  // leaves as it was, not as it would have been marked
  if (wish.dry_run || (!gone && !changed)) {
    return done(std::nullopt, {live, gone});
  }
  const ObjectPtr stored = make_object(*shelf.kind, edit, object, storage.reserve());
  const auto told = [stored, gone, done = std::move(done)](const Status& status) {
    if (!status.ok()) return done(store_error(status.error()), {});
    done(std::nullopt, {stored, gone});
  };
  if (gone) {
    storage.remove(shelf, stored, told);
  } else {
    storage.put(shelf, stored, told);
  }
}

void Server::remove(const RequestPtr& request) {
  DeleteWish wish;
  if (request->type->role == Role::kNamespace &&
      (request->name == "default" || request->name == "kube-system" ||
       request->name == "kube-public")) {
    return request->fail(
        forbidden(request->type->resource(), request->name, "this namespace may not be deleted"));
  }
  if (auto error = read_delete_wish(*request, wish)) return request->fail(*error);
  const TypePtr type = request->type;
  const auto go = [this, request, type, wish] {
    delete_object(type, object_key(request->ns, request->name), wish,
                  [this, request, type](const MaybeError& error, const Deleted& deleted) {
                    if (error) return request->fail(*error);
                    if (deleted.gone && !type->returns_deleted) {
                      return request->answer(200, success_json(*type, *deleted.object));
                    }
                    answer_stored(*request, 200, deleted.object);
                  });
  };
  // Webhooks may refuse a deletion; they see what would be deleted.
  auto draft = std::make_shared<Draft>();
  draft->request = request;
  draft->type = type;
  draft->ns = request->ns;
  draft->name = request->name;
  request->dry_run = wish.dry_run;
  if (load_live(*draft)) return go();  // not there: go() says so
  draft->object = Value();
  webhooks.validate(draft, [request, go](const MaybeError& denied) {
    if (denied) return request->fail(*denied);
    go();
  });
}

void Server::remove_collection(const RequestPtr& request) {
  DeleteWish wish;
  if (auto error = read_delete_wish(*request, wish)) return request->fail(*error);
  wish.uid.clear();
  wish.version.clear();
  Selection selection;
  if (auto error = read_selection(*request, selection)) return request->fail(*error);
  const Shelf& shelf = *request->type->shelf;
  std::vector<ObjectPtr> chosen;
  for (const auto& [key, entry] : shelf.entries) {
    if (!entry.latest) continue;
    if (!request->ns.empty() && entry.latest->ns != request->ns) continue;
    if (selects(selection, *shelf.kind, *entry.latest)) chosen.push_back(entry.latest);
  }
  struct Pending {
    std::vector<ObjectPtr> chosen;
    std::size_t left = 0;
    MaybeError first;
  };
  auto pending = std::make_shared<Pending>();
  pending->left = chosen.size() + 1;
  pending->chosen = chosen;
  const auto told = [this, request, pending](const MaybeError& error, const Deleted&) {
    if (error && error->code != 404 && !pending->first) pending->first = error;
    if (--pending->left > 0) return;
    if (pending->first) return request->fail(*pending->first);
    ListAnswer meta;
    meta.version = storage.committed();
    answer_list(request, std::move(pending->chosen), meta);
  };
  in_slices<ObjectPtr>(
      std::move(chosen),
      [this, request, wish, told](const ObjectPtr& object) {
        delete_object(request->type, object_key(object->ns, object->name), wish, told);
      },
      [told] { told(std::nullopt, {}); });
}

}  // namespace berth::sim::api
