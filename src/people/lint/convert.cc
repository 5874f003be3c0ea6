#include <algorithm>
#include <map>
#include <set>
#include <tuple>

#include "people/lint/lint.h"
#include "text/json.h"
#include "text/yaml.h"
#include "text/yaml_emit.h"

namespace berth::lint {

namespace {

constexpr int kMostPasses = 500;

using FindingKey = std::tuple<std::string, int, std::string, std::string>;

FindingKey key_of(const Finding& finding) {
  return {finding.rule, finding.document, finding.field, finding.what};
}

Result<std::string> string_at(std::string_view source, const text::YamlPath& path) {
  BERTH_TRY(const text::YamlSource read, text::YamlSource::read(source));
  const auto found = read.find(path);
  if (!found || read.node(*found).kind != text::YamlNode::Kind::kScalar) {
    return Error(Code::kNotFound, "no text is there");
  }
  return read.node(*found).text;
}

Result<std::string> with_document(std::string text, const std::string& json) {
  BERTH_TRY(const text::Document added, text::parse_json(json));
  if (!text.ends_with('\n')) text += '\n';
  std::string lines;
  for (const text::Member& member : added.root().members()) {
    lines += text::yaml_block_member(member.key, member.value, 0) + "\n";
  }
  return text + "---\n" + lines;
}

// One document with one finding corrected.
Result<std::string> corrected(const std::string& source, const Fix& fix, bool json) {
  if (!fix.document.empty() && json) return invalid("JSON has no second document");
  std::string out;
  if (fix.inside.empty()) {
    BERTH_TRY(out, text::edit_yaml(source, fix.changes));
  } else {
    BERTH_TRY(const std::string inner, string_at(source, fix.inside));
    BERTH_TRY(const std::string changed, text::edit_yaml(inner, fix.changes));
    text::YamlChange set{.kind = text::YamlChange::Kind::kSet, .at = fix.inside};
    set.json = text::to_json(text::Value::make_string(changed, 0));
    BERTH_TRY(out, text::edit_yaml(source, {&set, 1}));
    // The outer text must hold exactly what was meant.
    BERTH_TRY(const std::string again, string_at(out, fix.inside));
    if (again != changed) return invalid("the text cannot be changed in place");
  }
  if (!fix.document.empty()) return with_document(std::move(out), fix.document);
  return out;
}

// Later passes find things where earlier corrections moved them; people look into the file that
// they gave.
void place_as_given(const std::vector<Finding>& first, std::vector<Finding>& done) {
  std::multimap<std::tuple<std::string, std::string, std::string>, const Finding*> given;
  for (const Finding& one : first) given.emplace(std::tuple(one.rule, one.object, one.what), &one);
  for (Finding& one : done) {
    const auto was = given.lower_bound(std::tuple(one.rule, one.object, one.what));
    if (was == given.end() || was->first != std::tuple(one.rule, one.object, one.what)) continue;
    one.document = was->second->document;
    one.line = was->second->line;
    one.column = was->second->column;
    one.field = was->second->field;
    given.erase(was);
  }
}

class Converter {
 public:
  Converter(const File& file, const Schemas* schemas) : file_(file), schemas_(schemas) {}

  Result<Conversion> run() {
    Report report = lint({file_}, schemas_);
    if (!report.unreadable.empty()) {
      const Unreadable& first = report.unreadable.front();
      return Error(
          Code::kInvalid,
          (first.line > 0 ? "line " + std::to_string(first.line) + ": " : "") + first.message);
    }
    const std::vector<Finding> first = report.findings;
    for (int pass = 0; pass < kMostPasses; ++pass) {
      if (!correct(report)) break;
      report = lint({file_}, schemas_);
    }
    Conversion out;
    std::set<FindingKey> still;
    for (const Finding& finding : report.findings) still.insert(key_of(finding));
    for (Finding& finding : done_) {
      if (!still.contains(key_of(finding))) out.done.push_back(std::move(finding));
    }
    place_as_given(first, out.done);
    std::stable_sort(out.done.begin(), out.done.end(), [](const auto& a, const auto& b) {
      return std::tie(a.document, a.line) < std::tie(b.document, b.line);
    });
    out.left = std::move(report.findings);
    out.bytes = std::move(file_.bytes);
    return out;
  }

 private:
  // At most one correction a document, and all that lie apart in a text; false when there is none.
  bool correct(const Report& report) {
    std::vector<const Finding*> chosen;
    std::set<int> busy;
    std::map<FindingKey, std::size_t> count;
    for (const Finding& finding : report.findings) ++count[key_of(finding)];
    for (const Finding& finding : report.findings) {
      // Again only where the last time helped: the same may be wrong at several places.
      const FindingKey key = key_of(finding);
      const auto before = tried_.find(key);
      if (!finding.edit || (before != tried_.end() && before->second <= count[key])) continue;
      if (finding.document > 0 && !busy.insert(finding.document).second) continue;
      chosen.push_back(&finding);
    }
    if (chosen.empty()) return false;
    if (chosen.front()->document == 0) return correct_text(chosen, count);
    for (const Finding* finding : chosen) tried_[key_of(*finding)] = count[key_of(*finding)];
    // From the end, so that what comes before stays where it is.
    std::sort(chosen.begin(), chosen.end(),
              [](const auto* a, const auto* b) { return a->document > b->document; });
    const auto starts = text::yaml_document_starts(file_.bytes);
    if (!starts.ok()) return false;
    for (const Finding* finding : chosen) correct_document(*finding, *starts);
    return true;
  }

  // starts: of the documents, as they are up to this one.
  void correct_document(const Finding& finding, const std::vector<std::size_t>& starts) {
    const auto number = static_cast<std::size_t>(finding.document);
    if (number > starts.size()) return;
    const std::size_t from = starts[number - 1];
    const std::size_t to = number < starts.size() ? starts[number] : file_.bytes.size();
    const std::string part = file_.bytes.substr(from, to - from);
    const std::size_t first = part.find_first_not_of(" \t\r\n");
    const bool json = starts.size() == 1 && first != std::string::npos && part[first] == '{' &&
                      text::parse_json(part).ok();
    const auto made = corrected(part, *finding.edit, json);
    if (!made.ok() || (json && !text::parse_json(*made).ok())) return;
    file_.bytes.replace(from, to - from, *made);
    done_.push_back(finding);
  }

  bool correct_text(const std::vector<const Finding*>& chosen,
                    std::map<FindingKey, std::size_t>& count) {
    std::vector<std::pair<TextChange, const Finding*>> changes;
    for (const Finding* finding : chosen) {
      const auto& own = finding->edit->text;
      const bool apart = std::all_of(own.begin(), own.end(), [&](const TextChange& one) {
        return std::none_of(changes.begin(), changes.end(), [&](const auto& other) {
          return one.begin <= other.first.end && other.first.begin <= one.end;
        });
      });
      if (!apart) continue;
      tried_[key_of(*finding)] = count[key_of(*finding)];
      for (const TextChange& one : own) changes.emplace_back(one, finding);
      done_.push_back(*finding);
    }
    if (changes.empty()) return false;
    std::sort(changes.begin(), changes.end(),
              [](const auto& a, const auto& b) { return a.first.begin > b.first.begin; });
    for (const auto& [change, finding] : changes) {
      file_.bytes.replace(change.begin, change.end - change.begin, change.text);
    }
    return true;
  }

  File file_;
  const Schemas* schemas_;
  std::map<FindingKey, std::size_t> tried_;  // how often it was found then
  std::vector<Finding> done_;
};

}  // namespace

Result<Conversion> convert(const File& file, const Schemas* schemas) {
  return Converter(file, schemas).run();
}

}  // namespace berth::lint
