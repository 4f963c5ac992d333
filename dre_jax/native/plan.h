// Where a member's parameters lie: layer after layer, rows padded to whole vectors.
#pragma once

#include <cstdint>
#include <vector>

#include "product.h"

namespace dre {

using Floats = std::vector<float>;

// A dense layer's place among the parameters. Rows of the kernel are padded to whole vectors, with zeros that stay
// zero.
struct Layer {
  int64_t in, out, width, kernel, bias;
};

struct Sizes {
  int64_t columns;
  std::vector<int64_t> hidden, phi, rho;  // no phi: no deep set
};

struct Plan {
  std::vector<Layer> phi, rho, hidden;
  int64_t out, out_bias, out_width, total = 0;

  explicit Plan(const Sizes& sizes) {
    phi = place(sizes.phi, sizes.columns + 1);
    rho = phi.empty() ? phi : place(sizes.rho, phi.back().out);
    hidden = place(sizes.hidden, sizes.columns + context());
    out_width = hidden.back().width;
    out = total, out_bias = out + out_width;
    total = out_bias + kLanes;
  }

  int64_t context() const { return rho.empty() ? 0 : rho.back().out; }

  // Calls f(packed, padded, count) for each run of numbers: packed as Python has them, kernel and bias of each layer.
  template <typename F>
  void each_run(F f) const {
    int64_t packed = 0;
    for (const auto* layers : {&phi, &rho, &hidden})
      for (const Layer& layer : *layers) {
        for (int64_t k = 0; k < layer.in; ++k, packed += layer.out)
          f(packed, layer.kernel + k * layer.width, layer.out);
        f(packed, layer.bias, layer.out);
        packed += layer.out;
      }
    f(packed, out, hidden.back().out);
    f(packed + hidden.back().out, out_bias, 1);
  }

  int64_t packed_size() const {
    int64_t size = 0;
    each_run([&](int64_t packed, int64_t, int64_t count) { size = packed + count; });
    return size;
  }

 private:
  std::vector<Layer> place(const std::vector<int64_t>& widths, int64_t in) {
    std::vector<Layer> layers;
    for (int64_t out : widths) {
      const int64_t width = padded(out);
      layers.push_back({in, out, width, total, total + in * width});
      total += (in + 1) * width;
      in = out;
    }
    return layers;
  }
};

}  // namespace dre
