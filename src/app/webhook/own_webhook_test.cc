// The webhook's configuration that the program makes by itself, and the one that is shipped as a
// manifest, ask the API server for the same.
#include "app/webhook/own_webhook.h"

#include <gtest/gtest.h>

#include "app/files.h"
#include "text/json.h"
#include "text/yaml.h"

namespace berth::app {
namespace {

// The only webhook of a MutatingWebhookConfiguration.
const text::Value* hook_of(const text::Value& object) {
  const text::Value* kind = object.find("kind");
  if (kind == nullptr || kind->string() != "MutatingWebhookConfiguration") return nullptr;
  const text::Value* hooks = object.find("webhooks");
  if (hooks == nullptr || hooks->items().size() != 1) return nullptr;
  return &hooks->items().front();
}

TEST(OwnWebhook, IsTheOneOfTheManifests) {
  const Result<std::string> shipped = read_file(BERTH_SOURCE_ROOT "/deploy/berth.yaml");
  ASSERT_TRUE(shipped.ok()) << shipped.error().to_string();
  const auto documents = text::parse_yaml(*shipped);
  ASSERT_TRUE(documents.ok()) << documents.error().to_string();
  const text::Value* manifest = nullptr;
  for (const text::Document& one : *documents) {
    if (const text::Value* hook = hook_of(one.root())) manifest = hook;
  }
  ASSERT_NE(manifest, nullptr);

  const auto made = text::parse_json(webhook_configuration(
      {.url = "https://127.0.0.1:9443/mutate", .ca_bundle_base64 = "", .manage_all = false}));
  ASSERT_TRUE(made.ok()) << made.error().to_string();
  const text::Value* own = hook_of(made->root());
  ASSERT_NE(own, nullptr);
  EXPECT_EQ(own->members().size(), manifest->members().size());
  for (const text::Member& member : own->members()) {
    if (member.key == "clientConfig") continue;  // a URL here, a Service there
    const text::Value* other = manifest->find(member.key);
    ASSERT_NE(other, nullptr) << member.key;
    EXPECT_TRUE(text::equal(member.value, *other)) << member.key;
  }
}

}  // namespace
}  // namespace berth::app
