// Batch norms of trained networks, folded into the convolutions in front of them.
#include <fmt/format.h>

#include <cmath>
#include <optional>
#include <utility>

#include "pantala/error.h"
#include "pantala/zoo/resnet.h"

namespace pantala::zoo {

namespace {

void require_vector(const Literal& value, std::string_view what, std::int64_t channels) {
  if (!value.is_float() || value.shape() != Shape{channels})
    throw TypeError(
        fmt::format("fold_batch_norm: {} must be [{}], one float per output channel, got {}", what,
                    channels, value.type().str()));
}

void check(const Literal& weight, const Literal& gamma, const Literal& beta, const Literal& mean,
           const Literal& var, double eps) {
  if (!weight.is_float() || weight.shape().rank() < 1)
    throw TypeError("fold_batch_norm: weight must be floats [out channels, ...], got " +
                    weight.type().str());
  const std::int64_t channels = weight.shape()[0];
  require_vector(gamma, "gamma", channels);
  require_vector(beta, "beta", channels);
  require_vector(mean, "mean", channels);
  require_vector(var, "var", channels);
  for (std::int64_t channel = 0; channel < channels; ++channel)
    if (const double sum = var.at(channel) + eps; !(sum > 0))
      throw TypeError(fmt::format(
          "fold_batch_norm: var + eps must be positive, but it is {} + {} of channel {}",
          var.at(channel), eps, channel));
}

bool ends_with_removed(std::string_view& text, std::string_view end) {
  if (!text.ends_with(end)) return false;
  text.remove_suffix(end.size());
  return true;
}

// The batch norm behind the convolution of this name: layer1.0.conv2 has layer1.0.bn2, and
// downsample.0 has downsample.1. None for other layers.
std::optional<std::string> norm_behind(std::string_view layer) {
  const std::size_t dot = layer.rfind('.');
  const std::size_t begin = dot == std::string_view::npos ? 0 : dot + 1;
  const std::string_view parent = layer.substr(0, begin), last = layer.substr(begin);
  if (last.starts_with("conv")) return fmt::format("{}bn{}", parent, last.substr(4));
  if (last == "0" && parent.ends_with("downsample.")) return fmt::format("{}1", parent);
  return {};
}

// In double: it is rounded once, with the result.
Literal difference(const Literal& a, const Literal& b) {
  if (a.shape() != b.shape() || !a.is_float() || !b.is_float())
    throw TypeError(fmt::format("the convolution's bias is {}; one like the mean, {}, is needed",
                                b.type().str(), a.type().str()));
  std::vector<double> values = a.to_doubles();
  for (std::int64_t k = 0; k < a.numel(); ++k) values[static_cast<std::size_t>(k)] -= b.at(k);
  return Literal::floats(a.shape(), std::move(values), f64);
}

}  // namespace

FoldedBatchNorm fold_batch_norm(const Literal& weight, const Literal& gamma, const Literal& beta,
                                const Literal& mean, const Literal& var, double eps) {
  check(weight, gamma, beta, mean, var, eps);
  const std::int64_t channels = weight.shape()[0];
  const std::int64_t size = channels > 0 ? weight.numel() / channels : 0;
  std::vector<double> folded = weight.to_doubles(), bias;
  for (std::int64_t channel = 0; channel < channels; ++channel) {
    const double f = gamma.at(channel) / std::sqrt(var.at(channel) + eps);
    for (std::int64_t k = 0; k < size; ++k)
      folded[static_cast<std::size_t>(channel * size + k)] *= f;
    bias.push_back(beta.at(channel) - mean.at(channel) * f);
  }
  return {.weight = Literal::floats(weight.shape(), std::move(folded), weight.dtype()),
          .bias = Literal::floats({channels}, std::move(bias), weight.dtype())};
}

Weights fold_resnet(const Weights& torchvision, double eps, const BiasName& name) {
  Weights folded = torchvision;
  for (const std::string& weight : torchvision.names()) {
    std::string_view layer = weight;
    if (!ends_with_removed(layer, ".weight")) continue;
    const std::optional<std::string> norm = norm_behind(layer);
    if (!norm || !torchvision.contains(*norm + ".running_var")) continue;
    const auto read = [&](std::string_view part) {
      return torchvision.read(*norm + std::string(part));
    };
    const std::string own_bias = std::string(layer) + ".bias";
    FoldedBatchNorm one;
    try {
      // A bias of the convolution's own is taken away again with the mean.
      Literal mean = read(".running_mean");
      if (torchvision.contains(own_bias)) mean = difference(mean, torchvision.read(own_bias));
      one = fold_batch_norm(torchvision.read(weight), read(".weight"), read(".bias"), mean,
                            read(".running_var"), eps);
    } catch (const TypeError& error) {
      throw TypeError(fmt::format("{} with {}: {}", weight, *norm, error.what()));
    }
    for (const char* part : {".weight", ".bias", ".running_mean", ".running_var"})
      folded.erase(*norm + part);
    if (folded.contains(own_bias)) folded.erase(own_bias);
    if (const std::string count = *norm + ".num_batches_tracked"; folded.contains(count))
      folded.erase(count);
    folded.set(weight, one.weight);
    folded.set(name ? name(*norm) : *norm + ".bias", one.bias);
  }
  return folded;
}

}  // namespace pantala::zoo
