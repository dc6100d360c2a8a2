// Jobs pushed over a stream. This client polls once when it opens a stream and then rarely, so what arrives later was
// pushed.

import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import {
  LOCK_MS,
  PATIENCE_MS,
  activate,
  assertNone,
  client,
  complete,
  connect,
  deploy,
  fail,
  needsFullGateway,
  plain,
} from '../support/server.js'

const streaming = connect()
after(() => streaming.close())

// An open stream that is known to push.
async function openStream(model) {
  const jobs = []
  const givenUp = new Set()
  const stream = await streaming.streamJobs({
    type: model.jobType('work'),
    worker: 'streaming-suite',
    timeout: LOCK_MS,
    pollInterval: 0,
    tenantIds: ['<default>'],
    taskHandler: (job) => {
      if (!givenUp.has(job.processInstanceKey)) jobs.push(job)
      return job.forward()
    },
  })
  const next = async (patienceMs = PATIENCE_MS) => {
    const end = Date.now() + patienceMs
    while (jobs.length === 0 && Date.now() < end) await sleep(5)
    return jobs.shift()
  }
  // A job that was waited for in vain may still be on its way.
  const giveUp = (instance) => {
    givenUp.add(instance)
    for (let n = jobs.length - 1; n >= 0; n--) if (jobs[n].processInstanceKey === instance) jobs.splice(n, 1)
  }
  await awaitRegistration(model, next, giveUp)
  return {
    close: () => stream.close(),
    next: async () => (await next()) ?? assert.fail('no job was pushed within 2 minutes'),
  }
}

// Opening a stream is not acknowledged, so instances are created until one is pushed.
async function awaitRegistration(model, next, giveUp) {
  for (let patienceMs = 500; patienceMs < PATIENCE_MS; patienceMs *= 2) {
    const instance = await model.create()
    const job = await next(patienceMs)
    if (job) return complete(job)
    giveUp(instance)
    await client.cancelProcessInstance(instance)
  }
  assert.fail('no job was pushed within 2 minutes after the stream was opened')
}

test('jobs are pushed with all that a worker needs', needsFullGateway, async () => {
  const model = await deploy('one-task')
  const stream = await openStream(model)
  const instance = await model.create({ a: 1 })

  const job = await stream.next()

  assert.equal(job.processInstanceKey, instance)
  assert.equal(job.worker, 'streaming-suite')
  assert.equal(job.retries, 3)
  assert.equal(job.customHeaders.color, 'blue')
  assert.deepEqual(plain(job.variables), { a: 1 })
  await assertNone(model.jobType('work'))
  await complete(job)
  stream.close()
})

test('every job is pushed once', needsFullGateway, async () => {
  const model = await deploy('one-task')
  const stream = await openStream(model)
  const created = new Set()
  for (let n = 0; n < 50; n++) created.add(await model.create())

  const seen = new Set()
  for (let n = 0; n < 50; n++) {
    const job = await stream.next()
    seen.add(job.processInstanceKey)
    await complete(job)
  }

  assert.deepEqual(seen, created)
  stream.close()
})

test('a failed job is pushed again after its backoff', needsFullGateway, async () => {
  const model = await deploy('one-task')
  const stream = await openStream(model)
  await model.create()
  const first = await stream.next()
  const start = Date.now()

  await fail(first, 2, 'later', 1000)

  const again = await stream.next()
  assert.equal(again.key, first.key)
  assert.equal(again.retries, 2)
  assert.ok(Date.now() - start >= 990)
  await complete(again)
  stream.close()
})

test('what nobody streams any more is there for polling', needsFullGateway, async () => {
  const model = await deploy('one-task')
  const stream = await openStream(model)
  stream.close()
  await sleep(200)

  // What was pushed before the server knew that the stream is closed is lost until its lock ends.
  const created = new Set()
  let jobs = []
  const end = Date.now() + PATIENCE_MS
  while (jobs.length === 0 && Date.now() < end) {
    created.add(await model.create())
    jobs = await activate(model.jobType('work'))
  }

  assert.equal(jobs.length, 1)
  assert.ok(created.has(jobs[0].processInstanceKey))
})
