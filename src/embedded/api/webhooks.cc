// Admission webhooks, called for real with AdmissionReview v1.
//
// One after another, by the name of their configuration and their order in it; validating ones too.
// matchConditions are not evaluated (a webhook that has some is called as if they held), mutating
// webhooks are not called a second time, and matchPolicy Equivalent sends the version of the
// request.
#include <algorithm>
#include <utility>

#include "embedded/api/server.h"
#include "text/base64.h"
#include "text/decode.h"
#include "text/json.h"
#include "text/json_writer.h"
#include "text/patch.h"
#include "text/path.h"
#include "text/selector.h"

namespace berth::sim::api {

struct Hook {
  std::string name;
  bool mutating = false;
  std::string host, path, shown;  // shown: the whole URL
  std::string ca_bundle;          // base64 of PEM, as configured
  bool fail_closed = true;
  std::int64_t timeout_ns = 10'000'000'000;
  text::Selector namespaces, objects;
  struct Rule {
    std::vector<std::string> operations, groups, versions, resources;
    std::string scope;
  };
  std::vector<Rule> rules;
};

namespace {

std::vector<std::string> strings_at(const Value& root, std::string_view key) {
  std::vector<std::string> out;
  if (const Value* list = root.find(key)) {
    for (const Value& item : list->items()) out.emplace_back(item.string());
  }
  return out;
}

text::Selector hook_selector(const Value& hook, std::string_view key) {
  text::Selector selector;
  const Value* value = hook.find(key);
  if (value == nullptr) return selector;
  text::Decoder decoder;
  text::decode_label_selector(*value, selector, decoder);
  return selector;
}

void read_address(const Value& hook, Hook& out) {
  const std::string_view url = text_at(hook, "clientConfig.url");
  if (!url.empty()) {
    const std::size_t scheme = url.find("://");
    const std::string_view rest = url.substr(scheme == std::string_view::npos ? 0 : scheme + 3);
    const std::size_t slash = rest.find('/');
    out.host = rest.substr(0, slash);
    out.path = slash == std::string_view::npos ? "/" : rest.substr(slash);
    out.shown = url;
    return;
  }
  const Value* service = find(hook, "clientConfig.service");
  if (service == nullptr) return;
  out.host = std::string(text_at(*service, "name")) + "." +
             std::string(text_at(*service, "namespace")) +
             ".svc:" + std::to_string(int_at(*service, "port", 443));
  out.path = text_at(*service, "path");
  if (out.path.empty()) out.path = "/";
  out.shown = "https://" + out.host + out.path;
}

Hook read_hook(const Value& value, bool mutating) {
  Hook hook;
  hook.name = text_at(value, "name");
  hook.mutating = mutating;
  read_address(value, hook);
  hook.ca_bundle = text_at(value, "clientConfig.caBundle");
  hook.fail_closed = text_at(value, "failurePolicy") != "Ignore";
  hook.timeout_ns = int_at(value, "timeoutSeconds", 10) * 1'000'000'000;
  hook.namespaces = hook_selector(value, "namespaceSelector");
  hook.objects = hook_selector(value, "objectSelector");
  if (const Value* rules = find(value, "rules")) {
    for (const Value& rule : rules->items()) {
      hook.rules.push_back({strings_at(rule, "operations"), strings_at(rule, "apiGroups"),
                            strings_at(rule, "apiVersions"), strings_at(rule, "resources"),
                            std::string(text_at(rule, "scope"))});
    }
  }
  return hook;
}

bool listed(const std::vector<std::string>& list, std::string_view wanted) {
  return std::any_of(list.begin(), list.end(),
                     [&](const std::string& item) { return item == "*" || item == wanted; });
}

bool resource_listed(const std::vector<std::string>& list, const std::string& resource,
                     const std::string& subresource) {
  for (const std::string& item : list) {
    if (item == "*/*") return true;
    const std::size_t slash = item.find('/');
    const std::string_view left = std::string_view(item).substr(0, slash);
    const std::string_view right =
        slash == std::string::npos ? std::string_view{} : std::string_view(item).substr(slash + 1);
    if (left != "*" && left != resource) continue;
    if (right == subresource || (right == "*")) return true;
  }
  return false;
}

std::string_view operation_of(const Draft& draft) {
  if (draft.create()) return "CREATE";
  return draft.object.is_null() ? "DELETE" : "UPDATE";
}

bool rule_matches(const Hook::Rule& rule, const Draft& draft) {
  const Kind& kind = *draft.type->kind;
  if (!listed(rule.operations, operation_of(draft))) return false;
  if (!listed(rule.groups, kind.group) || !listed(rule.versions, kind.version)) return false;
  if (rule.scope == "Namespaced" && !kind.namespaced) return false;
  if (rule.scope == "Cluster" && kind.namespaced) return false;
  return resource_listed(rule.resources, kind.plural, draft.subresource);
}

std::optional<std::string_view> label_in(const Value& object, std::string_view key) {
  const Value* label = at(object, "metadata.labels").find(key);
  if (label == nullptr) return std::nullopt;
  return label->string();
}

bool labels_match(const text::Selector& selector, const Value& object) {
  return text::matches(selector, [&](std::string_view key) { return label_in(object, key); });
}

bool hook_matches(const Server& server, const Hook& hook, const Draft& draft) {
  if (std::none_of(hook.rules.begin(), hook.rules.end(),
                   [&](const Hook::Rule& rule) { return rule_matches(rule, draft); })) {
    return false;
  }
  if (!labels_match(hook.objects, draft.object) &&
      (draft.live_value.is_null() || !labels_match(hook.objects, draft.live_value))) {
    return false;
  }
  if (hook.namespaces.empty()) return true;
  if (draft.type->role == Role::kNamespace) {
    return labels_match(hook.namespaces, draft.object.is_null() ? draft.live_value : draft.object);
  }
  if (!draft.type->kind->namespaced) return true;
  const TypePtr namespaces = server.registry.find("", "v1", "namespaces");
  const ObjectPtr home = namespaces ? namespaces->shelf->latest(draft.ns) : nullptr;
  if (!home) return false;
  return text::matches(hook.namespaces, [&](std::string_view key) { return home->label(key); });
}

void write_group_of(text::JsonWriter& out, std::string_view key, const Kind& kind,
                    std::string_view last, const std::string& value) {
  out.object(key, [&] {
    out.field("group", kind.group);
    out.field("version", kind.version);
    out.field(last, value);
  });
}

std::string review_json(const Draft& draft, const std::string& uid) {
  const Kind& kind = *draft.type->kind;
  text::JsonWriter out;
  out.object([&] {
    out.field("kind", "AdmissionReview");
    out.field("apiVersion", "admission.k8s.io/v1");
    out.object("request", [&] {
      out.field("uid", uid);
      write_group_of(out, "kind", kind, "kind", kind.kind);
      write_group_of(out, "resource", kind, "resource", kind.plural);
      if (!draft.subresource.empty()) out.field("subResource", draft.subresource);
      write_group_of(out, "requestKind", kind, "kind", kind.kind);
      write_group_of(out, "requestResource", kind, "resource", kind.plural);
      if (!draft.name.empty()) out.field("name", draft.name);
      if (!draft.ns.empty()) out.field("namespace", draft.ns);
      out.field("operation", operation_of(draft));
      out.object("userInfo", [&] {
        out.field("username", draft.request->user);
        out.array("groups", [&] {
          out.value("system:masters");
          out.value("system:authenticated");
        });
      });
      out.field("object", draft.object);
      out.field("oldObject", draft.live_value);
      out.field("dryRun", draft.request->dry_run);
      const std::string_view operation = operation_of(draft);
      out.object("options", [&] {
        out.field("kind", operation == "CREATE"    ? "CreateOptions"
                          : operation == "DELETE"  ? "DeleteOptions"
                          : draft.request->applies ? "PatchOptions"
                                                   : "UpdateOptions");
        out.field("apiVersion", "meta.k8s.io/v1");
        if (!draft.request->manager.empty() && operation != "DELETE") {
          out.field("fieldManager", draft.request->manager);
        }
      });
    });
  });
  return std::move(out).take();
}

ApiError call_failed(const Hook& hook, std::string_view why) {
  return internal_error("failed calling webhook " + quoted(hook.name) +
                        ": failed to call webhook: Post " + quoted(hook.shown) + ": " +
                        std::string(why));
}

ApiError hook_denied(const Hook& hook, const Value& response) {
  ApiError error;
  const std::string by = "admission webhook " + quoted(hook.name) + " denied the request";
  const std::string_view message = text_at(response, "status.message");
  const std::string_view reason = text_at(response, "status.reason");
  error.message = !message.empty()  ? by + ": " + std::string(message)
                  : !reason.empty() ? by + ": " + std::string(reason)
                                    : by + " without explanation";
  error.reason = reason;
  const std::int64_t code = int_at(response, "status.code");
  error.code = code >= 400 && code < 600 ? static_cast<int>(code) : 400;
  return error;
}

// What a webhook said, carried out on the draft.
MaybeError take_answer(Draft& draft, const Hook& hook, const std::string& uid,
                       const text::HttpResponse& answer) {
  if (answer.status != 200) {
    return call_failed(hook, "the server answered " + std::to_string(answer.status));
  }
  const auto parsed = draft.edit.parse(answer.body);
  if (!parsed.ok()) return call_failed(hook, parsed.error().to_string());
  const Value* response = find(parsed.value(), "response");
  if (response == nullptr || text_at(*response, "uid") != uid) {
    return call_failed(hook, "expected response.uid=" + quoted(uid));
  }
  for (const std::string& warning : strings_at(*response, "warnings")) {
    draft.request->warn(warning);
  }
  if (!true_at(*response, "allowed")) return hook_denied(hook, *response);
  const std::string_view patch = text_at(*response, "patch");
  if (!hook.mutating && !patch.empty()) {
    return call_failed(hook, "expected response.patch to be empty: only mutating webhooks change");
  }
  if (!hook.mutating || patch.empty()) return std::nullopt;
  const auto decoded = text::base64_decode(patch);
  if (!decoded.ok()) return call_failed(hook, decoded.error().to_string());
  const auto operations = draft.edit.parse(decoded.value());
  if (!operations.ok()) return call_failed(hook, operations.error().to_string());
  auto patched = text::apply_json_patch(draft.object, operations.value());
  if (!patched.ok()) return call_failed(hook, patched.error().to_string());
  draft.object = draft.edit.keep(std::move(patched).value());
  return std::nullopt;
}

using HookList = std::vector<std::shared_ptr<const Hook>>;

void call_next(Server& server, const DraftPtr& draft, const std::shared_ptr<HookList>& hooks,
               std::size_t next, const std::function<void(MaybeError)>& then) {
  while (next < hooks->size() && !hook_matches(server, *(*hooks)[next], *draft)) ++next;
  if (next == hooks->size()) return then(std::nullopt);
  const std::shared_ptr<const Hook> hook = (*hooks)[next];
  if (server.options.webhooks == nullptr) {
    if (hook->fail_closed) return then(call_failed(*hook, "no way to call webhooks is set up"));
    return call_next(server, draft, hooks, next + 1, then);
  }
  const std::string uid = server.make_uid();
  text::HttpRequest call;
  call.method = "POST";
  call.target = hook->shown;  // the whole URL: whoever carries it looks up the host
  call.headers = {{"Host", hook->host},
                  {"Content-Type", "application/json"},
                  {"Accept", "application/json"},
                  {"User-Agent", "kube-apiserver-admission"}};
  if (!hook->ca_bundle.empty()) {
    call.headers.push_back({"X-Berth-Ca-Bundle", hook->ca_bundle});  // for who carries it
  }
  call.body = review_json(*draft, uid);
  kube::SendOptions how;
  how.timeout_ns = hook->timeout_ns;
  const std::weak_ptr<Server*> alive = server.self;
  server.options.webhooks->send(
      std::move(call), how,
      [alive, &server, draft, hooks, next, then, hook, uid](const text::HttpResponse& answer,
                                                            const kube::TransportError* failed) {
        if (!alive.lock()) return;
        MaybeError error = failed != nullptr ? call_failed(*hook, failed->message)
                                             : take_answer(*draft, *hook, uid, answer);
        const bool unreachable = error && error->reason == "InternalError";
        if (error && (!unreachable || hook->fail_closed)) return then(error);
        call_next(server, draft, hooks, next + 1, then);
      });
}

}  // namespace

const std::vector<std::shared_ptr<const Hook>>& Webhooks::hooks_of(bool mutating) {
  Cache& cache = mutating ? mutating_ : validating_;
  const Shelf* shelf = server_.storage.find_shelf(
      mutating ? "mutatingwebhookconfigurations.admissionregistration.k8s.io"
               : "validatingwebhookconfigurations.admissionregistration.k8s.io");
  if (cache.fresh || shelf == nullptr) return cache.hooks;
  cache.hooks.clear();
  cache.fresh = true;
  for (const auto& [key, entry] : shelf->entries) {
    if (!entry.committed) continue;
    text::Editor edit;
    const auto parsed = edit.parse(entry.committed->json);
    const Value* hooks = parsed.ok() ? find(parsed.value(), "webhooks") : nullptr;
    if (hooks == nullptr) continue;
    for (const Value& hook : hooks->items()) {
      cache.hooks.push_back(std::make_shared<const Hook>(read_hook(hook, mutating)));
    }
  }
  return cache.hooks;
}

void Webhooks::mutate(const DraftPtr& draft, const std::function<void(MaybeError)>& then) {
  const Role role = draft->type->role;
  const auto& hooks = hooks_of(true);
  if (hooks.empty() || role == Role::kMutatingHook || role == Role::kValidatingHook) {
    return then(std::nullopt);
  }
  call_next(server_, draft, std::make_shared<HookList>(hooks), 0, then);
}

void Webhooks::validate(const DraftPtr& draft, const std::function<void(MaybeError)>& then) {
  const Role role = draft->type->role;
  const auto& hooks = hooks_of(false);
  if (hooks.empty() || role == Role::kMutatingHook || role == Role::kValidatingHook) {
    return then(std::nullopt);
  }
  call_next(server_, draft, std::make_shared<HookList>(hooks), 0, then);
}

}  // namespace berth::sim::api
