/**
 * The SQL function that a writer calls: one group of commits in one transaction. Rules:
 * 1. What the group touches is locked first, in the order of its ids, so that two nodes do not wait for each other in a circle; only then
 *    are commit numbers drawn, so that the numbers of one row only grow.
 * 2. Commits apply in their order. Together, the first refusal undoes the group; apart, each is a subtransaction and refused alone.
 * 3. Last it proves that the node may write and that this connection is its newest, and leaves the answers in its row of `nodes`: a writer
 *    that got none finds them there, and what was sent over an older connection can commit no more once a newer one has begun.
 */
const parts =
  "under json, conversations json, touched json, updates json, entry_count bigint, entries json, tasks json, submissions json, documents json, jobs json, job_updates json, job_claims json, ended_before bigint, prune_limit bigint, artifacts json, artifact_removals json, names json, removed json"

export const commitFunctions = `
CREATE FUNCTION super_pi_require(p_under json, p_id bigint) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
  of bigint := coalesce((p_under->>'conversation')::bigint, p_id);
  held bigint := (p_under->>'token')::bigint;
  current bigint;
BEGIN
  SELECT token INTO current FROM conversations WHERE id = of;
  IF NOT FOUND THEN
    PERFORM super_pi_conflict('conversation ' || of, 'it does not exist');
  ELSIF held <> current THEN
    PERFORM super_pi_fenced('conversation ' || of, held, current);
  END IF;
END $$;

-- whether every conversation of the group was found and under the right token is known: then none is looked for again
CREATE FUNCTION super_pi_apply(p_seq bigint, p_known boolean, p_commit json) RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE
  c record;
  -- an assignment calls a function without the cost of a query
  v_done boolean;
BEGIN
  SELECT * INTO c FROM json_to_record(p_commit) AS x(${parts});
  IF c.under IS NOT NULL AND NOT p_known THEN PERFORM super_pi_require(c.under, NULL); END IF;
  IF c.conversations IS NOT NULL THEN v_done := super_pi_conversations(p_seq, c.conversations); END IF;
  IF c.touched IS NOT NULL AND NOT p_known THEN
    PERFORM super_pi_require(NULL, id::bigint) FROM json_array_elements_text(c.touched) AS id;
  END IF;
  IF c.updates IS NOT NULL THEN v_done := super_pi_updates(p_seq, c.updates); END IF;
  IF c.entries IS NOT NULL THEN v_done := super_pi_entries(p_seq, c.entry_count, c.entries); END IF;
  IF c.tasks IS NOT NULL THEN v_done := super_pi_tasks(p_seq, c.tasks); END IF;
  IF c.submissions IS NOT NULL THEN v_done := super_pi_submissions(p_seq, c.submissions); END IF;
  IF c.documents IS NOT NULL THEN v_done := super_pi_documents(p_seq, c.documents); END IF;
  IF c.jobs IS NOT NULL OR c.job_updates IS NOT NULL OR c.job_claims IS NOT NULL OR c.prune_limit IS NOT NULL THEN
    v_done := super_pi_jobs(p_seq, coalesce(c.jobs, '[]'), coalesce(c.job_updates, '[]'), coalesce(c.job_claims, '[]'), c.ended_before,
      c.prune_limit);
  END IF;
  IF c.artifacts IS NOT NULL OR c.artifact_removals IS NOT NULL THEN
    v_done := super_pi_artifacts(p_seq, coalesce(c.artifacts, '[]'), coalesce(c.artifact_removals, '[]'));
  END IF;
  IF c.names IS NOT NULL THEN v_done := super_pi_names(p_seq, c.names); END IF;
  IF c.removed IS NOT NULL THEN v_done := super_pi_remove(ARRAY(SELECT json_array_elements_text(c.removed)::bigint)); END IF;
  RETURN true;
END $$;

-- raises unless this connection of this node may write
CREATE FUNCTION super_pi_stale(p_epoch bigint, p_link bigint) RETURNS void LANGUAGE plpgsql AS $$
DECLARE n record;
BEGIN
  SELECT link, fenced_at, ended_at, fenced_by INTO n FROM nodes WHERE epoch = p_epoch;
  IF NOT FOUND OR n.fenced_at IS NOT NULL OR n.ended_at IS NOT NULL THEN
    RAISE EXCEPTION 'the node is fenced off' USING ERRCODE = 'SP002',
      DETAIL = json_build_object('held', p_epoch, 'current', coalesce(n.fenced_by, (SELECT last_value FROM fences)))::text;
  END IF;
  RAISE EXCEPTION 'a newer connection of this node has begun' USING ERRCODE = 'SP003';
END $$;

-- p_commits: one commit, or an array of them
CREATE FUNCTION super_pi_commit(p_epoch bigint, p_link bigint, p_group bigint, p_commits json, p_conversations bigint[], p_tokens bigint[],
  p_documents bigint[], p_tasks bigint[], p_jobs bigint[], p_plain boolean, p_apart boolean) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
  c json;
  v_seq bigint;
  v_matched bigint;
  v_known boolean := p_plain;
  v_answers text;
  v_refusal text;
  v_done boolean;
BEGIN
  IF p_conversations IS NOT NULL THEN
    SELECT count(*) FILTER (WHERE p_tokens[array_position(p_conversations, l.id)] IS NULL
      OR p_tokens[array_position(p_conversations, l.id)] = l.token) INTO v_matched
    FROM (SELECT id, token FROM conversations WHERE id = ANY(p_conversations) ORDER BY id FOR NO KEY UPDATE) l;
    v_known := v_known AND v_matched = cardinality(p_conversations);
  END IF;
  IF p_documents IS NOT NULL THEN
    PERFORM 1 FROM documents WHERE id = ANY(p_documents) ORDER BY id FOR NO KEY UPDATE;
  END IF;
  IF p_tasks IS NOT NULL THEN
    PERFORM 1 FROM tasks WHERE id = ANY(p_tasks) ORDER BY id FOR NO KEY UPDATE;
  END IF;
  IF p_jobs IS NOT NULL THEN
    PERFORM 1 FROM jobs WHERE id = ANY(p_jobs) ORDER BY id FOR NO KEY UPDATE;
  END IF;
  IF json_typeof(p_commits) = 'object' AND NOT p_apart THEN
    v_seq := nextval('seqs');
    v_done := super_pi_apply(v_seq, v_known, p_commits);
    v_answers := '[' || v_seq || ']';
  ELSE
    FOR c IN SELECT json_array_elements(CASE json_typeof(p_commits) WHEN 'object' THEN json_build_array(p_commits) ELSE p_commits END) LOOP
      v_seq := nextval('seqs');
      v_refusal := NULL;
      IF p_apart THEN
        BEGIN
          v_done := super_pi_apply(v_seq, false, c);
        EXCEPTION WHEN SQLSTATE 'SP001' THEN
          GET STACKED DIAGNOSTICS v_refusal = PG_EXCEPTION_DETAIL;
        END;
      ELSE
        v_done := super_pi_apply(v_seq, v_known, c);
      END IF;
      v_answers := coalesce(v_answers || ',', '[') || coalesce(v_refusal, v_seq::text);
    END LOOP;
    v_answers := v_answers || ']';
  END IF;
  UPDATE nodes SET last_group = p_group, answers = v_answers
  WHERE epoch = p_epoch AND link = p_link AND fenced_at IS NULL AND ended_at IS NULL;
  IF NOT FOUND THEN PERFORM super_pi_stale(p_epoch, p_link); END IF;
  RETURN v_answers;
END $$;
`

export const dropCommitFunctions = `
DROP FUNCTION super_pi_commit, super_pi_stale, super_pi_apply, super_pi_require;
`
