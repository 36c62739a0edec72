/**
 * Whether a process group still has processes that run. The system also counts dead ones that nobody has waited for, and in a container
 * without an init process nobody ever does; so on Linux the process table is read.
 */
import { readdirSync, readFileSync } from "node:fs"
import { errorCode } from "../domain/error-code.ts"

const runs = (pid: string, group: number): boolean => {
  try {
    // `pid (name) state parent group …`; the name may contain anything.
    const stat = readFileSync(`/proc/${pid}/stat`, "utf8")
    const [state, , pgrp] = stat.slice(stat.lastIndexOf(")") + 2).split(" ")
    return Number(pgrp) === group && state !== "Z" && state !== "X"
  } catch {
    return false
  }
}

/** Whether group `group` has a living process. */
export const hasLivingMembers = (group: number): boolean => {
  try {
    process.kill(-group, 0)
  } catch (error) {
    // EPERM: only processes of others are left in it.
    return errorCode(error) === "EPERM"
  }
  if (process.platform !== "linux") return true
  return readdirSync("/proc").some((name) => /^\d+$/.test(name) && runs(name, group))
}
