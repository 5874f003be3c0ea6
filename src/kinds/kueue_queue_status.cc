#include "kinds/kueue_queue_status.h"

#include <algorithm>

#include "kinds/resources.h"
#include "text/json.h"
#include "text/json_writer.h"
#include "text/path.h"
#include "text/rfc3339.h"

namespace berth::kinds {

using text::JsonWriter;
using text::Value;

namespace {

void write_flavors(JsonWriter& out, std::string_view name, const QueueCounts& counts,
                   const std::vector<model::ResourceGroup>& groups, bool used, bool borrowed) {
  out.array(name, [&] {
    for (const model::ResourceGroup& group : groups) {
      for (const model::FlavorQuota& quota : group.flavors) {
        out.object([&] {
          out.field("name", quota.flavor);
          out.array("resources", [&] {
            for (const model::ResourceQuota& resource : quota.resources) {
              std::int64_t amount = 0;
              if (const auto f = counts.use.find(quota.flavor); f != counts.use.end()) {
                if (const auto r = f->second.find(resource.resource); r != f->second.end()) {
                  amount = used ? r->second.second : r->second.first;
                }
              }
              out.object([&] {
                out.field("name", resource.resource);
                out.field("total", amount_text(resource.resource, amount));
                if (borrowed) {
                  const std::int64_t over = std::max<std::int64_t>(0, amount - resource.nominal);
                  out.field("borrowed", amount_text(resource.resource, over));
                }
              });
            }
          });
        });
      }
    }
  });
}

bool says_already(const Value* status, const Value& wanted) {
  if (status == nullptr) return false;
  for (const text::Member& member : wanted.members()) {
    const Value* has = status->find(member.key);
    if (has == nullptr || !text::equal(*has, member.value)) return false;
  }
  return true;
}

}  // namespace

std::string queue_status_patch(const Value& queue, const QueueCounts& counts,
                               const std::vector<model::ResourceGroup>& groups, bool cluster_queue,
                               std::string_view inactive, std::int64_t now_ns) {
  const Value* status = queue.find("status");
  const std::size_t colon = inactive.find(": ");
  const std::string_view reason = inactive.empty() ? "Ready" : inactive.substr(0, colon);
  const std::string_view message = inactive.empty()                  ? "Can admit new workloads"
                                   : colon == std::string_view::npos ? inactive
                                                                     : inactive.substr(colon + 2);
  const std::string_view word = inactive.empty() ? "True" : "False";
  std::string since = text::format_whole_second(now_ns);
  if (const Value* list = find(status, "conditions")) {
    for (const Value& c : list->items()) {
      if (text_at(c, "type") == "Active" && text_at(c, "status") == word) {
        since = text_at(c, "lastTransitionTime");
      }
    }
  }
  JsonWriter out;
  out.object([&] {
    out.field("pendingWorkloads", counts.pending);
    out.field("reservingWorkloads", counts.reserving);
    out.field("admittedWorkloads", counts.admitted);
    write_flavors(out, "flavorsReservation", counts, groups, false, cluster_queue);
    write_flavors(out, "flavorsUsage", counts, groups, true, cluster_queue);
    if (counts.weighted_share) {
      out.object("fairSharing", [&] { out.field("weightedShare", *counts.weighted_share); });
    }
    out.array("conditions", [&] {
      out.object([&] {
        out.field("type", "Active");
        out.field("status", word);
        out.field("reason", reason);
        out.field("message", message);
        out.field("lastTransitionTime", since);
      });
    });
  });
  std::string wanted = std::move(out).take();
  const auto document = text::parse_json(wanted);
  if (document.ok() && says_already(status, document->root())) return {};
  return R"({"status":)" + wanted + "}";
}

}  // namespace berth::kinds
