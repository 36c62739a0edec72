/**
 * Fresh ids of traces and spans: random hexadecimal digits, never all zero.
 */
const half = (): string =>
  Math.floor(Math.random() * 0x1_0000_0000)
    .toString(16)
    .padStart(8, "0")

/** 16 digits. */
export const freshSpanId = (): string => {
  const id = half() + half()
  return /^0+$/.test(id) ? freshSpanId() : id
}

/** 32 digits. */
export const freshTraceId = (): string => freshSpanId() + freshSpanId()
