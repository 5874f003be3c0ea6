// One request as the server understands it, and how it is answered.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "edge/serve/exchange.h"
#include "embedded/api/api_error.h"
#include "embedded/api/registry.h"
#include "text/http.h"

namespace berth::sim::api {

enum class Shape : std::uint8_t { kObject, kTable, kPartial };  // of the answer
enum class FieldCheck : std::uint8_t { kWarn, kStrict, kIgnore };

struct Request {
  text::HttpRequest http;
  text::HttpTarget target;
  std::shared_ptr<serve::Exchange> exchange;

  TypePtr type;
  std::string ns, name, subresource;
  Shape shape = Shape::kObject;
  std::string table_version = "v1";
  bool yaml = false;                        // answers are YAML
  std::string include_object = "Metadata";  // of tables
  FieldCheck field_check = FieldCheck::kWarn;
  bool dry_run = false;
  bool applies = false;  // a server-side apply
  bool stale = false;    // a fault: read what was there some time ago
  std::string manager;   // fieldManager, or from the User-Agent
  std::string user = "kubernetes-admin";
  std::vector<std::string> warnings;
  std::function<void(const Request&, int status)> told;  // once, when it is answered

  std::string_view query(std::string_view key) const {
    return target.get(key).value_or(std::string_view{});
  }
  bool query_true(std::string_view key) const {
    const std::string_view value = query(key);
    return value == "true" || value == "1" || value == "True" || value == "t";
  }
  const std::string& method() const { return http.method; }

  void warn(std::string text);
  void answer(int status, std::string json);
  void answer_whole(int status, std::string text);  // as it is: JSON, or YAML where that is asked
  void answer_text(int status, std::string text);
  void fail(const ApiError& error);
  // The answer comes in pieces, by the exchange. False: it was answered already.
  bool begin(int status);
  text::HttpResponse head(int status, std::string_view content_type) const;

 private:
  bool first_answer(int status);

  bool answered_ = false;
};
using RequestPtr = std::shared_ptr<Request>;

// What the Accept header allows of an answer; 406 when nothing of it can be made.
std::optional<ApiError> read_accept(Request& request);
// fieldValidation, dryRun, fieldManager: the options that all writes have.
// How long the client will wait: looked at, and kept by nobody; what a request may cost is bounded.
std::optional<ApiError> check_timeout(const Request& request);
std::optional<ApiError> read_write_options(Request& request);

// "application/json" of "application/json; charset=utf-8".
std::string_view media_type(std::string_view header);

}  // namespace berth::sim::api
