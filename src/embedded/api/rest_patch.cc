// PATCH: JSON, merge, strategic merge and server-side apply.
#include <utility>

#include "embedded/api/server.h"
#include "text/json.h"
#include "text/patch.h"
#include "text/path.h"

namespace berth::sim::api {

namespace {

constexpr std::string_view kPatchTypes =
    "application/json-patch+json, application/merge-patch+json, "
    "application/strategic-merge-patch+json, application/apply-patch+yaml";
constexpr std::string_view kCustomPatchTypes =
    "application/json-patch+json, application/merge-patch+json, application/apply-patch+yaml";

enum class PatchForm : std::uint8_t { kJson, kMerge, kStrategic, kApply };

MaybeError read_form(const Request& request, PatchForm& out) {
  const auto header = text::find_header(request.http.headers, "Content-Type");
  const std::string_view media = media_type(header.value_or(std::string_view{}));
  const bool custom = request.type->kind->custom;
  if (media == "application/json-patch+json") {
    out = PatchForm::kJson;
  } else if (media == "application/merge-patch+json") {
    out = PatchForm::kMerge;
  } else if (media == "application/strategic-merge-patch+json" && !custom) {
    out = PatchForm::kStrategic;
  } else if (media == "application/apply-patch+yaml") {
    out = PatchForm::kApply;
  } else {
    if (media.ends_with("-patch+json") || custom) {
      return unsupported_media_type(custom ? kCustomPatchTypes : kPatchTypes);
    }
    ApiError error = unsupported_media_type(kPatchTypes);
    error.message = "415: Unsupported Media Type";
    return error;
  }
  return std::nullopt;
}

ApiError patch_error(const Error& error, PatchForm form) {
  // A JSON patch that does not fit the object is Invalid; one that is none is a bad request.
  if (form == PatchForm::kJson && error.code() != Code::kInvalid) {
    ApiError refused = bad_request(error.to_string());
    refused.code = 422;
    refused.reason = "Invalid";
    refused.message = "the server rejected our request due to an error in our request";
    refused.causes.push_back({"", "", error.to_string()});
    return refused;
  }
  return bad_request(error.to_string());
}

// The live object with the patch applied, not yet read into its kind.
MaybeError apply_patch(Draft& draft, PatchForm form, const Value& body) {
  const Kind& kind = *draft.type->kind;
  auto made = form == PatchForm::kJson    ? text::apply_json_patch(draft.live_value, body)
              : form == PatchForm::kMerge ? text::apply_merge_patch(draft.live_value, body)
                                          : strategic_merge_patch(kind, draft.live_value, body);
  if (!made.ok()) return patch_error(made.error(), form);
  draft.object = draft.edit.keep(std::move(made).value());
  if (!draft.object.is_object()) {
    return bad_request("the patch does not leave an object");
  }
  if (text_at(draft.object, "kind") != kind.kind ||
      text_at(draft.object, "apiVersion") != kind.api_version()) {
    return bad_request("the patch must not change apiVersion or kind");
  }
  return std::nullopt;
}

struct PatchJob {
  PatchForm form = PatchForm::kMerge;
  Value body;
  text::Editor edit;  // of the body
};

MaybeError read_patch_body(const Request& request, PatchJob& job) {
  if (job.form == PatchForm::kApply) {
    auto body = parse_body(request.http.body, true);
    if (!body.ok()) {
      return bad_request("error decoding YAML: " + body.error().to_string());
    }
    job.body = job.edit.keep(std::move(body.value().object));
    if (!job.body.is_object()) return bad_request("the applied configuration is not an object");
    return std::nullopt;
  }
  auto parsed = job.edit.parse(request.http.body);
  if (!parsed.ok()) {
    return bad_request("error decoding patch: " + parsed.error().to_string());
  }
  job.body = parsed.value();
  constexpr std::size_t kMostOperations = 10'000;  // as kube-apiserver
  if (job.form == PatchForm::kJson && job.body.size() > kMostOperations) {
    ApiError error = body_too_large(0);
    error.message = "The allowed maximum operations in a JSON patch is " +
                    std::to_string(kMostOperations) + ", got " + std::to_string(job.body.size());
    return error;
  }
  return std::nullopt;
}

MaybeError check_apply_options(const Request& request) {
  if (!request.query("fieldManager").empty()) return std::nullopt;
  return invalid_object("meta.k8s.io", "PatchOptions", "",
                        {required("fieldManager", "is required for apply patch")});
}

MaybeError apply_to_draft(Server& server, Draft& draft, const Value& config) {
  const Request& request = *draft.request;
  const Kind& kind = *draft.type->kind;
  const std::string_view api = text_at(config, "apiVersion");
  const std::string_view named = text_at(config, "kind");
  if (api != kind.api_version() || named != kind.kind) {
    return bad_request("invalid object type: " + std::string(api) + ", Kind=" + std::string(named));
  }
  const std::string now = server.now_text();
  const ManagerOptions manager{request.manager, now, draft.subresource, request.query_true("force"),
                               other_versions(server.registry, *draft.type)};
  auto applied = apply_config(kind, draft.live_value, config, manager);
  if (!applied.ok()) {
    ApiError refused = bad_request(applied.error().to_string());
    if (refused.message.find("field not declared in schema") != std::string::npos) {
      refused.code = 500;
      refused.reason.clear();
    }
    return refused;
  }
  if (!applied.value().conflicts.empty()) {
    ApiError error;
    error.code = 409;
    error.reason = "Conflict";
    error.message = applied.value().conflict_message;
    error.causes = std::move(applied.value().conflicts);
    return error;
  }
  draft.object = draft.edit.keep(std::move(applied.value().object));
  draft.applied = true;
  return std::nullopt;
}

void attempt_patch(Server& server, const RequestPtr& request, const std::shared_ptr<PatchJob>& job,
                   int tries) {
  auto draft = std::make_shared<Draft>();
  draft->request = request;
  draft->type = request->type;
  draft->ns = request->ns;
  draft->name = request->name;
  draft->subresource = request->subresource;
  draft->tries = tries;
  draft->again = [&server, request, job, tries] { attempt_patch(server, request, job, tries + 1); };
  if (auto error = server.load_live(*draft)) {
    if (job->form != PatchForm::kApply || error->code != 404 || !request->subresource.empty()) {
      return request->fail(*error);
    }
  }
  MaybeError error = job->form == PatchForm::kApply ? apply_to_draft(server, *draft, job->body)
                                                    : apply_patch(*draft, job->form, job->body);
  if (error) return request->fail(*error);
  if (draft->create()) {
    const std::string_view name = text_at(draft->object, "metadata.name");
    if (!name.empty() && name != request->name) {
      return request->fail(bad_request("the name of the object (" + std::string(name) +
                                       ") does not match the name on the URL (" + request->name +
                                       ")"));
    }
    draft->object =
        draft->edit.with_at(draft->object, "metadata.name", draft->edit.string(request->name));
  } else {
    const Value* mine = find(draft->object, "metadata.resourceVersion");
    if (mine == nullptr || mine->string().empty()) {
      draft->object = draft->edit.with_at(draft->object, "metadata.resourceVersion",
                                          draft->edit.string(std::to_string(draft->live->version)));
    }
  }
  request->warnings.clear();
  if (auto bad = server.normalize_draft(*draft)) return request->fail(*bad);
  error = draft->create() ? server.prepare_create(*draft) : server.prepare_update(*draft);
  if (error) return request->fail(*error);
  server.carry_out(draft);
}

}  // namespace

void Server::patch(const RequestPtr& request) {
  if (auto error = read_write_options(*request)) return request->fail(*error);
  auto job = std::make_shared<PatchJob>();
  if (auto error = read_form(*request, job->form)) return request->fail(*error);
  if (job->form == PatchForm::kApply) {
    request->applies = true;
    if (auto error = check_apply_options(*request)) return request->fail(*error);
  } else if (request->query_true("force")) {
    return request->fail(invalid_object("meta.k8s.io", "PatchOptions", "",
                                        {forbidden_field("force",
                                                         "may not be specified for "
                                                         "non-apply patch")}));
  }
  if (auto error = read_patch_body(*request, *job)) return request->fail(*error);
  if (request->subresource == "scale") return scale(request);
  attempt_patch(*this, request, job, 0);
}

}  // namespace berth::sim::api
