// Completing and failing jobs, changing their retries and locks, and cancelling what they belong to.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import {
  Code,
  UNKNOWN_KEY,
  assertNone,
  client,
  complete,
  deploy,
  fail,
  plain,
  pollOne,
  refused,
} from '../support/server.js'

async function oneJob() {
  const model = await deploy('one-task')
  const instance = await model.create()
  return { type: model.jobType('work'), instance, job: await pollOne(model.jobType('work')) }
}

test('completion variables reach the next task', async () => {
  const model = await deploy('two-tasks')
  await model.create({ kept: 'yes', changed: 1 })

  await complete(await pollOne(model.jobType('first')), { changed: 2, fresh: { x: true } })

  const second = await pollOne(model.jobType('second'))
  assert.deepEqual(plain(second.variables), { kept: 'yes', changed: 2, fresh: { x: true } })
  assert.equal(second.retries, 5)
})

test('completing twice is not found', async () => {
  const { job } = await oneJob()
  await complete(job)

  const message = await refused(Code.NOT_FOUND, complete(job))

  assert.ok(message.includes(job.key), message)
})

test('an unknown job is not found for every command', async () => {
  const job = { key: UNKNOWN_KEY }
  await refused(Code.NOT_FOUND, complete(job))
  await refused(Code.NOT_FOUND, fail(job, 1))
  await refused(Code.NOT_FOUND, client.throwError({ jobKey: UNKNOWN_KEY, errorCode: 'E' }))
  await refused(Code.NOT_FOUND, client.updateJobRetries({ jobKey: UNKNOWN_KEY, retries: 1 }))
  await refused(Code.NOT_FOUND, client.updateJobTimeout({ jobKey: UNKNOWN_KEY, timeout: 1000 }))
})

test('a failed job is available again with the given retries', async () => {
  const { type, job } = await oneJob()

  await fail(job, 7, 'try again')

  const again = await pollOne(type)
  assert.equal(again.key, job.key)
  assert.equal(again.retries, 7)
})

test('a failed job waits for its backoff', async () => {
  const { type, job } = await oneJob()
  const start = Date.now()

  await fail(job, 2, 'later', 2000)

  const again = await pollOne(type)
  assert.equal(again.key, job.key)
  assert.ok(Date.now() - start >= 1990)
})

test('a shorter lock frees the job earlier', async () => {
  const { type, job } = await oneJob()

  await client.updateJobTimeout({ jobKey: job.key, timeout: 100 })

  assert.equal((await pollOne(type)).key, job.key)
})

test('retries of an activated job can be updated', async () => {
  const { type, job } = await oneJob()

  await client.updateJobRetries({ jobKey: job.key, retries: 9 })
  await client.updateJobTimeout({ jobKey: job.key, timeout: 100 })

  assert.equal((await pollOne(type)).retries, 9)
  await refused(Code.INVALID_ARGUMENT, client.updateJobRetries({ jobKey: job.key, retries: 0 }))
})

test('the jobs of a cancelled instance are gone', async () => {
  const model = await deploy('parallel-gateway')
  const instance = await model.create()
  const inWork = await pollOne(model.jobType('a'))

  await client.cancelProcessInstance(instance)

  await assertNone(model.jobType('b'))
  await refused(Code.NOT_FOUND, complete(inWork))
})

test('cancelling what has ended is not found', async () => {
  const { instance, job } = await oneJob()
  await complete(job)
  const other = await oneJob()
  await client.cancelProcessInstance(other.instance)

  for (const key of [instance, other.instance, UNKNOWN_KEY]) {
    const message = await refused(Code.NOT_FOUND, client.cancelProcessInstance(key))
    assert.ok(message.includes(key), message)
  }
})
