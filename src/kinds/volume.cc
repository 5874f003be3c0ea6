#include "kinds/volume.h"

#include "kinds/affinity.h"

namespace berth::kinds {

namespace {

using model::NodeSelectorTerm;
using text::Decoder;
using text::Value;

constexpr std::string_view kSelectedNode = "volume.kubernetes.io/selected-node";

struct ClaimReference {
  std::string ns, name;
};
constexpr text::Field<ClaimReference> kClaimReferenceFields[] = {
    text::field<&ClaimReference::ns>("namespace"),
    text::field<&ClaimReference::name>("name"),
    text::skip<ClaimReference>("apiVersion"),
    text::skip<ClaimReference>("kind"),
    text::skip<ClaimReference>("uid"),
    text::skip<ClaimReference>("resourceVersion"),
    text::skip<ClaimReference>("fieldPath"),
};

struct VolumeSpec {
  std::vector<NodeSelectorTerm> terms;
  ClaimReference claim;
};
struct RequiredNodes {
  std::vector<NodeSelectorTerm> terms;
};
constexpr text::Field<RequiredNodes> kVolumeAffinityFields[] = {
    text::field<&RequiredNodes::terms, read_node_selector>("required"),
};
void read_volume_affinity(const Value& v, std::vector<NodeSelectorTerm>& out, Decoder& d) {
  RequiredNodes nodes;
  decode_object(v, kVolumeAffinityFields, nodes, d);
  out = std::move(nodes.terms);
}

constexpr text::Field<VolumeSpec> kVolumeSpecFields[] = {
    text::skip<VolumeSpec>("accessModes"),
    text::skip<VolumeSpec>("awsElasticBlockStore"),
    text::skip<VolumeSpec>("azureDisk"),
    text::skip<VolumeSpec>("azureFile"),
    text::skip<VolumeSpec>("capacity"),
    text::skip<VolumeSpec>("cephfs"),
    text::skip<VolumeSpec>("cinder"),
    text::field<&VolumeSpec::claim, object_of<kClaimReferenceFields>>("claimRef"),
    text::skip<VolumeSpec>("csi"),
    text::skip<VolumeSpec>("fc"),
    text::skip<VolumeSpec>("flexVolume"),
    text::skip<VolumeSpec>("flocker"),
    text::skip<VolumeSpec>("gcePersistentDisk"),
    text::skip<VolumeSpec>("glusterfs"),
    text::skip<VolumeSpec>("hostPath"),
    text::skip<VolumeSpec>("iscsi"),
    text::skip<VolumeSpec>("local"),
    text::skip<VolumeSpec>("mountOptions"),
    text::skip<VolumeSpec>("nfs"),
    text::field<&VolumeSpec::terms, read_volume_affinity>("nodeAffinity"),
    text::skip<VolumeSpec>("persistentVolumeReclaimPolicy"),
    text::skip<VolumeSpec>("photonPersistentDisk"),
    text::skip<VolumeSpec>("portworxVolume"),
    text::skip<VolumeSpec>("quobyte"),
    text::skip<VolumeSpec>("rbd"),
    text::skip<VolumeSpec>("scaleIO"),
    text::skip<VolumeSpec>("storageClassName"),
    text::skip<VolumeSpec>("storageos"),
    text::skip<VolumeSpec>("volumeAttributesClassName"),
    text::skip<VolumeSpec>("volumeMode"),
    text::skip<VolumeSpec>("vsphereVolume"),
};

struct VolumeTop {
  VolumeSpec spec;
};
constexpr text::Field<VolumeTop> kVolumeFields[] = {
    text::skip<VolumeTop>("apiVersion"),
    text::skip<VolumeTop>("kind"),
    text::skip<VolumeTop>("metadata"),
    text::field<&VolumeTop::spec, object_of<kVolumeSpecFields>>("spec"),
    text::skip<VolumeTop>("status"),
};

struct ClaimSpec {
  std::string volume_name;
  std::optional<std::string> storage_class;
};
constexpr text::Field<ClaimSpec> kClaimSpecFields[] = {
    text::skip<ClaimSpec>("accessModes"),
    text::skip<ClaimSpec>("dataSource"),
    text::skip<ClaimSpec>("dataSourceRef"),
    text::skip<ClaimSpec>("resources"),
    text::skip<ClaimSpec>("selector"),
    text::field<&ClaimSpec::storage_class>("storageClassName"),
    text::skip<ClaimSpec>("volumeAttributesClassName"),
    text::skip<ClaimSpec>("volumeMode"),
    text::field<&ClaimSpec::volume_name>("volumeName"),
};
struct ClaimTop {
  ClaimSpec spec;
  std::string phase;
};
constexpr text::Field<ClaimTop> kClaimStatusFields[] = {text::field<&ClaimTop::phase>("phase")};
constexpr text::Field<ClaimTop> kClaimFields[] = {
    text::skip<ClaimTop>("apiVersion"),
    text::skip<ClaimTop>("kind"),
    text::skip<ClaimTop>("metadata"),
    text::field<&ClaimTop::spec, object_of<kClaimSpecFields>>("spec"),
    text::custom<ClaimTop>("status",
                           [](const Value& v, ClaimTop& out, Decoder& d) {
                             decode_lenient(v, kClaimStatusFields, out, d);
                           }),
};

// Zone and region labels of old volumes; "a__b" is a set. The beta keys mean the same as today's.
constexpr std::pair<std::string_view, std::string_view> kZoneLabels[] = {
    {"topology.kubernetes.io/zone", "topology.kubernetes.io/zone"},
    {"topology.kubernetes.io/region", "topology.kubernetes.io/region"},
    {"failure-domain.beta.kubernetes.io/zone", "topology.kubernetes.io/zone"},
    {"failure-domain.beta.kubernetes.io/region", "topology.kubernetes.io/region"},
};

text::Selector zone_requirements(const model::Labels& labels) {
  text::Selector out;
  for (const auto& [label, key] : kZoneLabels) {
    const auto it = labels.find(label);
    if (it == labels.end()) continue;
    text::Requirement r{std::string(key), text::Operator::kIn, {}};
    for (const std::string_view value : split(it->second, "__")) {
      if (!value.empty()) r.values.emplace_back(value);
    }
    if (!r.values.empty()) out.push_back(std::move(r));
  }
  return out;
}

std::string full_name(std::string_view ns, std::string_view name) {
  return std::string(ns) + '/' + std::string(name);
}

}  // namespace

void decode(const Value& v, VolumeObject& out, Decoder& d) {
  read_meta(v, Scope::kCluster, out.meta, d);
  VolumeTop top;
  decode_object(v, kVolumeFields, top, d);
  out.node_terms = std::move(top.spec.terms);
  out.claim_ns = std::move(top.spec.claim.ns);
  out.claim_name = std::move(top.spec.claim.name);
  const text::Selector zones = zone_requirements(out.meta.labels);
  if (zones.empty()) return;
  if (out.node_terms.empty())
    out.node_terms.push_back({zones, {}});
  else
    for (NodeSelectorTerm& term : out.node_terms) {
      if (term.labels.empty() && term.fields.empty()) continue;  // matches nothing, and stays so
      term.labels.insert(term.labels.end(), zones.begin(), zones.end());
    }
}

void decode(const Value& v, ClaimObject& out, Decoder& d) {
  read_meta(v, Scope::kNamespaced, out.meta, d);
  ClaimTop top;
  decode_object(v, kClaimFields, top, d);
  out.volume_name = std::move(top.spec.volume_name);
  out.storage_class = std::move(top.spec.storage_class);
  out.phase = std::move(top.phase);
}

void VolumeIndex::add(const VolumeObject& volume) {
  if (!volume.claim_name.empty()) {
    claimed_by_.emplace(full_name(volume.claim_ns, volume.claim_name), volume.meta.name);
  }
  volumes_.emplace(volume.meta.name, volume);
}

void VolumeIndex::add(const ClaimObject& claim) {
  claims_.emplace(full_name(claim.meta.ns, claim.meta.name), claim);
}

const VolumeObject* VolumeIndex::volume_of(const ClaimObject& claim) const {
  std::string_view name = claim.volume_name;
  if (name.empty()) {
    const auto it = claimed_by_.find(full_name(claim.meta.ns, claim.meta.name));
    if (it != claimed_by_.end()) name = it->second;
  }
  const auto it = volumes_.find(name);
  return it == volumes_.end() ? nullptr : &it->second;
}

void VolumeIndex::resolve(const std::vector<ClaimRef>& claims, model::PodSpec& pod,
                          std::vector<std::string>& warnings) const {
  for (const ClaimRef& ref : claims) {
    const std::string name = ref.ephemeral ? pod.name + '-' + ref.volume : ref.claim;
    const auto it = claims_.find(full_name(pod.ns, name));
    if (it == claims_.end()) {
      if (ref.ephemeral) {
        warnings.push_back("claim " + name +
                           " of an ephemeral volume does not exist yet; it is "
                           "taken to be provisioned where the pod goes");
      } else if (pod.volume_missing.empty()) {
        pod.volume_missing = name;
      }
      continue;
    }
    const ClaimObject& claim = it->second;
    const VolumeObject* volume = volume_of(claim);
    if (claim.phase == "Lost" || claim.meta.deleted) {
      if (pod.volume_missing.empty()) pod.volume_missing = name;
    } else if (volume != nullptr) {
      pod.volumes.push_back({name, volume->node_terms});
    } else if (!claim.volume_name.empty()) {
      warnings.push_back("claim " + name + " is bound to PersistentVolume " + claim.volume_name +
                         ", which is not in the input; it is taken to be reachable everywhere");
      pod.volumes.push_back({name, {}});
    } else if (const std::string* node = claim.meta.annotation(kSelectedNode)) {
      pod.volumes.push_back({name, {{{}, {{"metadata.name", text::Operator::kIn, {*node}}}}}});
    } else if (claim.storage_class && !claim.storage_class->empty()) {
      warnings.push_back("claim " + name + " is not bound; storage class " + *claim.storage_class +
                         " is taken to provision it where the pod goes");
      pod.volumes.push_back({name, {}});
    } else if (pod.volume_missing.empty()) {
      pod.volume_missing = name;
    }
  }
}

}  // namespace berth::kinds
