// openb-saturate: how much GPU stays unallocated when a production trace fills a real inventory.
//
// The experiment of FGD (Weng et al., ATC 2023): pods arrive one by one in random order until the
// demand is 1.3 times the GPUs, each is placed at once or dropped, none leaves. Every policy sees
// the same arrivals. Prints means over the seeds next to the published figures and to a lower
// bound.
#include <fmt/format.h>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <exception>
#include <filesystem>
#include <fstream>
#include <map>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "lp_bound.h"
#include "openb_berth.h"
#include "openb_peers.h"
#include "openb_trace.h"

namespace berth::openb {
namespace {

constexpr double kInflation = 1.3;
constexpr std::string_view kUsage =
    "openb-saturate [options]\n"
    "  --data DIR        folder of the openb CSV files (../shared/data/openb)\n"
    "  --lists A,B       pod lists by name, file openb_pod_list_NAME.csv (all in the folder)\n"
    "  --seeds 42-51     seeds, a range or a comma list\n"
    "  --policies A,B    berth, random, dotprod, clustering, packing, bestfit, fgd (all)\n"
    "  --arrived N       demand in % of the GPUs at which allocation is read, 1..130 (100)\n"
    "  --published FILE  published figures to compare with\n"
    "                    (../shared/data/fgd/allocated_percent_by_arrived_percent.csv)\n"
    "  --json FILE       write every run\n"
    "  --threads N       worker threads (all cores)\n"
    "  --no-lp           skip the lower bound\n";

struct Options {
  std::string data = "../shared/data/openb";
  std::string published = "../shared/data/fgd/allocated_percent_by_arrived_percent.csv";
  bool published_named = false;
  std::vector<std::string> lists;
  std::vector<std::string> policies;
  std::vector<uint64_t> seeds;
  std::string json;
  unsigned threads = std::max(1U, std::thread::hardware_concurrency());
  int arrived_pct = 100;
  bool lp = true;
};

std::vector<std::string> parts_of(const std::string& text, char separator) {
  std::vector<std::string> parts;
  size_t from = 0;
  while (from <= text.size()) {
    const size_t to = std::min(text.find(separator, from), text.size());
    if (to > from) parts.push_back(text.substr(from, to - from));
    from = to + 1;
  }
  return parts;
}

uint64_t parse_number(const std::string& option, const std::string& text, uint64_t least,
                      uint64_t most) {
  const bool digits = !text.empty() && text.size() <= 9 &&
                      text.find_first_not_of("0123456789") == std::string::npos;
  const uint64_t value = digits ? std::stoull(text) : 0;
  if (!digits || value < least || value > most) {
    throw std::runtime_error(
        fmt::format("{}: '{}' is not a number from {} to {}", option, text, least, most));
  }
  return value;
}

std::vector<uint64_t> parse_seeds(const std::string& text) {
  std::vector<uint64_t> seeds;
  for (const std::string& part : parts_of(text, ',')) {
    const auto ends = parts_of(part, '-');
    const uint64_t first = parse_number("--seeds", ends.front(), 0, 999'999'999);
    const uint64_t last = parse_number("--seeds", ends.back(), first, first + 9'999);
    for (uint64_t seed = first; seed <= last; ++seed) seeds.push_back(seed);
  }
  if (seeds.empty()) throw std::runtime_error("--seeds names no seed");
  return seeds;
}

std::vector<std::string> all_policies() {
  std::vector<std::string> names = {"berth"};
  names.insert(names.end(), peer_names().begin(), peer_names().end());
  return names;
}

void check_policies(const std::vector<std::string>& policies) {
  const auto known = all_policies();
  for (const std::string& policy : policies) {
    if (std::find(known.begin(), known.end(), policy) == known.end()) {
      throw std::runtime_error(fmt::format("--policies: no policy '{}'", policy));
    }
  }
}

void set_option(Options& options, const std::string& name, const std::string& value) {
  if (name == "--data") {
    options.data = value;
  } else if (name == "--lists") {
    options.lists = parts_of(value, ',');
  } else if (name == "--seeds") {
    options.seeds = parse_seeds(value);
  } else if (name == "--policies") {
    options.policies = parts_of(value, ',');
  } else if (name == "--arrived") {
    options.arrived_pct = static_cast<int>(parse_number(name, value, 1, kArrivedPoints - 1));
  } else if (name == "--published") {
    options.published = value;
    options.published_named = true;
  } else if (name == "--json") {
    options.json = value;
  } else if (name == "--threads") {
    options.threads = static_cast<unsigned>(parse_number(name, value, 1, 256));
  } else {
    throw std::runtime_error(fmt::format("no option '{}'\n{}", name, kUsage));
  }
}

Options parse_options(const std::vector<std::string>& words) {
  Options options;
  for (size_t at = 0; at < words.size(); ++at) {
    if (words[at] == "--no-lp") {
      options.lp = false;
      continue;
    }
    if (at + 1 == words.size()) {
      throw std::runtime_error(fmt::format("'{}' needs a value\n{}", words[at], kUsage));
    }
    set_option(options, words[at], words[at + 1]);
    ++at;
  }
  if (options.seeds.empty()) options.seeds = parse_seeds("42-51");
  if (options.policies.empty()) options.policies = all_policies();
  check_policies(options.policies);
  if (options.lists.empty()) options.lists = list_names(options.data);
  if (options.lists.empty()) {
    throw std::runtime_error("no openb_pod_list_*.csv in '" + options.data + "'");
  }
  return options;
}

// Runs work(0..count-1) on a few threads. The first exception ends the program's run.
template <class Work>
double timed_parallel(unsigned threads, size_t count, Work work) {
  const auto start = std::chrono::steady_clock::now();
  std::atomic<size_t> next{0};
  std::vector<std::exception_ptr> failures(threads);
  std::vector<std::thread> workers;
  for (unsigned worker = 0; worker < threads; ++worker) {
    workers.emplace_back([&, worker] {
      try {
        for (size_t at = next++; at < count; at = next++) work(at);
      } catch (...) {
        failures[worker] = std::current_exception();
        next = count;
      }
    });
  }
  for (std::thread& worker : workers) worker.join();
  for (const std::exception_ptr& failure : failures) {
    if (failure) std::rethrow_exception(failure);
  }
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

struct Row {
  size_t list = 0;
  size_t policy = 0;
  size_t seed = 0;
  double unallocated_pct = 0;
  std::optional<double> lp_bound_pct;
};

struct Spread {
  double sum = 0;
  double least = 1e9;
  double most = -1e9;
  int count = 0;

  void add(double value) {
    sum += value;
    least = std::min(least, value);
    most = std::max(most, value);
    ++count;
  }
  double mean() const { return count == 0 ? 0 : sum / count; }
};

// Mean published unallocated % by (list, published policy name).
std::map<std::pair<std::string, std::string>, double> load_published(const std::string& path,
                                                                     int arrived_pct) {
  std::ifstream in(path);
  if (!in) throw std::runtime_error(path + ": cannot be opened");
  std::string line;
  std::getline(in, line);
  const auto header = parts_of(line, ',');
  const auto column = std::find(header.begin(), header.end(), std::to_string(arrived_pct));
  if (column == header.end()) throw std::runtime_error(path + ": has no such arrived column");
  const auto at = static_cast<size_t>(column - header.begin());
  std::map<std::pair<std::string, std::string>, Spread> rows;
  while (std::getline(in, line)) {
    const auto fields = parts_of(line, ',');
    if (fields.size() != header.size()) throw std::runtime_error(path + ": bad row: " + line);
    std::string list = fields[0];
    const std::string prefix = "openb_pod_list_";
    if (list.starts_with(prefix)) list.erase(0, prefix.size());
    rows[{list, fields[1]}].add(100.0 - std::stod(fields[at]));
  }
  std::map<std::pair<std::string, std::string>, double> means;
  for (const auto& [key, spread] : rows) means[key] = spread.mean();
  return means;
}

class Experiment {
 public:
  explicit Experiment(Options options)
      : options_(std::move(options)), inventory_(load_inventory(options_.data)) {
    for (const std::string& name : options_.lists) {
      lists_.push_back(load_pod_list(options_.data, name, inventory_));
    }
    arrivals_.resize(lists_.size() * options_.seeds.size());
    for (size_t at = 0; at < arrivals_.size(); ++at) {
      arrivals_[at] = make_arrivals(inventory_, lists_[at / options_.seeds.size()],
                                    options_.seeds[at % options_.seeds.size()], kInflation);
    }
    for (size_t list = 0; list < lists_.size(); ++list) {
      for (size_t seed = 0; seed < options_.seeds.size(); ++seed) {
        for (size_t policy = 0; policy < options_.policies.size(); ++policy) {
          rows_.push_back({list, policy, seed, 0, std::nullopt});
        }
      }
    }
  }

  void place_all() {
    placement_s_ = timed_parallel(options_.threads, rows_.size(), [this](size_t at) {
      Row& row = rows_[at];
      const Fill fill = run(options_.policies[row.policy], row.list, row.seed);
      const auto point = static_cast<size_t>(options_.arrived_pct);
      row.unallocated_pct = 100.0 - fill.allocated_pct[point];
      decisions_ += fill.decisions;
    });
  }

  void bound_all() {
    if (!options_.lp || !lp_available()) return;
    std::vector<std::optional<double>> bounds(arrivals_.size());
    lp_s_ = timed_parallel(options_.threads, bounds.size(), [&](size_t at) {
      bounds[at] = lp_bound_pct(inventory_, lists_[at / options_.seeds.size()], arrivals_[at],
                                options_.arrived_pct);
    });
    for (Row& row : rows_) row.lp_bound_pct = bounds[arrival_index(row.list, row.seed)];
  }

  void print() const {
    fmt::print("{} nodes, {} GPUs; unallocated GPU % at {} % arrived, {} seeds\n\n",
               inventory_.nodes.size(), inventory_.gpu_milli / kWholeGpu, options_.arrived_pct,
               options_.seeds.size());
    print_table();
    fmt::print("\nplacement: {} runs, {} decisions in {:.1f} s on {} threads\n", rows_.size(),
               decisions_.load(), placement_s_, options_.threads);
    if (options_.lp && lp_available()) {
      fmt::print("lower bound: {} linear programs in {:.1f} s\n", arrivals_.size(), lp_s_);
    } else {
      fmt::print("lower bound: {}\n",
                 options_.lp ? "not built (no LP solver was found)" : "skipped");
    }
    print_deviation();
  }

  void write_json() const {
    if (options_.json.empty()) return;
    std::ofstream out(options_.json);
    out << "{\"rows\": [\n";
    for (size_t at = 0; at < rows_.size(); ++at) {
      const Row& row = rows_[at];
      out << fmt::format(
          "  {{\"list\": \"{}\", \"policy\": \"{}\", \"seed\": {}, \"arrived_pct\": {}, "
          "\"unallocated_pct\": {:.4f}, \"lp_bound_pct\": {}}}{}\n",
          options_.lists[row.list], options_.policies[row.policy], options_.seeds[row.seed],
          options_.arrived_pct, row.unallocated_pct,
          row.lp_bound_pct ? fmt::format("{:.4f}", *row.lp_bound_pct) : "null",
          at + 1 == rows_.size() ? "" : ",");
    }
    out << fmt::format("], \"placement_s\": {:.3f}, \"lp_s\": {:.3f}, \"threads\": {}}}\n",
                       placement_s_, lp_s_, options_.threads);
    out.flush();
    if (!out) throw std::runtime_error(options_.json + ": cannot be written");
  }

 private:
  size_t arrival_index(size_t list, size_t seed) const {
    return list * options_.seeds.size() + seed;
  }

  Fill run(const std::string& policy, size_t list, size_t seed) const {
    const Arrivals& arrivals = arrivals_[arrival_index(list, seed)];
    if (policy == "berth") return run_berth(inventory_, lists_[list], arrivals);
    return run_peer(policy, inventory_, lists_[list], arrivals);
  }

  Spread spread_of(size_t list, size_t policy) const {
    Spread spread;
    for (const Row& row : rows_) {
      if (row.list == list && row.policy == policy) spread.add(row.unallocated_pct);
    }
    return spread;
  }

  void print_table() const {
    fmt::print("{:<14}", "list");
    for (const std::string& policy : options_.policies) fmt::print("{:>20}", policy);
    fmt::print("{:>10}\n", "LP bound");
    for (size_t list = 0; list < lists_.size(); ++list) {
      fmt::print("{:<14}", options_.lists[list]);
      for (size_t policy = 0; policy < options_.policies.size(); ++policy) {
        const Spread spread = spread_of(list, policy);
        fmt::print("{:>20}",
                   fmt::format("{:.2f} {:.2f}..{:.2f}", spread.mean(), spread.least, spread.most));
      }
      Spread bound;
      for (const Row& row : rows_) {
        if (row.list == list && row.lp_bound_pct) bound.add(*row.lp_bound_pct);
      }
      fmt::print("{:>10}\n", bound.count == 0 ? "-" : fmt::format("{:.2f}", bound.mean()));
    }
  }

  void print_deviation() const {
    if (!options_.published_named && !std::filesystem::exists(options_.published)) {
      fmt::print("published figures: '{}' is not there\n", options_.published);
      return;
    }
    const auto published = load_published(options_.published, options_.arrived_pct);
    double worst = 0;
    std::string where = "none of these runs was published";
    double sum = 0;
    int compared = 0;
    for (size_t list = 0; list < lists_.size(); ++list) {
      for (size_t policy = 0; policy < options_.policies.size(); ++policy) {
        const std::string& name = options_.policies[policy];
        const auto found = published.find({options_.lists[list], published_name(name)});
        if (found == published.end()) continue;
        const double off = spread_of(list, policy).mean() - found->second;
        sum += std::abs(off);
        ++compared;
        if (compared > 1 && std::abs(off) <= std::abs(worst)) continue;
        worst = off;
        where = fmt::format("{} on {}", name, options_.lists[list]);
      }
    }
    fmt::print(
        "against the published means: {} compared, largest deviation {:+.2f} points ({}), "
        "mean {:.2f}\n",
        compared, worst, where, compared == 0 ? 0 : sum / compared);
  }

  Options options_;
  Inventory inventory_;
  std::vector<PodList> lists_;
  std::vector<Arrivals> arrivals_;
  std::vector<Row> rows_;
  std::atomic<int64_t> decisions_{0};
  double placement_s_ = 0;
  double lp_s_ = 0;
};

int run_program(const std::vector<std::string>& words) {
  for (const std::string& word : words) {
    if (word == "--help" || word == "-h") {
      fmt::print("{}", kUsage);
      return 0;
    }
  }
  Experiment experiment(parse_options(words));
  experiment.place_all();
  experiment.bound_all();
  experiment.print();
  experiment.write_json();
  return 0;
}

}  // namespace
}  // namespace berth::openb

int main(int argc, char** argv) {
  try {
    return berth::openb::run_program(std::vector<std::string>(argv + 1, argv + argc));
  } catch (const std::exception& error) {
    fmt::print(stderr, "openb-saturate: {}\n", error.what());
    return 2;
  }
}
