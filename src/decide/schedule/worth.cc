#include "decide/schedule/worth.h"

#include <algorithm>
#include <bit>
#include <cstring>

namespace berth::schedule {
namespace {

// A node's CPU may be promised to a shape twice over before it limits the GPU counted as usable:
// the pods to come are seldom all of one shape, and a tight limit makes the worth of a nearly empty
// node jump with every CPU pod.
constexpr std::int64_t kCpuHeadroom = 2;
constexpr unsigned kReciprocalBits = 21;

std::uint64_t scrambled(std::uint64_t value) {
  value = (value ^ (value >> 30U)) * 0xBF58476D1CE4E5B9ULL;
  value = (value ^ (value >> 27U)) * 0x94D049BB133111EBULL;
  return value ^ (value >> 31U);
}

std::int32_t coarse(std::int64_t cpu_milli) {
  if (cpu_milli <= 0) return 0;
  auto value = static_cast<std::uint32_t>(std::min<std::int64_t>(cpu_milli, INT32_MAX));
  int drop = std::max(static_cast<int>(std::bit_width(value)) - 6, 0);
  return static_cast<std::int32_t>(value >> drop << drop);
}

void insert(Room& room, std::int16_t milli) {
  if (milli <= 0) return;
  auto* end = room.partial.data() + room.partials;
  auto* at = std::upper_bound(room.partial.data(), end, milli);
  std::copy_backward(at, end, end + 1);
  *at = milli;
  ++room.partials;
}

void erase(Room& room, std::int16_t at) {
  auto* begin = room.partial.data();
  std::copy(begin + at + 1, begin + room.partials, begin + at);
  room.partial[static_cast<std::size_t>(--room.partials)] = 0;
}

// Takes milli from the fullest device that has it; rest is what stays free there, -1: none has it.
std::int16_t take_from_fullest(Room& room, std::int16_t milli) {
  for (std::int16_t i = 0; i < room.partials; ++i) {
    std::int16_t free = room.partial[static_cast<std::size_t>(i)];
    if (free < milli) continue;
    erase(room, i);
    return static_cast<std::int16_t>(free - milli);
  }
  if (room.whole == 0) return -1;
  --room.whole;
  return static_cast<std::int16_t>(model::kMilliPerGpu - milli);
}

}  // namespace

std::uint64_t hash_of(const Room& room) {
  std::array<std::uint64_t, 4> words{};
  static_assert(sizeof words == sizeof room.partial);
  std::memcpy(words.data(), room.partial.data(), sizeof words);
  auto head = static_cast<std::uint64_t>(static_cast<std::uint32_t>(room.cpu_milli)) << 32U |
              static_cast<std::uint64_t>(static_cast<std::uint16_t>(room.whole)) << 16U |
              static_cast<std::uint16_t>(room.partials);
  std::uint64_t hash = scrambled(head ^ words[0] * 0x9E3779B97F4A7C15ULL);
  if (room.partials > 4) hash = scrambled(hash ^ words[1] ^ scrambled(words[2] + words[3]));
  return hash;
}

Room room_of(const model::NodeInfo& info, const model::NodeState& state) {
  Room room;
  room.cpu_milli = coarse(state.cpu);
  auto usable = static_cast<unsigned>(info.usable);
  room.whole = static_cast<std::int16_t>(std::popcount(state.whole & usable));
  for (unsigned bits = usable & ~state.whole; bits != 0; bits &= bits - 1) {
    insert(room, state.gpu[static_cast<std::size_t>(std::countr_zero(bits))]);
  }
  return room.whole == 0 && room.partials == 0 ? Room{} : room;  // full: CPU is worth nothing
}

int score_milli(const model::NodeInfo& info, const model::Demand& core) {
  return core.kind == model::GpuDemandSpec::Kind::kFraction ? core.score_milli
                                                            : model::device_milli(info, core);
}

bool room_serves(const Room& room, const model::NodeInfo& info, const model::Demand& demand) {
  if (!demand.asks_gpu()) return true;
  int milli = model::device_milli(info, demand);
  if (milli <= 0) return false;
  if (milli == model::kMilliPerGpu) return room.whole >= demand.count;
  bool shares = model::takes_shares(info, demand);
  int served = room.whole * (shares ? model::kMilliPerGpu / milli : 1);
  for (std::int16_t i = room.partials; i-- > 0 && served < demand.count;) {
    int free = room.partial[static_cast<std::size_t>(i)];
    if (free < milli) break;
    served += shares ? free / milli : 1;
  }
  return served >= demand.count;
}

Room room_after(Room room, const model::NodeInfo& info, const model::Demand& demand) {
  room.cpu_milli = coarse(room.cpu_milli - demand.score_cpu);
  auto milli = static_cast<std::int16_t>(score_milli(info, demand));
  if (milli <= 0) return room;
  if (milli == model::kMilliPerGpu) {
    room.whole = static_cast<std::int16_t>(std::max(room.whole - demand.count, 0));
    return room;
  }
  bool same_device = model::takes_shares(info, demand);
  std::array<std::int16_t, model::kMaxGpusPerNode> rests{};
  int kept = 0;
  for (int n = 0; n < demand.count; ++n) {
    std::int16_t rest = take_from_fullest(room, milli);
    if (rest < 0) break;
    if (same_device) {
      insert(room, rest);
    } else if (kept < model::kMaxGpusPerNode) {
      rests[static_cast<std::size_t>(kept++)] = rest;  // back only when every device is chosen
    }
  }
  for (int n = 0; n < kept; ++n) insert(room, rests[static_cast<std::size_t>(n)]);
  return room;
}

WorthScale::WorthScale(const MixSnapshot& mix)
    : class_price_(mix.class_price),
      cpu_per_gpu_q8_(mix.cpu_per_gpu_q8),
      strand_weight_q8_(mix.strand_weight_q8) {
  for (const MixShape& shape : mix.typical) {
    Item item{.gpu_milli = shape.gpu_milli,
              .num_gpu = shape.num_gpu,
              .cpu_milli = shape.cpu_milli,
              .weight = shape.weight};
    const auto milli = static_cast<std::uint32_t>(shape.gpu_milli);
    item.reciprocal = ((1U << kReciprocalBits) + milli - 1) / milli;
    const std::int64_t asked = std::int64_t{shape.gpu_milli} * shape.num_gpu;
    item.gpu_per_cpu_q16 = (kCpuHeadroom * asked << 16U) / std::max(shape.cpu_milli, 1);
    items_.push_back(item);
  }
  std::stable_sort(items_.begin(), items_.end(),
                   [](const Item& a, const Item& b) { return a.gpu_milli < b.gpu_milli; });
}

std::int32_t WorthScale::worth(const Room& room) const {
  const std::int32_t whole = room.whole;
  std::int32_t idle = whole * model::kMilliPerGpu;
  for (std::int16_t i = 0; i < room.partials; ++i)
    idle += room.partial[static_cast<std::size_t>(i)];
  if (idle == 0) return 0;
  const std::int32_t roomiest =
      whole > 0 ? model::kMilliPerGpu : room.partial[static_cast<std::size_t>(room.partials - 1)];
  std::int64_t weighted = 0;
  std::int32_t threshold = 0;
  std::int32_t room_sum = 0;
  for (const Item& item : items_) {
    if (item.gpu_milli > roomiest) break;
    if (item.gpu_milli != threshold) {
      threshold = item.gpu_milli;
      std::uint32_t copies = 0;
      for (std::int16_t i = 0; i < room.partials; ++i) {
        auto free = static_cast<std::uint32_t>(room.partial[static_cast<std::size_t>(i)]);
        copies += (free * item.reciprocal) >> kReciprocalBits;
      }
      copies += static_cast<std::uint32_t>(whole) *
                ((model::kMilliPerGpu * item.reciprocal) >> kReciprocalBits);
      room_sum = static_cast<std::int32_t>(copies) * threshold;
    }
    if (item.cpu_milli > room.cpu_milli) continue;
    std::int64_t usable = room_sum;
    if (item.num_gpu > 1)
      usable = std::int64_t{whole / item.num_gpu} * item.num_gpu * model::kMilliPerGpu;
    usable = std::min(usable, (room.cpu_milli * item.gpu_per_cpu_q16) >> 16U);
    weighted += item.weight * usable;
  }
  const std::int64_t needed_cpu = (std::int64_t{cpu_per_gpu_q8_} * idle) >> 8U;
  const std::int64_t stranded =
      std::int64_t{strand_weight_q8_} * idle * needed_cpu / (needed_cpu + room.cpu_milli + 1);
  return static_cast<std::int32_t>(weighted / kWeightOne - (stranded >> 8U));
}

std::int32_t WorthMemo::worth(const WorthScale& scale, const Room& room) {
  if (room.whole == 0 && room.partials == 0) return 0;
  Slot& slot = slots_[hash_of(room) & (slots_.size() - 1)];
  if (slot.generation != generation_ || !(slot.room == room)) {
    slot = {room, generation_, scale.worth(room)};
  }
  return slot.worth;
}

}  // namespace berth::schedule
