#include "line_words.h"
#include "queue_expect.h"
#include "queue_shorthand.h"
#include "scenario.h"
#include "shorthand.h"
#include "text/rfc3339.h"
#include "text/yaml.h"

namespace berth::scenario {

namespace {

// "a b \"c d\"": the quoted text apart, the words without it.
struct QuotedLine {
  std::vector<std::string> words;
  std::string text;
  bool quoted = false;
};

QuotedLine take_quoted(std::string_view line) {
  QuotedLine out;
  const std::size_t first = line.find('"');
  const std::size_t last = line.rfind('"');
  if (first != std::string_view::npos && last > first) {
    out.quoted = true;
    out.text = line.substr(first + 1, last - first - 1);
    out.words =
        words_of(std::string(line.substr(0, first)) + " " + std::string(line.substr(last + 1)));
  } else {
    out.words = words_of(line);
  }
  return out;
}

// The kind that the word of a shorthand stands for; other words as they are.
std::string kind_of(const std::string& word) {
  static const std::map<std::string, std::string> kKinds = {{"pod", "Pod"},
                                                            {"node", "Node"},
                                                            {"budget", "PodDisruptionBudget"},
                                                            {"gang", "PodGroup"},
                                                            {"workload", "Workload"},
                                                            {"job", "Job"},
                                                            {"queue", "ClusterQueue"},
                                                            {"local", "LocalQueue"},
                                                            {"cohort", "Cohort"},
                                                            {"flavor", "ResourceFlavor"},
                                                            {"topology", "Topology"},
                                                            {"check", "AdmissionCheck"},
                                                            {"class", "WorkloadPriorityClass"},
                                                            {"namespace", "Namespace"}};
  const auto it = kKinds.find(word);
  return it == kKinds.end() ? word : it->second;
}

bool is_count(const std::string& word) {
  return word == "placed" || word == "waiting" || word == "invalid" || word == "ignored" ||
         word == "warnings";
}

class ScenarioParser {
 public:
  ScenarioParser(std::string path, std::string_view text) : text_(text) {
    scenario_.path = std::move(path);
    scenario_.steps.emplace_back();
  }

  Result<Scenario> run() {
    while (next()) {
      Status status = read_line();
      if (!status.ok()) return place(std::move(status).error());
    }
    for (const Step& step : scenario_.steps) {
      if (step.expect.empty()) {
        line_ = step.line == 0 ? 1 : step.line;
        return place(invalid("a step expects nothing: write \"expect\" and what must come out"));
      }
    }
    return std::move(scenario_);
  }

 private:
  enum class Section { kNone, kCluster, kRunning, kSubmit, kExpect, kAt };

  Error place(Error error) const {
    return std::move(error).context(scenario_.path + ":" + std::to_string(line_));
  }

  bool next() {
    if (at_ >= text_.size()) return false;
    const std::size_t end = std::min(text_.find('\n', at_), text_.size());
    raw_ = text_.substr(at_, end - at_);
    at_ = end + 1;
    ++line_;
    return true;
  }

  Status read_line() {
    const std::string_view line = trimmed(raw_);
    if (line.empty()) return {};
    if (line.front() == '#') {
      if (scenario_.title.empty()) scenario_.title = trimmed(line.substr(1));
      return {};
    }
    const bool indented = raw_.front() == ' ' || raw_.front() == '\t';
    if (!indented) return read_section(line);
    switch (section_) {
      case Section::kNone:
        return invalid("an indented line before any section");
      case Section::kExpect:
        return read_expect_line(line);
      case Section::kAt:
        if (line.starts_with("delete ")) return read_delete(line);
        return read_object(line);
      default:
        return read_object(line);
    }
  }

  Status read_section(std::string_view line) {
    const std::vector<std::string> w = words_of(line);
    if (line == "cluster") {
      section_ = Section::kCluster;
    } else if (line == "running") {
      section_ = Section::kRunning;
    } else if (line == "submit") {
      section_ = Section::kSubmit;
    } else if (line == "expect") {
      section_ = Section::kExpect;
    } else if (w[0] == "policy" && w.size() == 2) {
      scenario_.policy.policy = w[1];
    } else if (line == "no preemption") {
      scenario_.policy.no_preemption = true;
    } else if (line == "quota only") {
      scenario_.quota_only = true;
    } else if (w.size() == 3 && w[0] == "queue" && w[1] == "policy") {
      scenario_.policy.queue_policy = w[2];
    } else if (w[0] == "cycles" && w.size() == 2 && number_of(w[1])) {
      scenario_.cycles = *number_of(w[1]);
    } else if (w[0] == "at" && w.size() == 2 && w[1].starts_with('+')) {
      const auto duration = text::parse_go_duration(std::string_view(w[1]).substr(1));
      if (!duration.ok()) return invalid("want a time such as \"at +30s\"");
      if (kStart + *duration < scenario_.steps.back().at_ns)
        return invalid("times must not go back");
      scenario_.steps.emplace_back();
      scenario_.steps.back().at_ns = kStart + *duration;
      scenario_.steps.back().line = line_;
      section_ = Section::kAt;
    } else {
      return invalid(
          "found \"" + std::string(line) +
          "\", want cluster, running, submit, expect, at +TIME, policy NAME, "
          "\"no preemption\", \"quota only\", \"queue policy RULES\" or cycles N (other lines are "
          "indented)");
    }
    return {};
  }

  Status read_object(std::string_view line) {
    if (line.starts_with("yaml <<")) return read_yaml_block(std::string(trimmed(line.substr(7))));
    const std::size_t colon = line.find(": ");
    if (colon == std::string_view::npos) return invalid("want \"what name: items\"");
    const std::string_view head = line.substr(0, colon);
    const std::string_view body = line.substr(colon + 2);
    const std::vector<std::string> words = words_of(head);
    Step& step = scenario_.steps.back();
    if (!words.empty() && QueueShorthand::knows(words[0])) {
      BERTH_TRY(std::vector<Object> objects, queues_.read(words, body, step.at_ns));
      for (Object& object : objects) {
        object.line = line_;
        step.apply.push_back(std::move(object));
      }
      return {};
    }
    if (section_ == Section::kRunning && head.find(" on ") == std::string_view::npos) {
      return invalid("a running pod wants \"pod NS/NAME on NODE: ...\"");
    }
    BERTH_TRY(std::vector<Object> objects, read_shorthand(head, body, line_));
    for (Object& object : objects) step.apply.push_back(std::move(object));
    return {};
  }

  Status read_yaml_block(const std::string& end) {
    if (end.empty()) return invalid("want \"yaml <<END\"");
    const int first = line_;
    std::string block;
    while (next()) {
      if (trimmed(raw_) == end) return add_yaml(block, first);
      block += std::string(raw_) + '\n';
    }
    line_ = first;
    return invalid("the block does not end: no line \"" + end + "\"");
  }

  Status add_yaml(const std::string& block, int first) {
    // Lines are indented as the scenario is: the common indent goes.
    std::size_t indent = std::string::npos;
    for (const std::string_view line : lines_of(block)) {
      if (!trimmed(line).empty()) indent = std::min(indent, line.find_first_not_of(' '));
    }
    std::string text;
    for (const std::string_view line : lines_of(block)) {
      text += std::string(line.size() > indent ? line.substr(indent) : std::string_view()) + '\n';
    }
    auto documents = text::parse_yaml(text);
    if (!documents.ok()) {
      line_ = first;
      return std::move(documents).context("yaml").error();
    }
    for (const text::Document& document : *documents) {
      const text::Value& root = document.root();
      const auto word = [](const text::Value* v) {
        return v == nullptr ? std::string() : std::string(v->string());
      };
      const text::Value* meta = root.find("metadata");
      Object object;
      object.kind = word(root.find("kind"));
      const std::string ns = meta == nullptr ? "" : word(meta->find("namespace"));
      object.name =
          (ns.empty() ? "" : ns + '/') + (meta == nullptr ? "" : word(meta->find("name")));
      object.json = text::to_json(root);
      object.line = first;
      scenario_.steps.back().apply.push_back(std::move(object));
    }
    return {};
  }

  static std::vector<std::string_view> lines_of(std::string_view text) {
    std::vector<std::string_view> out;
    while (!text.empty()) {
      const std::size_t end = std::min(text.find('\n'), text.size());
      out.push_back(text.substr(0, end));
      text.remove_prefix(std::min(end + 1, text.size()));
    }
    return out;
  }

  Status read_delete(std::string_view line) {
    const std::vector<std::string> w = words_of(line);
    if (w.size() != 3) return invalid("want \"delete pod NS/NAME\" or \"delete node NAME\"");
    scenario_.steps.back().remove.push_back({kind_of(w[1]), w[2], line_});
    return {};
  }

  // ---- expectations ----

  Expectation& add(Expectation::Kind kind, std::string_view source) {
    Expectation e;
    e.kind = kind;
    e.line = line_;
    e.source = source;
    scenario_.steps.back().expect.push_back(std::move(e));
    return scenario_.steps.back().expect.back();
  }

  Status read_expect_line(std::string_view line) {
    // "placed 3, waiting 1, preempted a/b": several on a line
    if (line.find('"') == std::string_view::npos && line.find(", ") != std::string_view::npos) {
      for (const std::string& part : split_at(line, ", ")) BERTH_CHECK(read_expectation(part));
      return {};
    }
    return read_expectation(line);
  }

  Status read_expectation(std::string_view line) {
    const QuotedLine q = take_quoted(line);
    const std::vector<std::string>& w = q.words;
    if (w.empty()) return invalid("found nothing to expect");
    if (read_plan_wide(q, line)) return {};
    Expectation of_queue;
    BERTH_TRY(const bool queues, read_queue_expectation(w, q.text, of_queue));
    if (queues) {
      of_queue.line = line_;
      of_queue.source = line;
      if (w[0].find('/') != std::string::npos) last_name_ = w[0];
      scenario_.steps.back().expect.push_back(std::move(of_queue));
      return {};
    }
    if (w[0].find('/') == std::string::npos) return read_proof(last_name_, w, 0, line);
    last_name_ = w[0];
    if (w.size() < 2) return invalid("want what happens to " + w[0]);
    if (w[1] == "on" || w[1] == "placed") return read_place(w, line);
    if (w[1] == "waits" || w[1] == "never" || w[1] == "partial") return read_verdict(q, line);
    return read_proof(w[0], w, 1, line);
  }

  bool read_plan_wide(const QuotedLine& q, std::string_view line) {
    const std::vector<std::string>& w = q.words;
    if (w.size() == 2 && is_count(w[0]) && number_of(w[1])) {
      Expectation& e = add(Expectation::Kind::kCounts, line);
      e.word = w[0];
      e.number = *number_of(w[1]);
    } else if (w.size() == 2 && w[0] == "exit" && number_of(w[1])) {
      add(Expectation::Kind::kExit, line).number = *number_of(w[1]);
    } else if (w.size() >= 2 && (w[0] == "preempted" || w[0] == "breaks")) {
      Expectation& e =
          add(w[0] == "breaks" ? Expectation::Kind::kBreaks : Expectation::Kind::kPreempted, line);
      if (w[1] != "nothing") e.names.assign(w.begin() + 1, w.end());
    } else if (w.size() == 1 && q.quoted &&
               (w[0] == "invalid" || w[0] == "warning" || w[0] == "ignored")) {
      Expectation& e = add(Expectation::Kind::kText, line);
      e.word = w[0];
      e.text = q.text;
    } else {
      return false;
    }
    return true;
  }

  Status read_place(const std::vector<std::string>& w, std::string_view line) {
    if (w[1] == "on") {
      Expectation& e = add(Expectation::Kind::kOn, line);
      e.name = w[0];
      if (w.size() != 3 && w.size() != 5)
        return invalid("want \"POD on NODE\" or \"POD on NODE gpus 0,1\"");
      e.names = {w[2]};
      if (w.size() == 5) {
        const auto gpus = ranges_of(w[4]);
        if ((w[3] != "gpus" && w[3] != "gpu") || !gpus)
          return invalid("want \"gpus 0,1\" at the end");
        e.gpus = *gpus;
        e.has_gpus = true;
      }
      return {};
    }
    if (w.size() == 5 && w[2] == "in") {
      Expectation& e = add(Expectation::Kind::kPlacedIn, line);
      e.name = w[0];
      e.word = topology_label(w[3]);
      e.text = w[4];
      return {};
    }
    if (w.size() != 2 && (w.size() < 4 || w[2] != "on")) {
      return invalid(
          "want \"NAME placed\", \"NAME placed on NODES\" or \"NAME placed in rack r1\"");
    }
    Expectation& e = add(Expectation::Kind::kPlaced, line);
    e.name = w[0];
    if (w.size() > 3) e.names.assign(w.begin() + 3, w.end());
    return {};
  }

  Status read_verdict(const QuotedLine& q, std::string_view line) {
    const std::vector<std::string>& w = q.words;
    Expectation& e = add(Expectation::Kind::kNotPlaced, line);
    e.name = w[0];
    e.word = w[1];
    e.text = q.text;
    std::size_t at = 2;
    if (w[1] == "partial") {  // NAME partial 2 of 4 [REASON]
      if (w.size() < 5 || !number_of(w[2]) || w[3] != "of" || !number_of(w[4])) {
        return invalid("want \"NAME partial 2 of 4\"");
      }
      e.number = *number_of(w[2]);
      e.total = *number_of(w[4]);
      at = 5;
    }
    if (w.size() > at) e.reason = w[at++];
    if (w.size() > at || (e.reason.empty() && w[1] != "partial")) {
      return invalid("want \"NAME waits REASON\" or \"NAME never REASON\", and maybe a \"text\"");
    }
    return {};
  }

  // "removed taints 3", "only gpus 2", "binding taints", "fits r1 3", "free 6 largest 2"
  Status read_proof(const std::string& name, const std::vector<std::string>& w, std::size_t at,
                    std::string_view line) {
    const std::size_t n = w.size() - at;
    if (name.empty()) return invalid("say first which workload this is about");
    if (n == 3 && (w[at] == "removed" || w[at] == "only") && number_of(w[at + 2])) {
      Expectation& e =
          add(w[at] == "only" ? Expectation::Kind::kOnly : Expectation::Kind::kRemoved, line);
      e.name = name;
      e.word = w[at + 1];
      e.number = *number_of(w[at + 2]);
    } else if (n == 2 && w[at] == "binding") {
      Expectation& e = add(Expectation::Kind::kBinding, line);
      e.name = name;
      e.word = w[at + 1];
    } else if (n == 3 && w[at] == "fits" && number_of(w[at + 2])) {
      Expectation& e = add(Expectation::Kind::kFits, line);
      e.name = name;
      e.word = w[at + 1];
      e.number = *number_of(w[at + 2]);
    } else if (n == 4 && w[at] == "free" && w[at + 2] == "largest" && number_of(w[at + 1]) &&
               number_of(w[at + 3])) {
      Expectation& e = add(Expectation::Kind::kFree, line);
      e.name = name;
      e.number = *number_of(w[at + 1]);
      e.total = *number_of(w[at + 3]);
    } else {
      return invalid("found \"" + std::string(line) +
                     "\", want one of the expectations that docs/scenarios.md lists");
    }
    return {};
  }

  std::string_view text_, raw_;
  std::size_t at_ = 0;
  int line_ = 0;
  Section section_ = Section::kNone;
  std::string last_name_;
  QueueShorthand queues_;
  Scenario scenario_;
};

}  // namespace

std::string topology_label(std::string_view word) {
  if (word == "host") return "kubernetes.io/hostname";
  if (word == "zone" || word == "rack" || word == "block" || word == "region") {
    return "topology.kubernetes.io/" + std::string(word);
  }
  return std::string(word);
}

Result<Scenario> parse_scenario(const std::string& path, std::string_view text) {
  return ScenarioParser(path, text).run();
}

}  // namespace berth::scenario
