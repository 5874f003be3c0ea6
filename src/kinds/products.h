// What is known of a GPU from its product name alone.
//
// Memory is what the driver reports for it, in MiB. The layout is that of the usual machine built
// from it and holds only when a node has exactly that many; a cloud's smaller slice of the machine
// says nothing of NUMA nodes and switches.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

namespace berth::kinds {

struct Product {
  std::string_view name;  // as the label nvidia.com/gpu.product spells it
  std::int64_t memory_mib;
  bool nvlink;     // all of a node reach one another over NVLink
  int per_node;    // GPUs of the usual machine; 0: there is none
  int per_numa;    // GPUs on one NUMA node there
  int per_switch;  // GPUs below one PCIe switch there; 0: not known
  int mig_slices;  // compute slices; 0: no MIG
};

std::span<const Product> products();

// By name; "NVIDIA-" and "Tesla-" in front and the case of letters do not matter, blanks and
// underscores count as '-'. nullptr when it is not in the table.
const Product* find_product(std::string_view name);

// How many slices of a MIG profile ("1g.10gb", "2g.20gb.me") one GPU can hold; 0 when it is not a
// profile. memory_mib is the whole GPU's (0: not known), for profiles with double memory.
int mig_slots_per_gpu(std::string_view profile, int mig_slices, std::int64_t memory_mib);

}  // namespace berth::kinds
