#include <algorithm>

#include "lint/checks.h"

namespace berth::lint {

namespace {

// Jobs of training-operator v1: where replicas are, and which container it looks at.
struct Operated {
  std::string_view kind, replicas, container;
  std::vector<std::string_view> injected;  // environment that the operator sets itself, last
};
const std::vector<Operated>& operated() {
  static const std::vector<Operated> table = {
      {"PyTorchJob",
       "pytorchReplicaSpecs",
       "pytorch",
       {"MASTER_ADDR", "MASTER_PORT", "WORLD_SIZE", "RANK", "PET_MASTER_ADDR", "PET_MASTER_PORT",
        "PET_NNODES", "PET_NODE_RANK", "PET_NPROC_PER_NODE"}},
      {"TFJob", "tfReplicaSpecs", "tensorflow", {"TF_CONFIG"}},
      {"XGBoostJob",
       "xgbReplicaSpecs",
       "xgboost",
       {"MASTER_ADDR", "MASTER_PORT", "WORLD_SIZE", "RANK"}},
      {"PaddleJob", "paddleReplicaSpecs", "paddle", {}},
      {"JAXJob",
       "jaxReplicaSpecs",
       "jax",
       {"COORDINATOR_ADDRESS", "COORDINATOR_PORT", "NUM_PROCESSES", "PROCESS_ID"}},
  };
  return table;
}

void check_injected(const Place& root, const Operated& known, const Place& container,
                    Reporter& out) {
  std::vector<Place> mine;
  for (const Place& env : container["env"].items()) {
    if (std::find(known.injected.begin(), known.injected.end(), env["name"].text()) !=
        known.injected.end()) {
      mine.push_back(env);
    }
  }
  for (const Place& env : mine) {
    const bool all = mine.size() == container["env"].size();
    if (all && &env != &mine.front()) break;
    Fix fix =
        one_change(all ? remove_upwards(root, container["env"].path()) : remove_at(env.path()));
    out.add("job-env-overridden", env,
            "found " + env["name"].word() + ", which the operator sets itself: yours has no effect",
            "remove it", std::move(fix));
  }
}

void check_replica(const Object& object, const Operated& known, const Place& replica,
                   Reporter& out) {
  const Place pod = replica["template"]["spec"];
  const Place root = object.root();
  bool named = false;
  for (const Place& container : pod["containers"].items()) {
    named = named || container["name"].is(known.container);
    check_injected(root, known, container, out);
  }
  if (pod["containers"].size() > 0 && !named) {
    std::optional<Fix> edit;
    const Place only = pod["containers"][std::size_t{0}]["name"];
    if (pod["containers"].size() == 1 && only) {
      edit = one_change(set_text(only.path(), known.container));
    }
    out.add(
        "job-container-name", pod["containers"],
        "no container is called " + std::string(known.container) + ", which the operator looks for",
        "call the container that trains " + std::string(known.container), std::move(edit));
  }
  const Place count = replica["replicas"];
  if (object.kind == "PyTorchJob" && replica.key() == "Master" && count &&
      count.value().as_int64() != 1) {
    out.add("job-one-master", count, "found " + count.word() + " masters, want exactly 1",
            "write replicas: 1 and put the others under Worker");
  }
  const Place policy = replica["restartPolicy"];
  if (policy && !policy.is("Always") && !policy.is("OnFailure") && !policy.is("Never") &&
      !policy.is("ExitCode")) {
    out.add("job-restart-policy", policy,
            "found restartPolicy " + policy.word() + ", want Always, OnFailure, Never or ExitCode",
            "write one of these");
  }
}

void check_operated(const Object& object, const Operated& known, Reporter& out) {
  const Place spec = object.root()["spec"];
  const Place replicas = spec[known.replicas];
  if (spec && !replicas) {
    for (const Place& member : spec.members()) {
      if (member.key().ends_with("eplicaSpecs")) {
        out.add("job-replica-specs", member,
                "found " + member.key() + ", want " + std::string(known.replicas) + " in a " +
                    object.kind,
                "write " + std::string(known.replicas),
                one_change(rename_key(member.path(), std::string(known.replicas))));
      }
    }
  }
  for (const Place& replica : replicas.members()) check_replica(object, known, replica, out);
}

// mpirun refuses to run as root unless it is told that it may.
void check_mpirun(const Place& container, const Place& pod, Reporter& out) {
  std::vector<Place> words = container["command"].items();
  for (Place& word : container["args"].items()) words.push_back(std::move(word));
  if (words.empty() || !words.front().text().ends_with("mpirun")) return;
  bool allowed = false;
  for (const Place& word : words) {
    allowed = allowed || word.is("--allow-run-as-root") || word.is("-allow-run-as-root");
    if (word.is("-bind-to") || word.is("-map-by")) {
      out.add("mpirun-option", word, "found " + word.word() + ", want -" + word.word(),
              "write -" + word.word() + ", as Open MPI spells it",
              one_change(set_text(word.path(), "-" + word.word())));
    }
  }
  const auto runs_as = [](const Place& context) {
    const auto user = context["runAsUser"].value().as_int64();
    return context["runAsNonRoot"].value().as_bool() || (user && *user != 0);
  };
  if (allowed || runs_as(container["securityContext"]) || runs_as(pod["securityContext"])) return;
  out.add("mpirun-root", words.front(),
          "mpirun runs as root without --allow-run-as-root, and then refuses to",
          "add --allow-run-as-root after mpirun, or run the launcher as another user");
}

void check_mpi(const Object& object, Reporter& out) {
  const Place replicas = object.root()["spec"]["mpiReplicaSpecs"];
  for (const Place& replica : replicas.members()) {
    const Place pod = replica["template"]["spec"];
    for (const Place& container : pod["containers"].items()) check_mpirun(container, pod, out);
    if (replica.key() != "Worker" || object.version != "v2beta1") continue;
    const Place first = pod["containers"][std::size_t{0}];
    if (!first || first.has("command") || first.has("args")) continue;
    if (first["image"].text().find("nvcr.io/nvidia/pytorch") == std::string_view::npos) continue;
    out.add(
        "mpi-worker-sshd", first,
        "the worker has no command, so the operator starts /usr/sbin/sshd, which " +
            first["image"].word() + " does not bring with host keys",
        "use an image made for MPI workers (mpioperator/...), or give a command that starts sshd");
  }
  const auto slots = object.root()["spec"]["slotsPerWorker"].value().as_int64();
  const Place worker = replicas["Worker"]["template"]["spec"]["containers"][std::size_t{0}];
  const Place gpus = worker["resources"]["limits"]["nvidia.com/gpu"];
  const auto has = gpus.value().as_int64();
  if (slots && has && *slots != *has && *has > 0) {
    out.add("mpi-slots", object.root()["spec"]["slotsPerWorker"],
            "slotsPerWorker is " + std::to_string(*slots) + " and a worker has " +
                std::to_string(*has) + " GPUs, want the same",
            "write slotsPerWorker: " + std::to_string(*has));
  }
}

// A topology file that nothing puts into the container.
void check_topology_file(const Object& object, Reporter& out) {
  for (const Place& pod : pod_specs(object)) {
    for (const Place& container : containers_of(pod)) {
      for (const Place& env : container["env"].items()) {
        if (!env["name"].is("NCCL_TOPO_FILE")) continue;
        const std::string_view file = env["value"].text();
        bool mounted = file.empty();
        for (const Place& mount : container["volumeMounts"].items()) {
          const std::string_view at = mount["mountPath"].text();
          mounted = mounted || (!at.empty() && file.starts_with(at));
        }
        if (mounted) continue;
        out.add("nccl-topology-file", env["value"],
                "NCCL_TOPO_FILE is " + std::string(file) + " and no volume is mounted there",
                "mount the file (a ConfigMap), or make sure that the image has it");
      }
    }
  }
}

}  // namespace

void check_jobs(const Object& object, Reporter& out) {
  if (object.group == "kubeflow.org") {
    for (const Operated& known : operated()) {
      if (object.kind == known.kind) check_operated(object, known, out);
    }
    if (object.kind == "MPIJob") check_mpi(object, out);
  }
  check_topology_file(object, out);
}

}  // namespace berth::lint
