/**
 * The PostgreSQL schema as migrations: the tables of the SQLite one, the place of what is worked at (`cluster-port.ts`), nodes, sequences,
 * and the functions of `functions/`. JSON bodies are text, so that their bytes stay what they were; text that people may give is encoded
 * (`text.ts`), since PostgreSQL holds no U+0000, and ordered by its bytes (`COLLATE "C"`). Every index serves a named read or a unique rule.
 */
import { commitFunctions, dropCommitFunctions } from "./functions/commit.ts"
import { dropRecordFunctions, recordFunctions } from "./functions/records.ts"
import { dropRemovalFunctions, removalFunctions } from "./functions/removal.ts"
import { dropTakeFunctions, takeFunctions } from "./functions/take.ts"
import { dropWorkFunctions, workFunctions } from "./functions/work.ts"

/** One step of the schema. Published ones never change. */
export interface Migration {
  /** From 1, without gaps. */
  readonly version: number
  readonly name: string
  /** SQL of one transaction. */
  readonly up: string
  /** Undoes it, with the data that only it can hold. */
  readonly down: string
}

/** Ids that a node reserves at a time, except of conversations: people see those, so they come one by one. */
export const idBlock = 256

const tables = `
CREATE TABLE nodes (
  -- from the sequence fences: the fencing token of what it writes
  epoch bigint PRIMARY KEY,
  name text NOT NULL,
  address text NOT NULL,
  version text NOT NULL,
  started_at bigint NOT NULL,
  clustered boolean NOT NULL DEFAULT false,
  draining boolean NOT NULL DEFAULT false,
  -- somebody else said that it is gone, under this later number; it said itself that it ends
  fenced_at bigint,
  fenced_by bigint,
  ended_at bigint,
  -- its writer's connections, counted: only the newest may write
  link bigint NOT NULL DEFAULT 0,
  -- its last group of commits, and what was answered to each: for a writer whose connection broke before the answer
  last_group bigint NOT NULL DEFAULT 0,
  answers text NOT NULL DEFAULT '[]'
) WITH (fillfactor = 10);

-- epochs of nodes and tokens of conversations; commit numbers; ids
CREATE SEQUENCE fences;
CREATE SEQUENCE seqs;
CREATE SEQUENCE conversation_ids;
CREATE SEQUENCE entry_ids INCREMENT ${idBlock};
CREATE SEQUENCE task_ids INCREMENT ${idBlock};
CREATE SEQUENCE submission_ids INCREMENT ${idBlock};
CREATE SEQUENCE document_ids INCREMENT ${idBlock};
CREATE SEQUENCE job_ids INCREMENT ${idBlock};

CREATE TABLE conversations (
  id bigint PRIMARY KEY,
  parent_conversation bigint,
  parent_entry bigint,
  owner bigint,
  principal text COLLATE "C" NOT NULL,
  title text,
  created_at bigint NOT NULL,
  updated_at bigint NOT NULL,
  place bigint NOT NULL,
  -- who may write for it, and the epoch of the node that took it; 0: nobody took it yet
  token bigint NOT NULL DEFAULT 0,
  token_epoch bigint NOT NULL DEFAULT 0,
  seq bigint NOT NULL
);
-- listings, of everyone and of one principal
CREATE INDEX conversations_recent ON conversations (updated_at, id) WHERE owner IS NULL;
CREATE INDEX conversations_of ON conversations (principal, updated_at, id) WHERE owner IS NULL;
-- removal: who needs it, what belongs to it
CREATE INDEX conversations_forks ON conversations (parent_conversation) WHERE parent_conversation IS NOT NULL;
CREATE INDEX conversations_owned ON conversations (owner) WHERE owner IS NOT NULL;
CREATE INDEX conversations_tokens ON conversations (token) WHERE token > 0;

CREATE TABLE entries (
  id bigint PRIMARY KEY,
  conversation bigint NOT NULL,
  kind text NOT NULL,
  model text NOT NULL,
  data text,
  head bigint,
  edits text NOT NULL,
  task bigint,
  created_at bigint NOT NULL,
  seq bigint NOT NULL
);
CREATE INDEX entries_of ON entries (conversation, id);
CREATE INDEX entries_heads ON entries (conversation, id) WHERE head IS NOT NULL;

CREATE TABLE tasks (
  id bigint PRIMARY KEY,
  conversation bigint,
  kind text NOT NULL,
  version bigint NOT NULL,
  input text NOT NULL,
  status text COLLATE "C" NOT NULL,
  checkpoint text NOT NULL,
  owner bigint,
  background smallint NOT NULL,
  abort_requested smallint NOT NULL,
  crashes bigint NOT NULL,
  parked text,
  node text,
  fence bigint NOT NULL,
  lease_until bigint,
  wake_at bigint,
  waiting_on text,
  outcome text,
  request_id text COLLATE "C",
  in_doubt smallint NOT NULL,
  created_at bigint NOT NULL,
  started_at bigint,
  ended_at bigint,
  place bigint NOT NULL,
  seq bigint NOT NULL
);
-- status first: what is open, of one conversation or of all, is a handful of seeks however many tasks have ended
CREATE INDEX tasks_by_status ON tasks (status, conversation);
CREATE INDEX tasks_owned ON tasks (owner) WHERE owner IS NOT NULL;
CREATE UNIQUE INDEX tasks_by_request ON tasks (request_id) WHERE request_id IS NOT NULL;
CREATE INDEX tasks_in_doubt ON tasks (id) WHERE in_doubt = 1;

CREATE TABLE submissions (
  id bigint PRIMARY KEY,
  conversation bigint NOT NULL,
  kind text NOT NULL,
  content text NOT NULL,
  when_busy text NOT NULL,
  status text COLLATE "C" NOT NULL,
  reason text,
  detail text,
  request_id text COLLATE "C",
  entry bigint,
  answer bigint,
  created_at bigint NOT NULL,
  seq bigint NOT NULL
);
CREATE INDEX submissions_by_status ON submissions (conversation, status);
CREATE UNIQUE INDEX submissions_by_request ON submissions (conversation, request_id) WHERE request_id IS NOT NULL;
-- what waits, of all conversations
CREATE INDEX submissions_open ON submissions (conversation) WHERE status IN ('queued', 'placed');

CREATE TABLE documents (
  id bigint PRIMARY KEY,
  kind text COLLATE "C" NOT NULL,
  scope text COLLATE "C" NOT NULL,
  conversation bigint,
  task bigint,
  key text COLLATE "C" NOT NULL,
  version bigint NOT NULL,
  history text NOT NULL,
  fork text NOT NULL,
  value text NOT NULL,
  created_seq bigint NOT NULL,
  retired_seq bigint,
  seq bigint NOT NULL
);
-- one live incarnation of a document at a time
CREATE UNIQUE INDEX documents_live ON documents (conversation, kind, key, coalesce(task, 0))
  WHERE retired_seq IS NULL AND conversation IS NOT NULL;
CREATE UNIQUE INDEX documents_of_task ON documents (task, kind, key) WHERE retired_seq IS NULL AND scope = 'task';
CREATE UNIQUE INDEX documents_global ON documents (kind, key) WHERE retired_seq IS NULL AND scope = 'global';
CREATE INDEX documents_of ON documents (conversation) WHERE conversation IS NOT NULL;

CREATE TABLE document_revisions (
  document bigint NOT NULL,
  seq bigint NOT NULL,
  -- 'base': the whole value; 'delta': RFC 6902 operations on the revision before it
  type text NOT NULL,
  version bigint NOT NULL,
  body text NOT NULL,
  PRIMARY KEY (document, seq)
);

CREATE TABLE jobs (
  id bigint PRIMARY KEY,
  queue text COLLATE "C" NOT NULL,
  worker text NOT NULL,
  args text NOT NULL,
  state text COLLATE "C" NOT NULL,
  unique_key text COLLATE "C",
  unique_for text NOT NULL,
  attempt bigint NOT NULL,
  max_attempts bigint NOT NULL,
  run_at bigint NOT NULL,
  conversation bigint,
  node text,
  fence bigint NOT NULL,
  lease_until bigint,
  errors text NOT NULL,
  created_at bigint NOT NULL,
  started_at bigint,
  ended_at bigint,
  -- null: it may run anywhere
  place bigint,
  seq bigint NOT NULL
);
-- what is due in a queue, oldest first; what is running; what may be pruned
CREATE INDEX jobs_due ON jobs (queue, state, run_at, id);
CREATE UNIQUE INDEX jobs_unique ON jobs (queue, unique_key) WHERE unique_key IS NOT NULL;
CREATE INDEX jobs_ended ON jobs (ended_at, id) WHERE ended_at IS NOT NULL;
CREATE INDEX jobs_of ON jobs (conversation) WHERE conversation IS NOT NULL;

CREATE TABLE artifacts (
  conversation bigint NOT NULL,
  name text COLLATE "C" NOT NULL,
  media_type text NOT NULL,
  size bigint NOT NULL,
  content bytea NOT NULL,
  created_at bigint NOT NULL,
  updated_at bigint NOT NULL,
  seq bigint NOT NULL,
  PRIMARY KEY (conversation, name)
);

CREATE TABLE names (
  namespace text COLLATE "C" NOT NULL,
  principal text COLLATE "C" NOT NULL,
  name text COLLATE "C" NOT NULL,
  conversation bigint NOT NULL,
  created_at bigint NOT NULL,
  used_at bigint NOT NULL,
  -- the order in which they were given
  ordinal bigint GENERATED ALWAYS AS IDENTITY,
  seq bigint NOT NULL,
  PRIMARY KEY (namespace, principal, name)
);
-- removal; pruning
CREATE INDEX names_conversation ON names (conversation);
CREATE INDEX names_used ON names (used_at, ordinal);
`

const dropTables = `
DROP TABLE names, artifacts, jobs, document_revisions, documents, submissions, tasks, entries, conversations, nodes;
DROP SEQUENCE fences, seqs, conversation_ids, entry_ids, task_ids, submission_ids, document_ids, job_ids;
`

/** In the order in which they apply. */
export const migrations: ReadonlyArray<Migration> = [
  { version: 1, name: "records", up: tables, down: dropTables },
  {
    version: 2,
    name: "commit functions",
    up: `${recordFunctions}${workFunctions}${removalFunctions}${commitFunctions}${takeFunctions}`,
    down: `${dropTakeFunctions}${dropCommitFunctions}${dropRemovalFunctions}${dropWorkFunctions}${dropRecordFunctions}`,
  },
]

/** The schema version that this program reads and writes. */
export const schemaVersion: number = migrations.length
