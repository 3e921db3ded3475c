// The table of models: rows hand back the tensors of the graphs that they make, and a trainer finds
// inputs and outputs by them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "pantala/error.h"
#include "run/models/model.h"
#include "support/errors.h"
#include "support/trainer_case.h"

namespace pantala::run {
namespace {

using testing::EndsWith;
using testing::HasSubstr;
using testing::IsSupersetOf;
using tests::random_batch;

struct Case {
  std::string name;
  Shape item;
  std::string input;
};

TEST(Models, rows_hand_back_the_tensors_of_their_graphs) {
  for (const Case& c : {Case{"mlp", {2, 3}, "x"}, Case{"lenet", {8, 8}, "x"},
                        Case{"resnet18_folded", {3, 8, 8}, "image"},
                        Case{"whisper-tiny", {4, 6}, "mel"}, Case{"llama-bytes", {5}, "tokens"}}) {
    RunConfig config;
    config.model.name = c.name;
    const ModelRow& row = model_of(config);
    EXPECT_EQ(row.name, c.name);
    const ModelShape shape{.item = row.item(config, c.item), .classes = 7};
    for (const Phase phase : {Phase::training, Phase::evaluation}) {
      const TrainableGraph model = row.make(config, shape, 2, phase);
      ASSERT_TRUE(model.has_tensors()) << c.name;
      EXPECT_EQ(model.input, model.graph.leaf(c.input)) << c.name;
      EXPECT_EQ(model.labels, model.graph.leaf("labels")) << c.name;
      EXPECT_EQ(model.loss, model.graph.output("loss")) << c.name;
      EXPECT_EQ(model.prediction, model.graph.output("logits")) << c.name;
      EXPECT_EQ(model.input.dim(0), 2) << c.name;
    }
    if (row.positions) {
      const TrainableGraph one = row.make(config, shape, 1, Phase::training);
      EXPECT_EQ(row.positions(config, c.item, {}).numel(), one.labels.numel()) << c.name;
    }
  }
}

TEST(Models, an_unknown_name_is_refused_with_the_nearest_one) {
  RunConfig config;
  config.model.name = "lenett";
  EXPECT_THAT(tests::message_of<TypeError>([&] { model_of(config); }),
              EndsWith("'lenett'; did you mean 'lenet'?"));
}

TEST(Models, every_model_of_the_zoo_can_be_trained_and_is_in_the_help) {
  EXPECT_THAT(trainable_models(), IsSupersetOf(zoo::preset_names()));
  for (const char* said : {"mlp takes anything", "For images: lenet is ", "smollm2 is "})
    EXPECT_THAT(model_help(), HasSubstr(said));
}

// A model that calls its inputs and outputs as it likes.
TrainableGraph odd_names(std::int64_t batch, Phase) {
  Graph graph;
  const Tensor items = graph.input("items", {batch, tests::kInputs});
  const Tensor truth = graph.input("truth", {batch}, i64);
  const Tensor scores = nn::linear("fc", items, tests::kClasses);
  const Tensor badness = cross_entropy(scores, truth);
  graph.output("scores", scores);
  graph.output("badness", badness);
  return {std::move(graph), items, truth, badness, scores};
}

TEST(Models, a_trainer_takes_the_names_of_the_tensors_that_a_model_hands_back) {
  Trainer trainer(odd_names, 4, {.optimizer = optim::sgd(0.1)});
  EXPECT_EQ(trainer.config().data_input, "items");
  EXPECT_EQ(trainer.config().label_input, "truth");
  EXPECT_EQ(trainer.config().loss_output, "badness");
  EXPECT_EQ(trainer.config().prediction_output, "scores");
  EXPECT_TRUE(trainer.step(random_batch(4, 1)));
  const auto loader = data::make_loader({random_batch(3, 2)});
  EXPECT_EQ(trainer.evaluate(*loader).items, 3);
  EXPECT_EQ(trainer.predict(random_batch(5, 3).data).shape, (Shape{5, tests::kClasses}));
}

TEST(Models, a_loss_that_is_no_output_is_refused) {
  const auto model = [](std::int64_t batch, Phase) {
    TrainableGraph made = odd_names(batch, Phase::training);
    made.loss = made.loss * 2;
    return made;
  };
  EXPECT_THROW(Trainer(model, 4, {.optimizer = optim::sgd(0.1)}), TypeError);
}

}  // namespace
}  // namespace pantala::run
