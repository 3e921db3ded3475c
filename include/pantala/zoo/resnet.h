// ResNet-18 and ResNet-50 as torchvision defines them, for any batch, image size and number of
// classes, in two forms:
//  - folded: every batch norm is one bias per channel (bn1.bias, layer2.0.downsample.1.bias, ...),
//    and its scale is in the convolution in front of it: for inference, and for weights that were
//    trained elsewhere.
//  - batch_norm: torchvision's own, with weight, bias and running statistics: for training.
//
// Names, order, layouts and first values are torchvision's, so that its files load as they are;
// fold_resnet() turns such a file into the folded form.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "pantala/weights.h"
#include "pantala/zoo.h"

namespace pantala::zoo {

enum class ResnetForm : std::uint8_t { folded, batch_norm };

struct ResnetOptions {
  ResnetForm form = ResnetForm::folded;
  std::int64_t channels = 3;
  std::int64_t height = 224, width = 224;  // any from 1 on
  std::int64_t classes = 1000;
  Labels labels = Labels::classes;  // of graphs with a loss
};

// Inference: image [batch, channels, height, width], named "image", to the output "logits" [batch,
// classes]. Batch norm uses its running statistics.
Model resnet18(std::int64_t batch = 1, const ResnetOptions& options = {},
               Where where = Where::current());
Model resnet50(std::int64_t batch = 1, const ResnetOptions& options = {},
               Where where = Where::current());
// Training: inputs "image" and "labels"; the only output is "loss", the mean cross entropy. Batch
// norm uses the statistics of the batch and updates the running ones.
Model resnet18_training(std::int64_t batch, const ResnetOptions& options = {},
                        Where where = Where::current());
Model resnet50_training(std::int64_t batch, const ResnetOptions& options = {},
                        Where where = Where::current());

// The parameters' names, in the order of the graph.
std::vector<std::string> resnet18_weight_names(ResnetForm form = ResnetForm::folded);
std::vector<std::string> resnet50_weight_names(ResnetForm form = ResnetForm::folded);

// A convolution's weight [out, ...] and the batch norm behind it, as one: with f = gamma / sqrt(var
// + eps) for each output channel, weight f and bias beta - mean f. Computed in double, rounded to
// the weight's type. TypeError unless all are floats, the vectors are [out], and var + eps is
// positive.
struct FoldedBatchNorm {
  Literal weight, bias;
};
FoldedBatchNorm fold_batch_norm(const Literal& weight, const Literal& gamma, const Literal& beta,
                                const Literal& mean, const Literal& var, double eps = 1e-5);

// What a folded bias is called, given the name of its batch norm ("layer1.0.bn2"). By default that
// name with ".bias" behind it, as in the graphs above.
using BiasName = std::function<std::string(std::string_view batch_norm)>;
// torchvision's tensors of any network whose batch norms follow their convolutions by the names
// of ResNet (bn1 behind conv1, downsample.1 behind downsample.0), folded; everything else is passed
// on, and num_batches_tracked is left out. TypeError naming the tensor that is missing or does not
// fit.
Weights fold_resnet(const Weights& torchvision, double eps = 1e-5, const BiasName& name = {});

}  // namespace pantala::zoo
