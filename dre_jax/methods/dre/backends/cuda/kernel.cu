// All steps of training in one launch: a block of WARPS warps trains a member of a run from the first step to the last.
//
// `plan.py` writes the sizes, the layout of the parameters and `struct Shared` in front of this file. Weights,
// activations and lists are in shared memory, Adam's moments in registers. The last warp computes the deep set; the
// others share the tiles of 16 rows of the query. What does not fit is in `scratch`, in global memory.
//
// Scores, list and deep set of one list: 13 barriers with four hidden layers.

template <int V>
struct Int {
  static constexpr int value = V;
};

// Calls f(Int<I>()) for I = FIRST to LAST - 1.
template <int FIRST, int LAST, class F>
DEVICE void each(F f) {
  if constexpr (FIRST < LAST) {
    f(Int<FIRST>());
    each<FIRST + 1, LAST>(f);
  }
}

struct Args {
  const float *params, *first, *second;  // [runs, members, PARAMETERS]; moments may be null: zero
  const float* x;                        // [runs, rows, XS]
  const int* support;                    // [runs, steps, members or 1, lists, KS], rows of x; like all lists below
  const float* support_response;         // the same
  const int* n_support;                  // [runs, steps, members or 1, lists], filled slots, which come first
  const int* query;                      // [..., QS]
  const unsigned* bounds;                // the same: first | last << 16 of the slots of the item's tie group
  const float* weight;                   // the same
  const int* n_query;
  const float *size, *floor;  // [runs, steps]
  float *new_params, *new_first, *new_second;
  float* losses;  // [runs, steps, members] or null
  float* scratch;
  long long rows;
  unsigned has_runs;  // bit i: argument i above has an axis of runs
  int runs, steps, members, lists, own_lists;
};

constexpr int ROW_TILES = (QP + 15) / 16;
constexpr int LEAST_TILES = (ROW_TILES + WARPS - 1) / WARPS;  // of a warp, if all take part
constexpr int QUERY_WARPS = (ROW_TILES + WARPS - 2) / (WARPS - 1) == LEAST_TILES ? WARPS - 1 : WARPS;
constexpr int AT_ONCE = S == 32 && LEAST_TILES > 1 ? 2 : 1;  // tiles of a warp in registers
constexpr int PASSES = (LEAST_TILES + AT_ONCE - 1) / AT_ONCE;
constexpr int TOP = LAYERS - 1;
constexpr int H_TOP = HIDDEN[TOP];
constexpr int DEEP_WARP = WARPS - 1;
constexpr int DEEP_AT_ONCE = S == 32 && KP > 16 ? 2 : 1;
// The chain of the deep set's gradients begins beside the first layer's gradient, by sums that do not wait for it.
constexpr bool EARLY_SUMS = DEEP && PASSES == 1 && LAYERS > 1;
static_assert(PASSES == 1 || BUFFERS > LAYERS, "several passes need one more buffer");

using TopTile = Tile<H_TOP / 8>;

struct Block {
  Shared& s;
  const Args& a;
  float* h;  // BUFFERS of QP rows: activations of the scorer, then gradients
  Optimiser optimiser;
  int run, member, part, tid, lane, warp;  // part: of the lists of a step, which GROUP blocks share
  // Of the list at hand:
  int n_support, n_query, now;
  Step step;
  float *m, *v;  // the thread's moments

  DEVICE float* buffer(int layer) { return h + layer * QP * S; }
  // The gradient of a layer's output. It takes the place of activations that are no longer needed.
  DEVICE float* gradient_buffer(int layer) {
    const int other = (TOP - layer) & 1;
    return buffer(PASSES > 1 ? TOP + other : TOP - other);
  }
  DEVICE const float* small(int offset) { return s.w + MATRICES + offset; }
  DEVICE int first_row(int pass, int t) { return 16 * (warp + QUERY_WARPS * (pass * AT_ONCE + t)); }
  DEVICE bool has_rows(int pass) { return warp < QUERY_WARPS && first_row(pass, 0) < n_query; }
  // The block's lists of a step: part, part + GROUP, and so on.
  DEVICE int lists_of_step() { return (a.lists - part + GROUP - 1) / GROUP; }
  DEVICE long long list_index(int item) {
    const int count = lists_of_step(), step_number = item / count, list = part + (item - step_number * count) * GROUP;
    const int owners = a.own_lists ? a.members : 1, owner = a.own_lists ? member : 0;
    return (((long long)step_number * owners) + owner) * a.lists + list;
  }
  // The run's part of an argument with `size` elements a run.
  DEVICE long long of_run(int argument, long long size) { return a.has_runs >> argument & 1 ? run * size : 0; }

  // ---- the deep set, by one warp

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

  // Members with one deep set add up the gradients of its output. Each then takes the same step of a copy of its own.
  DEVICE void sum_over_members(int item, float* d) {
    float* exchange = a.scratch + HEADER + (long long)a.runs * a.members * GROUP * SCRATCH +
                      (long long)run * (2 * a.members * S + 32);
    unsigned* arrived = (unsigned*)(exchange + 2 * a.members * S);
    float* slots = exchange + (item & 1) * a.members * S;  // a member is at most one list ahead of the others
    for (int o = lane; o < S; o += 32) store_for_all(slots + member * S + o, d[o]);
    __threadfence();
    __syncwarp();
    if (lane == 0) {
      atomicAdd(arrived, 1u);
      while (load_of_all(arrived) < (unsigned)(item + 1) * a.members) pause();
    }
    __syncwarp();
    __threadfence();
    for (int o = lane; o < S; o += 32) {
      float sum = 0.0f;
      for (int i = 0; i < a.members; ++i) sum += load_of_all(slots + i * S + o);
      d[o] = sum;
    }
    __syncwarp();
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
      outer_gradient<CHAIN_IN[I], CHAIN_OUT[I]>(s.w + CHAIN_AT[I], s.vectors + I * S, d, m + CHAIN_OWNED_AT[I],
                                                v + CHAIN_OWNED_AT[I], CHAIN_OWNED_AT[I], step, optimiser);
      if constexpr (I < CHAIN - 1)
        for (int o = tid; o < CHAIN_OUT[I]; o += THREADS) s.gs[CHAIN_BIAS_AT[I] + o] = d[o];
      if constexpr (I == 0 && PHI_ROWS == 0)
        for (int o = tid; o < CHAIN_OUT[I]; o += THREADS) s.gs[RESPONSE_AT + o] = s.mean_response[0] * d[o];
    });
  }

  // ---- the scorer

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
        s.scores[row + g] = p + small(OUT_BIAS_AT)[0];
        s.scores[row + 8 + g] = q + small(OUT_BIAS_AT)[0];
      }
    }
  }

  // The part of the last kernel's gradient that is added to `sums`; t becomes the gradient of the last layer's output.
  DEVICE void scores_back(TopTile (&t)[AT_ONCE], float (&sums)[2 * (H_TOP / 8)], int pass) {
    const int g = lane >> 2, c = lane & 3;
#pragma unroll
    for (int i = 0; i < AT_ONCE; ++i) {
      const int row = first_row(pass, i);
      const float p = row < 16 * ROW_TILES ? s.score_gradient[row + g] : 0.0f;
      const float q = row < 16 * ROW_TILES ? s.score_gradient[row + 8 + g] : 0.0f;
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
    weight_gradient<IN, OUT, false>([&](int r, int f) { return in[at(r, f)]; }, gradient_buffer(l), (n_query + 7) >> 3,
                                    nullptr, s.w + w_at, m, v, index, step, optimiser, s.gs + HIDDEN_BIAS_AT[0] + l * S,
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
    constexpr int OWNED_BY_LAYER = Pieces<H_TOP, H_TOP>::OWNED;
#pragma unroll 1
    for (int l = TOP; l > 0; --l) {
      T next[AT_ONCE];
      const int w_at = HIDDEN_AT[TOP > 0] + (l - 1) * H_TOP * S;
      layer_back<H_TOP, H_TOP>(l, w_at, t, next);
      layer_weights<H_TOP, H_TOP>(l, w_at, m, v, (TOP - l) * OWNED_BY_LAYER);
      if constexpr (MOMENTS_IN_REGISTERS) {
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
    weight_gradient<D8, HIDDEN[0], false>([&](int r, int f) { return s.x[at_x(r, f)]; }, gradient_buffer(0),
                                          (n_query + 7) >> 3, nullptr, s.w + HIDDEN_AT[0], m + HIDDEN_OWNED_AT[0],
                                          v + HIDDEN_OWNED_AT[0], HIDDEN_OWNED_AT[0], step, optimiser,
                                          EARLY_SUMS ? nullptr : s.gs + HIDDEN_BIAS_AT[0], nullptr, warp, lane);
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

  // ---- the rows of a list

  // Starts to copy a list into the half `which` of the buffers. Slots that it has not are zero from the start.
  DEVICE void copy_list(int item, int which) {
    const long long lists = (long long)a.steps * (a.own_lists ? a.members : 1) * a.lists, index = list_index(item);
    if (tid == 0) copy_4_bytes(s.counts + 2 * which, a.n_query + of_run(10, lists) + index);
    for (int slot = tid; slot < QS; slot += THREADS) {
      const long long q = index * QS + slot, all = lists * QS;
      copy_4_bytes(s.row + which * QP + slot, a.query + of_run(7, all) + q);
      copy_4_bytes(s.bounds + which * QP + slot, a.bounds + of_run(8, all) + q);
      copy_4_bytes(s.weight + which * QP + slot, a.weight + of_run(9, all) + q);
    }
    if constexpr (DEEP) {
      if (tid == THREADS - 1) copy_4_bytes(s.counts + 2 * which + 1, a.n_support + of_run(6, lists) + index);
      for (int slot = tid; slot < KS; slot += THREADS) {
        const long long k = index * KS + slot, all = lists * KS;
        copy_4_bytes(s.support + which * KP + slot, a.support + of_run(4, all) + k);
        copy_4_bytes(s.ys + which * KP + slot, a.support_response + of_run(5, all) + k);
      }
    }
  }

  // Starts to copy the rows of a list that has arrived. Rows behind its end keep what they hold: finite numbers.
  DEVICE void copy_rows(int which) {
    const float* table = a.x + of_run(3, a.rows * XS);
    for (int i = tid; i < s.counts[2 * which] * (XS / 4); i += THREADS) {
      const int slot = i / (XS / 4), column = 4 * (i % (XS / 4));
      copy_16_bytes(s.x + at_x(slot, column), table + (long long)s.row[which * QP + slot] * XS + column);
    }
    if constexpr (DEEP)
      for (int i = tid; i < s.counts[2 * which + 1] * (XS / 4); i += THREADS) {
        const int slot = i / (XS / 4), column = 4 * (i % (XS / 4));
        copy_16_bytes(s.xs + which * KP * XS + at_x(slot, column),
                      table + (long long)s.support[which * KP + slot] * XS + column);
      }
  }

  // ---- parameters and moments

  // Calls f(index of the thread's weight, place in global memory) for all weights of matrices that the thread owns.
  template <class F>
  DEVICE void visit_owned(F f) {
    each<0, LAYERS>([&](auto layer) {
      constexpr int L = decltype(layer)::value, IN = L ? HIDDEN[L ? L - 1 : 0] : D8;
      visit_pieces<IN, HIDDEN[L]>(warp, lane,
                                  [&](int i, int r, int c) { f(HIDDEN_OWNED_AT[L] + i, HIDDEN_AT[L] + r * S + c); });
    });
    if constexpr (DEEP) {
      each<0, PHI_ROWS>([&](auto layer) {
        constexpr int I = decltype(layer)::value, IN = I ? PHI[I ? I - 1 : 0] : D8;
        visit_pieces<IN, PHI[I]>(warp, lane,
                                 [&](int i, int r, int c) { f(PHI_OWNED_AT[I] + i, PHI_AT[I] + r * S + c); });
      });
      each<0, CHAIN>([&](auto layer) {
        constexpr int I = decltype(layer)::value;
        visit_outer<CHAIN_IN[I], CHAIN_OUT[I]>(
            tid, [&](int i, int r, int c) { f(CHAIN_OWNED_AT[I] + i, CHAIN_AT[I] + r * S + c); });
      });
    }
  }

  // What the blocks of a member exchange, in the half `which`: gradients, then those of small parameters, then the
  // loss.
  DEVICE float* exchanged(int block, int which) {
    float* first = a.scratch + HEADER + ((long long)run * a.members + member) * GROUP * SCRATCH;
    return first + (long long)block * SCRATCH + GRADIENT_AT + which * EXCHANGED;
  }

  // Adds up the gradients of the blocks that share the lists of a member; each then takes the same step of its own
  // copy.
  DEVICE void step_of_group(int step_number, float& loss) {
    const int which = step_number & 1;  // a block is at most one step ahead of the others
    float* own = exchanged(part, which);
    for (int i = tid; i < SMALL; i += THREADS) own[OWNED * THREADS + i] = s.sum_gs[i];
    if (warp == DEEP_WARP && lane == 0) own[OWNED * THREADS + SMALL] = loss;
    unsigned* arrived = (unsigned*)(exchanged(0, 0) + 2 * EXCHANGED);
    __threadfence();
    __syncthreads();
    if (tid == 0) {
      atomicAdd(arrived, 1u);
      while (load_of_all(arrived) < (unsigned)(step_number + 1) * GROUP) pause();
      __threadfence();
    }
    __syncthreads();
    const auto sum_of = [&](int place) {
      float sum = 0.0f;
#pragma unroll 4
      for (int block = 0; block < GROUP; ++block) sum += load_of_all((const float*)exchanged(block, which) + place);
      return sum;
    };
    visit_owned([&](int i, int place) {
      float& weight = s.w[at(place / S, place % S)];
      step_of_weight(weight, sum_of(i * THREADS + tid), m[MOMENTS_IN_REGISTERS ? i : 0],
                     v[MOMENTS_IN_REGISTERS ? i : 0], i, step, optimiser);
    });
    for (int i = tid; i < SMALL; i += THREADS) s.sum_gs[i] = sum_of(OWNED * THREADS + i);
    loss = sum_of(OWNED * THREADS + SMALL);
    optimiser.gradient = exchanged(part, which ^ 1);
  }

  // Adds up the small parameters' gradients over the block's lists.
  DEVICE void add_small() {
    for (int i = tid; i < SMALL; i += THREADS) s.sum_gs[i] = step.first ? s.gs[i] : s.sum_gs[i] + s.gs[i];
  }

  DEVICE void small_steps() {
#pragma unroll
    for (int i = tid; i < SMALL; i += THREADS) {
      const float g = SEVERAL_LISTS ? s.sum_gs[i] : s.gs[i];
      float first = s.ms[i], second = s.vs[i];
      s.w[MATRICES + i] = adam(s.w[MATRICES + i], g, first, second, step);
      s.ms[i] = first, s.vs[i] = second;
    }
  }
};

extern "C" __global__ void __launch_bounds__(THREADS, BLOCKS) take_steps(Args a) {
  SHARED_MEMORY(memory);
  Shared& s = *(Shared*)memory;
  const int tid = threadIdx.x;
  int number = blockIdx.x;
  if constexpr (SHARED || GROUP > 1) {  // blocks that wait for each other are numbered in the order in which they begin
    if (tid == 0) s.number[0] = atomicAdd((int*)a.scratch, 1);
    __syncthreads();
    number = s.number[0];
    __syncthreads();
  }
  float m[MOMENTS_IN_REGISTERS ? OWNED : 1], v[MOMENTS_IN_REGISTERS ? OWNED : 1];
  // Warps of the blocks on a multiprocessor take turns in the role that has no rows of the query. In blocks that add up
  // their gradients, a thread owns the same weights.
  const int role = ((tid >> 5) + (GROUP > 1 ? 0 : blockIdx.x)) % WARPS;
  float* scratch = a.scratch + HEADER + (long long)number * SCRATCH;
  const int run_and_member = number / GROUP;
  Block b = {s,
             a,
             ACTIVATIONS_SHARED ? s.h : scratch,
             {},
             run_and_member / a.members,
             run_and_member % a.members,
             number % GROUP,
             tid,
             tid & 31,
             role};
  b.m = m, b.v = v;
  b.optimiser = {scratch + MOMENTS_AT, scratch + GRADIENT_AT, tid};

  // Everything that might be read before it is written is zero.
  for (int i = tid; i < (int)(sizeof(Shared) / 4); i += THREADS) ((float*)memory)[i] = 0.0f;
  if constexpr (!ACTIVATIONS_SHARED)
    for (int i = tid; i < BUFFERS * QP * S; i += THREADS) b.h[i] = 0.0f;
  __syncthreads();
  const long long parameters = (long long)a.members * PARAMETERS, own = (long long)b.member * PARAMETERS;
  const float* params = a.params + b.of_run(0, parameters) + own;
  for (int i = tid; i < MATRICES; i += THREADS) s.w[at(i / S, i % S)] = params[i];
  for (int i = tid; i < SMALL; i += THREADS) s.w[MATRICES + i] = params[MATRICES + i];
  const float* first = a.first ? a.first + b.of_run(1, parameters) + own : nullptr;
  const float* second = a.second ? a.second + b.of_run(2, parameters) + own : nullptr;
  if (a.first)
    for (int i = tid; i < SMALL; i += THREADS) s.ms[i] = first[MATRICES + i], s.vs[i] = second[MATRICES + i];
  if constexpr (MOMENTS_IN_REGISTERS) {
#pragma unroll
    for (int i = 0; i < OWNED; ++i) m[i] = v[i] = 0.0f;
  }
  b.visit_owned([&](int i, int place) {
    const float p = first ? first[place] : 0.0f, q = second ? second[place] : 0.0f;
    if constexpr (MOMENTS_IN_REGISTERS)
      m[i] = p, v[i] = q;
    else
      b.optimiser.moments[2 * i * THREADS + tid] = p, b.optimiser.moments[(2 * i + 1) * THREADS + tid] = q;
  });

  b.copy_list(0, 0);
  await_copies();
  __syncthreads();
  b.copy_rows(0);
  await_copies();
  __syncthreads();

  const float share = 1.0f / (float)a.lists;
  const long long step_sizes = b.of_run(11, a.steps), step_floors = b.of_run(12, a.steps);
  float loss = 0.0f;
  const int lists = b.lists_of_step(), items = a.steps * lists;
  int step_number = 0, list_number = 0;
#pragma unroll 1
  for (int item = 0; item < items; ++item) {
    b.now = item & 1;
    b.n_query = s.counts[2 * b.now], b.n_support = s.counts[2 * b.now + 1];
    b.step = {a.size[step_sizes + step_number], a.floor[step_floors + step_number], list_number == 0,
              list_number == lists - 1};
    if (item + 1 < items) b.copy_list(item + 1, b.now ^ 1);

    TopTile top[AT_ONCE];
    if (DEEP && b.warp == DEEP_WARP) b.deep_forward();
    Tile<HIDDEN[0] / 8> t[AT_ONCE];
    if (b.has_rows(0)) b.first_layer(t, 0);
    __syncthreads();  // the context is ready
#pragma unroll 1
    for (int pass = 0; pass < PASSES; ++pass) {
      if (!b.has_rows(pass)) break;
      if (pass) b.first_layer(t, pass);
      b.layers<EQUAL_WIDTHS != 0>(t, top, pass);
      b.scores(top, pass);
    }
    __syncthreads();  // the scores are ready
    if (b.warp == DEEP_WARP) {
      const float list_loss = listmle(s.scores, s.weight + b.now * QP, s.bounds + b.now * QP, s.score_gradient, s.scan,
                                      b.n_query, share, a.losses != nullptr, b.lane);
      loss = list_number == 0 ? share * list_loss : loss + share * list_loss;
      if (GROUP == 1 && a.losses && b.step.last && b.lane == 0)
        a.losses[((long long)b.run * a.steps + step_number) * a.members + b.member] = loss;
    }
    __syncthreads();  // and so are their gradients
    float sums[2 * (H_TOP / 8)];
#pragma unroll
    for (int i = 0; i < 2 * (H_TOP / 8); ++i) sums[i] = 0.0f;
#pragma unroll 1
    for (int pass = 0; pass < PASSES; ++pass) {
      if (!b.has_rows(pass)) break;
      if constexpr (PASSES > 1) {
#pragma unroll
        for (int i = 0; i < AT_ONCE; ++i) load(top[i], b.buffer(TOP), b.first_row(pass, i), QP, b.lane);
      }
      b.scores_back(top, sums, pass);
      if constexpr (PASSES > 1) {
#pragma unroll
        for (int i = 0; i < AT_ONCE; ++i) store(top[i], b.gradient_buffer(TOP), b.first_row(pass, i), QP, b.lane);
      }
    }
    if (b.warp < QUERY_WARPS) store_column_sums<H_TOP / 8>(sums, s.part + b.warp * S, b.lane);
    if (b.warp == DEEP_WARP) {
      float sum = 0.0f;
#pragma unroll
      for (int i = 0; i < ITEMS; ++i) sum += s.score_gradient[b.lane + 32 * i];
      sum = warp_sum(sum);
      if (b.lane == 0) s.gs[OUT_BIAS_AT] = sum;
    }
    b.all_layers_back<EQUAL_WIDTHS != 0>(top);
    const auto copy_next = [&] {  // over the rows of the query, which are not needed any longer
      if (item + 1 < items) b.copy_rows(b.now ^ 1);
    };
    if constexpr (DEEP) {
      if constexpr (!EARLY_SUMS) copy_next();
      if (b.warp == DEEP_WARP) b.deep_backward(item);
      __syncthreads();
      if constexpr (EARLY_SUMS) copy_next();
      b.deep_weights();
      __syncthreads();
    } else {
      copy_next();
    }
    if constexpr (SEVERAL_LISTS) b.add_small();
    if constexpr (GROUP > 1) {
      if (b.step.last) {
        __syncthreads();  // all gradients of the block are added up
        b.step_of_group(step_number, loss);
        if (a.losses && b.part == 0 && tid == 0)
          a.losses[((long long)b.run * a.steps + step_number) * a.members + b.member] = loss;
        __syncthreads();
      }
    }
    if (b.step.last) b.small_steps();
    await_copies();
    if (++list_number == lists) list_number = 0, ++step_number;
    __syncthreads();
  }

  if (b.part) return;
  float* new_params = a.new_params + (long long)b.run * parameters + own;
  for (int i = tid; i < MATRICES; i += THREADS) new_params[i] = s.w[at(i / S, i % S)];
  for (int i = tid; i < SMALL; i += THREADS) new_params[MATRICES + i] = s.w[MATRICES + i];
  if (a.new_first) {
    float *new_first = a.new_first + (long long)b.run * parameters + own,
          *new_second = a.new_second + (long long)b.run * parameters + own;
    for (int i = tid; i < PARAMETERS; i += THREADS) new_first[i] = new_second[i] = 0.0f;
    __syncthreads();
    for (int i = tid; i < SMALL; i += THREADS) new_first[MATRICES + i] = s.ms[i], new_second[MATRICES + i] = s.vs[i];
    b.visit_owned([&](int i, int place) {
      if constexpr (MOMENTS_IN_REGISTERS)
        new_first[place] = m[i], new_second[place] = v[i];
      else
        new_first[place] = b.optimiser.moments[2 * i * THREADS + tid],
        new_second[place] = b.optimiser.moments[(2 * i + 1) * THREADS + tid];
    });
  }
}
