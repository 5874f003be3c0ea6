// Names for completion, from the cluster that the words are about.
#include <algorithm>
#include <optional>

#include "app/cli/complete.h"
#include "base/run_loop.h"
#include "edge/kube/client.h"
#include "edge/kube/curl_transport.h"
#include "kinds/readers.h"
#include "text/path.h"

namespace berth::app {

namespace {

constexpr int kMostNames = 500;

std::optional<kube::Resource> completed_kind(std::string_view what) {
  for (const kinds::KindRow& row : kinds::kind_table()) {
    if (row.plural == what && row.is_asked(kinds::asked::kNamed)) return kube::resource_of(row);
  }
  return std::nullopt;
}

}  // namespace

CompletionNames names_of_cluster(Terminal& terminal) {
  return [&terminal](const CompletionAsk& ask) -> std::vector<std::string> {
    const kube::ConfigNames known = kube::config_names(ask.cluster, terminal.environment);
    if (ask.what == "contexts") return known.contexts;
    if (ask.what == "clusters") return known.clusters;
    if (ask.what == "users") return known.users;
    const std::optional<kube::Resource> resource = completed_kind(ask.what);
    const Result<kube::Config> config = kube::find_config(ask.cluster, terminal.environment);
    if (!resource || !config.ok()) return {};
    RunLoop loop(terminal.monotonic, terminal.wall);
    kube::CurlTransport transport(loop, *config, terminal.environment);
    kube::Client client(transport, loop, Random(1),
                        {.user_agent = "berth-cli", .max_tries = 1, .timeout_ns = kCompletionNs});
    kube::ListOptions options;
    if (resource->namespaced) options.ns = ask.ns.empty() ? config->ns : ask.ns;
    options.limit = kMostNames;
    std::vector<std::string> out;
    client.list(*resource, options, [&](const kube::Answer& answer) {
      const text::Value* items = answer.ok() ? answer.body.root().find("items") : nullptr;
      if (items != nullptr) {
        for (const text::Value& item : items->items()) {
          const text::Value* name = find(item, "metadata.name");
          if (name != nullptr) out.emplace_back(name->string());
        }
      }
      loop.stop();
    });
    loop.after(kCompletionNs, [&loop] { loop.stop(); });  // whatever the server does
    loop.run();
    std::sort(out.begin(), out.end());
    return out;
  };
}

}  // namespace berth::app
