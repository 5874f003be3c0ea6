#include <algorithm>
#include <cctype>

#include "lint/checks.h"

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
        if (text[i] != '\n') out[i] = ' ';
        i += text[i] == '\\' ? 2 : 1;
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

}  // namespace

void check_python(const std::string& file, std::string_view bytes, std::vector<Finding>& out) {
  const std::string code = code_of(bytes);
  const auto each = [&](std::string_view what, const auto& then) {
    for (std::size_t at = code.find(what); at != std::string::npos; at = code.find(what, at + 1)) {
      then(at);
    }
  };
  const bool pipelines = has(code, "import kfp") || has(code, "from kfp");
  if (pipelines) {
    each(".set_gpu_limit(", [&](std::size_t at) {
      out.push_back(text_finding(file, bytes, at, "kfp-gpu-limit",
                                 "found set_gpu_limit, which is deprecated and sets no GPU type",
                                 "write set_accelerator_type('nvidia.com/gpu') and "
                                 "set_accelerator_limit(n)"));
    });
    each(".add_toleration(", [&](std::size_t at) {
      std::size_t from = at;
      while (from > 0 && (std::isalnum(static_cast<unsigned char>(code[from - 1])) != 0 ||
                          code[from - 1] == '_')) {
        --from;
      }
      if (code.substr(from, at - from) == "kubernetes") return;
      out.push_back(text_finding(file, bytes, at, "kfp-toleration",
                                 "found add_toleration of a task, which has none",
                                 "write kfp.kubernetes.add_toleration(task, ...)"));
    });
    each("dsl.Condition(", [&](std::size_t at) {
      out.push_back(text_finding(file, bytes, at, "kfp-condition",
                                 "found dsl.Condition, which is deprecated", "write dsl.If"));
    });
  }
  each("torch.save(", [&](std::size_t at) {
    const std::size_t end = std::min(code.find('\n', at), code.size());
    if (!has(bytes.substr(at, end - at), "s3://")) return;
    out.push_back(text_finding(file, bytes, at, "torch-save-s3",
                               "found torch.save to s3://, which it cannot write",
                               "open the object with fsspec, or use torch.distributed.checkpoint"));
  });
}

}  // namespace berth::lint
