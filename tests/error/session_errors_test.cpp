// Mistakes in the use of sessions and the exact messages that answer them.
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>

#include "pantala/error.h"
#include "pantala/ops.h"
#include "pantala/session.h"
#include "support/errors.h"

namespace pantala {
namespace {

using tests::message_of;

class SessionErrors : public testing::Test {
 protected:
  static Graph make_graph() {
    Graph graph;
    const Tensor x = graph.input("x", {2, 3}), rows = graph.input("rows", {2}, i32);
    const Tensor table = graph.parameter("table", {4, 3}, init::ones());
    const Tensor mean_of_all = graph.state("running", {3});
    graph.output("sums", sum(x + take(table, rows, 0) + mean_of_all, {1}));
    return graph;
  }
  static Session training() {
    Graph graph;
    const Tensor w = graph.parameter("w", {2}, init::ones());
    return build_session(graph, sum(w * graph.input("g", {2})), {.optimizer = optim::sgd(0.1)});
  }

  Session session_ = build_inference_session(make_graph());
};

TEST_F(SessionErrors, inputs) {
  const auto set = [&](const char* name, const HostElements& values) {
    return message_of<TypeError>([&] { session_.set_input(name, values); });
  };
  const auto set_rows = [&](const HostElements& values) {
    return message_of<ValueError>([&] { session_.set_input("rows", values); });
  };
  EXPECT_EQ(set("row", std::vector{1, 2}),
            "plan 'step' has no input named 'row'; did you mean 'rows'?");
  EXPECT_EQ(set("x", std::vector{1.0F, 2.0F}),
            "input 'x' is f32[2,3]: it has 6 elements, 2 were given");
  EXPECT_EQ(set("x", std::vector<double>(6)),
            "input 'x' is f32[2,3]: f64 numbers were given, which are not all exact as f32; "
            "round them first: std::vector<float>, NumPy's astype('float32'), or data::Scale{1} "
            "among the transforms of a loader");
  EXPECT_EQ(set("rows", std::vector{1.0F, 2.0F}),
            "input 'rows' is i32[2]: f32 numbers were given, which are not all exact as i32; "
            "convert them to i32 first");
  EXPECT_EQ(message_of<TypeError>(
                [&] { session_.set_input("x", Literal::floats({6}, {1, 2, 3, 4, 5, 6})); }),
            "input 'x' is f32[2,3], but f32[6] was given");
  EXPECT_EQ(set_rows(std::vector{0, 4}),
            "input 'rows': 4 at position 1 is not in [0, 3], which its readers need");
  EXPECT_EQ(set_rows(std::vector<std::int64_t>{-1, 0}),
            "input 'rows': -1 at position 0 is not in [0, 3], which its readers need");
  EXPECT_EQ(message_of<TypeError>([&] { session_.step(); }),
            "plan 'step' cannot run: 2 inputs without a value: 'x' f32[2,3] (for 'sums'), 'rows' "
            "i32[2] (for 'sums')");
}

TEST_F(SessionErrors, outputs) {
  EXPECT_EQ(message_of<TypeError>([&] { session_.output("sums"); }),
            "output 'sums' of plan 'step' has no value before the first run");
  EXPECT_EQ(message_of<TypeError>([&] { session_.output("sum"); }),
            "plan 'step' has no output named 'sum'; did you mean 'sums'?");
  EXPECT_EQ(message_of<TypeError>([&] { session_.loss(); }), "plan 'step' has no loss");
  session_.set_input("x", std::vector<float>(6));
  session_.set_input("rows", std::vector<std::uint8_t>{0, 3});
  session_.step();
  EXPECT_EQ(session_.output("sums").to_doubles(), (std::vector<double>{3, 3}));
  EXPECT_EQ(message_of<TypeError>([&] { session_.output_scalar("sums"); }),
            "output 'sums' is f32[2], not a scalar");
  std::vector<float> one(1);
  EXPECT_EQ(message_of<TypeError>([&] { session_.output("sums", one); }),
            "output 'sums' is f32[2]: it has 2 elements, there is room for 1");
  std::vector<std::int32_t> integers(2);
  EXPECT_EQ(message_of<TypeError>([&] { session_.output("sums", integers); }),
            "output 'sums' is f32[2]: i32 cannot hold every f32");
}

TEST_F(SessionErrors, parameters_and_states) {
  EXPECT_EQ(message_of<TypeError>([&] { session_.parameter("tables"); }),
            "the session has no parameter named 'tables'; did you mean 'table'?");
  EXPECT_EQ(message_of<TypeError>([&] { session_.parameter("running"); }),
            "the session has no parameter named 'running': that is a state");
  EXPECT_EQ(message_of<TypeError>([&] { session_.set_parameter("table", std::vector{1.0F}); }),
            "parameter 'table' is f32[4,3]: it has 12 elements, 1 were given");
  EXPECT_EQ(
      message_of<TypeError>([&] { session_.set_state("running", Literal::floats({2}, {1, 2})); }),
      "state 'running' is f32[3], but f32[2] was given");
  EXPECT_EQ(message_of<TypeError>([&] { session_.state("runing"); }),
            "the session has no state named 'runing'; did you mean 'running'?");
}

TEST_F(SessionErrors, hyper_parameters) {
  const std::string none =
      "it is chosen by the option `optimizer` when the session is built, and this one has none";
  EXPECT_EQ(message_of<TypeError>([&] { session_.set_learning_rate(0.1); }),
            "set_learning_rate: the session's optimizer has no 'optim.lr'; " + none);
  Session sgd = training();
  EXPECT_EQ(message_of<TypeError>([&] { sgd.set_learning_rate(-1); }),
            message_of<TypeError>([&] { optim::checked("lr", -1); }));
  EXPECT_EQ(message_of<TypeError>([&] { sgd.set_learning_rate(NAN); }),
            message_of<TypeError>([&] { optim::checked("lr", NAN); }));
  EXPECT_EQ(message_of<TypeError>([&] { sgd.set_adam(0.1, 0.9, 0.999, 1e-8); }),
            "set_adam: the session's optimizer has no 'optim.beta1'; it is chosen by the option "
            "`optimizer` when the session is built, and this one has another kind");
  EXPECT_EQ(message_of<TypeError>([&] { sgd.set_scalar("optim.lt", 1); }),
            "the session has no scalar named 'optim.lt'; did you mean 'optim.lr'?");
  EXPECT_EQ(message_of<TypeError>([&] { sgd.set_learning_rate_factor("w", 1); }),
            "no parameter group was declared as 'w'; groups are given by the option "
            "`training.groups` when the session is built");
  EXPECT_EQ(sgd.learning_rate(), 0.1);
}

TEST_F(SessionErrors, building) {
  EXPECT_EQ(message_of<TypeError>([] { build_inference_session(Graph()); }),
            "build_inference_session: the graph has no output; name one with output()");
  EXPECT_EQ(message_of<TypeError>(
                [] { build_inference_session(make_graph(), {.optimizer = optim::sgd()}); }),
            "build_inference_session: optimizer, accumulation_steps, normalize, split_update and "
            "observe_gradients are options of training");
  EXPECT_EQ(
      message_of<TypeError>([] { build_inference_session(make_graph(), {}, {.threads = -1}); }),
      "session: threads must be 0 (as compiled) or more, got -1");
}

TEST_F(SessionErrors, files) {
  EXPECT_NE(message_of<IoError>([&] { session_.load("/nonexistent/model.safetensors"); }),
            "no error");
  EXPECT_NE(message_of<IoError>([&] { session_.save("/nonexistent/model.safetensors"); }),
            "no error");
}

}  // namespace
}  // namespace pantala
