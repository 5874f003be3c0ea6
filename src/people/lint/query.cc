// PromQL, as far as GPU metrics need it: names, functions, ratios and thresholds.
//
// Reads tokens, not a tree: a query that Prometheus would refuse is not this file's matter.
#include <algorithm>
#include <array>
#include <cstdlib>

#include "people/lint/checks.h"
#include "text/nearest.h"

namespace berth::lint {

namespace {

struct Word {
  enum class Kind : unsigned char { kName, kNumber, kString, kSign } kind = Kind::kSign;
  std::size_t begin = 0, end = 0;
  std::string_view text;
  bool metric = false;
};

// Names of dcgm-exporter 1.x (its compatibility list), and what they are called now.
struct OldName {
  std::string_view old, now;
};
constexpr OldName kOldNames[] = {
    {"dcgm_sm_clock", "DCGM_FI_DEV_SM_CLOCK"},
    {"dcgm_memory_clock", "DCGM_FI_DEV_MEM_CLOCK"},
    {"dcgm_memory_temp", "DCGM_FI_DEV_MEMORY_TEMP"},
    {"dcgm_gpu_temp", "DCGM_FI_DEV_GPU_TEMP"},
    {"dcgm_power_usage", "DCGM_FI_DEV_POWER_USAGE"},
    {"dcgm_total_energy_consumption", "DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION"},
    {"dcgm_pcie_replay_counter", "DCGM_FI_DEV_PCIE_REPLAY_COUNTER"},
    {"dcgm_gpu_utilization", "DCGM_FI_DEV_GPU_UTIL"},
    {"dcgm_mem_copy_utilization", "DCGM_FI_DEV_MEM_COPY_UTIL"},
    {"dcgm_enc_utilization", "DCGM_FI_DEV_ENC_UTIL"},
    {"dcgm_dec_utilization", "DCGM_FI_DEV_DEC_UTIL"},
    {"dcgm_xid_errors", "DCGM_FI_DEV_XID_ERRORS"},
    {"dcgm_fb_free", "DCGM_FI_DEV_FB_FREE"},
    {"dcgm_fb_used", "DCGM_FI_DEV_FB_USED"},
    {"dcgm_nvlink_bandwidth_total", "DCGM_FI_DEV_NVLINK_BANDWIDTH_TOTAL"},
    {"dcgm_fi_prof_gr_engine_active", "DCGM_FI_PROF_GR_ENGINE_ACTIVE"},
    {"dcgm_fi_prof_dram_active", "DCGM_FI_PROF_DRAM_ACTIVE"},
    {"dcgm_dram_active", "DCGM_FI_PROF_DRAM_ACTIVE"},
    {"dcgm_sm_active", "DCGM_FI_PROF_SM_ACTIVE"},
    {"dcgm_tensor_active", "DCGM_FI_PROF_PIPE_TENSOR_ACTIVE"},
};

constexpr std::string_view kGauges[] = {"DCGM_FI_DEV_SM_CLOCK",
                                        "DCGM_FI_DEV_MEM_CLOCK",
                                        "DCGM_FI_DEV_MEMORY_TEMP",
                                        "DCGM_FI_DEV_GPU_TEMP",
                                        "DCGM_FI_DEV_POWER_USAGE",
                                        "DCGM_FI_DEV_GPU_UTIL",
                                        "DCGM_FI_DEV_MEM_COPY_UTIL",
                                        "DCGM_FI_DEV_ENC_UTIL",
                                        "DCGM_FI_DEV_DEC_UTIL",
                                        "DCGM_FI_DEV_XID_ERRORS",
                                        "DCGM_FI_DEV_FB_FREE",
                                        "DCGM_FI_DEV_FB_USED",
                                        "DCGM_FI_DEV_FB_RESERVED",
                                        "DCGM_FI_PROF_GR_ENGINE_ACTIVE",
                                        "DCGM_FI_PROF_PIPE_TENSOR_ACTIVE",
                                        "DCGM_FI_PROF_DRAM_ACTIVE",
                                        "DCGM_FI_PROF_SM_ACTIVE",
                                        "DCGM_FI_PROF_PCIE_TX_BYTES",
                                        "DCGM_FI_PROF_PCIE_RX_BYTES",
                                        "DCGM_FI_PROF_SM_OCCUPANCY"};

constexpr std::string_view kCounters[] = {
    "DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION",    "DCGM_FI_DEV_PCIE_REPLAY_COUNTER",
    "DCGM_FI_DEV_UNCORRECTABLE_REMAPPED_ROWS", "DCGM_FI_DEV_CORRECTABLE_REMAPPED_ROWS",
    "DCGM_FI_DEV_NVLINK_BANDWIDTH_TOTAL",      "DCGM_FI_DEV_ROW_REMAP_FAILURE",
    "DCGM_FI_DEV_VGPU_LICENSE_STATUS"};

constexpr std::string_view kHistograms[] = {"kueue_admission_wait_time_seconds",
                                            "kueue_quota_reserved_wait_time_seconds",
                                            "kueue_admission_checks_wait_time_seconds",
                                            "kueue_admission_attempt_duration_seconds",
                                            "kueue_ready_wait_time_seconds",
                                            "kueue_admitted_until_ready_wait_time_seconds",
                                            "kueue_local_queue_admission_wait_time_seconds",
                                            "kueue_local_queue_quota_reserved_wait_time_seconds",
                                            "scheduler_pod_scheduling_duration_seconds",
                                            "scheduler_scheduling_attempt_duration_seconds",
                                            "apiserver_request_duration_seconds",
                                            "kubelet_pod_start_duration_seconds"};

template <std::size_t N>
bool listed(const std::string_view (&list)[N], std::string_view name) {
  return std::find(std::begin(list), std::end(list), name) != std::end(list);
}

std::string_view current_name(std::string_view name) {
  for (const OldName& one : kOldNames) {
    if (one.old == name) return one.now;
  }
  return name;
}

bool name_char(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
         c == ':';
}

bool digit(char c) { return c >= '0' && c <= '9'; }

std::vector<Word> words_of(std::string_view text) {
  std::vector<Word> out;
  for (std::size_t i = 0; i < text.size();) {
    const char c = text[i];
    std::size_t end = i + 1;
    Word::Kind kind = Word::Kind::kSign;
    if (c == ' ' || c == '\n' || c == '\t' || c == '\r') {
      i = end;
      continue;
    }
    if (c == '#') {
      i = std::min(text.find('\n', i), text.size());
      continue;
    }
    if (c == '"' || c == '\'' || c == '`') {
      kind = Word::Kind::kString;
      while (end < text.size() && text[end] != c) end += text[end] == '\\' && c != '`' ? 2 : 1;
      end = std::min(end + 1, text.size());
    } else if (digit(c) || (c == '.' && i + 1 < text.size() && digit(text[i + 1]))) {
      kind = Word::Kind::kNumber;
      while (end < text.size() && (name_char(text[end]) || text[end] == '.')) ++end;
    } else if (name_char(c)) {
      kind = Word::Kind::kName;
      while (end < text.size() && name_char(text[end])) ++end;
    } else {
      const std::string_view two = text.substr(i, 2);
      if (two == "==" || two == "!=" || two == ">=" || two == "<=" || two == "=~" || two == "!~") {
        ++end;
      }
    }
    out.push_back({kind, i, end, text.substr(i, end - i)});
    i = end;
  }
  return out;
}

bool is_word(std::string_view name) {
  static constexpr std::array<std::string_view, 14> kWords = {
      "by", "without", "on",   "ignoring", "group_left", "group_right", "and",
      "or", "unless",  "bool", "offset",   "inf",        "nan",         "start"};
  return std::find(kWords.begin(), kWords.end(), name) != kWords.end();
}

// Marks the names that are metrics: not functions, not labels.
void mark_metrics(std::vector<Word>& words) {
  int braces = 0;
  for (std::size_t i = 0; i < words.size(); ++i) {
    if (words[i].text == "{" && words[i].kind == Word::Kind::kSign) ++braces;
    if (words[i].text == "}" && words[i].kind == Word::Kind::kSign) --braces;
    if (words[i].kind != Word::Kind::kName || braces > 0) continue;
    const bool call = i + 1 < words.size() && words[i + 1].text == "(";
    if (is_word(words[i].text)) {
      if (!call) continue;
      while (i < words.size() && words[i].text != ")") ++i;  // a list of labels
      continue;
    }
    words[i].metric = !call;
  }
}

class QueryCheck {
 public:
  explicit QueryCheck(std::string_view text) : text_(text), words_(words_of(text)) {
    mark_metrics(words_);
  }

  std::vector<QueryFinding> run() {
    for (std::size_t i = 0; i < words_.size(); ++i) {
      if (words_[i].metric) {
        names(i);
        histogram(i);
        unit(i);
        ratio(i);
      }
      if (words_[i].kind == Word::Kind::kName) {
        gauge_rate(i);
        join(i);
      }
    }
    return std::move(out_);
  }

 private:
  bool at(std::size_t i, std::string_view text) const {
    return i < words_.size() && words_[i].text == text;
  }
  void add(std::string_view rule, const Word& from, const Word& to, std::string what,
           std::string fix, std::vector<TextChange> changes = {}) {
    out_.push_back({rule, from.begin, to.end, std::move(what), std::move(fix), std::move(changes)});
  }

  // After a metric's selector and range.
  std::size_t after(std::size_t i) const {
    ++i;
    for (const auto& [open, close] : {std::pair{"{", "}"}, std::pair{"[", "]"}}) {
      if (!at(i, open)) continue;
      while (i < words_.size() && !at(i, close)) ++i;
      ++i;
    }
    return std::min(i, words_.size());  // what is open to the end ends there
  }

  void names(std::size_t i) {
    const Word& word = words_[i];
    const std::string_view now = current_name(word.text);
    const std::string name(word.text);
    if (now != word.text) {
      add("dcgm-metric-name", word, word, "found " + name + ", want " + std::string(now),
          "write " + std::string(now), {{word.begin, word.end, std::string(now)}});
      return;
    }
    if (word.text == "kube_pod_labels") {
      for (std::size_t k = i; k < words_.size() && k < i + 12; ++k) {
        if (!words_[k].text.starts_with("label_")) continue;
        add("pod-labels-allowlist", word, word,
            "kube_pod_labels has " + std::string(words_[k].text) +
                " only when kube-state-metrics is told to export it",
            "start kube-state-metrics with --metric-labels-allowlist=pods=[...]");
        break;
      }
      return;
    }
    const bool ours = word.text.starts_with("dcgm_") || word.text.starts_with("DCGM_");
    if (!ours || listed(kGauges, word.text) || listed(kCounters, word.text)) return;
    std::string nearest;
    std::size_t least = 4;
    const auto consider = [&](std::string_view known) {
      const std::size_t far = text::edits_between(word.text, known, 3);
      if (far < least) {
        least = far;
        nearest = known;
      }
    };
    for (const std::string_view known : kGauges) consider(known);
    for (const std::string_view known : kCounters) consider(known);
    if (word.text.starts_with("dcgm_")) {
      add("dcgm-metric-name", word, word,
          "found " + name + ", which dcgm-exporter does not have: its names begin with DCGM_FI_",
          "write the name of the default list, for example DCGM_FI_DEV_GPU_UTIL");
    } else if (!nearest.empty()) {
      add("dcgm-metric-name", word, word, "found " + name + ", want " + nearest, "write " + nearest,
          {{word.begin, word.end, nearest}});
    }
  }

  void histogram(std::size_t i) {
    const Word& word = words_[i];
    if (!listed(kHistograms, word.text)) return;
    add("promql-histogram", word, word,
        std::string(word.text) + " is a histogram: there is no series of this name",
        "write histogram_quantile(0.95, sum by (le) (rate(" + std::string(word.text) +
            "_bucket[1h])))");
  }

  // Percent is 0 to 100, a ratio 0 to 1.
  void unit(std::size_t i) {
    const std::string_view name = current_name(words_[i].text);
    const bool percent = name.ends_with("_UTIL") && name.starts_with("DCGM_FI_DEV_");
    const bool ratio_metric = name.starts_with("DCGM_FI_PROF_") &&
                              (name.ends_with("_ACTIVE") || name.ends_with("_OCCUPANCY"));
    if (!percent && !ratio_metric) return;
    std::size_t k = after(i);
    while (at(k, ")")) ++k;
    if (at(k, "by") || at(k, "without")) {
      while (k < words_.size() && !at(k, ")")) ++k;
      ++k;
      while (at(k, ")")) ++k;
    }
    if (!at(k, ">") && !at(k, "<") && !at(k, ">=") && !at(k, "<=")) return;
    ++k;
    if (at(k, "bool")) ++k;
    if (k >= words_.size() || words_[k].kind != Word::Kind::kNumber) return;
    const double limit = std::strtod(std::string(words_[k].text).c_str(), nullptr);
    if (percent && limit > 0 && limit < 1) {
      add("metric-unit", words_[i], words_[k],
          std::string(name) + " is a percentage, 0 to 100, and is compared with " +
              std::string(words_[k].text),
          "compare with a percentage");
    } else if (ratio_metric && limit > 1) {
      add("metric-unit", words_[i], words_[k],
          std::string(name) + " is a ratio, 0 to 1, and is compared with " +
              std::string(words_[k].text),
          "compare with a part of 1");
    }
  }

  // used / free is no share of anything.
  void ratio(std::size_t i) {
    if (current_name(words_[i].text) != "DCGM_FI_DEV_FB_FREE") return;
    std::size_t k = i;
    while (k > 0 && at(k - 1, "(")) --k;
    if (k == 0 || !at(k - 1, "/")) return;
    const std::size_t close = after(i);
    const bool alone = close >= words_.size() || !at(close, "+");
    if (!alone && k != i) return;  // inside a sum
    if (!alone) return;
    std::vector<TextChange> changes;
    const Word& free = words_[i];
    const std::size_t free_end = words_[close - 1].end;
    std::size_t used = k - 1;  // the metric before the "/"
    while (used > 0 && !words_[used].metric) --used;
    const bool direct = k == i && words_[used].metric && after(used) == k - 1 &&
                        current_name(words_[used].text) == "DCGM_FI_DEV_FB_USED";
    if (direct) {
      const std::string left(
          text_.substr(words_[used].begin, words_[k - 2].end - words_[used].begin));
      changes.push_back({free.begin, free.begin, "(" + left + " + "});
      changes.push_back({free_end, free_end, ")"});
    }
    add("gpu-memory-ratio", free, words_[close - 1],
        "found memory divided by free memory, which is no share: at half full it is 1",
        "divide by used + free: DCGM_FI_DEV_FB_USED / (DCGM_FI_DEV_FB_USED + DCGM_FI_DEV_FB_FREE)",
        std::move(changes));
  }

  void gauge_rate(std::size_t i) {
    const std::string_view call = words_[i].text;
    if ((call != "rate" && call != "irate" && call != "increase") || !at(i + 1, "(")) return;
    if (i + 2 >= words_.size() || !words_[i + 2].metric) return;
    const std::string name(current_name(words_[i + 2].text));
    if (name == "DCGM_FI_DEV_NVLINK_BANDWIDTH_TOTAL") {
      const std::size_t k = after(i + 2) + 1;
      if (at(k, "==") && at(k + 1, "0")) {
        add("nvlink-stall", words_[i], words_[k + 1],
            "no NVLink traffic does not mean that training hangs: one GPU, PCIe and other nodes "
            "make none",
            "look at the steps of the job, or at DCGM_FI_PROF_PIPE_TENSOR_ACTIVE");
      }
    }
    if (!listed(kGauges, name)) return;
    const std::string real = call == "increase" ? "delta" : "deriv";
    add("rate-of-gauge", words_[i], words_[i + 2],
        "found " + std::string(call) + " of " + name + ", which is a gauge",
        "write " + real + "(...)", {{words_[i].begin, words_[i].end, real}});
  }

  void join(std::size_t i) {
    if (words_[i].text != "on" || !at(i + 1, "(")) return;
    bool pod = false, space = false;
    std::size_t k = i + 2;
    for (; k < words_.size() && !at(k, ")"); ++k) {
      pod = pod || at(k, "pod");
      space = space || at(k, "namespace");
    }
    if (!pod || space) return;
    add("promql-join", words_[i], words_[std::min(k, words_.size() - 1)],
        "the join is by pod alone: pods of the same name in two namespaces are mixed up",
        "write on (namespace, pod)");
  }

  std::string_view text_;
  std::vector<Word> words_;
  std::vector<QueryFinding> out_;
};

}  // namespace

std::vector<QueryFinding> check_query(std::string_view query) {
  if (query.size() > (1u << 20)) return {};
  return QueryCheck(query).run();
}

std::optional<std::string> adapter_query_trouble(std::string_view query) {
  const auto has = [&](std::string_view what) {
    return query.find(what) != std::string_view::npos;
  };
  if (query.empty() || (has("<<") && has(".Series") && has(".LabelMatchers"))) return std::nullopt;
  if (has("<<") && has(".LabelMatchers")) return std::nullopt;
  return "the query does not use <<.Series>>, <<.LabelMatchers>> and <<.GroupBy>>: every pod gets "
         "the same number";
}

void check_metrics(const Object& object, Reporter& out) {
  std::vector<Place> queries;
  if (object.is("monitoring.coreos.com", "PrometheusRule")) {
    const Place labels = object.root()["metadata"]["labels"];
    if (labels.size() == 0) {
      out.add("prometheus-rule-label", labels,
              "the rule has no labels: a Prometheus takes it only when its ruleSelector is empty",
              "give it the labels of ruleSelector (kubectl get prometheus -A -o yaml), often "
              "release: NAME");
    }
    for (const Place& group : object.root()["spec"]["groups"].items()) {
      for (const Place& rule : group["rules"].items()) queries.push_back(rule["expr"]);
    }
  }
  if (object.kind == "ScaledObject" || object.kind == "ScaledJob") {
    for (const Place& trigger : object.root()["spec"]["triggers"].items()) {
      if (trigger["type"].is("prometheus")) queries.push_back(trigger["metadata"]["query"]);
    }
  }
  for (const Place& rule : object.root()["rules"]["custom"].items()) {
    if (!object.kind.empty()) break;
    queries.push_back(rule["seriesQuery"]);
    const Place query = rule["metricsQuery"];
    if (const auto trouble = adapter_query_trouble(query.text())) {
      out.add("adapter-query", query, *trouble,
              "write avg(<<.Series>>{<<.LabelMatchers>>}) by (<<.GroupBy>>)",
              one_change(set_text(query.path(),
                                  "avg(<<.Series>>{<<.LabelMatchers>>}) by (<<.GroupBy>>)")));
    }
  }
  for (const Place& query : queries) {
    if (!query.value().is_string()) continue;
    for (QueryFinding& found : check_query(query.text())) {
      std::optional<Fix> edit;
      if (!found.changes.empty()) {
        text::YamlChange change{.kind = text::YamlChange::Kind::kReplace, .at = query.path()};
        for (TextChange& one : found.changes) {
          change.parts.push_back({one.begin, one.end, std::move(one.text)});
        }
        edit = one_change(std::move(change));
      }
      out.add(found.rule, query, std::move(found.what), std::move(found.fix), std::move(edit));
    }
  }
}

void check_queries(const std::string& file, std::string_view bytes, std::vector<Finding>& out) {
  for (QueryFinding& found : check_query(bytes)) {
    Finding made = text_finding(file, bytes, found.begin, found.rule, std::move(found.what),
                                std::move(found.fix));
    if (!found.changes.empty()) {
      made.edit = Fix{};
      made.edit->text = std::move(found.changes);
    }
    out.push_back(std::move(made));
  }
}

}  // namespace berth::lint
