// Messages that instances wait for and that start instances.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import {
  Code,
  assertNone,
  client,
  complete,
  deploy,
  hasFullGateway,
  plain,
  poll,
  pollOne,
  refused,
} from '../support/server.js'

const KEPT_MS = 300_000

function publish(model, message, correlationKey, variables = {}, options = {}) {
  return client.publishMessage({
    name: model.jobType(message),
    correlationKey,
    variables,
    timeToLive: KEPT_MS,
    ...options,
  })
}

test('a message reaches the instance that waits for it', async () => {
  const model = await deploy('messages')
  const instance = await model.create({ orderId: 'bee' })
  await model.create({ orderId: 'wasp' })

  const published = await publish(model, 'paid', 'bee', { amount: 12 })

  const job = await pollOne(model.jobType('ship'))
  assert.equal(job.processInstanceKey, instance)
  assert.deepEqual(plain(job.variables), { orderId: 'bee', amount: 12 })
  assert.ok(BigInt(published.key) > 0n)
  if (hasFullGateway) assert.equal(published.tenantId, '<default>')
})

test('kept messages wait for their instances in the order of their publication', async () => {
  const model = await deploy('messages')
  await publish(model, 'paid', 'bee', { n: 1 })
  await publish(model, 'paid', 'bee', { n: 2 })

  for (const n of [1, 2]) {
    const instance = await model.create({ orderId: 'bee' })
    const job = await pollOne(model.jobType('ship'))
    assert.equal(job.processInstanceKey, instance)
    assert.equal(job.variables.n, n)
  }
})

test('a message without time to live is not kept', async () => {
  const model = await deploy('messages')
  await publish(model, 'paid', 'bee', {}, { timeToLive: 0 })
  await model.create({ orderId: 'bee' })

  await assertNone(model.jobType('ship'))
})

test('an id is taken once for a name and key', async () => {
  const model = await deploy('messages')
  const once = { messageId: 'once' }
  await publish(model, 'paid', 'bee', {}, once)

  const message = await refused(Code.ALREADY_EXISTS, publish(model, 'paid', 'bee', {}, once))

  assert.ok(message.includes('once'), message)
  await publish(model, 'paid', 'wasp', {}, once)
  await publish(model, 'note', 'bee', {}, once)
})

test('keys of all partitions find their instances', async () => {
  const model = await deploy('messages')
  const orders = Array.from({ length: 20 }, (_, n) => `order-${n}`)
  await Promise.all(orders.map((orderId) => model.create({ orderId })))

  await Promise.all(orders.map((orderId) => publish(model, 'paid', orderId, { paid: orderId })))

  const jobs = await poll(model.jobType('ship'), orders.length)
  for (const job of jobs) assert.equal(job.variables.orderId, job.variables.paid)
  assert.equal(new Set(jobs.map((job) => job.processInstanceKey)).size, orders.length)
})

test('an event that does not interrupt takes every message', async () => {
  const model = await deploy('messages')
  await publish(model, 'paid', 'bee')
  await model.create({ orderId: 'bee' })
  const ship = await pollOne(model.jobType('ship'))

  await publish(model, 'note', 'bee', { text: 'hurry' })
  await publish(model, 'note', 'bee', { text: 'please' })

  for (const read of await poll(model.jobType('read'), 2)) {
    assert.equal(read.processInstanceKey, ship.processInstanceKey)
  }
  await complete(ship)
})

test('messages with the same key start one instance after the other', async () => {
  const model = await deploy('message-start')
  for (const n of [1, 2]) {
    await client.publishStartMessage({
      name: model.jobType('ordered'),
      correlationKey: 'bee',
      variables: { n },
      timeToLive: KEPT_MS,
    })
  }

  const first = await pollOne(model.jobType('work'))
  assert.equal(first.variables.n, 1)
  await assertNone(model.jobType('work'))
  await complete(first)

  assert.equal((await pollOne(model.jobType('work'))).variables.n, 2)
})

test('every message without a key starts an instance', async () => {
  const model = await deploy('message-start')
  for (const n of [1, 2]) {
    await client.publishStartMessage({ name: model.jobType('ordered'), variables: { n }, timeToLive: 0 })
  }

  const jobs = await poll(model.jobType('work'), 2)

  assert.notEqual(jobs[0].processInstanceKey, jobs[1].processInstanceKey)
})
