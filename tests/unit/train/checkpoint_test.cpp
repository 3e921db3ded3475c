// Checkpoints: a run that is interrupted anywhere and resumed has the same bits as one that is not;
// damaged, foreign and half-written folders are found out.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <limits>
#include <set>

#include "base/sha256.h"
#include "io/file.h"
#include "pantala/error.h"
#include "pantala/trainer.h"
#include "plan/compiled_plan.h"
#include "schedule/cost_table.h"
#include "schedule/cpu/cost_tables.h"
#include "support/errors.h"
#include "support/numbers.h"
#include "support/temporary.h"
#include "support/trainer_case.h"
#include "train/checkpoint_files.h"
#include "train/state_json.h"

namespace pantala::tests {
namespace {

namespace fs = std::filesystem;
using namespace tests;  // NOLINT: the tests' own words
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;
using ::testing::StartsWith;

std::set<std::string> names_in(const fs::path& folder) {
  std::set<std::string> names;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder))
    names.insert(entry.path().filename().string());
  return names;
}

void overwrite(const fs::path& path, const std::string& content) {
  std::ofstream(path, std::ios::binary | std::ios::trunc) << content;
}

// Everything at once: dropout, batch norm, Adam, averages, windows of three, a short last batch, a
// cosine with warm-up, early stopping.
class ExactResume : public ::testing::TestWithParam<std::int64_t> {
 protected:
  static constexpr std::int64_t kEpochs = 4;

  Trainer make_trainer() const {
    return Trainer(dropout_graph, 4,
                   {.optimizer = optim::adam(0.05),
                    .rate_schedule = RateSchedule(CosineRate{.T_max = 8}).with_warmup(3),
                    .plan_cache = folder_.path() / "plans"},
                   {.accumulation_steps = GetParam(), .training = {.ema_decay = 0.5}}, {.seed = 7});
  }
  static std::unique_ptr<data::Loader> loader() {
    return data::make_loader(random_dataset(22, 1), {.batch_size = 4, .seed = 3, .threads = 0});
  }
  static std::unique_ptr<data::Loader> validation() {
    return data::make_loader(random_dataset(10, 2), {.batch_size = 4, .threads = 0});
  }

  struct Outcome {
    FitResult result;
    std::vector<double> losses;
    Evaluation evaluation;
    std::int64_t polls = 0;
  };
  // Until poll number `stop`.
  Outcome run(Trainer& trainer, const fs::path& checkpoints, std::int64_t stop) const {
    Outcome outcome;
    const auto history = std::make_shared<LossHistory>();
    trainer.add_callback(history);
    const auto training = loader(), validating = validation();
    outcome.result = trainer.fit(
        *training,
        {.epochs = kEpochs,
         .validation = validating.get(),
         .early_stopping = EarlyStopping{.metric = "loss", .patience = 1},
         .checkpoints = {.folder = checkpoints, .every_epochs = 0},
         .poll = [&] { return ++outcome.polls == stop ? Request::save_and_stop : Request::none; }});
    outcome.losses = history->losses;
    outcome.evaluation = trainer.evaluate(*validating);
    return outcome;
  }

  tests::TemporaryFolder folder_;
};

TEST_P(ExactResume, anywhere_gives_the_bits_of_the_uninterrupted_run) {
  Trainer whole = make_trainer();
  const Outcome expected = run(whole, folder_.path() / "whole", 0);
  ASSERT_GE(expected.polls, 14);
  for (std::int64_t stop = 1; stop <= expected.polls; ++stop) {
    const std::string about = fmt::format("stopped after poll {}", stop);
    const fs::path checkpoints = folder_.path() / fmt::format("stop{}", stop);
    Trainer first = make_trainer();
    const Outcome before = run(first, checkpoints, stop);
    Trainer second = make_trainer();
    ASSERT_TRUE(second.resume(checkpoints)) << about;
    const Outcome after = run(second, checkpoints, 0);
    expect_same_bits(second.session(), whole.session(), about);
    EXPECT_EQ(second.state(), whole.state()) << about;
    EXPECT_EQ(after.result.history, expected.result.history) << about;
    EXPECT_EQ(after.result.end, expected.result.end) << about;
    EXPECT_EQ(after.evaluation, expected.evaluation) << about;
    std::vector<double> losses = before.losses;
    losses.insert(losses.end(), after.losses.begin(), after.losses.end());
    EXPECT_EQ(losses, expected.losses) << about;
    fs::remove_all(checkpoints);
  }
}
INSTANTIATE_TEST_SUITE_P(windows, ExactResume, ::testing::Values(1, 3));

// A trained trainer of a small model, and its checkpoints.
class Checkpoints : public ::testing::Test {
 protected:
  Trainer make_trainer(TrainConfig config = {.optimizer = optim::adam(0.01)}) const {
    config.plan_cache = folder_.path() / "plans";
    return Trainer(mlp_graph, 4, std::move(config));
  }
  fs::path folder() const { return folder_.path() / "checkpoints"; }

  tests::TemporaryFolder folder_;
  FixedLoader loader_{random_batches(3, 4)};
};

TEST_F(Checkpoints, have_three_files_and_what_else_was_given) {
  Trainer trainer = make_trainer();
  trainer.train(loader_, 1);
  const fs::path path = folder() / "mine";
  trainer.save_checkpoint(path, "position 17 \"ü\"");
  EXPECT_THAT(names_in(path),
              ElementsAre("model.safetensors", "optimizer.safetensors", "state.json"));
  EXPECT_THAT(names_in(folder()), ElementsAre("mine"));
  Trainer other = make_trainer();
  EXPECT_EQ(other.load_checkpoint(path), "position 17 \"ü\"");
  expect_same_bits(other.session(), trainer.session());
  EXPECT_EQ(other.state(), trainer.state());
  // The model alone is what a session takes.
  Session session = session_of(mlp_graph(4, Phase::training), optim::sgd(0.1));
  session.load(path / "model.safetensors");
  EXPECT_EQ(session.parameter("fc1.weight"), trainer.session().parameter("fc1.weight"));
  EXPECT_THROW(trainer.save_checkpoint(path, "\xff\xfe"), TypeError);
  EXPECT_EQ(other.load_checkpoint(path), "position 17 \"ü\"");
}

TEST_F(Checkpoints, that_are_damaged_are_refused_and_change_nothing) {
  Trainer trainer = make_trainer();
  trainer.train(loader_, 1);
  const fs::path path = folder() / "mine";
  for (const char* file : {"model.safetensors", "optimizer.safetensors", "state.json"}) {
    for (const char* damage : {"cut", "changed", "empty", "missing"}) {
      trainer.save_checkpoint(path);
      std::string content = io::read_file(path / file);
      if (damage == std::string("cut")) content.resize(content.size() / 2);
      if (damage == std::string("changed")) content[content.size() * 2 / 3] ^= 1;
      if (damage == std::string("empty")) content.clear();
      overwrite(path / file, content);
      if (damage == std::string("missing")) fs::remove(path / file);
      Trainer other = make_trainer();
      const auto before = everything_in(other.session());
      EXPECT_THAT(message_of<ParseError>([&] { other.load_checkpoint(path); }),
                  StartsWith((path / file).string()))
          << file << ' ' << damage;
      EXPECT_EQ(everything_in(other.session()), before);
      EXPECT_EQ(other.state(), TrainerState{});
    }
  }
  EXPECT_THROW(trainer.load_checkpoint(folder() / "none"), IoError);
}

TEST_F(Checkpoints, state_files_with_any_byte_changed_are_refused) {
  Trainer trainer = make_trainer();
  trainer.save_checkpoint(folder() / "mine");
  const std::string text = io::read_file(folder() / "mine" / "state.json");
  EXPECT_NO_THROW(train::parse_state(text, "state.json"));
  for (std::size_t k = 0; k < text.size(); ++k) {
    std::string changed = text;
    changed[k] = static_cast<char>(changed[k] ^ (1 << k % 8));
    EXPECT_THROW(train::parse_state(changed, "state.json"), ParseError) << k;
    EXPECT_THROW(train::parse_state(text.substr(0, k), "state.json"), ParseError) << k;
  }
}

// Members that are wrong although the checksum is right.
TEST_F(Checkpoints, states_that_make_no_sense_are_refused) {
  const io::Json good = train::encode_state({});
  EXPECT_EQ(train::decode_state(good, "f"), TrainerState{});
  for (const auto& [key, value] : good.items()) {
    for (const io::Json& wrong :
         {io::Json("text"), io::Json(-7), io::Json(1.5), io::Json{{"a", 1}}}) {
      io::Json bad = good;
      bad[key] = wrong;
      if ((key == "loss_sum" || key == "window_loss" || key == "best") && wrong.is_number())
        continue;
      if (key == "history" && wrong.is_number()) bad[key] = io::Json::array({wrong});
      EXPECT_THROW(train::decode_state(bad, "f"), ParseError) << key << ' ' << wrong;
    }
    io::Json missing = good;
    missing.erase(key);
    EXPECT_THROW(train::decode_state(missing, "f"), ParseError) << key;
  }
}

TEST_F(Checkpoints, keep_every_number_of_the_state_exactly) {
  TrainerState state;
  state.epoch = 3;
  state.batches = 4;
  state.epoch_steps = 5;
  state.global_steps = std::numeric_limits<std::int64_t>::max();
  state.skipped = 6;
  state.loss_sum = 0.1 + 0.2;
  state.labels = 7;
  state.window_loss = -std::numeric_limits<double>::denorm_min();
  state.window_labels = 8;
  state.window_batches = 2;
  Evaluation evaluation{9, 1.0 / 3, {{"accuracy", 0.7}, {"r2", -double{INFINITY}}}, {}};
  evaluation.confusion.emplace(3);
  evaluation.confusion->add(2, 1, 5);
  evaluation.confusion->add_undecided(0, 2);
  state.history.epochs = {{0, 1e308, 2}, {1, double{INFINITY}, 3}};
  state.history.evaluations = {evaluation, std::nullopt};
  state.plateau = Plateau::State{1e-5, double{INFINITY}, 1, 2};
  state.best = 5e-324;
  state.best_epoch = 1;
  state.bad_epochs = 2;
  state.stopped_early = true;
  const auto round_trip = [](const TrainerState& s) {
    return train::decode_state(
        train::parse_state(train::state_text({{"state", train::encode_state(s)}}), "f").at("state"),
        "f");
  };
  EXPECT_EQ(round_trip(state), state);
  state.loss_sum = std::nan("");
  EXPECT_TRUE(std::isnan(round_trip(state).loss_sum));
}

TEST_F(Checkpoints, of_another_model_or_optimizer_are_refused_and_change_nothing) {
  Trainer trainer = make_trainer();
  trainer.train(loader_, 1);
  trainer.save_checkpoint(folder() / "mine");
  const auto refused = [&](Trainer other) {
    const auto before = everything_in(other.session());
    const std::string message =
        message_of<TypeError>([&] { other.load_checkpoint(folder() / "mine"); });
    EXPECT_EQ(everything_in(other.session()), before);
    return message;
  };
  EXPECT_THAT(refused(Trainer(dropout_graph, 4, {.optimizer = optim::adam(0.01)})),
              HasSubstr("norm.weight"));
  EXPECT_THAT(refused(make_trainer({.optimizer = optim::sgd(0.01)})), HasSubstr("optim.m."));
  EXPECT_THAT(refused(make_trainer({.optimizer = optim::adam(0.01), .plateau = PlateauOptions{}})),
              HasSubstr("plateau"));
}

TEST_F(Checkpoints, keep_a_rate_that_was_set_unless_the_config_has_another) {
  Trainer trainer = make_trainer();
  trainer.session().set_learning_rate(0.5);
  trainer.save_checkpoint(folder() / "mine");
  Trainer same = make_trainer();
  const auto load_and_step = [&](Trainer& into) {
    into.load_checkpoint(folder() / "mine");
    EXPECT_EQ(into.session().learning_rate(), &into == &same ? 0.5 : 0.125);
    into.step(random_batch(4, 1));
  };
  EXPECT_THAT(logged(logging::Level::warning, [&] { load_and_step(same); }), IsEmpty());
  Trainer other = make_trainer({.optimizer = optim::adam(0.125)});
  EXPECT_THAT(logged(logging::Level::warning, [&] { load_and_step(other); }),
              ElementsAre(AllOf(HasSubstr("optimizer was"), HasSubstr("lr=0.125"))));
}

TEST_F(Checkpoints, another_schedule_matters_only_if_training_goes_on) {
  make_trainer({.rate_schedule = RateSchedule(CosineRate{.T_max = 8})})
      .save_checkpoint(folder() / "mine");
  Trainer other = make_trainer({.rate_schedule = RateSchedule(CosineRate{.T_max = 1})});
  EXPECT_THAT(logged(logging::Level::warning,
                     [&] {
                       other.load_checkpoint(folder() / "mine");
                       other.evaluate(loader_);
                     }),
              IsEmpty());
  const auto step = [&] { other.step(random_batch(4, 1)); };
  EXPECT_THAT(logged(logging::Level::warning, step), ElementsAre(HasSubstr("schedule was")));
  EXPECT_THAT(logged(logging::Level::warning, step), IsEmpty());
}

TEST_F(Checkpoints, the_newest_whole_one_is_resumed_and_damaged_ones_are_named) {
  Trainer none = make_trainer();
  EXPECT_FALSE(none.resume(folder()));
  Trainer trainer = make_trainer();
  int saves = 0;
  trainer.fit(loader_,
              {.epochs = 2,
               .checkpoints = {.folder = folder(), .every_steps = 1, .keep_last = 3, .extra = [&] {
                                 return fmt::format("save {}", ++saves);
                               }}});
  EXPECT_THAT(names_in(folder()),
              ElementsAre("step-000000004", "step-000000005", "step-000000006"));
  Trainer newest = make_trainer();
  const auto resumed = newest.resume(folder());
  ASSERT_TRUE(resumed);
  EXPECT_EQ(resumed->checkpoint, folder() / "step-000000006");
  EXPECT_EQ(resumed->extra, fmt::format("save {}", saves));

  overwrite(folder() / "step-000000006" / "model.safetensors", "x");
  fs::remove(folder() / "step-000000005" / "state.json");
  Trainer older = make_trainer();
  const auto warnings = logged(logging::Level::warning, [&] {
    EXPECT_EQ(older.resume(folder())->checkpoint, folder() / "step-000000004");
  });
  EXPECT_THAT(
      warnings,
      ElementsAre(
          AllOf(HasSubstr("step-000000006"), HasSubstr("model.safetensors"), HasSubstr("damaged")),
          AllOf(HasSubstr("step-000000005"), HasSubstr("state.json"), HasSubstr("is missing"))));
  // It goes on and replaces the damaged ones.
  older.fit(loader_, {.epochs = 2, .checkpoints = {.folder = folder(), .every_steps = 1}});
  expect_same_bits(older.session(), trainer.session());
  EXPECT_THAT(names_in(folder()),
              ElementsAre("step-000000004", "step-000000005", "step-000000006"));
  Trainer whole = make_trainer();
  EXPECT_EQ(whole.resume(folder())->checkpoint, folder() / "step-000000006");

  for (const std::string& name : names_in(folder())) overwrite(folder() / name / "state.json", "{");
  logged(logging::Level::warning, [&] {
    EXPECT_THAT(message_of<IoError>([&] { make_trainer().resume(folder()); }),
                HasSubstr("none of its 3 checkpoints is whole"));
  });
}

TEST_F(Checkpoints, the_last_ones_and_the_best_one_are_kept) {
  // A rate that makes it worse and worse: the first epoch stays the best.
  Trainer trainer = make_trainer({.optimizer = optim::sgd(0.01)});
  struct Worsen : MetricCallback {
    void on_start(Trainer& t) override { trainer = &t; }
    void on_step(const StepMetrics&) override {
      const Literal bias = trainer->session().parameter("fc2.bias");
      trainer->session().set_parameter(
          "fc2.bias", Literal::floats({kClasses}, {bias.at(0) + 1, bias.at(1), bias.at(2)}));
    }
    Trainer* trainer = nullptr;
  };
  trainer.add_callback(std::make_shared<Worsen>());
  FixedLoader validation(random_batches(2, 4));
  trainer.fit(loader_, {.epochs = 5,
                        .validation = &validation,
                        .checkpoints = {.folder = folder(), .keep_last = 2}});
  EXPECT_THAT(names_in(folder()),
              ElementsAre("step-000000003", "step-000000012", "step-000000015"));
  const fs::path all = folder_.path() / "all";
  Trainer every = make_trainer();
  every.fit(loader_, {.epochs = 5, .checkpoints = {.folder = all, .keep_last = 0}});
  EXPECT_THAT(names_in(all), SizeIs(5));
}

TEST_F(Checkpoints, a_run_ends_with_one_even_if_none_were_due) {
  Trainer trainer = make_trainer();
  trainer.fit(
      loader_,
      {.epochs = 3, .max_steps = 4, .checkpoints = {.folder = folder(), .every_epochs = 0}});
  EXPECT_THAT(names_in(folder()), ElementsAre("step-000000004"));
}

TEST_F(Checkpoints, what_a_crash_leaves_is_put_right) {
  Trainer trainer = make_trainer();
  trainer.train(loader_, 1);
  trainer.save_checkpoint(folder() / "step-000000003", "old");
  // Killed while a newer one was written, and between the two renames of a replacement.
  fs::create_directories(folder() / ".tmp-step-000000009");
  overwrite(folder() / ".tmp-step-000000009" / "model.safetensors", "half");
  fs::rename(folder() / "step-000000003", folder() / ".old-step-000000003");
  fs::create_directories(folder() / ".tmp-step-000000003");
  // Not ours.
  fs::create_directories(folder() / ".tmp-notes");
  Trainer other = make_trainer();
  const std::set<std::string> left = names_in(folder());
  EXPECT_EQ(other.resume(folder())->extra, "old");
  EXPECT_EQ(other.load_checkpoint(folder() / "step-000000003"), "old");
  EXPECT_EQ(names_in(folder()), left);  // a reader changes nothing
  other.fit(loader_, {.checkpoints = {.folder = folder()}});
  EXPECT_THAT(names_in(folder()), ElementsAre(".tmp-notes", "step-000000003", "step-000000006"));
  fs::remove_all(folder() / "step-000000006");
  // Killed after the second rename.
  fs::create_directories(folder() / ".old-step-000000003");
  trainer.save_checkpoint(folder() / "step-000000003", "new");
  EXPECT_THAT(names_in(folder()), ElementsAre(".tmp-notes", "step-000000003"));
  EXPECT_EQ(other.load_checkpoint(folder() / "step-000000003"), "new");
}

TEST_F(Checkpoints, a_save_that_fails_leaves_the_old_one) {
  const fs::path path = folder() / "mine";
  train::write_checkpoint(path, 0,
                          [](const fs::path& into) { overwrite(into / "state.json", "1"); });
  EXPECT_THROW(train::write_checkpoint(path, 0,
                                       [](const fs::path& into) {
                                         overwrite(into / "state.json", "2");
                                         throw IoError("no space left");
                                       }),
               IoError);
  EXPECT_EQ(io::read_file(path / "state.json"), "1");
  EXPECT_THAT(names_in(folder()), ElementsAre("mine"));
}

TEST_F(Checkpoints, need_space_and_a_name_and_replace_nothing_else) {
  EXPECT_NO_THROW(train::check_space("folder", 10, 10));
  EXPECT_THAT(message_of<IoError>([] { train::check_space("folder", 1000, 999); }),
              AllOf(HasSubstr("needs 1000 bytes"), HasSubstr("only 999")));
  const auto never = [](const fs::path&) { FAIL() << "nothing may be written"; };
  EXPECT_THROW(train::write_checkpoint(folder() / "large", std::uint64_t{1} << 62, never), IoError);
  EXPECT_THAT(names_in(folder()), IsEmpty());
  fs::create_directories(folder() / "photos");
  overwrite(folder() / "photos" / "one.jpg", "x");
  EXPECT_THAT(message_of<IoError>([&] { train::write_checkpoint(folder() / "photos", 0, never); }),
              HasSubstr("no checkpoint"));
  EXPECT_THROW(train::write_checkpoint(folder() / "", 0, never), TypeError);
  EXPECT_TRUE(fs::exists(folder() / "photos" / "one.jpg"));
}

TEST_F(Checkpoints, in_an_epoch_the_data_must_be_the_same) {
  const auto make_loader = [](std::uint64_t seed) {
    return data::make_loader(random_dataset(20, 1), {.batch_size = 4, .seed = seed, .threads = 0});
  };
  const auto first = make_loader(1), other = make_loader(2);
  Trainer trainer = make_trainer();
  trainer.fit(*first, {.epochs = 3, .max_steps = 2, .checkpoints = {.folder = folder()}});
  Trainer resumed = make_trainer();
  resumed.resume(folder());
  EXPECT_THAT(message_of<TypeError>([&] { resumed.fit(*other, {.epochs = 3}); }),
              AllOf(HasSubstr("fingerprint"), HasSubstr("other data")));
  resumed.fit(*first, {.epochs = 1});
  // Between epochs it is only said.
  EXPECT_THAT(logged(logging::Level::warning, [&] { resumed.fit(*other, {.epochs = 2}); }),
              ElementsAre(HasSubstr("not those of the epochs before")));
}

TEST_F(Checkpoints, the_best_weights_survive) {
  std::vector<data::Batch> wrong = random_batches(3, 4);
  for (data::Batch& batch : wrong)
    for (std::int64_t& label : std::get<std::vector<std::int64_t>>(batch.labels.values))
      label = (label + 1) % kClasses;
  FixedLoader loader(wrong), validation(random_batches(3, 4));
  const FitOptions options{.epochs = 30,
                           .validation = &validation,
                           .early_stopping = EarlyStopping{.patience = 2},
                           .checkpoints = {.folder = folder()}};
  Trainer trainer = make_trainer({.optimizer = optim::adam(0.1)});
  const FitResult result = trainer.fit(loader, options);
  ASSERT_EQ(result.end, FitEnd::stopped_early);
  // The checkpoint has the last weights, and the best ones beside them.
  Trainer resumed = make_trainer({.optimizer = optim::adam(0.1)});
  const fs::path newest = resumed.resume(folder())->checkpoint;
  EXPECT_TRUE(fs::exists(newest / "best.safetensors"));
  EXPECT_NE(resumed.session().parameter("fc1.weight"), trainer.session().parameter("fc1.weight"));
  const FitResult again = resumed.fit(loader, options);
  EXPECT_EQ(again.end, FitEnd::stopped_early);
  EXPECT_EQ(again.history, result.history);
  expect_same_bits(resumed.session(), trainer.session());
}

std::string other_table() {
  schedule::CostTable table = schedule::cpu::shipped_cost_table(32);
  table.name = "mine";
  return to_text(table);
}

TEST_F(Checkpoints, keep_the_cost_table_and_tell_of_another) {
  Trainer trainer = make_trainer();
  trainer.train(loader_, 1);
  const fs::path path = folder() / "mine";
  trainer.save_checkpoint(path);
  const std::string table = trainer.session().compiled().data()->cost_table;
  io::Json state = train::parse_state(io::read_file(path / "state.json"), "state");
  EXPECT_EQ(state.at("cost_table"), table);
  EXPECT_THAT(state.at("config").at("cost_table"), HasSubstr(hex(sha256(table)).substr(0, 16)));

  Trainer same = make_trainer();
  same.load_checkpoint(path);
  EXPECT_THAT(logged(logging::Level::warning, [&] { same.train(loader_, 1); }), IsEmpty());
  const auto with_other = [&] {
    return Trainer(mlp_graph, 4, {.optimizer = optim::adam(0.01)}, {.cost_table = other_table()});
  };
  Trainer other = with_other();
  other.load_checkpoint(path);
  EXPECT_THAT(logged(logging::Level::warning, [&] { other.train(loader_, 1); }),
              ElementsAre(AllOf(HasSubstr("cost_table was \"avx"), HasSubstr("and is \"mine "))));

  // As earlier versions have written them.
  state.erase("checksum");  // which is written with the text
  state.erase("cost_table");
  state.at("config").erase("cost_table");
  overwrite(path / "state.json", train::state_text(state));
  Trainer later = with_other();
  later.load_checkpoint(path);
  EXPECT_THAT(logged(logging::Level::warning, [&] { later.train(loader_, 1); }), IsEmpty());
}

// The plans of other batch sizes come later than the first.
TEST_F(Checkpoints, a_table_whose_file_changes_is_the_one_that_it_was) {
  const std::string file = folder_.file("table");
  overwrite(file, other_table());
  Trainer trainer(mlp_graph, 4, {.optimizer = optim::adam(0.01)}, {.cost_table = file});
  overwrite(file, "no table any more");
  FixedLoader shorter(random_batches(2, 3));
  EXPECT_NO_THROW(trainer.train(shorter, 1));
}

TEST(Sha256, of_parts_is_that_of_the_whole) {
  std::string text;
  for (int k = 0; k < 300; ++k) text += static_cast<char>(k * 7);
  EXPECT_EQ(hex(sha256("abc")), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  for (std::size_t size : {0, 1, 55, 56, 63, 64, 65, 127, 128, 300}) {
    const std::string_view part = std::string_view(text).substr(0, size);
    for (const std::size_t step : {1, 7, 63, 64, 65, 200}) {
      Sha256 hash;
      for (std::size_t at = 0; at < part.size(); at += step) hash.add(part.substr(at, step));
      EXPECT_EQ(hash.finish(), sha256(part)) << size << ' ' << step;
    }
  }
}

}  // namespace
}  // namespace pantala::tests
