// Gateways, sub-processes and every kind of task.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { assertNone, complete, deploy, plain, pollOne } from '../support/server.js'

for (const [task, variables] of [
  ['review', { amount: 1000, region: 'EU' }],
  ['automatic', { amount: 99.5, region: 'EU' }],
  ['manual-entry', { amount: 1000, region: 'US' }],
]) {
  test(`an exclusive gateway takes the flow to ${task}`, async () => {
    const model = await deploy('exclusive-gateway')
    const result = model.createWithResult(variables)

    await complete(await pollOne(model.jobType(task)), { by: task })

    assert.deepEqual(plain((await result).variables), { ...variables, by: task })
  })
}

test('a parallel gateway waits for all branches', async () => {
  const model = await deploy('parallel-gateway')
  const result = model.createWithResult()
  const a = await pollOne(model.jobType('a'))
  const b = await pollOne(model.jobType('b'))
  const c = await pollOne(model.jobType('c'))

  await complete(c, { c: 3 })
  await complete(a, { a: 1 })
  await assertNone(model.jobType('after'))
  await complete(b, { b: 2 })
  const joined = await pollOne(model.jobType('after'))

  assert.deepEqual(plain(joined.variables), { a: 1, b: 2, c: 3 })
  await complete(joined)
  assert.equal((await result).processInstanceKey, a.processInstanceKey)
})

for (const [items, task] of [
  [['a', 'b', 'c'], 'box'],
  [['a'], 'envelope'],
]) {
  test(`a sub-process decides on its own variables: ${task}`, async () => {
    const model = await deploy('sub-process')
    const order = { items }
    const result = model.createWithResult({ order })

    const job = await pollOne(model.jobType(task))
    assert.deepEqual(plain(job.variables), { order, parcel: order })
    await complete(job, { parcel: { weight: 12 }, order: 'closed' })
    await complete(await pollOne(model.jobType('ship')))

    assert.deepEqual(plain((await result).variables), { order: 'closed', parcelWeight: 12 })
  })
}

test('tasks of all kinds are done by workers or pass', async () => {
  const model = await deploy('task-kinds')
  const result = model.createWithResult()

  for (const task of ['service', 'send', 'rule', 'script']) {
    const job = await pollOne(model.jobType(task))
    assert.equal(job.elementId, task)
    await complete(job, { [task]: true })
  }

  assert.deepEqual(plain((await result).variables), {
    service: true,
    send: true,
    rule: true,
    script: true,
  })
})
