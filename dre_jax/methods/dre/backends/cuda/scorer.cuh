// The scorer of the query's rows, by the warps that have rows, and the gradients of its weights, by all.

struct Block : DeepSet {
  DEVICE void first_layer(Tile<HIDDEN[0] / 8> (&t)[AT_ONCE], int pass) {
    Tile<D8 / 8> in[AT_ONCE];
#pragma unroll
    for (int i = 0; i < AT_ONCE; ++i) {
      t[i].clear();
      load_x(in[i], s.x, first_row(pass, i), QP, lane);
    }
    product<AT_ONCE, D8 / 8, HIDDEN[0] / 8, false>(t, in, s.w + HIDDEN_AT[0], lane);
  }

  // Adds the bias of layer I and so on, up to the activations of the last layer.
  template <int I>
  DEVICE void next_layers(Tile<HIDDEN[I] / 8> (&t)[AT_ONCE], TopTile (&top)[AT_ONCE], int pass) {
    const float* bias = I == 0 && DEEP ? s.vectors + CHAIN * S : small(HIDDEN_BIAS_AT[I]);
#pragma unroll
    for (int i = 0; i < AT_ONCE; ++i) {
      activate(t[i], bias, lane);
      if (I < TOP || PASSES > 1) store(t[i], buffer(I), first_row(pass, i), QP, lane);
    }
    if constexpr (I < TOP) {
      Tile<HIDDEN[I + 1] / 8> next[AT_ONCE];
#pragma unroll
      for (int i = 0; i < AT_ONCE; ++i) next[i].clear();
      product<AT_ONCE, HIDDEN[I] / 8, HIDDEN[I + 1] / 8, false>(next, t, s.w + HIDDEN_AT[I + 1], lane);
      next_layers<I + 1>(next, top, pass);
    } else {
#pragma unroll
      for (int i = 0; i < AT_ONCE; ++i) top[i] = t[i];
    }
  }

  // The same where all layers have one width: a loop, since code that does not fit into the instruction cache is slow.
  template <class T>
  DEVICE void equal_layers(T (&t)[AT_ONCE], TopTile (&top)[AT_ONCE], int pass) {
#pragma unroll 1
    for (int l = 0; l < TOP; ++l) {
      T next[AT_ONCE];
      const float* bias = l == 0 && DEEP ? s.vectors + CHAIN * S : small(HIDDEN_BIAS_AT[0]) + l * S;
#pragma unroll
      for (int i = 0; i < AT_ONCE; ++i) {
        activate(t[i], bias, lane);
        store(t[i], buffer(l), first_row(pass, i), QP, lane);
        next[i].clear();
      }
      product<AT_ONCE, H_TOP / 8, H_TOP / 8, false>(next, t, s.w + HIDDEN_AT[TOP > 0] + l * H_TOP * S, lane);
#pragma unroll
      for (int i = 0; i < AT_ONCE; ++i) t[i] = next[i];
    }
#pragma unroll
    for (int i = 0; i < AT_ONCE; ++i) {
      activate(t[i], small(HIDDEN_BIAS_AT[TOP]), lane);
      if (PASSES > 1) store(t[i], buffer(TOP), first_row(pass, i), QP, lane);
      top[i] = t[i];
    }
  }

  template <bool EQUAL>
  DEVICE void layers(Tile<HIDDEN[0] / 8> (&t)[AT_ONCE], TopTile (&top)[AT_ONCE], int pass) {
    if constexpr (EQUAL)
      equal_layers(t, top, pass);
    else
      next_layers<0>(t, top, pass);
  }

  DEVICE void scores(const TopTile (&t)[AT_ONCE], int pass) {
    const int g = lane >> 2, c = lane & 3;
#pragma unroll
    for (int i = 0; i < AT_ONCE; ++i) {
      const int row = first_row(pass, i);
      float p = 0.0f, q = 0.0f;
#pragma unroll
      for (int n = 0; n < H_TOP / 8; ++n) {
        const float2 w = *(const float2*)(small(OUT_AT) + 8 * n + 2 * c);
        p += t[i].v[n][0] * w.x + t[i].v[n][1] * w.y;
        q += t[i].v[n][2] * w.x + t[i].v[n][3] * w.y;
      }
      p += __shfl_xor_sync(ALL_LANES, p, 1), q += __shfl_xor_sync(ALL_LANES, q, 1);
      p += __shfl_xor_sync(ALL_LANES, p, 2), q += __shfl_xor_sync(ALL_LANES, q, 2);
      if (c == 0 && row < 16 * ROW_TILES) {
        s.scores[row + 2 * g] = p + small(OUT_BIAS_AT)[0];
        s.scores[row + 2 * g + 1] = q + small(OUT_BIAS_AT)[0];
      }
    }
  }

  // The part of the last kernel's gradient that is added to `sums`; t becomes the gradient of the last layer's output.
  DEVICE void scores_back(TopTile (&t)[AT_ONCE], float (&sums)[2 * (H_TOP / 8)], int pass) {
    const int g = lane >> 2, c = lane & 3;
#pragma unroll
    for (int i = 0; i < AT_ONCE; ++i) {
      const int row = first_row(pass, i);
      const float p = row < 16 * ROW_TILES ? s.score_gradient[row + 2 * g] : 0.0f;
      const float q = row < 16 * ROW_TILES ? s.score_gradient[row + 2 * g + 1] : 0.0f;
#pragma unroll
      for (int n = 0; n < H_TOP / 8; ++n) {
        const float2 w = *(const float2*)(small(OUT_AT) + 8 * n + 2 * c);
        float* u = t[i].v[n];
        sums[2 * n] += p * u[0] + q * u[2];
        sums[2 * n + 1] += p * u[1] + q * u[3];
        u[0] = u[0] > 0.0f ? p * w.x : 0.0f;
        u[1] = u[1] > 0.0f ? p * w.y : 0.0f;
        u[2] = u[2] > 0.0f ? q * w.x : 0.0f;
        u[3] = u[3] > 0.0f ? q * w.y : 0.0f;
      }
    }
  }

  // The gradient of layer `l`'s weights, [IN, OUT], from its outputs' gradient.
  template <int IN, int OUT>
  DEVICE void layer_weights(int l, int w_at, float* m, float* v, int index) {
    const float* in = buffer(l - 1);
    weight_gradient<IN, OUT, WARPS, IN_REGISTERS == 0, false>(
        [&](int pair, int, int f) { return *(const float2*)(in + at_pair(pair, f)); }, gradient_buffer(l),
        (n_query + 7) >> 3, nullptr, s.w + w_at, m, v, index, step, optimiser, s.gs + HIDDEN_BIAS_AT[0] + l * S,
        nullptr, warp, lane);
  }

  // From the gradient of layer l's outputs, in t, to that of layer l - 1's. Several passes keep both in buffers.
  template <int IN, int OUT>
  DEVICE void layer_back(int l, int w_at, Tile<OUT / 8> (&t)[AT_ONCE], Tile<IN / 8> (&next)[AT_ONCE]) {
#pragma unroll 1
    for (int pass = 0; pass < PASSES; ++pass) {
      if (!has_rows(pass)) break;
#pragma unroll
      for (int i = 0; i < AT_ONCE; ++i) {
        if constexpr (PASSES > 1)
          load(t[i], gradient_buffer(l), first_row(pass, i), QP, lane);
        else
          store(t[i], gradient_buffer(l), first_row(pass, i), QP, lane);
        next[i].clear();
      }
      product<AT_ONCE, OUT / 8, IN / 8, true>(next, t, s.w + w_at, lane);
#pragma unroll
      for (int i = 0; i < AT_ONCE; ++i) {
        mask(next[i], buffer(l - 1), first_row(pass, i), QP, lane);
        if constexpr (PASSES > 1) store(next[i], gradient_buffer(l - 1), first_row(pass, i), QP, lane);
      }
    }
    __syncthreads();
    if (l == TOP) add_parts(s.gs + OUT_AT, H_TOP, tid, THREADS);
  }

  // In the last layer's place there are activations, and of several passes those of the layer before: wait.
  DEVICE void after_weights(int l) {
    if (PASSES > 1 || l == TOP) __syncthreads();
  }

  template <int L>
  DEVICE void layers_back(Tile<HIDDEN[L] / 8> (&t)[AT_ONCE]) {
    if constexpr (L > 0) {
      Tile<HIDDEN[L - 1] / 8> next[AT_ONCE];
      layer_back<HIDDEN[L - 1], HIDDEN[L]>(L, HIDDEN_AT[L], t, next);
      layer_weights<HIDDEN[L - 1], HIDDEN[L]>(L, HIDDEN_AT[L], m + HIDDEN_OWNED_AT[L], v + HIDDEN_OWNED_AT[L],
                                              HIDDEN_OWNED_AT[L]);
      after_weights(L);
      layers_back<L - 1>(next);
    } else {
      first_weights(t);
    }
  }

  // The same as a loop. The moments of the next layer come to the front, where registers are known to the compiler.
  template <class T>
  DEVICE void equal_layers_back(T (&t)[AT_ONCE]) {
    constexpr int OWNED_BY_LAYER = Pieces<H_TOP, H_TOP, WARPS>::OWNED;
#pragma unroll 1
    for (int l = TOP; l > 0; --l) {
      T next[AT_ONCE];
      const int w_at = HIDDEN_AT[TOP > 0] + (l - 1) * H_TOP * S;
      layer_back<H_TOP, H_TOP>(l, w_at, t, next);
      layer_weights<H_TOP, H_TOP>(l, w_at, m, v, (TOP - l) * OWNED_BY_LAYER);
      if constexpr (IN_REGISTERS > 0) {
#pragma unroll
        for (int i = 0; i < OWNED_BY_LAYER; ++i) {
          const float first = m[i], second = v[i];
#pragma unroll
          for (int j = 0; j < TOP - 1; ++j) {
            m[j * OWNED_BY_LAYER + i] = m[(j + 1) * OWNED_BY_LAYER + i];
            v[j * OWNED_BY_LAYER + i] = v[(j + 1) * OWNED_BY_LAYER + i];
          }
          m[(TOP - 1) * OWNED_BY_LAYER + i] = first, v[(TOP - 1) * OWNED_BY_LAYER + i] = second;
        }
      }
      after_weights(l);
#pragma unroll
      for (int i = 0; i < AT_ONCE; ++i) t[i] = next[i];
    }
    first_weights(t);
  }

  template <bool EQUAL>
  DEVICE void all_layers_back(TopTile (&t)[AT_ONCE]) {
    if constexpr (EQUAL)
      equal_layers_back(t);
    else
      layers_back<TOP>(t);
  }

  DEVICE void first_weights(Tile<HIDDEN[0] / 8> (&t)[AT_ONCE]) {
    if constexpr (PASSES == 1) {
      if (has_rows(0)) {
#pragma unroll
        for (int i = 0; i < AT_ONCE; ++i) store(t[i], gradient_buffer(0), first_row(0, i), QP, lane);
      }
      if constexpr (EARLY_SUMS) sum_columns(t);
      __syncthreads();
      if (EARLY_SUMS && warp == DEEP_WARP) add_parts(s.gs + HIDDEN_BIAS_AT[0], HIDDEN[0], lane, 32);
    }
    if constexpr (LAYERS == 1) {
      if constexpr (PASSES > 1) __syncthreads();
      add_parts(s.gs + OUT_AT, H_TOP, tid, THREADS);
    }
    weight_gradient<D8, HIDDEN[0], FIRST_BY, HIDDEN_OWNED_AT[0] >= IN_REGISTERS, false>(
        [&](int, int place, int f) { return make_float2(s.x[at_x(place, f)], s.x[at_x(place + 4, f)]); },
        gradient_buffer(0), (n_query + 7) >> 3, nullptr, s.w + HIDDEN_AT[0], m + HIDDEN_OWNED_AT[0],
        v + HIDDEN_OWNED_AT[0], HIDDEN_OWNED_AT[0], step, optimiser, EARLY_SUMS ? nullptr : s.gs + HIDDEN_BIAS_AT[0],
        nullptr, warp, lane);
    await_copies();  // the next list is there
    if constexpr (!EARLY_SUMS) __syncthreads();
  }

  // The warp's part of the sums over a gradient's rows.
  template <int N>
  DEVICE void sum_columns(const Tile<N> (&t)[AT_ONCE]) {
    float sums[2 * N];
#pragma unroll
    for (int j = 0; j < 2 * N; ++j) {
      sums[j] = 0.0f;
#pragma unroll
      for (int i = 0; i < AT_ONCE; ++i)
        if (has_rows(0)) sums[j] += t[i].v[j >> 1][j & 1] + t[i].v[j >> 1][2 + (j & 1)];
    }
    if (warp < QUERY_WARPS) store_column_sums<N>(sums, s.part + warp * S, lane);
  }

  // Adds up the warps' parts of sums over columns; of the threads that call it, each has some of them.
  DEVICE void add_parts(float* to, int columns, int thread, int threads) {
    for (int o = thread; o < columns; o += threads) {
      float sum = 0.0f;
#pragma unroll
      for (int i = 0; i < QUERY_WARPS; ++i) sum += s.part[i * S + o];
      to[o] = sum;
    }
    __syncwarp();
  }
};
