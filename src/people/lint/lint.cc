#include "people/lint/lint.h"

#include <algorithm>
#include <charconv>
#include <map>
#include <tuple>

#include "people/lint/checks.h"
#include "text/json.h"
#include "text/yaml.h"

namespace berth::lint {

namespace {

constexpr std::size_t kMostBytes = std::size_t{64} << 20;  // of one file

enum class Language : unsigned char { kYaml, kShell, kQueries, kPython };

Language language_of(const std::string& name) {
  if (name.ends_with(".sh") || name.ends_with(".bash")) return Language::kShell;
  if (name.ends_with(".promql")) return Language::kQueries;
  if (name.ends_with(".py")) return Language::kPython;
  return Language::kYaml;
}

// "line 7: column 3: ..." gives 7 and cuts it off.
int cut_line(std::string& message) {
  constexpr std::string_view kPrefix = "line ";
  if (!message.starts_with(kPrefix)) return 0;
  int line = 0;
  const char* first = message.data() + kPrefix.size();
  const auto [end, code] = std::from_chars(first, message.data() + message.size(), line);
  if (code != std::errc()) return 0;
  std::string rest(end, static_cast<std::size_t>(message.data() + message.size() - end));
  while (!rest.empty() && (rest[0] == ':' || rest[0] == ' ')) rest.erase(0, 1);
  message = std::move(rest);
  return line;
}

void name_object(Object& object) {
  const Place root = object.root();
  object.api = root["apiVersion"].text();
  object.kind = root["kind"].text();
  const std::size_t slash = object.api.find('/');
  object.group = slash == std::string::npos ? "" : object.api.substr(0, slash);
  object.version = slash == std::string::npos ? object.api : object.api.substr(slash + 1);
  object.name = root["metadata"]["name"].word();
  object.ns = root["metadata"]["namespace"].word();
}

class Reader {
 public:
  Reader(std::deque<Object>& objects, Report& out)
      : objects_(objects), unreadable_(out.unreadable), findings_(out.findings) {}

  std::size_t read(const File& file) {
    const std::size_t before = objects_.size();
    const std::string_view bytes = file.bytes;
    const std::size_t start = bytes.find_first_not_of(" \t\r\n");
    const bool json_like =
        start != std::string_view::npos && (bytes[start] == '{' || bytes[start] == '[');
    const text::Limits limits{.max_nodes = 4'000'000, .max_bytes = kMostBytes};
    if (json_like || file.name.ends_with(".json")) {
      auto json = text::parse_json(bytes, {.limits = limits});
      if (json.ok()) {
        keep(file, 1, file.bytes, 1, std::move(*json));
        return objects_.size() - before;
      }
      if (file.name.ends_with(".json")) return fail(file, 1, 0, json.error());
    }
    const auto whole = text::parse_yaml(bytes, {.limits = limits});
    if (!whole.ok()) return fail(file, 0, 0, whole.error());
    const auto starts = text::yaml_document_starts(bytes);
    if (!starts.ok()) return fail(file, 0, 0, starts.error());
    for (std::size_t i = 0; i < starts->size(); ++i) {
      const std::size_t from = (*starts)[i];
      const std::size_t to = i + 1 < starts->size() ? (*starts)[i + 1] : bytes.size();
      const std::string part(bytes.substr(from, to - from));
      const auto line =
          1 + static_cast<int>(std::count(bytes.begin(),
                                          bytes.begin() + static_cast<std::ptrdiff_t>(from), '\n'));
      auto one = text::parse_yaml(part, {.limits = limits});
      if (!one.ok() || one->empty()) continue;
      keep(file, static_cast<int>(i) + 1, part, line, std::move(one->front()));
    }
    return objects_.size() - before;
  }

 private:
  void keep(const File& file, int number, std::string part, int line, text::Document tree) {
    const auto source = std::make_shared<const Source>(std::move(part), std::move(tree));
    const text::Value& root = source->root();
    if (!root.is_object()) {
      const std::string what =
          "found " + std::string(name(root.kind())) + ", want an object with apiVersion and kind";
      if (!root.is_array()) {
        unreadable_.push_back({file.name, number, line, what});
        return;
      }
      Finding found = text_finding(file.name, file.bytes, 0, "document-type", what,
                                   "leave the file out when it is no manifest");
      found.document = number;
      found.line = line;
      findings_.push_back(std::move(found));
      return;
    }
    Object made;
    made.file = file.name;
    made.document = number;
    made.first_line = line;
    made.source = source;
    made.value = root;
    name_object(made);
    const text::Value* items = root.find("items");
    if (!made.kind.ends_with("List") || items == nullptr || !items->is_array()) {
      objects_.push_back(std::move(made));
      return;
    }
    // What kubectl get prints: its items are objects.
    for (std::size_t i = 0; i < items->size(); ++i) {
      if (!items->items()[i].is_object()) continue;
      Object item = made;
      item.value = items->items()[i];
      item.prefix = {"items", std::to_string(i)};
      name_object(item);
      objects_.push_back(std::move(item));
    }
  }

  std::size_t fail(const File& file, int document, int line, const Error& error) {
    std::string message = error.to_string();
    const int found = cut_line(message);
    unreadable_.push_back({file.name, document, found > 0 ? found : line, std::move(message)});
    return 0;
  }

  std::deque<Object>& objects_;
  std::vector<Unreadable>& unreadable_;
  std::vector<Finding>& findings_;
};

void check_object(const Object& object, const Schemas* schemas, std::vector<Finding>& out) {
  Reporter reporter(object, out);
  check_api(object, schemas, reporter);
  check_claims(object, reporter);
  check_queues(object, reporter);
  check_pools(object, reporter);
  check_scalers(object, reporter);
  check_jobs(object, reporter);
  check_pipelines(object, reporter);
  check_policies(object, reporter);
  check_metrics(object, reporter);
  check_sharing(object, reporter);
  check_values(object, reporter);
  check_gpus(object, reporter);
  check_shape(object, schemas, reporter);
}

}  // namespace

Report lint(const std::vector<File>& files, const Schemas* schemas) {
  Report out;
  std::deque<Object> objects;
  ScriptFacts facts;
  Reader reader(objects, out);
  std::vector<std::string> order;
  for (const File& file : files) {
    ++out.files;
    order.push_back(file.name);
    switch (language_of(file.name)) {
      case Language::kYaml:
        out.documents += reader.read(file);
        break;
      case Language::kShell:
        check_script(file.name, file.bytes, out.findings);
        read_facts(file.name, file.bytes, facts);
        break;
      case Language::kQueries:
        check_queries(file.name, file.bytes, out.findings);
        break;
      case Language::kPython:
        check_python(file.name, file.bytes, out.findings);
        break;
    }
  }
  for (const Object& object : objects) check_object(object, schemas, out.findings);
  check_across(objects, facts, out.findings);
  std::map<std::string, std::size_t> rank;
  for (std::size_t i = 0; i < order.size(); ++i) rank.emplace(order[i], i);
  std::stable_sort(out.findings.begin(), out.findings.end(), [&](const auto& a, const auto& b) {
    return std::tuple(rank[a.file], a.line, a.column) < std::tuple(rank[b.file], b.line, b.column);
  });
  if (out.findings.size() > kMostFindings) {
    out.findings.resize(kMostFindings);
    out.cut = true;
  }
  return out;
}

}  // namespace berth::lint
