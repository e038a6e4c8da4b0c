// Products of vectors and matrices whose weights are bytes, and a softmax: what takes a page's
// time. `make wasm` compiles it to products.wasm; products.js has the memory and calls these.

#include <stdint.h>
#include <wasm_simd128.h>

#define EXPORT(name) __attribute__((export_name(#name))) name
#define INLINE static inline __attribute__((always_inline))

enum { AT_ONCE = 5, LANES = 16 }; // vectors a pass over the weights; weights a load

__attribute__((import_module("env"), import_name("log"))) double natural_log(double);

INLINE float larger(float a, float b) { return a > b ? a : b; }

INLINE int padded(int size) { return (size + LANES - 1) / LANES * LANES; }

INLINE float sum(v128_t x) {
  return wasm_f32x4_extract_lane(x, 0) + wasm_f32x4_extract_lane(x, 1) +
         wasm_f32x4_extract_lane(x, 2) + wasm_f32x4_extract_lane(x, 3);
}

// x = scale * q with 16-bit q, followed by zeros; returns the scale. No sum of four of 4,096
// products with weights in [-63, 63] exceeds 32 bits; vectors of more values get fewer levels.
INLINE float quantize(const float *x, int size, int16_t *q) {
  float largest = 0;
  for (int i = 0; i < size; i++) largest = larger(largest, __builtin_fabsf(x[i]));
  float levels = size > 4096 ? 32767.0f * 4096 / size : 32767;
  float factor = largest > 0 ? levels / largest : 0;
  for (int i = 0; i < size; i++) q[i] = (int16_t)__builtin_rintf(x[i] * factor);
  for (int i = size; i < padded(size); i++) q[i] = 0;
  return largest / levels;
}

// W x for `count` vectors x and all rows of W or some. What follows a row in memory is multiplied
// by the zeros that follow x.
INLINE void multiply(const int8_t *weights, const float *scales, const float *bias, int inputs,
                     const int32_t *rows, int outputs, const int16_t *q, const float *steps,
                     int count, float *y) {
  int stride = padded(inputs);
  for (int j = 0; j < outputs; j++) {
    int row = rows ? rows[j] : j;
    const int8_t *w = weights + row * inputs;
    v128_t sums[AT_ONCE];
    for (int k = 0; k < count; k++) sums[k] = wasm_i32x4_splat(0);
    for (int i = 0; i < stride; i += LANES) {
      v128_t bytes = wasm_v128_load(w + i);
      v128_t low = wasm_i16x8_extend_low_i8x16(bytes), high = wasm_i16x8_extend_high_i8x16(bytes);
      for (int k = 0; k < count; k++) {
        const int16_t *x = q + k * stride + i;
        v128_t first = wasm_i32x4_dot_i16x8(low, wasm_v128_load(x));
        v128_t second = wasm_i32x4_dot_i16x8(high, wasm_v128_load(x + 8));
        sums[k] = wasm_i32x4_add(sums[k], wasm_i32x4_add(first, second));
      }
    }
    for (int k = 0; k < count; k++) {
      float total = sum(wasm_f32x4_convert_i32x4(sums[k]));
      y[k * outputs + j] = total * (scales[row] * steps[k]) + bias[row];
    }
  }
}

// W x + b for at most five vectors x, one after another; q is room for them as 16-bit numbers.
void EXPORT(product)(const int8_t *weights, const float *scales, const float *bias, int inputs,
                     const int32_t *rows, int outputs, const float *x, int count, int16_t *q,
                     float *y) {
  float steps[AT_ONCE];
  for (int k = 0; k < count; k++)
    steps[k] = quantize(x + k * inputs, inputs, q + k * padded(inputs));
#define CASE(n) \
  case n: multiply(weights, scales, bias, inputs, rows, outputs, q, steps, n, y); break
  switch (count) { CASE(1); CASE(2); CASE(3); CASE(4); CASE(5); }
}

// e^x, but for x < -87 almost 0, by the exponent of 2^n and a polynomial for the rest.
INLINE v128_t exponential(v128_t x) {
  static const float terms[] = {1.5403530e-4f, 1.3333558e-3f, 9.6181291e-3f, 5.5504109e-2f,
                                2.4022651e-1f, 6.9314718e-1f, 1.0f};
  v128_t power = wasm_f32x4_mul(x, wasm_f32x4_splat(1.44269504f));
  power = wasm_f32x4_max(power, wasm_f32x4_splat(-126));
  v128_t whole = wasm_f32x4_nearest(power), rest = wasm_f32x4_sub(power, whole);
  v128_t value = wasm_f32x4_splat(terms[0]);
  for (int i = 1; i < 7; i++)
    value = wasm_f32x4_add(wasm_f32x4_mul(value, rest), wasm_f32x4_splat(terms[i]));
  v128_t exponent = wasm_i32x4_shl(wasm_i32x4_trunc_sat_f32x4(whole), 23);
  return wasm_i32x4_add(value, exponent);
}

// log(softmax(x) / whole) in place; x has room for three values more.
void EXPORT(log_softmax)(float *x, int size, float whole) {
  for (int i = size; i % 4; i++) x[i] = -__builtin_inff();
  v128_t most = wasm_v128_load(x), total = wasm_f32x4_splat(0);
  for (int i = 4; i < size; i += 4) most = wasm_f32x4_pmax(most, wasm_v128_load(x + i));
  float largest = wasm_f32x4_extract_lane(most, 0);
  for (int i = 0; i < 4; i++) largest = larger(largest, ((float *)&most)[i]);
  v128_t shift = wasm_f32x4_splat(largest);
  for (int i = 0; i < size; i += 4)
    total = wasm_f32x4_add(total, exponential(wasm_f32x4_sub(wasm_v128_load(x + i), shift)));
  shift = wasm_f32x4_splat(largest + (float)natural_log(sum(total) * whole));
  for (int i = 0; i < size; i += 4)
    wasm_v128_store(x + i, wasm_f32x4_sub(wasm_v128_load(x + i), shift));
}

INLINE v128_t hyperbolic_tangent(v128_t x) {
  v128_t most = wasm_f32x4_splat(9), one = wasm_f32x4_splat(1);
  x = wasm_f32x4_pmin(most, wasm_f32x4_pmax(wasm_f32x4_neg(most), x)); // no NaN from beyond a row
  v128_t power = wasm_f32x4_add(exponential(wasm_f32x4_add(x, x)), one);
  return wasm_f32x4_sub(one, wasm_f32x4_div(wasm_f32x4_splat(2), power));
}

// For each query q, α = softmax(v . tanh(q + key)) over the keys, and the sum of α times their
// terms. v, `energy`, is followed by zeros; a row is written beyond its end, before the next one.
void EXPORT(attend)(const float *queries, int count, const float *keys, const float *energy,
                    int units, const float *terms, int width, int length, float *alphas,
                    float *contexts) {
  for (int k = 0; k < count; k++, queries += units, alphas += length, contexts += width) {
    for (int t = 0; t < length; t++) {
      v128_t total = wasm_f32x4_splat(0);
      for (int i = 0; i < units; i += 4) {
        v128_t key = wasm_v128_load(keys + t * units + i), query = wasm_v128_load(queries + i);
        v128_t value = hyperbolic_tangent(wasm_f32x4_add(query, key));
        total = wasm_f32x4_add(total, wasm_f32x4_mul(value, wasm_v128_load(energy + i)));
      }
      alphas[t] = sum(total);
    }
    log_softmax(alphas, length, 1);
    for (int t = 0; t < length; t += 4)
      wasm_v128_store(alphas + t, exponential(wasm_v128_load(alphas + t)));
    for (int i = 0; i < width; i += 4) {
      v128_t total = wasm_f32x4_splat(0);
      for (int t = 0; t < length; t++) {
        v128_t share = wasm_f32x4_splat(alphas[t]), term = wasm_v128_load(terms + t * width + i);
        total = wasm_f32x4_add(total, wasm_f32x4_mul(share, term));
      }
      wasm_v128_store(contexts + i, total);
    }
  }
}
