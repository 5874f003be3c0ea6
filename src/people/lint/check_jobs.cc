#include <algorithm>
#include <cstdlib>

#include "people/lint/checks.h"

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
    if (first["image"].text().find("nvidia/pytorch") == std::string_view::npos) continue;
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

bool is_nccl_test(std::string_view word) {
  return word.ends_with("_perf") && (word.find("/nccl") != std::string_view::npos ||
                                     word.find("all_reduce") != std::string_view::npos ||
                                     word.find("all_gather") != std::string_view::npos ||
                                     word.find("alltoall") != std::string_view::npos);
}

bool has_topology_mount(const Place& container) {
  for (const Place& mount : container["volumeMounts"].items()) {
    const std::string_view at = mount["mountPath"].text();
    if (at.find("topo") != std::string_view::npos && at.ends_with(".xml")) return true;
  }
  return false;
}

// What a launcher starts on its workers: the program must be there, and ranks see only the
// environment that mpirun passes on.
void check_launched(const Place& replicas, Reporter& out) {
  const Place launcher = replicas["Launcher"]["template"]["spec"]["containers"][std::size_t{0}];
  const Place worker = replicas["Worker"]["template"]["spec"]["containers"][std::size_t{0}];
  std::vector<Place> words = launcher["command"].items();
  for (Place& word : launcher["args"].items()) words.push_back(std::move(word));
  bool passed = false, runs = false;
  for (const Place& word : words) {
    runs = runs || word.text().ends_with("mpirun");
    passed = passed || word.text().find("NCCL_TOPO_FILE") != std::string_view::npos;
    if (is_nccl_test(word.text()) && word.text().starts_with("/") &&
        worker["image"].text().find("nvidia/pytorch") != std::string_view::npos) {
      out.add("mpi-nccl-tests", word,
              worker["image"].word() + " has no " + word.word() + ": nccl-tests is not part of it",
              "use an image with nccl-tests, or build them into one");
    }
  }
  if (!runs || passed || !has_topology_mount(worker)) return;
  out.add("mpi-topology-file", worker["volumeMounts"],
          "the workers mount a topology file and mpirun passes no NCCL_TOPO_FILE: NCCL does not "
          "read it",
          "add -x NCCL_TOPO_FILE=... to mpirun");
}

// UCX is for MPI; NCCL never reads its variables.
void check_ucx(const Place& container, Reporter& out) {
  const Place* ucx = nullptr;
  const std::vector<Place> all = container["env"].items();
  bool nccl = false;
  for (const Place& env : all) {
    nccl = nccl || env["name"].text().starts_with("NCCL_");
    if (env["name"].is("UCX_NET_DEVICES") || env["name"].is("UCX_TLS")) ucx = &env;
  }
  bool mpi = false;
  for (const char* list : {"command", "args"}) {
    for (const Place& word : container[list].items()) {
      mpi = mpi || word.text().find("mpi") != std::string_view::npos ||
            word.text().find("ucx") != std::string_view::npos;
    }
  }
  if (ucx == nullptr || !nccl || mpi) return;
  out.add("nccl-ucx-env", *ucx,
          "found " + (*ucx)["name"].word() + ", which NCCL does not read: it is for UCX and MPI",
          "choose the adapters with NCCL_IB_HCA, and remove it when nothing uses UCX");
}

bool starts_ranks(const Place& container) {
  for (const char* list : {"command", "args"}) {
    for (const Place& word : container[list].items()) {
      for (const std::string_view program :
           {"torchrun", "torch.distributed", "accelerate", "deepspeed", "mpirun", "horovodrun",
            "colossalai", "spawn", "nproc", "composer", "torchx", "lightning", "srun"}) {
        if (word.text().find(program) != std::string_view::npos) return true;
      }
    }
  }
  return false;
}

// One process a pod, and several GPUs: somebody must start a process for each.
void check_processes(const Object& object, Reporter& out) {
  if (!object.is("kubeflow.org", "PyTorchJob")) return;
  for (const Place& replica : object.root()["spec"]["pytorchReplicaSpecs"].members()) {
    for (const Place& container : replica["template"]["spec"]["containers"].items()) {
      const Place gpus = container["resources"]["limits"]["nvidia.com/gpu"];
      const double count = std::strtod(gpus.word().c_str(), nullptr);
      if (!container["name"].is("pytorch") || count < 2 || starts_ranks(container)) continue;
      const bool shown = container.has("command") || container.has("args");
      out.add(
          "torch-processes", container,
          "a pod has " + gpus.word() + " GPUs and " +
              (shown ? "its command starts one process"
                     : "no command: what the image starts is not known here") +
              "; RANK and WORLD_SIZE count pods, and nobody sets LOCAL_RANK",
          "start it with torchrun, or make sure that the program starts a process for each GPU");
    }
  }
}

// A topology file that nothing puts into the container, and variables that NCCL does not read.
void check_nccl(const Object& object, Reporter& out) {
  for (const Place& pod : pod_specs(object)) {
    for (const Place& container : containers_of(pod)) {
      check_ucx(container, out);
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
    if (object.kind == "MPIJob") {
      check_mpi(object, out);
      check_launched(object.root()["spec"]["mpiReplicaSpecs"], out);
    }
  }
  check_processes(object, out);
  check_nccl(object, out);
}

}  // namespace berth::lint
