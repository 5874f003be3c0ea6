#include "edge/kube/config.h"

#include <gtest/gtest.h>

#include "edge/kube/credentials.h"
#include "text/json.h"

namespace berth::kube {
namespace {

constexpr std::int64_t kConfigSecond = 1'000'000'000;

struct FakeFiles {
  std::map<std::string, std::string> files;
  int reads = 0;
  FileReader reader() {
    return [this](const std::string& path) -> Result<std::string> {
      ++reads;
      auto found = files.find(path);
      if (found == files.end()) return Error(Code::kNotFound, path + ": no such file");
      return found->second;
    };
  }
};

constexpr const char* kMain = R"(
apiVersion: v1
kind: Config
current-context: one
preferences: {}
clusters:
- name: c1
  cluster:
    server: https://c1:6443/
    certificate-authority: ca.pem
    tls-server-name: real.name
    proxy-url: http://proxy:3128
    extensions:
    - name: client.authentication.k8s.io/exec
      extension: {audience: x}
- name: c2
  cluster: {server: "http://c2", certificate-authority-data: Q0E=}
- name: c3
  cluster: {server: "c3.example:443", insecure-skip-tls-verify: true}
contexts:
- name: one
  context: {cluster: c1, user: u1, namespace: team}
- name: two
  context: {cluster: c2, user: u2}
- name: three
  context: {cluster: c3, user: u3}
- name: nobody
  context: {cluster: c2}
- name: lost
  context: {cluster: none}
users:
- name: u1
  user: {client-certificate: certs/c.pem, client-key: /abs/k.pem}
- name: u2
  user: {token: abc, tokenFile: tok, as: boss, as-groups: [g1, g2]}
- name: u3
  user:
    exec:
      apiVersion: client.authentication.k8s.io/v1
      command: bin/plugin
      args: [get-token, --x]
      env: [{name: A, value: b}]
      interactiveMode: IfAvailable
      provideClusterInfo: true
)";

TEST(Kubeconfig, contexts_clusters_and_users) {
  FakeFiles f;
  f.files["/home/me/.kube/config"] = kMain;
  auto one = kubeconfig({"/home/me/.kube/config"}, "", f.reader());
  ASSERT_TRUE(one.ok()) << one.error().to_string();
  EXPECT_EQ(one->server, "https://c1:6443");
  EXPECT_EQ(one->ns, "team");
  EXPECT_EQ(one->ca_file, "/home/me/.kube/ca.pem");
  EXPECT_EQ(one->tls_server_name, "real.name");
  EXPECT_EQ(one->proxy_url, "http://proxy:3128");
  EXPECT_EQ(one->cert_file, "/home/me/.kube/certs/c.pem");
  EXPECT_EQ(one->key_file, "/abs/k.pem");
  auto two = kubeconfig({"/home/me/.kube/config"}, "two", f.reader());
  ASSERT_TRUE(two.ok());
  EXPECT_EQ(two->ca_data, "CA");
  EXPECT_EQ(two->ns, "default");
  EXPECT_EQ(two->token, "abc");
  EXPECT_EQ(two->token_file, "/home/me/.kube/tok");
  EXPECT_EQ(two->impersonate_groups, (std::vector<std::string>{"g1", "g2"}));
  auto three = kubeconfig({"/home/me/.kube/config"}, "three", f.reader());
  ASSERT_TRUE(three.ok());
  EXPECT_EQ(three->server, "https://c3.example:443");
  EXPECT_TRUE(three->insecure);
  ASSERT_TRUE(three->exec);
  EXPECT_EQ(three->exec->command, "/home/me/.kube/bin/plugin");
  EXPECT_EQ(three->exec->args, (std::vector<std::string>{"get-token", "--x"}));
  EXPECT_TRUE(three->exec->provide_cluster_info);
  EXPECT_TRUE(kubeconfig({"/home/me/.kube/config"}, "nobody", f.reader()).ok());
}

TEST(Kubeconfig, the_first_file_to_say_something_wins) {
  FakeFiles f;
  f.files["a"] =
      "clusters: [{name: c, cluster: {server: \"https://from-a\"}}]\n"
      "users: [{name: u, user: {token: from-a}}]\n";
  f.files["b"] =
      "current-context: x\n"
      "clusters: [{name: c, cluster: {server: \"https://from-b\"}}]\n"
      "contexts: [{name: x, context: {cluster: c, user: u}}]\n"
      "users: [{name: u, user: {token: from-b, username: someone, password: p}}]\n";
  auto merged = find_config("", "", {{"KUBECONFIG", "a::missing:b"}}, f.reader());
  ASSERT_TRUE(merged.ok()) << merged.error().to_string();
  EXPECT_EQ(merged->server, "https://from-a");
  EXPECT_EQ(merged->token, "from-a");
  EXPECT_EQ(merged->username, "") << "a user is taken whole";
}

TEST(Kubeconfig, says_what_is_wrong_and_where) {
  struct Case {
    const char *text, *context, *want;
  };
  const Case cases[] = {
      {"kind: Pod", "", "f: kind: found \"Pod\", want Config"},
      {"clusters: 3", "", "f: line 1: clusters: found number 3"},
      {"clusters: []", "", "current-context: found nothing"},
      {"clusters: []", "x", "no context \"x\""},
      {kMain, "lost", "context \"lost\": no cluster \"none\""},
      {"clusters: [{name: c, cluster: {server: ftp://x}}]\n"
       "contexts: [{name: x, context: {cluster: c}}]",
       "x", "cluster \"c\": server: found \"ftp://x\""},
      {"clusters: [{name: c, cluster: {server: https://x, certificate-authority-data: '%'}}]\n"
       "contexts: [{name: x, context: {cluster: c}}]",
       "x", "certificate-authority-data"},
      {"clusters: [{name: c, cluster: {server: https://x}}]\n"
       "users: [{name: u, user: {client-certificate: a}}]\n"
       "contexts: [{name: x, context: {cluster: c, user: u}}]",
       "x", "user \"u\": client-key: missing"},
      {"clusters: [{name: c, cluster: {server: https://x}}]\n"
       "users: [{name: u, user: {auth-provider: {name: gcp}}}]\n"
       "contexts: [{name: x, context: {cluster: c, user: u}}]",
       "x", "auth-provider: not supported"},
      {"clusters: [{name: c, cluster: {server: https://x}}]\n"
       "users: [{name: u, user: {exec: {apiVersion: client.authentication.k8s.io/v1alpha1, "
       "command: x}}}]\n"
       "contexts: [{name: x, context: {cluster: c, user: u}}]",
       "x", "exec.apiVersion: found"},
      {"clusters: [{name: c, cluster: {server: https://x}}]\n"
       "users: [{name: u, user: {exec: {apiVersion: client.authentication.k8s.io/v1, "
       "command: x, interactiveMode: Always}}}]\n"
       "contexts: [{name: x, context: {cluster: c, user: u}}]",
       "x", "no terminal"},
      {"clusters: [{name: c, cluster: {server: https://x}}]\n"
       "users: [{name: u, user: {exec: {apiVersion: client.authentication.k8s.io/v1, "
       "command: x, args: [\"a\\0b\"], interactiveMode: Never}}}]\n"
       "contexts: [{name: x, context: {cluster: c, user: u}}]",
       "x", "exec: found a NUL"},
      {"clusters: [{name: c, cluster: {server: https://x}}]\n"
       "users: [{name: u, user: {exec: {apiVersion: client.authentication.k8s.io/v1, "
       "command: x, env: [{name: A=B, value: c}], interactiveMode: Never}}}]\n"
       "contexts: [{name: x, context: {cluster: c, user: u}}]",
       "x", "a name of env"},
  };
  for (const Case& c : cases) {
    FakeFiles f;
    f.files["f"] = c.text;
    auto got = kubeconfig({"f"}, c.context, f.reader());
    ASSERT_FALSE(got.ok()) << c.want;
    EXPECT_NE(got.error().to_string().find(c.want), std::string::npos) << got.error().to_string();
  }
  FakeFiles none;
  EXPECT_EQ(kubeconfig({"f"}, "", none.reader()).error().code(), Code::kNotFound);
}

TEST(Kubeconfig, flags_go_before_what_the_file_says) {
  FakeFiles f;
  f.files["f"] =
      "clusters:\n"
      "- {name: a, cluster: {server: 'https://a:1', certificate-authority-data: QQ==}}\n"
      "- {name: b, cluster: {server: 'https://b:2'}}\n"
      "users:\n"
      "- {name: me, user: {token: mine}}\n"
      "- {name: you, user: {username: u, password: p}}\n"
      "contexts: [{name: x, context: {cluster: a, user: me, namespace: team}}]\n"
      "current-context: x\n";
  const auto with = [&](auto set) {
    ConfigChoice choice;
    choice.kubeconfig = "f";
    set(choice);
    return find_config(choice, {}, f.reader());
  };
  EXPECT_EQ(with([](ConfigChoice& c) { c.cluster = "b"; })->server, "https://b:2");
  EXPECT_EQ(with([](ConfigChoice& c) { c.cluster = "b"; })->token, "mine");
  EXPECT_EQ(with([](ConfigChoice& c) { c.user = "you"; })->username, "u");
  EXPECT_EQ(with([](ConfigChoice& c) { c.user = "you"; })->request_timeout_ns, 0);
  EXPECT_EQ(with([](ConfigChoice& c) { c.request_timeout = "5s"; })->request_timeout_ns,
            5'000'000'000);
  const auto other = with([](ConfigChoice& c) { c.server = "c:3/"; });
  EXPECT_EQ(other->server, "https://c:3");
  EXPECT_EQ(other->ns, "team");
  const auto token = with([](ConfigChoice& c) {
    c.user = "you";
    c.token = "t";
  });
  EXPECT_EQ(token->token, "t");
  EXPECT_EQ(token->username, "");
  const auto as = with([](ConfigChoice& c) {
    c.as = "anna";
    c.as_groups = {"g"};
    c.insecure = true;
  });
  EXPECT_EQ(as->impersonate_user, "anna");
  EXPECT_EQ(as->impersonate_groups, std::vector<std::string>{"g"});
  EXPECT_TRUE(as->insecure && as->ca_data.empty());
  for (const auto& [got, says] : std::vector<std::pair<Result<Config>, std::string>>{
           {with([](ConfigChoice& c) { c.cluster = "z"; }), "no cluster \"z\""},
           {with([](ConfigChoice& c) { c.user = "z"; }), "no user \"z\""},
           {with([](ConfigChoice& c) { c.server = "ftp://x"; }), "want https://HOST:PORT"},
           {with([](ConfigChoice& c) { c.as_groups = {"g"}; }), "--as-group"}}) {
    ASSERT_FALSE(got.ok()) << says;
    EXPECT_NE(got.error().to_string().find(says), std::string::npos) << got.error().to_string();
  }
  // A server is enough, without any file.
  ConfigChoice alone;
  alone.server = "https://d:4";
  alone.token = "t";
  EXPECT_EQ(find_config(alone, {{"HOME", "/nowhere"}}, f.reader())->server, "https://d:4");
  ConfigChoice file;
  file.kubeconfig = "f";
  EXPECT_EQ(config_names(file, {}, f.reader()).clusters, (std::vector<std::string>{"a", "b"}));
}

TEST(Config, from_inside_a_pod) {
  FakeFiles f;
  const std::string account = "/var/run/secrets/kubernetes.io/serviceaccount";
  Environment env = {{"KUBERNETES_SERVICE_HOST", "fd00::1"}, {"KUBERNETES_SERVICE_PORT", "443"}};
  EXPECT_FALSE(in_cluster_config(env, f.reader()).ok());
  EXPECT_EQ(in_cluster_config({}, f.reader()).error().code(), Code::kNotFound);
  f.files = {{account + "/token", " tok\n"},
             {account + "/ca.crt", "CA"},
             {account + "/namespace", "mine\n"}};
  auto config = in_cluster_config(env, f.reader());
  ASSERT_TRUE(config.ok()) << config.error().to_string();
  EXPECT_EQ(config->server, "https://[fd00::1]:443");
  EXPECT_EQ(config->token, "tok");
  EXPECT_EQ(config->ns, "mine");
  EXPECT_EQ(config->ca_file, account + "/ca.crt");
  env["HOME"] = "/home/me";
  f.files["/home/me/.kube/config"] = kMain;
  EXPECT_EQ(find_config("", "", env, f.reader())->ns, "mine") << "a pod before a home";
  EXPECT_EQ(find_config("", "two", env, f.reader())->token, "abc") << "a context is of a file";
  f.files["told"] = kMain;
  EXPECT_EQ(find_config("told", "", env, f.reader())->ns, "team");
  env.erase("KUBERNETES_SERVICE_HOST");
  EXPECT_EQ(find_config("", "", env, f.reader())->ns, "team");
}

// ---- credentials ---------------------------------------------------------------------------

TEST(Credentials, files_are_read_again_and_the_last_good_content_is_kept) {
  FakeFiles f;
  f.files = {{"t", "one\n"}, {"ca", "CA1"}, {"c", "CERT"}, {"k", "KEY"}};
  Config config;
  config.token_file = "t";
  config.ca_file = "ca";
  config.cert_file = "c";
  config.key_file = "k";
  Credentials creds(config, {}, f.reader());
  auto token = [&](std::int64_t seconds) {
    auto identity = creds.identity({seconds * kConfigSecond, 0});
    return identity.ok() ? identity->authorization + " " + identity->ca_pem : "error";
  };
  EXPECT_EQ(token(0), "Bearer one CA1");
  const int reads = f.reads;
  EXPECT_EQ(token(40), "Bearer one CA1");
  EXPECT_EQ(f.reads, reads);
  f.files["t"] = "two";
  f.files["ca"] = "CA2";
  EXPECT_EQ(token(51), "Bearer two CA2");
  f.files.erase("t");
  EXPECT_EQ(token(200), "Bearer two CA2") << "a stale token is better than none";
  f.files["t"] = "three";
  EXPECT_TRUE(creds.refused(201 * kConfigSecond));
  EXPECT_EQ(token(201), "Bearer three CA2");
  EXPECT_TRUE(creds.refused(150 * kConfigSecond)) << "sent before the token was read again";
  f.files["t"] = "four";
  EXPECT_EQ(token(202), "Bearer three CA2") << "no need to read it once more";
  auto identity = creds.identity({202 * kConfigSecond, 0});
  EXPECT_EQ(identity->cert_pem + identity->key_pem, "CERTKEY");
}

TEST(Credentials, other_ways_to_be_known) {
  FakeFiles f;
  Config basic;
  basic.username = "u";
  basic.password = "p";
  EXPECT_EQ(Credentials(basic, {}, f.reader()).identity({})->authorization, "Basic dTpw");
  EXPECT_FALSE(Credentials(basic, {}, f.reader()).refused(0)) << "nothing newer to hope for";
  Config none;
  EXPECT_EQ(Credentials(none, {}, f.reader()).identity({})->authorization, "");
  Config smuggler;
  smuggler.token = "x\r\nEvil: 1";
  EXPECT_FALSE(Credentials(smuggler, {}, f.reader()).identity({}).ok());
  Config missing;
  missing.token_file = "nowhere";
  EXPECT_FALSE(Credentials(missing, {}, f.reader()).identity({}).ok());
  missing.token = "fixed";
  EXPECT_EQ(Credentials(missing, {}, f.reader()).identity({})->authorization, "Bearer fixed");
}

TEST(Credentials, plugin_answers_until_they_expire_or_are_refused) {
  Config config;
  config.server = "https://s";
  config.ca_data = "CA";
  config.exec = ExecPlugin{.api_version = "client.authentication.k8s.io/v1",
                           .command = "/bin/sh",
                           .args = {"x"},
                           .env = {{"A", "over"}},
                           .provide_cluster_info = true,
                           .cluster_config = R"({"audience":"x"})"};
  Credentials creds(config, {{"A", "under"}, {"PATH", "/bin"}});
  ASSERT_TRUE(creds.needs_plugin({}));
  auto call = creds.plugin_call({});
  ASSERT_TRUE(call.ok());
  EXPECT_EQ(call->argv, (std::vector<std::string>{"/bin/sh", "x"}));
  EXPECT_EQ(call->envp[0], "A=over");
  EXPECT_EQ(call->envp[1],
            R"(KUBERNETES_EXEC_INFO={"apiVersion":"client.authentication.k8s.io/v1","kind":)"
            R"("ExecCredential","spec":{"interactive":false,"cluster":{"server":"https://s",)"
            R"("certificate-authority-data":"Q0E=","config":{"audience":"x"}}}})");
  EXPECT_FALSE(creds.plugin_call({"other"}).ok());
  EXPECT_TRUE(creds.plugin_call({"/bin/sh"}).ok());
  auto answer = [](const std::string& status) {
    return R"({"apiVersion":"client.authentication.k8s.io/v1","kind":"ExecCredential","status":)" +
           status + "}\n";
  };
  for (const std::string& bad : {std::string("no json"), std::string(R"({"kind":"X"})"),
                                 answer("{}"), answer(R"({"clientCertificateData":"c"})"),
                                 answer(R"({"token":"t","expirationTimestamp":"soon"})")}) {
    EXPECT_FALSE(creds.plugin_done({}, 0, bad, "").ok()) << bad;
  }
  EXPECT_FALSE(creds.plugin_done({}, 1, answer(R"({"token":"t"})"), "").ok());
  for (const char* past : {"1970-01-01T00:00:00Z", "1677-09-21T00:12:44Z"}) {
    const std::string old = R"({"token":"t","expirationTimestamp":")" + std::string(past) + "\"}";
    ASSERT_TRUE(creds.plugin_done({0, kConfigSecond}, 0, answer(old), "").ok()) << past;
    EXPECT_TRUE(creds.needs_plugin({0, kConfigSecond})) << past;
  }
  ASSERT_TRUE(creds
                  .plugin_done({0, 0}, 0,
                               answer(R"({"token":"t","clientCertificateData":"c",)"
                                      R"("clientKeyData":"k",)"
                                      R"("expirationTimestamp":"1970-01-01T00:01:00Z"})"),
                               "")
                  .ok());
  auto identity = creds.identity({});
  EXPECT_EQ(identity->authorization + identity->cert_pem + identity->key_pem, "Bearer tck");
  EXPECT_FALSE(creds.needs_plugin({0, 49 * kConfigSecond}));
  EXPECT_TRUE(creds.needs_plugin({0, 50 * kConfigSecond})) << "ten seconds before";
  EXPECT_TRUE(creds.refused(5));
  EXPECT_TRUE(creds.needs_plugin({10, 0}));
  ASSERT_TRUE(creds.plugin_done({20, 0}, 0, answer(R"({"token":"t2"})"), "").ok());
  EXPECT_TRUE(creds.refused(15)) << "refused before the renewal";
  EXPECT_FALSE(creds.needs_plugin({30, 0})) << "which is kept";
}

TEST(Config, TheTimeoutOfRequestsAsKubectlReadsIt) {
  EXPECT_EQ(*parse_request_timeout("5"), 5'000'000'000);
  EXPECT_EQ(*parse_request_timeout("2m"), 120'000'000'000);
  EXPECT_EQ(*parse_request_timeout("500ms"), 500'000'000);
  EXPECT_EQ(*parse_request_timeout("0"), 0);
  for (const char* wrong : {"", "soon", "-5s", "5 s", "99999999999999999999", "1e3"}) {
    EXPECT_FALSE(parse_request_timeout(wrong).ok()) << wrong;
  }
}

}  // namespace
}  // namespace berth::kube
