// Gradients of the weights, and Adam. The thread that sums a weight's gradient owns its moments: of the first
// IN_REGISTERS of a thread's weights they are in registers, of the others in global memory.

struct Step {
  float size, floor;
  bool first, last;  // of the block's lists of a step
};

struct Optimiser {
  float* moments;   // [(OWNED - IN_REGISTERS) / 4][first, second][THREADS][4]
  float* gradient;  // [OWNED][THREADS], where a step has several lists
  int tid;
};

DEVICE float adam(float p, float g, float& m, float& v, const Step& step) {
  m = 0.9f * m + 0.1f * g;
  v = 0.999f * v + 0.001f * g * g;
  return p - step.size * quick_div(m, quick_sqrt(v) + step.floor);
}

// The first moment of the thread's weight number `index`, from IN_REGISTERS on; the second is 4 THREADS behind it.
DEVICE float* moment_of(int index, const Optimiser& o) {
  const int i = index - IN_REGISTERS;
  return o.moments + (i / 4 * 2 * THREADS + o.tid) * 4 + i % 4;
}

// Adds g to the gradient of the thread's weight number `index`, and updates the weight after the last list. Blocks that
// share the lists of a member add up their gradients first.
DEVICE void update(float& weight, float g, float& m, float& v, int index, const Step& step, const Optimiser& o) {
  if constexpr (SEVERAL_LISTS) {
    float& sum = o.gradient[index * THREADS + o.tid];
    if (!step.first) g += sum;
    if (GROUP > 1 || !step.last) {
      sum = g;
      return;
    }
  }
  weight = adam(weight, g, m, v, step);
}

// How the first BY warps share out the gradient of a matrix, IN x OUT: pieces of 16 x 8 WIDE, piece `turn * BY + warp`
// each turn.
template <int IN, int OUT, int BY>
struct Pieces {
  static constexpr int HIGH = (IN + 15) / 16;
  static constexpr int WIDE = OUT % 16 == 0 && HIGH * (OUT / 8) > BY ? 2 : 1;
  static constexpr int COUNT = HIGH * (OUT / 8 / WIDE);
  static constexpr int TURNS = (COUNT + BY - 1) / BY;
  static constexpr int OWNED = TURNS * WIDE * 4;  // weights of a thread
};

// Calls f(index of the thread's weight, row, column) for its weights of such a matrix.
template <int IN, int OUT, int BY, class F>
DEVICE void visit_pieces(int warp, int lane, F f) {
  using P = Pieces<IN, OUT, BY>;
#pragma unroll
  for (int turn = 0; turn < P::TURNS; ++turn) {
    const int piece = turn * BY + warp;
    const int row = 16 * (piece % P::HIGH) + (lane >> 2), column = 8 * P::WIDE * (piece / P::HIGH) + 2 * (lane & 3);
#pragma unroll
    for (int i = 0; i < 4 * P::WIDE; ++i) {
      const int r = row + 8 * (i / 2 % 2);
      if (warp < BY && piece < P::COUNT && r < IN) f(turn * P::WIDE * 4 + i, r, column + 8 * (i / 4) + i % 2);
    }
  }
}

// The gradient of W [IN, OUT] over rows 0 to 8 `steps` of inputs and of gradients, by the first BY warps; then
// `update`. Moments are in m and v or, if IN_MEMORY, in global memory.
// `input(pair, place, f)` reads feature f of rows 2 `pair` and 2 `pair` + 1, which x has at `place` and `place` + 4.
// `sums`, if not null, gets the sums of the gradients' columns; `weighted` the sums weighted by `row_weight`, if
// WEIGHTED.
template <int IN, int OUT, int BY, bool IN_MEMORY, bool WEIGHTED, class Input>
DEVICE void weight_gradient(Input input, const float* grad, int steps, const float* row_weight, float* w, float* m,
                            float* v, int index, const Step& step, const Optimiser& o, float* sums, float* weighted,
                            int warp, int lane) {
  using P = Pieces<IN, OUT, BY>;
  const int g = lane >> 2, c = lane & 3;
#pragma unroll
  for (int turn = 0; turn < P::TURNS; ++turn) {
    const int piece = turn * BY + warp;
    if (warp >= BY || piece >= P::COUNT) break;
    const int feature = 16 * (piece % P::HIGH), column = 8 * P::WIDE * (piece / P::HIGH);
    float acc[P::WIDE][4], low[P::WIDE][4], lower[P::WIDE][4];  // three sums, none of which waits for another
    float sum[P::WIDE], weighted_sum[P::WIDE];
    float4* moments[P::WIDE];
    float4 first[P::WIDE], second[P::WIDE];
    if constexpr (IN_MEMORY) {
#pragma unroll
      for (int n = 0; n < P::WIDE; ++n) {
        moments[n] = (float4*)moment_of(index + 4 * (turn * P::WIDE + n), o);
        first[n] = moments[n][0], second[n] = moments[n][THREADS];
      }
    }
#pragma unroll
    for (int n = 0; n < P::WIDE; ++n) {
      sum[n] = weighted_sum[n] = 0.0f;
#pragma unroll
      for (int i = 0; i < 4; ++i) acc[n][i] = low[n][i] = lower[n][i] = 0.0f;
    }
#pragma unroll 2
    for (int s = 0; s < steps; ++s) {
      const int pair = 4 * s + c, place = 8 * s + c;
      const float2 a0 = input(pair, place, feature + g), a1 = input(pair, place, feature + g + 8);
      FragmentA a;
      split(a0.x, a.high[0], a.low[0]);
      split(a1.x, a.high[1], a.low[1]);
      split(a0.y, a.high[2], a.low[2]);
      split(a1.y, a.high[3], a.low[3]);
#pragma unroll
      for (int n = 0; n < P::WIDE; ++n) {
        const float2 b = *(const float2*)(grad + at_pair(pair, column + 8 * n + g));
        const float b0 = b.x, b1 = b.y;
        sum[n] += b0 + b1;
        if constexpr (WEIGHTED) weighted_sum[n] += row_weight[2 * pair] * b0 + row_weight[2 * pair + 1] * b1;
        unsigned high0, low0, high1, low1;
        split(b0, high0, low0);
        split(b1, high1, low1);
        if constexpr (SPLIT) {
          mma(low[n], a.low, high0, high1);
          mma(lower[n], a.high, low0, low1);
        }
        mma(acc[n], a.high, high0, high1);
      }
    }
    const int turn_of_row = phase(g);
#pragma unroll
    for (int n = 0; n < P::WIDE; ++n) {
#pragma unroll
      for (int i = 0; i < 4; ++i) acc[n][i] += low[n][i] + lower[n][i];
      sum[n] += __shfl_xor_sync(ALL_LANES, sum[n], 1);
      sum[n] += __shfl_xor_sync(ALL_LANES, sum[n], 2);
      if (c == 0 && feature == 0 && sums) sums[column + 8 * n + g] = sum[n];
      if constexpr (WEIGHTED) {
        weighted_sum[n] += __shfl_xor_sync(ALL_LANES, weighted_sum[n], 1);
        weighted_sum[n] += __shfl_xor_sync(ALL_LANES, weighted_sum[n], 2);
        if (c == 0 && feature == 0) weighted[column + 8 * n + g] = weighted_sum[n];
      }
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        if (feature + 8 * half >= IN) continue;
        float2* p = (float2*)(w + (feature + 8 * half + g) * S + 8 * ((column / 8 + n) ^ turn_of_row) + 2 * c);
        float2 old = *p;
        const int i = 4 * (turn * P::WIDE + n) + 2 * half;
        if constexpr (IN_MEMORY) {
          float4 &q = first[n], &r = second[n];
          update(old.x, acc[n][2 * half], half ? q.z : q.x, half ? r.z : r.x, index + i, step, o);
          update(old.y, acc[n][2 * half + 1], half ? q.w : q.y, half ? r.w : r.y, index + i + 1, step, o);
        } else {
          update(old.x, acc[n][2 * half], m[i], v[i], index + i, step, o);
          update(old.y, acc[n][2 * half + 1], m[i + 1], v[i + 1], index + i + 1, step, o);
        }
        *p = old;
      }
      if constexpr (IN_MEMORY) moments[n][0] = first[n], moments[n][THREADS] = second[n];
    }
  }
}

// Matrices of layers that a list passes as one row: their gradient is an outer product. Threads own fours of columns.
template <int IN, int OUT>
struct Outer {
  static constexpr int TURNS = (IN * (OUT / 4) + THREADS - 1) / THREADS;
  static constexpr int OWNED = TURNS * 4;
};

template <int IN, int OUT, class F>
DEVICE void visit_outer(int tid, F f) {
#pragma unroll
  for (int turn = 0; turn < Outer<IN, OUT>::TURNS; ++turn) {
    const int four = turn * THREADS + tid, row = four / (OUT / 4), column = 4 * (four % (OUT / 4));
#pragma unroll
    for (int i = 0; i < 4; ++i)
      if (row < IN) f(4 * turn + i, row, column + i);
  }
}

// The gradient of W [IN, OUT] is in d^T; then `update`. Moments are in global memory.
template <int IN, int OUT>
DEVICE void outer_gradient(float* w, const float* in, const float* d, int index, const Step& step,
                           const Optimiser& o) {
#pragma unroll
  for (int turn = 0; turn < Outer<IN, OUT>::TURNS; ++turn) {
    const int four = turn * THREADS + o.tid, row = four / (OUT / 4), column = 4 * (four % (OUT / 4));
    if (row >= IN) break;
    float4* p = (float4*)(w + at(row, column));
    const float x = in[row];
    const float4 e = *(const float4*)(d + column);
    float4 old = *p, *moments = (float4*)moment_of(index + 4 * turn, o), m = moments[0], v = moments[THREADS];
    update(old.x, x * e.x, m.x, v.x, index + 4 * turn, step, o);
    update(old.y, x * e.y, m.y, v.y, index + 4 * turn + 1, step, o);
    update(old.z, x * e.z, m.z, v.z, index + 4 * turn + 2, step, o);
    update(old.w, x * e.w, m.w, v.w, index + 4 * turn + 3, step, o);
    moments[0] = m, moments[THREADS] = v;
    *p = old;
  }
}

// One row through a layer, by one warp: out[OUT] = in[IN] @ W + bias. Vectors and W are in shared memory.
template <int IN, int OUT, bool RELU>
DEVICE void row_forward(const float* w, const float* in, const float* bias, float* out, int lane) {
#pragma unroll
  for (int first = 0; first < OUT; first += 32) {
    const int o = first + lane;
    float sum[4] = {o < OUT ? bias[o] : 0.0f, 0.0f, 0.0f, 0.0f};
#pragma unroll
    for (int k = 0; k < IN; k += 4) {
      const float4 x = *(const float4*)(in + k);
      sum[0] += x.x * w[at(k, o)];
      sum[1] += x.y * w[at(k + 1, o)];
      sum[2] += x.z * w[at(k + 2, o)];
      sum[3] += x.w * w[at(k + 3, o)];
    }
    const float total = (sum[0] + sum[1]) + (sum[2] + sum[3]);
    if (o < OUT) out[o] = RELU ? (total > 0.0f ? total : (total == total ? 0.0f : total)) : total;
  }
  __syncwarp();
}

// Back through it: out[IN] = d[OUT] @ W^T, zero where `activations` are not positive, if there are any.
template <int IN, int OUT>
DEVICE void row_backward(const float* w, const float* d, const float* activations, float* out, int lane) {
  const int i = lane >> 3, q = lane & 7;
#pragma unroll
  for (int first = 0; first < IN; first += 32) {
    float v[8];
#pragma unroll
    for (int p = 0; p < 8; ++p) {
      const int row = first + 4 * p + i;
      v[p] = 0.0f;
#pragma unroll
      for (int column = 0; column < OUT; column += 32)
        if (row < IN && column + 4 * q < OUT) {
          const float4 a = *(const float4*)(w + at(row, column + 4 * q)), b = *(const float4*)(d + column + 4 * q);
          v[p] += (a.x * b.x + a.y * b.y) + (a.z * b.z + a.w * b.w);
        }
    }
    const float total = sum8(v, lane, 1);
    const int row = first + 4 * q + i;
    if (row < IN) out[row] = !activations || activations[row] > 0.0f ? total : 0.0f;
  }
  __syncwarp();
}
