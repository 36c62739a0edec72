/**
 * Column lists and statuses that several read statements share, with the names that rows have in code.
 */
export const conversationColumns =
  "c.id, c.parent_conversation AS parentConversation, c.parent_entry AS parentEntry, c.owner, c.principal, c.title, c.created_at AS createdAt, c.updated_at AS updatedAt, c.seq"
export const taskColumns =
  "id, conversation, kind, version, input, status, checkpoint, owner, background, abort_requested AS abortRequested, crashes, parked, node, fence, lease_until AS leaseUntil, wake_at AS wakeAt, waiting_on AS waitingOn, outcome, request_id AS requestId, in_doubt AS inDoubt, created_at AS createdAt, started_at AS startedAt, ended_at AS endedAt, seq"

/** Statuses of tasks that are not terminal. */
export const openStatuses = "('pending', 'running', 'waiting', 'sleeping', 'completing')"
