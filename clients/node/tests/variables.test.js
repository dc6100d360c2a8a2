import assert from 'node:assert/strict'
import { test } from 'node:test'
import {
  Code,
  UNKNOWN_KEY,
  client,
  complete,
  deploy,
  fail,
  plain,
  pollOne,
  refused,
} from '../support/server.js'

test('every kind of JSON value comes back as it went', async () => {
  const model = await deploy('straight-through')
  const variables = {
    text: 'quote " backslash \\ newline \n bee \u{1F41D}',
    integer: 42,
    negative: -1,
    decimal: 0.25,
    yes: true,
    nothing: null,
    list: [1, 'two', null, []],
    object: { a: { b: [{}] } },
    'a name with spaces': 'x',
  }

  const answer = await model.createWithResult(variables)

  assert.deepEqual(plain(answer.variables), variables)
})

test('set on the instance changes what tasks see', async () => {
  const model = await deploy('two-tasks')
  const instance = await model.create({ a: 1, b: 1 })
  const first = await pollOne(model.jobType('first'))

  await client.setVariables({
    elementInstanceKey: instance,
    variables: { b: 2, c: 3 },
    local: false,
  })
  await complete(first)

  const second = await pollOne(model.jobType('second'))
  assert.deepEqual(plain(second.variables), { a: 1, b: 2, c: 3 })
})

test('local variables stay with their element', async () => {
  const model = await deploy('two-tasks')
  await model.create({ a: 1 })
  const first = await pollOne(model.jobType('first'))

  await client.setVariables({
    elementInstanceKey: first.elementInstanceKey,
    variables: { a: 2, b: 2 },
    local: true,
  })
  await fail(first, 1)
  const again = await pollOne(model.jobType('first'))
  assert.deepEqual(plain(again.variables), { a: 2, b: 2 })
  await complete(again)

  assert.deepEqual(plain((await pollOne(model.jobType('second'))).variables), { a: 1 })
})

test('an unknown scope is not found', async () => {
  await refused(
    Code.NOT_FOUND,
    client.setVariables({ elementInstanceKey: UNKNOWN_KEY, variables: { a: 1 }, local: false })
  )
})

test('mappings compute what a task sees and what leaves it', async () => {
  const model = await deploy('mappings')
  const order = { customer: 'Ada', quantity: 3, unitPrice: 7 }
  const result = model.createWithResult({ order })

  const job = await pollOne(model.jobType('price'))
  assert.deepEqual(plain(job.variables), {
    order,
    customer: 'Ada',
    total: 21,
    text: 'order of Ada',
  })
  await complete(job, { discounted: 20, internal: 'stays here' })

  assert.deepEqual(plain((await result).variables), { order, result: { price: 20 } })
})
