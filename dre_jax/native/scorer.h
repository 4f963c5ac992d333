// A scorer: rows and a context to scores (dre_jax/model/networks.py), and the gradient.
#pragma once

#include <algorithm>
#include <cstdint>

#include "chain.h"
#include "deep_set.h"
#include "plan.h"
#include "product.h"

namespace dre {

class Scorer {
 public:
  Scorer(const ScorerPlan& plan, int64_t max_rows)
      : plan_(plan),
        chain_(plan.hidden, plan.columns, max_rows),
        bias_(plan.hidden.front().width),
        d_bias_(bias_.size()),
        d_context_(plan.context) {}

  // Before the first list after the parameters changed.
  void prepare(const float* params) { chain_.prepare(params); }

  void forward(const float* params, const float* rows, int64_t n, const float* context, float* score) {
    const Layer& first = plan_.hidden.front();
    const float* bias = params + first.bias;
    if (plan_.context) {
      affine(first, plan_.columns, plan_.context, params, context, bias, bias_.data());
      bias = bias_.data();
    }
    chain_.forward(params, rows, n, bias);
    const float *row = chain_.result(), *kernel = params + plan_.out;
    for (int64_t r = 0; r < n; ++r, row += plan_.out_width) {
      Vec sum{};
      for (int64_t c = 0; c < plan_.out_width; c += kLanes) sum += at(row + c) * at(kernel + c);
      score[r] = params[plan_.out_bias] + total(sum);
    }
  }

  // From the gradient of the scores that `forward` gave, adds those of the parameters and of the context.
  void backward(const float* params, const float* rows, int64_t n, const float* context, const float* d_score,
                float* added, float* d_context) {
    const float *row = chain_.result(), *kernel = params + plan_.out;
    float* d = chain_.gradient();
    for (int64_t r = 0; r < n; ++r, row += plan_.out_width, d += plan_.out_width) {
      for (int64_t c = 0; c < plan_.out_width; c += kLanes) {
        at(d + c) = d_score[r] * at(kernel + c);
        at(added + plan_.out + c) += d_score[r] * at(row + c);
      }
      added[plan_.out_bias] += d_score[r];
    }
    const Layer& first = plan_.hidden.front();
    std::fill(d_bias_.begin(), d_bias_.end(), 0.0f);
    chain_.backward(rows, n, added, d_bias_.data());
    for (size_t c = 0; c < d_bias_.size(); ++c) added[first.bias + c] += d_bias_[c];
    if (!plan_.context) return;
    affine_backward(first, plan_.columns, plan_.context, params, context, d_bias_.data(), added, d_context_.data());
    for (int64_t k = 0; k < plan_.context; ++k) d_context[k] += d_context_[k];
  }

 private:
  const ScorerPlan& plan_;
  Chain chain_;
  Floats bias_, d_bias_, d_context_;
};

}  // namespace dre
