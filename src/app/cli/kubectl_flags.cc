#include "app/cli/kubectl_flags.h"

#include <algorithm>

namespace berth::app {

namespace {

constexpr KubectlFlag kFlags[] = {
    {"-n"},
    {"--namespace"},
    {"-A", false},
    {"--all-namespaces", false},
    {"--context"},
    {"--kubeconfig", true, true},
    {"--cluster"},
    {"--user"},
    {"-s"},
    {"--server"},
    {"--token"},
    {"--as"},
    {"--as-group"},
    {"--certificate-authority", true, true},
    {"--tls-server-name"},
    {"--insecure-skip-tls-verify", false},
    {"--request-timeout"},
    {"-v"},
    {"--v"},
};

// "-n=team" is "-n team", as kubectl takes it; what comes after "--" is somebody else's.
std::vector<std::string> as_two_words(const std::vector<std::string>& arguments) {
  std::vector<std::string> out;
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    const std::string& word = arguments[i];
    if (word == "--") {
      out.insert(out.end(), arguments.begin() + static_cast<std::ptrdiff_t>(i), arguments.end());
      break;
    }
    const bool joined = word.size() > 2 && word[0] == '-' && word[1] != '-' && word[2] == '=';
    out.push_back(joined ? word.substr(0, 2) : word);
    if (joined) out.push_back(word.substr(3));
  }
  return out;
}

}  // namespace

std::span<const KubectlFlag> kubectl_flags() { return kFlags; }

std::vector<std::string> command_first(const std::vector<std::string>& given) {
  std::vector<std::string> arguments = as_two_words(given);
  std::size_t at = 0;
  while (at < arguments.size() && arguments[at].starts_with('-')) {
    const std::string& word = arguments[at];
    const std::size_t equals = word.find('=');
    const auto flag = std::find_if(
        std::begin(kFlags), std::end(kFlags),
        [&](const KubectlFlag& known) { return known.name == word.substr(0, equals); });
    if (flag == std::end(kFlags)) return arguments;
    at += flag->value && equals == std::string::npos ? 2 : 1;
  }
  if (at == 0 || at >= arguments.size()) return arguments;
  const auto command = arguments.begin() + static_cast<std::ptrdiff_t>(at);
  std::vector<std::string> out = {*command};
  out.insert(out.end(), arguments.begin(), command);
  out.insert(out.end(), command + 1, arguments.end());
  return out;
}

void set_kubectl_flag(std::string_view name, const std::string& value, kube::ConfigChoice& choice) {
  const std::pair<std::string_view, std::string kube::ConfigChoice::*> kFields[] = {
      {"--context", &kube::ConfigChoice::context},
      {"--kubeconfig", &kube::ConfigChoice::kubeconfig},
      {"--cluster", &kube::ConfigChoice::cluster},
      {"--user", &kube::ConfigChoice::user},
      {"-s", &kube::ConfigChoice::server},
      {"--server", &kube::ConfigChoice::server},
      {"--token", &kube::ConfigChoice::token},
      {"--as", &kube::ConfigChoice::as},
      {"--certificate-authority", &kube::ConfigChoice::ca_file},
      {"--tls-server-name", &kube::ConfigChoice::tls_server_name},
      {"--request-timeout", &kube::ConfigChoice::request_timeout},
  };
  for (const auto& [flag, field] : kFields) {
    if (flag == name) choice.*field = value;
  }
  if (name == "--as-group") choice.as_groups.push_back(value);
  if (name == "--insecure-skip-tls-verify") choice.insecure = true;
}

}  // namespace berth::app
