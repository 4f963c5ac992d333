// One member of the ensemble: scores of a list by its deep set and its scorer (dre_jax/model), and the gradient.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>

#include "chain.h"
#include "deep_set.h"
#include "plan.h"
#include "product.h"

namespace dre {

// The rows of one list, those that count only.
struct List {
  int64_t n_support, n_query;
  const float *support, *query;  // [n_support, columns + 1], the response last; [n_query, columns]
};

class Network {
 public:
  Network(const Plan& plan, int64_t columns, int64_t max_support, int64_t max_query)
      : plan_(plan),
        columns_(columns),
        scorer_(plan.hidden, columns, max_query),
        bias_(plan.hidden.front().width),
        d_bias_(bias_.size()),
        d_context_(plan.context()) {
    if (plan.context()) deep_set_.emplace(plan, columns + 1, max_support);
  }

  // Once a step, before its lists.
  void prepare(const float* params) {
    scorer_.prepare(params);
    if (deep_set_) deep_set_->prepare(params);
  }

  // Scores of the queries.
  void forward(const float* params, const List& list, float* score) {
    const Layer& first = plan_.hidden.front();
    const float* bias = params + first.bias;
    if (deep_set_) {
      context_ = deep_set_->forward(params, list.support, list.n_support);
      affine(first, columns_, plan_.context(), params, context_, bias, bias_.data());
      bias = bias_.data();
    }
    scorer_.forward(params, list.query, list.n_query, bias);
    const float *row = scorer_.result(), *kernel = params + plan_.out;
    for (int64_t r = 0; r < list.n_query; ++r, row += plan_.out_width) {
      Vec sum{};
      for (int64_t c = 0; c < plan_.out_width; c += kLanes) sum += at(row + c) * at(kernel + c);
      score[r] = params[plan_.out_bias] + total(sum);
    }
  }

  // From the gradient of the scores that `forward` gave, adds those of the parameters.
  void backward(const float* params, const List& list, const float* d_score, float* added) {
    const float *row = scorer_.result(), *kernel = params + plan_.out;
    float* d = scorer_.gradient();
    for (int64_t r = 0; r < list.n_query; ++r, row += plan_.out_width, d += plan_.out_width) {
      for (int64_t c = 0; c < plan_.out_width; c += kLanes) {
        at(d + c) = d_score[r] * at(kernel + c);
        at(added + plan_.out + c) += d_score[r] * at(row + c);
      }
      added[plan_.out_bias] += d_score[r];
    }
    const Layer& first = plan_.hidden.front();
    std::fill(d_bias_.begin(), d_bias_.end(), 0.0f);
    scorer_.backward(list.query, list.n_query, added, d_bias_.data());
    for (size_t c = 0; c < d_bias_.size(); ++c) added[first.bias + c] += d_bias_[c];
    if (!deep_set_) return;
    affine_backward(first, columns_, plan_.context(), params, context_, d_bias_.data(), added, d_context_.data());
    deep_set_->backward(params, list.support, list.n_support, d_context_.data(), added);
  }

 private:
  const Plan& plan_;
  int64_t columns_;
  Chain scorer_;
  std::optional<DeepSet> deep_set_;
  Floats bias_, d_bias_, d_context_;
  const float* context_ = nullptr;
};

}  // namespace dre
