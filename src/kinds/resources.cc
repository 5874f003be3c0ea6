#include "kinds/resources.h"

#include <algorithm>
#include <map>

#include "kinds/names.h"
#include "text/path.h"

namespace berth::kinds {

namespace {

using model::Amounts;
using text::Decoder;
using text::Quantity;
using text::Value;

using Quantities = std::map<std::string, Quantity, std::less<>>;

constexpr std::string_view kGpu = "nvidia.com/gpu";

struct RawResources {
  Quantities requests, limits;
};

void read_quantities(const Value& v, Quantities& out, Decoder& d) {
  if (!v.is_object()) return d.mismatch(v, "an object");
  for (const text::Member& member : v.members()) {
    Decoder::Step step(d, member.key);
    if (!is_qualified_name(member.key)) {
      d.error(member.value, quoted(member.key), "the name of a resource");
      continue;
    }
    const std::size_t before = d.errors();
    Quantity quantity;
    decode(member.value, quantity, d);
    std::int64_t ignored = 0;
    if (d.errors() != before || !to_amount(member.value, member.key, quantity, ignored, d)) {
      // A pod that runs counts even so: too much as the most there is, GPUs as at least one.
      const bool unknown = quantity.is_zero() || quantity.is_negative();
      if (unknown && !is_gpu_resource(member.key)) continue;
      if (unknown) quantity = Quantity::from_units(1);
    } else if (is_exact_resource(member.key) && !quantity.is_integer()) {
      d.mismatch(member.value, member.key == kGpu
                                   ? "a whole number (for a part of a GPU use the annotation "
                                     "gpu-fraction)"
                                   : "a whole number");
    }
    out.insert_or_assign(std::string(member.key), quantity);
  }
}

constexpr text::Field<RawResources> kResourceFields[] = {
    text::field<&RawResources::limits, read_quantities>("limits"),
    text::field<&RawResources::requests, read_quantities>("requests"),
    text::skip<RawResources>("claims"),
};

// What the API server refuses about requests and limits together.
void check_pair(const Value& v, const RawResources& raw, Decoder& d) {
  Decoder::Step step(d, "requests");
  for (const auto& [name, request] : raw.requests) {
    const Value* found = at(v, "requests").find(name);
    const Value& place = found == nullptr ? v : *found;
    Decoder::Step item(d, name);
    const auto limit = raw.limits.find(name);
    const bool exact = is_exact_resource(name);
    if (limit == raw.limits.end()) {
      const Value* written = at(v, "limits").find(name);
      if (exact && written == nullptr) {
        d.error(place, "a request without a limit", "the same amount under limits");
      }
      continue;
    }
    if (exact && request != limit->second) {
      d.mismatch(place, "the limit of " + limit->second.to_string() +
                            " (requests and limits of this resource must be equal)");
    } else if (request > limit->second) {
      d.mismatch(place, "at most the limit of " + limit->second.to_string());
    }
  }
}

void to_amounts(const Quantities& from, Amounts& out) {
  for (const auto& [name, q] : from) {
    out.insert_or_assign(name, std::min(name == "cpu" ? q.milli_value() : q.value(), kMaxAmount));
  }
}

void read_protocol(const Value& v, std::string& out, Decoder& d) {
  if (v.is_string() && v.string().empty()) return;
  if (v.string() != "TCP" && v.string() != "UDP" && v.string() != "SCTP") {
    return d.mismatch(v, "one of TCP, UDP, SCTP");
  }
  out = v.string();
}

constexpr text::Field<ContainerPort> kPortFields[] = {
    text::required(
        text::field<&ContainerPort::container_port, text::int_between<1, 65535>>("containerPort")),
    text::field<&ContainerPort::host_ip>("hostIP"),
    text::field<&ContainerPort::host_port, text::int_between<0, 65535>>("hostPort"),
    text::skip<ContainerPort>("name"),
    text::field<&ContainerPort::protocol, read_protocol>("protocol"),
};
constexpr auto read_port = object_of<kPortFields>;

void read_container_restart(const Value& v, bool& out, Decoder& d) {
  if (v.string() == "Always") out = true;
  if (v.string() != "Always" && v.string() != "Never" && v.string() != "OnFailure") {
    d.mismatch(v, "one of Always, OnFailure, Never");
  }
}

constexpr text::Field<Container> kContainerFields[] = {
    text::skip<Container>("args"),
    text::skip<Container>("command"),
    text::skip<Container>("env"),
    text::skip<Container>("envFrom"),
    text::skip<Container>("image"),
    text::skip<Container>("imagePullPolicy"),
    text::skip<Container>("lifecycle"),
    text::skip<Container>("livenessProbe"),
    text::required(text::field<&Container::name>("name")),
    text::field<&Container::ports, list_of<read_port>>("ports"),
    text::skip<Container>("readinessProbe"),
    text::skip<Container>("resizePolicy"),
    text::field<&Container::resources>("resources"),
    text::field<&Container::restarts_always, read_container_restart>("restartPolicy"),
    text::skip<Container>("restartPolicyRules"),
    text::skip<Container>("securityContext"),
    text::skip<Container>("startupProbe"),
    text::skip<Container>("stdin"),
    text::skip<Container>("stdinOnce"),
    text::skip<Container>("terminationMessagePath"),
    text::skip<Container>("terminationMessagePolicy"),
    text::skip<Container>("tty"),
    text::skip<Container>("volumeDevices"),
    text::skip<Container>("volumeMounts"),
    text::skip<Container>("workingDir"),
};

// Amounts are at most 2^53 each, so a sum of a few never wraps; over the bound it stays there.
void add(Amounts& to, const Amounts& from) {
  for (const auto& [name, amount] : from) {
    std::int64_t& sum = to[name];
    sum = std::min(sum + amount, kMaxAmount + 1);
  }
}

void raise(Amounts& to, const Amounts& from) {
  for (const auto& [name, amount] : from) {
    std::int64_t& most = to[name];
    most = std::max(most, amount);
  }
}

// What can be resized, of what a status says.
void raise_by_status(const Value* amounts, Amounts& out) {
  if (amounts == nullptr) return;
  for (const text::Member& member : amounts->members()) {
    if (!is_pod_level_resource(member.key)) continue;
    const auto quantity = text::parse_quantity(member.value.string());
    if (quantity.ok() && !quantity->is_negative()) {
      Amounts one;
      to_amounts({{std::string(member.key), *quantity}}, one);
      raise(out, one);
    }
  }
}

bool is_infeasible(const Value& status) {
  const Value* pending = find_type(at(status, "conditions"), "PodResizePending");
  return pending != nullptr && text_at(*pending, "status") == "True" &&
         text_at(*pending, "reason") == "Infeasible";
}

void count_now(const Value& now, bool infeasible, Resources& out) {
  Amounts had;
  raise_by_status(now.find("allocatedResources"), had);
  raise_by_status(find(now, "resources.requests"), had);
  for (const auto& [name, amount] : had) {
    for (Amounts* counted : {&out.requests, &out.stated}) {
      std::int64_t& to = (*counted)[name];
      to = infeasible ? amount : std::max(to, amount);
    }
  }
}

}  // namespace

void count_resize(const Value& status, Containers& containers,
                  std::optional<Resources>& pod_level) {
  const bool infeasible = is_infeasible(status);
  const auto count = [&](const Value& statuses, std::vector<Container>& to) {
    std::map<std::string_view, Container*> by_name;
    if (statuses.size() == 0) return;
    for (Container& container : to) by_name.emplace(container.name, &container);
    for (const Value& now : statuses.items()) {
      const auto it = by_name.find(text_at(now, "name"));
      if (it != by_name.end()) count_now(now, infeasible, it->second->resources);
    }
  };
  count(at(status, "containerStatuses"), containers.app);
  count(at(status, "initContainerStatuses"), containers.init);
  if (pod_level) count_now(status, infeasible, *pod_level);
}

bool is_pod_level_resource(std::string_view name) {
  return name == "cpu" || name == "memory" || name.starts_with("hugepages-");
}

bool is_gpu_resource(std::string_view name) {
  return name == kGpu || name == "nvidia.com/gpu.shared" || name.starts_with("nvidia.com/mig-");
}

bool is_exact_resource(std::string_view name) {
  if (name.starts_with("hugepages-")) return true;
  return name.find('/') != std::string_view::npos &&
         name.find("kubernetes.io/") == std::string_view::npos;
}

void decode(const Value& v, Resources& out, Decoder& d) {
  RawResources raw;
  const std::size_t before = d.errors();
  decode_object(v, kResourceFields, raw, d);
  check_pair(v, raw, d);
  out.read = d.errors() == before;
  to_amounts(raw.limits, out.limits);
  to_amounts(raw.requests, out.stated);
  out.requests = out.stated;
  out.requests.insert(out.limits.begin(), out.limits.end());  // keeps what is there
  if (out.read) return;
  for (auto& [name, amount] : out.requests) {  // the two should be equal: the larger one counts
    const auto limit = out.limits.find(name);
    if (limit != out.limits.end() && is_exact_resource(name)) {
      amount = std::max(amount, limit->second);
    }
  }
}

void decode(const Value& v, Container& out, Decoder& d) {
  decode_object(v, kContainerFields, out, d);
}

bool effective_requests(const Containers& containers, const Resources* pod_level,
                        const Amounts& overhead, Amounts& out) {
  Amounts running, sidecars, init;
  for (const Container& c : containers.app) add(running, c.resources.requests);
  for (const Container& c : containers.init) {
    if (c.restarts_always) {
      add(running, c.resources.requests);
      add(sidecars, c.resources.requests);
      raise(init, sidecars);
    } else {
      Amounts with_sidecars = sidecars;
      add(with_sidecars, c.resources.requests);
      raise(init, with_sidecars);
    }
  }
  out = std::move(running);
  raise(out, init);
  if (pod_level != nullptr) {
    for (const auto& [name, amount] : pod_level->stated) out.insert_or_assign(name, amount);
    // A limit stands in for the pod's request only where no container asks for the resource.
    out.insert(pod_level->limits.begin(), pod_level->limits.end());
  }
  add(out, overhead);
  return std::all_of(out.begin(), out.end(),
                     [](const auto& entry) { return entry.second <= kMaxAmount; });
}

std::string amount_text(std::string_view resource, std::int64_t amount) {
  if (resource != "cpu") return std::to_string(amount);
  return amount % 1000 == 0 ? std::to_string(amount / 1000) : std::to_string(amount) + "m";
}

}  // namespace berth::kinds
