#include "app/cli/complete.h"

#include <gtest/gtest.h>

#include "app/cli/kubectl_flags.h"

namespace berth::app {
namespace {

const std::vector<CompletionCommand>& shell_commands() {
  static const std::vector<CompletionCommand> commands = {
      {"why",
       "why it waits",
       {{"-n", "", true, {}, false},
        {"--kubeconfig", "", true, {}, true},
        {"--context", "", true, {}, false},
        {"-f", "", true, {}, true},
        {"-o", "", true, {"table", "json"}, false},
        {"--watch", "", false, {}, false}}},
      {"queue", "queues", {}},
      {"lint", "manifests", {}},
  };
  return commands;
}

// Completes the words; a name says what was asked for and where.
std::string completed(const std::vector<std::string>& words) {
  const Completion got = complete(words, shell_commands(), [](const CompletionAsk& ask) {
    return std::vector<std::string>{ask.what + '-' + ask.ns + '-' + ask.cluster.context,
                                    "$(reboot)", "-rf", "a b", ""};
  });
  std::string out;
  for (const auto& [word, help] : got.candidates) out += word + ' ';
  return out + (got.files ? "FILES" : "");
}

TEST(Complete, CommandsOptionsAndValues) {
  EXPECT_EQ(completed({""}), "why queue lint ");
  EXPECT_EQ(completed({"w"}), "why ");
  EXPECT_EQ(completed({"x"}), "");
  EXPECT_EQ(completed({}), "");
  EXPECT_EQ(completed({"why", "--k"}), "--kubeconfig ");
  EXPECT_EQ(completed({"why", "-o", ""}), "table json ");
  EXPECT_EQ(completed({"why", "-o", "j"}), "json ");
  EXPECT_EQ(completed({"why", "--watch", "-o", "j"}), "json ");
  EXPECT_EQ(completed({"why", "--kubeconfig", "x"}), "FILES");
  EXPECT_EQ(completed({"why", "--kubeconfig=x"}), "FILES");
  EXPECT_EQ(completed({"why", "--context=co"}), "contexts-- ") << "kubectl puts --context= before";
  EXPECT_EQ(completed({"lint", "x"}), "FILES");
  EXPECT_EQ(completed({"nonsense", ""}), "");
}

TEST(Complete, NamesOfTheClusterThatTheWordsAreAbout) {
  EXPECT_EQ(completed({"why", "pod", ""}), "pods-- ");
  EXPECT_EQ(completed({"why", "-n", "team", "pod", ""}), "pods-team- ");
  EXPECT_EQ(completed({"-n", "team", "why", "--context=c", "pod", ""}), "pods-team-c ");
  EXPECT_EQ(completed({"why", "j"}), "job jobset jaxjob jobs-- ");
  EXPECT_EQ(completed({"why", "job/"}), "job/jobs-- ");
  EXPECT_EQ(completed({"why", "-n", "team", "deployment", ""}), "deployments-team- ");
  EXPECT_EQ(completed({"why", "nonsense/"}), "");
  EXPECT_EQ(completed({"queue", ""}), "clusterqueues-- localqueues-- ");
  EXPECT_EQ(completed({"why", "-n", ""}), "namespaces-- ");
  EXPECT_EQ(completed({"why", "-f", "x.yaml", "pod", ""}), "") << "files are looked at";
  EXPECT_EQ(completed({"why", "pod", "x", ""}), "");
}

TEST(Complete, LinesAreThoseThatKubectlWants) {
  EXPECT_EQ(completion_lines({{{"a", "help"}, {"b", ""}}, false}), "a\thelp\nb\n:4\n");
  EXPECT_EQ(completion_lines({{}, true}), ":0\n");
  EXPECT_FALSE(completion_script("tcsh").ok());
}

TEST(KubectlFlags, MayStandBeforeTheCommand) {
  using Words = std::vector<std::string>;
  EXPECT_EQ(command_first({"-n", "x", "-A", "queue", "q"}), (Words{"queue", "-n", "x", "-A", "q"}));
  EXPECT_EQ(command_first({"--context=c", "why", "p"}), (Words{"why", "--context=c", "p"}));
  EXPECT_EQ(command_first({"queue", "-n", "x"}), (Words{"queue", "-n", "x"}));
  EXPECT_EQ(command_first({"--help"}), (Words{"--help"}));
  EXPECT_EQ(command_first({"-n"}), (Words{"-n"}));
  EXPECT_EQ(command_first({"-n", "x"}), (Words{"-n", "x"}));
  EXPECT_EQ(command_first({"--nope", "queue"}), (Words{"--nope", "queue"}));
  EXPECT_EQ(command_first({}), Words{});
  EXPECT_EQ(command_first({"-v=6", "--request-timeout=5s", "queue", "-n=x"}),
            (Words{"queue", "-v", "6", "--request-timeout=5s", "-n", "x"}));
  EXPECT_EQ(command_first({"run", "--", "x", "-n=1"}), (Words{"run", "--", "x", "-n=1"}));
  kube::ConfigChoice choice;
  for (const KubectlFlag& flag : kubectl_flags()) set_kubectl_flag(flag.name, "v", choice);
  EXPECT_EQ(choice.server, "v");
  EXPECT_EQ(choice.as_groups, Words{"v"});
  EXPECT_TRUE(choice.insecure);
  EXPECT_EQ(choice.request_timeout, "v");
}

}  // namespace
}  // namespace berth::app
