#include "edge/kube/credentials.h"

#include <unistd.h>

#include <algorithm>

#include "text/base64.h"
#include "text/escape.h"
#include "text/json.h"
#include "text/json_writer.h"
#include "text/path.h"
#include "text/rfc3339.h"

namespace berth::kube {
namespace {

constexpr std::int64_t kReadAgain = 60'000'000'000;
constexpr std::int64_t kLeeway = 10'000'000'000;  // renewed so long before it is too old

std::string without_blanks(const std::string& text) {
  constexpr std::string_view kBlanks = " \t\r\n";
  const std::size_t first = text.find_first_not_of(kBlanks);
  if (first == std::string::npos) return "";
  return text.substr(first, text.find_last_not_of(kBlanks) - first + 1);
}

// A header's value must not smuggle in another header.
bool is_header_safe(const std::string& text) {
  return std::none_of(text.begin(), text.end(), [](char c) {
    return static_cast<unsigned char>(c) < 0x20 || static_cast<unsigned char>(c) == 0x7f;
  });
}

std::string tail_of(const std::string& complained) {
  constexpr std::size_t kShown = 400;
  std::string tail = without_blanks(complained);
  if (tail.size() > kShown) tail = "..." + tail.substr(tail.size() - kShown);
  return text::terminal_safe(tail);
}

std::string look_up(const std::string& command, const Environment& environment) {
  if (command.find('/') != std::string::npos) return command;
  auto path = environment.find("PATH");
  std::string folders = path == environment.end() ? "/usr/local/bin:/usr/bin:/bin" : path->second;
  for (std::size_t from = 0; from <= folders.size();) {
    std::size_t colon = std::min(folders.find(':', from), folders.size());
    std::string candidate = folders.substr(from, colon - from) + "/" + command;
    if (candidate.starts_with('/') && ::access(candidate.c_str(), X_OK) == 0) return candidate;
    from = colon + 1;
  }
  return {};
}

}  // namespace

std::string exec_info(const Config& config, const std::string& ca_pem) {
  text::JsonWriter out;
  out.object([&] {
    out.field("apiVersion", config.exec->api_version);
    out.field("kind", "ExecCredential");
    out.object("spec", [&] {
      out.field("interactive", false);
      if (config.exec->provide_cluster_info) {
        out.object("cluster", [&] {
          out.field("server", config.server);
          if (!config.tls_server_name.empty()) out.field("tls-server-name", config.tls_server_name);
          if (config.insecure) out.field("insecure-skip-tls-verify", true);
          if (!ca_pem.empty()) out.field("certificate-authority-data", text::base64_encode(ca_pem));
          if (!config.proxy_url.empty()) out.field("proxy-url", config.proxy_url);
          if (!config.exec->cluster_config.empty()) {
            out.key("config");
            out.raw(config.exec->cluster_config);
          }
        });
      }
    });
  });
  return std::move(out).take();
}

Credentials::Credentials(Config config, Environment environment, FileReader read)
    : config_(std::move(config)), environment_(std::move(environment)), read_(std::move(read)) {}

Result<std::string> Credentials::fresh(const std::string& path, std::int64_t ticks) {
  CachedFile& file = files_[path];
  if (file.good && ticks - file.read_at < kReadAgain - kLeeway) return file.content;
  auto content = read_(path);
  if (content.ok()) {
    file = {std::move(*content), ticks, true};
  } else if (!file.good) {
    return std::move(content).error();
  }
  return file.content;
}

// ---- plugins -------------------------------------------------------------------------------

bool Credentials::needs_plugin(Now now) const {
  if (!config_.exec || !config_.token.empty() || !config_.token_file.empty()) return false;
  if (!has_plugin_answer_) return true;
  return plugin_expires_ != 0 && now.wall >= plugin_expires_;
}

Result<PluginCall> Credentials::plugin_call(const std::vector<std::string>& allowed) const {
  const ExecPlugin& exec = *config_.exec;
  PluginCall call;
  call.program = look_up(exec.command, environment_);
  if (call.program.empty()) {
    std::string hint = exec.install_hint.empty() ? "" : ": " + exec.install_hint;
    return Error(Code::kNotFound, "credential plugin \"" + exec.command + "\" is not installed" +
                                      text::terminal_safe(hint));
  }
  auto matches = [&](const std::string& name) {
    return name == call.program || name == exec.command;
  };
  if (!allowed.empty() && std::none_of(allowed.begin(), allowed.end(), matches)) {
    return invalid("credential plugin \"" + call.program + "\" is not among those allowed");
  }
  call.argv.push_back(exec.command);
  call.argv.insert(call.argv.end(), exec.args.begin(), exec.args.end());
  Environment environment = environment_;
  for (const auto& [name, value] : exec.env) environment[name] = value;
  std::string ca = config_.ca_data;
  if (ca.empty() && !config_.ca_file.empty() && exec.provide_cluster_info) {
    BERTH_TRY(ca, read_(config_.ca_file));
  }
  environment["KUBERNETES_EXEC_INFO"] = exec_info(config_, ca);
  for (const auto& [name, value] : environment) call.envp.push_back(name + "=" + value);
  return call;
}

Status Credentials::plugin_done(Now now, int exit_code, const std::string& printed,
                                const std::string& complained) {
  const std::string who = "credential plugin \"" + config_.exec->command + "\"";
  if (exit_code != 0) {
    std::string tail = tail_of(complained);
    return Error(Code::kUnavailable, who + " failed with " + std::to_string(exit_code) +
                                         (tail.empty() ? "" : ": " + tail));
  }
  auto answer = text::parse_json(without_blanks(printed));
  if (!answer.ok()) return std::move(answer).context(who).error();
  const text::Value& root = answer->root();
  const text::Value* kind = root.find("kind");
  const text::Value* version = root.find("apiVersion");
  if (!kind || kind->string() != "ExecCredential")
    return invalid(who + ": kind: want ExecCredential");
  if (!version || version->string() != config_.exec->api_version) {
    return invalid(who + ": apiVersion: want " + config_.exec->api_version);
  }
  std::string token(text_at(root, "status.token"));
  std::string cert(text_at(root, "status.clientCertificateData"));
  std::string key(text_at(root, "status.clientKeyData"));
  if (token.empty() && cert.empty()) {
    return invalid(who + ": status: want a token or clientCertificateData");
  }
  if (cert.empty() != key.empty()) {
    return invalid(who + ": status: clientCertificateData and clientKeyData belong together");
  }
  std::int64_t expires = 0;
  if (auto text = text_at(root, "status.expirationTimestamp"); !text.empty()) {
    auto parsed = text::parse_rfc3339(text);
    if (!parsed.ok()) return std::move(parsed).context(who + ": expirationTimestamp").error();
    expires = std::max<std::int64_t>(*parsed, 1);  // 0 would be never
    if (expires - now.wall > 2 * kLeeway) expires -= kLeeway;
  }
  plugin_token_ = std::move(token);
  plugin_cert_ = std::move(cert);
  plugin_key_ = std::move(key);
  plugin_expires_ = expires;
  plugin_ticks_ = now.ticks;
  has_plugin_answer_ = true;
  return {};
}

// ---- what is sent --------------------------------------------------------------------------

Result<Identity> Credentials::identity(Now now) {
  Identity out;
  std::string token = config_.token;
  if (!config_.token_file.empty()) {
    auto read = fresh(config_.token_file, now.ticks);
    if (read.ok() && !without_blanks(*read).empty()) {
      token = without_blanks(*read);
    } else if (token.empty()) {
      return read.ok() ? invalid(config_.token_file + ": empty") : std::move(read).error();
    }
  }
  if (token.empty()) token = plugin_token_;
  if (!token.empty()) {
    if (!is_header_safe(token)) return invalid("the token holds control characters");
    out.authorization = "Bearer " + token;
  } else if (!config_.username.empty()) {
    out.authorization = "Basic " + text::base64_encode(config_.username + ":" + config_.password);
  }
  if (!config_.impersonate_user.empty()) {
    out.extra_headers.push_back("Impersonate-User: " + config_.impersonate_user);
    for (const std::string& group : config_.impersonate_groups) {
      out.extra_headers.push_back("Impersonate-Group: " + group);
    }
    for (const std::string& line : out.extra_headers) {
      if (!is_header_safe(line)) return invalid("as: holds control characters");
    }
  }
  out.ca_pem = config_.ca_data;
  if (out.ca_pem.empty() && !config_.ca_file.empty()) {
    BERTH_TRY(out.ca_pem, fresh(config_.ca_file, now.ticks));
  }
  out.cert_pem = config_.cert_data.empty() ? plugin_cert_ : config_.cert_data;
  out.key_pem = config_.key_data.empty() ? plugin_key_ : config_.key_data;
  if (config_.cert_data.empty() && !config_.cert_file.empty()) {
    BERTH_TRY(out.cert_pem, fresh(config_.cert_file, now.ticks));
  }
  if (config_.key_data.empty() && !config_.key_file.empty()) {
    BERTH_TRY(out.key_pem, fresh(config_.key_file, now.ticks));
  }
  return out;
}

bool Credentials::refused(std::int64_t sent_ticks) {
  bool hope = false;
  if (has_plugin_answer_) {
    hope = true;
    if (plugin_ticks_ <= sent_ticks) has_plugin_answer_ = false;  // else it is newer already
  }
  if (!config_.token_file.empty()) {
    CachedFile& file = files_[config_.token_file];
    hope = true;
    if (file.read_at <= sent_ticks) file.read_at = sent_ticks - 2 * kReadAgain;
  }
  return hope;
}

}  // namespace berth::kube
