/**
 * The SQLite schema: six tables of records, the jobs of the queues, artifacts, names, and one table of counters. STRICT, so that a column holds its type; ordinary rowid tables, since
 * bodies of a kilobyte in `WITHOUT ROWID` trees cost more than twice the writes. Every index serves a named read or a unique rule.
 */

/** Marks a file as ours (`PRAGMA application_id`): "SuPi". */
export const applicationId = 0x53755069

const records = `
CREATE TABLE meta (
  name TEXT PRIMARY KEY,
  value INTEGER NOT NULL
) STRICT;
INSERT INTO meta (name, value) VALUES
  ('epoch', 0), ('seq', 1), ('conversation', 1), ('entry', 1), ('task', 1), ('submission', 1), ('document', 1);

CREATE TABLE conversations (
  id INTEGER PRIMARY KEY,
  parent_conversation INTEGER,
  parent_entry INTEGER,
  owner INTEGER,
  principal TEXT NOT NULL,
  title TEXT,
  created_at INTEGER NOT NULL,
  updated_at INTEGER NOT NULL,
  seq INTEGER NOT NULL
) STRICT;
-- listings, of everyone and of one principal
CREATE INDEX conversations_recent ON conversations (updated_at, id) WHERE owner IS NULL;
CREATE INDEX conversations_of ON conversations (principal, updated_at, id) WHERE owner IS NULL;
-- removal: who needs it, what belongs to it
CREATE INDEX conversations_forks ON conversations (parent_conversation) WHERE parent_conversation IS NOT NULL;
CREATE INDEX conversations_owned ON conversations (owner) WHERE owner IS NOT NULL;

CREATE TABLE entries (
  id INTEGER PRIMARY KEY,
  conversation INTEGER NOT NULL,
  kind TEXT NOT NULL,
  model TEXT NOT NULL,
  data TEXT,
  head INTEGER,
  edits TEXT NOT NULL,
  task INTEGER,
  created_at INTEGER NOT NULL,
  seq INTEGER NOT NULL
) STRICT;
-- the rowid is part of the key: one index gives a conversation's entries in id order
CREATE INDEX entries_of ON entries (conversation);
CREATE INDEX entries_heads ON entries (conversation) WHERE head IS NOT NULL;

CREATE TABLE tasks (
  id INTEGER PRIMARY KEY,
  conversation INTEGER NOT NULL,
  kind TEXT NOT NULL,
  version INTEGER NOT NULL,
  input TEXT NOT NULL,
  status TEXT NOT NULL,
  checkpoint TEXT NOT NULL,
  owner INTEGER,
  background INTEGER NOT NULL,
  abort_requested INTEGER NOT NULL,
  crashes INTEGER NOT NULL,
  parked TEXT,
  node TEXT,
  fence INTEGER NOT NULL,
  lease_until INTEGER,
  wake_at INTEGER,
  outcome TEXT,
  created_at INTEGER NOT NULL,
  started_at INTEGER,
  ended_at INTEGER,
  seq INTEGER NOT NULL
) STRICT;
-- status first: what is open, of one conversation or of all, is a handful of seeks however many tasks have ended
CREATE INDEX tasks_by_status ON tasks (status, conversation);

CREATE TABLE submissions (
  id INTEGER PRIMARY KEY,
  conversation INTEGER NOT NULL,
  kind TEXT NOT NULL,
  content TEXT NOT NULL,
  when_busy TEXT NOT NULL,
  status TEXT NOT NULL,
  reason TEXT,
  detail TEXT,
  request_id TEXT,
  entry INTEGER,
  answer INTEGER,
  created_at INTEGER NOT NULL,
  seq INTEGER NOT NULL
) STRICT;
CREATE INDEX submissions_by_status ON submissions (conversation, status);
CREATE UNIQUE INDEX submissions_by_request ON submissions (conversation, request_id) WHERE request_id IS NOT NULL;

CREATE TABLE documents (
  id INTEGER PRIMARY KEY,
  kind TEXT NOT NULL,
  scope TEXT NOT NULL,
  conversation INTEGER,
  task INTEGER,
  key TEXT NOT NULL,
  version INTEGER NOT NULL,
  history TEXT NOT NULL,
  value TEXT NOT NULL,
  created_seq INTEGER NOT NULL,
  retired_seq INTEGER,
  seq INTEGER NOT NULL
) STRICT;
-- one live incarnation of a document at a time
CREATE UNIQUE INDEX documents_live ON documents (conversation, kind, key, ifnull(task, 0))
  WHERE retired_seq IS NULL AND conversation IS NOT NULL;
CREATE UNIQUE INDEX documents_global ON documents (kind, key) WHERE retired_seq IS NULL AND scope = 'global';
CREATE INDEX documents_of ON documents (conversation) WHERE conversation IS NOT NULL;

CREATE TABLE document_revisions (
  document INTEGER NOT NULL,
  seq INTEGER NOT NULL,
  -- 'base': the whole value; 'delta': RFC 6902 operations on the revision before it
  type TEXT NOT NULL,
  version INTEGER NOT NULL,
  body TEXT NOT NULL
) STRICT;
CREATE UNIQUE INDEX document_revisions_of ON document_revisions (document, seq);
`

/**
 * Workflows beside conversations, waits, calls in doubt; fork policies; jobs of the durable queues; artifacts. SQLite cannot drop NOT NULL
 * from a column, so the tasks move to a new table.
 */
const engine = `
CREATE TABLE tasks_2 (
  id INTEGER PRIMARY KEY,
  conversation INTEGER,
  kind TEXT NOT NULL,
  version INTEGER NOT NULL,
  input TEXT NOT NULL,
  status TEXT NOT NULL,
  checkpoint TEXT NOT NULL,
  owner INTEGER,
  background INTEGER NOT NULL,
  abort_requested INTEGER NOT NULL,
  crashes INTEGER NOT NULL,
  parked TEXT,
  node TEXT,
  fence INTEGER NOT NULL,
  lease_until INTEGER,
  wake_at INTEGER,
  waiting_on TEXT,
  outcome TEXT,
  request_id TEXT,
  in_doubt INTEGER NOT NULL,
  created_at INTEGER NOT NULL,
  started_at INTEGER,
  ended_at INTEGER,
  seq INTEGER NOT NULL
) STRICT;
INSERT INTO tasks_2 SELECT id, conversation, kind, version, input, status, checkpoint, owner, background, abort_requested,
  crashes, parked, node, fence, lease_until, wake_at, NULL, outcome, NULL, 0, created_at, started_at, ended_at, seq FROM tasks;
DROP TABLE tasks;
ALTER TABLE tasks_2 RENAME TO tasks;
-- status first: what is open, of one conversation or of all, is a handful of seeks however many tasks have ended
CREATE INDEX tasks_by_status ON tasks (status, conversation);
CREATE INDEX tasks_owned ON tasks (owner) WHERE owner IS NOT NULL;
CREATE UNIQUE INDEX tasks_by_request ON tasks (request_id) WHERE request_id IS NOT NULL;
CREATE INDEX tasks_in_doubt ON tasks (id) WHERE in_doubt = 1;

ALTER TABLE documents ADD COLUMN fork TEXT NOT NULL DEFAULT 'initial';
UPDATE documents SET fork = 'asOf' WHERE kind = 'pi.agent';
-- documents of a task, which may belong to no conversation
CREATE UNIQUE INDEX documents_of_task ON documents (task, kind, key) WHERE retired_seq IS NULL AND scope = 'task';

CREATE TABLE jobs (
  id INTEGER PRIMARY KEY,
  queue TEXT NOT NULL,
  worker TEXT NOT NULL,
  args TEXT NOT NULL,
  state TEXT NOT NULL,
  unique_key TEXT,
  unique_for TEXT NOT NULL,
  attempt INTEGER NOT NULL,
  max_attempts INTEGER NOT NULL,
  run_at INTEGER NOT NULL,
  conversation INTEGER,
  node TEXT,
  fence INTEGER NOT NULL,
  lease_until INTEGER,
  errors TEXT NOT NULL,
  created_at INTEGER NOT NULL,
  started_at INTEGER,
  ended_at INTEGER,
  seq INTEGER NOT NULL
) STRICT;
-- what is due in a queue, oldest first; what is running; what may be pruned
CREATE INDEX jobs_due ON jobs (queue, state, run_at, id);
CREATE UNIQUE INDEX jobs_unique ON jobs (queue, unique_key) WHERE unique_key IS NOT NULL;
CREATE INDEX jobs_ended ON jobs (ended_at) WHERE ended_at IS NOT NULL;
CREATE INDEX jobs_of ON jobs (conversation) WHERE conversation IS NOT NULL;
INSERT INTO meta (name, value) VALUES ('job', 1);

CREATE TABLE artifacts (
  conversation INTEGER NOT NULL,
  name TEXT NOT NULL,
  media_type TEXT NOT NULL,
  size INTEGER NOT NULL,
  content BLOB NOT NULL,
  created_at INTEGER NOT NULL,
  updated_at INTEGER NOT NULL,
  seq INTEGER NOT NULL
) STRICT;
CREATE UNIQUE INDEX artifacts_of ON artifacts (conversation, name);
`

/** Names that clients give to conversations. */
const names = `
CREATE TABLE names (
  namespace TEXT NOT NULL,
  principal TEXT NOT NULL,
  name TEXT NOT NULL,
  conversation INTEGER NOT NULL,
  created_at INTEGER NOT NULL,
  used_at INTEGER NOT NULL,
  seq INTEGER NOT NULL
) STRICT;
CREATE UNIQUE INDEX names_of ON names (namespace, principal, name);
-- removal; pruning
CREATE INDEX names_conversation ON names (conversation);
CREATE INDEX names_used ON names (used_at);
`

/** Migration `n` (from 1) takes a database from schema version `n - 1` to `n`. Published ones never change. */
export const migrations: ReadonlyArray<string> = [records, engine, names]

/** The schema version that this program reads and writes (`PRAGMA user_version`). */
export const schemaVersion: number = migrations.length
