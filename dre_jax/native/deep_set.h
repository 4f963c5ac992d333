// A deep set: rows of a support to one context (dre_jax/model/networks.py), and the gradient.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "chain.h"
#include "plan.h"
#include "product.h"

namespace dre {

// out = bias + in @ kernel, for one row.
inline void affine(const Layer& layer, int64_t first, int64_t depth, const float* params, const float* in,
                   const float* bias, float* out) {
  product(1, {in, depth, 1}, depth, params + layer.kernel + first * layer.width, layer.width, out, bias);
}

// The gradient of `affine`: adds that of the kernel, and gives that of the row. `d` is padded with zeros.
inline void affine_backward(const Layer& layer, int64_t first, int64_t depth, const float* params, const float* in,
                            const float* d, float* added, float* d_in) {
  for (int64_t k = 0; k < depth; ++k) {
    const int64_t row = layer.kernel + (first + k) * layer.width;
    Vec sum{};
    for (int64_t o = 0; o < layer.width; o += kLanes) {
      sum += at(params + row + o) * at(d + o);
      at(added + row + o) += in[k] * at(d + o);
    }
    d_in[k] = total(sum);
  }
}

class DeepSet {
 public:
  DeepSet(const DeepSetPlan& plan, int64_t columns, int64_t max_rows)
      : items_({plan.phi.begin(), plan.phi.end() - 1}, columns, max_rows), columns_(columns) {
    rows_.push_back(plan.phi.back());
    rows_.insert(rows_.end(), plan.rho.begin(), plan.rho.end());
    inputs_.emplace_back(plan.phi.back().in);
    int64_t widest = columns;
    for (const Layer& layer : rows_) {
      inputs_.emplace_back(layer.width);
      widest = std::max({widest, layer.in, layer.width});
    }
    d_.resize(widest);
    d_in_.resize(widest);
  }

  void prepare(const float* params) { items_.prepare(params); }

  // The context of n rows. Without any it does not depend on the layers before the mean.
  const float* forward(const float* params, const float* rows, int64_t n) {
    if (!items_.empty()) items_.forward(params, rows, n, items_.bias(params));
    const float* items = items_.empty() ? rows : items_.result();
    const int64_t depth = rows_.front().in, stride = items_.empty() ? columns_ : items_.width();
    std::fill(inputs_[0].begin(), inputs_[0].end(), 0.0f);
    for (int64_t r = 0; r < n; ++r)
      for (int64_t k = 0; k < depth; ++k) inputs_[0][k] += items[r * stride + k];
    for (float& value : inputs_[0]) value /= static_cast<float>(std::max<int64_t>(n, 1));
    for (size_t i = 0; i < rows_.size(); ++i) {
      const Layer& layer = rows_[i];
      Floats& out = inputs_[i + 1];
      affine(layer, 0, layer.in, params, inputs_[i].data(), params + layer.bias, out.data());
      if (i == 0 && n == 0) std::fill(out.begin(), out.end(), 0.0f);
      if (rectified(i))
        for (float& value : out) value = std::max(value, 0.0f);
    }
    return inputs_.back().data();
  }

  // From the gradient of the context that `forward` gave, adds those of the parameters.
  void backward(const float* params, const float* rows, int64_t n, const float* d_context, float* added) {
    std::copy(d_context, d_context + rows_.back().out, d_.begin());
    for (size_t i = rows_.size(); i-- > 0;) {
      const Layer& layer = rows_[i];
      for (int64_t o = 0; o < layer.width; ++o)
        if (o >= layer.out || (rectified(i) && inputs_[i + 1][o] <= 0.0f)) d_[o] = 0.0f;
      if (i == 0 && n == 0) return;
      for (int64_t o = 0; o < layer.out; ++o) added[layer.bias + o] += d_[o];
      affine_backward(layer, 0, layer.in, params, inputs_[i].data(), d_.data(), added, d_in_.data());
      d_.swap(d_in_);
    }
    if (items_.empty()) return;
    const int64_t depth = rows_.front().in, stride = items_.width();
    float* d = items_.gradient();
    std::fill(d, d + n * stride, 0.0f);
    for (int64_t r = 0; r < n; ++r)
      for (int64_t k = 0; k < depth; ++k) d[r * stride + k] = d_[k] / static_cast<float>(n);
    items_.backward(rows, n, added, items_.bias(added));
  }

 private:
  // The layer behind the mean and the last have no ReLU.
  bool rectified(size_t i) const { return i != 0 && i + 1 != rows_.size(); }

  Chain items_;
  int64_t columns_;
  std::vector<Layer> rows_;
  std::vector<Floats> inputs_;  // of each layer behind the mean, and the context
  Floats d_, d_in_;
};

}  // namespace dre
