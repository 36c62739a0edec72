/**
 * The work of the undo tests: what the scripted model does to a repository in one run of three turns.
 */
import type { Script } from "../../src/models/providers/script-file.ts"

export const prompt = "work"

export const script: Script = {
  rules: [
    {
      match: prompt,
      steps: [
        {
          tools: [
            { name: "write", args: { path: "src/new/file.ts", content: "new\n" } },
            { name: "edit", args: { path: "src/main.ts", edits: [{ oldText: "11", newText: "12" }] } },
          ],
        },
        {
          tools: [
            {
              name: "bash",
              args: { command: "mv src/other.ts moved.ts; chmod 755 README.md; echo x > secret.env; ls > debug.log" },
            },
          ],
        },
        {
          tools: [
            {
              name: "bash",
              args: { command: "git add -A && git commit -q -m theirs && git tag v1 && git switch -q -c other" },
            },
          ],
        },
        { text: "done" },
      ],
    },
    { match: "", steps: [{ text: "hello" }] },
  ],
}
