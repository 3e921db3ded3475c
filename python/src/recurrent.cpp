// Recurrent layers.
#include "bind.h"
#include "options.h"
#include "pantala/nn.h"
#include "place.h"

namespace pantala::python {

namespace {

nn::RecurrentLayerOptions options_of(const nb::dict& values) {
  nn::RecurrentLayerOptions options;
  Given given(values, "recurrent layer");
  given.take("layers", options.layers)
      .take("bias", options.bias)
      .take("batch_first", options.batch_first)
      .take("bidirectional", options.bidirectional)
      .take("dropout", options.dropout)
      .take("training", options.training);
  if (const nb::object h0 = given.find("h0"); !h0.is_none())
    options.h0 = nb::cast<const Tensor&>(h0);
  if (const nb::object c0 = given.find("c0"); !c0.is_none())
    options.c0 = nb::cast<const Tensor&>(c0);
  given.finish();
  return options;
}

}  // namespace

void bind_recurrent_layers(nb::module_& m) {
  m.def("nn_lstm",
        [](std::string_view name, const Tensor& x, std::int64_t hidden, const nb::dict& options) {
          const nn::LstmOutput result =
              nn::lstm(name, Operand(x, python_place()), hidden, options_of(options));
          return nb::make_tuple(result.output, result.h_n, result.c_n);
        });
  m.def("nn_gru",
        [](std::string_view name, const Tensor& x, std::int64_t hidden, const nb::dict& options) {
          const nn::RecurrentOutput result =
              nn::gru(name, Operand(x, python_place()), hidden, options_of(options));
          return nb::make_tuple(result.output, result.h_n);
        });
  m.def("nn_rnn", [](std::string_view name, const Tensor& x, std::int64_t hidden,
                     std::string_view activation, const nb::dict& options) {
    const nn::RecurrentOutput result = nn::rnn(name, Operand(x, python_place()), hidden,
                                               nn::activation_of(activation), options_of(options));
    return nb::make_tuple(result.output, result.h_n);
  });
}

}  // namespace pantala::python
