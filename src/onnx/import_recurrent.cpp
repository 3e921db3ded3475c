// Recurrent networks: LSTM, GRU and RNN, one op per direction. ONNX keeps its gates in another
// order than the ops (PyTorch's), and both biases in one tensor.
#include <fmt/format.h>

#include <algorithm>
#include <cctype>

#include "onnx/adapters.h"

namespace pantala::onnx {

namespace {

// The inputs after x, as LSTM numbers them; GRU and RNN have no more than the first five.
enum Input : int { kX, kW, kR, kB, kLengths, kInitialH, kInitialC, kPeepholes };

struct Layout {
  std::int64_t steps = 0, batch = 0, hidden = 0, directions = 1;
  bool only_reverse = false, batch_first = false;
};

Layout read_layout(const Node& node, std::int64_t gates) {
  Layout l;
  const std::string direction = node.attribute("direction", std::string("forward"));
  if (direction != "forward" && direction != "reverse" && direction != "bidirectional")
    node.fail(fmt::format("direction '{}' is none", direction));
  l.directions = direction == "bidirectional" ? 2 : 1;
  l.only_reverse = direction == "reverse";
  l.batch_first = node.attribute("layout", std::int64_t{0}) != 0;
  const Shape &x = node.shape(kX), &w = node.shape(kW), &r = node.shape(kR);
  if (x.rank() != 3 || w.rank() != 3 || r.rank() != 3)
    node.fail(fmt::format("X {}, W {} and R {} must have three axes", x.str(), w.str(), r.str()));
  l.steps = x[l.batch_first ? 1 : 0];
  l.batch = x[l.batch_first ? 0 : 1];
  l.hidden = r[2];
  if (node.attribute("hidden_size", l.hidden) != l.hidden)
    node.fail(fmt::format("hidden_size {} is not that of R {}",
                          node.attribute("hidden_size", l.hidden), r.str()));
  if (!(w == Shape{l.directions, gates * l.hidden, x[2]}) ||
      !(r == Shape{l.directions, gates * l.hidden, l.hidden}))
    node.fail(fmt::format("W {} and R {} do not fit X {} with {} hidden units", w.str(), r.str(),
                          x.str(), l.hidden));
  return l;
}

// What the ops cannot do is refused before anything is made.
void check_options(const Node& node, const Layout& l) {
  if (node.has_attribute("clip")) node.unsupported("clipped gates");
  if (node.attribute("input_forget", std::int64_t{0}) != 0)
    node.unsupported("coupled input and forget gates");
  if (node.has(kPeepholes)) node.unsupported("peepholes");
  if (!node.has(kLengths)) return;
  const std::vector<std::int64_t> lengths = node.integers(kLengths);
  if (std::any_of(lengths.begin(), lengths.end(), [&](std::int64_t n) { return n != l.steps; }))
    node.unsupported("sequences of different lengths");
}

// The activations of each direction, in small letters; the default where none are given.
std::vector<std::string> activations(const Node& node, const Layout& l,
                                     const std::vector<std::string>& standard) {
  std::vector<std::string> all = node.texts("activations");
  for (std::string& name : all)
    std::transform(name.begin(), name.end(), name.begin(),
                   [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  if (all.empty())
    for (std::int64_t d = 0; d < l.directions; ++d)
      all.insert(all.end(), standard.begin(), standard.end());
  if (std::ssize(all) != l.directions * std::ssize(standard))
    node.fail(fmt::format("{} activations are needed", l.directions * std::ssize(standard)));
  return all;
}

void require_activations(const Node& node, const Layout& l,
                         const std::vector<std::string>& standard) {
  const std::vector<std::string> all = activations(node, l, standard);
  for (std::size_t k = 0; k < all.size(); ++k)
    if (all[k] != standard[k % standard.size()])
      node.unsupported(fmt::format("activation '{}'", all[k]));
}

// Entry d of the first axis.
Tensor entry(const Tensor& x, std::int64_t d) { return squeeze(slice_axis(x, 0, d, d + 1), 0); }

// Blocks of `hidden` along the first axis in another order.
Tensor reordered(const Tensor& x, const IntList& blocks, std::int64_t hidden) {
  if (blocks.size() == 1) return x;
  std::vector<Tensor> parts;
  for (const std::int64_t k : blocks)
    parts.push_back(slice_axis(x, 0, k * hidden, (k + 1) * hidden));
  return concat(parts);
}

// One direction, its gates in the order of the ops.
struct Direction {
  Tensor x;       // [steps, batch, gates * hidden], without biases
  Tensor weight;  // [hidden, gates * hidden]
  Tensor input_bias, recurrent_bias;
  Tensor h0;
  bool reverse = false;
};

class Recurrence {
 public:
  // `blocks` are the numbers of ONNX's gates in the order of the ops.
  Recurrence(Node& node, IntList blocks)
      : node_(node),
        blocks_(std::move(blocks)),
        layout_(read_layout(node, std::ssize(blocks_))),
        x_(layout_.batch_first ? permute(node.tensor(kX), {1, 0, 2}) : node.tensor(kX)) {
    check_options(node, layout_);
  }

  const Layout& layout() const { return layout_; }

  Direction direction(std::int64_t d) {
    const std::int64_t rows = std::ssize(blocks_) * layout_.hidden;
    const auto ordered = [&](const Tensor& t) { return reordered(t, blocks_, layout_.hidden); };
    Direction result;
    result.x = linear(x_, ordered(entry(node_.tensor(kW), d)));
    result.weight = permute(ordered(entry(node_.tensor(kR), d)), {1, 0});
    if (node_.has(kB)) {
      const Tensor both = entry(node_.tensor(kB), d);
      result.input_bias = ordered(slice_axis(both, 0, 0, rows));
      result.recurrent_bias = ordered(slice_axis(both, 0, rows, 2 * rows));
    } else {
      result.input_bias = result.recurrent_bias = full_beside(x_, {rows}, 0);
    }
    result.h0 = first_state(kInitialH, d);
    result.reverse = layout_.only_reverse || d == 1;
    return result;
  }

  Tensor first_state(int input, std::int64_t d) {
    if (!node_.has(input)) return full_beside(x_, {layout_.batch, layout_.hidden}, 0);
    const Tensor all = node_.tensor(input);
    return entry(layout_.batch_first ? permute(all, {1, 0, 2}) : all, d);
  }

  void add(const Tensor& states, bool reverse) {
    states_.push_back(states);
    last_.push_back(last(states, reverse));
  }
  Tensor last(const Tensor& states, bool reverse) const {
    return entry(states, reverse ? 0 : layout_.steps - 1);
  }
  // The last states of all directions.
  Tensor together(const std::vector<Tensor>& last) const {
    return stack(last, layout_.batch_first ? 1 : 0);
  }
  void give() {
    const Tensor y = stack(states_, 1);  // [steps, directions, batch, hidden]
    node_.give(0, layout_.batch_first ? permute(y, {2, 0, 1, 3}) : y);
    node_.give(1, together(last_));
  }

 private:
  Node& node_;
  IntList blocks_;
  Layout layout_;
  Tensor x_;
  std::vector<Tensor> states_, last_;
};

void convert_lstm(Node& node) {
  Recurrence all(node, {0, 2, 3, 1});  // input, output, forget, cell
  require_activations(node, all.layout(), {"sigmoid", "tanh", "tanh"});
  std::vector<Tensor> last_c;
  for (std::int64_t d = 0; d < all.layout().directions; ++d) {
    const Direction way = all.direction(d);
    const LstmStates states = lstm(way.x + (way.input_bias + way.recurrent_bias), way.weight,
                                   way.h0, all.first_state(kInitialC, d), {way.reverse});
    all.add(states.h, way.reverse);
    last_c.push_back(all.last(states.c, way.reverse));
  }
  all.give();
  node.give(2, all.together(last_c));
}

// The new gate's recurrent bias stays apart: the reset gate may scale it.
void convert_gru(Node& node) {
  Recurrence all(node, {1, 0, 2});  // update, reset, new
  require_activations(node, all.layout(), {"sigmoid", "tanh"});
  const std::int64_t hidden = all.layout().hidden;
  const bool reset_first = node.attribute("linear_before_reset", std::int64_t{0}) == 0;
  for (std::int64_t d = 0; d < all.layout().directions; ++d) {
    const Direction way = all.direction(d);
    const Tensor inside = slice_axis(way.recurrent_bias, 0, 2 * hidden, 3 * hidden);
    const Tensor outside =
        concat({slice_axis(way.recurrent_bias, 0, 0, 2 * hidden), zeros_like(inside)});
    all.add(gru(way.x + (way.input_bias + outside), way.weight, inside, way.h0,
                {way.reverse, reset_first}),
            way.reverse);
  }
  all.give();
}

void convert_rnn(Node& node) {
  Recurrence all(node, {0});
  const std::vector<std::string> names = activations(node, all.layout(), {"tanh"});
  for (std::int64_t d = 0; d < all.layout().directions; ++d) {
    const std::string& name = names[static_cast<std::size_t>(d)];
    if (name != "tanh" && name != "relu") node.unsupported(fmt::format("activation '{}'", name));
    const Direction way = all.direction(d);
    all.add(rnn(way.x + (way.input_bias + way.recurrent_bias), way.weight, way.h0,
                {way.reverse, name == "relu"}),
            way.reverse);
  }
  all.give();
}

constexpr Adapter kRecurrentAdapters[] = {
    {"LSTM", convert_lstm, false},
    {"GRU", convert_gru, false},
    {"RNN", convert_rnn, false},
};

}  // namespace

std::span<const Adapter> recurrent_adapters() { return kRecurrentAdapters; }

}  // namespace pantala::onnx
