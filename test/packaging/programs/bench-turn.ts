/**
 * One turn of the bench of turns over the database of the first argument. Fails as the bench does.
 */
import { openProduct } from "../../../bench/turn/product.ts"

const engine = await openProduct(process.argv[2] ?? "")
try {
  await engine.begin(1)
  await engine.turn(1, 0)
  console.log("answered")
} finally {
  await engine.close()
}
