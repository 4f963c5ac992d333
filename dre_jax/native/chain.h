// Dense layers over rows, with a ReLU after each, and their gradient.
#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "plan.h"
#include "product.h"
#include "transpose.h"

namespace dre {

// Dense layers with a ReLU after each, from rows to rows; it keeps what its gradient needs.
class Chain {
 public:
  Chain(std::vector<Layer> layers, int64_t columns, int64_t max_rows) : layers_(std::move(layers)), columns_(columns) {
    int64_t widest = kLanes;
    for (const Layer& layer : layers_) {
      hidden_.emplace_back(max_rows * layer.width);
      back_.emplace_back(layer.out * padded(layer.in));
      widest = std::max({widest, layer.width, padded(layer.in)});
    }
    gradient_.resize(max_rows * widest);
    spare_.resize(max_rows * widest);
    zeros_.resize(widest);
  }

  bool empty() const { return layers_.empty(); }
  int64_t width() const { return layers_.back().width; }
  const float* result() const { return hidden_.back().data(); }
  float* gradient() { return gradient_.data(); }
  template <typename T>
  T* bias(T* params) const {
    return params + layers_.front().bias;
  }

  // Transposes the kernels for `backward`, once for all lists of a step.
  void prepare(const float* params) {
    for (size_t i = 1; i < layers_.size(); ++i) {
      const Layer& layer = layers_[i];
      transpose(layer.in, layer.out, params + layer.kernel, layer.width, back_[i].data());
    }
  }

  // `bias` takes the place of the first layer's.
  void forward(const float* params, const float* rows, int64_t n, const float* bias) {
    Left input{rows, columns_, 1};
    int64_t depth = columns_;
    for (size_t i = 0; i < layers_.size(); ++i) {
      const Layer& layer = layers_[i];
      float* out = hidden_[i].data();
      product(n, input, depth, params + layer.kernel, layer.width, out, i ? params + layer.bias : bias);
      const Vec zero{};
      for (int64_t j = 0; j < n * layer.width; j += kLanes) at(out + j) = at(out + j) < zero ? zero : at(out + j);
      input = {out, layer.width, 1};
      depth = layer.out;
    }
  }

  // From the gradient of the result, in `gradient()`, adds those of the parameters; the first bias' to `first_bias`.
  void backward(const float* rows, int64_t n, float* added, float* first_bias) {
    for (size_t i = layers_.size(); i-- > 0;) {
      const Layer& layer = layers_[i];
      float* d = gradient_.data();
      const float* out = hidden_[i].data();
      float* bias = i ? added + layer.bias : first_bias;
      const Vec zero{};
      for (int64_t c = 0; c < layer.width; c += kLanes) {
        Vec sum = at(bias + c);
        for (int64_t j = c; j < n * layer.width; j += layer.width) {
          at(d + j) = at(out + j) > zero ? at(d + j) : zero;
          sum += at(d + j);
        }
        at(bias + c) = sum;
      }
      const Left input = i ? Left{hidden_[i - 1].data(), 1, layers_[i - 1].width} : Left{rows, 1, columns_};
      product(i ? layer.in : columns_, input, n, d, layer.width, added + layer.kernel, nullptr);
      if (i == 0) break;
      product(n, {d, layer.width, 1}, layer.out, back_[i].data(), padded(layer.in), spare_.data(), zeros_.data());
      gradient_.swap(spare_);
    }
  }

 private:
  std::vector<Layer> layers_;
  int64_t columns_;
  std::vector<Floats> hidden_, back_;
  Floats gradient_, spare_, zeros_;
};

}  // namespace dre
