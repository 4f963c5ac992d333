// Products on tensor cores: tiles of 16 rows in the registers of a warp, weights in shared memory.
//
// mma.m16n8k8.tf32 has factors of 11 bits. With SPLIT, each factor is the sum of two such numbers, and three products
// give nearly float32. The C fragment of a layer is the A fragment of the next one if the columns of each eight are
// taken in the order 0, 2, 4, 6, 1, 3, 5, 7, so a tile passes all layers in registers.
//
// Rows of weights, S floats, are swizzled, column ^ 8 * phase(row). Activations have rows 2 q and 2 q + 1 interleaved,
// column by column, and swizzled, column ^ phase_of_pair(q). No access below has bank conflicts.

constexpr unsigned ALL_LANES = 0xffffffffu;

DEVICE int phase(int row) { return (row & 3) ^ ((row >> 2) & 1); }

DEVICE int at(int row, int col) { return row * S + (col ^ (8 * phase(row))); }

DEVICE int phase_of_pair(int pair) { return 8 * (pair & 1) | 4 * (pair >> 1 & 1); }

// Where row 2 `pair` of activations has a column; the next float is that of row 2 `pair` + 1.
DEVICE int at_pair(int pair, int col) { return 2 * (pair * S + (col ^ phase_of_pair(pair))); }

// Of eight rows of configurations, those with even numbers come first.
DEVICE int place_of_row(int row) { return (row & ~7) | (row >> 1 & 3) | (row & 1) << 2; }

// Rows of 16 floats share the banks two by two.
DEVICE int at_x(int row, int col) {
  return XS == 16 ? row * 16 + (col ^ (8 * ((row >> 1) & 1))) : row * XS + (col ^ (8 * phase(row)));
}

// x is high + low; the hardware cuts the lowest 13 bits of a factor. `high` is rounded: `low` then has either sign, and
// what the hardware cuts of it is below the error of a float32 product. Were `high` cut, products would be too small.
//
// NaN stays NaN: 0x7fffffff, the hardware's, would round to -0. Then `low` is NaN; without `low`, it is not rounded.
DEVICE void split(float x, unsigned& high, unsigned& low) {
  if constexpr (SPLIT) {
    high = (bits(x) + 0x1000u) & 0xffffe000u;
    low = bits(x - number(high));
  } else {
    high = (unsigned)(min((int)bits(x), 0x7fffefff) + 0x1000);
    low = 0;
  }
}

struct FragmentA {
  unsigned high[4], low[4];
};

// 16 rows by 8 N columns: C fragments of lane 4 g + c, columns 8 n + 2 c and 8 n + 2 c + 1. Rows g and g + 8 of the
// fragments are rows 2 g and 2 g + 1 of a list.
template <int N>
struct Tile {
  float v[N][4];

  DEVICE void clear() {
#pragma unroll
    for (int n = 0; n < N; ++n)
#pragma unroll
      for (int i = 0; i < 4; ++i) v[n][i] = 0.0f;
  }
};

// acc += in @ W, or in @ W^T if TRANSPOSED, for M tiles: in has 8 K columns, acc 8 N.
template <int M, int K, int N, bool TRANSPOSED>
DEVICE void product(Tile<N> (&acc)[M], const Tile<K> (&in)[M], const float* w, int lane) {
  const int g = lane >> 2, c = lane & 3;
  const int turn = TRANSPOSED ? phase(g) : phase(2 * c);
#pragma unroll
  for (int k = 0; k < K; ++k) {
    FragmentA a[M];
#pragma unroll
    for (int m = 0; m < M; ++m) {
      split(in[m].v[k][0], a[m].high[0], a[m].low[0]);
      split(in[m].v[k][2], a[m].high[1], a[m].low[1]);
      split(in[m].v[k][1], a[m].high[2], a[m].low[2]);
      split(in[m].v[k][3], a[m].high[3], a[m].low[3]);
    }
    constexpr int CHUNK = N < 4 ? N : 4;  // bounds the registers of B fragments
#pragma unroll
    for (int first = 0; first < N; first += CHUNK) {
      unsigned high0[CHUNK], low0[CHUNK], high1[CHUNK], low1[CHUNK];
#pragma unroll
      for (int i = 0; i < CHUNK; ++i) {
        const int n = first + i < N ? first + i : N - 1;
        float b0, b1;
        if constexpr (TRANSPOSED) {
          const float2 b = *(const float2*)(w + n * 8 * S + g * S + 8 * (k ^ turn) + 2 * c);
          b0 = b.x, b1 = b.y;
        } else {
          b0 = w[(8 * k + 2 * c) * S + 8 * (n ^ turn) + g];
          b1 = w[(8 * k + 2 * c + 1) * S + 8 * (n ^ turn ^ 1) + g];
        }
        split(b0, high0[i], low0[i]);
        split(b1, high1[i], low1[i]);
      }
      // Pass by pass, so that no product waits for the one before it.
      if constexpr (SPLIT) {
#pragma unroll
        for (int i = 0; i < CHUNK; ++i)
#pragma unroll
          for (int m = 0; m < M; ++m)
            if (first + i < N) mma(acc[m].v[first + i], a[m].low, high0[i], high1[i]);
#pragma unroll
        for (int i = 0; i < CHUNK; ++i)
#pragma unroll
          for (int m = 0; m < M; ++m)
            if (first + i < N) mma(acc[m].v[first + i], a[m].high, low0[i], low1[i]);
      }
#pragma unroll
      for (int i = 0; i < CHUNK; ++i)
#pragma unroll
        for (int m = 0; m < M; ++m)
          if (first + i < N) mma(acc[m].v[first + i], a[m].high, high0[i], high1[i]);
    }
  }
}

// Stores the rows [first, first + 16) that are below `rows`, a multiple of 8.
template <int N>
DEVICE void store(const Tile<N>& t, float* out, int first, int rows, int lane) {
  const int g = lane >> 2, c = lane & 3, turn = phase_of_pair(g);
  float* p = out + (first + 2 * g) * S + 2 * ((2 * c) ^ (turn & 4));
  if (first + 2 * g < rows) {
#pragma unroll
    for (int n = 0; n < N; ++n)
      *(float4*)(p + 16 * (n ^ (turn >> 3))) = make_float4(t.v[n][0], t.v[n][2], t.v[n][1], t.v[n][3]);
  }
}

// Loads rows as `store` stores them; rows from `rows` on are zero.
template <int N>
DEVICE void load(Tile<N>& t, const float* in, int first, int rows, int lane) {
  const int g = lane >> 2, c = lane & 3, turn = phase_of_pair(g);
  const float* p = in + (first + 2 * g) * S + 2 * ((2 * c) ^ (turn & 4));
  t.clear();
  if (first + 2 * g < rows) {
#pragma unroll
    for (int n = 0; n < N; ++n) {
      const float4 a = *(const float4*)(p + 16 * (n ^ (turn >> 3)));
      t.v[n][0] = a.x, t.v[n][2] = a.y, t.v[n][1] = a.z, t.v[n][3] = a.w;
    }
  }
}

// Sets to zero what belongs to units that were off: activations, as `store` stored them, that are not positive.
template <int N>
DEVICE void mask(Tile<N>& t, const float* activations, int first, int rows, int lane) {
  Tile<N> a;
  load(a, activations, first, rows, lane);
#pragma unroll
  for (int n = 0; n < N; ++n)
#pragma unroll
    for (int i = 0; i < 4; ++i) t.v[n][i] = a.v[n][i] > 0.0f ? t.v[n][i] : 0.0f;
}

// Loads rows of configurations, 8 K columns of them.
template <int K>
DEVICE void load_x(Tile<K>& t, const float* x, int first, int rows, int lane) {
  const int g = lane >> 2, c = lane & 3;
  const int place = first + (g & 3) + 2 * (g & 4), a = place < rows ? place : g & 3, b = a + 4;
#pragma unroll
  for (int k = 0; k < K; ++k) {
    const float2 u = *(const float2*)(x + at_x(a, 8 * k + 2 * c)), v = *(const float2*)(x + at_x(b, 8 * k + 2 * c));
    t.v[k][0] = u.x, t.v[k][1] = u.y, t.v[k][2] = v.x, t.v[k][3] = v.y;
  }
}

// t = ReLU(t + bias); NaN stays.
template <int N>
DEVICE void activate(Tile<N>& t, const float* bias, int lane) {
#pragma unroll
  for (int n = 0; n < N; ++n) {
    const float2 b = *(const float2*)(bias + 8 * n + 2 * (lane & 3));
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const float v = t.v[n][i] + (i & 1 ? b.y : b.x);
      t.v[n][i] = v > 0.0f ? v : (v == v ? 0.0f : v);
    }
  }
}

// Sums of 8 values over the 8 lanes that differ in bits `bit`, 2 bit, 4 bit; lane i of them returns the sum of value i.
DEVICE float sum8(float (&v)[8], int lane, int bit) {
  const int q = lane / bit & 7;
#pragma unroll
  for (int h = 4; h >= 1; h >>= 1)
#pragma unroll
    for (int j = 0; j < h; ++j) {
      const float send = q & h ? v[j] : v[j + h], keep = q & h ? v[j + h] : v[j];
      v[j] = keep + __shfl_xor_sync(ALL_LANES, send, h * bit);
    }
  return v[0];
}

// Sums of a lane's columns over all rows of a tile go to out[8 N]: `column(n, i)` has those of columns 8 n + 2 c + i.
template <int N>
DEVICE void store_column_sums(const float (&sums)[2 * N], float* out, int lane) {
  const int g = lane >> 2, c = lane & 3;
#pragma unroll
  for (int first = 0; first < N; first += 4) {
    float v[8];
#pragma unroll
    for (int i = 0; i < 8; ++i) v[i] = first + i / 2 < N ? sums[(2 * first + i) % (2 * N)] : 0.0f;
    const float sum = sum8(v, lane, 4);
    const int column = 8 * (first + (g >> 1)) + 2 * c + (g & 1);
    if (column < 8 * N) out[column] = sum;
  }
}
