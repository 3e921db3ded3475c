// The conv archetype on a GPU: a convolution or one of its gradients as an implicit product by
// tiles (gpu/tile.h). No matrix is made: the threads that fetch a slice find the elements under
// each tap of each window themselves. Work on the result joins as an epilogue.
//  - forward: m are the positions of y, n its channels, k the taps and the channels of x.
//  - input_grad: m are the positions of x, n its channels, k the taps and the channels of y.
//  - weight_grad: m are the channels of y, n the taps and the channels of x, k the positions of y.
// Groups are a batch of products.
#pragma once

#include "schedule/archetype.h"

namespace pantala::schedule::gpu {

const Archetype& conv_archetype();

}  // namespace pantala::schedule::gpu
