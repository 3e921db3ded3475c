#include "schedule/common/attention/arguments.h"

#include <algorithm>
#include <string>
#include <string_view>

namespace pantala::schedule {

using kir::Access;
using kir::BufferId;
using kir::Builder;

namespace {

// No distance is larger than the number of positions.
constexpr std::int64_t kMostPositions = std::int64_t{1} << 30;

std::string_view role_name(AttentionRole role) {
  constexpr std::string_view kNames[] = {"q",  "k",  "v",   "out",  "dout", "dq",
                                         "dk", "dv", "lse", "dots", "mask", "length"};
  return kNames[static_cast<std::size_t>(role)];
}

bool is_result(AttentionPart part, AttentionRole role) {
  switch (part) {
    case AttentionPart::forward:
      return role == AttentionRole::out || role == AttentionRole::lse;
    case AttentionPart::row_dots:
      return role == AttentionRole::dots;
    case AttentionPart::query_grad:
      return role == AttentionRole::dq;
    case AttentionPart::key_grad:
    case AttentionPart::all_grads:
      return role == AttentionRole::dk || role == AttentionRole::dv;
  }
  return false;
}

}  // namespace

AttentionArguments declare_attention(Builder& b, AttentionPart part, const AttentionSpec& spec) {
  AttentionArguments args;
  const std::vector<AttentionRole> roles = attention_roles(part, spec);
  for (const AttentionRole role : roles) {
    const DType dtype = role == AttentionRole::length ? DType::i64
                        : role == AttentionRole::mask && spec.mask == AttentionMask::boolean
                            ? DType::boolean
                            : spec.dtype;
    const bool collected = part == AttentionPart::all_grads && role == AttentionRole::dq;
    const BufferId buffer = b.buffer(std::string(role_name(role)), dtype,
                                     collected               ? Access::read_write
                                     : is_result(part, role) ? Access::write
                                                             : Access::read);
    if (is_head_tensor(role))
      args.tensor(role).buffer = buffer;
    else
      (role == AttentionRole::lse    ? args.lse
       : role == AttentionRole::dots ? args.dots
       : role == AttentionRole::mask ? args.mask
                                     : args.length) = buffer;
  }
  args.heads = b.param("heads");
  args.group = b.param("group");
  args.queries = b.param("queries");
  args.keys = b.param("keys");
  args.head_dim = b.param("head_dim");
  args.block = b.param("block");
  for (const AttentionRole role : roles) {
    if (!is_head_tensor(role)) continue;
    const std::string name(role_name(role));
    args.tensor(role).offset = b.param(name + "_offset");
    args.tensor(role).batch = b.param(name + "_batch");
    args.tensor(role).head = b.param(name + "_head");
    args.tensor(role).position = b.param(name + "_position");
  }
  args.row_batch = b.param("row_batch");
  args.row_head = b.param("row_head");
  if (part == AttentionPart::row_dots) return args;
  if (spec.mask != AttentionMask::none) {
    args.mask_batch = b.param("mask_batch");
    args.mask_head = b.param("mask_head");
    args.mask_query = b.param("mask_query");
    args.mask_key = b.param("mask_key");
  }
  if (spec.windowed) args.window = b.param("window");
  args.scale = b.param("scale", spec.dtype);
  if (part == AttentionPart::forward && spec.length == AttentionLength::param)
    args.length_param = b.param("length");
  return args;
}

AttentionStrides AttentionStrides::dense(const AttentionSizes& s) {
  const HeadStrides q{s.heads * s.queries * s.head_dim, s.queries * s.head_dim, s.head_dim},
      k{s.key_heads * s.keys * s.head_dim, s.keys * s.head_dim, s.head_dim};
  return {.q = q,
          .k = k,
          .v = k,
          .out = q,
          .dout = q,
          .dq = q,
          .dk = k,
          .dv = k,
          .row_batch = s.heads * s.queries,
          .row_head = s.queries,
          .mask_batch = s.heads * s.queries * s.keys,
          .mask_head = s.queries * s.keys,
          .mask_query = s.keys,
          .mask_key = 1};
}

std::vector<AttentionRole> attention_roles(AttentionPart part, const AttentionSpec& spec) {
  const bool masked = spec.mask != AttentionMask::none;
  std::vector<AttentionRole> roles;
  if (part == AttentionPart::row_dots)
    return {AttentionRole::dout, AttentionRole::out, AttentionRole::dots};
  if (part == AttentionPart::forward) {
    roles = {AttentionRole::q, AttentionRole::k, AttentionRole::v};
    if (masked) roles.push_back(AttentionRole::mask);
    if (spec.length == AttentionLength::buffer) roles.push_back(AttentionRole::length);
    roles.push_back(AttentionRole::out);
    if (spec.save_lse) roles.push_back(AttentionRole::lse);
    return roles;
  }
  roles = {AttentionRole::dout, AttentionRole::q,   AttentionRole::k,
           AttentionRole::v,    AttentionRole::lse, AttentionRole::dots};
  if (masked) roles.push_back(AttentionRole::mask);
  if (part != AttentionPart::key_grad) roles.push_back(AttentionRole::dq);
  if (part == AttentionPart::query_grad) return roles;
  roles.push_back(AttentionRole::dk);
  roles.push_back(AttentionRole::dv);
  return roles;
}

bool is_head_tensor(AttentionRole role) { return role <= AttentionRole::dv; }

HeadTensor& AttentionArguments::tensor(AttentionRole role) {
  HeadTensor* const tensors[] = {&q, &k, &v, &out, &dout, &dq, &dk, &dv};
  return *tensors[static_cast<std::size_t>(role)];
}

std::vector<std::int64_t> attention_params(AttentionPart part, const AttentionSpec& spec,
                                           const AttentionSizes& sizes,
                                           const AttentionStrides& strides, std::int64_t window,
                                           std::int64_t block) {
  std::vector<std::int64_t> params{
      sizes.heads, sizes.heads / sizes.key_heads, sizes.queries, sizes.keys, sizes.head_dim, block};
  const HeadStrides* const tensors[] = {&strides.q,    &strides.k,  &strides.v,  &strides.out,
                                        &strides.dout, &strides.dq, &strides.dk, &strides.dv};
  for (const AttentionRole role : attention_roles(part, spec)) {
    if (!is_head_tensor(role)) continue;
    const HeadStrides& s = *tensors[static_cast<std::size_t>(role)];
    params.insert(params.end(), {s.offset, s.batch, s.head, s.position});
  }
  params.insert(params.end(), {strides.row_batch, strides.row_head});
  if (part == AttentionPart::row_dots) return params;
  if (spec.mask != AttentionMask::none)
    params.insert(params.end(),
                  {strides.mask_batch, strides.mask_head, strides.mask_query, strides.mask_key});
  // No distance is larger than the number of positions.
  if (spec.windowed) params.push_back(std::min(window, kMostPositions));
  return params;
}

}  // namespace pantala::schedule
