/**
 * SQL functions that write jobs and names inside a commit, with the refusals of the storage port. See `records.ts` for how rows come.
 */
import { shardCount } from "../../../domain/cluster.ts"
import { anyBody, bodyColumns } from "./records.ts"

/** Whether the row's place is in one of the shards of `held`; null holds them all, and a row without a place may be anywhere. */
export const heldCondition = (held: string): string =>
  `(${held} IS NULL OR place IS NULL OR place % ${shardCount} + 1 = ANY(${held}))`

export const workFunctions = `
CREATE FUNCTION super_pi_jobs(p_seq bigint, p_inserts json, p_updates json, p_claims json, p_ended_before bigint, p_limit bigint)
RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE
  r record;
  known record;
  held int[];
BEGIN
  FOR r IN SELECT * FROM json_to_recordset(p_inserts) AS x(id bigint, queue text, worker text, ${bodyColumns("args")}, unique_key text, unique_for text,
    max_attempts bigint, run_at bigint, conversation bigint, created_at bigint)
  LOOP
    INSERT INTO jobs (id, queue, worker, args, state, unique_key, unique_for, attempt, max_attempts, run_at, conversation, node, fence,
      lease_until, errors, created_at, started_at, ended_at, place, seq)
    VALUES (r.id, r.queue, r.worker, ${anyBody("r.args")}, 'available', r.unique_key, r.unique_for, 0, r.max_attempts, r.run_at, r.conversation, NULL, 0,
      NULL, '[]', r.created_at, NULL, NULL, (SELECT place FROM conversations WHERE id = r.conversation), p_seq)
    ON CONFLICT DO NOTHING;
    CONTINUE WHEN FOUND;
    PERFORM 1 FROM jobs WHERE queue = r.queue AND unique_key = r.unique_key;
    IF NOT FOUND THEN
      PERFORM super_pi_conflict('job ' || r.id, 'this id is already used');
    END IF;
  END LOOP;
  FOR r IN SELECT * FROM json_to_recordset(p_updates) AS x(id bigint, state text, keeps_key boolean, attempt bigint, max_attempts bigint,
    run_at bigint, node text, fence bigint, lease_until bigint, ${bodyColumns("errors")}, started_at bigint, ended_at bigint, from_state text,
    from_fence bigint, legal boolean)
  LOOP
    IF NOT r.legal THEN
      PERFORM super_pi_conflict('job ' || r.id, r.from_state || ' → ' || r.state || ' is no legal transition');
    END IF;
    UPDATE jobs SET state = r.state, unique_key = CASE WHEN r.keeps_key THEN unique_key END, attempt = r.attempt,
      max_attempts = r.max_attempts, run_at = r.run_at, node = r.node, fence = r.fence, lease_until = r.lease_until, errors = ${anyBody("r.errors")},
      started_at = r.started_at, ended_at = r.ended_at, seq = p_seq
    WHERE id = r.id AND fence = r.from_fence AND state = r.from_state;
    CONTINUE WHEN FOUND;
    SELECT state, fence INTO known FROM jobs WHERE id = r.id;
    IF NOT FOUND THEN
      PERFORM super_pi_conflict('job ' || r.id, 'it does not exist');
    ELSIF known.fence <> r.from_fence THEN
      PERFORM super_pi_fenced('job ' || r.id, r.from_fence, known.fence);
    END IF;
    PERFORM super_pi_conflict('job ' || r.id, 'expected it to be ' || r.from_state || ', it is ' || known.state);
  END LOOP;
  FOR r IN SELECT * FROM json_to_recordset(p_claims) AS x(queue text, "limit" bigint, now bigint, lease_until bigint, node text, held json)
  LOOP
    held := CASE WHEN r.held IS NOT NULL THEN ARRAY(SELECT json_array_elements_text(r.held)::int) END;
    -- what another node holds right now it changes right now; a row of a later commit is left to the next claim, so that its number only grows
    UPDATE jobs SET state = 'executing', attempt = attempt + 1, fence = fence + 1, node = r.node, lease_until = r.lease_until,
      started_at = r.now, seq = p_seq
    WHERE id = ANY(ARRAY(
      SELECT id FROM jobs
      WHERE queue = r.queue AND state = 'available' AND run_at <= r.now AND seq <= p_seq AND ${heldCondition("held")}
      ORDER BY run_at, id LIMIT r."limit" FOR UPDATE SKIP LOCKED));
  END LOOP;
  IF p_limit IS NOT NULL THEN
    DELETE FROM jobs WHERE id = ANY(ARRAY(
      SELECT id FROM jobs WHERE ended_at < p_ended_before ORDER BY ended_at, id LIMIT p_limit FOR UPDATE SKIP LOCKED));
  END IF;
  RETURN true;
END $$;

CREATE FUNCTION super_pi_names(p_seq bigint, p_changes json) RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE r record;
BEGIN
  FOR r IN SELECT * FROM json_to_recordset(p_changes) AS x(type text, namespace text, principal text, name text, conversation bigint,
    at bigint, moves boolean, before bigint, keep bigint)
  LOOP
    IF r.type = 'prune' THEN
      DELETE FROM names WHERE used_at < r.before;
      DELETE FROM names WHERE (namespace, principal, name) IN
        (SELECT namespace, principal, name FROM names ORDER BY used_at DESC, ordinal DESC OFFSET r.keep);
    ELSIF r.type = 'use' THEN
      UPDATE names SET used_at = r.at, seq = p_seq WHERE namespace = r.namespace AND principal = r.principal AND name = r.name;
    ELSE
      IF r.type = 'take' OR r.moves THEN
        DELETE FROM names WHERE namespace = r.namespace AND principal = r.principal AND name = r.name;
      END IF;
      CONTINUE WHEN r.type = 'take';
      INSERT INTO names (namespace, principal, name, conversation, created_at, used_at, seq)
      VALUES (r.namespace, r.principal, r.name, r.conversation, r.at, r.at, p_seq) ON CONFLICT DO NOTHING;
      IF NOT FOUND THEN
        PERFORM super_pi_refuse(json_build_object('what', 'name ', 'quoted', r.name, 'detail', 'it is already taken'));
      END IF;
    END IF;
  END LOOP;
  RETURN true;
END $$;
`

export const dropWorkFunctions = `
DROP FUNCTION super_pi_names, super_pi_jobs;
`
