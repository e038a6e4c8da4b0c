// Sub-words, as SentencePiece splits and joins them. A text is a string with a character for each
// byte of its UTF-8, so that places in it are the offsets of tokens.

const SPACE = "\u00e2\u0096\u0081"; // U+2581
const BYTES_PER_TOKEN = 64; // read for each; the average word of any language has fewer
const PENALTY = 10; // of a character that no piece of a unigram model has
const LEAF = 1 << 8; // flags of a unit of the trie
const LABEL = 0x800000ff;
const CAPITALS = /\p{Lu}\p{M}*\p{Lu}/u;
const WIDE = /^[\u3001-\u30ff\u3400-\u9fff\uf900-\ufaff\uff01-\uff9f]$/;
const START = /^[^\p{L}\p{N}]*\p{L}?/u; // up to the first letter

const lengthOf = (text) => new TextEncoder().encode(text).length;
const bytesOf = (text) => stringOf(new TextEncoder().encode(text));

function stringOf(bytes) {
  let text = "";
  for (const byte of bytes) text += String.fromCharCode(byte);
  return text;
}

// The start of a character in UTF-8 that is not whole, or a byte that starts none.
const PART = RegExp("\xe0[\xa0-\xbf]?|\xed[\x80-\x9f]?|[\xe1-\xef][\x80-\xbf]?|" +
  "\xf0(?:[\x90-\xbf][\x80-\xbf]?)?|\xf4(?:[\x80-\x8f][\x80-\xbf]?)?|" +
  "[\xf1-\xf3][\x80-\xbf]{0,2}|[^]", "y");

// The text of bytes, with U+FFFD for those that are not valid, and where each place in them is in
// it. A place between bytes that are replaced together moves behind them.
function decoded(data) {
  const bytes = Uint8Array.from(data, (x) => x.charCodeAt());
  const text = new TextDecoder("utf-8", { ignoreBOM: true }).decode(bytes), places = [];
  let size = 0;
  for (const character of text) {
    const length = lengthOf(character);
    PART.lastIndex = places.length;
    const isNew = character === "\ufffd" && !data.startsWith("\xef\xbf\xbd", places.length);
    const count = isNew ? PART.exec(data)[0].length : length;
    for (let i = 0; i < count; i++) places.push(size + (isNew && i ? length : i));
    size += length;
  }
  return { text, places: [...places, size] };
}

// The number of bytes of the character that begins with a byte.
const sizeAt = (text, at) => {
  const byte = text.charCodeAt(at);
  return byte < 0xc0 ? 1 : byte < 0xe0 ? 2 : byte < 0xf0 ? 3 : 4;
};

// A line all in capitals as an ordinary sentence: one with two words of two or more capitals, and
// without a lower-case letter.
function trueCased(text) {
  const words = text.split(/[\p{Z}\t\n\f\r]/u).filter((word) => CAPITALS.test(word));
  if (words.length < 2 || /[\p{Ll}\p{Lt}\0]/u.test(text)) return text;
  const start = START.exec(text)[0];
  const cased = start + text.slice(start.length).toLowerCase();
  const isEven = (upper, lower) => lengthOf(upper) === lengthOf(lower);
  const letters = text.match(/\p{Lu}/gu).every((x) => isEven(x, x.toLowerCase()));
  return letters && isEven(text, cased) ? cased : text;
}

export class Subwords {
  // `model` has SentencePiece's settings, `pieces` and `types`; `scores` and `charsmap` are arrays.
  constructor(model, scores, charsmap) {
    Object.assign(this, model);
    this.scores = scores;
    const { buffer, byteOffset, length } = charsmap;
    const size = length ? new DataView(buffer, byteOffset).getUint32(0, true) : 0;
    this.trie = new Int32Array(charsmap.slice(4, 4 + size).buffer);
    this.replacements = stringOf(charsmap.subarray(4 + size));
    const names = model.pieces.map(bytesOf);
    this.ids = new Map(names.map((name, id) => [name, id]).filter(([, id]) => this.types[id] === 1));
    this.longest = Math.max(...[...this.ids.keys()].map((piece) => piece.length));
    this.least = Math.min(...[...this.ids.values()].map((id) => scores[id]));
    this.bytes = []; // the ids of single bytes
    this.surfaces = names.map((name, id) => {
      if (this.types[id] !== 6) return name.replaceAll(SPACE, " ");
      const byte = parseInt(name.slice(3, 5), 16);
      this.bytes[byte] = id;
      return String.fromCharCode(byte);
    });
  }

  // At most `longest` ids of a text, the end symbol last, the offsets of its tokens, and whether
  // there are more.
  read(text, longest = Infinity) {
    const start = text.slice(0, BYTES_PER_TOKEN * longest); // a long line costs little
    const { normal, places } = this.normalize(bytesOf(this.true_case ? trueCased(start) : start));
    const ids = [], offsets = [];
    let from = 0, afterUnknown = false;
    for (const piece of this[this.kind](normal)) {
      const to = from + piece.length;
      const id = this.ids.get(piece);
      const offset = [places[from], places[to]];
      if (id === undefined && this.byte_fallback) {
        for (let i = 0; i < piece.length; i++) {
          ids.push(this.bytes[piece.charCodeAt(i)]);
          offsets.push(i < piece.length - 1 ? [offset[0], offset[0]] : offset);
        }
      } else if (id === undefined && afterUnknown) {
        offsets.at(-1)[1] = offset[1];
      } else {
        ids.push(id ?? this.unk);
        offsets.push(offset);
      }
      afterUnknown = id === undefined;
      from = to;
    }
    const isCut = ids.length >= longest || start.length < text.length;
    for (const all of [ids, offsets]) if (isCut) all.length = longest - 1;
    if (this.reverse) ids.reverse();
    return { isCut, ids: [...ids, this.eos], offsets: this.reverse ? offsets.reverse() : offsets };
  }

  // The text of ids up to the end symbol, with the offsets of its tokens.
  write(ids) {
    const end = ids.indexOf(this.eos);
    const pieces = (end < 0 ? ids : ids.slice(0, end)).map((id) => this.surfaces[id]);
    if (this.reverse) pieces.reverse();
    const isWide = (part) => WIDE.test(decoded(part).text);
    const plains = pieces.map((piece) => piece.replace(/^ /, ""));
    let data = "";
    const offsets = plains.map((plain, i) => {
      const before = plains[i - 1] ?? "", after = plain || (plains[i + 1] ?? "");
      const isTight = this.tight && (isWide(before.slice(-3)) || isWide(after.slice(0, 3)));
      if (data && plain !== pieces[i] && !isTight) data += " ";
      data += plain;
      return [data.length - plain.length, data.length];
    });
    const { text, places } = decoded(data);
    const moved = offsets.map((offset) => offset.map((place) => places[place]));
    return { text, offsets: this.reverse ? moved.reverse() : moved };
  }

  // The normal form of a text, and for each byte of it, and its end, the place in the text.
  normalize(text) {
    const space = this.escape_whitespaces ? SPACE : " ";
    const places = [];
    let normal = "", at = 0, afterSpace = this.remove_extra_whitespaces;
    const add = (part) => {
      normal += part;
      for (let i = 0; i < part.length; i++) places.push(at);
    };
    while (afterSpace && at < text.length) {
      const [part, size] = this.replaced(text, at);
      if (part !== " ") break;
      at += size;
    }
    if (at < text.length && this.add_dummy_prefix) add(space);
    while (at < text.length) {
      let [part, size] = this.replaced(text, at);
      if (afterSpace) part = part.replace(/^ +/, "");
      add(part.replaceAll(" ", space));
      if (part) afterSpace = this.remove_extra_whitespaces && part.endsWith(" ");
      at += size;
    }
    while (this.remove_extra_whitespaces && normal.endsWith(space)) {
      normal = normal.slice(0, -space.length);
      at = places[normal.length];
      places.length = normal.length;
    }
    return { normal, places: [...places, at] };
  }

  // What the longest rule at a place writes, or else the character there; and what it reads. The
  // rules are a trie of units: an offset, flags and a label.
  replaced(text, at) {
    const after = (node, unit) => node ^ ((unit >>> 10) << ((unit & 512) >>> 6));
    let result, node = this.trie.length ? after(0, this.trie[0]) : 0;
    for (let i = at; i < text.length && this.trie.length; i++) {
      const byte = text.charCodeAt(i);
      const unit = this.trie[(node ^= byte)];
      if ((unit & LABEL) !== byte) break;
      node = after(node, unit);
      if (unit & LEAF) result = [this.trie[node] & 0x7fffffff, i + 1 - at];
    }
    if (!result) return [text.substr(at, sizeAt(text, at)), sizeAt(text, at)];
    const end = this.replacements.indexOf("\0", result[0]);
    return [this.replacements.slice(result[0], end), result[1]];
  }

  // Characters.
  char(text) {
    const symbols = [];
    for (let at = 0; at < text.length; at += sizeAt(text, at)) {
      symbols.push(text.substr(at, sizeAt(text, at)));
    }
    return symbols;
  }

  // What stands between spaces, each with the space before it.
  space(text) {
    return text ? text.split(RegExp(`(?=${SPACE})`)) : [];
  }

  // The pieces of byte pair encoding: the pair with the largest score is joined, the first of equals.
  bpe(text) {
    return this.space(text).flatMap((word) => this.joined(this.char(word)));
  }

  joined(symbols) {
    const scores = [];
    const rate = (i) => {
      if (i < 0 || i + 1 >= symbols.length) return;
      scores[i] = this.scores[this.ids.get(symbols[i] + symbols[i + 1])] ?? -Infinity;
    };
    symbols.forEach((_, i) => rate(i));
    for (;;) {
      let best = -1, score = -Infinity;
      for (let i = 0; i < scores.length; i++) if (scores[i] > score) score = scores[(best = i)];
      if (best < 0) return symbols;
      symbols.splice(best, 2, symbols[best] + symbols[best + 1]);
      scores.splice(best, 1);
      rate(best - 1);
      rate(best);
    }
  }

  // The most probable pieces of a unigram model, with scores in float32.
  unigram(text) {
    const best = [{ score: 0 }]; // of the text up to each place
    const offer = (from, to, score) => {
      score += best[from].score;
      if (!best[to] || score > best[to].score) best[to] = { score: Math.fround(score), from };
    };
    for (let from = 0; from < text.length; from += sizeAt(text, from)) {
      const single = from + sizeAt(text, from);
      for (let to = single; to <= text.length && to - from <= this.longest; to += sizeAt(text, to)) {
        const id = this.ids.get(text.slice(from, to));
        if (id !== undefined) offer(from, to, this.scores[id]);
      }
      if (!this.ids.has(text.slice(from, single))) {
        offer(from, single, Math.fround(this.least - PENALTY));
      }
    }
    const pieces = [];
    for (let to = text.length; to > 0; to = best[to].from) pieces.push(text.slice(best[to].from, to));
    return pieces.reverse();
  }
}
