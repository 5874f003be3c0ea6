#include "app/views/version_command.h"

#include <ostream>

#include "app/next_step.h"
#include "app/views/cluster_lister.h"
#include "app/views/sheet.h"
#include "edge/kube/config.h"
#include "text/escape.h"
#include "text/json_writer.h"

namespace berth::app {

namespace {

struct Versions {
  std::string client = BERTH_VERSION;
  std::string server, where, trouble;
};

std::string versions_json(const Versions& versions) {
  text::JsonWriter out({.indent = 2});
  out.object([&] {
    out.field("version", "berth.dev/version/v1");
    out.field("client", versions.client);
    out.key("server");
    if (versions.server.empty()) {
      out.null();
    } else {
      out.value(versions.server);
    }
    out.field("address", versions.where);
    out.field("trouble", versions.trouble);
  });
  return std::move(out).take();
}

}  // namespace

int version_command(const VersionArguments& arguments, Terminal& terminal) {
  if (arguments.output != "table" && arguments.output != "json" && arguments.output != "yaml") {
    terminal.err << "berth: --output: found \"" << text::terminal_safe(arguments.output)
                 << "\", want table, json or yaml\n";
    return 2;
  }
  Versions versions;
  int code = 0;
  if (!arguments.client) {
    const Result<kube::Config> config = kube::find_config(arguments.view, terminal.environment);
    const bool named = !arguments.view.kubeconfig.empty() || !arguments.view.context.empty();
    if (config.ok()) {
      versions.where = config->server;
      const Result<kube::ServerVersion> server = version_of_server(*config, terminal);
      if (server.ok()) {
        versions.server = server->text;
      } else {
        versions.trouble = no_answer(server.error(), InputKind::kCluster).to_string();
        code = 1;
      }
    } else {
      versions.trouble = no_config(config.error(), InputKind::kCluster).to_string();
      code = named ? 1 : 0;
    }
  }
  if (arguments.output == "json") {
    terminal.out << versions_json(versions) << '\n';
  } else if (arguments.output == "yaml") {
    terminal.out << yaml_of(versions_json(versions));
  } else {
    terminal.out << "berth       " << versions.client << '\n';
    if (!versions.server.empty()) {
      terminal.out << "kubernetes  " << text::terminal_safe(versions.server) << " at "
                   << text::terminal_safe(versions.where) << '\n';
    }
  }
  if (!versions.trouble.empty()) {
    terminal.err << "berth: no server: " << text::terminal_safe(versions.trouble) << '\n';
  }
  return code;
}

}  // namespace berth::app
