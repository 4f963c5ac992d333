// The gradient of weighted ListMLE in the scores of a list, by one warp: d/ds_j = sum_i w_i p_ij - w_j.
//
// Exact at any range of scores, as the losses are: nothing is clipped, and no epsilon is added.

constexpr int ITEMS = (QP + 31) / 32;  // of a lane
constexpr float LOWEST = -3.0e38f;
constexpr float ONE_SHIFT = 60.0f;  // scores that span less are summed with one shift, in float32 without underflow

struct Sum {  // sum * exp(top)
  float top, sum;
};

DEVICE Sum add(Sum a, Sum b) {
  Sum r;
  r.top = fmaxf(a.top, b.top);
  r.sum = a.sum * expf(a.top - r.top) + b.sum * expf(b.top - r.top);
  return r;
}

DEVICE float warp_sum(float v) {
#pragma unroll
  for (int h = 16; h; h >>= 1) v += __shfl_xor_sync(ALL_LANES, v, h);
  return v;
}

// Reads scores[n], weights and bounds (first | last << 16 of each item's tie group); gradient[32 ITEMS] = that times
// `share`, zero from n on. `scratch` has room for 64 ITEMS numbers. Returns the loss, in all lanes, if it is wanted.
DEVICE float listmle(const float* scores, const float* weights, const unsigned* bounds, float* gradient, float* scratch,
                     int n, float share, bool wants_loss, int lane) {
  float score[ITEMS], weight[ITEMS], low = -LOWEST, high = LOWEST, loss = 0.0f;
  int first[ITEMS], last[ITEMS];
  float *tops = scratch, *sums = scratch + 32 * ITEMS;
#pragma unroll
  for (int j = 0; j < ITEMS; ++j) {
    const int i = ITEMS * lane + j;
    const bool in = i < n;
    const unsigned packed = in ? bounds[i] : 0u;
    score[j] = in ? scores[i] : LOWEST;
    weight[j] = in ? weights[i] : 0.0f;
    first[j] = packed & 0xffffu, last[j] = packed >> 16;
    if (in) low = fminf(low, score[j]), high = fmaxf(high, score[j]);
  }
#pragma unroll
  for (int h = 16; h; h >>= 1) {
    low = fminf(low, __shfl_xor_sync(ALL_LANES, low, h));
    high = fmaxf(high, __shfl_xor_sync(ALL_LANES, high, h));
  }
  if (high - low < ONE_SHIFT) {
    float term[ITEMS], run[ITEMS], tail = 0.0f;
#pragma unroll
    for (int j = ITEMS - 1; j >= 0; --j)
      term[j] = ITEMS * lane + j < n ? expf(score[j] - high) : 0.0f, run[j] = tail += term[j];
#pragma unroll
    for (int h = 1; h < 32; h *= 2) {
      const float other = __shfl_down_sync(ALL_LANES, tail, h);
      if (lane + h < 32) tail += other;
    }
    const float behind = __shfl_down_sync(ALL_LANES, tail, 1);
#pragma unroll
    for (int j = 0; j < ITEMS; ++j) sums[ITEMS * lane + j] = run[j] + (lane < 31 ? behind : 0.0f);
    __syncwarp();
    float head = 0.0f;
#pragma unroll
    for (int j = 0; j < ITEMS; ++j) {
      if (ITEMS * lane + j < n) {
        const float sum = sums[first[j]];
        head += weight[j] / sum;
        if (wants_loss) loss += weight[j] * (logf(sum) + high - score[j]);
      }
      run[j] = head;
    }
#pragma unroll
    for (int h = 1; h < 32; h *= 2) {
      const float other = __shfl_up_sync(ALL_LANES, head, h);
      if (lane >= h) head += other;
    }
    const float before = __shfl_up_sync(ALL_LANES, head, 1);
    __syncwarp();
#pragma unroll
    for (int j = 0; j < ITEMS; ++j) sums[ITEMS * lane + j] = run[j] + (lane ? before : 0.0f);
    __syncwarp();
#pragma unroll
    for (int j = 0; j < ITEMS; ++j)
      gradient[ITEMS * lane + j] = ITEMS * lane + j < n ? share * (term[j] * sums[last[j]] - weight[j]) : 0.0f;
  } else {  // each sum has a shift of its own
    Sum run[ITEMS], tail = {LOWEST, 0.0f};
#pragma unroll
    for (int j = ITEMS - 1; j >= 0; --j) {
      if (ITEMS * lane + j < n) tail = add(Sum{score[j], 1.0f}, tail);
      run[j] = tail;
    }
    for (int h = 1; h < 32; h *= 2) {
      const Sum other = {__shfl_down_sync(ALL_LANES, tail.top, h), __shfl_down_sync(ALL_LANES, tail.sum, h)};
      if (lane + h < 32) tail = add(tail, other);
    }
    const Sum behind = {__shfl_down_sync(ALL_LANES, tail.top, 1), __shfl_down_sync(ALL_LANES, tail.sum, 1)};
#pragma unroll
    for (int j = 0; j < ITEMS; ++j) {
      if (lane < 31) run[j] = add(run[j], behind);
      tops[ITEMS * lane + j] = run[j].top, sums[ITEMS * lane + j] = run[j].sum;
    }
    __syncwarp();
    Sum head = {LOWEST, 0.0f};
#pragma unroll
    for (int j = 0; j < ITEMS; ++j) {
      if (ITEMS * lane + j < n) {
        const float top = tops[first[j]], sum = sums[first[j]];
        head = add(head, Sum{-top, weight[j] / sum});
        if (wants_loss) loss += weight[j] * (logf(sum) + (top - score[j]));
      }
      run[j] = head;
    }
    for (int h = 1; h < 32; h *= 2) {
      const Sum other = {__shfl_up_sync(ALL_LANES, head.top, h), __shfl_up_sync(ALL_LANES, head.sum, h)};
      if (lane >= h) head = add(other, head);
    }
    const Sum before = {__shfl_up_sync(ALL_LANES, head.top, 1), __shfl_up_sync(ALL_LANES, head.sum, 1)};
    __syncwarp();
#pragma unroll
    for (int j = 0; j < ITEMS; ++j) {
      if (lane) run[j] = add(before, run[j]);
      tops[ITEMS * lane + j] = run[j].top, sums[ITEMS * lane + j] = run[j].sum;
    }
    __syncwarp();
#pragma unroll
    for (int j = 0; j < ITEMS; ++j)
      gradient[ITEMS * lane + j] =
          ITEMS * lane + j < n ? share * (expf(score[j] + tops[last[j]]) * sums[last[j]] - weight[j]) : 0.0f;
  }
  return wants_loss ? warp_sum(loss) : 0.0f;
}
