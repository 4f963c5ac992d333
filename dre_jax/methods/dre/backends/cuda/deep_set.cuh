// The deep set: sixteens of rows of the support by a warp each, the chain behind their mean by the last warp, the
// weights' gradients by all.

struct DeepSet : Exchange {
  DEVICE bool has_deep_rows() { return warp >= WARPS - DEEP_WARPS; }
  DEVICE int first_deep_row() { return 16 * (DEEP_WARP - warp); }

  // Layers of rows I, I + 1, ... of the deep set, from the outputs of layer I without its bias.
  template <int I>
  DEVICE void deep_rows(Tile<PHI[I] / 8> (&t)[1], int first, float (&sums)[2 * (DEEP_WIDTH / 8)]) {
    constexpr int N = PHI[I] / 8;
    activate(t[0], small(PHI_BIAS_AT[I]), lane);
    store(t[0], s.ph + I * KP * S, first, KP, lane);
    if constexpr (I + 1 < PHI_ROWS) {
      Tile<PHI[I + 1] / 8> next[1];
      next[0].clear();
      product<1, N, PHI[I + 1] / 8, false>(next, t, s.w + PHI_AT[I + 1], lane);
      deep_rows<I + 1>(next, first, sums);
    } else {
      const int row = first + 2 * (lane >> 2);
      const float share = 1.0f / (float)n_support;
      const float p = row < n_support ? share : 0.0f;
      const float q = row + 1 < n_support ? share : 0.0f;
#pragma unroll
      for (int j = 0; j < 2 * N; ++j) sums[j] += p * t[0].v[j >> 1][j & 1] + q * t[0].v[j >> 1][2 + (j & 1)];
    }
  }

  // The mean of the rows' outputs; of several warps, each has a part.
  DEVICE void deep_mean() {
    if constexpr (PHI_ROWS > 0) {
      const float* y = s.ys + now * KP;
      float sums[2 * (DEEP_WIDTH / 8)];
#pragma unroll
      for (int i = 0; i < 2 * (DEEP_WIDTH / 8); ++i) sums[i] = 0.0f;
#pragma unroll 1
      for (int first = first_deep_row(); first < n_support; first += 16 * DEEP_WARPS) {
        const int row = first + 2 * (lane >> 2);
        Tile<D8 / 8> in[1];
        Tile<PHI[0] / 8> t[1];
        load_x(in[0], s.xs + now * KP * XS, first, KP, lane);
        const float p = row < KP ? y[row] : 0.0f, q = row + 1 < KP ? y[row + 1] : 0.0f;
#pragma unroll
        for (int n = 0; n < PHI[0] / 8; ++n) {
          const float2 w = *(const float2*)(small(RESPONSE_AT) + 8 * n + 2 * (lane & 3));
          t[0].v[n][0] = p * w.x, t[0].v[n][1] = p * w.y, t[0].v[n][2] = q * w.x, t[0].v[n][3] = q * w.y;
        }
        product<1, D8 / 8, PHI[0] / 8, false>(t, in, s.w + PHI_AT[0], lane);
        deep_rows<0>(t, first, sums);
      }
      store_column_sums<DEEP_WIDTH / 8>(sums, DEEP_WARPS > 1 ? s.part + warp * S : s.vectors, lane);
    }
  }

  // The mean of the inputs, where the only layer is linear and so maps the mean.
  DEVICE void input_mean() {
    const float* y = s.ys + now * KP;
    const float* x = s.xs + now * KP * XS;
    const float share = n_support > 0 ? 1.0f / (float)n_support : 0.0f;
    for (int column = lane; column < D8; column += 32) {
      float sum = 0.0f;
      for (int r = 0; r < n_support; ++r) sum += x[at_x(place_of_row(r), column)];
      s.vectors[column] = share * sum;
    }
    float sum = 0.0f;
    for (int r = lane; r < n_support; r += 32) sum += y[r];
    sum = share * warp_sum(sum);
    if (lane == 0) s.mean_response[0] = sum;
    __syncwarp();
    for (int o = lane; o < PHI[0]; o += 32)
      s.chain_bias[o] = small(CHAIN_BIAS_AT[0])[o] + sum * small(RESPONSE_AT)[o];
  }

  // From the mean to the bias of the scorer's first layer, by one warp.
  DEVICE void chain_forward() {
    if constexpr (PHI_ROWS == 0) input_mean();
    if constexpr (DEEP_WARPS > 1) {
      for (int o = lane; o < DEEP_WIDTH; o += 32) {
        float sum = 0.0f;
#pragma unroll
        for (int i = WARPS - DEEP_WARPS; i < WARPS; ++i) sum += s.part[i * S + o];
        s.vectors[o] = sum;
      }
    }
    __syncwarp();
    each<0, CHAIN>([&](auto layer) {
      constexpr int I = decltype(layer)::value;
      const float* bias = I == 0 && PHI_ROWS == 0 ? s.chain_bias : small(CHAIN_BIAS_AT[I]);
      row_forward<CHAIN_IN[I], CHAIN_OUT[I], CHAIN_RELU[I] != 0>(s.w + CHAIN_AT[I], s.vectors + I * S, bias,
                                                                 s.vectors + (I + 1) * S, lane);
      if (I == 0 && n_support == 0) {  // without items the mean is zero, and so is the layer's output
        for (int o = lane; o < S; o += 32) s.vectors[S + o] = 0.0f;
        __syncwarp();
      }
    });
  }

  template <int I>
  DEVICE void deep_rows_back(Tile<PHI[I] / 8> (&t)[1], int first) {
    constexpr int N = PHI[I] / 8;
    mask(t[0], s.ph + I * KP * S, first, KP, lane);
    store(t[0], s.ph + (I + 1 < PHI_ROWS ? PHI_ROWS + I : I) * KP * S, first, KP, lane);
    if constexpr (I > 0) {
      Tile<PHI[I - 1] / 8> next[1];
      next[0].clear();
      product<1, N, PHI[I - 1] / 8, true>(next, t, s.w + PHI_AT[I], lane);
      deep_rows_back<I - 1>(next, first);
    }
  }

  // From the gradient of the scorer's first bias to that of the mean, by one warp.
  DEVICE void chain_backward(int item) {
    each<0, CHAIN>([&](auto reversed) {
      constexpr int I = CHAIN - 1 - decltype(reversed)::value;
      const float* d = I == CHAIN - 1 ? s.gs + HIDDEN_BIAS_AT[0] : s.gradients + I * S;
      if (SHARED && I == CHAIN - 2) sum_over_members(item, s.gradients + I * S);
      if (I == 0 && n_support == 0) {
        for (int o = lane; o < S; o += 32) s.gradients[o] = 0.0f;
        __syncwarp();
      }
      if constexpr (I > 0) {
        const float* activations = CHAIN_RELU[I - 1] ? s.vectors + I * S : nullptr;
        row_backward<CHAIN_IN[I], CHAIN_OUT[I]>(s.w + CHAIN_AT[I], d, activations, s.gradients + (I - 1) * S, lane);
      } else if constexpr (PHI_ROWS > 0) {
        row_backward<CHAIN_IN[0], CHAIN_OUT[0]>(s.w + CHAIN_AT[0], d, nullptr, s.mean_gradient, lane);
      }
    });
  }

  // From the gradient of the mean to those of the rows.
  DEVICE void mean_back() {
    if constexpr (PHI_ROWS > 0) {
      constexpr int N = DEEP_WIDTH / 8;
      const int g = lane >> 2, c = lane & 3;
      const float share = n_support > 0 ? 1.0f / (float)n_support : 0.0f;
#pragma unroll 1
      for (int first = first_deep_row(); first < n_support; first += 16 * DEEP_WARPS) {
        Tile<N> t[1];
        const float p = first + 2 * g < n_support ? share : 0.0f;
        const float q = first + 2 * g + 1 < n_support ? share : 0.0f;
#pragma unroll
        for (int n = 0; n < N; ++n) {
          const float2 e = *(const float2*)(s.mean_gradient + 8 * n + 2 * c);
          t[0].v[n][0] = p * e.x, t[0].v[n][1] = p * e.y, t[0].v[n][2] = q * e.x, t[0].v[n][3] = q * e.y;
        }
        deep_rows_back<(PHI_ROWS > 0 ? PHI_ROWS - 1 : 0)>(t, first);
      }
    }
  }

  // The gradients of the deep set's weights, by all warps.
  DEVICE void deep_weights() {
    if constexpr (PHI_ROWS > 0) {
      const int steps = (n_support + 7) >> 3;
      each<1, PHI_ROWS>([&](auto layer) {
        constexpr int I = decltype(layer)::value;
        const float* in = s.ph + (I - 1) * KP * S;
        const float* grad = s.ph + (I + 1 < PHI_ROWS ? PHI_ROWS + I : I) * KP * S;
        weight_gradient<PHI[I - 1], PHI[I], WARPS, IN_REGISTERS == 0, false>(
            [&](int pair, int, int f) { return *(const float2*)(in + at_pair(pair, f)); }, grad, steps, nullptr,
            s.w + PHI_AT[I], m + PHI_OWNED_AT[I], v + PHI_OWNED_AT[I], PHI_OWNED_AT[I], step, optimiser,
            s.gs + PHI_BIAS_AT[I], nullptr, warp, lane);
      });
      const float* x = s.xs + now * KP * XS;
      const float* grad = s.ph + (PHI_ROWS > 1 ? PHI_ROWS : 0) * KP * S;
      weight_gradient<D8, PHI[0], WARPS, IN_REGISTERS == 0, true>(
          [&](int, int place, int f) { return make_float2(x[at_x(place, f)], x[at_x(place + 4, f)]); }, grad, steps,
          s.ys + now * KP, s.w + PHI_AT[0], m + PHI_OWNED_AT[0], v + PHI_OWNED_AT[0], PHI_OWNED_AT[0], step, optimiser,
          s.gs + PHI_BIAS_AT[0], s.gs + RESPONSE_AT, warp, lane);
    }
    each<0, CHAIN>([&](auto layer) {
      constexpr int I = decltype(layer)::value;
      const float* d = I == CHAIN - 1 ? s.gs + HIDDEN_BIAS_AT[0] : s.gradients + I * S;
      outer_gradient<CHAIN_IN[I], CHAIN_OUT[I]>(s.w + CHAIN_AT[I], s.vectors + I * S, d, CHAIN_OWNED_AT[I], step,
                                                optimiser);
      if constexpr (I < CHAIN - 1)
        for (int o = tid; o < CHAIN_OUT[I]; o += THREADS) s.gs[CHAIN_BIAS_AT[I] + o] = d[o];
      if constexpr (I == 0 && PHI_ROWS == 0)
        for (int o = tid; o < CHAIN_OUT[I]; o += THREADS) s.gs[RESPONSE_AT + o] = s.mean_response[0] * d[o];
    });
  }
};
