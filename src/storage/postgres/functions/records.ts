/**
 * SQL functions that write conversations, entries, tasks, submissions, documents and artifacts inside a commit, with the refusals of the
 * storage port. Rows come as JSON arrays of objects whose keys are the columns; a column that is null may be absent. A JSON body is there as it
 * is: the type `json` keeps its bytes. Where it has what the parser would refuse (U+0000, a lone surrogate) it comes as a string, under its
 * name with `_text`.
 *
 * A refusal is an exception whose DETAIL is a JSON object that `refusals.ts` turns into a `Conflict` or `Fenced`: SQLSTATE SP001 for one
 * commit, SP002 for a node that was fenced off, SP003 for a connection that is not the node's newest.
 */
/** Declares a body in both forms, and takes the one that came: SQL NULL where none did. */
export const bodyColumns = (name: string): string => `${name} json, ${name}_text text`
const body = (name: string): string => `coalesce(${name}_text, ${name}::text)`
/** The same where a JSON null is a value: it is SQL NULL by then. */
export const anyBody = (name: string): string => `coalesce(${name}_text, ${name}::text, 'null')`

export const recordFunctions = `
CREATE FUNCTION super_pi_refuse(detail json) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
  RAISE EXCEPTION 'refused' USING ERRCODE = 'SP001', DETAIL = detail::text;
END $$;

CREATE FUNCTION super_pi_conflict(what text, detail text) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
  PERFORM super_pi_refuse(json_build_object('what', what, 'detail', detail));
END $$;

CREATE FUNCTION super_pi_fenced(what text, held bigint, current bigint) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
  PERFORM super_pi_refuse(json_build_object('what', what, 'held', held, 'current', current));
END $$;

CREATE FUNCTION super_pi_conversations(p_seq bigint, p_rows json) RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE r record;
BEGIN
  FOR r IN SELECT * FROM json_to_recordset(p_rows) AS x(id bigint, parent_conversation bigint, parent_entry bigint, owner bigint,
    principal text, title text, created_at bigint, updated_at bigint, at_conversation bigint, at_task bigint, at_self bigint)
  LOOP
    INSERT INTO conversations (id, parent_conversation, parent_entry, owner, principal, title, created_at, updated_at, place, seq)
    VALUES (r.id, r.parent_conversation, r.parent_entry, r.owner, r.principal, r.title, r.created_at, r.updated_at,
      coalesce((SELECT place FROM conversations WHERE id = r.at_conversation), (SELECT place FROM tasks WHERE id = r.at_task), r.at_self),
      p_seq)
    ON CONFLICT (id) DO NOTHING;
    IF NOT FOUND THEN
      PERFORM super_pi_conflict('conversation ' || r.id, 'this id is already used');
    END IF;
  END LOOP;
  RETURN true;
END $$;

CREATE FUNCTION super_pi_updates(p_seq bigint, p_rows json) RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE r record;
BEGIN
  FOR r IN SELECT * FROM json_to_recordset(p_rows) AS x(id bigint, updated_at bigint, renamed boolean, title text) LOOP
    UPDATE conversations SET updated_at = r.updated_at, seq = p_seq, title = CASE WHEN r.renamed THEN r.title ELSE title END
    WHERE id = r.id;
    IF NOT FOUND THEN
      PERFORM super_pi_conflict('conversation ' || r.id, 'it does not exist');
    END IF;
  END LOOP;
  RETURN true;
END $$;

CREATE FUNCTION super_pi_entries(p_seq bigint, p_count bigint, p_rows json) RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE
  written bigint;
  used bigint;
BEGIN
  INSERT INTO entries (id, conversation, kind, model, data, head, edits, task, created_at, seq)
  SELECT id, conversation, kind, ${anyBody("model")}, ${body("data")}, head, coalesce(edits_text, edits::text, '[]'), task, created_at, p_seq
  FROM json_to_recordset(p_rows) AS x(id bigint, conversation bigint, kind text, ${bodyColumns("model")}, ${bodyColumns("data")}, head bigint,
    ${bodyColumns("edits")}, task bigint, created_at bigint)
  ON CONFLICT (id) DO NOTHING;
  GET DIAGNOSTICS written = ROW_COUNT;
  IF written < p_count THEN
    SELECT x.id INTO used FROM json_to_recordset(p_rows) AS x(id bigint)
    GROUP BY x.id HAVING count(*) > 1 OR EXISTS (SELECT 1 FROM entries e WHERE e.id = x.id AND e.seq <> p_seq)
    ORDER BY x.id LIMIT 1;
    PERFORM super_pi_conflict('entry ' || used, 'this id is already used');
  END IF;
  RETURN true;
END $$;

CREATE FUNCTION super_pi_tasks(p_seq bigint, p_rows json) RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE
  r record;
  known record;
  twin bigint;
BEGIN
  FOR r IN SELECT * FROM json_to_recordset(p_rows) AS x(id bigint, conversation bigint, kind text, version bigint, ${bodyColumns("input")}, status text,
    ${bodyColumns("checkpoint")}, owner bigint, background smallint, abort_requested smallint, crashes bigint, parked text, node text, fence bigint,
    lease_until bigint, wake_at bigint, ${bodyColumns("waiting_on")}, ${bodyColumns("outcome")}, request_id text, in_doubt smallint, created_at bigint,
    started_at bigint, ended_at bigint, at_conversation bigint, at_task bigint, at_self bigint)
  LOOP
    twin := NULL;
    IF r.request_id IS NOT NULL THEN
      SELECT id INTO twin FROM tasks WHERE request_id = r.request_id AND id <> r.id;
    END IF;
    IF twin IS NULL THEN
      -- fencing: a row under a higher token stays as it is
      INSERT INTO tasks (id, conversation, kind, version, input, status, checkpoint, owner, background, abort_requested, crashes, parked,
        node, fence, lease_until, wake_at, waiting_on, outcome, request_id, in_doubt, created_at, started_at, ended_at, place, seq)
      VALUES (r.id, r.conversation, r.kind, r.version, ${anyBody("r.input")}, r.status, ${anyBody("r.checkpoint")}, r.owner, r.background, r.abort_requested,
        r.crashes, r.parked, r.node, r.fence, r.lease_until, r.wake_at, ${body("r.waiting_on")}, ${body("r.outcome")}, r.request_id, r.in_doubt, r.created_at,
        r.started_at, r.ended_at,
        coalesce((SELECT place FROM conversations WHERE id = r.at_conversation), (SELECT place FROM tasks WHERE id = r.at_task), r.at_self),
        p_seq)
      ON CONFLICT (id) DO UPDATE SET kind = excluded.kind, version = excluded.version, input = excluded.input, status = excluded.status,
        checkpoint = excluded.checkpoint, owner = excluded.owner, background = excluded.background,
        abort_requested = excluded.abort_requested, crashes = excluded.crashes, parked = excluded.parked, node = excluded.node,
        fence = excluded.fence, lease_until = excluded.lease_until, wake_at = excluded.wake_at, waiting_on = excluded.waiting_on,
        outcome = excluded.outcome, request_id = excluded.request_id, in_doubt = excluded.in_doubt, created_at = excluded.created_at,
        started_at = excluded.started_at, ended_at = excluded.ended_at, seq = excluded.seq
      WHERE excluded.fence >= tasks.fence AND excluded.conversation IS NOT DISTINCT FROM tasks.conversation;
      CONTINUE WHEN FOUND;
    END IF;
    SELECT conversation, fence INTO known FROM tasks WHERE id = r.id;
    IF FOUND AND known.conversation IS DISTINCT FROM r.conversation THEN
      PERFORM super_pi_conflict('task ' || r.id, 'this id is already used');
    ELSIF FOUND AND known.fence > r.fence THEN
      PERFORM super_pi_fenced('task ' || r.id, r.fence, known.fence);
    END IF;
    PERFORM super_pi_refuse(json_build_object('what', 'request id ', 'quoted', r.request_id, 'detail', 'it is already task ' || twin));
  END LOOP;
  RETURN true;
END $$;

CREATE FUNCTION super_pi_submissions(p_seq bigint, p_rows json) RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE
  r record;
  twin bigint;
BEGIN
  FOR r IN SELECT * FROM json_to_recordset(p_rows) AS x(id bigint, conversation bigint, kind text, ${bodyColumns("content")}, when_busy text,
    status text, reason text, detail text, request_id text, entry bigint, answer bigint, created_at bigint)
  LOOP
    IF r.request_id IS NOT NULL THEN
      SELECT id INTO twin FROM submissions WHERE conversation = r.conversation AND request_id = r.request_id AND id <> r.id;
      IF FOUND THEN
        PERFORM super_pi_refuse(json_build_object('what', 'request id ', 'quoted', r.request_id,
          'after', ' in conversation ' || r.conversation, 'detail', 'it is already submission ' || twin));
      END IF;
    END IF;
    INSERT INTO submissions (id, conversation, kind, content, when_busy, status, reason, detail, request_id, entry, answer, created_at, seq)
    VALUES (r.id, r.conversation, r.kind, ${anyBody("r.content")}, r.when_busy, r.status, r.reason, r.detail, r.request_id, r.entry, r.answer,
      r.created_at, p_seq)
    ON CONFLICT (id) DO UPDATE SET kind = excluded.kind, content = excluded.content, when_busy = excluded.when_busy,
      status = excluded.status, reason = excluded.reason, detail = excluded.detail, request_id = excluded.request_id,
      entry = excluded.entry, answer = excluded.answer, created_at = excluded.created_at, seq = excluded.seq
    WHERE excluded.conversation = submissions.conversation;
    IF NOT FOUND THEN
      PERFORM super_pi_conflict('submission ' || r.id, 'this id is already used');
    END IF;
  END LOOP;
  RETURN true;
END $$;

CREATE FUNCTION super_pi_documents(p_seq bigint, p_rows json) RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE
  r record;
  known record;
  kept text;
  v_value text;
BEGIN
  FOR r IN SELECT * FROM json_to_recordset(p_rows) AS x(id bigint, kind text, scope text, conversation bigint, task bigint, key text,
    version bigint, history text, fork text, ${bodyColumns("value")}, ${bodyColumns("operations")}, since bigint, retire boolean, label text)
  LOOP
    kept := r.history;
    v_value := ${anyBody("r.value")};
    UPDATE documents SET version = r.version, value = v_value, seq = p_seq
    WHERE id = r.id AND retired_seq IS NULL AND history = r.history AND version <= r.version AND seq = coalesce(r.since, seq);
    IF NOT FOUND THEN
      SELECT history, version, seq, retired_seq INTO known FROM documents WHERE id = r.id;
      IF NOT FOUND THEN
        IF r.since IS NOT NULL THEN
          PERFORM super_pi_conflict('document ' || r.label, 'it does not exist');
        END IF;
        INSERT INTO documents (id, kind, scope, conversation, task, key, version, history, fork, value, created_seq, retired_seq, seq)
        VALUES (r.id, r.kind, r.scope, r.conversation, r.task, r.key, r.version, r.history, r.fork, v_value, p_seq, NULL, p_seq)
        ON CONFLICT DO NOTHING;
        IF NOT FOUND THEN
          PERFORM super_pi_conflict('document ' || r.label, 'a live one exists already; retire it first');
        END IF;
      ELSIF known.retired_seq IS NOT NULL THEN
        PERFORM super_pi_conflict('document ' || r.id, 'it is retired');
      ELSIF r.since IS NOT NULL AND known.seq <> r.since THEN
        PERFORM super_pi_conflict('document ' || r.label,
          'expected it as of commit ' || r.since || ', it changed in commit ' || known.seq);
      ELSIF known.version > r.version THEN
        PERFORM super_pi_conflict('document ' || r.label,
          'expected version ' || known.version || ' or newer, got ' || r.version || ': newer code wrote it');
      ELSE
        -- the first write of an incarnation decides its history
        kept := known.history;
        UPDATE documents SET version = r.version, value = v_value, seq = p_seq WHERE id = r.id;
      END IF;
    END IF;
    IF kept = 'rewindable' THEN
      -- a delta continues the revision before it, of an earlier commit; a document that is set twice has one revision, the last value
      IF ${body("r.operations")} IS NOT NULL AND (SELECT max(seq) FROM document_revisions WHERE document = r.id) < p_seq THEN
        INSERT INTO document_revisions (document, seq, type, version, body) VALUES (r.id, p_seq, 'delta', r.version, ${body("r.operations")});
      ELSE
        INSERT INTO document_revisions (document, seq, type, version, body) VALUES (r.id, p_seq, 'base', r.version, v_value)
        ON CONFLICT (document, seq) DO UPDATE SET type = excluded.type, version = excluded.version, body = excluded.body;
      END IF;
    END IF;
    IF r.retire THEN
      UPDATE documents SET retired_seq = p_seq WHERE id = r.id;
    END IF;
  END LOOP;
  RETURN true;
END $$;

CREATE FUNCTION super_pi_artifacts(p_seq bigint, p_puts json, p_removals json) RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE r record;
BEGIN
  FOR r IN SELECT * FROM json_to_recordset(p_puts) AS x(conversation bigint, name text, media_type text, size bigint, content text, at bigint)
  LOOP
    INSERT INTO artifacts (conversation, name, media_type, size, content, created_at, updated_at, seq)
    VALUES (r.conversation, r.name, r.media_type, r.size, decode(r.content, 'base64'), r.at, r.at, p_seq)
    ON CONFLICT (conversation, name) DO UPDATE SET media_type = excluded.media_type, size = excluded.size, content = excluded.content,
      updated_at = excluded.updated_at, seq = excluded.seq;
  END LOOP;
  FOR r IN SELECT * FROM json_to_recordset(p_removals) AS x(conversation bigint, name text) LOOP
    DELETE FROM artifacts WHERE conversation = r.conversation AND name = r.name;
  END LOOP;
  RETURN true;
END $$;
`

export const dropRecordFunctions = `
DROP FUNCTION super_pi_artifacts, super_pi_documents, super_pi_submissions, super_pi_tasks, super_pi_entries, super_pi_updates,
  super_pi_conversations, super_pi_fenced, super_pi_conflict, super_pi_refuse;
`
