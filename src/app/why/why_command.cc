#include "app/why/why_command.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <ostream>
#include <set>

#include "app/busy.h"
#include "app/shell_word.h"
#include "app/views/sheet.h"
#include "app/why/why_remote.h"
#include "edge/kube/config.h"
#include "kinds/kind_table.h"
#include "people/why/unit.h"
#include "text/escape.h"
#include "text/json.h"
#include "text/rfc3339.h"

namespace berth::app {

namespace {

constexpr int kExitNotThere = 1;

std::set<std::string> groups_with(std::string_view kind) {  // kind: in small letters
  const auto same = [](char a, char b) { return (a >= 'A' && a <= 'Z' ? a - 'A' + 'a' : a) == b; };
  std::set<std::string> out;
  for (const kinds::KindRow& row : kinds::kind_table()) {
    if (std::equal(row.kind.begin(), row.kind.end(), kind.begin(), kind.end(), same)) {
      out.emplace(row.group);
    }
  }
  return out;
}

// The words people and kubectl use.
Result<std::string> kind_by_word(const std::string& word) {
  // "job.batch", "jobs.v1.batch": a kind with its group, as kubectl prints and takes it.
  if (const std::size_t dot = word.find('.'); dot != std::string::npos) {
    BERTH_TRY(std::string kind, kind_by_word(word.substr(0, dot)));
    const std::size_t next = word.find('.', dot + 1);
    const bool version = next != std::string::npos && word[dot + 1] == 'v' &&
                         word[dot + 2] >= '1' && word[dot + 2] <= '9';
    const std::string group = word.substr((version ? next : dot) + 1);
    const std::set<std::string> groups = groups_with(kind);
    if (groups.contains(group)) return kind;
    return invalid(fmt::format("found group \"{}\", want one that has a {}: {}",
                               text::terminal_safe(group), kind, fmt::join(groups, ", ")));
  }
  constexpr std::pair<std::string_view, std::string_view> kWords[] = {
      {"pod", "pod"},
      {"pods", "pod"},
      {"po", "pod"},
      {"job", "job"},
      {"jobs", "job"},
      {"workload", "workload"},
      {"workloads", "workload"},
      {"wl", "workload"},
      {"podgroup", "podgroup"},
      {"podgroups", "podgroup"},
      {"pg", "podgroup"},
      {"deploy", "deployment"},
      {"rs", "replicaset"},
      {"sts", "statefulset"},
      {"cj", "cronjob"},
  };
  for (const auto& [written, kind] : kWords) {
    if (word == written) return std::string(kind);
  }
  for (const std::string& kind : kinds::maker_words()) {
    if (word == kind || word == kind + 's') return kind;
  }
  return invalid("found kind \"" + text::terminal_safe(word) +
                 "\", want pod, job, workload, podgroup, or what makes pods: " +
                 fmt::format("{}", fmt::join(kinds::maker_words(), ", ")));
}

// "pod x", "pod/x", "x", "ns/x": a name may carry its namespace.
Result<people::Subject> subject_of(const WhyArguments& args) {
  people::Subject out;
  std::vector<std::string> words = args.subject;
  if (words.size() == 1) {
    const std::size_t slash = words[0].find('/');
    // A namespace has no dot.
    const std::string before = words[0].substr(0, slash);
    const bool kind = kind_by_word(before).ok() || before.find('.') != std::string::npos;
    if (slash != std::string::npos && kind) {
      words = {words[0].substr(0, slash), words[0].substr(slash + 1)};
    }
  }
  if (words.empty() || words.size() > 2) {
    return invalid(fmt::format("found {} words, want KIND NAME or NAME", words.size()));
  }
  if (words.size() == 2) {
    BERTH_TRY(out.kind, kind_by_word(words[0]));
  }
  const std::string& name = words.back();
  const std::size_t slash = name.find('/');
  out.name = slash == std::string::npos ? name : name.substr(slash + 1);
  if (slash != std::string::npos) out.ns = name.substr(0, slash);
  if (out.ns.empty()) out.ns = args.view.ns;
  if (out.name.empty() || out.name.find('/') != std::string::npos) {
    return invalid("found name \"" + text::terminal_safe(name) + "\", want NAME or NAMESPACE/NAME");
  }
  return out;
}

std::string replay_of(const WhyArguments& args, const ClusterView& view) {
  std::string out = "berth why";
  for (const std::string& word : args.subject) out += ' ' + shell_word(word);
  if (!args.view.ns.empty()) out += " -n " + shell_word(args.view.ns);
  for (const std::string& file : args.view.files) out += " -f " + shell_word(file);
  if (!args.view.kubeconfig.empty()) out += " --kubeconfig " + shell_word(args.view.kubeconfig);
  if (!args.view.context.empty()) out += " --context " + shell_word(args.view.context);
  for (const std::string& word : args.policy.words()) out += ' ' + shell_word(word);
  if (args.quota_only) out += " --quota-only";
  if (args.holders) out += " --holders";
  return out + " --now " + text::format_rfc3339(view.now_ns);
}

// FNV-1a of each object that was read, summed up: two answers can be seen to be of the same input,
// in whatever order it came.
std::string digest_of(const ClusterView& view) {
  std::uint64_t sum = 0;
  for (const ObjectFacts& object : view.objects) {
    std::uint64_t hash = 14695981039346656037ULL;
    for (const char c : object.kind + '/' + object.ns + ' ' + text::to_json(*object.value)) {
      hash = (hash ^ static_cast<unsigned char>(c)) * 1099511628211ULL;
    }
    sum += hash;
  }
  return fmt::format("{:016x}", sum);
}

Result<people::PlanOptions> plan_options(const WhyArguments& args) {
  people::PlanOptions out;
  BERTH_TRY(out.flags, policy_flags(args.policy));
  out.quota_only = args.quota_only;
  return out;
}

people::RawObject raw_of(const ObjectFacts& facts) {
  return {facts.api_version,      facts.kind, facts.ns, facts.name, facts.uid,
          facts.resource_version, facts.value};
}

std::string json_of(const text::Tree& tree) {
  text::JsonWriter out;
  tree.write(out);
  return std::move(out).take();
}

int answer_with(const WhyArguments& args, const people::PlanOptions& given,
                const people::Subject& subject, const ClusterView& view, Terminal& terminal) {
  const ViewObjects objects(view);
  ReadBudget budget(view.objects.size());
  people::WhyOptions options = why_options(view, objects, budget);
  options.plan = given;
  options.plan.now_ns = view.now_ns;
  if (view.hides("nodes")) options.plan.quota_only = true;  // of the rest nothing can be said
  options.digest = digest_of(view);
  options.replay = replay_of(args, view);
  if (args.holders) options.most_holders = people::kMostHoldersTold;
  people::Examiner examiner(view.inputs, std::move(options));
  std::optional<Busy> busy(std::in_place, "trying what would help", terminal);
  Result<people::Answer> answer = examiner.why(subject);
  busy.reset();
  if (!answer.ok()) {
    const std::string near = answer.error().code() == Code::kNotFound
                                 ? people::meant_name(view.inputs, subject)
                                 : std::string();
    terminal.err << "berth: " << answer.error().to_string()
                 << (near.empty() ? "" : "; did you mean " + text::terminal_safe(near) + '?')
                 << '\n';
    return answer.error().code() == Code::kInvalid ? kExitUsage : kExitNotThere;
  }
  const std::string json = args.output == "table" ? "" : people::why_json(*answer);
  terminal.out << (args.output == "table"  ? people::why_table(*answer, args.holders)
                   : args.output == "yaml" ? yaml_of(json)
                                           : json);
  return people::exit_code(answer->standing);
}

// The controller decides by its own policy and now: other questions are not for it.
bool for_controller(const WhyArguments& args, const people::Subject& subject) {
  const std::vector<std::string>& makers = kinds::maker_words();
  const bool maker = std::find(makers.begin(), makers.end(), subject.kind) != makers.end();
  return !maker && args.view.files.empty() && !args.no_controller && args.view.now.empty() &&
         !args.policy.given() && !args.quota_only;
}

// nullopt: nobody could be asked.
std::optional<int> ask_for_it(const WhyArguments& args, const ControllerPlace& place,
                              people::Subject subject, Terminal& terminal) {
  const Result<kube::Config> config = kube::find_config(args.view, terminal.environment);
  if (!config.ok()) return std::nullopt;  // the view says so
  if (subject.ns.empty()) subject.ns = config->ns;
  std::optional<Busy> busy(std::in_place, "asking the controller", terminal);
  const RemoteWhy got = ask_controller(
      *config, place, {.subject = subject, .output = args.output, .holders = args.holders},
      terminal);
  busy.reset();
  if (got.how == RemoteWhy::How::kAnswered) {
    terminal.out << got.text;
    return got.code;
  }
  // It keeps nothing that only makes pods: a name alone may be such a one's.
  if (got.how == RemoteWhy::How::kUnknown && subject.kind.empty()) return std::nullopt;
  if (got.how == RemoteWhy::How::kRefused || got.how == RemoteWhy::How::kUnknown) {
    terminal.err << "berth: " << got.text << '\n';
    return kExitNotThere;
  }
  if (!args.controller.empty()) {
    terminal.err << "berth: --controller: " << got.text << "; looking at what you may list\n";
  }
  return std::nullopt;
}

// An item of a typed list does not say what it is; this one does. Values stay where they are.
text::Document named(const ObjectFacts& facts) {
  const auto own = facts.value->members();
  text::Arena arena;
  text::Member* members = arena.allocate<text::Member>(own.size() + 2);
  new (members) text::Member{"apiVersion", text::Value::make_string(facts.api_version, 0)};
  new (members + 1) text::Member{"kind", text::Value::make_string(facts.kind, 0)};
  std::size_t count = 2;
  for (const text::Member& member : own) {
    if (member.key == "apiVersion" || member.key == "kind") continue;
    new (members + count++) text::Member(member);
  }
  const text::Value root = text::Value::make_object({members, count}, facts.value->line());
  return {std::move(arena), root};
}

// Nodes, and pods on them, that are not to be read.
bool left_out(const ObjectFacts& facts, const kinds::Bound& also) {
  if (facts.kind == "Node") return !also.nodes.contains(facts.name);
  if (facts.kind != "Pod") return facts.kind == "GpuNode";
  const text::Value* spec = facts.value->find("spec");
  const text::Value* node = spec == nullptr ? nullptr : spec->find("nodeName");
  const bool bound = node != nullptr && !node->string().empty();
  return bound && !also.pods.contains(facts.ns + '/' + facts.name);
}

}  // namespace

std::optional<people::RawObject> ViewObjects::find(std::string_view kind, std::string_view ns,
                                                   std::string_view name) const {
  const ObjectFacts* facts = view_.find(kind, ns, name);
  if (facts == nullptr) return std::nullopt;
  return raw_of(*facts);
}

std::vector<people::RawObject> ViewObjects::of_kind(std::string_view kind) const {
  std::vector<people::RawObject> out;
  for (const ObjectFacts& facts : view_.of_kind(kind)) out.push_back(raw_of(facts));
  return out;
}

std::vector<people::RawObject> ViewObjects::in_namespace(std::string_view kind,
                                                         std::string_view ns) const {
  const std::span<const ObjectFacts> all = view_.of_kind(kind);
  const auto [begin, end] = std::ranges::equal_range(all, ns, {}, &ObjectFacts::ns);
  std::vector<people::RawObject> out;
  for (auto it = begin; it != end; ++it) out.push_back(raw_of(*it));
  return out;
}

people::WhyOptions why_options(const ClusterView& view, const ViewObjects& objects,
                               ReadBudget& budget) {
  people::WhyOptions out;
  out.plan.now_ns = view.now_ns;
  out.objects = &objects;
  out.unseen = view.unseen;
  out.live = view.live;
  // Many objects are not read again for every fix: the model's word is enough, but for rules that
  // it does not know.
  out.model_first = view.objects.size() > ReadBudget::kFew;
  out.reread =
      [&view, &budget](const std::vector<people::ObjectChange>& changes) -> Result<kinds::Inputs> {
    BERTH_CHECK(budget.take());
    return inputs_with(view, changes);
  };
  out.reread_part = [&view](const std::vector<people::ObjectChange>& changes,
                            const kinds::Bound& also) { return inputs_with(view, changes, &also); };
  return out;
}

Result<kinds::Inputs> inputs_with(const ClusterView& view,
                                  const std::vector<people::ObjectChange>& changes,
                                  const kinds::Bound* also) {
  kinds::ManifestReader reader({.live = view.live});
  int number = 0;
  std::vector<text::Document> made;  // until finish()
  const auto add = [&](const text::Tree& tree) -> Status {
    BERTH_TRY(text::Document document, text::parse_json(json_of(tree)));
    made.push_back(std::move(document));
    reader.add("fix", ++number, made.back());
    return {};
  };
  for (const ObjectFacts& facts : view.objects) {
    if (also != nullptr && left_out(facts, *also)) continue;
    const auto change =
        std::find_if(changes.begin(), changes.end(), [&](const people::ObjectChange& c) {
          return c.before && c.kind == facts.kind && c.ns == facts.ns && c.name == facts.name &&
                 c.api_version == facts.api_version;
        });
    if (change != changes.end() && !change->after) continue;
    if (change == changes.end()) {
      reader.add("fix", ++number, named(facts));
      continue;
    }
    text::Tree tree = *change->after;
    tree["apiVersion"] = text::Tree::of_text(facts.api_version);
    tree["kind"] = text::Tree::of_text(facts.kind);
    BERTH_CHECK(add(tree));
  }
  for (const people::ObjectChange& change : changes) {
    if (!change.before && change.after) BERTH_CHECK(add(*change.after));
  }
  return reader.finish();
}

int why_command(const WhyArguments& args, Terminal& terminal) {
  const auto wrong = [&terminal](const Error& error) {
    terminal.err << "berth: why: " << error.to_string() << '\n';
    return kExitUsage;
  };
  if (args.output != "table" && args.output != "json" && args.output != "yaml") {
    return wrong(invalid("--output: found \"" + text::terminal_safe(args.output) +
                         "\", want table, json or yaml"));
  }
  Result<people::Subject> subject = subject_of(args);
  if (!subject.ok()) return wrong(subject.error());
  const Result<people::PlanOptions> plan = plan_options(args);
  if (!plan.ok()) return wrong(plan.error());
  Result<ControllerPlace> place = parse_controller_place(args.controller);
  if (!place.ok()) return wrong(std::move(place).error().context("--controller"));
  place->ca_file = args.controller_ca;
  if (for_controller(args, *subject)) {
    if (const auto code = ask_for_it(args, *place, *subject, terminal)) return *code;
  }
  ViewOptions where = args.view;  // who may not list all namespaces looks at the subject's
  if (where.files.empty() && !subject->ns.empty()) where.ns = subject->ns;
  where.for_why = true;
  const Result<ClusterView> view = look(where, terminal);
  if (!view.ok()) {
    terminal.err << "berth: " << view.error().to_string() << '\n';
    return kExitNotThere;
  }
  // In a cluster a name without a namespace is in that of the context; in files it is anywhere.
  if (subject->ns.empty() && args.view.files.empty()) subject->ns = view->ns;
  return answer_with(args, *plan, *subject, *view, terminal);
}

}  // namespace berth::app
