#include "train/sharded_step.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <numeric>
#include <set>
#include <sstream>

#include "base/hash.h"
#include "data/items.h"
#include "distributed/collectives.h"
#include "pantala/error.h"
#include "plan/compiled_plan.h"
#include "plan/step_names.h"
#include "runtime/convert.h"
#include "runtime/session_data.h"
#include "train/packed_batch.h"

namespace pantala::train {

namespace {

using distributed::Range;
using runtime::Store;

bool is_sum(const std::string& name) { return name.starts_with("accum."); }

constexpr const char* kDraw = "rng.draw";

template <class T>
void take_entries(const Store& store, std::span<const std::size_t> entries, std::vector<T>& into) {
  std::size_t at = 0;
  std::vector<std::byte> space;
  for (const std::size_t index : entries) {
    const std::span<const std::byte> bytes = store.bytes(store.entries()[index], space);
    if (!bytes.empty()) std::memcpy(into.data() + at, bytes.data(), bytes.size());
    at += bytes.size() / sizeof(T);
  }
}

// Those that are wanted.
template <class T, class IsWanted>
void give_entries(Store& store, std::span<const std::size_t> entries, const std::vector<T>& from,
                  const IsWanted& is_wanted) {
  std::span<const std::byte> rest = std::as_bytes(std::span(from));
  for (const std::size_t index : entries) {
    const Store::Entry& entry = store.entries()[index];
    const auto bytes = static_cast<std::size_t>(entry.slice.bytes);
    if (is_wanted(index)) store.write_bytes(entry, rest.first(bytes));
    rest = rest.subspan(bytes);
  }
}

template <class T>
std::size_t elements_of(const Store& store, std::span<const std::size_t> entries) {
  std::size_t count = 0;
  for (const std::size_t index : entries)
    count += static_cast<std::size_t>(store.entries()[index].slice.bytes) / sizeof(T);
  return count;
}

template <class T>
std::vector<std::span<T>> partial(std::vector<std::vector<T>>& space, std::size_t nodes) {
  return {space.begin(), space.begin() + static_cast<std::ptrdiff_t>(nodes)};
}

// What lies on the way from the root to a leaf below one of these nodes.
std::size_t space_for(const std::vector<Range>& nodes) {
  std::size_t most = nodes.size();
  for (std::size_t k = 0; k < nodes.size(); ++k) {
    std::size_t depth = k + 1;
    for (Range node = nodes[k]; !distributed::is_leaf(node); node = distributed::left(node))
      ++depth;
    most = std::max(most, depth);
  }
  return most;
}

}  // namespace

distributed::Options complete(distributed::Options options) {
  if (!options.ranks) options.ranks = distributed::single_rank();
  if (options.shards == 0) options.shards = options.ranks->size();
  if (options.shards < options.ranks->size())
    throw TypeError(fmt::format("distributed: {} shards for {} ranks: each rank needs one at least",
                                options.shards, options.ranks->size()));
  if (options.check_every < 0)
    throw TypeError(
        fmt::format("distributed: check_every must be 0 or more, got {}", options.check_every));
  return options;
}

ShardedStep::ShardedStep(const distributed::Options& options, Plans& plans)
    : ranks_(options.ranks),
      shards_(options.shards),
      mine_(distributed::shards_of_rank(shards_, ranks_->size(), ranks_->rank())),
      plans_(plans),
      rank_sum_(*ranks_, shards_),
      rank_sum64_(*ranks_, shards_),
      shares_updates_(options.shard_optimizer && ranks_->size() > 1) {
  find_entries();
  if (options.overlap && ranks_->size() > 1 &&
      distributed::ranks_are_nodes(shards_, ranks_->size()))
    early_.emplace();
}

void ShardedStep::find_entries() {
  const Store& store = plans_.session().data().store();
  const auto index_of = [&](const std::string& name) { return store.index_of(*store.find(name)); };
  const CompiledPlan compiled = plans_.session().compiled();
  for (const plan::CompiledLeaf& leaf : compiled.data()->step(plan::kAccumulate).leaves) {
    if (leaf.kind != LeafKind::state) continue;
    if (leaf.name == kDraw)
      draw_ = index_of(leaf.name);
    else if (is_sum(leaf.name))
      (leaf.type.dtype == f64 ? sums64_ : sums_).push_back(index_of(leaf.name));
    else if (leaf.updated)
      moved_.push_back({index_of(leaf.name), {}});
  }
}

// As they are completed by the main plan of rank 0, so that all ranks have the same order.
void ShardedStep::order_sums() {
  const Store& store = plans_.session().data().store();
  const plan::Plan& plan = plans_.session().data().main().compiled().plan;
  std::ranges::stable_sort(sums_, {}, [&](std::size_t entry) {
    return last_launch(plan, store.entries()[entry].leaf.name);
  });
  std::string names;
  for (const std::size_t entry : sums_) names += store.entries()[entry].leaf.name + '\n';
  std::istringstream first(distributed::gather_texts(*ranks_, names)[0]);
  std::size_t k = 0;
  for (std::string name; std::getline(first, name);) sums_[k++] = store.index_of(*store.find(name));
  find_owners();
  // What all need goes last, by itself.
  std::ranges::stable_partition(sums_, [&](std::size_t entry) { return owners_.contains(entry); });
}

// Each rank knows what its plan updates.
void ShardedStep::find_owners() {
  if (!shares_updates_) return;
  const Store& store = plans_.session().data().store();
  const CompiledPlan compiled = plans_.session().compiled();
  std::string own;
  for (const plan::CompiledLeaf& leaf : compiled.data()->step(plan::kApply).leaves)
    if (leaf.kind == LeafKind::parameter && leaf.updated)
      own += plan::accumulated_gradient(leaf.name) + '\n';
  const std::vector<std::string> of_ranks = distributed::gather_texts(*ranks_, own);
  for (std::size_t rank = 0; rank < of_ranks.size(); ++rank) {
    std::istringstream names(of_ranks[rank]);
    for (std::string name; std::getline(names, name);)
      owners_.emplace(store.index_of(*store.find(name)), static_cast<int>(rank));
  }
}

void ShardedStep::need_all_sums(bool on_this_rank) {
  if (!shares_updates_) return;
  needs_all_ = std::ranges::max(distributed::gather_all(*ranks_, std::uint8_t{on_this_rank})) != 0;
  knows_needs_ = true;
}

void ShardedStep::complete_sums() const {
  if (needs_all_ || buckets_.empty()) return;
  Store& store = plans_.session().data().settled().store();
  std::vector<std::byte> space;
  for (const std::size_t index : sums_) {
    const auto owner = owners_.find(index);
    if (owner == owners_.end() || owner->second == 0) continue;
    const Store::Entry& entry = store.entries()[index];
    if (owner->second == ranks_->rank()) {
      const distributed::Send send{0, store.bytes(entry, space)};
      ranks_->exchange(distributed::Channel::control, {&send, 1}, {});
    } else if (ranks_->rank() == 0) {
      space.resize(static_cast<std::size_t>(entry.slice.bytes));
      const distributed::Receive receive{owner->second, space};
      ranks_->exchange(distributed::Channel::control, {}, {&receive, 1});
      store.write_bytes(entry, space);
    }
  }
}

// Within a bucket the sums of each rank are neighbours, in the order of their places.
void ShardedStep::scatter_buckets() {
  const Store& store = plans_.session().data().store();
  const auto place = [&](std::size_t entry) { return rank_sum_.place_of_rank(owners_.at(entry)); };
  for (const Bucket& bucket : buckets_) {
    std::vector<std::int64_t>& bounds = bounds_.emplace_back();
    const std::span<std::size_t> sums =
        std::span(sums_).subspan(bucket.first_sum, bucket.last_sum - bucket.first_sum);
    if (!owners_.contains(sums[0])) continue;
    std::ranges::stable_sort(sums, {}, place);
    bounds.assign(static_cast<std::size_t>(ranks_->size()) + 1, 0);
    for (const std::size_t entry : sums)
      bounds[place(entry) + 1] += static_cast<std::int64_t>(elements_of<float>(store, {&entry, 1}));
    std::partial_sum(bounds.begin(), bounds.end(), bounds.begin());
  }
}

void ShardedStep::make_buckets() {
  const Store& store = plans_.session().data().store();
  std::vector<std::size_t> elements;
  for (const std::size_t entry : sums_) elements.push_back(elements_of<float>(store, {&entry, 1}));
  const auto owned =
      std::ranges::count_if(sums_, [&](std::size_t entry) { return owners_.contains(entry); });
  buckets_ = buckets_of(elements, static_cast<std::size_t>(owned));
  scatter_buckets();
  const std::size_t nodes = space_for(rank_sum_.nodes());
  space_.assign(nodes, std::vector<float>(elements_of<float>(store, sums_)));
  space64_.assign(nodes, std::vector<double>(elements_of<double>(store, sums64_)));
}

std::vector<std::int64_t> ShardedStep::shard_sizes(
    const std::vector<std::int64_t>& batch_sizes) const {
  std::set<std::int64_t> sizes;
  for (const std::int64_t items : batch_sizes)
    for (std::int64_t shard = mine_.first; shard < mine_.last; ++shard)
      sizes.insert(distributed::items_of_shard(items, shards_, shard).size());
  sizes.erase(0);
  return {sizes.rbegin(), sizes.rend()};
}

std::optional<data::Batch> ShardedStep::items_of(const data::Batch& batch,
                                                 std::int64_t shard) const {
  const Range items = distributed::items_of_shard(batch.whole_items(), shards_, shard);
  if (items.size() == 0) return {};
  if (items.first < batch.first || items.last > batch.first + batch.items())
    throw TypeError(fmt::format(
        "distributed: items {} to {} of a batch of {} belong to shard {}, but this rank was given "
        "{} items from {} on",
        items.first, items.last, batch.whole_items(), shard, batch.items(), batch.first));
  return data::slice_of(batch, items.first - batch.first, items.size());
}

ShardedStep::Parts ShardedStep::parts_of(const data::Batch& batch) const {
  Parts parts;
  for (std::int64_t shard = mine_.first; shard < mine_.last; ++shard)
    parts.push_back(items_of(batch, shard));
  return parts;
}

void ShardedStep::set_draw(std::int64_t draw) {
  if (draw_) plans_.session().data().store().set_number(*draw_, ir::Number::of(draw));
}

const std::vector<std::int64_t>& ShardedStep::ready(const SessionPlan& plan) {
  const auto [found, is_new] = ready_.try_emplace(plan.name());
  if (!is_new) return found->second;
  runtime::SessionData& session = plans_.session().data();
  const plan::Plan& compiled = session.plan(session.find_plan(plan.name())).compiled().plan;
  std::int64_t latest = 0;  // buckets go one after the other
  for (const Bucket& bucket : buckets_) {
    for (std::size_t k = bucket.first_sum; k < bucket.last_sum; ++k)
      latest =
          std::max(latest, last_launch(compiled, session.store().entries()[sums_[k]].leaf.name));
    found->second.push_back(latest);
  }
  return found->second;
}

// Whether the sums can be seen while a plan runs.
bool ShardedStep::goes_early() const { return early_ && !seen_.empty() && !seen_[0].empty(); }

void ShardedStep::see_sums() {
  Store& store = plans_.session().data().store();
  seen_.clear();
  for (const std::size_t entry : sums_) seen_.push_back(store.own_memory(store.entries()[entry]));
}

// Whether a bucket goes from the store's memory and comes back there: a large sum of a rank that
// adds nothing to it itself.
bool ShardedStep::is_direct(const Bucket& bucket) const {
  const std::vector<Range>& nodes = rank_sum_.nodes();
  return ranks_->size() > 1 && nodes.size() == 1 && distributed::is_leaf(nodes[0]) &&
         bucket.last_sum - bucket.first_sum == 1 && bucket.last - bucket.first >= kAlone &&
         !seen_[bucket.first_sum].empty();
}

// What a bucket waits for must end before the thread that sends it can.
ShardedStep::Sums ShardedStep::run(std::span<const data::Batch> window, Request request) {
  try {
    return run_step(window, request);
  } catch (const distributed::OtherRankError&) {
    if (early_) early_->give_up();
    throw;
  } catch (const std::exception& error) {
    constexpr int kCode = 2;
    if (early_) {
      ranks_->fail(error.what(), kCode);
      early_->give_up();
    }
    throw;
  }
}

ShardedStep::Sums ShardedStep::run_step(std::span<const data::Batch> window, Request request) {
  // Not before all ranks are here: trainers may be made one after the other.
  if (buckets_.empty()) {
    order_sums();
    make_buckets();
  }
  runtime::SessionData& session = plans_.session().data();
  Store& store = session.store();
  window_ = window;
  told_.clear();
  moved_to_.clear();
  if (draw_) first_draw_ = store.number(*draw_).i;
  std::vector<std::byte> space;
  for (Moved& moved : moved_) {
    const std::span<const std::byte> bytes = store.bytes(store.entries()[moved.entry], space);
    moved.before.assign(bytes.begin(), bytes.end());
  }
  went_early_ = false;
  see_sums();
  const std::size_t nodes = rank_sum_.nodes().size();
  for (std::size_t k = 0; k < nodes; ++k)
    sum_node(rank_sum_.nodes()[k], k, goes_early() && k + 1 == nodes);
  sum_over_ranks();
  give_sums();
  session.set_accumulated(std::ssize(window));
  set_draw(first_draw_ + std::ssize(window) * shards_);

  Sums sums;
  std::int64_t longest = 0;
  for (const data::Batch& batch : window) longest = std::max(longest, batch.whole_items());
  merge_moved(std::min(longest, shards_));
  if (!tell_all({request, are_own_sums_finite()}, sums)) refuse_update();
  return sums;
}

// One message a step: room for the largest number of shards that a rank has, and what it was asked.
// Returns whether all ranks have finite sums.
bool ShardedStep::tell_all(Asked asked, Sums& sums) {
  const auto most = static_cast<std::size_t>((shards_ + ranks_->size() - 1) / ranks_->size());
  struct Message {
    Asked asked;
    Told told;
  };
  // What is asked stands in the first one of a rank.
  std::vector<Message> own(most);
  for (std::size_t k = 0; k < told_.size(); ++k) own[k].told = told_[k];
  own[0].asked = asked;
  const std::vector<std::byte> bytes = distributed::gather_all(
      *ranks_, distributed::Channel::control, std::as_bytes(std::span(own)));
  std::vector<Message> all(bytes.size() / sizeof(Message));
  std::memcpy(all.data(), bytes.data(), bytes.size());
  bool are_finite = true;
  for (const Message& message : all) {
    // Places that a rank leaves free add nothing.
    sums.loss += message.told.loss;
    sums.labels += message.told.labels;
    sums.request = std::max(sums.request, message.asked.request);
    are_finite = are_finite && message.asked.is_finite;
  }
  return are_finite;
}

// Those of the last run of a plan.
bool ShardedStep::are_stored_sums_finite() const {
  const Store& store = plans_.session().data().store();
  const auto is_finite = [](auto value) { return std::isfinite(value); };
  std::vector<float> values(elements_of<float>(store, sums_));
  std::vector<double> values64(elements_of<double>(store, sums64_));
  take_entries(store, sums_, values);
  take_entries(store, sums64_, values64);
  return std::ranges::all_of(values, is_finite) && std::ranges::all_of(values64, is_finite);
}

bool ShardedStep::has_sum(std::size_t sum) const {
  const auto owner = owners_.find(sum);
  return needs_all_ || owner == owners_.end() || owner->second == ranks_->rank();
}

// As the guard of an update looks at them (compiler/guard.h), which of parameters that are updated
// by one rank sees only those of its own rank.
bool ShardedStep::are_own_sums_finite() const {
  if (!shares_updates_) return true;
  runtime::SessionData& session = plans_.session().data();
  const Store& store = session.store();
  const double weight = session.accumulated_weight();
  const auto is_finite = [&](auto zero, std::size_t entry) {
    using T = decltype(zero);
    std::vector<T> values(elements_of<T>(store, {&entry, 1}));
    take_entries(store, {&entry, 1}, values);
    double squares = 0;
    for (const T value : values) squares += value / weight * (value / weight);
    return squares <= static_cast<double>(std::numeric_limits<T>::max());
  };
  return std::ranges::all_of(
             sums_, [&](std::size_t sum) { return !has_sum(sum) || is_finite(0.0F, sum); }) &&
         std::ranges::all_of(sums64_, [&](std::size_t sum) { return is_finite(0.0, sum); });
}

// By a loss that is no number, on every rank.
void ShardedStep::refuse_update() {
  Store& store = plans_.session().data().store();
  const Store::Entry& entry = *store.find(plan::kAccumulatedLoss);
  Literal loss = store.read(entry);
  loss.f()[0] = std::numeric_limits<double>::quiet_NaN();
  store.write(entry, loss);
}

// Shards are run once more, micro-batch by micro-batch.
std::optional<ShardedStep::BadShard> ShardedStep::find_bad(std::span<const data::Batch> window) {
  std::string own;
  went_early_ = false;
  std::int64_t bad = shards_;
  const std::int64_t draw = first_draw_;
  for (std::int64_t shard = mine_.first; shard < mine_.last && bad == shards_; ++shard)
    for (std::size_t k = 0; k < window.size() && bad == shards_; ++k) {
      window_ = window.subspan(k, 1);
      const std::optional<data::Batch> items = items_of(window_[0], shard);
      if (!items) continue;
      first_draw_ = draw + static_cast<std::int64_t>(k) * shards_;
      sum_shard(shard, 0, false);
      if (std::isfinite(told_.back().loss) && are_stored_sums_finite()) continue;
      bad = shard;
      own = packed(*items);
    }
  const std::vector<std::int64_t> all = distributed::gather_all(*ranks_, bad);
  const std::vector<std::string> items = distributed::gather_texts(*ranks_, own);
  const auto first = std::ranges::min_element(all);
  const auto rank = static_cast<std::size_t>(first - all.begin());
  first_draw_ = draw;
  take_back();
  if (*first == shards_) return {};
  return BadShard{*first, static_cast<int>(rank), unpacked(items[rank])};
}

void ShardedStep::take_back() {
  runtime::SessionData& session = plans_.session().data();
  for (const Moved& moved : moved_)
    session.store().write_bytes(session.store().entries()[moved.entry], moved.before);
  session.set_accumulated(0);
  set_draw(first_draw_);
}

Request ShardedStep::agree(Request request) {
  return std::ranges::max(distributed::gather_all(*ranks_, request));
}

// The sums of a node lie in its space; those of its right half are made in the next one. What went
// early has been added already.
void ShardedStep::sum_node(const Range& node, std::size_t into, bool is_last) {
  if (distributed::is_leaf(node)) return sum_shard(node.first, into, is_last);
  sum_node(distributed::left(node), into, false);
  sum_node(distributed::right(node), into + 1, is_last);
  if (!(is_last && went_early_)) distributed::add(space_[into], space_[into + 1], space_[into]);
  distributed::add(space64_[into], space64_[into + 1], space64_[into]);
}

void ShardedStep::sum_shard(std::int64_t shard, std::size_t into, bool is_last) {
  runtime::SessionData& session = plans_.session().data();
  for (const Moved& moved : moved_)
    session.store().write_bytes(session.store().entries()[moved.entry], moved.before);
  session.set_accumulated(0);
  std::vector<std::pair<std::size_t, data::Batch>> parts;  // with the number of the micro-batch
  for (std::size_t k = 0; k < window_.size(); ++k)
    if (std::optional<data::Batch> items = items_of(window_[k], shard))
      parts.emplace_back(k, std::move(*items));
  Told told;
  for (std::size_t k = 0; k < parts.size(); ++k) {
    const auto& [number, items] = parts[k];
    set_draw(first_draw_ + static_cast<std::int64_t>(number) * shards_ + shard);
    const SessionPlan& plan = plans_.step_on(items);
    run_plan(plan, into, is_last && k + 1 == parts.size());
    const std::int64_t labels = plans_.labels_that_count(items);
    // A mean over no labels is no number, which would spoil the sum.
    if (labels > 0) told.loss += plan.loss() * static_cast<double>(labels);
    told.labels += labels;
  }
  told_.push_back(told);
  if (parts.empty()) {
    std::ranges::fill(space_[into], 0.0F);
    std::ranges::fill(space64_[into], 0.0);
    for (const Bucket& bucket : buckets_)
      if (is_direct(bucket)) std::ranges::fill(seen_[bucket.first_sum], std::byte{});
    return;
  }
  const Store& store = session.settled().store();
  for (const Bucket& bucket : buckets_)
    if (!went_early_ && !is_direct(bucket)) take_sums(into, bucket);
  take_entries(store, sums64_, space64_[into]);
  note_moved();
}

// The last run of this rank hands its sums on while it goes on.
void ShardedStep::run_plan(const SessionPlan& plan, std::size_t into, bool is_last) {
  if (!is_last) return plan.accumulate();
  runtime::SessionData& session = plans_.session().data();
  ranks_->set_waiting(false);
  early_->begin(ready(plan), [this, into](std::size_t number) {
    const Bucket& bucket = buckets_[number];
    if (!is_direct(bucket)) take_sums(into, bucket);
    for (std::size_t depth = into; depth > 0; --depth)
      distributed::add(part(space_[depth - 1], bucket), part(space_[depth], bucket),
                       part(space_[depth - 1], bucket));
    send_bucket(number);
  });
  went_early_ = true;
  session.tell_finished(early_->finished());
  try {
    plan.accumulate();
  } catch (...) {
    session.tell_finished(nullptr);
    ranks_->set_waiting(true);
    throw;
  }
  session.tell_finished(nullptr);
  ranks_->set_waiting(true);
  const auto begin = std::chrono::steady_clock::now();
  early_->end();
  exposed_ += std::chrono::steady_clock::now() - begin;
  plans_.session().add_span("gradients", "network", begin);
}

std::span<float> ShardedStep::part(std::vector<float>& space, const Bucket& bucket) {
  return std::span(space).subspan(bucket.first, bucket.last - bucket.first);
}

// Out of the store's memory where it can be seen: a run that goes on does not touch it any more.
void ShardedStep::take_sums(std::size_t into, const Bucket& bucket) {
  const Store& store = plans_.session().data().store();
  float* to = space_[into].data() + bucket.first;
  std::vector<std::byte> space;
  for (std::size_t k = bucket.first_sum; k < bucket.last_sum; ++k) {
    const std::span<const std::byte> bytes =
        seen_[k].empty() ? store.bytes(store.entries()[sums_[k]], space) : seen_[k];
    if (!bytes.empty()) std::memcpy(to, bytes.data(), bytes.size());
    to += bytes.size() / sizeof(float);
  }
}

// What this rank gives to the sum of a bucket, by its nodes.
std::vector<std::span<float>> ShardedStep::given(const Bucket& bucket) {
  if (is_direct(bucket))
    return {{reinterpret_cast<float*>(seen_[bucket.first_sum].data()), bucket.last - bucket.first}};
  std::vector<std::span<float>> partial;
  for (std::size_t k = 0; k < rank_sum_.nodes().size(); ++k)
    partial.push_back(part(space_[k], bucket));
  return partial;
}

void ShardedStep::send_bucket(std::size_t bucket) {
  const std::vector<std::span<float>> partial = given(buckets_[bucket]);
  if (is_scattered(bucket))
    rank_sum_.scatter(partial, bounds_[bucket]);
  else
    rank_sum_.run(partial);
}

void ShardedStep::give_sums() {
  Store& store = plans_.session().data().settled().store();
  std::set<std::size_t> there;
  for (const Bucket& bucket : buckets_)
    if (is_direct(bucket)) there.insert(sums_[bucket.first_sum]);
  give_entries(store, sums_, space_[0],
               [&](std::size_t sum) { return has_sum(sum) && !there.contains(sum); });
  give_entries(store, sums64_, space64_[0], [](std::size_t) { return true; });
}

void ShardedStep::sum_over_ranks() {
  const auto begin = std::chrono::steady_clock::now();
  for (std::size_t bucket = 0; !went_early_ && bucket < buckets_.size(); ++bucket)
    send_bucket(bucket);
  if (!sums64_.empty()) rank_sum64_.run(partial(space64_, rank_sum64_.nodes().size()));
  if (went_early_ || ranks_->size() == 1) return;
  exposed_ += std::chrono::steady_clock::now() - begin;
  plans_.session().add_span("gradients", "network", begin);
}

void ShardedStep::note_moved() {
  const Store& store = plans_.session().data().store();
  std::vector<std::byte> space;
  for (const Moved& moved : moved_) {
    const std::span<const std::byte> bytes = store.bytes(store.entries()[moved.entry], space);
    moved_to_.insert(moved_to_.end(), bytes.begin(), bytes.end());
  }
}

void ShardedStep::merge_moved(std::int64_t shards_with_items) {
  if (moved_.empty()) return;
  Store& store = plans_.session().data().store();
  const std::vector<std::byte> all = distributed::gather_lists<std::byte>(*ranks_, moved_to_);
  const std::size_t of_shard = all.size() / static_cast<std::size_t>(shards_with_items);
  std::size_t at = 0;
  for (const Moved& moved : moved_) {
    const Store::Entry& entry = store.entries()[moved.entry];
    const std::byte* first = all.data() + at;
    at += moved.before.size();
    Literal merged = runtime::decode(entry.leaf.type, first);
    if (merged.is_float()) {
      const auto sum = merged.f();
      for (std::int64_t shard = 1; shard < shards_with_items; ++shard) {
        const Literal other =
            runtime::decode(entry.leaf.type, first + static_cast<std::size_t>(shard) * of_shard);
        for (std::size_t k = 0; k < sum.size(); ++k) sum[k] += other.f()[k];
      }
      for (double& number : sum) number /= static_cast<double>(shards_with_items);
    }
    std::vector<std::byte> bytes(moved.before.size());
    runtime::encode(merged, entry.leaf.type.dtype, bytes.data());
    store.write_bytes(entry, bytes);
  }
}

void ShardedStep::compare_weights(std::int64_t step) const {
  const Store& store = plans_.session().data().settled().store();
  std::uint64_t hash = kHashSeed;
  std::vector<std::byte> space;
  for (const Store::Entry& entry : store.entries())
    if (entry.leaf.kind == LeafKind::parameter) hash = hash_bytes(store.bytes(entry, space), hash);
  const std::vector<std::uint64_t> all = distributed::gather_all(*ranks_, hash);
  // What most ranks have; of equally many, what the first of them has.
  const auto votes = [&](std::uint64_t value) { return std::ranges::count(all, value); };
  const std::uint64_t common = *std::ranges::max_element(all, {}, votes);
  std::vector<std::string> astray;
  for (int rank = 0; rank < ranks_->size(); ++rank)
    if (all[static_cast<std::size_t>(rank)] != common)
      astray.push_back(fmt::format("rank {} on {}", rank, ranks_->host(rank)));
  if (astray.empty()) return;
  throw distributed::AstrayError(fmt::format(
      "after step {} the weights of {} are not those of the other ranks: bad memory, or "
      "a callback that changes values on some ranks alone; go on from the last "
      "checkpoint without that machine",
      step, fmt::join(astray, ", ")));
}

}  // namespace pantala::train
