// One cycle: nominate every head on one snapshot, order the entries, process them one by one.
#pragma once

#include "judge/queue_book.h"
#include "judge/queue_judge.h"

namespace berth::judging::quota {

QueueCycle run_cycle(Book& book, std::int64_t now_ns);

}  // namespace berth::judging::quota
