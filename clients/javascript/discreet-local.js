/**
 * discreet-local: answers become private reports on the person's own device.
 *
 * One file, no dependencies. Runs in browsers (<script type="module">), in workers and in Node 18 or later.
 *
 *     import { Task, encode } from "./discreet-local.js";
 *     const task = Task.read(await (await fetch("/task.json")).text());
 *     await fetch("/reports", { method: "POST", body: encode(task, "often") });
 *
 * From the same random bytes it gives the same report, byte for byte, as every other client of docs/local-wire.md.
 * Reports are made with whole numbers only (Number within 2^53, BigInt beyond); the one place where an answer that is a
 * real number becomes a whole one is `scaled`, before any noise. All randomness is crypto.getRandomValues. A report has
 * one length for a task, whatever the answer is, and an answer that the task does not have becomes a random one first.
 * A task whose integers cost more than the epsilon it declares is refused.
 */

export const FORMAT = "local/1";
const VERSION = 1;
const DIGEST_BYTES = 16;
const SECRET_BYTES = 32;
const WORD = 1n << 64n;
const HALF = 2 ** 32;
const ALWAYS = 65536; // a 16-bit threshold that is always met
const PLANES = 16;
const MAX_EPSILON = 32n;
const PRIMES = [
  2, 3, 5, 7, 11, 13, 17, 19, 23, 29, 31, 37, 41, 43, 47, 53, 59, 61, 67, 71, 73, 79, 83, 89, 97, 101, 103, 107,
];
const MAX_POINTS = 2 ** 26;

/** A task that is wrong, costs more than it says, or is used in the wrong way. Never contains an answer. */
export class TaskError extends Error {
  constructor(message) {
    super(message);
    this.name = "TaskError";
  }
}

/** Nothing more may be told: the answers that a task may remember are used up. */
export class Exhausted extends TaskError {
  constructor() {
    super("No report was made: the answers that this task may remember are used up.");
    this.name = "Exhausted";
  }
}

function want(holds, message) {
  if (!holds) throw new TaskError(message);
}

// ---------------------------------------------------------------- bytes and SHA-256

const utf8 = new TextEncoder();

/** UTF-8 of a text; half a surrogate pair, which has none, counts as a question mark. */
function bytesOf(text) {
  return utf8.encode(text.replace(/\p{Cs}/gu, "?"));
}

function join(...parts) {
  const whole = new Uint8Array(parts.reduce((sum, part) => sum + part.length, 0));
  let at = 0;
  for (const part of parts) {
    whole.set(part, at);
    at += part.length;
  }
  return whole;
}

/** A whole number below 2^53 as big-endian bytes. */
function bigEndian(number, width) {
  const out = new Uint8Array(width);
  let rest = BigInt(number);
  for (let i = width - 1; i >= 0; i--) {
    out[i] = Number(rest & 255n);
    rest >>= 8n;
  }
  return out;
}

export function toHex(bytes) {
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
}

export function fromHex(text) {
  want(typeof text === "string" && /^([0-9a-f]{2})*$/.test(text), "hexadecimal digits are wanted");
  return Uint8Array.from(text.match(/../g) ?? [], (pair) => parseInt(pair, 16));
}

const BASE64 = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

function toBase64(bytes) {
  let out = "";
  for (let i = 0; i < bytes.length; i += 3) {
    const [a, b, c] = [bytes[i], bytes[i + 1] ?? 0, bytes[i + 2] ?? 0];
    out += BASE64[a >> 2] + BASE64[((a & 3) << 4) | (b >> 4)];
    out += i + 1 < bytes.length ? BASE64[((b & 15) << 2) | (c >> 6)] : "=";
    out += i + 2 < bytes.length ? BASE64[c & 63] : "=";
  }
  return out;
}

// The first 32 bits of the fractional parts of the cube roots of the first 64 primes, and of the square roots of 8.
const ROUND = Uint32Array.from(
  (
    "428a2f98 71374491 b5c0fbcf e9b5dba5 3956c25b 59f111f1 923f82a4 ab1c5ed5 " +
    "d807aa98 12835b01 243185be 550c7dc3 72be5d74 80deb1fe 9bdc06a7 c19bf174 " +
    "e49b69c1 efbe4786 0fc19dc6 240ca1cc 2de92c6f 4a7484aa 5cb0a9dc 76f988da " +
    "983e5152 a831c66d b00327c8 bf597fc7 c6e00bf3 d5a79147 06ca6351 14292967 " +
    "27b70a85 2e1b2138 4d2c6dfc 53380d13 650a7354 766a0abb 81c2c92e 92722c85 " +
    "a2bfe8a1 a81a664b c24b8b70 c76c51a3 d192e819 d6990624 f40e3585 106aa070 " +
    "19a4c116 1e376c08 2748774c 34b0bcb5 391c0cb3 4ed8aa4a 5b9cca4f 682e6ff3 " +
    "748f82ee 78a5636f 84c87814 8cc70208 90befffa a4506ceb bef9a3f7 c67178f2"
  ).split(" "),
  (word) => parseInt(word, 16),
);
const START = [
  0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a, 0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19,
];

/** SHA-256, here because crypto.subtle answers later only, and not at all on plain http pages. */
export function sha256(message) {
  const length = message.length;
  const padded = new Uint8Array(((length + 72) >> 6) << 6);
  padded.set(message);
  padded[length] = 0x80;
  padded.set(bigEndian(length * 8, 8), padded.length - 8);
  const view = new DataView(padded.buffer);
  const state = Uint32Array.from(START);
  const w = new Uint32Array(64);
  const rotate = (x, by) => (x >>> by) | (x << (32 - by));
  for (let block = 0; block < padded.length; block += 64) {
    for (let i = 0; i < 16; i++) w[i] = view.getUint32(block + 4 * i);
    for (let i = 16; i < 64; i++) {
      const [x, y] = [w[i - 15], w[i - 2]];
      const s0 = rotate(x, 7) ^ rotate(x, 18) ^ (x >>> 3);
      const s1 = rotate(y, 17) ^ rotate(y, 19) ^ (y >>> 10);
      w[i] = w[i - 16] + s0 + w[i - 7] + s1;
    }
    let [a, b, c, d, e, f, g, h] = state;
    for (let i = 0; i < 64; i++) {
      const s1 = rotate(e, 6) ^ rotate(e, 11) ^ rotate(e, 25);
      const one = (h + s1 + ((e & f) ^ (~e & g)) + ROUND[i] + w[i]) | 0;
      const s0 = rotate(a, 2) ^ rotate(a, 13) ^ rotate(a, 22);
      const two = (s0 + ((a & b) ^ (a & c) ^ (b & c))) | 0;
      [h, g, f, e, d, c, b, a] = [g, f, e, (d + one) | 0, c, b, a, (one + two) | 0];
    }
    [a, b, c, d, e, f, g, h].forEach((value, i) => (state[i] += value));
  }
  const out = new Uint8Array(32);
  state.forEach((value, i) => new DataView(out.buffer).setUint32(4 * i, value));
  return out;
}

/** HMAC-SHA-256 for keys of at most 64 bytes. */
export function hmac(key, message) {
  const inner = new Uint8Array(64).fill(0x36);
  const outer = new Uint8Array(64).fill(0x5c);
  key.forEach((byte, i) => {
    inner[i] ^= byte;
    outer[i] ^= byte;
  });
  return sha256(join(outer, sha256(join(inner, message))));
}

// ---------------------------------------------------------------- randomness

/** Fresh bytes from the system's generator. There is no other source, and no fallback. */
function systemBytes(count) {
  want(typeof globalThis.crypto?.getRandomValues === "function", "crypto.getRandomValues is missing here");
  const out = new Uint8Array(count);
  for (let at = 0; at < count; at += 65536) globalThis.crypto.getRandomValues(out.subarray(at, at + 65536));
  return out;
}

/** Random bytes, consumed front to back. */
class Reader {
  constructor(bytes) {
    this.bytes = bytes;
    this.at = 0;
  }

  take(count) {
    this.at += count;
    return this.bytes.subarray(this.at - count, this.at);
  }

  /** The next 8 bytes, big-endian, as a BigInt. */
  word() {
    let value = 0n;
    for (const byte of this.take(8)) value = (value << 8n) | BigInt(byte);
    return value;
  }

  below(threshold) {
    return this.word() < threshold;
  }

  pick(choices) {
    return scale(this.word(), choices);
  }
}

/** One of `choices` numbers from a word: floor(word * choices / 2^64). */
function scale(word, choices) {
  return Number((word * BigInt(choices)) >> 64n);
}

/** The other number that index j stands for: one that steps over `own`. */
function without(j, own) {
  return j < own ? j : j + 1;
}

// ---------------------------------------------------------------- payloads

function symbolBytes(symbols) {
  return symbols <= 2 ** 8 ? 1 : symbols <= 2 ** 16 ? 2 : symbols <= 2 ** 24 ? 3 : 4;
}

function rowBytes(bits) {
  return (bits + 7) >> 3;
}

function getBit(bits, i) {
  return (bits[i >> 3] >> (7 - (i & 7))) & 1;
}

function setBit(bits, i, on) {
  if (on) bits[i >> 3] |= 0x80 >> (i & 7);
}

/** Bits that are one where a 16-bit random number, spread over 16 planes, is below threshold(i). */
function noisyBits(count, random, threshold) {
  const width = rowBytes(count);
  const out = new Uint8Array(width);
  for (let i = 0; i < count; i++) {
    let u = 0;
    for (let plane = 0; plane < PLANES; plane++) {
      u = (u << 1) | ((random[plane * width + (i >> 3)] >> (7 - (i & 7))) & 1);
    }
    setBit(out, i, u < threshold(i));
  }
  return out;
}

// ---------------------------------------------------------------- exact losses: ratios of BigInts

function ratio(top, bottom) {
  return { top: BigInt(top), bottom: BigInt(bottom) };
}

function atMost(one, two) {
  return one.top * two.bottom <= two.top * one.bottom;
}

function largest(...ratios) {
  return ratios.reduce((best, next) => (atMost(next, best) ? best : next));
}

/** How many of the 2^64 words pick the least and the most likely of m numbers. */
function pickLeast(m) {
  return WORD / BigInt(m);
}

function pickMost(m) {
  return (WORD + BigInt(m) - 1n) / BigInt(m);
}

/** Randomized response over m + 1 answers with 64-bit thresholds. */
function responseLoss(keep, m) {
  const [least, most] = [pickLeast(m), pickMost(m)];
  return largest(
    ratio(keep * WORD, (WORD - keep) * least),
    ratio((WORD - keep) * most, keep * WORD),
    ratio(most, least),
  );
}

/** One of `near` numbers with inside/2^64, one of `far` others otherwise. */
function windowLoss(inside, near, far) {
  return largest(
    ratio(inside * pickMost(near), (WORD - inside) * pickLeast(far)),
    ratio((WORD - inside) * pickMost(far), inside * pickLeast(near)),
    ratio(pickMost(near), pickLeast(near)),
    ratio(pickMost(far), pickLeast(far)),
  );
}

function bitLoss(one, other) {
  return ratio(one * (ALWAYS - other), other * (ALWAYS - one));
}

/** At or below e^(top/bottom), as a ratio over 2^320: a sum of positive terms, each rounded down. */
function expBelow(top, bottom) {
  const unit = 1n << 320n;
  let [sum, term] = [unit, unit];
  for (let k = 1n; term > 0n; k++) {
    term = (term * top) / (bottom * k);
    sum += term;
  }
  return { top: sum, bottom: unit };
}

/** The largest ratio that a declared epsilon allows: "1", "1/2" or "ln(3)". */
function allowed(text) {
  const match = typeof text === "string" ? /^(ln\()?(\d{1,400})(?:\/(\d{1,400}))?(\))?$/.exec(text) : null;
  want(match !== null && !match[1] === !match[4], "epsilon must be written like 1, 1/2 or ln(3)");
  const [top, bottom] = [BigInt(match[2]), BigInt(match[3] ?? 1)];
  want(bottom > 0n, "epsilon must be a number");
  const shown = bottom === 1n ? `${top}` : `${top}/${bottom}`;
  want(shown === text.replace(/^ln\(|\)$/g, "") && divisor(top, bottom) === 1n, "epsilon must be in lowest terms");
  const most = expBelow(MAX_EPSILON, 1n);
  const logarithm = match[1] !== undefined;
  want(logarithm ? top > bottom : top > 0n, "epsilon must be above 0");
  want(logarithm ? atMost({ top, bottom }, most) : top <= MAX_EPSILON * bottom, "epsilon must be at most 32");
  return logarithm ? { top, bottom } : expBelow(top, bottom);
}

function divisor(a, b) {
  return b === 0n ? a : divisor(b, a % b);
}

// ---------------------------------------------------------------- points of a projective space

function power(field, exponent) {
  let value = 1;
  for (let i = 0; i < exponent; i++) value *= field;
  return value;
}

/** (q^t - 1)/(q - 1): how many points there are. */
function points(field, dimension) {
  return (power(field, dimension) - 1) / (field - 1);
}

/** The last `places` digits of a number in base `field`, most significant first. */
function digitsOf(number, field, places) {
  const out = new Array(places);
  for (let i = places - 1; i >= 0; i--) {
    out[i] = number % field;
    number = (number - out[i]) / field;
  }
  return out;
}

/** The coordinates of a point by its number: a leading one, then the rest in base q. */
function pointOf(number, field, dimension) {
  let length = 0;
  while (length + 1 < dimension && points(field, length + 1) <= number) length++;
  return digitsOf(power(field, length) + number - points(field, length), field, dimension);
}

/** The number of a point whose first non-zero digit is one. */
function numberOf(point, field) {
  const lead = point.findIndex((digit) => digit !== 0);
  const rest = point.slice(lead + 1).reduce((value, digit) => value * field + digit, 0);
  return points(field, point.length - 1 - lead) + rest;
}

function inverse(value, field) {
  let candidate = 1;
  while ((candidate * value) % field !== 1) candidate++;
  return candidate;
}

// ---------------------------------------------------------------- the protocols

/*
 * Each has: names (its parameters; a trailing "!" marks a 64-bit threshold), check(p, d), loss(p, d) (the exact ratio
 * e^ε), random(p, d) and payload(p, d) (lengths in bytes), and report(p, d, answer, reader).
 */

const wholeBetween = (value, least, most) => Number.isSafeInteger(value) && least <= value && value <= most;

const krr = {
  names: ["keep!"],
  check: () => {},
  loss: (p, d) => responseLoss(p.keep, d - 1),
  random: () => 16,
  payload: (p, d) => symbolBytes(d),
  report: (p, d, v, reader) => bigEndian(response(p.keep, d, v, reader), symbolBytes(d)),
};

function response(keep, d, own, reader) {
  const kept = reader.below(keep);
  const other = without(reader.pick(d - 1), own);
  return kept ? own : other;
}

const unary = {
  names: ["one", "other"],
  check: (p, d) => {
    want(0 < p.other && p.other < p.one && p.one < ALWAYS, "parameters must satisfy 0 < other < one < 65536");
    want(d <= 2 ** 23, "the domain is too large for one bit a value");
  },
  loss: (p) => bitLoss(p.one, p.other),
  random: (p, d) => PLANES * rowBytes(d),
  payload: (p, d) => rowBytes(d),
  report: (p, d, v, reader) =>
    noisyBits(d, reader.take(PLANES * rowBytes(d)), (i) => (i === v ? p.one : p.other)),
};

const hadamard = {
  names: ["order", "keep!"],
  check: (p, d) =>
    want(
      wholeBetween(p.order, d + 1, HALF) && (BigInt(p.order) & BigInt(p.order - 1)) === 0n,
      "order must be a power of two above the domain size",
    ),
  loss: (p) => largest(ratio(p.keep, WORD - p.keep), ratio(WORD - p.keep, p.keep)),
  random: () => 16,
  payload: (p) => symbolBytes(p.order),
  report: (p, d, v, reader) => {
    const row = BigInt(v + 1);
    const even = reader.below(p.keep);
    let column = (reader.word() * BigInt(p.order)) >> 64n;
    let odd = false;
    for (let ones = column & row; ones > 0n; ones &= ones - 1n) odd = !odd;
    if (odd === even) column ^= row & -row;
    return bigEndian(column, symbolBytes(p.order));
  },
};

const subset = {
  names: ["size", "keep!"],
  check: (p, d) => {
    want(d <= 4096, "the domain is too large for sets");
    want(wholeBetween(p.size, 1, d - 1), "size must be at least 1 and below the domain size");
  },
  loss: (p, d) => {
    const [w, n] = [BigInt(p.size), BigInt(d)];
    const own = ratio(p.keep * (n - w), (WORD - p.keep) * w);
    const most = largest(own, ratio(own.bottom, own.top));
    return ratio(most.top * (WORD + 6n * n * n), most.bottom * WORD);
  },
  random: (p, d) => 8 * d,
  payload: (p, d) => rowBytes(d),
  report: (p, d, v, reader) => {
    const out = new Uint8Array(rowBytes(d));
    const kept = reader.below(p.keep);
    setBit(out, v, kept);
    let need = BigInt(kept ? p.size - 1 : p.size);
    let left = BigInt(d - 1);
    for (let i = 0; i < d; i++) {
      if (i === v) continue;
      const hit = reader.word() < (need * WORD) / left;
      setBit(out, i, hit);
      if (hit) need -= 1n;
      left -= 1n;
    }
    return out;
  },
};

const projective = {
  names: ["field", "dimension", "keep!"],
  check: (p, d) => {
    want(PRIMES.includes(p.field), "field must be a prime up to 107");
    const fits = wholeBetween(p.dimension, 2, 26) && power(p.field, p.dimension) <= MAX_POINTS * p.field;
    want(fits, "dimension makes too many points");
    want(d <= points(p.field, p.dimension), "dimension has fewer points than the domain");
  },
  loss: (p) => windowLoss(p.keep, points(p.field, p.dimension - 1), power(p.field, p.dimension - 1)),
  random: () => 16,
  payload: (p) => symbolBytes(points(p.field, p.dimension)),
  report: ({ field: q, dimension: t, keep }, d, v, reader) => {
    const own = pointOf(v, q, t);
    const lead = own.findIndex((digit) => digit !== 0);
    const inside = reader.below(keep);
    const word = reader.word();
    const free = inside
      ? pointOf(scale(word, points(q, t - 1)), q, t - 1)
      : digitsOf(scale(word, power(q, t - 1)), q, t - 1);
    const full = [...free.slice(0, lead), 0, ...free.slice(lead)];
    const product = full.reduce((sum, digit, i) => sum + digit * own[i], 0);
    full[lead] = ((inside ? 0 : 1) + q - (product % q)) % q;
    const factor = inverse(full.find((digit) => digit !== 0), q);
    const symbol = numberOf(full.map((digit) => (digit * factor) % q), q);
    return bigEndian(symbol, symbolBytes(points(q, t)));
  },
};

const hash = {
  names: ["buckets", "keep!"],
  check: (p) => want(wholeBetween(p.buckets, 2, ALWAYS), "buckets must be from 2 to 65536"),
  loss: (p) => responseLoss(p.keep, p.buckets - 1),
  random: (p, d, keys) => 8 * (keys + 1) + 16,
  payload: (p, d, keys) => 8 * (keys + 1) + symbolBytes(p.buckets),
  report: (p, d, keys, reader) => {
    const seed = reader.take(8 * (keys.length + 1));
    const words = new Reader(seed);
    const mixed = keys.reduce((sum, key) => sum + words.word() * BigInt(key), 0n) + words.word();
    const bucket = Number((((mixed % WORD) >> 32n) * BigInt(p.buckets)) >> 32n);
    return join(seed, bigEndian(response(p.keep, p.buckets, bucket, reader), symbolBytes(p.buckets)));
  },
};

const sign = {
  names: ["low!", "high!"],
  check: (p) => want(p.low < p.high && p.low + p.high === WORD, "low and high must add up to 2^64, low below high"),
  loss: (p) => ratio(p.high, p.low),
  random: () => 8,
  payload: () => 1,
  report: (p, d, x, reader) => Uint8Array.of(signOf(p, x, reader)),
};

function signOf(p, x, reader) {
  return reader.below(p.low + (((p.high - p.low) * BigInt(x)) >> 32n)) ? 1 : 0;
}

const window_ = {
  names: ["cells", "width", "inside!"],
  check: (p) =>
    want(
      wholeBetween(p.cells, 2, ALWAYS) && wholeBetween(p.width, 1, p.cells - 1),
      "parameters must satisfy 0 < width < cells ≤ 65536",
    ),
  loss: (p) => windowLoss(p.inside, p.width, p.cells - p.width),
  random: () => 24,
  payload: (p) => symbolBytes(p.cells),
  report: (p, d, x, reader) => bigEndian(cellOf(p, x, reader), symbolBytes(p.cells)),
};

/** A start that is rounded at random, then a cell within `width` of it or one of the others. */
function cellOf(p, x, reader) {
  const scaled = BigInt(x) * BigInt(p.cells - p.width);
  const up = reader.word() >> 32n < scaled % BigInt(HALF);
  return around(Number(scaled >> 32n) + (up ? 1 : 0), p.width, p.cells - p.width, p.inside, reader);
}

function around(start, width, spare, inside, reader) {
  const within = reader.below(inside);
  const word = reader.word();
  if (within) return start + scale(word, width);
  const beside = scale(word, spare);
  return beside < start ? beside : beside + width;
}

const hybrid = {
  names: ["piecewise!", ...window_.names, ...sign.names],
  check: (p) => {
    window_.check(p);
    sign.check(p);
  },
  loss: (p) => largest(window_.loss(p), sign.loss(p)),
  random: () => 32,
  payload: (p) => symbolBytes(p.cells + 2),
  report: (p, d, x, reader) => {
    const piecewise = reader.below(p.piecewise);
    const symbol = piecewise ? cellOf(p, x, reader) : p.cells + signOf(p, x, reader);
    return bigEndian(symbol, symbolBytes(p.cells + 2));
  },
};

const wave = {
  names: ["buckets", "width", "inside!"],
  check: (p) => {
    want(wholeBetween(p.buckets, 2, 2 ** 15), "buckets must be from 2 to 32768");
    want(wholeBetween(p.width, 1, 2 ** 15), "width must be from 1 to 32768");
  },
  loss: (p) => windowLoss(p.inside, p.width, p.buckets - 1),
  random: () => 16,
  payload: (p) => symbolBytes(p.buckets + p.width - 1),
  report: (p, d, v, reader) =>
    bigEndian(around(v, p.width, p.buckets - 1, p.inside, reader), symbolBytes(p.buckets + p.width - 1)),
};

const rappor = {
  names: ["bits", "hashes", "cohorts", "permanent_one", "permanent_other", "instant_one", "instant_other"],
  check: (p) => {
    want(wholeBetween(p.bits, 8, ALWAYS), "bits must be from 8 to 65536");
    want(wholeBetween(p.hashes, 1, 16), "hashes must be from 1 to 16");
    want(wholeBetween(p.cohorts, 1, ALWAYS), "cohorts must be from 1 to 65536");
    for (const [one, other] of [
      [p.permanent_one, p.permanent_other],
      [p.instant_one, p.instant_other],
    ]) {
      want(0 < other && other < one && one < ALWAYS, "thresholds must satisfy 0 < other < one < 65536");
    }
  },
  loss: (p) => {
    const bit = bitLoss(p.permanent_one, p.permanent_other);
    return ratio(bit.top ** BigInt(p.hashes), bit.bottom ** BigInt(p.hashes));
  },
  random: (p) => PLANES * rowBytes(p.bits),
  payload: (p) => symbolBytes(p.cohorts) + rowBytes(p.bits),
  permanent: (p, text, cohort, stream) => {
    const places = new Set();
    for (let j = 0; j < p.hashes; j++) {
      const mark = sha256(join(bigEndian(cohort, 4), Uint8Array.of(j), bytesOf(text)));
      places.add(Number((BigInt(new DataView(mark.buffer).getUint32(0)) * BigInt(p.bits)) >> 32n));
    }
    return noisyBits(p.bits, stream, (i) => (places.has(i) ? p.permanent_one : p.permanent_other));
  },
  instant: (p, permanent, cohort, random) =>
    join(
      bigEndian(cohort, symbolBytes(p.cohorts)),
      noisyBits(p.bits, random, (i) => (getBit(permanent, i) ? p.instant_one : p.instant_other)),
    ),
};

const LISTED = { krr, unary, hadamard, subset, projective };
const NUMBERS = { sign, window: window_, hybrid };
const PROTOCOLS = { ...LISTED, ...NUMBERS, hash, wave, rappor };

// ---------------------------------------------------------------- tasks

const KEYS = ["discreet", "domain", "epoch", "epsilon", "name", "parameters", "protocol"];
const isObject = (value) => typeof value === "object" && value !== null && !Array.isArray(value);
const sameKeys = (object, names) => JSON.stringify(Object.keys(object).sort()) === JSON.stringify([...names].sort());
const printable = (text) => typeof text === "string" && text !== "" && !/[\p{C}\p{Z}]/u.test(text.replaceAll(" ", ""));

/** JSON with sorted keys and no spaces. */
function canonical(value) {
  if (Array.isArray(value)) return `[${value.map(canonical).join(",")}]`;
  if (!isObject(value)) return JSON.stringify(value);
  const fields = Object.keys(value).sort();
  return `{${fields.map((key) => `${JSON.stringify(key)}:${canonical(value[key])}`).join(",")}}`;
}

function readDomain(given) {
  want(isObject(given), "domain must be an object");
  if (sameKeys(given, ["size"])) {
    want(wholeBetween(given.size, 2, HALF - 1), "domain.size must be a whole number from 2");
  } else if (sameKeys(given, ["labels"])) {
    const labels = given.labels;
    want(Array.isArray(labels) && labels.every(printable), "domain.labels must be texts that can be printed");
    want(labels.length >= 2 && labels.length <= 2 ** 20, "domain.labels must be at least two");
    want(new Set(labels).size === labels.length, "domain.labels must be all different");
  } else if (sameKeys(given, ["open"])) {
    want(given.open === true, "domain.open must be true");
  } else {
    want(sameKeys(given, ["low", "high"]), "domain must be given in exactly one form");
    const number = /^-?[0-9]{1,300}(\.[0-9]{1,300})?([eE][+-]?[0-9]{1,3})?$/; // as every client reads them
    const ends = [given.low, given.high];
    want(ends.every((end) => typeof end === "string" && number.test(end)), "domain.low and high must be numbers");
    const [low, high] = ends.map(Number);
    want(low < high && Number.isFinite(high - low), "domain.low must be below domain.high");
  }
  Object.freeze(given.labels ?? given);
  return Object.freeze(given);
}

function readParameters(names, given) {
  const keys = names.map((name) => name.replace("!", ""));
  want(isObject(given) && sameKeys(given, keys), "the parameters are not those of the protocol");
  const read = {};
  for (const name of names) {
    const key = name.replace("!", "");
    const value = given[key];
    const digits = typeof value === "string" ? /^\d{1,20}$/.test(value) : Number.isSafeInteger(value);
    want(digits, `parameters.${key} must be a whole number`);
    const whole = BigInt(value);
    if (name.endsWith("!")) {
      want(0n < whole && whole < WORD, `parameters.${key} must be strictly between 0 and 2^64`);
      read[key] = whole;
    } else {
      want(1n <= whole && whole <= 2n ** 32n, `parameters.${key} must be from 1`);
      read[key] = Number(whole);
    }
  }
  return read;
}

/** What is asked, by which protocol, with which integers. Made with Task.read; never changed. */
export class Task {
  /** A task from its JSON text. Everything is checked, the loss too; what is unknown is refused. */
  static read(text) {
    let given;
    try {
      given = JSON.parse(text);
    } catch {
      throw new TaskError("the task is not JSON");
    }
    // After parsing, 1.0 and 1 are the same number here. Other clients tell them apart, so the text decides.
    const beside = String(text).replace(/"(?:[^"\\]|\\.)*"/g, "");
    want(!/[0-9][.eE]/.test(beside), "numbers of a task must be whole and written plainly");
    return new Task(given);
  }

  /** Use Task.read. */
  constructor(given) {
    want(isObject(given), "the task must be an object");
    const { longitudinal, ...rest } = given;
    want(sameKeys(rest, KEYS), "the task must have exactly the keys of the format");
    want(given.discreet === FORMAT, `the task is not of the format ${FORMAT}`);
    want(printable(given.name) && [...given.name].length <= 200, "name must be a text of 1 to 200 printable characters");
    want(wholeBetween(given.epoch, 0, 2 ** 52), "epoch must be a whole number from 0");
    want(typeof given.protocol === "string" && Object.hasOwn(PROTOCOLS, given.protocol), "the protocol is not a known one");
    this.name = given.name;
    this.epoch = given.epoch;
    this.epsilon = given.epsilon;
    this.protocol = given.protocol;
    this.domain = readDomain(given.domain);
    this.values = null;
    this.epochs = null;
    if ("longitudinal" in given) {
      const kind = ["values", "epochs"].find((key) => isObject(longitudinal) && sameKeys(longitudinal, [key]));
      const promised = kind !== undefined && wholeBetween(longitudinal[kind], 1, 2 ** 20);
      want(promised, "longitudinal must be {values: v} or {epochs: E}");
      this[kind] = longitudinal[kind];
      want(this.epochs === null || this.epoch < this.epochs, "epoch must be below the number of epochs");
    }
    this.#places = new Map((this.domain.labels ?? []).map((label, place) => [label, place]));
    this.#fit(given.parameters);
    const most = allowed(this.epsilon);
    const loss = this.#rules.loss(this.#parameters, this.#count);
    want(loss.top > loss.bottom, "the parameters make a report that does not depend on the answer");
    want(atMost(loss, most), "the task has parameters that cost more than the epsilon it declares: do not answer it");
    const shown = Object.fromEntries(
      Object.entries(this.#parameters).map(([key, value]) => [key, typeof value === "bigint" ? `${value}` : value]),
    );
    /** The canonical form, whose SHA-256 is the digest. */
    this.json = canonical({
      ...rest,
      parameters: shown,
      ...(this.values === null ? {} : { longitudinal: { values: this.values } }),
      ...(this.epochs === null ? {} : { longitudinal: { epochs: this.epochs } }),
    });
    this.digest = sha256(bytesOf(this.json));
    /** The part of the digest that reports carry. */
    this.id = toHex(this.digest.subarray(0, DIGEST_BYTES));
    Object.freeze(this);
  }

  #parameters;
  #places;

  /** Whether it is asked again and again, so that a Person has to remember. */
  get longitudinal() {
    return this.values !== null || this.epochs !== null;
  }

  get #rules() {
    return PROTOCOLS[this.protocol];
  }

  get #closed() {
    return this.domain.size !== undefined || this.domain.labels !== undefined;
  }

  /** How many values there are, where they can be listed. */
  get #count() {
    return this.domain.size ?? this.domain.labels?.length ?? 0;
  }

  /** How many words a key has: for `hash` only. */
  get #keys() {
    return this.#closed ? 1 : 2;
  }

  #fit(parameters) {
    const numeric = this.domain.low !== undefined;
    want(!(this.protocol in LISTED) || this.#closed, "the domain must have size or labels for this protocol");
    want(!(this.protocol in NUMBERS) || numeric, "the domain must be a range of numbers for this protocol");
    want(this.protocol !== "hash" || !numeric, "the domain must not be a range of numbers for this protocol");
    want(this.protocol !== "wave" || numeric || this.#closed, "the domain must be ordered for a square wave");
    const open = this.domain.open === true;
    want(this.protocol !== "rappor" || (open && this.longitudinal), "RAPPOR needs an open domain and a memory");
    this.#parameters = readParameters(this.#rules.names, parameters);
    this.#rules.check(this.#parameters, this.#count);
    const fits = this.protocol !== "wave" || numeric || this.#parameters.buckets === this.#count;
    want(fits, "buckets must be the size of the domain");
  }

  /** Bytes of every report of this task. */
  get reportBytes() {
    return 3 + DIGEST_BYTES + this.#rules.payload(this.#parameters, this.#count, this.#keys);
  }

  /** Random bytes that a report takes: 8 more when the answer is unknown. */
  randomBytes(answer) {
    const unknown = this.domain.open !== true && this.#whole(answer) < 0;
    return this.#rules.random(this.#parameters, this.#count, this.#keys) + (unknown ? 8 : 0);
  }

  /** An answer as a whole number: an index, or a number from 0 to 2^32; -1 for one that the domain does not have. */
  #whole(answer) {
    if (this.domain.labels !== undefined) return this.#places.get(answer) ?? -1;
    if (this.domain.size !== undefined) {
      const index = typeof answer === "bigint" && answer < HALF ? Number(answer) : answer;
      return wholeBetween(index, 0, this.domain.size - 1) ? index : -1;
    }
    return scaled(answer, Number(this.domain.low), Number(this.domain.high));
  }

  /** What an answer is for the memory: equal for answers that give equal reports. */
  #valueBytes(answer) {
    if (this.domain.open) return bytesOf(textOf(answer));
    const whole = this.#whole(answer);
    const width = this.#closed ? 4 : 5;
    return whole < 0 ? new Uint8Array(width).fill(255) : bigEndian(whole, width);
  }

  #payload(answer, random) {
    want(random.length >= this.randomBytes(answer), "there are too few random bytes");
    const reader = new Reader(random);
    return this.#rules.report(this.#parameters, this.#count, this.#shaped(answer, reader), reader);
  }

  /** The answer as the protocol takes it; an unknown one is drawn first. */
  #shaped(answer, reader) {
    if (this.domain.open) {
      const mark = new DataView(sha256(bytesOf(textOf(answer))).buffer);
      return [mark.getUint32(0), mark.getUint32(4)];
    }
    let whole = this.#whole(answer);
    if (whole < 0) whole = reader.pick(this.#closed ? this.#count : HALF);
    if (this.protocol === "hash") return [whole];
    if (this.protocol !== "wave" || this.#closed) return whole;
    const buckets = this.#parameters.buckets;
    return Math.min(buckets - 1, Number((BigInt(whole) * BigInt(buckets)) >> 32n));
  }

  #write(payload) {
    return join(Uint8Array.of(0x44, 0x4c, VERSION), this.digest.subarray(0, DIGEST_BYTES), payload);
  }

  /** Use encode(task, answer). */
  encode(answer, random) {
    want(!this.longitudinal, "the task is longitudinal: use new Person().report(task, answer)");
    return this.#write(this.#payload(answer, random ?? systemBytes(this.randomBytes(answer))));
  }

  /** Use Person: the keyed name of an answer, and what is the same for ever about it. */
  remembered(secret, answer) {
    const value = this.#valueBytes(answer);
    const stream = (purpose, about, length) => this.#stream(secret, purpose, about, length);
    const mark = toHex(stream("mark", value, 16));
    if (this.protocol !== "rappor") {
      return { mark, permanent: this.#payload(answer, stream("permanent", value, this.randomBytes(answer))) };
    }
    const bytes = stream("permanent", value, this.randomBytes(answer));
    return { mark, permanent: rappor.permanent(this.#parameters, textOf(answer), this.#cohort(secret), bytes) };
  }

  /** Use Person: one report from what is the same for ever. */
  told(secret, permanent, random) {
    if (this.protocol !== "rappor") return this.#write(permanent);
    const fresh = random ?? systemBytes(rappor.random(this.#parameters));
    return this.#write(rappor.instant(this.#parameters, permanent, this.#cohort(secret), fresh));
  }

  #cohort(secret) {
    return new Reader(this.#stream(secret, "cohort", new Uint8Array(0), 8)).pick(this.#parameters.cohorts);
  }

  /** Pseudo-random bytes that belong to a task, a purpose and a value. */
  #stream(secret, purpose, value, length) {
    const head = join(this.digest, bytesOf(purpose), Uint8Array.of(0), value);
    const out = new Uint8Array(length);
    for (let block = 0; 32 * block < length; block++) {
      const bytes = hmac(secret, join(head, bigEndian(block, 4)));
      out.set(bytes.subarray(0, Math.min(32, length - 32 * block)), 32 * block);
    }
    return out;
  }
}

function textOf(answer) {
  return typeof answer === "string" ? answer : "";
}

/** A number as a whole one from 0 (the low end) to 2^32 (the high end); -1 where there is none. Before any noise. */
function scaled(answer, low, high) {
  if (typeof answer !== "number" && typeof answer !== "bigint") return -1;
  const step = Math.floor(((Number(answer) - low) / (high - low)) * HALF + 0.5);
  return Number.isNaN(step) ? -1 : Math.min(HALF, Math.max(0, step));
}

// ---------------------------------------------------------------- what a page calls

/**
 * One report, as bytes for the wire. Any answer is accepted: one that the task does not have becomes a random one.
 * `random` is for test vectors only: never give your own bytes for a real report.
 */
export function encode(task, answer, random = undefined) {
  return task.encode(answer, random);
}

/** One report as a line of JSON, without the line's end. */
export function encodeLine(task, answer, random = undefined) {
  return lineOf(encode(task, answer, random));
}

/** A report in bytes as a line of JSON. */
export function lineOf(report) {
  const head = 3 + DIGEST_BYTES;
  const [id, payload] = [toHex(report.subarray(3, head)), toBase64(report.subarray(head))];
  return `{"discreet":${VERSION},"task":"${id}","payload":"${payload}"}`;
}

/**
 * One person over time, also after a restart with the same state.
 *
 * A task with epochs: the first answer of each epoch is told, with fresh noise in each epoch, however often it is asked.
 * All reports of all E epochs together cost at most E times epsilon, for any two histories of answers.
 * A task with values: equal answers give equal permanent bytes, for ever; at most `task.values` distinct answers are ever
 * told, then `Exhausted` is thrown. When an answer changed is visible: v times epsilon holds only between two histories
 * that change and return at the same times.
 *
 *     const person = new Person({ state: kept, save: (state) => keep(state) });
 *     const report = person.report(task, answer);
 *
 * `save` is called before anything changes here and before a report is given out; when it throws, there is no report,
 * now or later, until a save succeeds. The state holds the secret and keyed marks, never an answer. Keep it on the
 * device. Two objects on one state know nothing of each other: where several pages or processes share a state, use
 * store-browser.js or store-node.js, which lock it and read it again for every report.
 */
export class Person {
  #secret;
  #marks;
  #last;
  #save;

  constructor({ state = null, save = () => {} } = {}) {
    this.#save = save;
    this.#secret = state === null ? systemBytes(SECRET_BYTES) : fromHex(state.secret);
    want(this.#secret.length === SECRET_BYTES, "the secret must be 32 bytes");
    this.#marks = structuredClone(state?.marks ?? {});
    this.#last = structuredClone(state?.last ?? {});
    if (state === null) this.#keep(this.#marks, this.#last);
  }

  /** What has to be kept for next time: plain JSON. */
  get state() {
    return structuredClone({ secret: toHex(this.#secret), marks: this.#marks, last: this.#last });
  }

  /** How many distinct answers to a longitudinal task were told, or to an epoch of one. */
  distinct(task) {
    if (task.epochs !== null) return this.#last[toHex(task.digest)] === undefined ? 0 : 1;
    return (this.#marks[toHex(task.digest)] ?? []).length;
  }

  /**
   * One report for the wire. A person who falls silent tells that the answer changed: with whenExhausted "repeat" the
   * latest remembered answer is told again instead. `random` is for test vectors only.
   */
  report(task, answer, { whenExhausted = "refuse", random = undefined } = {}) {
    want(whenExhausted === "refuse" || whenExhausted === "repeat", "whenExhausted must be 'refuse' or 'repeat'");
    if (!task.longitudinal) return encode(task, answer, random);
    const key = toHex(task.digest);
    if (task.epochs !== null) {
      // The digest has the epoch in it: a new epoch is a new key and new random bytes.
      if (this.#last[key] === undefined) {
        const { permanent } = task.remembered(this.#secret, answer);
        this.#keep(this.#marks, { ...this.#last, [key]: toHex(permanent) });
      }
      return task.told(this.#secret, fromHex(this.#last[key]), random);
    }
    const { mark, permanent } = task.remembered(this.#secret, answer);
    const known = this.#marks[key] ?? [];
    if (!known.includes(mark) && known.length >= task.values) {
      if (whenExhausted === "refuse" || this.#last[key] === undefined) throw new Exhausted();
      return task.told(this.#secret, fromHex(this.#last[key]), random);
    }
    if (!known.includes(mark) || this.#last[key] !== toHex(permanent)) {
      const marks = known.includes(mark) ? this.#marks : { ...this.#marks, [key]: [...known, mark] };
      this.#keep(marks, { ...this.#last, [key]: toHex(permanent) });
    }
    return task.told(this.#secret, permanent, random);
  }

  /** Make this the memory: first where it is kept, then here. When it cannot be kept, nothing changes here. */
  #keep(marks, last) {
    const kept = this.#save(structuredClone({ secret: toHex(this.#secret), marks, last }));
    want(typeof kept?.then !== "function", "save must be done when it returns: a promise is not kept yet");
    this.#marks = marks;
    this.#last = last;
  }
}
