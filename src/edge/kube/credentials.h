// Who we are to the server, kept fresh: tokens from files, certificates, exec plugins.
//
// Files are read again after a minute; when that fails the last good content is kept. A plugin's
// answer is kept until it expires. A 401 drops what is older than the request that was refused, so
// that many requests refused at once lead to one renewal. Running the plugin is the caller's task
// (edge/kube/curl_transport.cc): needs_plugin(), plugin_call(), plugin_done().
//
// No threads and no clock of its own: one owner, times come in. Errors name file or program.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "edge/kube/config.h"

namespace berth::kube {

// What goes into a request and its connection.
struct Identity {
  std::string authorization;               // "Bearer ...", "Basic ..."; may be empty
  std::vector<std::string> extra_headers;  // whole lines: impersonation
  std::string ca_pem, cert_pem, key_pem;   // may be empty
};

struct PluginCall {
  std::string program;            // a path
  std::vector<std::string> argv;  // with the program's name
  std::vector<std::string> envp;  // "NAME=value"
};

class Credentials {
 public:
  struct Now {
    std::int64_t ticks = 0, wall = 0;
  };
  // environment: what plugins inherit, and the PATH they are looked up in.
  Credentials(Config config, Environment environment, FileReader read = read_small_file);

  const Config& config() const { return config_; }

  bool needs_plugin(Now now) const;
  // allowed: programs that may be run, by path or by name; empty: any.
  Result<PluginCall> plugin_call(const std::vector<std::string>& allowed) const;
  // What it printed; exit_code 0 is good.
  Status plugin_done(Now now, int exit_code, const std::string& printed,
                     const std::string& complained);

  // Only when !needs_plugin().
  Result<Identity> identity(Now now);

  // A request that was sent at that time was answered 401. True: with something newer it may work.
  bool refused(std::int64_t sent_ticks);

 private:
  struct CachedFile {
    std::string content;
    std::int64_t read_at = 0;
    bool good = false;
  };
  Result<std::string> fresh(const std::string& path, std::int64_t ticks);

  const Config config_;
  const Environment environment_;
  const FileReader read_;
  std::map<std::string, CachedFile> files_;
  bool has_plugin_answer_ = false;
  std::string plugin_token_, plugin_cert_, plugin_key_;
  std::int64_t plugin_ticks_ = 0;    // when it was got
  std::int64_t plugin_expires_ = 0;  // wall; 0: never
};

// The KUBERNETES_EXEC_INFO of a plugin.
std::string exec_info(const Config& config, const std::string& ca_pem);

}  // namespace berth::kube
