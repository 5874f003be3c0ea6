// What every namespace has: the ServiceAccount `default` and the ConfigMap `kube-root-ca.crt`. Made
// with the namespace, before whoever made it is answered; made again when somebody deletes them,
// and put right when somebody changes the certificate. In a cluster of Kubernetes two controllers
// do it.
#include "embedded/api/namespaces.h"
#include "embedded/api/server.h"
#include "text/json_writer.h"
#include "text/path.h"

namespace berth::sim::api {

namespace {

constexpr std::string_view kAccount = "default";
constexpr std::string_view kRootCa = "kube-root-ca.crt";
constexpr std::string_view kFile = "ca.crt";

std::string root_ca_json(const std::string& pem) {
  text::JsonWriter out;
  out.object([&] {
    out.object("metadata", [&] {
      out.field("name", kRootCa);
      out.object("annotations", [&] {
        out.field("kubernetes.io/description",
                  "Contains a CA bundle that can be used to verify the kube-apiserver when using "
                  "internal endpoints such as the internal service IP or kubernetes.default.svc. "
                  "No other usage is guaranteed across distributions of Kubernetes clusters.");
      });
    });
    out.object("data", [&] { out.field(kFile, pem); });
  });
  return std::move(out).take();
}

}  // namespace

void Namespaces::furnish(const std::string& name) {
  const Shelf* namespaces = server_.storage.find_shelf("namespaces");
  const ObjectPtr home = namespaces == nullptr ? nullptr : namespaces->latest(name);
  if (!home || home->terminating || server_.storage.broken()) return;
  server_.create_basic("", "serviceaccounts", name, R"({"metadata":{"name":"default"}})");
  server_.create_basic("", "configmaps", name, root_ca_json(server_.options.root_ca_pem));
  right_root_ca(name);  // a server of before may have had another
}

void Namespaces::right_root_ca(const std::string& ns) {
  server_.rewrite(*server_.storage.find_shelf("configmaps"), object_key(ns, kRootCa),
                  [this](text::Editor& edit, const Value& map) -> std::optional<Value> {
                    const Value& data = map["data"];
                    if (data.size() == 1 && data[kFile].string() == server_.options.root_ca_pem) {
                      return std::nullopt;
                    }
                    return edit.with(
                        map, "data",
                        edit.object({{kFile, edit.string(server_.options.root_ca_pem)}}));
                  });
}

void Namespaces::furnish_all() {
  const Shelf* namespaces = server_.storage.find_shelf("namespaces");
  std::vector<std::string> names;
  for (const auto& [name, entry] : namespaces->entries) names.push_back(name);
  server_.in_slices<std::string>(std::move(names),
                                 [this](const std::string& name) { furnish(name); });
}

void Namespaces::changed(Shelf& shelf, const Change& change) {
  const Object& now = *change.now;
  const bool gone = change.type == Change::Type::kDeleted;
  if (shelf.name == "namespaces") {
    if (change.type == Change::Type::kAdded) furnish(now.name);
    return;
  }
  const bool certificate = shelf.name == "configmaps" && now.name == kRootCa;
  if (!certificate && !(shelf.name == "serviceaccounts" && now.name == kAccount)) return;
  if (gone) return server_.later([this, ns = now.ns] { furnish(ns); });
  if (certificate) right_root_ca(now.ns);
}

}  // namespace berth::sim::api
