#include "edge/kube/config.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <system_error>

#include "text/base64.h"
#include "text/decode.h"
#include "text/escape.h"
#include "text/rfc3339.h"
#include "text/yaml.h"

namespace berth::kube {
namespace {

constexpr std::size_t kMaxFile = 16 * 1024 * 1024;

// ---- the file's own shape ------------------------------------------------------------------

struct FileExtension {
  std::string name, extension;  // the extension as JSON
};
struct FileCluster {
  std::string server, ca, ca_data, tls_server_name, proxy_url;
  bool insecure = false, disable_compression = false;
  std::vector<FileExtension> extensions;
};
struct FileEnv {
  std::string name, value;
};
struct FileExec {
  std::string api_version, command, install_hint, interactive_mode;
  std::vector<std::string> args;
  std::vector<FileEnv> env;
  bool provide_cluster_info = false;
};
struct FileUser {
  std::string token, token_file, username, password, cert, cert_data, key, key_data, as;
  std::vector<std::string> as_groups;
  std::optional<FileExec> exec;
  std::string auth_provider;
};
struct FileContext {
  std::string cluster, user, ns;
};
template <class T>
struct FileNamed {
  std::string name;
  T value;
  std::string folder = {};  // of the file that it stands in
};
struct KubeconfigFile {
  std::string kind, current_context;
  std::vector<FileNamed<FileCluster>> clusters;
  std::vector<FileNamed<FileUser>> users;
  std::vector<FileNamed<FileContext>> contexts;
};

using text::custom;
using text::Decoder;
using text::field;
using text::Field;
using text::required;
using text::skip;
using text::Value;

constexpr Field<FileExtension> kExtensionFields[] = {
    required(field<&FileExtension::name>("name")),
    field<&FileExtension::extension, text::read_json>("extension"),
};
void decode(const Value& v, FileExtension& out, Decoder& d) {
  decode_object(v, kExtensionFields, out, d);
}
constexpr Field<FileCluster> kClusterFields[] = {
    required(field<&FileCluster::server>("server")),
    field<&FileCluster::ca>("certificate-authority"),
    field<&FileCluster::ca_data>("certificate-authority-data"),
    field<&FileCluster::insecure>("insecure-skip-tls-verify"),
    field<&FileCluster::tls_server_name>("tls-server-name"),
    field<&FileCluster::proxy_url>("proxy-url"),
    field<&FileCluster::disable_compression>("disable-compression"),
    field<&FileCluster::extensions>("extensions"),
};
void decode(const Value& v, FileCluster& out, Decoder& d) {
  decode_object(v, kClusterFields, out, d);
}
constexpr Field<FileEnv> kEnvFields[] = {
    required(field<&FileEnv::name>("name")),
    required(field<&FileEnv::value>("value")),
};
void decode(const Value& v, FileEnv& out, Decoder& d) { decode_object(v, kEnvFields, out, d); }
constexpr Field<FileExec> kExecFields[] = {
    required(field<&FileExec::api_version>("apiVersion")),
    required(field<&FileExec::command>("command")),
    field<&FileExec::args>("args"),
    field<&FileExec::env>("env"),
    field<&FileExec::install_hint>("installHint"),
    field<&FileExec::provide_cluster_info>("provideClusterInfo"),
    field<&FileExec::interactive_mode>("interactiveMode"),
};
void decode(const Value& v, FileExec& out, Decoder& d) { decode_object(v, kExecFields, out, d); }
constexpr Field<FileUser> kUserFields[] = {
    field<&FileUser::token>("token"),
    field<&FileUser::token_file>("tokenFile"),
    field<&FileUser::username>("username"),
    field<&FileUser::password>("password"),
    field<&FileUser::cert>("client-certificate"),
    field<&FileUser::cert_data>("client-certificate-data"),
    field<&FileUser::key>("client-key"),
    field<&FileUser::key_data>("client-key-data"),
    field<&FileUser::as>("as"),
    field<&FileUser::as_groups>("as-groups"),
    field<&FileUser::exec>("exec"),
    field<&FileUser::auth_provider, text::read_json>("auth-provider"),
};
void decode(const Value& v, FileUser& out, Decoder& d) { decode_object(v, kUserFields, out, d); }
constexpr Field<FileContext> kContextFields[] = {
    required(field<&FileContext::cluster>("cluster")),
    field<&FileContext::user>("user"),
    field<&FileContext::ns>("namespace"),
    skip<FileContext>("extensions"),
};
void decode(const Value& v, FileContext& out, Decoder& d) {
  decode_object(v, kContextFields, out, d);
}
template <class T>
constexpr Field<FileNamed<T>> kNamedFields[] = {
    required(field<&FileNamed<T>::name>("name")),
    field<&FileNamed<T>::value>(std::is_same_v<T, FileCluster> ? "cluster"
                                : std::is_same_v<T, FileUser>  ? "user"
                                                               : "context"),
};
template <class T>
void decode(const Value& v, FileNamed<T>& out, Decoder& d) {
  decode_object(v, kNamedFields<T>, out, d);
}
constexpr Field<KubeconfigFile> kFileFields[] = {
    skip<KubeconfigFile>("apiVersion"),
    field<&KubeconfigFile::kind>("kind"),
    skip<KubeconfigFile>("preferences"),
    field<&KubeconfigFile::clusters>("clusters"),
    field<&KubeconfigFile::contexts>("contexts"),
    field<&KubeconfigFile::current_context>("current-context"),
    field<&KubeconfigFile::users>("users"),
    skip<KubeconfigFile>("extensions"),
};
void decode(const Value& v, KubeconfigFile& out, Decoder& d) {
  decode_object(v, kFileFields, out, d);
}

// ---- reading and merging -------------------------------------------------------------------

std::string folder_of(const std::string& path) {
  std::size_t slash = path.rfind('/');
  return slash == std::string::npos ? "" : path.substr(0, slash + 1);
}

std::string beside(const std::string& folder, const std::string& path) {
  return path.empty() || path.starts_with('/') ? path : folder + path;
}

template <class T>
void merge_named(std::vector<FileNamed<T>>& into, std::vector<FileNamed<T>> more,
                 const std::string& folder) {
  for (auto& entry : more) {
    bool known = false;
    for (const auto& have : into) known = known || have.name == entry.name;
    if (known) continue;
    entry.folder = folder;
    into.push_back(std::move(entry));
  }
}

Result<KubeconfigFile> parse_kubeconfig(const std::string& text, const std::string& path) {
  auto documents = text::parse_any(text, path);
  if (!documents.ok()) return std::move(documents).error();
  if (documents->empty()) return KubeconfigFile{};
  BERTH_TRY(KubeconfigFile file, text::decode_all<KubeconfigFile>((*documents)[0].root()));
  if (!file.kind.empty() && file.kind != "Config") {
    return invalid("kind: found \"" + file.kind + "\", want Config");
  }
  return file;
}

template <class T>
const FileNamed<T>* find_named(const std::vector<FileNamed<T>>& all, const std::string& name) {
  for (const auto& entry : all) {
    if (entry.name == name) return &entry;
  }
  return nullptr;
}

Result<std::string> decoded(const std::string& data, const char* name) {
  if (data.empty()) return std::string();
  return text::base64_decode(data).context(name);
}

Result<ExecPlugin> exec_plugin(const FileExec& from, const std::string& folder) {
  ExecPlugin exec;
  exec.api_version = from.api_version;
  if (from.api_version != "client.authentication.k8s.io/v1" &&
      from.api_version != "client.authentication.k8s.io/v1beta1") {
    return invalid("exec.apiVersion: found \"" + from.api_version +
                   "\", want client.authentication.k8s.io/v1 or /v1beta1");
  }
  if (from.command.empty()) return invalid("exec.command: found nothing, want a program");
  // What a program is called with ends at its first NUL.
  const auto whole = [](const std::string& text) { return text.find('\0') == std::string::npos; };
  bool all_whole = whole(from.command) && std::all_of(from.args.begin(), from.args.end(), whole);
  for (const FileEnv& env : from.env) {
    all_whole = all_whole && whole(env.name) && whole(env.value) && !env.name.empty() &&
                env.name.find('=') == std::string::npos;
  }
  if (!all_whole) {
    return invalid(
        "exec: found a NUL, or a name of env with \"=\", want texts that can be passed on");
  }
  const bool is_path = from.command.find('/') != std::string::npos;
  exec.command = is_path ? beside(folder, from.command) : from.command;
  exec.args = from.args;
  for (const FileEnv& env : from.env) exec.env.emplace_back(env.name, env.value);
  exec.install_hint = from.install_hint;
  exec.provide_cluster_info = from.provide_cluster_info;
  if (!from.interactive_mode.empty()) {
    exec.interactive_mode = from.interactive_mode;
  } else if (from.api_version.ends_with("/v1")) {
    return invalid("exec.interactiveMode: found nothing, want Never, IfAvailable or Always");
  }
  if (exec.interactive_mode == "Always") {
    return invalid("exec.interactiveMode: found Always, but there is no terminal to ask at");
  }
  if (exec.interactive_mode != "Never" && exec.interactive_mode != "IfAvailable") {
    return invalid("exec.interactiveMode: found \"" + exec.interactive_mode +
                   "\", want Never, IfAvailable or Always");
  }
  return exec;
}

Result<std::string> server_url(const std::string& given) {
  std::string out = given;
  while (out.ends_with('/')) out.pop_back();
  if (out.starts_with("https://") || out.starts_with("http://")) return out;
  if (out.empty() || out.find("://") != std::string::npos) {
    return invalid("server: found \"" + given + "\", want https://HOST:PORT");
  }
  return "https://" + out;
}

Status take_cluster(const FileNamed<FileCluster>& from, Config& config) {
  const FileCluster& cluster = from.value;
  BERTH_TRY(config.server, server_url(cluster.server));
  config.ca_file = beside(from.folder, cluster.ca);
  BERTH_TRY(config.ca_data, decoded(cluster.ca_data, "certificate-authority-data"));
  config.insecure = cluster.insecure;
  if (config.insecure && (!cluster.ca.empty() || !cluster.ca_data.empty())) {
    return invalid("insecure-skip-tls-verify: cannot be together with a certificate authority");
  }
  config.tls_server_name = cluster.tls_server_name;
  config.proxy_url = cluster.proxy_url;
  config.disable_compression = cluster.disable_compression;
  return {};
}

Status take_user(const FileNamed<FileUser>& from, const FileCluster& cluster, Config& config) {
  const FileUser& user = from.value;
  if (!user.auth_provider.empty()) {
    return invalid("auth-provider: not supported (Kubernetes 1.26 removed it too); use exec");
  }
  config.token = user.token;
  config.token_file = beside(from.folder, user.token_file);
  config.username = user.username;
  config.password = user.password;
  config.cert_file = beside(from.folder, user.cert);
  config.key_file = beside(from.folder, user.key);
  BERTH_TRY(config.cert_data, decoded(user.cert_data, "client-certificate-data"));
  BERTH_TRY(config.key_data, decoded(user.key_data, "client-key-data"));
  const bool has_cert = !config.cert_file.empty() || !config.cert_data.empty();
  const bool has_key = !config.key_file.empty() || !config.key_data.empty();
  if (has_cert != has_key) {
    return invalid(has_cert ? "client-key: missing beside client-certificate"
                            : "client-certificate: missing beside client-key");
  }
  config.impersonate_user = user.as;
  config.impersonate_groups = user.as_groups;
  if (!user.as_groups.empty() && user.as.empty()) {
    return invalid("as-groups: cannot be without as");
  }
  if (user.exec) {
    BERTH_TRY(config.exec, exec_plugin(*user.exec, from.folder));
    for (const FileExtension& extension : cluster.extensions) {
      if (extension.name == "client.authentication.k8s.io/exec") {
        config.exec->cluster_config = extension.extension;
      }
    }
  }
  return {};
}

// "; there are: a, b": at most a few.
template <class T>
std::string names_in(const std::vector<FileNamed<T>>& all) {
  constexpr std::size_t kMost = 5;
  std::string out;
  for (std::size_t i = 0; i < all.size() && i < kMost; ++i) {
    out += (i == 0 ? "; there are: " : ", ") + all[i].name;
  }
  if (all.size() > kMost) out += ", +" + std::to_string(all.size() - kMost) + " more";
  return out.empty() ? "; there are none" : out;
}

// What flags say goes before what files say.
Result<Config> with_choice(Config config, const ConfigChoice& choice) {
  if (!choice.request_timeout.empty()) {
    BERTH_TRY(config.request_timeout_ns,
              parse_request_timeout(choice.request_timeout).context("--request-timeout"));
  }
  if (!choice.server.empty()) {
    BERTH_TRY(config.server, server_url(choice.server));
  }
  if (!choice.ca_file.empty()) {
    config.ca_file = choice.ca_file;
    config.ca_data.clear();
  }
  if (!choice.tls_server_name.empty()) config.tls_server_name = choice.tls_server_name;
  if (choice.insecure) {
    config.insecure = true;
    config.ca_file.clear();
    config.ca_data.clear();
  }
  if (!choice.token.empty()) {
    config.token = choice.token;
    config.token_file.clear();
    config.username.clear();
    config.password.clear();
    config.exec.reset();
  }
  if (!choice.as.empty()) {
    config.impersonate_user = choice.as;
    config.impersonate_groups = choice.as_groups;
  } else if (!choice.as_groups.empty()) {
    return invalid("--as-group: found without --as");
  }
  return config;
}

Result<Config> choose(const KubeconfigFile& file, const ConfigChoice& choice) {
  const std::string name = choice.context.empty() ? file.current_context : choice.context;
  const bool told = !choice.cluster.empty() || !choice.server.empty();
  if (name.empty() && !told) {
    return invalid("current-context: found nothing, and no context was told");
  }
  const auto* context = find_named(file.contexts, name);
  if (!context && (!name.empty() && !(told && choice.context.empty()))) {
    return Error(Code::kNotFound, "no context \"" + name + "\"" + names_in(file.contexts));
  }
  Config config;
  if (context && !context->value.ns.empty()) config.ns = context->value.ns;
  const std::string of = context ? "context \"" + name + "\": " : "";
  const std::string cluster_name =
      !choice.cluster.empty() ? choice.cluster : (context ? context->value.cluster : "");
  const auto* cluster = find_named(file.clusters, cluster_name);
  if (!cluster && (choice.server.empty() || !choice.cluster.empty())) {
    return Error(Code::kNotFound,
                 of + "no cluster \"" + cluster_name + "\"" + names_in(file.clusters));
  }
  if (cluster) {
    if (auto done = take_cluster(*cluster, config); !done.ok()) {
      return std::move(done.error()).context("cluster \"" + cluster->name + "\"");
    }
  }
  const std::string user_name =
      !choice.user.empty() ? choice.user : (context ? context->value.user : "");
  if (user_name.empty()) return with_choice(std::move(config), choice);
  const auto* user = find_named(file.users, user_name);
  if (!user)
    return Error(Code::kNotFound, of + "no user \"" + user_name + "\"" + names_in(file.users));
  const FileCluster none;
  if (auto done = take_user(*user, cluster ? cluster->value : none, config); !done.ok()) {
    return std::move(done.error()).context("user \"" + user->name + "\"");
  }
  return with_choice(std::move(config), choice);
}

std::string trimmed(std::string text) {
  while (!text.empty() && std::strchr(" \t\r\n", text.back())) text.pop_back();
  std::size_t first = text.find_first_not_of(" \t\r\n");
  return first == std::string::npos ? "" : text.substr(first);
}

const std::string& variable(const Environment& environment, const char* name) {
  static const std::string none;
  auto found = environment.find(name);
  return found == environment.end() ? none : found->second;
}

struct Merged {
  KubeconfigFile file;
  std::string names;  // of the files, as KUBECONFIG has them
  bool any = false;   // one of them exists
};

Result<Merged> merge_files(const std::vector<std::string>& files, const FileReader& read) {
  Merged out;
  for (const std::string& path : files) {
    if (path.empty()) continue;
    out.names += (out.names.empty() ? "" : ":") + path;
    auto text = read(path);
    if (!text.ok() && text.error().code() == Code::kNotFound) continue;
    if (!text.ok()) return std::move(text).error();
    out.any = true;
    auto file = parse_kubeconfig(*text, path);
    if (!file.ok()) return std::move(file).context(path).error();
    if (out.file.current_context.empty()) out.file.current_context = file->current_context;
    const std::string folder = folder_of(path);
    merge_named(out.file.clusters, std::move(file->clusters), folder);
    merge_named(out.file.users, std::move(file->users), folder);
    merge_named(out.file.contexts, std::move(file->contexts), folder);
  }
  return out;
}

std::vector<std::string> files_of(const ConfigChoice& choice, const Environment& environment) {
  if (!choice.kubeconfig.empty()) return {choice.kubeconfig};
  const std::string& list = variable(environment, "KUBECONFIG");
  if (list.empty()) return {variable(environment, "HOME") + "/.kube/config"};
  std::vector<std::string> files;
  for (std::size_t from = 0; from <= list.size();) {
    std::size_t colon = std::min(list.find(':', from), list.size());
    files.push_back(list.substr(from, colon - from));
    from = colon + 1;
  }
  return files;
}

}  // namespace

Result<std::string> read_small_file(const std::string& path) {
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) {
    const int why = errno;
    return Error(why == ENOENT ? Code::kNotFound : Code::kUnavailable,
                 path + ": " + std::generic_category().message(why));
  }
  std::string out;
  char chunk[16 * 1024];
  for (;;) {
    const ssize_t got = ::read(fd, chunk, sizeof chunk);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0 || out.size() > kMaxFile) {
      const int why = errno;
      ::close(fd);
      if (got < 0)
        return Error(Code::kUnavailable, path + ": " + std::generic_category().message(why));
      if (got > 0) return Error(Code::kExhausted, path + ": more than 16 MiB");
      return out;
    }
    out.append(chunk, static_cast<std::size_t>(got));
  }
}

Result<Config> in_cluster_config(const Environment& environment, const FileReader& read,
                                 const std::string& account) {
  const std::string& host = variable(environment, "KUBERNETES_SERVICE_HOST");
  const std::string& port = variable(environment, "KUBERNETES_SERVICE_PORT");
  if (host.empty() || port.empty()) {
    return Error(Code::kNotFound,
                 "not in a pod: KUBERNETES_SERVICE_HOST and KUBERNETES_SERVICE_PORT are not set");
  }
  Config config;
  const bool v6 = host.find(':') != std::string::npos;
  config.server = "https://" + (v6 ? "[" + host + "]" : host) + ":" + port;
  config.token_file = account + "/token";
  BERTH_TRY(config.token, read(config.token_file));
  config.token = trimmed(std::move(config.token));
  if (config.token.empty()) return invalid(config.token_file + ": empty");
  config.ca_file = account + "/ca.crt";
  if (auto ca = read(config.ca_file); !ca.ok()) return std::move(ca).error();
  if (auto ns = read(account + "/namespace"); ns.ok() && !trimmed(*ns).empty()) {
    config.ns = trimmed(std::move(*ns));
  }
  return config;
}

Result<std::int64_t> parse_request_timeout(std::string_view text) {
  const bool seconds = !text.empty() && text.size() <= 9 &&
                       text.find_first_not_of("0123456789") == std::string_view::npos;
  const Result<std::int64_t> parsed =
      text::parse_go_duration(seconds ? std::string(text) + 's' : std::string(text));
  if (!parsed.ok() || *parsed < 0) {
    return invalid("found \"" + text::terminal_safe(text) +
                   "\", want seconds or a number with a unit (5s, 2m, 1h)");
  }
  return *parsed;
}

Result<Config> kubeconfig(const std::vector<std::string>& files, const std::string& context,
                          const FileReader& read) {
  ConfigChoice choice;
  choice.context = context;
  return kubeconfig(files, choice, read);
}

Result<Config> kubeconfig(const std::vector<std::string>& files, const ConfigChoice& choice,
                          const FileReader& read) {
  BERTH_TRY(const Merged merged, merge_files(files, read));
  if (!merged.any && (choice.server.empty() || !choice.kubeconfig.empty())) {
    return Error(Code::kNotFound, "no kubeconfig: " + merged.names + " does not exist");
  }
  return choose(merged.file, choice).context(merged.names);
}

Result<Config> find_config(const std::string& told_file, const std::string& context,
                           const Environment& environment, const FileReader& read) {
  ConfigChoice choice;
  choice.kubeconfig = told_file;
  choice.context = context;
  return find_config(choice, environment, read);
}

Result<Config> find_config(const ConfigChoice& choice, const Environment& environment,
                           const FileReader& read) {
  const bool told = !choice.kubeconfig.empty() || !variable(environment, "KUBECONFIG").empty();
  const bool of_file = !choice.context.empty() || !choice.cluster.empty() || !choice.user.empty() ||
                       !choice.server.empty();
  if (!told && !of_file) {
    auto inside = in_cluster_config(environment, read);
    if (inside.ok()) return with_choice(std::move(*inside), choice);
    if (inside.error().code() != Code::kNotFound) return inside;
  }
  return kubeconfig(files_of(choice, environment), choice, read);
}

ConfigNames config_names(const ConfigChoice& choice, const Environment& environment,
                         const FileReader& read) {
  ConfigNames out;
  const Result<Merged> merged = merge_files(files_of(choice, environment), read);
  if (!merged.ok()) return out;
  for (const auto& one : merged->file.contexts) out.contexts.push_back(one.name);
  for (const auto& one : merged->file.clusters) out.clusters.push_back(one.name);
  for (const auto& one : merged->file.users) out.users.push_back(one.name);
  return out;
}

}  // namespace berth::kube
