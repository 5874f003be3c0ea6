#include "checks.h"

#include <algorithm>
#include <set>

#include "base/utf8.h"
#include "outcome.h"
#include "text/json.h"
#include "text/patch.h"
#include "text/path.h"
#include "text/tree.h"

namespace berth::why_corpus {

namespace {

using Lines = std::vector<std::string>;
using Keys = std::vector<std::string>;

const Keys kTopKeys = {"version",  "subject",       "verdict", "line",      "reason",    "stage",
                       "docs",     "also",          "since",   "evaluated", "need",      "quota",
                       "have",     "fragmentation", "funnel",  "nodes",     "nodesMore", "holders",
                       "ahead",    "autoscaler",    "health",  "fixes",     "refused",   "start",
                       "evidence", "exitCode"};
const Keys kSubjectKeys = {"kind", "namespace", "name"};
const Keys kNeedKeys = {"pods", "gpusPerPod", "gpus", "model", "topology", "priority", "queue"};
const Keys kHaveKeys = {"nodes",    "eligibleNodes", "nodesWithRoom",
                        "freeGpus", "largestBlock",  "freeByNode"};
const Keys kStartKeys = {"known", "at", "because"};
const Keys kEvidenceKeys = {"objects", "digest", "decision", "decided",
                            "cluster", "replay", "partial"};
const Keys kFixKeys = {"title", "kind", "disturbance", "result", "restarts", "changes"};
const Keys kAlsoKeys = {"reason", "stage", "message"};

std::string joined(const std::vector<std::string>& words) {
  std::string out;
  for (const std::string& word : words) out += (out.empty() ? "" : ", ") + word;
  return out.empty() ? "nothing" : out;
}

Subject subject_of(const Case& one) { return {one.kind, one.ns, one.subject}; }

Ran run_why(const Case& one, const Objects& objects, const std::string& format, bool reversed) {
  return run_berth(
      {"why", one.kind, one.subject, "-n", one.ns, "-f", "-", "-o", format, "--now", one.now},
      objects.stream(reversed));
}

// By why itself: it runs, or the next decision starts it.
bool starts_by_why(const Case& one, const Objects& objects) {
  const Ran ran = run_why(one, objects, "json", false);
  const Result<text::Document> answer = text::parse_json(ran.out);
  return answer.ok() && (ran.code == 0 || text_at(answer->root(), "reason") == "PendingEvaluation");
}

int code_of(const std::string& verdict) {
  const Keys verdicts = {"running", "waiting", "misconfigured", "never", "fault"};
  const auto at = std::find(verdicts.begin(), verdicts.end(), verdict);
  return at == verdicts.end() ? -1 : static_cast<int>(at - verdicts.begin()) * 10;
}

std::vector<std::string> also_of(const text::Value& answer) {
  std::vector<std::string> out;
  for (const text::Value& one : at(answer, "also").items())
    out.push_back(std::string(text_at(one, "reason")));
  return out;
}

// Keys may be left out only where the contract lets a part be absent ("nodesMore").
void check_keys(const text::Value* object, const Keys& want, const std::string& where,
                Lines& lines) {
  if (object == nullptr || !object->is_object()) {
    lines.push_back(where + " is not an object");
    return;
  }
  Keys got, wanted = want;
  for (const text::Member& member : object->members()) got.emplace_back(member.key);
  if (!contains(got, "nodesMore")) std::erase(wanted, "nodesMore");
  if (got != wanted) lines.push_back(where + " has the keys " + joined(got));
}

void check_shape(const text::Value& answer, Lines& lines) {
  check_keys(&answer, kTopKeys, "the answer", lines);
  check_keys(answer.find("subject"), kSubjectKeys, "subject", lines);
  check_keys(answer.find("need"), kNeedKeys, "need", lines);
  check_keys(answer.find("have"), kHaveKeys, "have", lines);
  check_keys(answer.find("start"), kStartKeys, "start", lines);
  check_keys(answer.find("evidence"), kEvidenceKeys, "evidence", lines);
  for (const text::Value& fix : at(answer, "fixes").items())
    check_keys(&fix, kFixKeys, "fix", lines);
  for (const text::Value& one : at(answer, "also").items())
    check_keys(&one, kAlsoKeys, "also", lines);
}

// ---- G1 ----

// word stands by itself in text: not as a part of a longer name.
bool names_word(std::string_view text, std::string_view word) {
  const auto part_of_name = [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '-' || c == '_';
  };
  for (std::size_t at = 0; (at = text.find(word, at)) != std::string_view::npos; ++at) {
    const std::size_t end = at + word.size();
    const bool starts = at == 0 || !part_of_name(text[at - 1]);
    if (starts && (end == text.size() || !part_of_name(text[end]))) return true;
  }
  return false;
}

void check_one_of(const char* what, const std::string& got, const std::vector<std::string>& want,
                  Lines& lines) {
  if (want.empty() || contains(want, got)) return;
  lines.push_back(std::string(what) + ": want " + joined(want) + ", got \"" + got + "\"");
}

void check_also(const Case& one, const text::Value& answer, Lines& lines) {
  const std::string reason(text_at(answer, "reason"));
  const std::vector<std::string> also = also_of(answer);
  for (const std::string& want : one.also) {
    if (want != reason && !contains(also, want)) {
      lines.push_back("also: want " + want + ", got " + joined(also));
    }
  }
  // Where the first reason may be one of several, the other one may follow.
  for (const std::string& got : also) {
    const bool allowed = contains(one.also, got) || contains(one.maybe, got) ||
                         (got != reason && contains(one.reasons, got) && !one.also.empty());
    if (!allowed) lines.push_back("also: blames " + got);
    if (got == reason) lines.push_back("also: repeats the reason " + got);
  }
}

void check_words(const Case& one, const text::Value& answer, Lines& lines) {
  const std::string line(text_at(answer, "line"));
  for (const std::string& word : one.not_named) {
    if (names_word(line, word)) lines.push_back("the line names " + word + ": " + line);
    for (const text::Value& also : at(answer, "also").items()) {
      const std::string message(text_at(also, "message"));
      if (names_word(message, word)) lines.push_back("also names " + word + ": " + message);
    }
  }
  if (line.empty()) lines.emplace_back("no line");
}

void check_health(const Case& one, const text::Value& answer, Lines& lines) {
  if (one.health.empty()) return;
  std::vector<std::string> got;
  for (const text::Value& gpu : at(answer, "health").items()) {
    const text::Value* index = gpu.find("gpu");
    got.push_back(std::string(text_at(gpu, "node")) + '/' +
                  std::to_string(index == nullptr ? -1 : index->as_int64().value_or(-1)));
  }
  std::sort(got.begin(), got.end());
  if (got != one.health)
    lines.push_back("health: want " + joined(one.health) + ", got " + joined(got));
}

void check_start(const Case& one, const text::Value& answer, Lines& lines) {
  if (one.start.empty()) return;
  const std::string at(text_at(answer, "start.at"));
  const std::string got = at.empty() ? "unknown" : at;
  if (got == one.start) return;
  lines.push_back("start: want " + one.start + ", got " + got + ": " +
                  std::string(text_at(answer, "start.because")));
}

bool check_cause(const Case& one, const text::Value& answer, int code, Lines& lines) {
  const std::size_t before = lines.size();
  const std::string verdict(text_at(answer, "verdict"));
  if (verdict != "running")
    check_one_of("reason", std::string(text_at(answer, "reason")), one.reasons, lines);
  const bool right = lines.size() == before;
  check_one_of("verdict", verdict, one.verdicts, lines);
  if (verdict != "running")
    check_one_of("stage", std::string(text_at(answer, "stage")), one.stages, lines);
  const text::Value* told = answer.find("exitCode");
  if (code != code_of(verdict) || told == nullptr || told->as_int64() != code) {
    lines.push_back("exit code " + std::to_string(code) + " for " + verdict);
  }
  if (!one.fine()) check_also(one, answer, lines);
  check_words(one, answer, lines);
  check_health(one, answer, lines);
  check_start(one, answer, lines);
  return right;
}

// ---- G2 ----

// The moved pod has its place: were it free to go, a plan would bind it to the node that the fix
// names, beside what is asked about.
void check_move(const Case& one, const text::Value& fix, const std::string& title, Lines& lines) {
  Objects objects = one.objects;
  std::string ns, name;
  for (const text::Value& change : at(fix, "changes").items()) {
    const text::Value* made = change.find("create");
    if (made == nullptr) {
      if (!apply_change(change, objects).ok()) lines.push_back(title + "does not apply");
      continue;
    }
    ns = text_at(*made, "metadata.namespace");
    name = text_at(*made, "metadata.name");
    const std::string node(text_at(*made, "spec.nodeName"));
    text::Tree pod(*made);
    pod["spec"].erase("nodeName");
    pod["spec"]["nodeSelector"]["kubernetes.io/hostname"] = text::Tree::of_text(node);
    text::JsonWriter json;
    pod.write(json);
    objects.add_json(std::move(json).take());
  }
  for (const Subject& each : {subject_of(one), Subject{"pod", ns, name}}) {
    const Result<Outcome> outcome = plan_of(objects, each, one.now);
    if (outcome.ok() && outcome->starts) continue;
    lines.push_back(title + "no place for " + each.ns + '/' + each.name + " when both wait: " +
                    (outcome.ok() ? outcome->reason : outcome.error().to_string()));
  }
}

// Whether the title speaks of the resource: by its name, or as people call it.
bool speaks_of(std::string_view title, std::string_view resource) {
  const auto has = [&](std::string_view word) { return title.find(word) != std::string::npos; };
  if (has(resource.substr(resource.rfind('/') + 1))) return true;
  return resource.find("nvidia.com/") != std::string_view::npos && (has("GPU") || has("MIG"));
}

// What it asks for otherwise than before is what it says; what it makes new is all its own.
void check_amounts(const text::Value& fix, const std::string& title, Lines& lines) {
  const auto look = [&](std::string_view resource, std::string_view path) {
    if (speaks_of(title, resource)) return;
    lines.push_back(title + "changes " + std::string(path) + ", which it does not name");
  };
  for (const text::Value& change : at(fix, "changes").items()) {
    const text::Value* operations = change.find("patch");
    if (operations == nullptr) continue;
    for (const text::Value& operation : operations->items()) {
      const std::string_view path = text_at(operation, "path");
      const Result<std::vector<std::string>> tokens = text::parse_pointer(path);
      for (std::size_t i = 0; tokens.ok() && i < tokens->size(); ++i) {
        const std::string& token = (*tokens)[i];
        if (token != "limits" && token != "requests" && token != "hard") continue;
        const bool of_range = text_at(change, "kind") == "LimitRange";  // limits/0/max/memory
        const std::size_t at_name = of_range ? i + 3 : i + 1;
        if (at_name < tokens->size()) {
          look((*tokens)[at_name], path);
        } else if (const text::Value* amounts = operation.find("value")) {
          for (const text::Member& amount : amounts->members()) look(amount.key, path);
        }
        break;
      }
    }
  }
}

void check_fix(const Case& one, const text::Value& fix, Tally& tally, Lines& lines) {
  const std::string title = "fix \"" + std::string(text_at(fix, "title")) + "\": ";
  ++tally.fixes;
  Objects objects = one.objects;
  const auto changes = at(fix, "changes").items();
  if (changes.empty()) {
    lines.push_back(title + "no changes");
    return;
  }
  check_amounts(fix, title, lines);
  for (const text::Value& change : changes) {
    const Status done = apply_change(change, objects);
    if (done.ok()) continue;
    lines.push_back(title + done.error().to_string());
    return;
  }
  const Result<Outcome> outcome = one.server ? Outcome{.starts = starts_by_why(one, objects)}
                                             : plan_of(objects, subject_of(one), one.now);
  if (text_at(fix, "kind") == "move-pod") check_move(one, fix, title, lines);
  if (outcome.ok() && outcome->starts) {
    ++tally.fixes_work;
  } else {
    lines.push_back(title + "does not start: " +
                    (outcome.ok() ? outcome->reason : outcome.error().to_string()));
  }
}

void check_fixes(const Case& one, const text::Value& answer, Tally& tally, Lines& lines) {
  const auto fixes = at(answer, "fixes").items();
  for (const text::Value& fix : fixes) check_fix(one, fix, tally, lines);
  if (fixes.empty() && !one.fine()) ++tally.without_fix;
  for (const text::Value& fix : fixes) {
    if (one.no_fix.empty() || text_at(fix, "kind") != one.no_fix) continue;
    lines.push_back("a fix of kind " + one.no_fix + ": " + std::string(text_at(fix, "title")));
  }
  if (one.fix.empty()) return;
  const bool offered = std::any_of(fixes.begin(), fixes.end(), [&](const text::Value& fix) {
    return one.fix == "yes" || text_at(fix, "kind") == one.fix;
  });
  if (!offered) lines.push_back("no fix of kind " + one.fix);
}

// ---- G3 ----

void check_cured(const Case& one, Lines& lines) {
  const std::vector<std::string> causes = one.causes();
  for (const std::string& cause : causes) {
    const Result<Objects> objects = cured(one, {cause});
    if (!objects.ok()) {
      lines.push_back(objects.error().to_string());
      continue;
    }
    const Ran ran = run_why(one, *objects, "json", false);
    const Result<text::Document> answer = text::parse_json(ran.out);
    if (!answer.ok()) {
      lines.push_back("without " + cause + ": " + ran.err);
      continue;
    }
    const std::string reason(text_at(answer->root(), "reason"));
    if (causes.size() == 1 && ran.code != 0 && reason != "PendingEvaluation") {
      lines.push_back("without " + cause + " it runs, but why says " + reason);
    }
    // What starts with the next decision is PendingEvaluation, whatever held it before.
    if (cause == "PendingEvaluation") continue;
    if (reason == cause || contains(also_of(answer->root()), cause)) {
      lines.push_back("without " + cause + ": still blamed");
    }
  }
}

// ---- G4, and what people see ----

// Where two outputs part, with a few characters around it.
std::string parting(const std::string& a, const std::string& b) {
  std::size_t at = 0;
  while (at < a.size() && at < b.size() && a[at] == b[at]) ++at;
  const std::size_t from = at < 60 ? 0 : at - 60;
  return a.substr(from, 100) + " | " + b.substr(from, 100);
}

void check_bytes(const Case& one, const std::string& first, Lines& lines) {
  const std::string again = run_why(one, one.objects, "json", false).out;
  const std::string reversed = run_why(one, one.objects, "json", true).out;
  if (again != first) lines.push_back("two runs differ: " + parting(first, again));
  if (reversed != first) {
    lines.push_back("the order of the documents changes the answer: " + parting(first, reversed));
  }
}

void check_says(const Case& one, const std::string& table, Lines& lines) {
  std::string flat;  // lines are wrapped at blanks
  for (const char c : table) {
    const bool blank = c == ' ' || c == '\n';
    if (!blank || (!flat.empty() && flat.back() != ' ')) flat += blank ? ' ' : c;
  }
  for (const std::string& words : one.says) {
    if (flat.find(words) == std::string::npos) {
      lines.push_back("table: does not say \"" + words + "\":\n" + table);
    }
  }
}

void check_table(const Case& one, Lines& lines) {
  const Ran ran = run_why(one, one.objects, "table", false);
  check_says(one, ran.out, lines);
  std::size_t columns = 0;
  std::string line;
  for (const char c : ran.out) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '\n') {
      if (columns > 80) lines.push_back("table: " + std::to_string(columns) + " columns: " + line);
      columns = 0;
      line.clear();
      continue;
    }
    if (byte < 0x20 || byte == 0x7f) lines.emplace_back("table: a control character");
    if ((byte & 0xc0) != 0x80) ++columns;
    line += c;
  }
  if (ran.out.empty()) lines.emplace_back("table: empty");
}

// A rule that no node meets, and an amount that no node has, must be so by the plan's proof; what
// waits must not.
void check_retry(const Case& one, Lines& lines) {
  const Keys rules = {"TaintNotTolerated", "NodeSelectorMismatch", "NodeAffinityMismatch",
                      "VolumeUnreachable", "GpuModelMismatch"};
  if (one.fine() || one.server || one.verdicts.size() > 1) return;
  const std::string& verdict = one.verdicts[0];
  if (verdict == "misconfigured" && !contains(rules, one.reasons[0])) return;
  const Result<Outcome> outcome = plan_of(one.objects, subject_of(one), one.now);
  if (!outcome.ok() || outcome->retry.empty()) return;
  const bool never = verdict == "never" || verdict == "misconfigured";
  if (never == (outcome->retry == "never")) return;
  lines.push_back("verdict " + verdict + ", but the plan says " + outcome->retry);
}

}  // namespace

std::vector<std::string> check_case(const Case& one, Tally& tally) {
  Lines lines;
  ++tally.cases;
  const Ran ran = run_why(one, one.objects, "json", false);
  const Result<text::Document> answer = text::parse_json(ran.out);
  if (!answer.ok()) return {"no JSON (exit " + std::to_string(ran.code) + "): " + ran.err};
  check_shape(answer->root(), lines);
  if (check_cause(one, answer->root(), ran.code, lines)) ++tally.primary_right;
  check_fixes(one, answer->root(), tally, lines);
  check_cured(one, lines);
  check_bytes(one, ran.out, lines);
  check_table(one, lines);
  return lines;
}

std::vector<std::string> check_truth(const Case& one) {
  Lines lines;
  const std::vector<std::string> causes = one.causes();
  const auto starts_with_cures = [&](const std::vector<std::string>& reasons, bool want) {
    const Result<Objects> objects = cured(one, reasons);
    const Result<Outcome> outcome = !objects.ok() ? Result<Outcome>(objects.error())
                                    : one.server  ? Outcome{.starts = starts_by_why(one, *objects)}
                                                  : plan_of(*objects, subject_of(one), one.now);
    if (!outcome.ok()) {
      lines.push_back("plan: " + outcome.error().to_string());
    } else if (outcome->starts != want) {
      lines.push_back("plan, cured of " + joined(reasons) + ": " +
                      (want ? "waits: " + outcome->reason : "starts"));
    }
  };
  starts_with_cures({}, one.fine());
  check_retry(one, lines);
  if (!causes.empty()) starts_with_cures(causes, true);
  for (const std::string& left : causes) {
    if (causes.size() == 1) break;
    std::vector<std::string> others = causes;
    std::erase(others, left);
    starts_with_cures(others, false);
  }
  return lines;
}

std::string summary(const Tally& tally) {
  return std::to_string(tally.cases) + " cases, " + std::to_string(tally.primary_right) +
         " primary right, " + std::to_string(tally.fixes) + " fixes tried, " +
         std::to_string(tally.fixes_work) + " work, " + std::to_string(tally.without_fix) +
         " cases without a fix";
}

}  // namespace berth::why_corpus
