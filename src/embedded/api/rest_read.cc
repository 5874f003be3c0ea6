// GET of one object, lists and watches.
#include <algorithm>
#include <charconv>

#include "embedded/api/event_forms.h"
#include "embedded/api/server.h"
#include "text/base64.h"
#include "text/json.h"
#include "text/json_writer.h"
#include "text/path.h"

namespace berth::sim::api {

namespace {

std::optional<std::uint64_t> parse_version(std::string_view text) {
  std::uint64_t version = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), version);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return version;
}

ApiError bad_version(std::string_view text) {
  return bad_request("resourceVersion: Invalid value: " + quoted(text) +
                     ": strconv.ParseUint: parsing " + quoted(text) + ": invalid syntax");
}

ApiError too_large(std::uint64_t wanted, std::uint64_t current) {
  ApiError error;
  error.code = 504;
  error.reason = "Timeout";
  error.message = "Timeout: Too large resource version: " + std::to_string(wanted) +
                  ", current: " + std::to_string(current);
  error.causes.push_back({"ResourceVersionTooLarge", "", "Too large resource version"});
  error.retry_after_seconds = 1;
  return error;
}

// The token of a continued list: where it goes on, and in which state of the world.
struct Continue {
  std::uint64_t version = 0;  // 0: the newest, the list is not consistent any more
  std::string start;          // the last key that was given, with a NUL behind it
  std::int64_t left = -1;     // objects from there on; -1: not known
};

std::string print_continue(const Continue& token) {
  text::JsonWriter out;
  out.object([&] {
    out.field("v", "meta.k8s.io/v1");
    out.field("rv",
              token.version == 0 ? std::int64_t{-1} : static_cast<std::int64_t>(token.version));
    out.field("start", token.start);
    if (token.left >= 0) out.field("left", token.left);
  });
  std::string text = text::base64_encode(out.text());
  while (!text.empty() && text.back() == '=') text.pop_back();
  std::replace(text.begin(), text.end(), '+', '-');
  std::replace(text.begin(), text.end(), '/', '_');
  return text;
}

std::optional<Continue> parse_continue(std::string_view token) {
  std::string text(token);
  std::replace(text.begin(), text.end(), '-', '+');
  std::replace(text.begin(), text.end(), '_', '/');
  while (text.size() % 4 != 0) text += '=';
  const auto decoded = text::base64_decode(text);
  if (!decoded.ok()) return std::nullopt;
  const auto parsed = text::parse_json(decoded.value());
  if (!parsed.ok() || text_at(parsed.value().root(), "v") != "meta.k8s.io/v1") {
    return std::nullopt;
  }
  const std::int64_t version = int_at(parsed.value().root(), "rv", 0);
  Continue out;
  out.start = text_at(parsed.value().root(), "start");
  if (out.start.empty() || version == 0) return std::nullopt;
  out.version = version < 0 ? 0 : static_cast<std::uint64_t>(version);
  if (version > 0) out.left = int_at(parsed.value().root(), "left", -1);
  return out;
}

struct ListWish {
  std::uint64_t version = 0;  // of the state that is listed
  std::size_t limit = 0;      // 0: no limit
  std::string start;          // first key
  std::int64_t left = -1;     // objects from there on, as the token says; -1: not known
};

MaybeError read_limit(const Request& request, std::size_t& out) {
  const std::string_view text = request.query("limit");
  if (text.empty()) return std::nullopt;
  std::int64_t limit = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), limit);
  if (error != std::errc() || end != text.data() + text.size()) {
    return bad_request("strconv.ParseInt: parsing " + quoted(text) + ": invalid syntax");
  }
  out = limit > 0 ? static_cast<std::size_t>(limit) : 0;
  return std::nullopt;
}

MaybeError check_match(const Request& request) {
  const std::string_view match = request.query("resourceVersionMatch");
  if (match.empty()) return std::nullopt;
  std::vector<Cause> causes;
  if (request.query("resourceVersion").empty()) {
    causes.push_back(forbidden_field("resourceVersionMatch",
                                     "resourceVersionMatch is forbidden unless resourceVersion "
                                     "is provided"));
  }
  if (!request.query("continue").empty()) {
    causes.push_back(forbidden_field("resourceVersionMatch",
                                     "resourceVersionMatch is forbidden when continue is "
                                     "provided"));
  }
  if (match != "Exact" && match != "NotOlderThan") {
    causes.push_back(not_supported("resourceVersionMatch", match, {"Exact", "NotOlderThan", ""}));
  } else if (match == "Exact" && request.query("resourceVersion") == "0") {
    causes.push_back(forbidden_field("resourceVersionMatch",
                                     "resourceVersionMatch \"exact\" is forbidden for "
                                     "resourceVersion \"0\""));
  }
  if (causes.empty()) return std::nullopt;
  return invalid_object("meta.k8s.io", "ListOptions", "", std::move(causes));
}

constexpr std::string_view kContinueExpired =
    "The provided continue parameter is too old to display a consistent list result. You can "
    "start a new list without the continue parameter, or use the continue token in this response "
    "to retrieve the remainder of the results. Continuing with the provided token results in an "
    "inconsistent list - objects that were created, modified, or deleted between the time the "
    "first chunk was returned and now may show up in the list.";

MaybeError read_list_wish(const Server& server, const Request& request, ListWish& out) {
  const Shelf& shelf = *request.type->shelf;
  out.version = server.read_version(request);
  if (auto error = read_limit(request, out.limit)) return error;
  if (request.target.get("sendInitialEvents")) {
    return invalid_object(
        "meta.k8s.io", "ListOptions", "",
        {forbidden_field("sendInitialEvents", "sendInitialEvents is forbidden for list")});
  }
  if (auto error = check_match(request)) return error;
  const std::string_view token = request.query("continue");
  const std::string_view asked = request.query("resourceVersion");
  if (!token.empty()) {
    const auto next = parse_continue(token);
    if (!next) return bad_request("continue key is not valid: illegal base64 data or encoding");
    if (!asked.empty() && asked != "0") {
      return bad_request("specifying resource version is not allowed when using continue");
    }
    if (next->version != 0 && next->version < shelf.floor) {
      return expired(kContinueExpired);
    }
    if (next->version != 0) out.version = next->version;
    out.start = next->start;
    out.left = next->left;
    return std::nullopt;
  }
  if (asked.empty()) return std::nullopt;
  const auto version = parse_version(asked);
  if (!version) return bad_version(asked);
  if (*version > server.storage.committed()) {
    return too_large(*version, server.storage.committed());
  }
  if (*version == 0) {
    out.limit = 0;  // "any version" is answered whole, as from the watch cache
    return std::nullopt;
  }
  const std::string_view match = request.query("resourceVersionMatch");
  if (match == "Exact" || (match.empty() && out.limit > 0)) {
    if (*version < shelf.floor) {
      return expired("The resourceVersion for the provided list is too old.");
    }
    out.version = *version;
  }
  return std::nullopt;
}

std::string after_prefix(std::string_view ns) { return std::string(ns) + "0"; }  // '/' + 1

struct ListPage {
  std::vector<ObjectPtr> found;
  ListAnswer meta;
};

// How many objects a list goes through in all. Counted where no token says it: a page must not cost
// all pages after it.
std::int64_t count_objects(const Storage& storage, const Shelf& shelf, const std::string& first,
                           const std::string& last, std::uint64_t version) {
  if (version != storage.committed()) {
    return static_cast<std::int64_t>(storage.range(shelf, first, last, version).size());
  }
  if (first.empty() && last.empty()) return static_cast<std::int64_t>(shelf.committed_size);
  std::int64_t count = 0;
  for (auto at = shelf.entries.lower_bound(first);
       at != shelf.entries.end() && (last.empty() || at->first < last); ++at) {
    if (at->second.committed) ++count;
  }
  return count;
}

// One page: the objects that are selected, up to the limit, and where the next one begins.
ListPage read_page(const Storage& storage, const Request& request, const Selection& selection,
                   const ListWish& wish) {
  const Shelf& shelf = *request.type->shelf;
  std::string first = request.ns.empty() ? wish.start : std::max(request.ns + "/", wish.start);
  const std::string last = request.ns.empty() ? "" : after_prefix(request.ns);
  const std::size_t batch =
      wish.limit == 0 ? static_cast<std::size_t>(-1) : std::max<std::size_t>(wish.limit + 1, 5'000);
  ListPage page;
  page.meta.version = wish.version;
  std::int64_t passed = 0;
  const bool counts = wish.limit > 0 && selection.everything() && request.name.empty();
  const std::string begin = first;
  while (true) {
    const std::size_t most = counts ? wish.limit + 1 : batch;
    const std::vector<ObjectPtr> all = storage.range(shelf, first, last, wish.version, most);
    for (const ObjectPtr& object : all) {
      if (!request.name.empty() && object->name != request.name) continue;
      if (!selection.everything() && !selects(selection, *shelf.kind, *object)) continue;
      if (wish.limit > 0 && page.found.size() == wish.limit) {
        Continue next;
        next.version = wish.version;
        next.start = object_key(page.found.back()->ns, page.found.back()->name) + '\0';
        if (counts) {
          next.left = wish.left >= passed
                          ? wish.left - passed
                          : count_objects(storage, shelf, begin, last, wish.version) - passed;
          page.meta.remain = next.left;
        }
        page.meta.next = print_continue(next);
        return page;
      }
      page.found.push_back(object);
      ++passed;
    }
    if (all.size() < most) return page;
    first = object_key(all.back()->ns, all.back()->name) + '\0';
  }
}

}  // namespace

std::uint64_t Server::read_version(const Request& request) const {
  const std::uint64_t newest = storage.committed();
  if (!request.stale || request.type->shelf == nullptr) return newest;
  const Shelf& shelf = *request.type->shelf;
  return std::max(shelf.floor, newest > 20 ? newest - 20 : std::uint64_t{0});
}

MaybeError Server::read_selection(const Request& request, Selection& out) const {
  auto labels =
      text::parse_label_selector(request.query("labelSelector"), text::SelectorKind::kNode);
  if (!labels.ok()) {
    return bad_request("unable to parse requirement: " + labels.error().to_string());
  }
  out.labels = std::move(labels).value();
  auto fields = text::parse_field_selector(request.query("fieldSelector"));
  if (!fields.ok()) {
    const std::string text(request.query("fieldSelector"));
    return bad_request("invalid selector: '" + text + "'; can't understand '" + text + "'");
  }
  const Kind& kind = *request.type->kind;
  for (text::Requirement& requirement : fields.value()) {
    const bool meta = requirement.key == "metadata.name" ||
                      (requirement.key == "metadata.namespace" && kind.namespaced);
    if (request.type->events_api) requirement.key = event_field_to_core(requirement.key);
    const std::vector<std::string>& stored = request.type->shelf->kind->selectable_fields;
    const bool known = std::find(stored.begin(), stored.end(), requirement.key) != stored.end();
    if (!meta && !known) {
      const std::string why = kind.custom || !kind.selectable_fields.empty()
                                  ? "field label not supported: " + requirement.key
                                  : quoted(requirement.key) +
                                        " is not a known field selector: only \"metadata.name\", "
                                        "\"metadata.namespace\"";
      return bad_request("Unable to find " +
                         quoted(kind.group + "/" + kind.version + ", Resource=" + kind.plural) +
                         " that match label selector " + quoted(request.query("labelSelector")) +
                         ", field selector " + quoted(request.query("fieldSelector")) + ": " + why);
    }
  }
  out.fields = std::move(fields).value();
  return std::nullopt;
}

void Server::get(const RequestPtr& request) {
  const Shelf& shelf = *request->type->shelf;
  const std::string key = object_key(request->ns, request->name);
  ObjectPtr object = shelf.committed(key);
  if (request->stale) {
    const auto old = storage.range(shelf, key, key + '\0', read_version(*request));
    object = old.empty() ? nullptr : old.front();
  }
  const std::string_view asked = request->query("resourceVersion");
  if (!asked.empty()) {
    const auto version = parse_version(asked);
    if (!version) return request->fail(bad_version(asked));
    if (*version > storage.committed()) {
      return request->fail(too_large(*version, storage.committed()));
    }
  }
  if (!object) return request->fail(not_found(request->type->resource(), request->name));
  answer_stored(*request, 200, object);
}

void Server::list(const RequestPtr& request) {
  Selection selection;
  if (auto error = read_selection(*request, selection)) return request->fail(*error);
  ListWish wish;
  if (auto error = read_list_wish(*this, *request, wish)) {
    if (error->message != kContinueExpired) return request->fail(*error);
    Continue inconsistent;
    inconsistent.start = parse_continue(request->query("continue"))->start;
    std::string json = error->to_json();
    const std::string empty_meta = "\"metadata\":{}";
    json.replace(json.find(empty_meta), empty_meta.size(),
                 "\"metadata\":{\"continue\":\"" + print_continue(inconsistent) + "\"}");
    return request->answer(410, std::move(json));
  }
  ListPage page = read_page(storage, *request, selection, wish);
  answer_list(request, std::move(page.found), page.meta);
}

namespace {

MaybeError read_watch_version(const Server& server, const Request& request, WatchStart& start) {
  const std::string_view asked = request.query("resourceVersion");
  if (asked.empty() || asked == "0") {
    start.initial = true;
    return std::nullopt;
  }
  const auto version = parse_version(asked);
  if (!version) {
    ApiError error = bad_version(asked);
    error.code = 500;
    error.reason.clear();
    return error;
  }
  start.version = *version;
  if (*version < request.type->shelf->floor) {
    return expired("too old resource version: " + std::to_string(*version) + " (" +
                   std::to_string(server.storage.committed()) + ")");
  }
  return std::nullopt;
}

MaybeError read_initial_events(const Request& request, WatchStart& start) {
  const bool asked = request.target.get("sendInitialEvents").has_value();
  const std::string_view match = request.query("resourceVersionMatch");
  std::vector<Cause> causes;
  if (asked && match != "NotOlderThan") {
    causes.push_back(
        forbidden_field("resourceVersionMatch",
                        "sendInitialEvents requires setting resourceVersionMatch to NotOlderThan"));
  }
  if (!asked && !match.empty()) {
    causes.push_back(forbidden_field("resourceVersionMatch",
                                     "resourceVersionMatch is forbidden for watch unless "
                                     "sendInitialEvents is provided"));
  }
  if (!causes.empty()) {
    return invalid_object("meta.k8s.io", "ListOptions", "", std::move(causes));
  }
  if (!asked) return std::nullopt;
  start.initial = request.query_true("sendInitialEvents");
  start.initial_end = start.initial && start.bookmarks;
  return std::nullopt;
}

}  // namespace

void Server::watch(const RequestPtr& request) {
  WatchStart start;
  if (auto error = read_selection(*request, start.selection)) return request->fail(*error);
  if (!request->name.empty()) {
    text::Requirement named;
    named.key = "metadata.name";
    named.op = text::Operator::kIn;
    named.values = {request->name};
    start.selection.fields.push_back(std::move(named));
  }
  start.bookmarks = request->query_true("allowWatchBookmarks");
  MaybeError error = read_watch_version(*this, *request, start);
  if (error && error->code != 410) return request->fail(*error);
  const bool too_old = error.has_value();
  if (auto refused = read_initial_events(*request, start)) return request->fail(*refused);
  if (too_old && !start.initial) {
    // The stream opens and says so, as kube-apiserver's does.
    request->exchange->begin(request->head(200, "application/json"));
    request->exchange->write(std::make_shared<const std::string>(
        "{\"type\":\"ERROR\",\"object\":" + error->to_json() + "}\n"));
    request->exchange->end();
    return;
  }
  std::int64_t seconds = 1800 + random.between(0, 1800);
  const std::string_view timeout = request->query("timeoutSeconds");
  if (!timeout.empty()) {
    std::int64_t wanted = 0;
    const auto [end, bad] =
        std::from_chars(timeout.data(), timeout.data() + timeout.size(), wanted);
    if (bad != std::errc() || end != timeout.data() + timeout.size()) {
      return request->fail(
          bad_request("strconv.ParseInt: parsing " + quoted(timeout) + ": invalid syntax"));
    }
    if (wanted > 0) seconds = std::min<std::int64_t>(wanted, 1'000'000);
  }
  start.timeout_ns = seconds * 1'000'000'000;
  hub.open(request, std::move(start));
}

}  // namespace berth::sim::api
