// Faces: ops by type instead of by name.
#include "ops/face.h"

#include <gtest/gtest.h>

#include "ir/leaves.h"
#include "ops/contract.h"
#include "ops/conv.h"
#include "ops/reduce.h"
#include "pantala/error.h"
#include "pantala/ops.h"
#include "support/errors.h"

namespace pantala::face_test {
namespace {

using tests::message_of;

const ir::Node& node_of(const Tensor& t) { return t.graph()->node(t.id().node); }

TEST(Face, names_the_entry_of_the_table) {
  EXPECT_EQ(&ops::def<op::Contract>(), &ops::table().get("contract"));
  EXPECT_EQ(&ops::def<op::Constant>(), &ir::constant_op());
  EXPECT_EQ(op::Contract::name, "contract");
}

TEST(Face, tells_ops_apart) {
  Graph g;
  const Tensor x = g.input("x", {2, 3});
  EXPECT_TRUE(ops::is<op::Sum>(node_of(sum(x))));
  EXPECT_FALSE(ops::is<op::Sum>(node_of(amax(x))));
  EXPECT_TRUE((ops::is<op::Sum, op::Amax>(node_of(amax(x)))));
  EXPECT_TRUE(ops::is<op::Input>(node_of(x)));
}

TEST(Face, gives_the_attributes_of_the_declaration) {
  Graph g;
  const Tensor x = g.input("x", {2, 3, 4}), w = g.input("w", {5, 4});
  const auto product = ir::attributes<op::Contract>(node_of(linear(x, w)));
  EXPECT_EQ(product.batch_a, ir::Ints{});
  EXPECT_EQ(product.contract_a, ir::Ints{2});
  EXPECT_EQ(product.contract_b, ir::Ints{1});
  const auto reduced = ir::attributes<op::Amax>(node_of(amax(x, {-1}, true)));
  EXPECT_EQ(reduced.axes, ir::Ints{2});
  EXPECT_TRUE(reduced.keepdims);
  EXPECT_EQ(ir::attributes<op::Scalar>(node_of(g.scalar("rate", 0.5))).value, 0.5);
  EXPECT_EQ(ir::attributes<op::Input>(node_of(x)).name, "x");
}

TEST(Face, ops_that_share_a_struct_can_be_read_by_it) {
  Graph g;
  const Tensor x = g.input("x", {2, 3});
  for (const Tensor& t : {sum(x, {0}), amax(x, {0}), mean(x, {0})})
    EXPECT_EQ(ir::attributes<op::ReduceAttrs>(node_of(t)).axes, ir::Ints{0});
}

TEST(Face, the_attributes_of_another_op_are_our_bug) {
  Graph g;
  const Tensor y = sum(g.input("x", {2, 3}));
  EXPECT_EQ(message_of<InternalError>([&] { ir::attributes<op::ConvAttrs>(node_of(y)); }),
            "the attributes of a sum were asked for as those of another op");
}

}  // namespace
}  // namespace pantala::face_test
