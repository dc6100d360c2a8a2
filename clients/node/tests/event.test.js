// Timers and errors, and what calls and repeats other elements.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import {
  Code,
  activate,
  assertNone,
  client,
  complete,
  deploy,
  plain,
  poll,
  pollOne,
  refused,
} from '../support/server.js'

test('a pause holds the instance back, and reminders come during the task', async () => {
  const model = await deploy('timers')
  const start = Date.now()
  const instance = await model.create({ pause: 'PT1S', reminders: 'R1/PT0.5S', limit: 'PT1H' })

  const work = await pollOne(model.jobType('work'))
  assert.ok(Date.now() - start >= 998, 'too early')
  await complete(await pollOne(model.jobType('remind')))

  await complete(work)
  await refused(Code.NOT_FOUND, client.cancelProcessInstance(instance))
})

test('a limit ends the task', async () => {
  const model = await deploy('timers')
  const instance = await model.create({ pause: 'PT0S', reminders: 'R1/PT1H', limit: 'PT1S' })
  // On a slow machine the limit may come before anybody has the job.
  const work = await activate(model.jobType('work'))

  const escalate = await pollOne(model.jobType('escalate'))

  assert.equal(escalate.processInstanceKey, instance)
  for (const job of work) await refused(Code.NOT_FOUND, complete(job))
  await complete(escalate)
  await refused(Code.NOT_FOUND, client.cancelProcessInstance(instance))
})

test('time starts instances', async () => {
  const model = await deploy('timer-start')

  const jobs = await poll(model.jobType('work'), 2)

  assert.notEqual(jobs[0].processInstanceKey, jobs[1].processInstanceKey)
})

for (const [errorCode, handler, seen] of [
  ['OUT_OF_STOCK', 'reorder', { a: 1, missing: 'honey' }],
  ['STUNG', 'apologise', { a: 1 }],
]) {
  test(`an error is caught by its event: ${errorCode}`, async () => {
    const model = await deploy('error-boundary')
    const result = model.createWithResult({ a: 1 })
    const work = await pollOne(model.jobType('work'))

    await client.throwError({ jobKey: work.key, errorCode, variables: { item: 'honey' } })

    const handling = await pollOne(model.jobType(handler))
    assert.deepEqual(plain(handling.variables), seen)
    await refused(Code.NOT_FOUND, complete(work))
    await complete(handling)
    assert.deepEqual(plain((await result).variables), seen)
  })
}

test('a called instance gets variables and gives variables', async () => {
  const called = await deploy('one-task')
  const caller = await deploy('call-activity')
  const result = caller.createWithResult({ called: called.id, a: 1 })

  const work = await pollOne(called.jobType('work'))
  assert.deepEqual(plain(work.variables), { called: called.id, a: 1 })
  await complete(work, { b: 2 })
  const after = await pollOne(caller.jobType('after'))
  assert.notEqual(after.processInstanceKey, work.processInstanceKey)
  await complete(after)

  assert.deepEqual(plain((await result).variables), { called: called.id, a: 1, b: 2 })
})

test('cancelling the caller cancels the called, which cannot be cancelled alone', async () => {
  const called = await deploy('one-task')
  const caller = await deploy('call-activity')
  const instance = await caller.create({ called: called.id })
  const work = await pollOne(called.jobType('work'))

  const cancel = client.cancelProcessInstance(work.processInstanceKey)
  const message = await refused(Code.FAILED_PRECONDITION, cancel)
  assert.ok(message.includes(instance), message)
  await client.cancelProcessInstance(instance)

  await refused(Code.NOT_FOUND, complete(work))
})

test('items are worked on together, and then one by one until enough are done', async () => {
  const model = await deploy('multi-instance')
  const result = model.createWithResult({ items: ['a', 'b', 'c'], enough: 2 })

  const checks = await poll(model.jobType('check'), 3)
  for (const check of checks.reverse()) await complete(check, { verdict: `${check.variables.item}!` })
  for (const n of [1, 2]) {
    const pack = await pollOne(model.jobType('pack'))
    assert.equal(pack.variables.loopCounter, n)
    await complete(pack)
  }

  const { checked, packed } = plain((await result).variables)
  assert.deepEqual([checked, packed], [['a!', 'b!', 'c!'], [1, 2, null]])
  await assertNone(model.jobType('pack'))
})
