// What a command for people looks at: a cluster that answers, files, or a saved snapshot.
//
// A snapshot is a List of objects as the API server gave them, with the time it was taken
// (metadata.annotations["berth.dev/taken-at"] of the List); -f reads it as it reads any manifest.
// Where all of the input is such a List it is read as a live cluster is: Jobs make no pods of their
// own, and unbound pods of other schedulers do not count. A caller who may not list a kind, or not
// in all namespaces, gets what he may see, and unseen says what is missing: commands print "partial
// view". Everything is read within bounds.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "app/cli/cli.h"
#include "base/result.h"
#include "edge/kube/config.h"
#include "kinds/manifest.h"
#include "text/value.h"

namespace berth::app {

// Which cluster: edge/kube/config.h.
struct ViewOptions : kube::ConfigChoice {
  std::vector<std::string> files;  // empty: the cluster
  std::string ns;                  // empty: the context's, else "default"
  bool all_namespaces = false;
  std::string now;  // RFC 3339; empty: when the snapshot was taken, else the clock
  std::vector<std::string> scheduler_names = {"berth"};  // whose unbound pods count in a cluster
  bool for_why = false;                          // of a cluster: what only why reads as well
  std::string agent_namespace = "berth-system";  // where berth's own agents run, for gpus alone
};

// Of an object: what evidence and conditions need, and the model does not keep.
struct ObjectFacts {
  std::string api_version, kind, ns, name, uid, resource_version;
  const text::Value* value = nullptr;  // the whole object, in ClusterView::documents
};

struct ClusterView {
  kinds::Inputs inputs;
  std::int64_t now_ns = 0;
  std::string ns;                    // the namespace that names without one are in
  std::string source;                // "cluster https://127.0.0.1:6443", "3 files"
  bool live = false;                 // a cluster that answers, or a snapshot of one
  bool saved = false;                // from files
  std::vector<ObjectFacts> objects;  // every object, by kind, namespace, name and version
  std::vector<std::shared_ptr<const text::Document>> documents;
  std::vector<std::string> unseen;  // "pods in other namespaces", "clusterqueues.kueue.x-k8s.io"
  std::vector<std::string> absent;  // kinds the cluster does not have; empty for plain files
  std::string server_version;       // "v1.37.0", or empty

  // Cluster-scoped objects have no namespace; in files a namespaced one without is in "default".
  // Of equal names in several API groups the first by api_version. O(log n).
  const ObjectFacts* find(std::string_view kind, std::string_view space,
                          std::string_view name) const;
  std::span<const ObjectFacts> of_kind(std::string_view kind) const;  // by namespace and name

  // There may be more of what than was seen: "nodes", "clusterqueues.kueue.x-k8s.io".
  bool hides(std::string_view what) const;
  // An error that says so: "there are none" would not be true.
  Status sees(std::string_view what) const;
};

// Errors are for people: what could not be reached or read, and what to do.
Result<ClusterView> look(const ViewOptions& options, Terminal& terminal);

// The snapshot of a cluster, as JSON, without Secrets (app/views/snapshot_text.h).
Result<std::string> snapshot_of(const ViewOptions& options, bool arguments, Terminal& terminal);

}  // namespace berth::app
