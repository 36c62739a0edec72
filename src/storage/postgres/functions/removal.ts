/**
 * The SQL function that removes conversations with all that belongs to them: entries, tasks, submissions, documents with their revisions,
 * jobs, artifacts, names, and the conversations that their tasks own (subagents), theirs included.
 */
const statuses = "('pending', 'running', 'waiting', 'sleeping', 'completing', 'terminal')"

export const removalFunctions = `
CREATE FUNCTION super_pi_remove(p_ids bigint[]) RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE
  r record;
  doomed bigint[];
BEGIN
  FOR r IN SELECT u.id FROM unnest(p_ids) WITH ORDINALITY AS u(id, at)
    WHERE NOT EXISTS (SELECT 1 FROM conversations c WHERE c.id = u.id) ORDER BY u.at LIMIT 1
  LOOP
    PERFORM super_pi_conflict('conversation ' || r.id, 'it does not exist');
  END LOOP;
  WITH RECURSIVE tree(id) AS (
    SELECT unnest(p_ids)
    UNION
    SELECT c.id FROM tree JOIN tasks t ON t.conversation = tree.id AND t.status IN ${statuses} JOIN conversations c ON c.owner = t.id
  ) SELECT array_agg(id) INTO doomed FROM tree;
  PERFORM 1 FROM conversations WHERE id = ANY(doomed) ORDER BY id FOR UPDATE;
  FOR r IN SELECT id, parent_conversation FROM conversations
    WHERE parent_conversation = ANY(doomed) AND id <> ALL(doomed) ORDER BY parent_conversation, id LIMIT 1
  LOOP
    PERFORM super_pi_conflict('conversation ' || r.parent_conversation,
      'its fork ' || r.id || ' still needs it; remove that one first');
  END LOOP;
  DELETE FROM document_revisions WHERE document IN (SELECT id FROM documents WHERE conversation = ANY(doomed));
  DELETE FROM documents WHERE conversation = ANY(doomed);
  DELETE FROM jobs WHERE conversation = ANY(doomed);
  DELETE FROM artifacts WHERE conversation = ANY(doomed);
  DELETE FROM names WHERE conversation = ANY(doomed);
  DELETE FROM submissions WHERE conversation = ANY(doomed);
  DELETE FROM entries WHERE conversation = ANY(doomed);
  DELETE FROM tasks WHERE conversation = ANY(doomed) AND status IN ${statuses};
  DELETE FROM conversations WHERE id = ANY(doomed);
  RETURN true;
END $$;
`

export const dropRemovalFunctions = `
DROP FUNCTION super_pi_remove;
`
