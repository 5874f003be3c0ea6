#include <algorithm>
#include <cctype>

#include "people/lint/checks.h"
#include "people/lint/python_names.h"

namespace berth::lint {

namespace {

// The text with comments and the insides of strings blanked out, so that names in them do not
// count.
std::string code_of(std::string_view text) {
  std::string out(text);
  for (std::size_t i = 0; i < text.size();) {
    if (text[i] == '#') {
      while (i < text.size() && text[i] != '\n') out[i++] = ' ';
    } else if (text[i] == '"' || text[i] == '\'') {
      const std::string_view three = text.substr(i, 3);
      const bool triple = three == "\"\"\"" || three == "'''";
      const std::string_view close = text.substr(i, triple ? 3 : 1);
      i += close.size();
      while (i < text.size() && text.substr(i, close.size()) != close) {
        if (!triple && text[i] == '\n') break;
        const bool escaped = text[i] == '\\';
        if (text[i] != '\n') out[i] = ' ';
        if (escaped && i + 1 < text.size() && text[i + 1] != '\n') out[i + 1] = ' ';
        i += escaped ? 2 : 1;
      }
      i = std::min(i + close.size(), text.size());
    } else {
      ++i;
    }
  }
  return out;
}

bool has(std::string_view text, std::string_view what) {
  return text.find(what) != std::string_view::npos;
}

std::string_view line_at(std::string_view text, std::size_t at) {
  const std::size_t start = text.rfind('\n', at);
  const std::size_t begin = start == std::string_view::npos ? 0 : start + 1;
  return text.substr(begin, std::min(text.find('\n', at), text.size()) - begin);
}

std::size_t indent_of(std::string_view line) {
  return std::min(line.find_first_not_of(" \t"), line.size());
}

// Bounds on what a file can make this look at.
constexpr std::size_t kMostHits = 1'000, kMostNames = 200, kMostArguments = 65'536;
constexpr int kMostLinesUp = 2'000;

class PythonCheck {
 public:
  PythonCheck(const std::string& file, std::string_view bytes, std::vector<Finding>& out)
      : file_(file), bytes_(bytes), code_(code_of(bytes)), out_(out) {}

  void run() {
    if (in_code("import kfp") || in_code("from kfp")) check_pipeline();
    check_checkpoint();
    check_training();
    check_listing();
    // Names that are made while the program runs cannot be told.
    if (in_code("globals()") || in_code("_convert_(") || in_code("exec(")) return;
    std::size_t said = 0;
    for (const PythonName& name : unbound_names(code_)) {
      if (++said > kMostNames) break;
      add("python-undefined", name.at, "nothing here defines or imports " + name.name,
          "import it, define it, or pass it in");
    }
  }

 private:
  bool in_code(std::string_view what) const { return has(code_, what); }

  template <typename Then>
  void each(std::string_view what, const Then& then) const {
    std::size_t hits = 0;
    for (std::size_t at = code_.find(what); at != std::string::npos && hits < kMostHits;
         at = code_.find(what, at + 1), ++hits) {
      then(at);
    }
  }

  void add(std::string_view rule, std::size_t at, std::string what, std::string fix) {
    out_.push_back(text_finding(file_, bytes_, at, rule, std::move(what), std::move(fix)));
  }

  std::string_view word_before(std::size_t at) const {
    std::size_t from = at;
    while (from > 0 && (std::isalnum(static_cast<unsigned char>(code_[from - 1])) != 0 ||
                        code_[from - 1] == '_')) {
      --from;
    }
    return std::string_view(code_).substr(from, at - from);
  }

  // The arguments of a call whose "(" is the last byte before from, as they are written.
  std::string_view arguments(std::size_t from) const {
    int depth = 1;
    std::size_t end = from;
    for (; end < code_.size() && end - from < kMostArguments && depth > 0; ++end) {
      if (code_[end] == '(') ++depth;
      if (code_[end] == ')') --depth;
    }
    return bytes_.substr(from, end - from);
  }

  void check_pipeline() {
    each(".set_gpu_limit(", [&](std::size_t at) {
      add("kfp-gpu-limit", at, "found set_gpu_limit, which is deprecated and sets no GPU type",
          "write set_accelerator_type('nvidia.com/gpu') and set_accelerator_limit(n)");
    });
    each(".add_toleration(", [&](std::size_t at) {
      if (word_before(at) == "kubernetes") return;
      add("kfp-toleration", at, "found add_toleration of a task, which has none",
          "write kfp.kubernetes.add_toleration(task, ...)");
    });
    each("dsl.Condition(", [&](std::size_t at) {
      add("kfp-condition", at, "found dsl.Condition, which is deprecated", "write dsl.If");
    });
    constexpr std::string_view kCompile = "compile(";
    each(kCompile, [&](std::size_t at) { check_compiled(at, at + kCompile.size()); });
  }

  // The file that a pipeline is compiled into, and somebody who gives it to kubectl.
  void check_compiled(std::size_t at, std::size_t from) {
    const std::string_view given = arguments(from);
    if (has(given, "kubernetes_manifest_format=True")) return;
    const std::size_t ending = std::min(given.find(".yaml"), given.find(".yml"));
    if (ending == std::string_view::npos) return;
    const std::size_t open = given.find_last_of("'\"/", ending);
    const std::size_t close = given.find_first_of("'\"", ending);
    if (open == std::string_view::npos || close == std::string_view::npos) return;
    const std::string name(given.substr(open + 1, close - open - 1));
    for (std::size_t use = bytes_.find("kubectl"); use != std::string_view::npos;
         use = bytes_.find("kubectl", use + 1)) {
      const std::string_view line = line_at(bytes_, use);
      if (!has(line, name) || (!has(line, "apply") && !has(line, "create"))) continue;
      add("kfp-kubectl-apply", at,
          "kubectl is to apply " + name + ", which is no Kubernetes object as it is compiled",
          "compile with kubernetes_manifest_format=True, or submit it with kfp.Client");
      return;
    }
  }

  void check_checkpoint() {
    each("torch.save(", [&](std::size_t at) {
      if (!has(arguments(at + 11), "s3://")) return;
      add("torch-save-s3", at, "found torch.save to s3://, which it cannot write",
          "open the object with fsspec, or use torch.distributed.checkpoint");
    });
    const bool sharded = in_code("FSDP") || in_code("FullyShardedDataParallel") ||
                         in_code("fully_shard") || in_code("torch.distributed.checkpoint");
    if (!sharded) return;
    each(".state_dict()", [&](std::size_t at) {
      if (!under_rank_zero(at)) return;
      add("fsdp-state-dict", at, "rank 0 alone asks for state_dict(), which takes all ranks",
          "call it on every rank, or use torch.distributed.checkpoint.state_dict and save on all");
    });
  }

  // Inside an if of one rank: a line above, further left, asks for it.
  bool under_rank_zero(std::size_t at) const {
    std::size_t indent = indent_of(line_at(code_, at));
    std::size_t start = code_.rfind('\n', at);
    for (int up = 0; start != std::string::npos && start > 0 && indent > 0 && up < kMostLinesUp;
         ++up) {
      const std::string_view line = line_at(code_, start - 1);
      start = code_.rfind('\n', start - 1);
      if (line.find_first_not_of(" \t\r") == std::string_view::npos) continue;
      if (indent_of(line) >= indent) continue;
      indent = indent_of(line);
      const std::string_view words = line.substr(indent);
      if (!words.starts_with("if ") && !words.starts_with("elif ")) continue;
      if (has(words, "rank") && (has(words, "== 0") || has(words, "==0") || has(words, "not "))) {
        return true;
      }
    }
    return false;
  }

  // Without a default: with one the script runs without torchrun as well.
  void read_local_rank(std::string_view way) {
    each(way, [&](std::size_t at) {
      const std::size_t from = at + way.size();
      const std::string_view key = bytes_.substr(from, 12);
      if (key != "\"LOCAL_RANK\"" && key != "'LOCAL_RANK'") return;
      std::size_t after = code_.find_first_not_of(' ', from + key.size());
      if (after == std::string::npos || code_[after] == ',') return;
      after = code_.find_first_not_of(' ', after + 1);
      const bool set = way.ends_with('[') && after != std::string::npos && code_[after] == '=' &&
                       code_[after + 1] != '=';
      if (set) return;
      add("torch-local-rank", at, "LOCAL_RANK is read, which only torchrun and its like set",
          "start the script with torchrun; operators of jobs set RANK and WORLD_SIZE of nodes");
    });
  }

  void check_training() {
    for (const std::string_view way : {"environ[", "environ.get(", "getenv("}) read_local_rank(way);
    const std::size_t backward = code_.find(".backward()");
    if (backward == std::string::npos || in_code("zero_grad") || in_code(".grad = None")) return;
    bool said = false;
    each(".step()", [&](std::size_t at) {
      if (said || !has(word_before(at), "opt")) return;
      said = true;
      add("torch-zero-grad", at, "gradients are never set to zero: they add up over all steps",
          "call zero_grad() of the optimizer in every step");
    });
  }

  void check_listing() {
    if (in_code("get_paginator") || has(bytes_, "ContinuationToken") ||
        has(bytes_, "IsTruncated") || has(bytes_, "NextMarker")) {
      return;
    }
    for (const std::string_view call : {".list_objects_v2(", ".list_objects("}) {
      each(call, [&](std::size_t at) {
        if (has(arguments(at + call.size()), "MaxKeys")) return;
        add("s3-pagination", at, "the list holds the first 1000 objects and nobody asks for more",
            "use get_paginator('list_objects_v2')");
      });
    }
  }

  const std::string& file_;
  std::string_view bytes_;
  std::string code_;
  std::vector<Finding>& out_;
};

}  // namespace

void check_python(const std::string& file, std::string_view bytes, std::vector<Finding>& out) {
  PythonCheck(file, bytes, out).run();
}

}  // namespace berth::lint
