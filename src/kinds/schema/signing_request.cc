// CertificateSigningRequests: what others may change of them, their rules, what kubectl shows.
//
// The request itself is looked at as far as its wrapping: whether it is a PKCS#10 request, and
// signed, is not. Nobody signs here, and a signer of somebody else checks what it signs.
#include <algorithm>
#include <set>

#include "kinds/schema/columns.h"
#include "kinds/schema/rules.h"
#include "text/base64.h"
#include "text/editor.h"
#include "text/path.h"

namespace berth::sim {

using text::Value;

namespace {

constexpr std::string_view kUsages[] = {"any",
                                        "cert sign",
                                        "client auth",
                                        "code signing",
                                        "content commitment",
                                        "crl sign",
                                        "data encipherment",
                                        "decipher only",
                                        "digital signature",
                                        "email protection",
                                        "encipher only",
                                        "ipsec end system",
                                        "ipsec tunnel",
                                        "ipsec user",
                                        "key agreement",
                                        "key encipherment",
                                        "microsoft sgc",
                                        "netscape sgc",
                                        "ocsp signing",
                                        "s/mime",
                                        "server auth",
                                        "signing",
                                        "timestamping"};
constexpr std::string_view kVerdicts[] = {"Approved", "Denied"};

std::vector<Value> of_type(const Value& object, std::string_view type) {
  std::vector<Value> out;
  for (const Value& condition : at(object, "status.conditions").items()) {
    if (text_at(condition, "type") == type) out.push_back(condition);
  }
  return out;
}

bool is_request(std::string_view base64) {
  const auto pem = text::base64_decode(base64);
  return pem.ok() && pem->find("-----BEGIN CERTIFICATE REQUEST-----") != std::string::npos &&
         pem->find("-----END CERTIFICATE REQUEST-----") != std::string::npos;
}

void rules_of_signer(std::string_view name, const std::string& field, Causes& out) {
  if (name.empty()) return out.add(required_value(field));
  if (name == "kubernetes.io/legacy-unknown") {
    return out.add(
        invalid_text(field, name, "the legacy signerName is not allowed via this API version"));
  }
  const std::size_t slash = name.find('/');
  if (slash == name.npos || name.find('/', slash + 1) != name.npos) {
    return out.add(invalid_text(field, name,
                                "must be a fully qualified domain and path of the form "
                                "'example.com/signer-name'"));
  }
  const std::string_view domain = name.substr(0, slash);
  if (domain.find('.') == domain.npos) {
    out.add(invalid_text(field, domain,
                         "should be a domain with at least two segments separated by dots"));
  }
  for (const std::string_view part : {domain, name.substr(slash + 1)}) {
    if (const std::string wrong = check_dns1123_subdomain(part); !wrong.empty()) {
      out.add(invalid_text(field, part, wrong));
    }
  }
}

void rules_of_conditions(const Value& object, Causes& out) {
  std::set<std::string_view> seen;
  Path path;
  path.child("status");
  each_item(at(object, "status"), "conditions", path, [&](const Value& condition) {
    const std::string_view type = text_at(condition, "type");
    const std::string_view status = text_at(condition, "status");
    if (type.empty()) out.add(required_value(path.with("type")));
    const bool only_true = type == "Approved" || type == "Denied" || type == "Failed";
    if (status.empty()) {
      out.add(required_value(path.with("status")));
    } else if (status != "True" && (only_true || (status != "False" && status != "Unknown"))) {
      out.add(not_supported(path.with("status"), condition["status"],
                            only_true ? std::vector<std::string>{"True"}
                                      : std::vector<std::string>{"False", "True", "Unknown"}));
    }
    if ((type == "Approved" && seen.contains("Denied")) ||
        (type == "Denied" && seen.contains("Approved"))) {
      constexpr const char* kApproved = R"(conditions[{"type": "Approved"}])";
      constexpr const char* kDenied = R"(conditions[{"type": "Denied"}])";
      out.add(invalid_text(
          "status.conditions", '{' + std::string(kApproved) + ", " + kDenied + '}',
          "must specify at most one of: `" + std::string(kApproved) + "`, `" + kDenied + '`'));
    }
    if (!seen.insert(type).second) {
      out.add(duplicate_value(path.with("type"), condition["type"]));
    }
  });
}

}  // namespace

void rules_of_signing_request(const Value& object, Path& path, Causes& out) {
  const Value& spec = at(object, "spec");
  if (!is_request(text_at(spec, "request"))) {
    out.add(invalid_value(path.with("request"), at(spec, "request"),
                          "PEM block type must be CERTIFICATE REQUEST"));
  }
  if (at(spec, "usages").size() == 0) out.add(required_value(path.with("usages")));
  std::set<std::string_view> seen;
  each_item(spec, "usages", path, [&](const Value& usage) {
    if (std::find(std::begin(kUsages), std::end(kUsages), usage.string()) == std::end(kUsages)) {
      out.add(not_supported(path.text(), usage, {std::begin(kUsages), std::end(kUsages)}));
    }
    if (!seen.insert(usage.string()).second) out.add(duplicate_value(path.text(), usage));
  });
  rules_of_signer(text_at(spec, "signerName"), path.with("signerName"), out);
  const auto seconds = at(spec, "expirationSeconds").as_int64();
  if (seconds && *seconds < 600) {
    out.add(invalid_value(path.with("expirationSeconds"), at(spec, "expirationSeconds"),
                          "may not specify a duration less than 600 seconds (10 minutes)"));
  }
  rules_of_conditions(object, out);
}

// A verdict is given once, by those who may approve; a certificate is set once, by who signs.
void signing_request_update(const Value& live, const Value& object, std::string_view subresource,
                            Causes& out) {
  if (!subresource.empty()) rules_of_conditions(object, out);
  for (const std::string_view type : {"Approved", "Denied", "Failed"}) {
    if (of_type(object, type).size() < of_type(live, type).size()) {
      out.add(forbidden_value("status.conditions",
                              "updates may not remove a condition of type " + go_quote(type)));
    }
  }
  for (const std::string_view type : kVerdicts) {
    if (subresource != "approval" && of_type(object, type).size() > of_type(live, type).size()) {
      out.add(forbidden_value("status.conditions",
                              "updates may not add a condition of type " + go_quote(type)));
    }
  }
  const std::string_view before = text_at(live, "status.certificate");
  if (!before.empty() && before != text_at(object, "status.certificate")) {
    out.add(forbidden_value("status.certificate",
                            "updates may not modify existing certificate content"));
  }
}

Value signing_request_for_update(const Value& live, const Value& object,
                                 std::string_view subresource, text::Editor& edit) {
  const Value* spec = live.find("spec");
  const Value* status = live.find("status");
  Value out = spec != nullptr ? edit.with(object, "spec", *spec) : object;
  if (subresource == "approval") {
    const Value conditions = at(object, "status.conditions");
    Value given = status != nullptr ? *status : edit.object({});
    return edit.with(out, "status", edit.with(given, "conditions", conditions));
  }
  if (subresource != "status") return out;
  std::vector<Value> conditions;
  for (const Value& condition : at(object, "status.conditions").items()) {
    const std::string_view type = text_at(condition, "type");
    const std::vector<Value> old = of_type(live, type);
    const bool verdict =
        std::find(std::begin(kVerdicts), std::end(kVerdicts), type) != std::end(kVerdicts);
    const bool keeps = verdict && old.size() == 1 && of_type(object, type).size() == 1;
    conditions.push_back(keeps ? old.front() : condition);
  }
  if (!conditions.empty()) out = edit.with_at(out, "status.conditions", edit.array(conditions));
  return out;
}

void signing_request_cells(const Value& object, const std::string& age, text::JsonWriter& out) {
  std::string state = of_type(object, "Denied").empty() ? "Pending" : "Denied";
  if (state == "Pending" && !of_type(object, "Approved").empty()) state = "Approved";
  if (!of_type(object, "Failed").empty()) state += ",Failed";
  if (!text_at(object, "status.certificate").empty()) state += ",Issued";
  const auto seconds = at(object, "spec.expirationSeconds").as_int64();
  out.value(text_at(object, "metadata.name"));
  out.value(age);
  out.value(or_none(text_at(object, "spec.signerName")));
  out.value(text_at(object, "spec.username"));
  out.value(seconds ? human_duration(*seconds * 1'000'000'000) : "<none>");
  out.value(state);
}

}  // namespace berth::sim
