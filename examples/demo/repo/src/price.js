/** Price of `count` pieces, in cents. `discount` is a share from 0 to 1. */
export function total(unitPrice, count, discount = 0) {
  const full = unitPrice * count
  return Math.round(full - discount)
}
