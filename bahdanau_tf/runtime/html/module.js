// What translator.mjs exports; translator.d.mts has the types.

import { unpacked } from "./model.js";
import { sentencesOf } from "./sentences.js";
import { Translator } from "./translator.js";

async function load(model) {
  if (typeof model !== "string" && !(model instanceof URL)) {
    return new Translator(await unpacked(model));
  }
  const response = await fetch(model);
  if (!response.ok) throw new Error(`load: ${model} has status ${response.status}, wanted 200`);
  return load(await response.arrayBuffer());
}

export { load, sentencesOf };
