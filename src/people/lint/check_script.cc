#include <algorithm>
#include <array>

#include "people/lint/checks.h"
#include "people/lint/shell.h"

namespace berth::lint {

namespace {

// One --set of helm: key=value, and where the word that holds it stands.
struct Setting {
  std::string key, value;
  const ShellWord* word = nullptr;
};

struct HelmCall {
  std::string chart;  // without its repository: "gpu-operator"
  std::vector<Setting> settings;
};

// "a=1,b=2": commas separate unless they are escaped or inside braces or parentheses.
void split_settings(const ShellWord& word, std::string_view text, std::vector<Setting>& out) {
  std::string part;
  int depth = 0;
  const auto end = [&] {
    const std::size_t equals = part.find('=');
    if (equals != std::string::npos) {
      out.push_back({part.substr(0, equals), part.substr(equals + 1), &word});
    }
    part.clear();
  };
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '\\' && i + 1 < text.size()) {
      part += text[++i];
      continue;
    }
    if (text[i] == '{' || text[i] == '(') ++depth;
    if (text[i] == '}' || text[i] == ')') --depth;
    if (text[i] == ',' && depth <= 0) {
      end();
    } else {
      part += text[i];
    }
  }
  end();
}

bool takes_value(std::string_view flag) {
  static constexpr std::array<std::string_view, 12> kFlags = {
      "-n",       "--namespace",   "--version",       "-f",
      "--values", "--timeout",     "--kubeconfig",    "--kube-context",
      "--repo",   "--description", "--post-renderer", "--name-template"};
  return std::find(kFlags.begin(), kFlags.end(), flag) != kFlags.end();
}

std::string_view base_name(std::string_view chart) {
  const std::size_t slash = chart.rfind('/');
  return slash == std::string_view::npos ? chart : chart.substr(slash + 1);
}

std::optional<HelmCall> helm_call(const ShellCommand& command, std::size_t from) {
  if (from + 1 >= command.size() || base_name(command[from].text) != "helm") return std::nullopt;
  std::size_t i = from + 1;
  const std::string& verb = command[i].text;
  if (verb != "install" && verb != "upgrade" && verb != "template") return std::nullopt;
  HelmCall out;
  for (++i; i < command.size(); ++i) {
    const std::string_view word = command[i].text;
    const std::size_t equals = word.find('=');
    const std::string_view flag = word.substr(0, equals);
    if (flag == "--set" || flag == "--set-string" || flag == "--set-literal") {
      if (equals != std::string_view::npos && word.starts_with("--")) {
        split_settings(command[i], word.substr(equals + 1), out.settings);
      } else if (i + 1 < command.size()) {
        ++i;
        split_settings(command[i], command[i].text, out.settings);
      }
    } else if (word.starts_with('-')) {
      if (takes_value(word)) ++i;
    } else {
      out.chart = base_name(word);  // the last word that is no flag: release, then chart
    }
  }
  return out;
}

class ScriptCheck {
 public:
  ScriptCheck(const std::string& file, std::string_view bytes, std::vector<Finding>& out)
      : file_(file), bytes_(bytes), out_(out) {}

  void run() {
    check_whole();
    for (const ShellCommand& command : shell_commands(bytes_)) {
      std::size_t first = 0;
      while (first < command.size() && skipped(command[first].text)) ++first;
      if (first >= command.size()) continue;
      const std::string& last = command.back().text;
      if (command.size() > 1 && (last == "<" || last == ">" || last == ">>")) {
        add("shell-unfinished", command.back().begin,
            "the command ends with " + last + " and names no file", "write what was left out");
      }
      if (const auto call = helm_call(command, first)) check_helm(*call);
      const std::string name(base_name(command[first].text));
      if (name == "eksctl") check_eksctl(command, first);
      if (name == "kubectl" || name == "oc") check_kubectl(command, first);
      if (name == "curl" || name == "wget") check_download(command, first);
    }
  }

 private:
  static bool skipped(std::string_view word) {
    if (word == "sudo" || word == "env" || word == "time" || word == "then" || word == "do" ||
        word == "$" || word == "!") {
      return true;
    }
    const std::size_t equals = word.find('=');
    return equals != std::string_view::npos && equals > 0 && word[0] != '-' &&
           word.substr(0, equals).find('/') == std::string_view::npos;
  }

  Finding& add(std::string_view rule, std::size_t at, std::string what, std::string fix) {
    out_.push_back(text_finding(file_, bytes_, at, rule, std::move(what), std::move(fix)));
    return out_.back();
  }

  // What is not a matter of one command.
  void check_whole() {
    if (const auto open = open_here_document(bytes_)) {
      add("shell-unfinished", *open,
          "the here document has no end: the rest of the script is in it",
          "end it with its mark on a line of its own");
    }
    for (const std::string_view device : {"KERNEL==\"nvidia", "KERNEL=='nvidia"}) {
      for (std::size_t at = bytes_.find(device); at != std::string_view::npos;
           at = bytes_.find(device, at + 1)) {
        const std::size_t end = std::min(bytes_.find('\n', at), bytes_.size());
        const std::string_view line = bytes_.substr(at, end - at);
        if (line.find("MODE") == std::string_view::npos &&
            line.find("GROUP") == std::string_view::npos &&
            line.find("OWNER") == std::string_view::npos) {
          continue;
        }
        add("udev-gpu-mode", at,
            "a udev rule sets who may open /dev/nvidia*: containers do not ask",
            "leave it to the runtime: the device cgroup and CDI say what a container may open");
      }
    }
  }

  void check_helm(const HelmCall& call) {
    for (const Setting& setting : call.settings) {
      if (call.chart == "gpu-operator") {
        if (auto trouble = gpu_operator_value(setting.key, setting.value)) {
          const std::string rename = trouble->rename;
          Finding& made = add(trouble->rule, setting.word->begin, std::move(trouble->what),
                              std::move(trouble->fix));
          const std::size_t at = bytes_.find(setting.key, setting.word->begin);
          if (!rename.empty() && at < setting.word->end) {
            made.edit = Fix{};
            made.edit->text.push_back({at, at + setting.key.size(), rename});
          }
        }
      }
      if (call.chart == "prometheus-adapter") check_adapter(setting);
    }
  }

  void check_adapter(const Setting& setting) {
    const bool series = setting.key.ends_with(".seriesQuery");
    const bool query = setting.key.ends_with(".metricsQuery");
    if (!series && !query) return;
    const std::size_t at = bytes_.find(setting.value, setting.word->begin);
    const bool found_at = at != std::string_view::npos && at < setting.word->end;
    for (QueryFinding& found : check_query(setting.value)) {
      Finding& made = add(found.rule, found_at ? at + found.begin : setting.word->begin,
                          std::move(found.what), std::move(found.fix));
      if (!found_at || found.changes.empty()) continue;
      made.edit = Fix{};
      for (TextChange& change : found.changes) {
        made.edit->text.push_back({at + change.begin, at + change.end, std::move(change.text)});
      }
    }
    if (!query) return;
    if (const auto trouble = adapter_query_trouble(setting.value)) {
      Finding& made = add("adapter-query", setting.word->begin, *trouble,
                          "write avg(<<.Series>>{<<.LabelMatchers>>}) by (<<.GroupBy>>)");
      if (!found_at) return;
      made.edit = Fix{};
      made.edit->text.push_back({at, at + setting.value.size(),
                                 "avg(<<.Series>>{<<.LabelMatchers>>}) by (<<.GroupBy>>)"});
    }
  }

  void check_eksctl(const ShellCommand& command, std::size_t first) {
    bool nodegroup = false, scales_from_zero = false, labelled = false, gpu = false;
    for (std::size_t i = first + 1; i < command.size(); ++i) {
      const std::string_view word = command[i].text;
      const std::string_view flag = word.substr(0, word.find('='));
      nodegroup = nodegroup || word == "nodegroup" || word == "ng";
      if (flag == "--node-taints" || flag == "--taints") {
        add("eksctl-flag", command[i].begin, "eksctl has no flag " + std::string(flag),
            "put taints into a config file: managedNodeGroups[].taints, and use -f");
      }
      const std::string_view value = word.size() > flag.size() ? word.substr(flag.size() + 1)
                                     : i + 1 < command.size()
                                         ? std::string_view(command[i + 1].text)
                                         : std::string_view();
      if (flag == "--nodes-min" && value == "0") scales_from_zero = true;
      if (flag == "--node-type" || flag == "-t" || flag == "--instance-types") {
        gpu = value.starts_with("p") || value.starts_with("g");
      }
      if (flag == "--node-labels") {
        labelled = value.find("k8s.amazonaws.com/accelerator") != std::string_view::npos;
      }
    }
    if (nodegroup && scales_from_zero && gpu && !labelled) {
      add("eksctl-from-zero", command[first].begin,
          "the group scales from zero and has no label k8s.amazonaws.com/accelerator",
          "add --node-labels k8s.amazonaws.com/accelerator=... so that cluster-autoscaler knows "
          "what a new node brings");
    }
  }

  void check_kubectl(const ShellCommand& command, std::size_t first) {
    if (first + 1 >= command.size() || command[first + 1].text != "taint") return;
    for (std::size_t i = first + 2; i < command.size(); ++i) {
      const std::string_view word = command[i].text;
      if (word == "-l" || word == "--selector" || word == "--context" || word == "-n") {
        ++i;
        continue;
      }
      if (word.starts_with('-') || word.ends_with('-')) continue;
      const std::size_t colon = word.rfind(':');
      const bool taint =
          word.find('=') != std::string_view::npos ||
          (colon != std::string_view::npos && word.find('/') != std::string_view::npos);
      if (!taint) continue;
      const std::string_view effect =
          colon == std::string_view::npos ? std::string_view() : word.substr(colon + 1);
      if (effect == "NoSchedule" || effect == "PreferNoSchedule" || effect == "NoExecute") continue;
      add("kubectl-taint", command[i].begin,
          "found the taint " + std::string(word) + ", want key=value:Effect",
          "end it with :NoSchedule, :PreferNoSchedule or :NoExecute");
    }
  }

  void check_download(const ShellCommand& command, std::size_t first) {
    for (std::size_t i = first + 1; i < command.size(); ++i) {
      const std::string_view word = command[i].text;
      if (word.find("/etc/cron.") == std::string_view::npos) continue;
      add("download-into-cron", command[i].begin,
          "the script downloads a page into " + std::string(word) + ", where cron runs it as root",
          "remove the line; follow advisories by other means");
    }
  }

  const std::string& file_;
  std::string_view bytes_;
  std::vector<Finding>& out_;
};

}  // namespace

Finding text_finding(const std::string& file, std::string_view bytes, std::size_t at,
                     std::string_view rule, std::string what, std::string fix) {
  const Rule* known = find_rule(rule);
  at = std::min(at, bytes.size());
  Finding out;
  out.file = file;
  const std::string_view before = bytes.substr(0, at);
  out.line = 1 + static_cast<int>(std::count(before.begin(), before.end(), '\n'));
  const std::size_t start = before.rfind('\n');
  out.column = static_cast<int>(start == std::string_view::npos ? at + 1 : at - start);
  out.rule = rule;
  out.severity = known == nullptr ? Severity::kError : known->severity;
  out.what = std::move(what);
  out.why = known == nullptr ? "" : std::string(known->why);
  out.fix = std::move(fix);
  return out;
}

namespace {

// "key=value:Effect", and lists of these.
void note_taints(const std::string& file, std::string_view script, const ShellWord& word,
                 std::string_view list, ScriptFacts& out) {
  while (!list.empty()) {
    const std::string_view one = list.substr(0, list.find(','));
    list.remove_prefix(std::min(one.size() + 1, list.size()));
    const std::size_t equals = one.find('='), colon = one.rfind(':');
    if (colon == std::string_view::npos || equals == std::string_view::npos || equals > colon) {
      continue;
    }
    out.taints.push_back({std::string(one.substr(0, equals)),
                          std::string(one.substr(equals + 1, colon - equals - 1)),
                          std::string(one.substr(colon + 1)),
                          text_finding(file, script, word.begin, "gpu-taint-values", "", "")});
  }
}

void read_taints(const std::string& file, std::string_view script, const ShellCommand& command,
                 ScriptFacts& out) {
  constexpr std::size_t kMostTaints = 1'000;
  bool kubectl = false, taint = false, gcloud = false;
  for (std::size_t i = 0; i < command.size() && out.taints.size() < kMostTaints; ++i) {
    const std::string_view word = command[i].text;
    kubectl = kubectl || base_name(word) == "kubectl" || base_name(word) == "oc";
    gcloud = gcloud || base_name(word) == "gcloud";
    if (kubectl && taint && !word.starts_with('-') && !command[i - 1].text.starts_with("-")) {
      note_taints(file, script, command[i], word, out);
    }
    taint = taint || (kubectl && word == "taint");
    constexpr std::string_view kFlag = "--node-taints";
    if (!gcloud || !word.starts_with(kFlag)) continue;
    if (word.size() > kFlag.size()) {
      note_taints(file, script, command[i], word.substr(kFlag.size() + 1), out);
    } else if (i + 1 < command.size()) {
      note_taints(file, script, command[i], command[i + 1].text, out);
    }
  }
}

}  // namespace

void read_facts(const std::string& file, std::string_view script, ScriptFacts& out) {
  for (const ShellCommand& command : shell_commands(script)) {
    read_taints(file, script, command, out);
    for (std::size_t first = 0; first < command.size(); ++first) {
      const auto call = helm_call(command, first);
      if (!call || call->chart != "gpu-operator") continue;
      for (const Setting& setting : call->settings) {
        if (setting.key != "mig.strategy") continue;
        const bool single = setting.value == "single", mixed = setting.value == "mixed";
        out.mig_single = out.mig_single || single;
        out.mig_mixed = out.mig_mixed || mixed;
        constexpr std::size_t kMostPlaces = 100;
        std::vector<Finding>& places = single ? out.single_at : out.mixed_at;
        if ((!single && !mixed) || places.size() >= kMostPlaces) continue;
        places.push_back(
            text_finding(file, script, setting.word->begin, "mig-strategy-differs", "", ""));
      }
    }
  }
}

void check_script(const std::string& file, std::string_view bytes, std::vector<Finding>& out) {
  ScriptCheck(file, bytes, out).run();
}

}  // namespace berth::lint
