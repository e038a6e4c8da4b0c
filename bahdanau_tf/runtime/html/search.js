// Beam search in steps, so that a page stays responsive; what a translation was made of, and the
// tree of its search.
//
//     score(y) = log p(y | x) / ((5 + |y|) / 6)^α + β Σ_j log(min(Σ_i α_ij, 1))

const SPARE = 3; // continuations beyond those of the beam that a tree shows
const BEST = 5; // words that are shown of a step

// The `count` best continuations of hypotheses by a word that `isOpen`, best first.
function continued(hypotheses, logits, words, isOpen, count) {
  const best = [];
  let least = -Infinity; // the last of the best
  hypotheses.forEach((parent, k) => {
    const row = logits[k];
    for (let j = 0; j < row.length; j++) {
      const logProb = parent.logProb + row[j];
      if (!(logProb > least)) continue;
      const id = words ? words[j] : j;
      if (!isOpen(id)) continue;
      let place = best.length;
      while (place && best[place - 1].logProb < logProb) place--;
      best.splice(place, 0, { parent, k, id, logProb });
      best.length = Math.min(best.length, count);
      if (best.length === count) least = best[count - 1].logProb;
    }
  });
  return best;
}

// The n best translations of ids, which end with the end symbol; a beam of 1 is greedy. They begin
// with the ids `prefix`, `attention` has the rows of α to use instead of the model's, by step, and
// `levels` gets the continuations of each step. `pause` is awaited before each step.
export async function searched(model, source, decoding, { pad, unk, eos }, pause) {
  const { beam_size: size, n_best: wanted, alpha, beta, attention = {} } = decoding;
  const prefix = (decoding.prefix ?? []).slice(0, decoding.max_length);
  const limit = Math.floor(decoding.max_length_ratio * source.length + 1e-6);
  const least = Math.max(limit, decoding.least_limit, prefix.length + 1);
  const longest = Math.min(least, decoding.max_length);
  const shortest = Math.min(Math.ceil(decoding.min_length_ratio * source.length - 1e-6), longest);
  const penalty = (length) => ((5 + length) / 6) ** alpha;
  const forbidden = decoding.unknown === "forbid" ? [pad, unk] : [pad];
  const words = decoding.shortlist ? model.shortlist(source, prefix) : undefined;
  const byScore = (a, b) => b.score - a.score;
  const memory = await model.encode(source, pause);
  const { state, term } = memory;
  let live = [{ logProb: 0, id: 0, state, term, covered: new Float32Array(source.length) }];
  let done = [], ended = 0;
  for (let time = 1; live.length && time <= longest; time++) {
    await pause();
    const { features, after, contexts, alphas, odds } = model.step(memory, live, attention[time - 1]);
    const barred = time < shortest ? [...forbidden, eos] : forbidden, word = prefix[time - 1];
    const isOpen = word ? (id) => id === word : (id) => !barred.includes(id);
    const room = decoding.shrink ? size - ended : size;
    const logits = model.logits(features, words, odds);
    const every = continued(live, logits, words, isOpen, decoding.levels ? size + SPARE : size);
    const next = every.slice(0, room);
    decoding.levels?.push(every);
    for (const hypothesis of next) {
      const { parent, k, logProb } = hypothesis;
      const score = logProb / penalty(time);
      Object.assign(hypothesis, { state: after[k], term: contexts[k], weights: alphas[k], score });
      if (!beta) continue;
      hypothesis.covered = parent.covered.map((x, t) => x + alphas[k][t]);
      for (const x of hypothesis.covered) {
        hypothesis.score += beta * Math.log(Math.min(Math.max(x, 1e-6), 1));
      }
    }
    const finished = next.filter(({ id }) => id === eos);
    for (const hypothesis of finished) hypothesis.finished = true;
    done = [...done, ...finished].sort(byScore).slice(0, wanted);
    ended += finished.length;
    live = next.filter(({ id }) => id !== eos);
    const worst = done[wanted - 1]?.score ?? -Infinity;
    const hopeful = live.filter(({ logProb }) => logProb / penalty(longest) > worst);
    if (!decoding.shrink || !hopeful.length) live = hopeful;
    for (const hypothesis of live) hypothesis.lives = true;
  }
  return [...done, ...live.sort(byScore)].slice(0, wanted);
}

// For each of the ids of a translation α (in the order of `places`), the most probable words and
// the means of the gates, as `bahdanau_tf.trace`.
export async function stepsOf({ model, target }, source, ids, { attention, places }, pause) {
  const memory = await model.encode(source, pause), steps = [];
  let last = { id: 0, state: memory.state, term: memory.term };
  for (const [time, id] of ids.entries()) {
    await pause();
    const gates = {};
    const { features, after, contexts, alphas, odds } =
      model.step(memory, [last], attention[time], gates);
    const logits = model.logits(features, undefined, odds);
    const best = continued([{ logProb: 0 }], logits, undefined, () => true, BEST);
    const named = (word) => ({
      id: word, token: target.pieces[word], probability: Math.exp(logits[0][word]),
    });
    const weights = places.map((place) => alphas[0][place]);
    steps.push({ ...named(id), candidates: best.map((x) => named(x.id)), weights, gates });
    last = { id, state: after[0], term: contexts[0], parent: last, weights: alphas[0] };
  }
  return steps;
}

// The continuations of each step, those of the beam first, and why search did not continue them,
// as `bahdanau_tf.beam_tree`.
export function treeOf({ levels, beam_size: size, shrink, alpha }, best, { pieces, eos }) {
  const chosen = new Set();
  for (let x = best; x.parent; x = x.parent) chosen.add(x);
  let width = size;
  return levels.map((level, time) => {
    const room = width, after = levels[time + 1]?.slice(0, size).map(({ parent }) => parent);
    return level.map((x, place) => {
      const { id, logProb } = x, isEnd = id === eos, isBest = chosen.has(x);
      if (shrink && isEnd && place < room) width -= 1;
      const cut = isBest ? "" : place >= size ? "not among the best"
        : place >= room ? "the beam got narrower" : isEnd ? "finished, others score higher"
        : !x.lives ? "could not win any more" : !after ? "at the length limit"
        : after.includes(x) ? "" : "all continuations were cut";
      const score = isEnd ? x.score ?? logProb / ((6 + time) / 6) ** alpha : undefined;
      const parent = time ? levels[time - 1].indexOf(x.parent) : -1;
      return { token: pieces[id], parent, logProb, score, cut, isBest };
    });
  });
}
