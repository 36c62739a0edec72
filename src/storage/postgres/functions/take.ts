/**
 * SQL functions with which a node takes conversations and tasks over: under a number from the sequence `fences`, which is larger than every
 * number before. Each proves that the node may write and keeps it from being fenced off before that is committed.
 */
import { shardCount } from "../../../domain/cluster.ts"
import { openStatuses, taskColumns } from "../columns.ts"

const atShards = `place % ${shardCount} + 1 = ANY(p_shards)`

export const takeFunctions = `
CREATE FUNCTION super_pi_may_write(p_epoch bigint, p_link bigint) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
  PERFORM 1 FROM nodes WHERE epoch = p_epoch AND link = p_link AND fenced_at IS NULL AND ended_at IS NULL FOR SHARE;
  IF NOT FOUND THEN PERFORM super_pi_stale(p_epoch, p_link); END IF;
END $$;

-- the new tokens by conversation, without those that are gone, and how far ids are reserved
CREATE FUNCTION super_pi_take(p_epoch bigint, p_link bigint, p_ids bigint[]) RETURNS json LANGUAGE plpgsql AS $$
DECLARE
  r record;
  v_token bigint;
  v_tokens jsonb := '{}';
BEGIN
  FOR r IN SELECT id FROM conversations WHERE id = ANY(p_ids) ORDER BY id FOR NO KEY UPDATE LOOP
    v_token := nextval('fences');
    UPDATE conversations SET token = v_token, token_epoch = p_epoch WHERE id = r.id;
    v_tokens := v_tokens || jsonb_build_object(r.id::text, v_token);
  END LOOP;
  PERFORM super_pi_may_write(p_epoch, p_link);
  RETURN json_build_object('tokens', v_tokens, 'reserved', json_build_object(
    'entry', (SELECT last_value FROM entry_ids), 'task', (SELECT last_value FROM task_ids),
    'submission', (SELECT last_value FROM submission_ids), 'document', (SELECT last_value FROM document_ids),
    'job', (SELECT last_value FROM job_ids)));
END $$;

-- which node works under a fence that it raised on tasks
CREATE TABLE adoptions (
  fence bigint PRIMARY KEY,
  epoch bigint NOT NULL
);

-- the raised fence, and the open tasks at the shards as they are under it; those of the kept kinds as they are
CREATE FUNCTION super_pi_adopt(p_epoch bigint, p_link bigint, p_shards int[], p_kept text[]) RETURNS json LANGUAGE plpgsql AS $$
DECLARE
  v_fence bigint;
  v_tasks json;
BEGIN
  PERFORM super_pi_may_write(p_epoch, p_link);
  PERFORM 1 FROM tasks WHERE status IN ${openStatuses} AND ${atShards} AND kind <> ALL(p_kept) ORDER BY id FOR NO KEY UPDATE;
  v_fence := nextval('fences');
  INSERT INTO adoptions (fence, epoch) VALUES (v_fence, p_epoch);
  WITH raised AS (
    UPDATE tasks SET fence = v_fence WHERE status IN ${openStatuses} AND ${atShards} AND kind <> ALL(p_kept) AND fence < v_fence
    RETURNING *
  ), adopted AS (
    SELECT * FROM raised
    UNION ALL
    SELECT * FROM tasks WHERE status IN ${openStatuses} AND ${atShards} AND kind = ANY(p_kept)
  )
  SELECT coalesce(json_agg(t ORDER BY id), '[]') INTO v_tasks FROM (SELECT ${taskColumns}, place FROM adopted) t;
  RETURN json_build_object('fence', v_fence, 'tasks', v_tasks);
END $$;
`

export const dropTakeFunctions = `
DROP FUNCTION super_pi_adopt, super_pi_take, super_pi_may_write;
DROP TABLE adoptions;
`
