// Jobs that listen, over gRPC. What this client cannot say there (a denial, a correction) is in rest-listeners.test.js.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Code, assertNone, client, complete, deploy, fail, plain, pollOne, refused } from '../support/server.js'
import { incident, needsRecords } from '../support/records.js'

test('listeners surround the work of an element', async () => {
  const model = await deploy('listeners')
  const result = model.createWithResult({ a: 1 })
  const before = await pollOne(model.jobType('before'))
  assert.deepEqual([before.elementId, before.retries], ['work', 2])
  await assertNone(model.jobType('work'))
  await refused(Code.FAILED_PRECONDITION, client.throwError({ jobKey: before.key, errorCode: 'E' }))
  await complete(before, { own: 1 })
  const work = await pollOne(model.jobType('work'))
  assert.deepEqual(plain(work.variables), { a: 1, own: 1 })
  await complete(work, { done: true })
  await complete(await pollOne(model.jobType('after')), { heard: true })
  assert.deepEqual(plain((await result).variables), { a: 1, done: true, heard: true })
})

test('a listener that fails is an incident of its own', needsRecords, async () => {
  const model = await deploy('listeners')
  const instance = await model.create()
  const before = await pollOne(model.jobType('before'))
  await fail(before, 0, 'deaf')
  const found = await incident(instance)
  assert.deepEqual([found.errorType, found.errorMessage], ['EXECUTION_LISTENER_NO_RETRIES', 'deaf'])
  await client.updateJobRetries({ jobKey: before.key, retries: 1 })
  await client.resolveIncident({ incidentKey: found.key })
  await complete(await pollOne(model.jobType('before')))
  await pollOne(model.jobType('work'))
})

test('a user task waits for its listeners when it begins and when it is cancelled', async () => {
  const model = await deploy('task-listeners')
  const instance = await model.create()
  const creating = await pollOne(model.jobType('creating'))
  assert.equal(creating.processInstanceKey, instance)
  await complete(creating)
  await client.cancelProcessInstance(instance)
  const canceling = await pollOne(model.jobType('canceling'))
  await complete(canceling)
  await refused(Code.NOT_FOUND, complete(canceling))
  await refused(Code.NOT_FOUND, client.cancelProcessInstance(instance))
})
