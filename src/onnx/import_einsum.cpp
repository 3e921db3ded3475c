// Einsum: operands are joined from left to right. Axes that nothing later needs are summed as early
// as possible, the rest is a contraction and, at the end, an order of axes.
#include <fmt/format.h>

#include <algorithm>
#include <string>

#include "onnx/adapters.h"

namespace pantala::onnx {

namespace {

// A tensor with a label per axis. Letters are as in the equation; the axes of an ellipsis have
// digits, the last one is '0'.
struct Labelled {
  Tensor x;
  std::string labels;
};

bool contains(const std::string& text, char c) { return text.find(c) != std::string::npos; }

struct Equation {
  std::vector<std::string> operands;
  std::string result;
  bool has_result = false;
};

Equation parse_equation(const Node& node, std::string text) {
  std::erase(text, ' ');
  Equation equation;
  const std::size_t arrow = text.find("->");
  equation.has_result = arrow != std::string::npos;
  if (equation.has_result) equation.result = text.substr(arrow + 2);
  std::string left = text.substr(0, arrow);
  for (std::size_t comma; (comma = left.find(',')) != std::string::npos;
       left = left.substr(comma + 1))
    equation.operands.push_back(left.substr(0, comma));
  equation.operands.push_back(left);
  if (std::ssize(equation.operands) != node.inputs())
    node.fail(fmt::format("'{}' does not fit {} inputs", text, node.inputs()));
  return equation;
}

// The term with the dots replaced by as many digits as there are axes left.
std::string expand_dots(const Node& node, const std::string& term, int rank) {
  const std::size_t dots = term.find("...");
  const auto letters = static_cast<int>(term.size()) - (dots == std::string::npos ? 0 : 3);
  const int hidden = rank - letters;
  if (hidden < 0 || (dots == std::string::npos && hidden != 0))
    node.fail(fmt::format("'{}' does not fit {} axes", term, rank));
  std::string labels = term.substr(0, dots);
  if (dots != std::string::npos) {
    for (int k = hidden; k-- > 0;) labels += static_cast<char>('0' + k);
    labels += term.substr(dots + 3);
  }
  for (const char c : labels)
    if (!std::isalnum(static_cast<unsigned char>(c))) node.fail(fmt::format("label '{}'", c));
  return labels;
}

// Labels of the result: as written, or (without an arrow) those of the dots and, in order of the
// alphabet, those that occur once.
std::string result_labels(const Node& node, const Equation& equation, const std::string& all) {
  std::string digits;
  for (char c = '9'; c >= '0'; --c)
    if (contains(all, c)) digits += c;
  if (equation.has_result) {
    std::string labels = equation.result;
    if (const std::size_t dots = labels.find("..."); dots != std::string::npos)
      labels.replace(dots, 3, digits);
    for (const char c : labels)
      if (!contains(all, c)) node.fail(fmt::format("label '{}' stands in no operand", c));
    return labels;
  }
  std::string once;
  for (const char c : all)
    if (std::isalpha(static_cast<unsigned char>(c)) && std::count(all.begin(), all.end(), c) == 1)
      once += c;
  std::sort(once.begin(), once.end());
  return digits + once;
}

// A label that occurs twice in one operand stands for its diagonal.
Labelled diagonal(Labelled a) {
  for (std::size_t k = 0; k < a.labels.size(); ++k) {
    std::size_t twin;
    while ((twin = a.labels.find(a.labels[k], k + 1)) != std::string::npos) {
      const auto first = static_cast<std::int64_t>(k), second = static_cast<std::int64_t>(twin);
      const Tensor on =
          eq(iota_beside(a.x, a.x.shape(), first), iota_beside(a.x, a.x.shape(), second));
      a.x = sum(where(on, a.x, 0), {second});
      a.labels.erase(twin, 1);
    }
  }
  return a;
}

// Sums over the labels that are not in `needed`.
Labelled sum_others(Labelled a, const std::string& needed) {
  IntList axes;
  std::string kept;
  for (std::size_t k = 0; k < a.labels.size(); ++k)
    if (contains(needed, a.labels[k]))
      kept += a.labels[k];
    else
      axes.push_back(static_cast<std::int64_t>(k));
  return axes.empty() ? a : Labelled{sum(a.x, axes), kept};
}

// Axes of the same label have one size, or 1 in one of the two (dots only).
Labelled stretch(const Labelled& a, const Labelled& b) {
  Shape shape = a.x.shape();
  for (std::size_t k = 0; k < a.labels.size(); ++k) {
    const std::size_t other = b.labels.find(a.labels[k]);
    if (other != std::string::npos && shape[static_cast<int>(k)] == 1)
      shape = shape.with(static_cast<int>(k), b.x.dim(static_cast<int>(other)));
  }
  return {broadcast_to(a.x, shape), a.labels};
}

Labelled join(const Labelled& left, const Labelled& right, const std::string& needed) {
  const Labelled a = stretch(sum_others(left, needed + right.labels), right);
  const Labelled b = stretch(sum_others(right, needed + left.labels), a);
  ContractAxes axes;
  std::string batch, free;
  for (std::size_t k = 0; k < a.labels.size(); ++k) {
    const std::size_t other = b.labels.find(a.labels[k]);
    const auto i = static_cast<std::int64_t>(k), j = static_cast<std::int64_t>(other);
    if (other == std::string::npos) {
      free += a.labels[k];
    } else if (contains(needed, a.labels[k])) {
      axes.batch_a.push_back(i), axes.batch_b.push_back(j), batch += a.labels[k];
    } else {
      axes.contract_a.push_back(i), axes.contract_b.push_back(j);
    }
  }
  for (const char label : b.labels)
    if (!contains(a.labels, label)) free += label;
  return {contract(a.x, b.x, axes), batch + free};
}

}  // namespace

void convert_einsum(Node& node) {
  const Equation equation = parse_equation(node, node.attribute("equation", std::string()));
  const DType dtype = node.dtype(0);
  std::vector<Labelled> operands;
  std::string all;
  for (int k = 0; k < node.inputs(); ++k) {
    const Tensor x = node.tensor(k);
    operands.push_back(
        {is_float(dtype) ? x : cast(x, f64),
         expand_dots(node, equation.operands[static_cast<std::size_t>(k)], x.rank())});
    all += operands.back().labels;
    operands.back() = diagonal(operands.back());
  }
  const std::string result = result_labels(node, equation, all);
  Labelled total = operands[0];
  for (std::size_t k = 1; k < operands.size(); ++k) {
    std::string needed = result;
    for (std::size_t later = k + 1; later < operands.size(); ++later)
      needed += operands[later].labels;
    total = join(total, operands[k], needed);
  }
  total = sum_others(total, result);
  IntList order;
  for (const char label : result)
    order.push_back(static_cast<std::int64_t>(total.labels.find(label)));
  if (order.size() != total.labels.size()) node.fail("a label of the result occurs twice");
  const Tensor y = permute(total.x, order);
  node.give(is_float(dtype) ? y : cast(y, dtype));
}

}  // namespace pantala::onnx
