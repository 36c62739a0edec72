/**
 * The workers of a node, by queue and name. They come and go while the queues run.
 */
import type { QueueWorker } from "./worker.ts"

export class WorkerRegistry {
  private readonly queues = new Map<string, Map<string, QueueWorker>>()

  /** Adds a worker; one of that name is replaced. The result takes it away again. */
  add(worker: QueueWorker): () => void {
    const workers = this.queues.get(worker.queue) ?? new Map<string, QueueWorker>()
    this.queues.set(worker.queue, workers)
    workers.set(worker.name, worker)
    return () => {
      if (workers.get(worker.name) === worker) workers.delete(worker.name)
    }
  }

  get(queue: string, name: string): QueueWorker | undefined {
    return this.queues.get(queue)?.get(name)
  }

  /** Names of the workers of a queue, sorted. */
  namesOf(queue: string): ReadonlyArray<string> {
    return [...(this.queues.get(queue)?.keys() ?? [])].sort()
  }
}
