#include "kinds/pod_writes.h"

#include <fmt/format.h>

#include <map>

#include "kinds/queue_marks.h"
#include "text/json_writer.h"
#include "text/rfc3339.h"

namespace berth::kinds {

using text::JsonWriter;

std::string gpus_text(const std::vector<int>& gpus) {
  return fmt::format("{}", fmt::join(gpus, ","));
}

std::string binding_body(std::string_view ns, std::string_view name, const BindTo& to) {
  JsonWriter out;
  out.object([&] {
    out.field("apiVersion", "v1");
    out.field("kind", "Binding");
    out.object("metadata", [&] {
      out.field("name", name);
      out.field("namespace", ns);
      if (!to.uid.empty()) out.field("uid", to.uid);
      if (!to.gpus.empty() || !to.charged.empty()) {
        out.object("annotations", [&] {
          if (!to.gpus.empty()) out.field("berth.dev/gpus", gpus_text(to.gpus));
          if (!to.charged.empty()) out.field(kChargedAnnotation, to.charged);
        });
      }
    });
    out.object("target", [&] {
      out.field("apiVersion", "v1");
      out.field("kind", "Node");
      out.field("name", to.node);
    });
  });
  return std::move(out).take();
}

std::string pod_condition_patch(std::string_view type, std::string_view status,
                                std::string_view reason, std::string_view message,
                                std::int64_t now_ns) {
  JsonWriter out;
  out.object([&] {
    out.object("status", [&] {
      out.array("conditions", [&] {
        out.object([&] {
          out.field("type", type);
          out.field("status", status);
          out.field("reason", reason);
          out.field("message", message);
          out.field("lastTransitionTime", text::format_whole_second(now_ns));
        });
      });
    });
  });
  return std::move(out).take();
}

std::string pod_start_patch(const std::vector<const model::FlavorSpec*>& flavors) {
  JsonWriter out;
  out.object([&] {
    out.object("spec", [&] {
      out.array("schedulingGates", [&] {
        for (const std::string_view gate :
             {"kueue.x-k8s.io/admission", "kueue.x-k8s.io/topology"}) {
          out.object([&] {
            out.field("$patch", "delete");
            out.field("name", gate);
          });
        }
      });
      bool any = false;
      for (const model::FlavorSpec* flavor : flavors) any = any || !flavor->node_labels.empty();
      if (any) {
        out.object("nodeSelector", [&] {
          std::map<std::string, std::string> selector;
          for (const model::FlavorSpec* flavor : flavors) {
            for (const auto& [key, value] : flavor->node_labels) selector[key] = value;
          }
          for (const auto& [key, value] : selector) out.field(key, value);
        });
      }
    });
  });
  return std::move(out).take();
}

}  // namespace berth::kinds
