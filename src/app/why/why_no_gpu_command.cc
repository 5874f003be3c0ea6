#include "app/why/why_no_gpu_command.h"

#include <ostream>

#include "app/files.h"
#include "app/next_step.h"
#include "app/views/sheet.h"
#include "base/run_loop.h"
#include "edge/kube/client.h"
#include "edge/kube/config.h"
#include "edge/kube/curl_transport.h"
#include "people/why/no_gpu.h"
#include "people/why/no_gpu_pod.h"
#include "text/escape.h"
#include "text/json.h"
#include "text/nearest.h"
#include "text/path.h"

namespace berth::app {

namespace {

using Documents = std::vector<std::shared_ptr<const text::Document>>;

// What the checks look at, and who owns it.
struct NoGpuSeen {
  people::NoGpuEvidence evidence;
  Documents documents = {};
  std::shared_ptr<ClusterView> view = {};
};

const kube::Resource& runtime_classes() {
  static const kube::Resource resource = {"node.k8s.io", "v1", "runtimeclasses", "RuntimeClass",
                                          false};
  return resource;
}

constexpr int kMostPodNames = 500;

// Names: of pods in its namespace. Those of a Job of that name first, else the nearest.
Error no_such_pod(const kube::Key& pod, const std::string& where,
                  const std::vector<std::string>& names) {
  std::string text = "there is no pod " + text::terminal_safe(pod.to_string()) + where;
  std::string made;
  std::size_t count = 0;
  constexpr std::size_t kShown = 3;
  for (const std::string& name : names) {
    if (!name.starts_with(pod.name + '-') || ++count > kShown) continue;
    made += (made.empty() ? "" : ", ") + text::terminal_safe(name);
  }
  const std::string near = text::nearest(pod.name, names);
  if (!made.empty()) {
    text += "; pods whose names begin so: " + made;
    if (count > kShown) text += ", +" + std::to_string(count - kShown) + " more";
  } else if (!near.empty()) {
    text += "; did you mean " + text::terminal_safe(near) + '?';
  }
  return {Code::kNotFound, std::move(text)};
}

// One GET after the other.
class NoGpuFetch {
 public:
  NoGpuFetch(const kube::Config& config, kube::Key pod, Terminal& terminal)
      : pod_(std::move(pod)),
        server_(config.server),
        loop_(terminal.monotonic, terminal.wall),
        transport_(loop_, config, terminal.environment),
        client_(transport_, loop_, Random(static_cast<std::uint64_t>(terminal.wall.now_ns())),
                {.user_agent = "berth-cli", .max_tries = config.request_timeout_ns > 0 ? 1 : 3}) {}

  Result<NoGpuSeen> run() {
    client_.get(kube::resources::pods(), pod_, [this](kube::Answer answer) {
      if (!answer.ok()) {
        failure_ = pod_error(answer);
        return answer.not_found() ? ask_names() : loop_.stop();
      }
      const text::Value& pod = keep(std::move(answer));
      seen_.evidence.pod = &pod;
      node_ = text_at(pod, "spec.nodeName");
      class_ = text_at(pod, "spec.runtimeClassName");
      ask_node();
    });
    loop_.run();
    if (failure_) return std::move(*failure_);
    return std::move(seen_);
  }

 private:
  const text::Value& keep(kube::Answer answer) {
    seen_.documents.push_back(std::make_shared<const text::Document>(std::move(answer.body)));
    return seen_.documents.back()->root();
  }

  Error pod_error(const kube::Answer& answer) const {
    const std::string name = text::terminal_safe(pod_.to_string());
    if (answer.not_found()) return no_such_pod(pod_, "", {});
    if (answer.status == 403) {
      return {Code::kInvalid, "you may not get pod " + name +
                                  "; check with: kubectl auth can-i get pods -n " +
                                  text::terminal_safe(pod_.ns)};
    }
    return no_answer(answer.error().context(server_), InputKind::kClusterOrFiles);
  }

  // Of a pod that is not there: which one was meant.
  void ask_names() {
    kube::ListOptions options;
    options.ns = pod_.ns;
    options.limit = kMostPodNames;
    client_.list(kube::resources::pods(), options, [this](const kube::Answer& answer) {
      const text::Value* items = answer.ok() ? answer.body.root().find("items") : nullptr;
      std::vector<std::string> names;
      if (items != nullptr) {
        for (const text::Value& item : items->items()) {
          names.push_back(std::string(text_at(item, "metadata.name")));
        }
      }
      failure_ = no_such_pod(pod_, "", names);
      loop_.stop();
    });
  }

  void ask_node() {
    if (node_.empty()) return ask_class();
    client_.get(kube::resources::nodes(), {"", node_}, [this](kube::Answer answer) {
      seen_.evidence.node_unseen = !answer.ok() && !answer.not_found();
      if (answer.ok()) seen_.evidence.node = &keep(std::move(answer));
      client_.get(kube::resources::gpu_nodes(), {"", node_}, [this](kube::Answer got) {
        seen_.evidence.gpu_node_unseen = !got.ok() && !got.not_found();
        if (got.ok()) seen_.evidence.gpu_node = &keep(std::move(got));
        ask_class();
      });
    });
  }

  void ask_class() {
    if (class_.empty()) return loop_.stop();
    client_.get(runtime_classes(), {"", class_}, [this](kube::Answer answer) {
      seen_.evidence.runtime_classes_seen = answer.ok() || answer.not_found();
      if (answer.ok()) seen_.evidence.runtime_classes = {&keep(std::move(answer))};
      loop_.stop();
    });
  }

  kube::Key pod_;
  std::string server_, node_, class_;
  RunLoop loop_;
  kube::CurlTransport transport_;
  kube::Client client_;
  NoGpuSeen seen_;
  std::optional<Error> failure_;
};

Result<NoGpuSeen> from_files(const ViewOptions& options, const kube::Key& pod, Terminal& terminal) {
  Result<ClusterView> looked = look(options, terminal);
  if (!looked.ok()) return looked.error();
  NoGpuSeen out;
  out.view = std::make_shared<ClusterView>(std::move(*looked));
  const auto find = [&view = *out.view](const char* kind, const std::string& ns,
                                        const std::string& name) -> const text::Value* {
    const ObjectFacts* facts = name.empty() ? nullptr : view.find(kind, ns, name);
    return facts == nullptr ? nullptr : facts->value;
  };
  out.evidence.pod = find("Pod", pod.ns, pod.name);
  if (out.evidence.pod == nullptr) {
    std::vector<std::string> names;
    for (const ObjectFacts& facts : out.view->of_kind("Pod")) {
      if (facts.ns == pod.ns) names.push_back(facts.name);
    }
    return no_such_pod(pod, " in " + out.view->source, names);
  }
  const std::string node(text_at(out.evidence.pod, "spec.nodeName"));
  out.evidence.node = find("Node", "", node);
  out.evidence.gpu_node = find("GpuNode", "", node);
  for (const ObjectFacts& facts : out.view->of_kind("RuntimeClass")) {
    out.evidence.runtime_classes.push_back(facts.value);
  }
  out.evidence.runtime_classes_seen = !out.evidence.runtime_classes.empty();
  return out;
}

// The status that the agent of this machine writes.
void add_agent(const std::string& folder, NoGpuSeen& seen) {
  const Result<std::string> text = read_file(folder + "/status.json");
  Result<text::Document> read =
      text.ok() ? text::parse_json(*text) : Result<text::Document>(text.error());
  if (!read.ok()) {
    seen.evidence.agent_error = read.error().to_string();
    return;
  }
  seen.documents.push_back(std::make_shared<const text::Document>(std::move(*read)));
  seen.evidence.agent = &seen.documents.back()->root();
}

Result<NoGpuSeen> gather(const NoGpuArguments& args, kube::Key pod, Terminal& terminal) {
  if (!args.view.files.empty()) {
    if (pod.ns.empty()) pod.ns = args.view.ns.empty() ? "default" : args.view.ns;
    return from_files(args.view, pod, terminal);
  }
  Result<kube::Config> config = kube::find_config(args.view, terminal.environment);
  if (!config.ok()) {
    return no_config(config.error(), InputKind::kClusterOrFiles);
  }
  if (pod.ns.empty()) pod.ns = args.view.ns.empty() ? config->ns : args.view.ns;
  return NoGpuFetch(*config, std::move(pod), terminal).run();
}

}  // namespace

int why_no_gpu_command(const NoGpuArguments& args, Terminal& terminal) {
  const auto wrong = [&terminal](const std::string& what) {
    terminal.err << "berth: why-no-gpu: " << what << '\n';
    return kExitUsage;
  };
  if (args.output != "table" && args.output != "json" && args.output != "yaml") {
    return wrong("--output: found \"" + text::terminal_safe(args.output) +
                 "\", want table, json or yaml");
  }
  std::string word = args.pod.starts_with("pod/") ? args.pod.substr(4) : args.pod;
  const std::size_t slash = word.find('/');
  kube::Key pod{slash == std::string::npos ? "" : word.substr(0, slash),
                slash == std::string::npos ? word : word.substr(slash + 1)};
  if (pod.name.empty() || pod.name.find('/') != std::string::npos || slash == 0) {
    return wrong("found \"" + text::terminal_safe(args.pod) + "\", want NAME or NAMESPACE/NAME");
  }
  Result<NoGpuSeen> seen = gather(args, std::move(pod), terminal);
  if (!seen.ok()) {
    terminal.err << "berth: " << text::terminal_safe(seen.error().to_string()) << '\n';
    return 1;
  }
  if (args.node_local) {
    add_agent(args.state_dir, *seen);
    if (!seen->evidence.agent_error.empty()) {
      terminal.err << "berth: --node-local: " << text::terminal_safe(seen->evidence.agent_error)
                   << '\n';
    }
  }
  const people::NoGpuAnswer answer = people::why_no_gpu(seen->evidence);
  const std::string json = args.output == "table" ? "" : people::no_gpu_json(answer);
  terminal.out << (args.output == "table"  ? people::no_gpu_table(answer)
                   : args.output == "yaml" ? yaml_of(json)
                                           : json);
  return answer.exit_code;
}

}  // namespace berth::app
