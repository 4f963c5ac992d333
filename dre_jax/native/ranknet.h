// RankNet of a list: the logistic loss of the score differences of all pairs that are not tied.
#pragma once

#include "loss.h"

namespace dre {

class RankNet : public Loss {
 public:
  RankNet(int64_t n, bool wants_loss)
      : wants_loss_(wants_loss), slot_(n), score_(n), exp_(n), weight_(n), gradient_(n), lost_(n) {}

 private:
  double of_finite(const Ranked& list, const float* score, const Range& range, float scale, float* gradient) override {
    const int64_t n = gather(list, score, range);
    double loss = 0.0;
    for (int64_t start = 0, end = 0; start < n; start = end) {
      const int32_t first = list.first[slot_[start]];
      do ++end;
      while (end < n && list.first[slot_[end]] == first);
      for (int64_t i = start; i < end; ++i) loss += range.narrow() ? against(i, end, n) : apart(i, end, n);
    }
    std::fill(gradient, gradient + list.n, 0.0f);
    for (int64_t i = 0; i < n; ++i) gradient[slot_[i]] = scale * static_cast<float>(gradient_[i]);
    return loss;
  }

  // The items, without the empty slots; returns how many.
  int64_t gather(const Ranked& list, const float* score, const Range& range) {
    int64_t n = 0;
    for (int64_t i = 0; i < list.n; ++i) {
      if (!list.where[i]) continue;
      slot_[n] = i;
      score_[n] = score[i];
      exp_[n] = range.narrow() ? std::exp(score[i] - range.top) : 0.0;
      weight_[n] = list.weight[i];
      gradient_[n++] = 0.0;
    }
    return n;
  }

  // Item i against all worse ones: one exponential an item, since exp(b - a) / (1 + exp(b - a)) = B / (A + B).
  double against(int64_t i, int64_t end, int64_t n) {
    const double a = exp_[i], w = weight_[i];
    double *lost = lost_.data(), *d = gradient_.data();
    const double* b = exp_.data();
    for (int64_t j = end; j < n; ++j) {
      lost[j] = b[j] / (a + b[j]);
      d[j] += w * lost[j];
    }
    double sum = 0.0;
    for (int64_t j = end; j < n; ++j) sum += lost[j];
    d[i] -= w * sum;
    return wants_loss_ ? w * log_of_product(i, end, n) : 0.0;
  }

  // The sum of log(1 + B / A), with a logarithm only where the product would overflow.
  double log_of_product(int64_t i, int64_t end, int64_t n) const {
    double product = 1.0, loss = 0.0;
    for (int64_t j = end; j < n; ++j) {
      product *= 1.0 + exp_[j] / exp_[i];
      if (product > 1e40) {
        loss += std::log(product);
        product = 1.0;
      }
    }
    return loss + std::log(product);
  }

  // The same for scores of any distance.
  double apart(int64_t i, int64_t end, int64_t n) {
    double loss = 0.0;
    for (int64_t j = end; j < n; ++j) {
      const double difference = score_[j] - score_[i], small = std::exp(-std::abs(difference));
      const double lost = weight_[i] * (difference > 0 ? 1.0 : small) / (1.0 + small);
      gradient_[j] += lost;
      gradient_[i] -= lost;
      loss += weight_[i] * (std::max(difference, 0.0) + std::log1p(small));
    }
    return loss;
  }

  bool wants_loss_;
  std::vector<int64_t> slot_;
  std::vector<double> score_, exp_, weight_, gradient_, lost_;
};

}  // namespace dre
