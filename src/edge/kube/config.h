// How to reach an API server and how to be known to it: from a kubeconfig or from inside a pod.
//
// Nothing here looks at the process: the environment comes in as values, files through FileReader.
// Reading a config does not read keys and tokens yet: edge/kube/credentials.h does, again and
// again. Errors name the file and the field.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"

namespace berth::kube {

using Environment = std::map<std::string, std::string>;
using FileReader = std::function<Result<std::string>(const std::string& path)>;

// The whole file; kNotFound when there is none. At most 16 MiB.
Result<std::string> read_small_file(const std::string& path);

// A program that prints an ExecCredential.
struct ExecPlugin {
  std::string api_version;  // client.authentication.k8s.io/v1 or /v1beta1
  std::string command;      // a path, or a name looked up in PATH
  std::vector<std::string> args;
  std::vector<std::pair<std::string, std::string>> env;
  std::string interactive_mode = "IfAvailable";  // Never, IfAvailable, Always
  std::string install_hint;
  bool provide_cluster_info = false;
  std::string cluster_config;  // JSON of the cluster's extension for exec plugins; may be empty
};

struct Config {
  std::string server;  // "https://10.0.0.1:6443", perhaps with a path; no slash at its end
  std::string ns = "default";
  std::string ca_file, ca_data;  // PEM; data wins
  bool insecure = false;         // the server's certificate is not looked at
  std::string tls_server_name;   // verify this name instead of the URL's
  std::string proxy_url;
  bool disable_compression = false;

  std::string token, token_file;  // the file wins while it can be read
  std::string username, password;
  std::string cert_file, cert_data, key_file, key_data;
  std::string impersonate_user;
  std::vector<std::string> impersonate_groups;
  std::optional<ExecPlugin> exec;
  std::int64_t request_timeout_ns = 0;  // of every request; 0: as whoever sends it thinks fit
};

// What kubectl's flags choose and set; what is empty is as the files say.
struct ConfigChoice {
  std::string kubeconfig;              // the file
  std::string context, cluster, user;  // names in it
  std::string server, token, ca_file, tls_server_name;
  std::string as;  // impersonated
  std::vector<std::string> as_groups;
  bool insecure = false;
  std::string request_timeout;  // "5s", "2m", "5"
};

// As kubectl reads --request-timeout: seconds, or a number with a unit; 0 is no bound of its own.
Result<std::int64_t> parse_request_timeout(std::string_view text);

// KUBERNETES_SERVICE_HOST and _PORT, and the service account's files. kNotFound: not in a pod.
Result<Config> in_cluster_config(
    const Environment& environment, const FileReader& read = read_small_file,
    const std::string& account = "/var/run/secrets/kubernetes.io/serviceaccount");

// Several files merged, the first to say something wins. Files that do not exist are skipped, but
// at least one has to, unless the choice says where the server is. A token of the choice replaces
// the user's other secrets but for a client certificate.
Result<Config> kubeconfig(const std::vector<std::string>& files, const ConfigChoice& choice,
                          const FileReader& read = read_small_file);
Result<Config> kubeconfig(const std::vector<std::string>& files, const std::string& context = {},
                          const FileReader& read = read_small_file);

// What a program uses: the file it was told; else KUBECONFIG; else the pod's account, unless the
// choice names something of a file; else $HOME/.kube/config.
Result<Config> find_config(const ConfigChoice& choice, const Environment& environment,
                           const FileReader& read = read_small_file);
Result<Config> find_config(const std::string& told_file, const std::string& context,
                           const Environment& environment,
                           const FileReader& read = read_small_file);

// What may be chosen among; nothing where no file can be read.
struct ConfigNames {
  std::vector<std::string> contexts, clusters, users;
};
ConfigNames config_names(const ConfigChoice& choice, const Environment& environment,
                         const FileReader& read = read_small_file);

}  // namespace berth::kube
