/**
 * Skills that come with Super-Pi. They are part of the program, so that they are there however it was installed.
 */
import type { Skill } from "./skill.ts"

const writeSkill = `A skill is a directory with a file \`SKILL.md\`. Use one for work that comes again and that needs more than a rule.

1. Put it in \`.agents/skills/NAME/\` of the repository where everybody should have it, or in \`skills/NAME/\` of the settings directory for one person.
2. Begin the file with front matter:

       ---
       name: NAME
       description: What it does, and when to use it. This line alone decides whether it is found.
       ---

   \`name\` is that of the directory: lower-case letters, digits and single dashes. The description has at most 1,024 characters.
   \`disable-model-invocation: true\` leaves the choice to the person (\`/skill:NAME\`).
3. Write the steps below it, short, in the order in which they are done, with the commands as they are typed. Say how one sees that it worked.
4. Put long tables, templates and scripts into files beside it (\`references/\`, \`assets/\`, \`scripts/\`) and name them where they are needed: they are
   read only then.
5. Check it: load it with the tool \`skill\`, and follow it once.`

export const builtinSkills: ReadonlyArray<Skill> = [
  {
    name: "write-skill",
    description:
      "How to write a skill (SKILL.md) for this agent. Use it when a person wants a procedure kept for later.",
    path: "built-in: write-skill",
    directory: null,
    body: writeSkill,
    allowedTools: [],
    forModel: true,
  },
]
