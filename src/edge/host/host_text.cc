#include "edge/host/host_text.h"

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <utility>

namespace berth::host {
namespace {

using model::ContainerPlace;

bool is_hex(char c) {
  return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
}
bool all_hex(std::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), is_hex);
}

std::vector<std::string_view> split(std::string_view text, char at) {
  std::vector<std::string_view> parts;
  while (true) {
    const std::size_t end = text.find(at);
    parts.push_back(text.substr(0, end));
    if (end == std::string_view::npos) return parts;
    text.remove_prefix(end + 1);
  }
}

// "kubepods-burstable-pod1b2c_..._.slice" and "pod1b2c-...": the UID, with dashes. Static pods have
// a hash of 32 digits instead of a UUID.
std::string pod_uid_of(std::string_view part) {
  if (part.ends_with(".slice")) part.remove_suffix(6);
  if (const std::size_t at = part.rfind("-pod"); at != std::string_view::npos) {
    part.remove_prefix(at + 4);
  } else if (part.starts_with("pod")) {
    part.remove_prefix(3);
  } else {
    return {};
  }
  std::string uid(part);
  std::replace(uid.begin(), uid.end(), '_', '-');
  if (uid.size() == 32 && all_hex(uid)) return uid;
  if (uid.size() != 36) return {};
  for (std::size_t i = 0; i < uid.size(); ++i) {
    const bool dash = i == 8 || i == 13 || i == 18 || i == 23;
    if (dash ? uid[i] != '-' : !is_hex(uid[i])) return {};
  }
  return uid;
}

// "cri-containerd-<64 digits>.scope", "crio-...", "docker-...", "<64 digits>". The process that
// watches over a container is none of it.
std::string container_id_of(std::string_view part) {
  if (part.ends_with(".scope")) part.remove_suffix(6);
  if (part.find("conmon") != std::string_view::npos) return {};
  if (const std::size_t dash = part.rfind('-'); dash != std::string_view::npos) {
    part.remove_prefix(dash + 1);
  }
  return part.size() == 64 && all_hex(part) ? std::string(part) : std::string();
}

// From the outermost to the innermost. The first container below a pod is the pod's own.
std::vector<ContainerPlace> places_on(std::string_view path) {
  std::vector<ContainerPlace> found;
  std::string uid;
  for (const std::string_view folder : split(path, '/')) {
    // containerd without systemd's help writes "POD.slice:cri-containerd:ID" as one name.
    for (const std::string_view part : split(folder, ':')) {
      if (std::string pod = pod_uid_of(part); !pod.empty()) {
        uid = std::move(pod);
      } else if (std::string id = container_id_of(part); !uid.empty() && !id.empty()) {
        found.push_back({std::exchange(uid, {}), std::move(id)});
      }
    }
  }
  return found;
}

bool is_key_char(char c) { return (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_'; }

// A shell word without expansions: quotes of both kinds, and backslashes outside single ones.
std::string unquoted(std::string_view word) {
  std::string out;
  char quote = 0;
  for (std::size_t i = 0; i < word.size(); ++i) {
    const char c = word[i];
    if (c == '\\' && quote != '\'' && i + 1 < word.size()) {
      out += word[++i];
    } else if (quote == 0 && (c == '"' || c == '\'')) {
      quote = c;
    } else if (c == quote && quote != 0) {
      quote = 0;
    } else {
      out += c;
    }
  }
  return out;
}

}  // namespace

std::vector<std::string_view> lines_of(std::string_view text) {
  std::vector<std::string_view> lines = split(text, '\n');
  if (lines.back().empty()) lines.pop_back();
  return lines;
}

std::string_view trimmed(std::string_view text) {
  const auto blank = [](char c) { return static_cast<unsigned char>(c) <= ' '; };
  while (!text.empty() && blank(text.front())) text.remove_prefix(1);
  while (!text.empty() && blank(text.back())) text.remove_suffix(1);
  return text;
}

std::optional<std::int64_t> number_of(std::string_view text) {
  text = trimmed(text);
  const bool hex = text.starts_with("0x");
  if (hex) text.remove_prefix(2);
  std::int64_t value = 0;
  const auto [end, failed] =
      std::from_chars(text.data(), text.data() + text.size(), value, hex ? 16 : 10);
  if (failed != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

std::string bus_id_of(std::string_view text) {
  const auto parts = split(text, ':');
  if (parts.size() != 3 || parts[1].size() != 2 || parts[2].size() != 4) return {};
  std::string_view domain = parts[0];
  while (domain.size() > 4 && domain.front() == '0') domain.remove_prefix(1);
  if (domain.size() < 4 || domain.size() > 8 || parts[2][2] != '.') return {};
  if (!all_hex(domain) || !all_hex(parts[1]) || !all_hex(parts[2].substr(0, 2)) ||
      !is_hex(parts[2][3])) {
    return {};
  }
  std::string id = std::string(domain) + ":" + std::string(parts[1]) + ":" + std::string(parts[2]);
  for (char& c : id) {
    if (c >= 'A' && c <= 'F') c = static_cast<char>(c - 'A' + 'a');
  }
  return id;
}

std::optional<std::string> kernel_message(std::string_view record) {
  const std::size_t semicolon = record.find(';');
  if (semicolon == std::string_view::npos) return std::nullopt;
  const auto fields = split(record.substr(0, semicolon), ',');
  if (fields.size() < 4) return std::nullopt;
  const auto priority = number_of(fields[0]);
  if (!priority || *priority < 0 || *priority > 7) return std::nullopt;
  std::string_view text = record.substr(semicolon + 1);
  return std::string(text.substr(0, text.find('\n')));
}

std::vector<ContainerPlace> containers_of_cgroups(std::string_view text) {
  for (const std::string_view line : lines_of(text)) {
    // "hierarchy:controllers:path", and the path may hold colons.
    const std::size_t first = line.find(':');
    if (first == std::string_view::npos) continue;
    const std::size_t second = line.find(':', first + 1);
    if (second == std::string_view::npos) continue;
    std::vector<ContainerPlace> found = places_on(line.substr(second + 1));
    if (found.empty()) continue;
    std::reverse(found.begin(), found.end());
    return found;
  }
  return {};
}

std::map<std::string, std::string> os_release_of(std::string_view text) {
  std::map<std::string, std::string> out;
  for (std::string_view line : lines_of(text)) {
    line = trimmed(line);
    const std::size_t equals = line.find('=');
    if (equals == 0 || equals == std::string_view::npos) continue;
    const std::string_view key = line.substr(0, equals);
    if (!std::all_of(key.begin(), key.end(), is_key_char)) continue;
    out[std::string(key)] = unquoted(line.substr(equals + 1));  // the last one, as a shell has it
  }
  return out;
}

std::map<std::string, int, std::less<>> mig_minors_of(std::string_view text) {
  std::map<std::string, int, std::less<>> out;
  for (const std::string_view line : lines_of(text)) {
    const std::size_t space = line.find(' ');
    if (space == 0 || space == std::string_view::npos) continue;
    const auto minor = number_of(line.substr(space + 1));
    if (!minor || *minor < 0 || *minor > 0xFFFFF) continue;
    out.emplace(line.substr(0, space), static_cast<int>(*minor));
  }
  return out;
}

}  // namespace berth::host
