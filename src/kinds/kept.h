// What of an object may be written down beside the cluster: in a snapshot, and in the inputs of
// decisions. People send those to others, and manifests hold secrets where nobody looks for them.
//
// Left out always: managedFields, the last applied configuration (a copy of everything), schemas of
// CustomResourceDefinitions, and values of environment variables but for those that say something
// of GPUs (NVIDIA_, CUDA_, NCCL_). Left out unless asked for, because tokens stand there: commands
// and arguments, probes and hooks of containers (commands, headers), annotations that neither berth
// nor a scheduler reads, what a container wrote as its last words, options of volumes and mounts,
// opaque parameters. No decision and no answer is made from any of it. Names, labels, images and
// what the cluster's own programs say in conditions and events stay.
//
// Pure. Cost: one pass over the object, recursive to the depth of what the reader took
// (text::Limits).
#pragma once

#include <string_view>

#include "text/json_writer.h"
#include "text/value.h"

namespace berth::kinds {

struct KeepOptions {
  bool arguments = false;   // commands, unknown annotations and the rest of the second list above
  bool node_images = true;  // the images that a node has
};

// One member of an object, key and value; nothing where it is left out.
void write_kept(text::JsonWriter& out, const text::Member& member, const KeepOptions& options);
// A whole object.
void write_kept(text::JsonWriter& out, const text::Value& object, const KeepOptions& options);

// An annotation that berth or a scheduler reads.
bool is_known_annotation(std::string_view key);

}  // namespace berth::kinds
