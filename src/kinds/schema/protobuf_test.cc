#include "kinds/schema/protobuf.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <string>

namespace berth::sim {
namespace {

std::string pb_varint(std::uint64_t value) {
  std::string out;
  for (; value >= 0x80; value >>= 7U) out.push_back(static_cast<char>(value | 0x80U));
  out.push_back(static_cast<char>(value));
  return out;
}
std::string pb_int(unsigned number, std::int64_t value) {
  return pb_varint(number * 8U) + pb_varint(static_cast<std::uint64_t>(value));
}
std::string pb_bytes(unsigned number, const std::string& value) {
  return pb_varint(number * 8U + 2) + pb_varint(value.size()) + value;
}
std::string pb_body(const std::string& version, const std::string& kind, const std::string& raw) {
  return std::string("k8s\0", 4) + pb_bytes(1, pb_bytes(1, version) + pb_bytes(2, kind)) +
         pb_bytes(2, raw) + pb_bytes(3, "") + pb_bytes(4, "");
}
std::string pb_entry(const std::string& key, const std::string& value) {
  return pb_bytes(1, key) + pb_bytes(2, value);
}
std::string pb_named(const std::string& name) { return pb_bytes(1, pb_bytes(1, name)); }

TEST(ProtobufTest, BecomesTheJsonThatGoWrites) {
  struct {
    std::string version, kind, raw, json;
  } const cases[] = {
      // Empty strings and times of metadata are left out, structs without fields are not.
      {"v1", "Namespace",
       pb_bytes(1, pb_bytes(1, "a") + pb_bytes(2, "") + pb_int(7, 0) + pb_bytes(8, "")) +
           pb_bytes(2, "") + pb_bytes(3, pb_bytes(1, "")),
       R"({"apiVersion":"v1","kind":"Namespace","metadata":{"name":"a"},"spec":{},"status":{}})"},
      {"v1", "ConfigMap", pb_named("a") + pb_bytes(2, pb_entry("k", "v")) + pb_int(4, 0),
       R"({"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a"},"data":{"k":"v"},)"
       R"("immutable":false})"},
      {"v1", "Secret", pb_bytes(2, pb_entry("k", std::string("\0\1", 2))) + pb_bytes(3, "Opaque"),
       R"({"apiVersion":"v1","kind":"Secret","data":{"k":"AAE="},"type":"Opaque"})"},
      // A pointer to zero is a value; repeated fields may come in pieces, in any order.
      {"apps/v1", "Deployment",
       pb_bytes(2, pb_int(1, 0)) +
           pb_bytes(1, pb_bytes(14, "x.io/b") + pb_bytes(1, "d") + pb_bytes(14, "x.io/a")),
       R"({"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"d",)"
       R"("finalizers":["x.io/b","x.io/a"]},"spec":{"replicas":0}})"},
      // Volume sources are fields of the volume in JSON; quantities and IntOrString are scalars.
      {"v1", "Pod",
       pb_bytes(2, pb_bytes(1, pb_bytes(1, "v") + pb_bytes(2, pb_bytes(2, pb_bytes(1, "")))) +
                       pb_bytes(2, pb_bytes(1, "c") +
                                       pb_bytes(8, pb_bytes(1, pb_entry("nvidia.com/gpu",
                                                                        pb_bytes(1, "8")))))),
       R"({"apiVersion":"v1","kind":"Pod","spec":{"volumes":[{"name":"v","emptyDir":{}}],)"
       R"("containers":[{"name":"c","resources":{"limits":{"nvidia.com/gpu":"8"}}}]}})"},
      // A schema, or what stands in its place; doubles are eight bytes.
      {"apiextensions.k8s.io/v1", "CustomResourceDefinition",
       pb_bytes(
           2,
           pb_bytes(
               7, pb_int(2, 1) +
                      pb_bytes(4, pb_bytes(1, pb_varint(9 * 8 + 1) +
                                                  std::string("\0\0\0\0\0\0\xf8?", 8) +
                                                  pb_bytes(20, pb_bytes(1, "[1]")) +
                                                  pb_bytes(24, pb_bytes(1, pb_bytes(5, "x"))) +
                                                  pb_bytes(30, pb_int(1, 0)) +
                                                  pb_bytes(33, pb_int(1, 1) + pb_bytes(2, "")) +
                                                  pb_bytes(32, pb_entry("k", pb_bytes(2, "p"))))))),
       R"({"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition","spec":)"
       R"({"versions":[{"served":true,"schema":{"openAPIV3Schema":{"maximum":1.5,"enum":[[1]],)"
       R"("items":{"type":"x"},"additionalProperties":false,"dependencies":{"k":["p"]},)"
       R"("additionalItems":{}}}}]}})"},
      {"policy/v1", "PodDisruptionBudget",
       pb_bytes(2, pb_bytes(1, pb_int(1, 1) + pb_bytes(3, "50%")) + pb_bytes(3, pb_int(2, -1))),
       R"({"apiVersion":"policy/v1","kind":"PodDisruptionBudget","spec":)"
       R"({"minAvailable":"50%","maxUnavailable":-1}})"},
      {"coordination.k8s.io/v1", "Lease",
       pb_bytes(2, pb_bytes(3, pb_int(1, 1'767'225'600) + pb_int(2, 1'234'000))),
       R"({"apiVersion":"coordination.k8s.io/v1","kind":"Lease",)"
       R"("spec":{"acquireTime":"2026-01-01T00:00:00.001234Z"}})"},
      {"policy/v1", "Eviction", pb_named("p") + pb_bytes(2, pb_int(1, 0)),
       R"({"apiVersion":"policy/v1","kind":"Eviction","metadata":{"name":"p"},)"
       R"("deleteOptions":{"gracePeriodSeconds":0}})"},
      // Options stand in any version; unknown fields are skipped.
      {"apps/v1", "DeleteOptions", pb_bytes(4, "Foreground") + pb_int(99, 7),
       R"({"apiVersion":"apps/v1","kind":"DeleteOptions","propagationPolicy":"Foreground"})"},
      {"apps/v1", "ControllerRevision", pb_bytes(2, pb_bytes(1, R"({"a": [1]})")) + pb_int(3, 2),
       R"({"apiVersion":"apps/v1","kind":"ControllerRevision","data":{"a":[1]},"revision":2})"},
  };
  for (const auto& one : cases) {
    const Result<std::string> json = protobuf_to_json(pb_body(one.version, one.kind, one.raw));
    ASSERT_TRUE(json.ok()) << one.kind << ": " << json.error().to_string();
    EXPECT_EQ(*json, one.json);
  }
}

TEST(ProtobufTest, RefusesWhatItCannotRead) {
  struct {
    std::string body, message;
  } const cases[] = {
      {"{}", "does not begin with k8s"},
      {"", "does not begin with k8s"},
      {pb_body("example.com/v1", "Lamp", ""), "kind Lamp of example.com/v1 is not built in"},
      {std::string("k8s\0", 4) + "\x0a\x7f", "ends inside of a field"},
      {pb_body("v1", "ConfigMap", pb_int(1, 5)), "a field has another type"},
      {pb_body("v1", "ConfigMap",
               std::string("\x0a\x05"
                           "ab")),
       "ends inside of a field"},
      {pb_body("apps/v1", "ControllerRevision", pb_bytes(2, pb_bytes(1, "{"))), "data"},
  };
  for (const auto& one : cases) {
    const Result<std::string> json = protobuf_to_json(one.body);
    ASSERT_FALSE(json.ok()) << *json;
    EXPECT_NE(json.error().to_string().find(one.message), std::string::npos)
        << json.error().to_string();
  }
  // Any cut of a good body is refused or read; never a crash.
  const std::string whole =
      pb_body("v1", "ConfigMap", pb_named("a") + pb_bytes(2, pb_entry("k", "v")));
  for (std::size_t size = 0; size < whole.size(); ++size) {
    (void)protobuf_to_json(whole.substr(0, size));
  }
}

}  // namespace
}  // namespace berth::sim
