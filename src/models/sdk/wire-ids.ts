/**
 * Call ids as every service accepts them. A conversation that changes models carries ids of other services, with other characters
 * and lengths; the ids of one request are mapped in order, so that a longer history maps the same way.
 */

const hash = (text: string): string => {
  let h = 0x811c9dc5
  for (let i = 0; i < text.length; i++) h = Math.imul(h ^ text.charCodeAt(i), 0x01000193)
  return (h >>> 0).toString(36)
}

/** Maps ids to `[a-zA-Z0-9_-]{1,length}`, distinct ids to distinct ones. Ids that already fit stay. */
export class WireIds {
  readonly #length: number
  readonly #wire = new Map<string, string>()
  readonly #used = new Set<string>()

  constructor(length: number) {
    this.#length = length
  }

  wire(id: string): string {
    const known = this.#wire.get(id)
    if (known !== undefined) return known
    const fits = id.length > 0 && id.length <= this.#length && /^[a-zA-Z0-9_-]+$/.test(id)
    let wire = fits ? id : `${id.replace(/[^a-zA-Z0-9_-]/g, "_").slice(0, this.#length - 9)}_${hash(id)}`
    for (let n = 2; this.#used.has(wire); n++) wire = `${wire.slice(0, this.#length - 4)}_${n}`
    this.#wire.set(id, wire)
    this.#used.add(wire)
    return wire
  }
}
