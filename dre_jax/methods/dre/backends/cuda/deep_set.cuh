// The deep set: rows of the support and the chain behind their mean by one warp, the weights' gradients by all.

struct DeepSet : Exchange {
  // Layers of rows I, I + 1, ... of the deep set, from the outputs of layer I without its bias.
  template <int I>
  DEVICE void deep_rows(Tile<PHI[I] / 8> (&t)[DEEP_AT_ONCE], int first, float (&sums)[2 * (DEEP_WIDTH / 8)]) {
    constexpr int N = PHI[I] / 8;
#pragma unroll
    for (int i = 0; i < DEEP_AT_ONCE; ++i) {
      activate(t[i], small(PHI_BIAS_AT[I]), lane);
      store(t[i], s.ph + I * KP * S, first + 16 * i, KP, lane);
    }
    if constexpr (I + 1 < PHI_ROWS) {
      Tile<PHI[I + 1] / 8> next[DEEP_AT_ONCE];
#pragma unroll
      for (int i = 0; i < DEEP_AT_ONCE; ++i) next[i].clear();
      product<DEEP_AT_ONCE, N, PHI[I + 1] / 8, false>(next, t, s.w + PHI_AT[I + 1], lane);
      deep_rows<I + 1>(next, first, sums);
    } else {
      const int g = lane >> 2;
      const float share = 1.0f / (float)n_support;
#pragma unroll
      for (int i = 0; i < DEEP_AT_ONCE; ++i) {
        const float p = first + 16 * i + g < n_support ? share : 0.0f;
        const float q = first + 16 * i + 8 + g < n_support ? share : 0.0f;
#pragma unroll
        for (int j = 0; j < 2 * N; ++j) sums[j] += p * t[i].v[j >> 1][j & 1] + q * t[i].v[j >> 1][2 + (j & 1)];
      }
    }
  }

  DEVICE void deep_forward() {
    const float* y = s.ys + now * KP;
    const float* x = s.xs + now * KP * XS;
    if constexpr (PHI_ROWS > 0) {
      float sums[2 * (DEEP_WIDTH / 8)];
#pragma unroll
      for (int i = 0; i < 2 * (DEEP_WIDTH / 8); ++i) sums[i] = 0.0f;
#pragma unroll 1
      for (int first = 0; first < n_support; first += 16 * DEEP_AT_ONCE) {
        Tile<D8 / 8> in[DEEP_AT_ONCE];
        Tile<PHI[0] / 8> t[DEEP_AT_ONCE];
#pragma unroll
        for (int i = 0; i < DEEP_AT_ONCE; ++i) {
          const int row = first + 16 * i + (lane >> 2);
          load_x(in[i], x, first + 16 * i, KP, lane);
          const float p = row < KP ? y[row] : 0.0f, q = row + 8 < KP ? y[row + 8] : 0.0f;
#pragma unroll
          for (int n = 0; n < PHI[0] / 8; ++n) {
            const float2 w = *(const float2*)(small(RESPONSE_AT) + 8 * n + 2 * (lane & 3));
            t[i].v[n][0] = p * w.x, t[i].v[n][1] = p * w.y, t[i].v[n][2] = q * w.x, t[i].v[n][3] = q * w.y;
          }
        }
        product<DEEP_AT_ONCE, D8 / 8, PHI[0] / 8, false>(t, in, s.w + PHI_AT[0], lane);
        deep_rows<0>(t, first, sums);
      }
      store_column_sums<DEEP_WIDTH / 8>(sums, s.vectors, lane);
    } else {  // the only layer is linear, so it maps the mean
      const float share = n_support > 0 ? 1.0f / (float)n_support : 0.0f;
      for (int column = lane; column < D8; column += 32) {
        float sum = 0.0f;
        for (int r = 0; r < n_support; ++r) sum += x[at_x(r, column)];
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
  DEVICE void deep_rows_back(Tile<PHI[I] / 8> (&t)[DEEP_AT_ONCE], int first) {
    constexpr int N = PHI[I] / 8;
#pragma unroll
    for (int i = 0; i < DEEP_AT_ONCE; ++i) {
      mask(t[i], s.ph + I * KP * S, first + 16 * i, KP, lane);
      store(t[i], s.ph + (I + 1 < PHI_ROWS ? PHI_ROWS + I : I) * KP * S, first + 16 * i, KP, lane);
    }
    if constexpr (I > 0) {
      Tile<PHI[I - 1] / 8> next[DEEP_AT_ONCE];
#pragma unroll
      for (int i = 0; i < DEEP_AT_ONCE; ++i) next[i].clear();
      product<DEEP_AT_ONCE, N, PHI[I - 1] / 8, true>(next, t, s.w + PHI_AT[I], lane);
      deep_rows_back<I - 1>(next, first);
    }
  }

  // From the gradient of the scorer's first bias to those of all outputs of layers.
  DEVICE void deep_backward(int item) {
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
    if constexpr (PHI_ROWS > 0) {
      constexpr int N = DEEP_WIDTH / 8;
      const int g = lane >> 2, c = lane & 3;
      const float share = n_support > 0 ? 1.0f / (float)n_support : 0.0f;
#pragma unroll 1
      for (int first = 0; first < n_support; first += 16 * DEEP_AT_ONCE) {
        Tile<N> t[DEEP_AT_ONCE];
#pragma unroll
        for (int i = 0; i < DEEP_AT_ONCE; ++i) {
          const float p = first + 16 * i + g < n_support ? share : 0.0f;
          const float q = first + 16 * i + 8 + g < n_support ? share : 0.0f;
#pragma unroll
          for (int n = 0; n < N; ++n) {
            const float2 e = *(const float2*)(s.mean_gradient + 8 * n + 2 * c);
            t[i].v[n][0] = p * e.x, t[i].v[n][1] = p * e.y, t[i].v[n][2] = q * e.x, t[i].v[n][3] = q * e.y;
          }
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
        weight_gradient<PHI[I - 1], PHI[I], false>(
            [&](int r, int f) { return in[at(r, f)]; }, grad, steps, nullptr, s.w + PHI_AT[I], m + PHI_OWNED_AT[I],
            v + PHI_OWNED_AT[I], PHI_OWNED_AT[I], step, optimiser, s.gs + PHI_BIAS_AT[I], nullptr, warp, lane);
      });
      const float* x = s.xs + now * KP * XS;
      const float* grad = s.ph + (PHI_ROWS > 1 ? PHI_ROWS : 0) * KP * S;
      weight_gradient<D8, PHI[0], true>([&](int r, int f) { return x[at_x(r, f)]; }, grad, steps, s.ys + now * KP,
                                        s.w + PHI_AT[0], m + PHI_OWNED_AT[0], v + PHI_OWNED_AT[0], PHI_OWNED_AT[0],
                                        step, optimiser, s.gs + PHI_BIAS_AT[0], s.gs + RESPONSE_AT, warp, lane);
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
