// Columns of numbers: base64 of deflated bytes, all first bytes, then all second bytes, and so on.
// The browser's own decompression is not used, because the page would have to wait for it.

const COLUMN_WIDTH = 8;

const LENGTHS = [3, 4, 5, 6, 7, 8, 9, 10, 11, 13, 15, 17, 19, 23, 27, 31, 35, 43, 51, 59, 67, 83, 99, 115, 131, 163, 195, 227, 258];
const LENGTH_BITS = [0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2, 3, 3, 3, 3, 4, 4, 4, 4, 5, 5, 5, 5, 0];
const DISTANCES = [1, 2, 3, 4, 5, 7, 9, 13, 17, 25, 33, 49, 65, 97, 129, 193, 257, 385, 513, 769, 1025, 1537, 2049, 3073, 4097, 6145, 8193, 12289, 16385, 24577];
const TABLE_BITS = 9;
const CODE_ORDER = [16, 17, 18, 0, 8, 7, 9, 6, 10, 5, 11, 4, 12, 3, 13, 2, 14, 1, 15];

/** Return the `size` bytes that were deflated, as RFC 1951 says. */
function inflate(source, size) {
  const target = new Uint8Array(size);
  let written = 0;
  let place = 0;
  let bits = 0;
  let held = 0;

  function take(count) {
    while (held < count) {
      bits |= source[place] << held;
      place += 1;
      held += 8;
    }
    const value = bits & ((1 << count) - 1);
    bits >>>= count;
    held -= count;
    return value;
  }

  /** Return how many codes have each length, the symbols in the order of their codes, and a table of short codes. */
  function codeOf(lengths) {
    const counts = new Uint16Array(16);
    for (const length of lengths) counts[length] += 1;
    counts[0] = 0;
    const offsets = new Uint16Array(16);
    for (let length = 1; length < 15; length += 1) offsets[length + 1] = offsets[length] + counts[length];
    const symbols = new Uint16Array(lengths.length);
    lengths.forEach((length, symbol) => { if (length) symbols[offsets[length]++] = symbol; });
    const table = new Uint16Array(1 << TABLE_BITS); // 16 * symbol + length of the code that begins with these bits
    let code = 0;
    let next = 0;
    for (let length = 1; length <= TABLE_BITS; length += 1) {
      for (let count = counts[length]; count > 0; count -= 1, code += 1, next += 1) {
        let reversed = 0;
        for (let bit = 0; bit < length; bit += 1) if (code & (1 << bit)) reversed |= 1 << (length - 1 - bit);
        for (let entry = reversed; entry < table.length; entry += 1 << length) table[entry] = 16 * symbols[next] + length;
      }
      code <<= 1;
    }
    return { counts, symbols, table };
  }

  function symbolOf({ counts, symbols, table }) {
    while (held < TABLE_BITS && place < source.length) {
      bits |= source[place] << held;
      place += 1;
      held += 8;
    }
    const entry = table[bits & (table.length - 1)];
    if (entry && (entry & 15) <= held) {
      bits >>>= entry & 15;
      held -= entry & 15;
      return entry >> 4;
    }
    let code = 0;
    let first = 0;
    let index = 0;
    for (let length = 1; length < 16; length += 1) {
      code |= take(1);
      const count = counts[length];
      if (code - count < first) return symbols[index + code - first];
      index += count;
      first = (first + count) << 1;
      code <<= 1;
    }
    throw new Error("the data of the page is damaged");
  }

  function fixedCodes() {
    const lengths = Array.from({ length: 288 }, (_, symbol) => (symbol < 144 ? 8 : symbol < 256 ? 9 : symbol < 280 ? 7 : 8));
    return [codeOf(lengths), codeOf(new Array(30).fill(5))];
  }

  function ownCodes() {
    const literals = take(5) + 257;
    const distances = take(5) + 1;
    const orders = take(4) + 4;
    const lengths = new Array(19).fill(0);
    for (let index = 0; index < orders; index += 1) lengths[CODE_ORDER[index]] = take(3);
    const code = codeOf(lengths);
    const all = [];
    while (all.length < literals + distances) {
      const symbol = symbolOf(code);
      if (symbol < 16) all.push(symbol);
      else {
        const value = symbol === 16 ? all[all.length - 1] : 0;
        const times = symbol === 16 ? 3 + take(2) : symbol === 17 ? 3 + take(3) : 11 + take(7);
        for (let time = 0; time < times; time += 1) all.push(value);
      }
    }
    return [codeOf(all.slice(0, literals)), codeOf(all.slice(literals))];
  }

  function copyStored() {
    place -= held >> 3;
    bits = held = 0;
    const length = source[place] | (source[place + 1] << 8);
    target.set(source.subarray(place + 4, place + 4 + length), written);
    place += 4 + length;
    written += length;
  }

  function copyCoded([literals, distances]) {
    for (;;) {
      const symbol = symbolOf(literals);
      if (symbol === 256) return;
      if (symbol < 256) {
        target[written] = symbol;
        written += 1;
        continue;
      }
      const length = LENGTHS[symbol - 257] + take(LENGTH_BITS[symbol - 257]);
      const step = symbolOf(distances);
      const distance = DISTANCES[step] + take(step < 2 ? 0 : (step >> 1) - 1);
      for (const end = written + length; written < end; written += 1) target[written] = target[written - distance];
    }
  }

  for (let last = 0; !last;) {
    last = take(1);
    const kind = take(2);
    if (kind === 0) copyStored();
    else copyCoded(kind === 1 ? fixedCodes() : ownCodes());
  }
  return target;
}

/** Return a column as numbers; NaN stands for an absent number. */
function unpackColumn([count, text]) {
  const packed = atob(text.replaceAll("-", "+").replaceAll("_", "/"));
  const source = new Uint8Array(packed.length);
  for (let index = 0; index < packed.length; index += 1) source[index] = packed.charCodeAt(index);
  const bytes = inflate(source, COLUMN_WIDTH * count);
  const numbers = new Float64Array(count);
  for (let place = 0, scale = 1; place < COLUMN_WIDTH; place += 1, scale *= 256) {
    const plane = bytes.subarray(place * count, (place + 1) * count);
    for (let index = 0; index < count; index += 1) if (plane[index]) numbers[index] += plane[index] * scale;
  }
  for (let index = 0; index < count; index += 1) if (numbers[index] >= 2 ** 64) numbers[index] = NaN;
  return numbers;
}

/** Return the columns of a device, with starts and times as sums of their differences. */
function unpackColumns(device) {
  const columns = Object.fromEntries(Object.entries(device.columns).map(([name, column]) => [name, unpackColumn(column)]));
  columns.start = sums(columns.start);
  columns.times = sums(columns.times).map((time) => time + device.firstTime);
  return columns;
}

/** Return the allocated bytes before the trace and after each event. */
function liveOf({ start, end, size }, events) {
  const change = new Float64Array(events + 1);
  for (let index = 0; index < size.length; index += 1) {
    change[start[index]] += size[index];
    if (end[index] <= events) change[end[index]] -= size[index];
  }
  return sums(change);
}
