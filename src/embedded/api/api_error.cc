#include "embedded/api/api_error.h"

#include "text/json_writer.h"

namespace berth::sim::api {

std::string ApiError::to_json() const {
  text::JsonWriter out;
  out.object([&] {
    out.field("kind", "Status");
    out.field("apiVersion", "v1");
    out.object("metadata", [&] {});
    out.field("status", "Failure");
    out.field("message", message);
    if (!reason.empty()) out.field("reason", reason);
    const bool detailed = !name.empty() || !group.empty() || !kind.empty() || !uid.empty() ||
                          !causes.empty() || retry_after_seconds > 0;
    if (detailed) {
      out.object("details", [&] {
        if (!name.empty()) out.field("name", name);
        if (!group.empty()) out.field("group", group);
        if (!kind.empty()) out.field("kind", kind);
        if (!uid.empty()) out.field("uid", uid);
        if (!causes.empty()) {
          out.array("causes", [&] {
            for (const Cause& cause : causes) {
              out.object([&] {
                if (!cause.reason.empty()) out.field("reason", cause.reason);
                if (!cause.message.empty()) out.field("message", cause.message);
                if (!cause.field.empty()) out.field("field", cause.field);
              });
            }
          });
        }
        if (retry_after_seconds > 0) out.field("retryAfterSeconds", retry_after_seconds);
      });
    }
    out.field("code", code);
  });
  return std::move(out).take();
}

std::string GroupResource::to_string() const {
  std::string text(resource);
  if (!group.empty()) text.append(".").append(group);
  return text;
}

std::string quoted(std::string_view text) {
  std::string out;
  text::append_json_string(out, text);
  return out;
}

namespace {

ApiError about(int code, std::string_view reason, GroupResource resource, std::string_view name) {
  ApiError error;
  error.code = code;
  error.reason = reason;
  error.name = name;
  error.group = resource.group;
  error.kind = resource.resource;
  return error;
}

ApiError plain(int code, std::string_view reason, std::string_view message) {
  ApiError error;
  error.code = code;
  error.reason = reason;
  error.message = message;
  return error;
}

}  // namespace

ApiError not_found(GroupResource resource, std::string_view name) {
  ApiError error = about(404, "NotFound", resource, name);
  error.message = resource.to_string() + " " + quoted(name) + " not found";
  return error;
}

ApiError already_exists(GroupResource resource, std::string_view name) {
  ApiError error = about(409, "AlreadyExists", resource, name);
  error.message = resource.to_string() + " " + quoted(name) + " already exists";
  return error;
}

ApiError conflict(GroupResource resource, std::string_view name, std::string_view why) {
  ApiError error = about(409, "Conflict", resource, name);
  error.message = "Operation cannot be fulfilled on " + resource.to_string() + " " + quoted(name) +
                  ": " + std::string(why);
  return error;
}

ApiError modified(GroupResource resource, std::string_view name) {
  return conflict(resource, name,
                  "the object has been modified; please apply your changes to the latest version "
                  "and try again");
}

ApiError forbidden(GroupResource resource, std::string_view name, std::string_view why) {
  ApiError error = about(403, "Forbidden", resource, name);
  error.message = resource.to_string() + (name.empty() ? "" : " " + quoted(name)) +
                  " is forbidden: " + std::string(why);
  return error;
}

ApiError invalid_object(std::string_view group, std::string_view kind, std::string_view name,
                        std::vector<Cause> causes) {
  ApiError error = about(422, "Invalid", {group, kind}, name);
  error.message = std::string(kind);
  if (!group.empty()) error.message.append(".").append(group);
  error.message += " " + quoted(name) + " is invalid: ";
  std::string list;
  for (const Cause& cause : causes) {
    if (!list.empty()) list += ", ";
    list += cause.field.empty() ? cause.message : cause.field + ": " + cause.message;
  }
  error.message += causes.size() > 1 ? "[" + list + "]" : list;
  error.causes = std::move(causes);
  return error;
}

ApiError bad_request(std::string_view message) { return plain(400, "BadRequest", message); }

ApiError method_not_allowed(GroupResource resource, std::string_view action) {
  ApiError error = about(405, "MethodNotAllowed", resource, "");
  error.message = action.empty() ? "the server does not allow this method on the requested resource"
                                 : std::string(action) + " is not supported on resources of kind " +
                                       quoted(resource.to_string());
  return error;
}

ApiError expired(std::string_view message) { return plain(410, "Expired", message); }

ApiError unauthorized() { return plain(401, "Unauthorized", "Unauthorized"); }

ApiError internal_error(std::string_view message) {
  ApiError error = plain(500, "InternalError", "Internal error occurred: " + std::string(message));
  error.causes.push_back({"", "", std::string(message)});
  return error;
}

ApiError body_too_large(std::size_t limit) {
  ApiError error;
  error.code = 413;
  error.reason = "RequestEntityTooLarge";
  error.message = "Request entity too large: limit is " + std::to_string(limit);
  return error;
}

ApiError no_room(std::string_view why) {
  ApiError error;
  error.code = 507;
  error.reason = "InsufficientStorage";
  error.message = std::string(why) +
                  "; nothing was written, and reading goes on. Make room on that file system: "
                  "writes are taken again at once, without a restart";
  return error;
}

ApiError unsupported_media_type(std::string_view accepted) {
  return plain(415, "UnsupportedMediaType",
               "the body of the request was in an unknown format - accepted media types include: " +
                   std::string(accepted));
}

ApiError not_acceptable(std::string_view accepted) {
  return plain(406, "NotAcceptable",
               "only the following media types are accepted: " + std::string(accepted));
}

ApiError too_many_requests(std::string_view message, int retry_after_seconds) {
  ApiError error = plain(429, "TooManyRequests", message);
  error.retry_after_seconds = retry_after_seconds;
  return error;
}

ApiError path_not_found() {
  return plain(404, "NotFound", "the server could not find the requested resource");
}

Cause required(std::string_view field, std::string_view detail) {
  std::string message = "Required value";
  if (!detail.empty()) message.append(": ").append(detail);
  return {"FieldValueRequired", std::string(field), std::move(message)};
}

Cause invalid_value(std::string_view field, std::string_view shown, std::string_view detail) {
  return {
      "FieldValueInvalid", std::string(field),
      "Invalid value: " + std::string(shown) + (detail.empty() ? "" : ": " + std::string(detail))};
}

Cause forbidden_field(std::string_view field, std::string_view detail) {
  return {"FieldValueForbidden", std::string(field), "Forbidden: " + std::string(detail)};
}

Cause duplicate_value(std::string_view field, std::string_view shown) {
  return {"FieldValueDuplicate", std::string(field), "Duplicate value: " + std::string(shown)};
}

Cause not_supported(std::string_view field, std::string_view found,
                    const std::vector<std::string>& supported) {
  std::string message = "Unsupported value: " + quoted(found) + ": supported values: ";
  for (std::size_t i = 0; i < supported.size(); ++i) {
    message += (i ? ", " : "") + quoted(supported[i]);
  }
  return {"FieldValueNotSupported", std::string(field), std::move(message)};
}

}  // namespace berth::sim::api
