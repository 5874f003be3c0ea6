// Scale, reviews, tokens, and what simulated pods cannot do.
#include <algorithm>
#include <utility>

#include "embedded/api/server.h"
#include "text/json_writer.h"
#include "text/patch.h"
#include "text/path.h"
#include "text/rfc3339.h"

namespace berth::sim::api {

namespace {

// The selector of a workload as text: "a=b,c in (d,e)".
std::string selector_text(const Value* selector) {
  if (selector == nullptr) return {};
  if (selector->is_string()) return std::string(selector->string());
  text::Decoder decoder;
  text::Selector read;
  if (selector->find("matchLabels") == nullptr && selector->find("matchExpressions") == nullptr) {
    for (const Member& label : selector->members()) {  // a plain map, as old kinds have it
      read.push_back(
          {std::string(label.key), text::Operator::kIn, {std::string(label.value.string())}});
    }
    return text::print_label_selector(read);
  }
  text::decode_label_selector(*selector, read, decoder);
  return decoder.ok() ? text::print_label_selector(read) : std::string{};
}

Value scale_of(text::Editor& edit, const Kind& kind, const Value& object) {
  Value meta = edit.object({});
  for (const std::string_view key :
       {"name", "namespace", "uid", "resourceVersion", "creationTimestamp"}) {
    if (const Value* value = at(object, "metadata").find(key)) meta = edit.with(meta, key, *value);
  }
  const Value* wanted = find_path(object, kind.scale.spec_replicas);
  const Value* present = find_path(object, kind.scale.status_replicas);
  Value spec = edit.object({});
  if (wanted != nullptr && wanted->as_int64().value_or(0) != 0) {
    spec = edit.with(spec, "replicas", *wanted);
  }
  Value status =
      edit.object({{"replicas", present && present->is_number() ? *present : edit.number(0)}});
  const Value* selector = find_path(object, kind.custom && !kind.scale.label_selector.empty()
                                                ? kind.scale.label_selector
                                                : ".spec.selector");
  const std::string text = selector_text(selector);
  if (!text.empty()) status = edit.with(status, "selector", edit.string(text));
  return edit.object({{"kind", edit.string("Scale")},
                      {"apiVersion", edit.string("autoscaling/v1")},
                      {"metadata", meta},
                      {"spec", spec},
                      {"status", status}});
}

void answer_scale(Request& request, int status, const Kind& kind, text::Editor& edit,
                  const Value& object) {
  const Value scale = scale_of(edit, kind, object);
  request.answer(status, print_object("Scale", "autoscaling/v1", scale));
}

MaybeError read_scale_body(const Request& request, text::Editor& edit, const Value& live,
                           Value& out) {
  const bool patched = request.method() == "PATCH";
  const auto parsed = edit.parse(request.http.body);
  if (!parsed.ok()) return bad_request(parsed.error().to_string());
  if (!patched) {
    out = parsed.value();
    return std::nullopt;
  }
  const auto header = text::find_header(request.http.headers, "Content-Type");
  const std::string_view media = media_type(header.value_or(std::string_view{}));
  auto made = media == "application/json-patch+json"
                  ? text::apply_json_patch(live, parsed.value())
                  : text::apply_merge_patch(live, parsed.value());
  if (!made.ok()) return bad_request(made.error().to_string());
  out = edit.keep(std::move(made).value());
  return std::nullopt;
}

}  // namespace

void Server::scale(const RequestPtr& request) {
  auto draft = std::make_shared<Draft>();
  draft->request = request;
  draft->type = request->type;
  draft->ns = request->ns;
  draft->name = request->name;
  const Kind& kind = *request->type->kind;
  if (auto error = load_live(*draft)) return request->fail(*error);
  text::Editor& edit = draft->edit;
  if (request->method() == "GET") {
    return answer_scale(*request, 200, kind, edit, draft->live_value);
  }
  if (request->method() != "PUT" && request->method() != "PATCH") {
    return request->fail(method_not_allowed({}, ""));
  }
  if (auto error = read_write_options(*request)) return request->fail(*error);
  Value scale;
  if (auto error =
          read_scale_body(*request, edit, scale_of(edit, kind, draft->live_value), scale)) {
    return request->fail(*error);
  }
  const std::string_view version = text_at(scale, "metadata.resourceVersion");
  if (!version.empty() && version != std::to_string(draft->live->version)) {
    return request->fail(modified(request->type->resource(), request->name));
  }
  const std::int64_t replicas = int_at(scale, "spec.replicas", 0);
  if (replicas < 0) {
    return request->fail(invalid_object("autoscaling", "Scale", request->name,
                                        {invalid_value("spec.replicas", std::to_string(replicas),
                                                       "must be greater than or equal to 0")}));
  }
  draft->object =
      edit.keep(with_path(draft->live_value, kind.scale.spec_replicas, edit.number(replicas)));
  draft->subresource = "scale";
  draft->object = edit.keep(for_update(kind, draft->live_value, draft->object));
  draft->answer = [request, draft_kind = request->type->kind](const ObjectPtr& stored) {
    text::Editor read;
    const auto parsed = read.parse(stored->json);
    if (!parsed.ok()) return request->fail(internal_error(parsed.error().to_string()));
    answer_scale(*request, 200, *draft_kind, read, parsed.value());
  };
  carry_out(draft);
}

void Server::review(const RequestPtr& request) {
  if (request->method() != "POST") return request->fail(method_not_allowed({}, ""));
  text::Editor edit;
  Value body;
  if (auto error = decode_body(*request, edit, body)) return request->fail(*error);
  const Kind& kind = *request->type->kind;
  Value status;
  if (kind.kind == "TokenReview") {
    const bool right =
        text_at(body, "spec.token") == options.admin_token && !options.admin_token.empty();
    if (right) {
      const Value group = edit.string("system:masters");
      status = edit.object({{"authenticated", edit.boolean(true)},
                            {"user", edit.object({{"username", edit.string(request->user)},
                                                  {"groups", edit.array({&group, 1})}})}});
    } else {
      status = edit.object({{"user", edit.object({})}});
    }
  } else if (kind.kind == "SelfSubjectReview") {
    status = edit.object({{"userInfo", edit.object({{"username", edit.string(request->user)}})}});
  } else if (kind.kind == "SelfSubjectRulesReview") {
    const Value all = edit.string("*");
    const Value any = edit.array({&all, 1});
    const Value rule = edit.object({{"verbs", any}, {"apiGroups", any}, {"resources", any}});
    const Value urls = edit.object({{"verbs", any}, {"nonResourceURLs", any}});
    status = edit.object({{"resourceRules", edit.array({&rule, 1})},
                          {"nonResourceRules", edit.array({&urls, 1})},
                          {"incomplete", edit.boolean(false)}});
  } else {
    status = edit.object({{"allowed", edit.boolean(true)}});
  }
  Value answer = edit.with(body, "status", status);
  request->answer(201, print_object(kind.kind, kind.api_version(), answer));
}

void Server::token_request(const RequestPtr& request) {
  const ObjectPtr account = request->type->shelf->committed(object_key(request->ns, request->name));
  if (!account) return request->fail(not_found(request->type->resource(), request->name));
  // There is one token; whoever may ask for another holds it already.
  text::Editor edit;
  const auto body = edit.parse(request->http.body);
  if (!body.ok()) return request->fail(bad_request(body.error().to_string()));
  const std::int64_t seconds = int_at(body.value(), "spec.expirationSeconds", 3600);
  const std::int64_t until_ns =
      loop.wall().now_ns() + std::clamp<std::int64_t>(seconds, 0, 31'536'000) * 1'000'000'000;
  const Value status = edit.object(
      {{"token", edit.string(options.admin_token.empty() ? "none" : options.admin_token)},
       {"expirationTimestamp",
        edit.string(text::format_rfc3339(until_ns - until_ns % 1'000'000'000))}});
  request->answer(201, print_object("TokenRequest", "authentication.k8s.io/v1",
                                    edit.with(body.value(), "status", status)));
}

void Server::refuse_stream(const RequestPtr& request) {
  if (!request->type->shelf->committed(object_key(request->ns, request->name))) {
    return request->fail(not_found(request->type->resource(), request->name));
  }
  const ObjectPtr pod = request->type->shelf->committed(object_key(request->ns, request->name));
  if (request->subresource == "log" && pod->json.find("\"nodeName\":\"") == std::string::npos) {
    return request->answer(204, "");
  }
  const std::string what = request->subresource == "log" ? "logs" : request->subresource;
  request->fail(bad_request("pod " + quoted(request->name) +
                            " is simulated: it runs no process, "
                            "so there is nothing for " +
                            what + " to show or reach"));
}

}  // namespace berth::sim::api
