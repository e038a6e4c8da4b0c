/** Options of search, as the flags of `bahdanau-tf translate`. */
export interface Options {
  beam_size?: number;
  n_best?: number;
  alpha?: number;
  beta?: number;
  max_length?: number;
  max_length_ratio?: number;
  min_length_ratio?: number;
  unknown?: "keep" | "forbid";
  shortlist?: boolean;
  shrink?: boolean;
}

/** Where a token begins and ends, in bytes of a text's UTF-8. */
export type Offsets = [number, number];

export interface Hypothesis {
  text: string;
  score: number;
  /** log p(text | sentence) */
  logProb: number;
  finished: boolean;
  offsets: Offsets[];
  /** α: a row for each token and the end symbol, with a column for each of the sentence's. */
  weights: number[][];
}

export interface Translation {
  /** The n best, best first. */
  translations: Hypothesis[];
  /** Of the sentence's tokens. */
  offsets: Offsets[];
  /** Whether the best translation is not finished, or only the sentence's start was read. */
  truncated: boolean;
  /** Reasons why the best translation may be wrong. */
  doubts: { kind: string; detail: string }[];
  /** How likely the best translation is good, in [0, 1], of a model trained with a dev text. */
  confidence?: number;
}

export interface Translator {
  /**
   * Translates a sentence; options that are missing are those of the export. `pause` is awaited
   * before each step: it may wait, so that a page reacts, or throw, which ends the search.
   */
  translate(
    sentence: string, options?: Options, pause?: () => void | Promise<void>,
  ): Promise<Translation>;
}

/** The translator in model.bin, of which `model` is the address or the bytes. */
export function load(model: string | URL | ArrayBuffer | Uint8Array): Promise<Translator>;

/** The sentences of a line of text, which they are when joined. */
export function sentencesOf(line: string): string[];
