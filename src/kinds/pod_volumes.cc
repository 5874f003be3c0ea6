// The claims that a pod's volumes name.
#include "kinds/volume.h"

namespace berth::kinds {

namespace {

using text::Decoder;
using text::Value;

struct PodVolume {
  std::string name, claim;
  bool has_claim = false, ephemeral = false;
};

struct ClaimSource {
  std::string claim;
};
constexpr text::Field<ClaimSource> kClaimSourceFields[] = {
    text::required(text::field<&ClaimSource::claim>("claimName")),
    text::skip<ClaimSource>("readOnly"),
};

void read_claim_source(const Value& v, PodVolume& out, Decoder& d) {
  ClaimSource source;
  decode_object(v, kClaimSourceFields, source, d);
  out.has_claim = true;
  out.claim = std::move(source.claim);
}

void read_ephemeral(const Value&, PodVolume& out, Decoder&) { out.ephemeral = true; }

constexpr text::Field<PodVolume> kPodVolumeFields[] = {
    text::required(text::field<&PodVolume::name>("name")),
    text::custom<PodVolume>("persistentVolumeClaim", read_claim_source),
    text::custom<PodVolume>("ephemeral", read_ephemeral),
    text::skip<PodVolume>("awsElasticBlockStore"),
    text::skip<PodVolume>("azureDisk"),
    text::skip<PodVolume>("azureFile"),
    text::skip<PodVolume>("cephfs"),
    text::skip<PodVolume>("cinder"),
    text::skip<PodVolume>("configMap"),
    text::skip<PodVolume>("csi"),
    text::skip<PodVolume>("downwardAPI"),
    text::skip<PodVolume>("emptyDir"),
    text::skip<PodVolume>("fc"),
    text::skip<PodVolume>("flexVolume"),
    text::skip<PodVolume>("flocker"),
    text::skip<PodVolume>("gcePersistentDisk"),
    text::skip<PodVolume>("gitRepo"),
    text::skip<PodVolume>("glusterfs"),
    text::skip<PodVolume>("hostPath"),
    text::skip<PodVolume>("image"),
    text::skip<PodVolume>("iscsi"),
    text::skip<PodVolume>("nfs"),
    text::skip<PodVolume>("photonPersistentDisk"),
    text::skip<PodVolume>("portworxVolume"),
    text::skip<PodVolume>("projected"),
    text::skip<PodVolume>("quobyte"),
    text::skip<PodVolume>("rbd"),
    text::skip<PodVolume>("scaleIO"),
    text::skip<PodVolume>("secret"),
    text::skip<PodVolume>("storageos"),
    text::skip<PodVolume>("vsphereVolume"),
};
constexpr auto read_pod_volume = object_of<kPodVolumeFields>;

}  // namespace

void read_pod_volumes(const Value& v, std::vector<ClaimRef>& out, Decoder& d) {
  std::vector<PodVolume> volumes;
  list_of<read_pod_volume>(v, volumes, d);
  for (PodVolume& volume : volumes) {
    if (volume.has_claim) {
      out.push_back({.claim = std::move(volume.claim), .volume = std::move(volume.name)});
    } else if (volume.ephemeral) {
      out.push_back({.claim = {}, .volume = std::move(volume.name), .ephemeral = true});
    }
  }
}

}  // namespace berth::kinds
