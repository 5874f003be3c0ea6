#include <fmt/format.h>

#include "people/view/words.h"
#include "people/view/wrap.h"
#include "people/why/no_gpu.h"
#include "text/escape.h"
#include "text/json_writer.h"

namespace berth::people {

namespace {

constexpr const char* kNoGpuVersion = "berth.dev/why-no-gpu/v1";
constexpr std::size_t kCheckHang = 24;  // "  failed  runtime-class "

}  // namespace

std::string no_gpu_json(const NoGpuAnswer& answer) {
  text::JsonWriter out({.indent = 2});
  out.object([&] {
    out.field("version", kNoGpuVersion);
    out.object("subject", [&] {
      out.field("kind", "Pod");
      out.field("namespace", answer.ns);
      out.field("name", answer.name);
    });
    out.key("node");
    if (answer.node.empty()) {
      out.null();
    } else {
      out.value(answer.node);
    }
    out.field("line", answer.line);
    out.array("checks", [&] {
      for (const GpuCheck& check : answer.checks) {
        out.object([&] {
          out.field("check", check.id);
          out.field("state", name(check.state));
          out.field("owner", name(check.owner));
          out.field("saw", check.saw);
          out.field("fix", check.fix);
          out.field("docs", "docs/why-no-gpu.md#" + check.id);
        });
      }
    });
    out.field("exitCode", answer.exit_code);
  });
  return std::move(out).take() + '\n';
}

std::string no_gpu_table(const NoGpuAnswer& answer) {
  std::string out;
  wrap("", 2, text::terminal_safe(answer.line), out);
  out += '\n';
  for (const GpuCheck& check : answer.checks) {
    wrap(fmt::format("  {:<8}{:<14}", name(check.state), check.id), kCheckHang,
         text::terminal_safe(check.saw), out);
    const bool says = check.state != CheckState::kOk && !check.fix.empty();
    if (says) {
      wrap(std::string(kCheckHang, ' ') + "-> ", kCheckHang + 3, text::terminal_safe(check.fix),
           out);
    }
  }
  return out;
}

}  // namespace berth::people
