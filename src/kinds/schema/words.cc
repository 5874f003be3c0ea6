// What `kubectl explain` says about the types and fields that people ask for most, in our words.
// "Type text" or "Type.field text", one a line; table.cc looks them up.
#include "kinds/schema/table.h"

namespace berth::sim {

const char* const kTableWords = R"table(
Pod Containers that run together on one node.
Pod.spec What the pod should be.
Pod.status What was last seen of the pod; the system writes it.
PodSpec The wanted behaviour of a pod.
PodSpec.activeDeadlineSeconds Seconds the pod may be active on its node before it is failed.
PodSpec.affinity Rules about the nodes and the other pods that this pod wants near or far.
PodSpec.containers The containers; at least one. They cannot be added or removed later.
PodSpec.initContainers Containers that run to their end, in order, before the others start.
PodSpec.nodeName The node that the pod was bound to; empty while it waits.
PodSpec.nodeSelector Labels that a node must have.
PodSpec.overhead Resources that running the pod costs beside its containers.
PodSpec.preemptionPolicy Whether the pod may push others out: PreemptLowerPriority or Never.
PodSpec.priority The number behind priorityClassName; the server fills it in.
PodSpec.priorityClassName The PriorityClass of the pod.
PodSpec.resourceClaims Claims of devices that must be allocated before the pod starts.
PodSpec.restartPolicy When containers are started again: Always, OnFailure or Never.
PodSpec.runtimeClassName The RuntimeClass that runs the pod.
PodSpec.schedulerName Who binds the pod: default-scheduler, or berth.
PodSpec.schedulingGates While there are any, the pod is not scheduled.
PodSpec.schedulingGroup The pod group that the pod is scheduled with.
PodSpec.serviceAccountName The account the pod acts as.
PodSpec.terminationGracePeriodSeconds Seconds between the wish to stop and the kill.
PodSpec.tolerations Taints that the pod puts up with.
PodSpec.topologySpreadConstraints How pods spread over zones, racks or nodes.
PodSpec.volumes Volumes that containers may mount.
PodStatus.conditions What has come true of the pod so far.
PodStatus.phase Pending, Running, Succeeded, Failed or Unknown.
PodStatus.reason A word about why the pod is in this state.
Container One process with its image and its needs.
Container.args Arguments of the command; the image's own when absent.
Container.command The command; the image's own when absent.
Container.env Variables of the environment.
Container.image The image to run.
Container.imagePullPolicy When the image is fetched: Always, IfNotPresent or Never.
Container.livenessProbe The container is started again when this fails.
Container.name A name that no other container of the pod has.
Container.ports Ports that the container serves.
Container.readinessProbe The pod gets traffic while this succeeds.
Container.resources What the container needs and may use at most.
Container.startupProbe The other probes wait until this has succeeded.
Container.volumeMounts Where volumes appear in the container.
ResourceRequirements Needs and bounds of a container or a pod.
ResourceRequirements.claims Names of the pod's resourceClaims that the container uses.
ResourceRequirements.limits The most that may be used; nvidia.com/gpu counts whole GPUs.
ResourceRequirements.requests What is set aside; taken from limits when absent.
ObjectMeta What every object has.
ObjectMeta.annotations Notes for tools; nothing selects by them.
ObjectMeta.creationTimestamp When the server made the object.
ObjectMeta.deletionTimestamp When the object will be gone; set by the server on deletion.
ObjectMeta.finalizers Who must agree before the object is removed.
ObjectMeta.generateName A prefix; the server adds random letters to make a name.
ObjectMeta.generation Counts changes of the wanted state.
ObjectMeta.labels Words that selectors look for.
ObjectMeta.managedFields Who set which field, for server-side apply.
ObjectMeta.name The name; it cannot change.
ObjectMeta.namespace The namespace; it cannot change.
ObjectMeta.ownerReferences Objects that this one goes away with.
ObjectMeta.resourceVersion Changes with every write; send it back to notice races.
ObjectMeta.uid Differs between objects that had the same name at different times.
Node A machine that pods run on.
NodeSpec.taints Marks that keep away pods without a matching toleration.
NodeSpec.unschedulable No new pods are placed here.
NodeStatus.allocatable What pods may use of the node.
NodeStatus.capacity What the node has in all.
NodeStatus.conditions Ready, and what presses on the node.
Namespace A room for names.
ConfigMap Settings that pods read.
Secret Data that only those who need it should read.
Service One address for the pods that a selector finds.
Event What happened to an object.
Job Pods that run until enough of them have succeeded.
JobSpec.activeDeadlineSeconds Seconds the job may be active before it is failed.
JobSpec.backoffLimit Retries before the job is failed.
JobSpec.completionMode NonIndexed, or Indexed: each pod gets a number.
JobSpec.completions Pods that must succeed.
JobSpec.parallelism Pods that run at the same time at most.
JobSpec.podFailurePolicy What failures of pods mean for the job.
JobSpec.suspend While true no pods are made, and running ones are removed.
JobSpec.template The pod to make.
JobSpec.ttlSecondsAfterFinished Seconds after which a finished job is removed.
CronJob Makes jobs by the clock.
Deployment Keeps a number of equal pods and replaces them step by step.
DeploymentSpec.replicas Pods that are wanted.
DeploymentSpec.selector Labels of the pods; it cannot change.
DeploymentSpec.strategy How old pods give way to new ones.
DeploymentSpec.template The pod to make.
ReplicaSet Keeps a number of equal pods.
StatefulSet Keeps pods with stable names.
DaemonSet Keeps one pod on each node.
PodDisruptionBudget How many pods may be evicted at the same time.
PriorityClass A name for a priority.
PriorityClass.globalDefault The class of pods that name none.
PriorityClass.value The number; higher goes first.
Workload Groups of pods that a controller asks to have scheduled together.
PodGroup Pods that are scheduled together.
PodGroupSpec.schedulingPolicy basic: each for itself; gang: at least minCount or none.
ResourceClaim A wish for devices.
ResourceClaimTemplate Makes a claim for each pod.
DeviceClass A kind of device, by selectors.
ResourceSlice Devices that a driver offers on a node.
Lease Who leads, and until when.
CustomResourceDefinition Makes a kind of your own known to the server.
PersistentVolumeClaim A wish for storage.
PersistentVolume A piece of storage.
StorageClass A kind of storage.
ResourceQuota Bounds on what a namespace uses.
LimitRange Bounds and defaults for single pods and containers.
ServiceAccount An identity for pods.
)table";

}  // namespace berth::sim
