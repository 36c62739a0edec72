/**
 * Members of a cluster on a real PostgreSQL: who holds which shard, when somebody joins, drains, loses its locks or dies.
 */
import { describe, expect, it } from "@effect/vitest"
import { Effect, Exit, Scope } from "effect"
import pg from "pg"
import { shardCount } from "../../src/domain/cluster.ts"
import type { ConversationId } from "../../src/domain/ids.ts"
import { lockClient } from "../../src/storage/postgres/lock-client.ts"
import { migrate } from "../../src/storage/postgres/migrations.ts"
import { postgresSettings } from "../../src/storage/postgres/settings.ts"
import { makePostgresNode } from "../../src/storage/postgres/store.ts"
import { makeMember } from "../../src/supervisors/cluster/member.ts"
import { makeShards } from "../../src/supervisors/cluster/shards.ts"
import { describePostgres, postgresDatabase } from "../support/postgres.ts"

const until = (is: () => boolean) => Effect.repeat(Effect.delay(Effect.sync(is), 10), { until: (done) => done })

const system = Effect.gen(function* () {
  const { url } = yield* postgresDatabase
  const settings = yield* postgresSettings({ DATABASE_URL: url })
  yield* migrate(settings)
  const admin = yield* Effect.acquireRelease(
    Effect.promise(async () => {
      const client = new pg.Client(url)
      client.on("error", () => undefined)
      await client.connect()
      return client
    }),
    (client) => Effect.promise(() => client.end()),
  )
  const start = (name: string, options: { readonly guest?: boolean } = {}) =>
    Effect.gen(function* () {
      const scope = yield* Effect.acquireRelease(Scope.make(), (own) => Scope.close(own, Exit.void))
      const lost: Array<string> = []
      const node = yield* Effect.gen(function* () {
        const shards = yield* makeShards
        const { cluster, store } = yield* makePostgresNode({
          settings,
          node: { name, address: "", version: "0" },
          held: shards.held,
        })
        const locks = yield* lockClient(settings, store.epoch, 7)
        const member = makeMember({
          store,
          clusterStore: cluster,
          locks,
          shards,
          drainMs: 2_000,
          guest: options.guest ?? false,
          onMembers: () => Effect.void,
          onLost: (why) => Effect.sync(() => void lost.push(why)),
        })
        yield* member.join(`127.0.0.1:${store.epoch}`)
        return { member, shards, store }
      }).pipe(Scope.extend(scope))
      return { ...node, lost, leave: Scope.close(scope, Exit.void) }
    })
  const query = (sql: string, values: ReadonlyArray<unknown>) => Effect.promise(() => admin.query(sql, [...values]))
  return { start, query }
})

type Node = { readonly shards: { readonly held: () => ReadonlyArray<number> } }
const heldBy = (...nodes: ReadonlyArray<Node>): ReadonlyArray<number> => nodes.map(({ shards }) => shards.held().length)
/** Every shard is held once, and everybody has its part. */
const settled =
  (...nodes: ReadonlyArray<Node>) =>
  () => {
    const all = nodes.flatMap(({ shards }) => shards.held())
    return (
      all.length === shardCount && new Set(all).size === shardCount && heldBy(...nodes).every((count) => count > 40)
    )
  }

describePostgres("the members of a cluster", () => {
  describe("hold every shard once", () => {
    it.scopedLive("when they join one after the other, and when they drain and leave", () =>
      Effect.gen(function* () {
        const { start } = yield* system
        const one = yield* start("one")
        yield* until(settled(one))
        const two = yield* start("two")
        const three = yield* start("three")
        yield* until(settled(one, two, three))
        yield* two.member.drain
        expect(two.shards.held()).toEqual([])
        yield* two.leave
        yield* until(settled(one, three))
        expect(two.lost).toEqual([])
        yield* one.leave
        yield* until(settled(three))
      }),
    )

    it.scopedLive("when the locks of one are taken from it", () =>
      Effect.gen(function* () {
        const { query, start } = yield* system
        const one = yield* start("one")
        const two = yield* start("two")
        yield* until(settled(one, two))
        yield* query("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = $1", [
          `super-pi lock ${two.store.epoch}`,
        ])
        yield* until(() => one.member.roster.members.length === 2 && settled(one, two)())
      }),
    )
  })

  it.scopedLive("know where a place is", () =>
    Effect.gen(function* () {
      const { start } = yield* system
      const one = yield* start("one")
      const two = yield* start("two")
      yield* until(settled(one, two))
      const [id] = yield* one.store.mint("conversation", 1)
      if (id === undefined) return yield* Effect.dieMessage("no id")
      const conversation: ConversationId = id
      yield* one.store.commit({
        conversations: [
          { id: conversation, parent: null, owner: null, principal: "p", title: null, createdAt: 1, updatedAt: 1 },
        ],
      })
      yield* until(() => one.member.roster.heldCount === shardCount && two.member.roster.heldCount === shardCount)
      const [fromOne, fromTwo] = [
        yield* one.member.holderOfConversation(conversation),
        yield* two.member.holderOfConversation(conversation),
      ]
      const holder = fromOne === "here" ? one : two
      expect([fromOne, fromTwo]).toEqual(
        holder === one ? ["here", { epoch: one.store.epoch }] : [{ epoch: two.store.epoch }, "here"],
      )
    }),
  )

  it.scopedLive("that are guests hold nothing while others are there, and everything where they are alone", () =>
    Effect.gen(function* () {
      const { start } = yield* system
      const alone = yield* start("first guest", { guest: true })
      yield* until(settled(alone))
      const guest = yield* start("second guest", { guest: true })
      yield* until(() => guest.member.roster.members.length === 2)
      expect(guest.shards.all()).toEqual([])
      expect(heldBy(alone)).toEqual([shardCount])
    }),
  )

  it.scopedLive("learn that they were fenced off, and stop their work", () =>
    Effect.gen(function* () {
      const { query, start } = yield* system
      const one = yield* start("one")
      const two = yield* start("two")
      yield* until(settled(one, two))
      yield* query("UPDATE nodes SET fenced_at = 1 WHERE epoch = $1", [two.store.epoch])
      yield* until(() => two.lost.length > 0)
      expect(two.lost).toEqual(["another node fenced it off"])
      yield* until(() => two.shards.all().length === 0)
    }),
  )
})
