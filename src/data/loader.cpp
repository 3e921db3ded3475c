#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <utility>

#include "data/fingerprint.h"
#include "data/items.h"
#include "data/order.h"
#include "data/prefetch.h"
#include "data/preparation.h"
#include "distributed/shards.h"
#include "pantala/error.h"

namespace pantala::data {

namespace {

constexpr int kMaxThreads = 256;
constexpr std::int64_t kMaxPrefetch = 1 << 16;

using Order = std::vector<std::int64_t>;

void check_seek(std::int64_t batches) {
  if (batches < 0) throw TypeError(fmt::format("seek: {} batches", batches));
}

void check_options(const LoaderOptions& options) {
  if (options.batch_size < 1)
    throw TypeError(
        fmt::format("loader: batch_size is {}; expected 1 or more", options.batch_size));
  if (options.threads < 0 || options.threads > kMaxThreads)
    throw TypeError(
        fmt::format("loader: {} threads; expected 0 to {}", options.threads, kMaxThreads));
  if (options.prefetch < 1 || options.prefetch > kMaxPrefetch)
    throw TypeError(
        fmt::format("loader: prefetch is {}; expected 1 to {}", options.prefetch, kMaxPrefetch));
  if (options.shards < 1 || options.first_shard < 0 || options.last_shard <= options.first_shard ||
      options.last_shard > options.shards)
    throw TypeError(fmt::format("loader: shards {} to {} of {}; expected a part of 1 or more",
                                options.first_shard, options.last_shard, options.shards));
}

class DatasetLoader : public Loader {
 public:
  DatasetLoader(const Dataset& dataset, const LoaderOptions& options)
      : options_(options),
        preparation_(std::make_shared<const Preparation>(dataset, options.transforms)),
        items_(options.drop_last ? dataset.size() - dataset.size() % options.batch_size
                                 : dataset.size()),
        batches_(items_ / options.batch_size + (items_ % options.batch_size != 0)) {
    if (options.threads > 0) prefetcher_.emplace(options.threads, options.prefetch);
    order(dataset.size(), 0);
  }

  void shuffle(std::uint64_t epoch) override { seek(epoch, 0); }
  void reset() override { rewind(0); }

  void seek(std::uint64_t epoch, std::int64_t batches) override {
    check_seek(batches);
    order(static_cast<std::int64_t>(order_->size()), epoch);
    rewind(std::min(batches, batches_));
  }

  std::optional<Batch> next_batch() override {
    if (next_ == batches_) return {};
    if (!prefetcher_) {
      Batch batch = make_batches()(next_);
      ++next_;
      return batch;
    }
    if (!prefetcher_->running()) prefetcher_->start(make_batches(), next_, batches_);
    Batch batch = prefetcher_->take();
    ++next_;
    return batch;
  }

  std::optional<std::int64_t> batches() const override { return batches_; }
  std::optional<std::int64_t> items() const override { return items_; }
  std::vector<std::int64_t> batch_sizes() const override {
    std::vector<std::int64_t> sizes;
    if (items_ >= options_.batch_size) sizes.push_back(options_.batch_size);
    if (items_ % options_.batch_size != 0) sizes.push_back(items_ % options_.batch_size);
    return sizes;
  }

  std::string fingerprint() const override {
    if (fingerprint_.empty()) {
      const std::string options =
          fmt::format("batch_size {} shuffle {} drop_last {} seed {}", options_.batch_size,
                      options_.shuffle, options_.drop_last, options_.seed);
      fingerprint_ = fmt::format("{:016x}", fnv1a(options, preparation_->hash()));
    }
    return fingerprint_;
  }

 private:
  void order(std::int64_t count, std::uint64_t epoch) {
    epoch_ = epoch;
    if (order_ && !options_.shuffle) return;
    order_ = std::make_shared<const Order>(
        options_.shuffle ? random_order(count, options_.seed, epoch, Stream::order)
                         : plain_order(count));
  }
  void rewind(std::int64_t next) {
    next_ = next;
    if (prefetcher_) prefetcher_->stop();
  }
  // Makes any batch of the present order; it owns all that it reads.
  Prefetcher::Make make_batches() const {
    return [preparation = preparation_, order = order_, options = options_,
            key = DrawKey{options_.seed, epoch_}](std::int64_t number) {
      const std::int64_t first = number * options.batch_size;
      const std::int64_t count =
          std::min(options.batch_size, static_cast<std::int64_t>(order->size()) - first);
      const distributed::Range mine = distributed::items_of_shards(
          count, options.shards, {options.first_shard, options.last_shard});
      Batch batch =
          preparation->make(std::span(*order).subspan(static_cast<std::size_t>(first + mine.first),
                                                      static_cast<std::size_t>(mine.size())),
                            key);
      if (options.shards > 1) {
        batch.whole = count;
        batch.first = mine.first;
      }
      return batch;
    };
  }

  const LoaderOptions options_;
  const std::shared_ptr<const Preparation> preparation_;
  const std::int64_t items_, batches_;  // of a pass
  std::shared_ptr<const Order> order_;
  std::uint64_t epoch_ = 0;
  std::int64_t next_ = 0;  // to be given
  mutable std::string fingerprint_;
  std::optional<Prefetcher> prefetcher_;
};

class BatchesLoader : public Loader {
 public:
  BatchesLoader(std::vector<Batch> batches, std::uint64_t seed)
      : batches_(std::move(batches)), seed_(seed), order_(plain_order(count())) {
    for (std::size_t k = 0; k < batches_.size(); ++k) {
      const Batch& batch = batches_[k];
      check_array(batch.data, fmt::format("batch {}: data", k));
      check_array(batch.labels, fmt::format("batch {}: labels", k));
      if (batch.data.items() != batch.labels.items())
        throw TypeError(fmt::format("batch {}: {} items with {} labels", k, batch.data.items(),
                                    batch.labels.items()));
      for (const NamedArray& other : batch.more)
        check_array(other.array, fmt::format("batch {}: {}", k, other.name));
    }
  }

  void shuffle(std::uint64_t epoch) override { seek(epoch, 0); }
  void reset() override { next_ = 0; }
  void seek(std::uint64_t epoch, std::int64_t batches) override {
    check_seek(batches);
    order_ = random_order(count(), seed_, epoch, Stream::order);
    next_ = std::min(batches, count());
  }
  std::optional<Batch> next_batch() override {
    if (next_ == count()) return {};
    return batches_[static_cast<std::size_t>(order_[static_cast<std::size_t>(next_++)])];
  }
  std::optional<std::int64_t> batches() const override { return count(); }
  std::optional<std::int64_t> items() const override {
    std::int64_t items = 0;
    for (const Batch& batch : batches_) items += batch.items();
    return items;
  }
  std::vector<std::int64_t> batch_sizes() const override {
    std::set<std::int64_t> sizes;
    for (const Batch& batch : batches_) sizes.insert(batch.items());
    return {sizes.begin(), sizes.end()};
  }
  std::string fingerprint() const override {
    if (fingerprint_.empty()) {
      std::uint64_t hash = hash_combine(kHashSeed, seed_);
      for (const Batch& batch : batches_) {
        hash = hash_array(batch.labels, hash_array(batch.data, hash));
        for (const NamedArray& other : batch.more) hash = hash_array(other.array, hash);
      }
      fingerprint_ = fmt::format("{:016x}", hash);
    }
    return fingerprint_;
  }

 private:
  std::int64_t count() const { return static_cast<std::int64_t>(batches_.size()); }

  const std::vector<Batch> batches_;
  const std::uint64_t seed_;
  Order order_;
  std::int64_t next_ = 0;
  mutable std::string fingerprint_;
};

}  // namespace

void Loader::seek(std::uint64_t epoch, std::int64_t batches) {
  check_seek(batches);
  shuffle(epoch);
  while (batches-- > 0 && next_batch()) {}
}

std::unique_ptr<Loader> make_loader(const Dataset& dataset, const LoaderOptions& options) {
  check_options(options);
  return std::make_unique<DatasetLoader>(dataset, options);
}

std::unique_ptr<Loader> make_loader(std::vector<Batch> batches, std::uint64_t seed) {
  return std::make_unique<BatchesLoader>(std::move(batches), seed);
}

}  // namespace pantala::data
