// Loaders: orders, batches, positions, threads. Run under the thread sanitizer too.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <numeric>
#include <random>
#include <set>
#include <thread>

#include "data/order.h"
#include "data/prefetch.h"
#include "pantala/data.h"
#include "pantala/error.h"

namespace pantala::data::loader_test {
namespace {

using testing::ElementsAre;

// 3x3 images, each of one value; label k of item k.
Dataset numbered(std::int64_t items) {
  std::vector<std::uint8_t> pixels;
  std::vector<std::int32_t> labels(static_cast<std::size_t>(items));
  std::iota(labels.begin(), labels.end(), 0);
  for (std::int64_t k = 0; k < items * 9; ++k) pixels.push_back(static_cast<std::uint8_t>(k % 251));
  return make_dataset({{items, 1, 3, 3}, pixels}, {{items}, labels}, "numbered");
}

std::vector<std::int32_t> labels_of(const Batch& batch) {
  return std::get<std::vector<std::int32_t>>(batch.labels.values);
}
// All labels that are left, batch by batch.
std::vector<std::vector<std::int32_t>> pass(Loader& loader) {
  std::vector<std::vector<std::int32_t>> batches;
  while (const auto batch = loader.next_batch()) batches.push_back(labels_of(*batch));
  return batches;
}
std::vector<std::int32_t> flat(const std::vector<std::vector<std::int32_t>>& batches) {
  std::vector<std::int32_t> all;
  for (const auto& batch : batches) all.insert(all.end(), batch.begin(), batch.end());
  return all;
}

// With this many loading threads.
class LoaderThreads : public testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(Loader, LoaderThreads, testing::Values(0, 1, 3),
                         testing::PrintToStringParamName());

TEST_P(LoaderThreads, keeps_or_drops_the_short_last_batch) {
  const auto kept =
      make_loader(numbered(7), {.batch_size = 3, .shuffle = false, .threads = GetParam()});
  EXPECT_EQ(kept->batches(), 3);
  EXPECT_EQ(kept->items(), 7);
  EXPECT_THAT(pass(*kept), ElementsAre(ElementsAre(0, 1, 2), ElementsAre(3, 4, 5), ElementsAre(6)));
  const auto dropped = make_loader(
      numbered(7), {.batch_size = 3, .shuffle = false, .drop_last = true, .threads = GetParam()});
  EXPECT_EQ(dropped->batches(), 2);
  EXPECT_EQ(dropped->items(), 6);
  EXPECT_THAT(pass(*dropped), ElementsAre(ElementsAre(0, 1, 2), ElementsAre(3, 4, 5)));
}

TEST_P(LoaderThreads, batches_larger_than_the_data_set) {
  const auto kept =
      make_loader(numbered(2), {.batch_size = 1000, .shuffle = false, .threads = GetParam()});
  EXPECT_THAT(pass(*kept), ElementsAre(ElementsAre(0, 1)));
  const auto dropped =
      make_loader(numbered(2), {.batch_size = 1000, .drop_last = true, .threads = GetParam()});
  EXPECT_EQ(dropped->batches(), 0);
  EXPECT_FALSE(dropped->next_batch());
  const auto empty = make_loader(numbered(0), {.threads = GetParam()});
  EXPECT_EQ(empty->batches(), 0);
  EXPECT_FALSE(empty->next_batch());
}

TEST_P(LoaderThreads, every_epoch_has_its_order) {
  const auto loader = make_loader(numbered(100), {.batch_size = 8, .threads = GetParam()});
  const auto unshuffled = pass(*loader);
  loader->shuffle(0);
  const auto first = pass(*loader);
  EXPECT_EQ(first, unshuffled);
  loader->shuffle(1);
  const auto second = pass(*loader);
  EXPECT_NE(first, second);
  for (auto all : {flat(first), flat(second)}) {
    std::sort(all.begin(), all.end());
    EXPECT_EQ(all, flat(pass(*make_loader(numbered(100), {.shuffle = false}))));
  }
  loader->shuffle(0);
  EXPECT_EQ(pass(*loader), first);
  const auto other =
      make_loader(numbered(100), {.batch_size = 8, .seed = 1, .threads = GetParam()});
  other->shuffle(0);
  EXPECT_NE(pass(*other), first);
}

TEST_P(LoaderThreads, reset_repeats_the_order) {
  const auto loader = make_loader(numbered(20), {.batch_size = 6, .threads = GetParam()});
  loader->shuffle(5);
  const auto whole = pass(*loader);
  EXPECT_FALSE(loader->next_batch());
  loader->reset();
  loader->next_batch();
  loader->reset();
  EXPECT_EQ(pass(*loader), whole);
}

TEST_P(LoaderThreads, seek_goes_on_where_it_says) {
  const auto loader = make_loader(numbered(20), {.batch_size = 6, .threads = GetParam()});
  loader->shuffle(2);
  const auto whole = pass(*loader);
  for (std::int64_t batches = 0; batches <= 5; ++batches) {
    loader->seek(2, batches);
    const auto rest = pass(*loader);
    ASSERT_EQ(rest.size(), static_cast<std::size_t>(std::max<std::int64_t>(4 - batches, 0)));
    for (std::size_t k = 0; k < rest.size(); ++k)
      EXPECT_EQ(rest[k], whole[static_cast<std::size_t>(batches) + k]);
  }
}

TEST_P(LoaderThreads, any_call_at_any_moment_gives_what_one_thread_gives) {
  const Dataset dataset = numbered(60);
  const auto options = [](int threads, std::int64_t prefetch) {
    return LoaderOptions{
        .batch_size = 7,
        .seed = 9,
        .threads = threads,
        .prefetch = prefetch,
        .transforms = {Scale{}, Pad{1}, RandomCrop{3, 3}, RandomFlip{}, OneHot{60}}};
  };
  std::mt19937_64 random(4);
  for (int trial = 0; trial < 20; ++trial) {
    const auto plain = make_loader(dataset, options(0, 1));
    const auto loader =
        make_loader(dataset, options(GetParam(), 1 + static_cast<std::int64_t>(random() % 12)));
    for (int call = 0; call < 60; ++call) {
      const std::uint64_t epoch = random() % 3;
      const auto batches = static_cast<std::int64_t>(random() % 11);
      switch (random() % 12) {
        case 0:
          plain->shuffle(epoch);
          loader->shuffle(epoch);
          break;
        case 1:
          plain->reset();
          loader->reset();
          break;
        case 2:
          plain->seek(epoch, batches);
          loader->seek(epoch, batches);
          break;
        default: {
          const auto expected = plain->next_batch(), found = loader->next_batch();
          ASSERT_EQ(found.has_value(), expected.has_value());
          if (!found) break;
          EXPECT_EQ(found->data, expected->data);
          EXPECT_EQ(found->labels, expected->labels);
        }
      }
    }
  }  // destroyed wherever it is
}

TEST_P(LoaderThreads, destruction_at_once) {
  for (int trial = 0; trial < 50; ++trial) {
    const auto loader = make_loader(numbered(50), {.batch_size = 1, .threads = GetParam()});
    if (trial % 2) loader->next_batch();
  }
}

TEST(Loader, the_order_is_the_same_on_every_platform) {
  EXPECT_THAT(random_order(10, 0, 0, Stream::order), ElementsAre(1, 2, 3, 9, 7, 5, 8, 4, 6, 0));
  EXPECT_THAT(random_order(10, 0x123456789abcdef0, 3, Stream::order),
              ElementsAre(2, 0, 7, 8, 4, 1, 9, 5, 3, 6));
  EXPECT_THAT(random_order(1, 0, 0, Stream::order), ElementsAre(0));
  EXPECT_TRUE(random_order(0, 0, 0, Stream::order).empty());
}

TEST(Loader, orders_are_uniform) {
  // Where item 0 goes, and which comes first, over many epochs.
  constexpr int kItems = 8, kEpochs = 8000;
  std::vector<int> place(kItems), first(kItems);
  for (int epoch = 0; epoch < kEpochs; ++epoch) {
    const auto order = random_order(kItems, 1, static_cast<std::uint64_t>(epoch), Stream::order);
    ++first[static_cast<std::size_t>(order[0])];
    ++place[static_cast<std::size_t>(std::find(order.begin(), order.end(), 0) - order.begin())];
  }
  for (int k = 0; k < kItems; ++k) {
    EXPECT_NEAR(place[static_cast<std::size_t>(k)], kEpochs / kItems, 120) << k;  // 4 deviations
    EXPECT_NEAR(first[static_cast<std::size_t>(k)], kEpochs / kItems, 120) << k;
  }
}

TEST(Loader, without_shuffle_the_order_stays) {
  const auto loader = make_loader(numbered(5), {.batch_size = 2, .shuffle = false});
  loader->shuffle(3);
  EXPECT_THAT(flat(pass(*loader)), ElementsAre(0, 1, 2, 3, 4));
}

TEST(Loader, fingerprint_tells_data_and_options_apart) {
  const Dataset dataset = numbered(10);
  const auto print = [&](const LoaderOptions& options) {
    return make_loader(dataset, options)->fingerprint();
  };
  const LoaderOptions plain = {.batch_size = 4, .seed = 1, .transforms = {Scale{}}};
  std::set<std::string> prints = {print(plain)};
  EXPECT_EQ(
      print({.batch_size = 4, .seed = 1, .threads = 3, .prefetch = 9, .transforms = {Scale{}}}),
      *prints.begin());
  EXPECT_EQ(make_loader(numbered(10), plain)->fingerprint(), *prints.begin());
  prints.insert(print({.batch_size = 5, .seed = 1, .transforms = {Scale{}}}));
  prints.insert(print({.batch_size = 4, .seed = 2, .transforms = {Scale{}}}));
  prints.insert(print({.batch_size = 4, .shuffle = false, .seed = 1, .transforms = {Scale{}}}));
  prints.insert(print({.batch_size = 4, .drop_last = true, .seed = 1, .transforms = {Scale{}}}));
  prints.insert(print({.batch_size = 4, .seed = 1, .transforms = {Scale{0.5}}}));
  prints.insert(print({.batch_size = 4, .seed = 1}));
  prints.insert(make_loader(numbered(11), plain)->fingerprint());
  Array pixels = *dataset.data, labels = *dataset.labels;
  std::get<std::vector<std::uint8_t>>(pixels.values).back() ^= 1;
  prints.insert(make_loader(make_dataset(pixels, labels), plain)->fingerprint());
  std::get<std::vector<std::int32_t>>(labels.values).back() ^= 1;
  prints.insert(make_loader(make_dataset(*dataset.data, labels), plain)->fingerprint());
  EXPECT_EQ(prints.size(), 10u);
  EXPECT_EQ(prints.count(""), 0u);
}

TEST(Loader, batches_that_are_there_already) {
  std::vector<Batch> batches;
  for (std::int32_t k = 0; k < 10; ++k)
    batches.push_back(
        {{{1, 1}, std::vector<float>{static_cast<float>(k)}}, {{1}, std::vector<std::int32_t>{k}}});
  const auto loader = make_loader(batches, 5);
  EXPECT_EQ(loader->batches(), 10);
  EXPECT_EQ(loader->items(), 10);
  EXPECT_THAT(flat(pass(*loader)), ElementsAre(0, 1, 2, 3, 4, 5, 6, 7, 8, 9));
  loader->shuffle(1);
  const auto shuffled = flat(pass(*loader));
  EXPECT_THAT(shuffled, testing::UnorderedElementsAre(0, 1, 2, 3, 4, 5, 6, 7, 8, 9));
  EXPECT_NE(shuffled, flat(pass(*make_loader(batches, 5))));
  loader->reset();
  EXPECT_EQ(flat(pass(*loader)), shuffled);
  loader->seek(1, 8);
  EXPECT_THAT(flat(pass(*loader)), ElementsAre(shuffled[8], shuffled[9]));
  EXPECT_NE(loader->fingerprint(), make_loader(batches, 6)->fingerprint());
  EXPECT_FALSE(make_loader(std::vector<Batch>{})->next_batch());
}

TEST(Loader, tells_the_sizes_of_its_batches) {
  const auto sizes = [](std::int64_t items, std::int64_t batch, bool drop_last) {
    const Dataset set =
        make_dataset(Array{{items, 1}, std::vector<float>(static_cast<std::size_t>(items))},
                     Array{{items}, std::vector<std::int64_t>(static_cast<std::size_t>(items))});
    return make_loader(set, {.batch_size = batch, .drop_last = drop_last, .threads = 0})
        ->batch_sizes();
  };
  EXPECT_THAT(sizes(10, 4, false), ElementsAre(4, 2));
  EXPECT_THAT(sizes(10, 4, true), ElementsAre(4));
  EXPECT_THAT(sizes(8, 4, false), ElementsAre(4));
  EXPECT_THAT(sizes(3, 4, false), ElementsAre(3));
  EXPECT_THAT(sizes(3, 4, true), ElementsAre());
  const auto batch = [](std::int64_t items) {
    return Batch{{{items, 1}, std::vector<float>(static_cast<std::size_t>(items))},
                 {{items}, std::vector<std::int64_t>(static_cast<std::size_t>(items))}};
  };
  EXPECT_THAT(make_loader({batch(3), batch(5), batch(3)})->batch_sizes(), ElementsAre(3, 5));
}

// A loader of someone else's.
class CountingLoader : public Loader {
 public:
  void shuffle(std::uint64_t epoch) override {
    first_ = static_cast<std::int32_t>(epoch) * 100;
    reset();
  }
  void reset() override { next_ = 0; }
  std::optional<Batch> next_batch() override {
    if (next_ == 4) return {};
    return Batch{{{1, 1}, std::vector<float>(1)},
                 {{1}, std::vector<std::int32_t>{first_ + next_++}}};
  }

 private:
  std::int32_t first_ = 0, next_ = 0;
};

TEST(Loader, seek_has_a_default) {
  CountingLoader loader;
  loader.seek(2, 3);
  EXPECT_THAT(flat(pass(loader)), ElementsAre(203));
  loader.seek(1, 9);
  EXPECT_FALSE(loader.next_batch());
  EXPECT_FALSE(loader.batches());
  EXPECT_EQ(loader.fingerprint(), "");
  EXPECT_THROW(loader.seek(0, -1), TypeError);
}

// --- the threads themselves
Batch batch_of(std::int64_t number) {
  return {{{1}, std::vector<std::int64_t>{number}}, {{1}, std::vector<std::int64_t>{number}}};
}
std::int64_t number_of(const Batch& batch) {
  return std::get<std::vector<std::int64_t>>(batch.data.values)[0];
}

TEST(LoaderPrefetch, batches_come_in_order_whoever_made_them) {
  Prefetcher prefetcher(4, 3);
  std::mt19937_64 random(1);
  std::vector<int> turns(200);
  for (int& turn : turns) turn = static_cast<int>(random() % 50);
  prefetcher.start(
      [&](std::int64_t number) {
        for (int k = 0; k < turns[static_cast<std::size_t>(number)]; ++k) std::this_thread::yield();
        return batch_of(number);
      },
      3, 200);
  for (std::int64_t k = 3; k < 200; ++k) EXPECT_EQ(number_of(prefetcher.take()), k);
}

TEST(LoaderPrefetch, no_more_than_the_depth_is_made_ahead) {
  std::atomic<std::int64_t> made = 0, taken = 0;
  std::atomic<bool> too_many = false;
  Prefetcher prefetcher(3, 2);
  prefetcher.start(
      [&](std::int64_t number) {
        if (++made > taken + 2) too_many = true;
        return batch_of(number);
      },
      0, 100);
  for (std::int64_t k = 0; k < 100; ++k) {
    ++taken;  // before the room is given
    prefetcher.take();
  }
  EXPECT_FALSE(too_many);
  EXPECT_EQ(made, 100);
}

TEST(LoaderPrefetch, an_error_comes_with_its_batch) {
  Prefetcher prefetcher(2, 4);
  const auto make = [](std::int64_t number) {
    if (number == 2) throw ValueError("batch 2 is bad");
    return batch_of(number);
  };
  prefetcher.start(make, 0, 5);
  EXPECT_EQ(number_of(prefetcher.take()), 0);
  EXPECT_EQ(number_of(prefetcher.take()), 1);
  for (int again = 0; again < 2; ++again) EXPECT_THROW(prefetcher.take(), ValueError);
  prefetcher.start(make, 3, 5);
  EXPECT_EQ(number_of(prefetcher.take()), 3);
}

TEST(LoaderPrefetch, a_new_start_drops_the_old_work) {
  Prefetcher prefetcher(3, 5);
  for (std::int64_t trial = 0; trial < 100; ++trial) {
    prefetcher.start([trial](std::int64_t number) { return batch_of(1000 * trial + number); },
                     trial % 7, 50);
    for (std::int64_t k = 0; k < trial % 4; ++k)
      EXPECT_EQ(number_of(prefetcher.take()), 1000 * trial + trial % 7 + k);
    if (trial % 5 == 0) prefetcher.stop();
  }
}

}  // namespace
}  // namespace pantala::data::loader_test
