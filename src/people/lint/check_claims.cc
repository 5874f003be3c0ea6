#include <algorithm>
#include <array>

#include "people/lint/checks.h"

namespace berth::lint {

namespace {

using text::YamlChange;

constexpr std::string_view kDraGroup = "resource.k8s.io";

// What moved from requests[] into requests[].exactly with v1beta2.
constexpr std::array<std::string_view, 8> kExactFields = {
    "deviceClassName", "selectors",   "allocationMode", "count",
    "adminAccess",     "tolerations", "capacity",       "allocateCount"};

bool flat_requests(const Object& object) {
  return object.version == "v1alpha3" || object.version == "v1beta1";
}

void check_request(const Object& object, const Place& request, Reporter& out) {
  if (flat_requests(object)) return;
  std::vector<std::string> moved;
  for (const std::string_view field : kExactFields) {
    if (request.has(field)) moved.emplace_back(field);
  }
  const bool nested = request.has("exactly") || request.has("firstAvailable");
  if (moved.empty()) {
    if (!nested && request.value().is_object()) {
      out.add("dra-request-exactly", request, "the request has neither exactly nor firstAvailable",
              "say what is wanted under exactly: {deviceClassName: ...}");
    }
    return;
  }
  std::optional<Fix> edit;
  if (!nested) {
    YamlChange wrap{.kind = YamlChange::Kind::kWrap, .at = request.path()};
    wrap.key = "exactly";
    wrap.members = moved;
    edit = one_change(wrap);
  }
  out.add("dra-request-exactly", request[moved.front()],
          "found " + moved.front() + " beside the request's name, want it under exactly",
          "put " + moved.front() + " and what belongs to it under exactly:", std::move(edit));
  for (const std::string& field : moved) out.claim(request[field].path());
  out.claim(request["exactly"].path());
}

struct Token {
  enum class Kind : unsigned char { kWord, kString, kSign } kind = Kind::kSign;
  std::size_t begin = 0, end = 0;
  std::string text;
};

std::vector<Token> cel_tokens(std::string_view text) {
  std::vector<Token> out;
  const auto word = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
  };
  for (std::size_t i = 0; i < text.size();) {
    if (text[i] == ' ' || text[i] == '\n' || text[i] == '\t' || text[i] == '\r') {
      ++i;
      continue;
    }
    std::size_t end = i + 1;
    Token::Kind kind = Token::Kind::kSign;
    std::string value;
    if (text[i] == '"' || text[i] == '\'') {
      kind = Token::Kind::kString;
      while (end < text.size() && text[end] != text[i]) {
        if (text[end] == '\\' && end + 1 < text.size()) ++end;
        value += text[end++];
      }
      end = std::min(end + 1, text.size());
    } else if (word(text[i])) {
      kind = Token::Kind::kWord;
      while (end < text.size() && word(text[end])) ++end;
      value = text.substr(i, end - i);
    } else {
      const std::string_view two = text.substr(i, 2);
      if (two == "==" || two == "!=" || two == "&&" || two == "||") ++end;
      value = text.substr(i, end - i);
    }
    out.push_back({kind, i, end, value});
    i = end;
  }
  return out;
}

bool matches_at(const std::vector<Token>& tokens, std::size_t at,
                std::initializer_list<std::string_view> words) {
  for (const std::string_view word : words) {
    if (at >= tokens.size()) return false;
    if (!word.empty() && tokens[at].text != word) return false;
    ++at;
  }
  return true;
}

// A capacity of NVIDIA's GPUs; everything else they publish is an attribute.
bool is_capacity(std::string_view name) {
  return name == "memory" || name == "multiprocessors" || name == "copyEngines" ||
         name == "decoders" || name == "encoders" || name == "jpegEngines" || name == "ofaEngines";
}

// GPUs publish NVML's name: "NVIDIA H100 80GB HBM3", "Tesla T4". One word is never one.
bool is_product_name(std::string_view name) { return name.find(' ') != std::string_view::npos; }

Fix replace_part(const Place& at, const Token& from, const Token& to, std::string text) {
  YamlChange change{.kind = YamlChange::Kind::kReplace, .at = at.path()};
  change.parts.push_back({from.begin, to.end, std::move(text)});
  return one_change(change);
}

void check_expression(const Place& expression, Reporter& out) {
  const std::vector<Token> tokens = cel_tokens(expression.text());
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    if (!matches_at(tokens, i, {"device", ".", "attributes", "[", "", "]", ".", ""})) continue;
    const std::string& name = tokens[i + 7].text;
    if (tokens[i + 4].text != "gpu.nvidia.com") continue;
    if (is_capacity(name)) {
      out.add("dra-cel-capacity", expression,
              "found device.attributes[\"gpu.nvidia.com\"]." + name +
                  ", want device.capacity: it is a capacity of the device",
              "write device.capacity[\"gpu.nvidia.com\"]." + name,
              replace_part(expression, tokens[i + 2], tokens[i + 2], "capacity"));
    }
    if (name != "productName" || !matches_at(tokens, i + 8, {"==", ""})) continue;
    const Token& product = tokens[i + 9];
    if (product.kind != Token::Kind::kString || is_product_name(product.text)) continue;
    const std::string_view whole = expression.text();
    const std::string quoted(whole.substr(product.begin, product.end - product.begin));
    out.add(
        "dra-cel-product", expression,
        "found productName == \"" + product.text + "\", want the full name that the driver reports",
        "write productName.contains(" + quoted + ") or the full name, \"NVIDIA H100 80GB HBM3\"",
        replace_part(expression, tokens[i + 7], product, "productName.contains(" + quoted + ")"));
  }
}

void check_spec(const Object& object, const Place& spec, Reporter& out) {
  for (const Place& request : spec["devices"]["requests"].items()) {
    check_request(object, request, out);
  }
}

void check_pod_claims(const Place& spec, Reporter& out) {
  const std::vector<Place> claims = spec["resourceClaims"].items();
  const std::vector<Place> containers = containers_of(spec);
  std::set<std::string> used, known;
  for (const Place& container : containers) {
    for (const Place& claim : container["resources"]["claims"].items()) {
      used.insert(std::string(claim["name"].text()));
    }
  }
  for (const Place& claim : spec["resources"]["claims"].items()) {
    used.insert(std::string(claim["name"].text()));
  }
  for (const Place& claim : claims) {
    const std::string name(claim["name"].text());
    known.insert(name);
    if (name.empty() || used.contains(name)) continue;
    std::optional<Fix> edit;
    if (spec["containers"].size() == 1) {
      const Place one = spec["containers"][std::size_t{0}];
      const Place list = one["resources"]["claims"];
      const std::string entry = "{\"name\":" + json_text(name) + "}";
      text::YamlPath at = {"resources", "claims"};
      if (list) at.emplace_back("-");
      edit = one_change(put_value(one, std::move(at), list ? entry : "[" + entry + "]"));
    }
    out.add(
        "dra-claim-unused", claim,
        "no container uses the claim " + name + " through resources.claims",
        "add resources: {claims: [{name: " + name + "}]} to the container that needs the device",
        std::move(edit));
  }
  for (const Place& container : containers) {
    for (const Place& claim : container["resources"]["claims"].items()) {
      const std::string name(claim["name"].text());
      if (name.empty() || known.contains(name)) continue;
      out.add("dra-claim-unknown", claim["name"],
              "the container uses the claim " + name + ", which is not in spec.resourceClaims",
              "list the claim under the pod's resourceClaims");
    }
  }
}

}  // namespace

void check_claims(const Object& object, Reporter& out) {
  for (const Place& spec : pod_specs(object)) check_pod_claims(spec, out);
  if (object.group != kDraGroup) return;
  const Place root = object.root();
  if (object.kind == "ResourceClaimTemplate" && root["spec"].has("devices") &&
      !root["spec"].has("spec")) {
    YamlChange wrap{.kind = YamlChange::Kind::kWrap, .at = {"spec"}};
    wrap.key = "spec";
    wrap.members = {"devices"};
    out.add("dra-template-spec", root["spec"]["devices"],
            "found spec.devices, want spec.spec.devices: a template holds the spec of a claim",
            "put devices under spec.spec", one_change(wrap));
    out.claim({"spec", "spec"});
    check_spec(object, root["spec"], out);
  } else if (object.kind == "ResourceClaimTemplate") {
    check_spec(object, root["spec"]["spec"], out);
  } else if (object.kind == "ResourceClaim") {
    check_spec(object, root["spec"], out);
  }
  walk(root["spec"], [&](const Place& place) {
    if (!place.path().empty() && place.key() == "expression" && place.value().is_string()) {
      check_expression(place, out);
    }
    return true;
  });
}

}  // namespace berth::lint
