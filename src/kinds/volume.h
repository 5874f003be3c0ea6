// PersistentVolumes, claims, and from where a pod's claims can be reached.
//
// Of a claim that is not bound: a PV whose claimRef names it counts as bound; a node that the
// scheduler has picked for it (volume.kubernetes.io/selected-node) is its limit; one with a
// storageClassName is taken to be provisioned where the pod goes (with a warning: StorageClass
// objects are not read); any other is missing and the pod waits.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "kinds/meta.h"

namespace berth::kinds {

struct VolumeObject {  // v1 PersistentVolume
  Meta meta;
  std::vector<model::NodeSelectorTerm> node_terms;  // nodeAffinity and zone labels, combined
  std::string claim_ns, claim_name;                 // claimRef
};
void decode(const text::Value& v, VolumeObject& out, text::Decoder& d);

struct ClaimObject {  // v1 PersistentVolumeClaim
  Meta meta;
  std::string volume_name;
  std::optional<std::string> storage_class;
  std::string phase;
};
void decode(const text::Value& v, ClaimObject& out, text::Decoder& d);

// A claim that a pod names, directly or through an ephemeral volume.
struct ClaimRef {
  std::string claim;  // of an ephemeral volume: empty, the name is <pod>-<volume>
  std::string volume;
  bool ephemeral = false;
};
// spec.volumes of a pod.
void read_pod_volumes(const text::Value& v, std::vector<ClaimRef>& out, text::Decoder& d);

class VolumeIndex {
 public:
  void add(const VolumeObject& volume);
  void add(const ClaimObject& claim);

  // Fills volumes and volume_missing of the pod. Texts for people go to warnings.
  void resolve(const std::vector<ClaimRef>& claims, model::PodSpec& pod,
               std::vector<std::string>& warnings) const;

 private:
  const VolumeObject* volume_of(const ClaimObject& claim) const;

  std::map<std::string, VolumeObject, std::less<>> volumes_;
  std::map<std::string, ClaimObject, std::less<>> claims_;      // by ns/name
  std::map<std::string, std::string, std::less<>> claimed_by_;  // ns/name of the claim to volume
};

}  // namespace berth::kinds
