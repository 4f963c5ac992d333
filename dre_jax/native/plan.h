// Where parameters lie: layer after layer, rows padded to whole vectors.
#pragma once

#include <cstdint>
#include <vector>

#include "product.h"

namespace dre {

using Floats = std::vector<float>;
using Widths = std::vector<int64_t>;

// A dense layer's place among the parameters. Rows of the kernel are padded to whole vectors, with zeros that stay
// zero.
struct Layer {
  int64_t in, out, width, kernel, bias;
};

// Calls f(packed, padded, count) for each run of numbers: packed as Python has them, kernel and bias of each layer.
template <typename F>
int64_t each_run_of(const std::vector<Layer>& layers, int64_t packed, F f) {
  for (const Layer& layer : layers) {
    for (int64_t k = 0; k < layer.in; ++k, packed += layer.out) f(packed, layer.kernel + k * layer.width, layer.out);
    f(packed, layer.bias, layer.out);
    packed += layer.out;
  }
  return packed;
}

inline std::vector<Layer> place(const Widths& widths, int64_t in, int64_t& total) {
  std::vector<Layer> layers;
  for (int64_t out : widths) {
    const int64_t width = padded(out);
    layers.push_back({in, out, width, total, total + in * width});
    total += (in + 1) * width;
    in = out;
  }
  return layers;
}

// A deep set's parameters, none without one.
struct DeepSetPlan {
  std::vector<Layer> phi, rho;
  int64_t total = 0, packed = 0;

  DeepSetPlan(int64_t columns, const Widths& phi_widths, const Widths& rho_widths) {
    phi = place(phi_widths, columns, total);
    if (!phi.empty()) rho = place(rho_widths, phi.back().out, total);
    packed = each_run([](int64_t, int64_t, int64_t) {});
  }

  bool empty() const { return phi.empty(); }
  int64_t context() const { return rho.empty() ? 0 : rho.back().out; }

  template <typename F>
  int64_t each_run(F f) const {
    return each_run_of(rho, each_run_of(phi, 0, f), f);
  }
};

// A scorer's parameters.
struct ScorerPlan {
  std::vector<Layer> hidden;
  int64_t columns, context, out, out_bias, out_width, total = 0, packed = 0;

  ScorerPlan(int64_t columns, int64_t context, const Widths& widths) : columns(columns), context(context) {
    hidden = place(widths, columns + context, total);
    out_width = hidden.back().width;
    out = total, out_bias = out + out_width;
    total = out_bias + kLanes;
    packed = each_run([](int64_t, int64_t, int64_t) {});
  }

  template <typename F>
  int64_t each_run(F f) const {
    const int64_t end = each_run_of(hidden, 0, f), last = hidden.back().out;
    f(end, out, last);
    f(end + last, out_bias, 1);
    return end + last + 1;
  }
};

}  // namespace dre
