// Layers: functions that name their parameters.
#include "bind.h"
#include "options.h"
#include "pantala/nn.h"
#include "place.h"

namespace pantala::python {

namespace {

Operand here(const Tensor& tensor) { return {tensor, python_place()}; }

nn::ConvLayerOptions conv_options(const nb::dict& values) {
  nn::ConvLayerOptions options;
  Given(values, "conv")
      .take("stride", options.stride)
      .take("padding", options.padding)
      .take("dilation", options.dilation)
      .take("groups", options.groups)
      .take("bias", options.bias)
      .finish();
  return options;
}

nn::ConvTransposeLayerOptions transposed_options(const nb::dict& values) {
  nn::ConvTransposeLayerOptions options;
  Given(values, "conv_transpose")
      .take("stride", options.stride)
      .take("padding", options.padding)
      .take("output_padding", options.output_padding)
      .take("dilation", options.dilation)
      .take("groups", options.groups)
      .take("bias", options.bias)
      .finish();
  return options;
}

nn::NormLayerOptions norm_options(const nb::dict& values) {
  nn::NormLayerOptions options;
  Given(values, "norm")
      .take("eps", options.eps)
      .take("affine", options.affine)
      .take("bias", options.bias)
      .finish();
  return options;
}

void bind_products(nb::module_& m) {
  m.def("nn_linear", [](std::string_view name, const Tensor& x, std::int64_t out, bool bias) {
    return nn::linear(name, here(x), out, {.bias = bias});
  });
  // `axes`: spatial ones, 1 or 2.
  m.def("nn_conv", [](int axes, std::string_view name, const Tensor& x, std::int64_t out,
                      const IntList& kernel, const nb::dict& options) {
    return (axes == 1 ? nn::conv1d : nn::conv2d)(name, here(x), out, kernel, conv_options(options));
  });
  m.def("nn_conv_transpose", [](int axes, std::string_view name, const Tensor& x, std::int64_t out,
                                const IntList& kernel, const nb::dict& options) {
    return (axes == 1 ? nn::conv_transpose1d : nn::conv_transpose2d)(name, here(x), out, kernel,
                                                                     transposed_options(options));
  });
  m.def("nn_mlp", [](std::string_view name, const Tensor& x, const IntList& sizes,
                     std::string_view activation) {
    return nn::mlp(name, here(x), sizes, nn::activation_of(activation));
  });
  m.def("nn_embedding", [](std::string_view name, const Tensor& index, std::int64_t count,
                           std::int64_t size, std::string_view dtype) {
    return nn::embedding(name, here(index), count, size, {.dtype = dtype_named(dtype)});
  });
}

void bind_norms(nb::module_& m) {
  m.def("nn_layer_norm", [](std::string_view name, const Tensor& x, const nb::dict& options) {
    return nn::layer_norm(name, here(x), norm_options(options));
  });
  m.def("nn_rms_norm", [](std::string_view name, const Tensor& x, const nb::dict& options) {
    return nn::rms_norm(name, here(x), norm_options(options));
  });
  m.def("nn_group_norm",
        [](std::string_view name, const Tensor& x, std::int64_t groups, const nb::dict& options) {
          return nn::group_norm(name, here(x), groups, norm_options(options));
        });
  m.def("nn_batch_norm", [](std::string_view name, const Tensor& x, bool training, double momentum,
                            double eps, bool frozen) {
    return nn::batch_norm(
        name, here(x), {.training = training, .momentum = momentum, .eps = eps, .frozen = frozen});
  });
}

template <class Options>
void take_attention(Given& given, Options& options) {
  given.take("heads", options.heads)
      .take("causal", options.causal)
      .take("bias", options.bias)
      .take("dropout", options.dropout)
      .take("training", options.training);
  if (const nb::object mask = given.find("mask"); !mask.is_none())
    options.mask = nb::cast<const Tensor&>(mask);
}

void bind_transformers(nb::module_& m) {
  m.def("nn_multi_head_attention", [](std::string_view name, const Tensor& query, const Tensor& key,
                                      const Tensor& value, const nb::dict& values) {
    nn::MultiHeadAttentionOptions options;
    Given given(values, "multi_head_attention");
    take_attention(given, options);
    given.finish();
    if (key == query && value == query) return nn::multi_head_attention(name, here(query), options);
    return nn::multi_head_attention(name, here(query), here(key), here(value), options);
  });
  m.def("nn_transformer_encoder_layer",
        [](std::string_view name, const Tensor& x, const nb::dict& values) {
          nn::TransformerEncoderLayerOptions options;
          std::string activation = "relu";
          Given given(values, "transformer_encoder_layer");
          take_attention(given, options);
          given.take("feed_forward", options.feed_forward)
              .take("activation", activation)
              .take("norm_first", options.norm_first)
              .take("eps", options.eps)
              .finish();
          options.activation = nn::activation_of(activation);
          return nn::transformer_encoder_layer(name, here(x), options);
        });
}

}  // namespace

void bind_layers(nb::module_& m) {
  bind_products(m);
  bind_norms(m);
  bind_transformers(m);
  m.def("activation_names", nn::activation_names);
  m.def("nn_activate", [](const Tensor& x, std::string_view activation) {
    return nn::activate(here(x), nn::activation_of(activation));
  });
  m.def("nn_dropout",
        [](const Tensor& x, double p, bool training) { return nn::dropout(here(x), p, training); });
}

}  // namespace pantala::python
