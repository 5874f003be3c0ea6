// POST and PUT of whole objects.
#include <utility>

#include "embedded/api/server.h"
#include "text/path.h"

namespace berth::sim::api {

namespace {

constexpr std::string_view kNameLetters = "bcdfghjklmnpqrstvwxz2456789";

std::string generated_name(Random& random, std::string_view base) {
  std::string name(base.substr(0, 58));
  for (int i = 0; i < 5; ++i) name += kNameLetters[random.below(kNameLetters.size())];
  return name;
}

// The namespace of the URL, written into the object; what the object says must not differ.
MaybeError settle_place(Draft& draft) {
  const Request& request = *draft.request;
  const std::string_view ns = text_at(draft.object, "metadata.namespace");
  if (draft.type->kind->namespaced) {
    if (!ns.empty() && ns != request.ns) {
      return bad_request(
          "the namespace of the provided object does not match the namespace sent "
          "on the request");
    }
    draft.ns = request.ns;
    draft.object =
        draft.edit.with_at(draft.object, "metadata.namespace", draft.edit.string(draft.ns));
  } else if (!ns.empty()) {
    if (!request.ns.empty() && ns != request.ns) {
      return bad_request(
          "the namespace of the provided object does not match the namespace sent "
          "on the request");
    }
    draft.object = draft.edit.without_at(draft.object, "metadata.namespace");
  }
  return std::nullopt;
}

MaybeError check_namespace_open(Server& server, const Draft& draft) {
  if (!draft.type->kind->namespaced) return std::nullopt;
  const TypePtr namespaces = server.registry.find("", "v1", "namespaces");
  const ObjectPtr ns = namespaces ? namespaces->shelf->latest(draft.ns) : nullptr;
  if (!ns) return not_found({"", "namespaces"}, draft.ns);
  if (!ns->terminating) return std::nullopt;
  ApiError error = forbidden(
      draft.type->resource(), draft.name,
      "unable to create new content in namespace " + draft.ns + " because it is being terminated");
  error.causes.push_back({"NamespaceTerminating", "metadata.namespace",
                          "namespace " + draft.ns + " is being terminated"});
  return error;
}

}  // namespace

std::string Server::make_uid() {
  constexpr std::string_view kHex = "0123456789abcdef";
  const std::uint64_t high = random.next(), low = random.next();
  std::string uid;
  for (int i = 0; i < 32; ++i) {
    if (i == 8 || i == 12 || i == 16 || i == 20) uid += '-';
    std::uint64_t digit = ((i < 16 ? high : low) >> (4 * (i % 16))) & 0xf;
    if (i == 12) digit = 4;
    if (i == 16) digit = 8 | (digit & 3);
    uid += kHex[digit];
  }
  return uid;
}

MaybeError Server::prepare_create(Draft& draft) {
  text::Editor& edit = draft.edit;
  if (auto error = settle_place(draft)) return error;
  const Value* meta = find(draft.object, "metadata");
  Value made = meta ? *meta : Value();
  if (!text_at(made, "resourceVersion").empty()) {
    ApiError error;
    error.message = "resourceVersion should not be set on objects to be created";
    return error;
  }
  draft.name = text_at(made, "name");
  const std::string_view base = text_at(made, "generateName");
  draft.asked_name = draft.name.empty() ? std::string(base) : draft.name;
  if (draft.name.empty() && !base.empty()) {
    do {
      draft.name = generated_name(random, base);
    } while (draft.type->shelf->entries.count(object_key(draft.ns, draft.name)) > 0);
    made = edit.with(made, "name", edit.string(draft.name));
  }
  for (const std::string_view key :
       {"resourceVersion", "deletionTimestamp", "deletionGracePeriodSeconds", "selfLink"}) {
    made = edit.without(made, key);
  }
  if (!draft.applied) made = edit.without(made, "managedFields");
  made = edit.with(made, "uid", edit.string(make_uid()));
  made = edit.with(made, "creationTimestamp", edit.string(now_text()));
  draft.object = edit.with(draft.object, "metadata", made);
  if (auto error = check_namespace_open(*this, draft)) return error;
  draft.object = edit.keep(for_create(*draft.type->kind, draft.object));
  return std::nullopt;
}

void Server::create(const RequestPtr& request) {
  if (auto error = read_write_options(*request)) return request->fail(*error);
  if (request->type->kind->namespaced && request->ns.empty()) {
    return request->fail(method_not_allowed({}, ""));
  }
  auto draft = std::make_shared<Draft>();
  draft->request = request;
  draft->type = request->type;
  if (auto error = decode_body(*request, draft->edit, draft->object)) {
    return request->fail(*error);
  }
  if (auto error = normalize_draft(*draft)) return request->fail(*error);
  if (auto error = prepare_create(*draft)) return request->fail(*error);
  carry_out(draft);
}

MaybeError Server::prepare_update(Draft& draft) {
  text::Editor& edit = draft.edit;
  const Type& type = *draft.type;
  if (auto error = settle_place(draft)) return error;
  const std::string_view name = text_at(draft.object, "metadata.name");
  if (name.empty()) {
    draft.object = edit.with_at(draft.object, "metadata.name", edit.string(draft.name));
  } else if (name != draft.name) {
    return bad_request("the name of the object (" + std::string(name) +
                       ") does not match the name on the URL (" + draft.name + ")");
  }
  const std::string_view version = text_at(draft.object, "metadata.resourceVersion");
  if (version.empty() || version == "0") {
    if (!type.unconditional) {
      return invalid_object(
          type.kind->group, type.kind->kind, draft.name,
          {invalid_value("metadata.resourceVersion", "0", "must be specified for an update")});
    }
  } else if (version.find_first_not_of("0123456789") != std::string_view::npos) {
    ApiError error;
    error.message = "strconv.ParseUint: parsing " + quoted(version) + ": invalid syntax";
    return error;
  } else if (version != std::to_string(draft.live->version)) {
    return modified(type.resource(), draft.name);
  }
  const std::string_view uid = text_at(draft.object, "metadata.uid");
  if (!uid.empty() && uid != draft.live->uid) {
    return conflict(type.resource(), draft.name,
                    "Precondition failed: UID in precondition: " + std::string(uid) +
                        ", UID in object meta: " + draft.live->uid);
  }
  if (draft.subresource == "finalize") {
    const Value* finalizers = find(draft.object, "spec.finalizers");
    draft.object = edit.with_at(draft.live_value, "spec.finalizers",
                                finalizers ? *finalizers : edit.array({}));
    return std::nullopt;
  }
  draft.object =
      edit.keep(for_update(*type.kind, draft.live_value, draft.object, draft.subresource));
  return std::nullopt;
}

void Server::update(const RequestPtr& request) {
  if (auto error = read_write_options(*request)) return request->fail(*error);
  auto draft = std::make_shared<Draft>();
  draft->request = request;
  draft->type = request->type;
  draft->ns = request->ns;
  draft->name = request->name;
  draft->subresource = request->subresource;
  if (auto error = decode_body(*request, draft->edit, draft->object)) {
    return request->fail(*error);
  }
  if (auto error = normalize_draft(*draft)) return request->fail(*error);
  if (auto error = load_live(*draft)) {
    if (error->code != 404 || !request->type->create_on_update || !request->subresource.empty()) {
      return request->fail(*error);
    }
    if (text_at(draft->object, "metadata.name") != request->name) {
      return request->fail(
          bad_request("the name of the object does not match the name on the "
                      "URL (" +
                      request->name + ")"));
    }
    draft->object = draft->edit.without_at(draft->object, "metadata.resourceVersion");
    if (auto refused = prepare_create(*draft)) return request->fail(*refused);
    return carry_out(draft);
  }
  // An update without a version is meant for whatever is there.
  const std::string_view version = text_at(draft->object, "metadata.resourceVersion");
  if (version.empty() || version == "0") draft->again = [this, request] { update(request); };
  if (auto error = prepare_update(*draft)) return request->fail(*error);
  carry_out(draft);
}

}  // namespace berth::sim::api
