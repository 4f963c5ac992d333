// Parameters in training, with Adam's moments and the gradient.
#pragma once

#include <algorithm>
#include <cstdint>

#include "adam.h"
#include "plan.h"

namespace dre {

// Packed rows of parameters as Python has them: [parameters and both moments, rows, size].
struct Rows {
  float* data;
  int64_t rows, size;

  float* at(int64_t kind, int64_t row) const { return data + (kind * rows + row) * size; }
};

struct State {
  Floats value, mean, square, added;

  explicit State(int64_t total) : value(total), mean(total), square(total), added(total) {}

  template <typename Plan>
  void load(const Plan& plan, const Rows& rows, int64_t row) {
    for (int64_t kind = 0; kind < 3; ++kind) {
      const float* from = rows.at(kind, row);
      plan.each_run([&](int64_t a, int64_t b, int64_t n) { std::copy_n(from + a, n, of(kind).data() + b); });
    }
  }

  template <typename Plan>
  void store(const Plan& plan, const Rows& rows, int64_t row) {
    for (int64_t kind = 0; kind < 3; ++kind) {
      float* to = rows.at(kind, row);
      plan.each_run([&](int64_t a, int64_t b, int64_t n) { std::copy_n(of(kind).data() + b, n, to + a); });
    }
  }

  void step(float size, float floor) {
    adam(static_cast<int64_t>(value.size()), added.data(), size, floor, value.data(), mean.data(), square.data());
  }

 private:
  Floats& of(int64_t kind) { return kind == 0 ? value : kind == 1 ? mean : square; }
};

}  // namespace dre
