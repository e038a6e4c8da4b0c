// Products of vectors and matrices whose weights are bytes: in WebAssembly, or else in scripts.

const STACK = 65536; // bytes of products.c, at the beginning of the memory
const AT_ONCE = 5; // vectors; as in products.c
const FARTHEST = 128; // source that is attended to in WebAssembly

// The bytes that are written in base64.
export function fromBase64(base64) {
  const text = atob(base64), bytes = new Uint8Array(text.length);
  for (let i = 0; i < bytes.length; i++) bytes[i] = text.charCodeAt(i);
  return bytes;
}

// A model's arrays in one memory, with room for products, and the functions of products.c; without
// WebAssembly, the arrays alone.
export async function placed(bytes, matrices) {
  const [outputs, inputs] = [0, 1].map((i) =>
    Math.max(...Object.values(matrices).map((shape) => shape[i])) + 16); // products.c fills them up
  const sizes = {
    arrays: bytes.length, x: 4 * AT_ONCE * inputs, levels: 2 * AT_ONCE * inputs,
    y: 4 * AT_ONCE * outputs, rows: 4 * outputs,
    keys: 4 * FARTHEST * matrices.keys[0], terms: 4 * FARTHEST * matrices.terms[0],
    alphas: 4 * AT_ONCE * (FARTHEST + 4), contexts: 4 * AT_ONCE * (matrices.terms[0] + 4),
  };
  const places = {};
  let end = STACK;
  for (const [name, size] of Object.entries(sizes)) {
    places[name] = end;
    end += Math.ceil(size / 16) * 16;
  }
  try {
    const memory = new WebAssembly.Memory({ initial: Math.ceil(end / 65536) });
    const imports = { env: { memory, log: Math.log } };
    const { instance } = await WebAssembly.instantiate(fromBase64(WASM), imports);
    new Uint8Array(memory.buffer).set(bytes, places.arrays);
    const values = new Float32Array(memory.buffer);
    const compiled = { ...instance.exports, ...places, values };
    return { buffer: memory.buffer, start: places.arrays, compiled };
  } catch { // no WebAssembly, none with SIMD, or a policy forbids it
    return { buffer: bytes.slice().buffer, start: 0 };
  }
}

// Vectors one after another at a place of the memory, written and read.
const put = (values, place, vectors) =>
  vectors.forEach((x, k) => values.set(x, place / 4 + k * x.length));
const taken = (values, place, count, size) => Array.from({ length: count }, (_, k) =>
  values.slice(place / 4 + k * size, place / 4 + (k + 1) * size));

// W x + b for vectors x, with all rows of W or some; with `wholes`, log(softmax(W x + b) / whole).
export function product(vectors, matrix, rows, wholes) {
  const { weights, scales, bias, inputs, outputs, compiled } = matrix;
  if (!compiled || !scales) {
    const products = scripted(vectors, matrix, rows);
    return wholes ? products.map((x, k) => logSoftmax(x, wholes[k])) : products;
  }
  const { values, x, y } = compiled, size = rows?.length ?? outputs, products = [];
  if (rows) new Int32Array(values.buffer, compiled.rows, size).set(rows);
  for (let first = 0; first < vectors.length; first += AT_ONCE) {
    const some = vectors.slice(first, first + AT_ONCE);
    put(values, x, some);
    compiled.product(
      weights.byteOffset, scales.byteOffset, bias.byteOffset, inputs, rows ? compiled.rows : 0,
      size, x, some.length, compiled.levels, y);
    for (let k = some.length - 1; k >= 0; k--) { // log_softmax writes beyond the end
      const place = y + 4 * k * size;
      if (wholes) compiled.log_softmax(place, size, wholes[first + k]);
      [products[first + k]] = taken(values, place, 1, size);
    }
  }
  return products;
}

// α of each query and the terms of its context; undefined without WebAssembly or for long sources.
export function attended(queries, { keys, terms }, energy, compiled) {
  if (!compiled || keys.length > FARTHEST) return undefined;
  const { values, y } = compiled, [units, width] = [keys[0].length, terms[0].length];
  const alphas = [], contexts = [];
  if (compiled.held !== keys) { // the memory has those of another sentence
    put(values, compiled.keys, keys);
    put(values, compiled.terms, terms);
    compiled.held = keys;
  }
  for (let first = 0; first < queries.length; first += AT_ONCE) {
    const some = queries.slice(first, first + AT_ONCE);
    put(values, y, some);
    compiled.attend(
      y, some.length, compiled.keys, energy.byteOffset, units, compiled.terms, width, keys.length,
      compiled.alphas, compiled.contexts);
    alphas.push(...taken(values, compiled.alphas, some.length, keys.length));
    contexts.push(...taken(values, compiled.contexts, some.length, width));
  }
  return [alphas, contexts];
}

// `product` without WebAssembly; four rows of W at once.
function scripted(vectors, { weights, scales, bias, inputs, outputs }, rows) {
  const size = rows?.length ?? outputs;
  const products = vectors.map(() => new Float32Array(size));
  for (let j = 0; j < size; j += 4) {
    const row = (i) => (rows ? rows[Math.min(j + i, size - 1)] : Math.min(j + i, size - 1));
    const r0 = row(0), r1 = row(1), r2 = row(2), r3 = row(3); // at the end some are the same
    const w0 = r0 * inputs, w1 = r1 * inputs, w2 = r2 * inputs, w3 = r3 * inputs;
    const [s0, s1, s2, s3] = [r0, r1, r2, r3].map((r) => scales?.[r] ?? 1);
    for (let k = 0; k < vectors.length; k++) {
      const x = vectors[k], y = products[k];
      let y0 = 0, y1 = 0, y2 = 0, y3 = 0;
      for (let i = 0; i < inputs; i++) {
        const value = x[i];
        y0 += value * weights[w0 + i];
        y1 += value * weights[w1 + i];
        y2 += value * weights[w2 + i];
        y3 += value * weights[w3 + i];
      }
      y[j] = bias[r0] + s0 * y0;
      y[j + 1] = bias[r1] + s1 * y1; // beyond the end nothing is written
      y[j + 2] = bias[r2] + s2 * y2;
      y[j + 3] = bias[r3] + s3 * y3;
    }
  }
  return products;
}

function logSoftmax(x, whole) {
  let largest = -Infinity, total = 0;
  for (let j = 0; j < x.length; j++) if (x[j] > largest) largest = x[j];
  for (let j = 0; j < x.length; j++) total += Math.exp(x[j] - largest);
  const shift = largest + Math.log(total * whole);
  return x.map((value) => value - shift);
}
