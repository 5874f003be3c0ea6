#include "embedded/api/request.h"

#include <utility>

#include "base/crash_point.h"
#include "embedded/api/yaml_answer.h"
#include "text/rfc3339.h"

namespace berth::sim::api {

namespace {

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) text.remove_prefix(1);
  while (!text.empty() && (text.back() == ' ' || text.back() == '\t')) text.remove_suffix(1);
  return text;
}

std::string_view next_part(std::string_view& rest, char separator) {
  const std::size_t end = rest.find(separator);
  const std::string_view part = rest.substr(0, end);
  rest = end == std::string_view::npos ? std::string_view{} : rest.substr(end + 1);
  return trimmed(part);
}

constexpr std::string_view kAccepted =
    "application/json, application/json;as=Table;v=v1;g=meta.k8s.io, "
    "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io";

}  // namespace

std::string_view media_type(std::string_view header) { return next_part(header, ';'); }

void Request::warn(std::string text) {
  if (warnings.size() < 100) warnings.push_back(std::move(text));
}

text::HttpResponse Request::head(int status, std::string_view content_type) const {
  text::HttpResponse response;
  response.status = status;
  response.headers.push_back({"Content-Type", std::string(content_type)});
  response.headers.push_back({"Cache-Control", "no-cache, private"});
  for (const std::string& warning : warnings) {
    response.headers.push_back({"Warning", "299 - " + quoted(warning)});
  }
  return response;
}

bool Request::first_answer(int status) {
  if (std::exchange(answered_, true)) return false;
  if (told) told(*this, status);
  return true;
}

void Request::answer(int status, std::string json) {
  answer_whole(status, yaml ? yaml_of(json) : std::move(json));
}

void Request::answer_whole(int status, std::string text) {
  if (!first_answer(status)) return;
  text::HttpResponse response = head(status, yaml ? "application/yaml" : "application/json");
  response.body = std::move(text);
  BERTH_CRASH_POINT("api-before-answer");
  exchange->respond(std::move(response));
}

void Request::answer_text(int status, std::string text) {
  if (!first_answer(status)) return;
  text::HttpResponse response = head(status, "text/plain; charset=utf-8");
  response.body = std::move(text);
  exchange->respond(std::move(response));
}

bool Request::begin(int status) {
  if (!first_answer(status)) return false;
  exchange->begin(head(status, yaml ? "application/yaml" : "application/json"));
  return true;
}

void Request::fail(const ApiError& error) {
  if (!first_answer(error.code)) return;
  text::HttpResponse response = head(error.code, "application/json");
  if (error.retry_after_seconds > 0) {
    response.headers.push_back({"Retry-After", std::to_string(error.retry_after_seconds)});
  }
  response.body = error.to_json();
  exchange->respond(std::move(response));
}

std::optional<ApiError> read_accept(Request& request) {
  request.shape = Shape::kObject;
  const auto header = text::find_header(request.http.headers, "Accept");
  if (!header || trimmed(*header).empty()) return std::nullopt;
  std::string_view rest = *header;
  bool known = false;
  while (!rest.empty()) {
    std::string_view range = next_part(rest, ',');
    const std::string_view media = next_part(range, ';');
    std::string_view as, version = "v1", group = "meta.k8s.io";
    while (!range.empty()) {
      std::string_view parameter = next_part(range, ';');
      const std::string_view name = next_part(parameter, '=');
      if (name == "as") as = parameter;
      if (name == "v") version = parameter;
      if (name == "g") group = parameter;
    }
    if (media != "application/json" && media != "*/*" && media != "application/*" &&
        media != "application/yaml") {
      continue;
    }
    known = true;
    if (as.empty()) {
      request.yaml = media == "application/yaml";
      return std::nullopt;
    }
    if (request.type && request.type->role == Role::kReview) continue;  // has no metadata
    if (group != "meta.k8s.io" || (version != "v1" && version != "v1beta1")) continue;
    if (as == "Table") {
      request.shape = Shape::kTable;
      request.table_version = version;
      return std::nullopt;
    }
    if (as == "PartialObjectMetadata" || as == "PartialObjectMetadataList") {
      request.shape = Shape::kPartial;
      request.table_version = version;
      return std::nullopt;
    }
  }
  ApiError error = not_acceptable(kAccepted);
  if (!known) error.message = "406: Not Acceptable; " + error.message;
  return error;
}

std::optional<ApiError> check_timeout(const Request& request) {
  const std::string_view timeout = request.query("timeout");
  if (timeout.empty() || request.query_true("watch")) return std::nullopt;
  if (text::parse_go_duration(timeout).ok()) return std::nullopt;
  return bad_request("invalid timeout specified in the request URL - time: invalid duration " +
                     quoted(timeout));
}

std::optional<ApiError> read_write_options(Request& request) {
  const std::string_view check = request.query("fieldValidation");
  if (check == "Strict") {
    request.field_check = FieldCheck::kStrict;
  } else if (check == "Ignore") {
    request.field_check = FieldCheck::kIgnore;
  } else if (check.empty() || check == "Warn") {
    request.field_check = FieldCheck::kWarn;
  } else {
    ApiError error =
        invalid_object("meta.k8s.io", "CreateOptions", "",
                       {not_supported("fieldValidation", check, {"", "Ignore", "Strict", "Warn"})});
    return error;
  }
  for (const auto& [name, value] : request.target.query) {
    if (name != "dryRun") continue;
    if (value != "All") {
      return invalid_object(
          "meta.k8s.io", "CreateOptions", "",
          {{"FieldValueNotSupported", "dryRun",
            "Unsupported value: [" + quoted(value) + "]: supported values: \"All\""}});
    }
    request.dry_run = true;
  }
  request.manager = request.query("fieldManager");
  if (request.manager.size() > 128) {
    return invalid_object(
        "meta.k8s.io", "CreateOptions", "",
        {invalid_value("fieldManager", quoted(request.manager), "may not be more than 128 bytes")});
  }
  if (request.manager.empty()) {
    const auto agent = text::find_header(request.http.headers, "User-Agent");
    std::string_view rest = agent.value_or(std::string_view{});
    request.manager = std::string(next_part(rest, '/').substr(0, 128));
    if (request.manager.empty()) request.manager = "unknown";
  }
  return std::nullopt;
}

}  // namespace berth::sim::api
