/**
 * An esbuild plugin: a package written for CommonJS that is imported at run time (`await import("yaml")`) has the same names in a bundle
 * as it has without one. Alone, esbuild gives such a module a `default` and nothing else once bundles are split, so that
 * `const { parse } = await import("yaml")` works from the sources and is undefined in the built program.
 *
 * The names are those that Node.js finds when it imports the module, asked at build time.
 */
import { readFile } from "node:fs/promises"
import path from "node:path"
import { pathToFileURL } from "node:url"

/** Marks our own question to esbuild, so that it is not asked again. */
const asked = { cjsNames: true }

/** The `type` of the package that a file belongs to. */
const packageType = async (file) => {
  for (let directory = path.dirname(file); ; directory = path.dirname(directory)) {
    const text = await readFile(path.join(directory, "package.json"), "utf8").catch(() => null)
    const type = text === null ? undefined : JSON.parse(text).type
    // A package.json without a name only says how a folder's files are read.
    if (text !== null && (type !== undefined || JSON.parse(text).name !== undefined)) return type ?? "commonjs"
    if (directory === path.dirname(directory)) return "commonjs"
  }
}

const isCommonJs = async (file) =>
  file.endsWith(".cjs") || (file.endsWith(".js") && (await packageType(file)) === "commonjs")

const isName = (text) => /^[A-Za-z_$][\w$]*$/.test(text) && text !== "default" && text !== "__esModule"

export const cjsNames = {
  name: "cjs-names",
  setup(build) {
    build.onResolve({ filter: /^[^./]/ }, async (args) => {
      if (args.kind !== "dynamic-import" || args.pluginData?.cjsNames || args.path.startsWith("node:")) return undefined
      const { kind, importer, resolveDir } = args
      const found = await build.resolve(args.path, { kind, importer, resolveDir, pluginData: asked })
      if (found.errors.length > 0 || found.external || !(await isCommonJs(found.path))) return undefined
      return { path: found.path, namespace: "cjs-names" }
    })
    build.onLoad({ filter: /.*/, namespace: "cjs-names" }, async ({ path: file }) => {
      const names = Object.keys(await import(pathToFileURL(file).href)).filter(isName)
      const renamed = names.map((name, at) => [`n${at}`, name])
      const contents = [
        `const whole = require(${JSON.stringify(file)})`,
        "export default whole",
        `const { ${renamed.map(([local, name]) => `${name}: ${local}`).join(", ")} } = whole`,
        `export { ${renamed.map(([local, name]) => `${local} as ${name}`).join(", ")} }`,
      ]
      return { contents: contents.join("\n"), resolveDir: path.dirname(file), loader: "js" }
    })
  },
}
