// Starting anywhere, moving and migrating instances, and deleting what was deployed.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import {
  Code,
  UNKNOWN_KEY,
  client,
  complete,
  deploy,
  fail,
  needsFullGateway,
  plain,
  poll,
  pollOne,
  refused,
} from '../support/server.js'

function activate(elementId, variableInstructions = []) {
  return { elementId, ancestorElementInstanceKey: '-1', variableInstructions }
}

test('an instance starts at the elements that are named', async () => {
  const model = await deploy('sub-process')
  const create = (elementId) =>
    client.createProcessInstance({
      bpmnProcessId: model.id,
      variables: { order: { items: [] } },
      startInstructions: [{ elementId }],
    })

  const created = await create('box')

  assert.equal((await pollOne(model.jobType('box'))).processInstanceKey, created.processInstanceKey)
  const message = await refused(Code.INVALID_ARGUMENT, create('nowhere'))
  assert.ok(message.includes('nowhere'), message)
})

test('one element ends and another begins', async () => {
  const model = await deploy('two-tasks')
  const result = model.createWithResult({ a: 1 })
  const first = await pollOne(model.jobType('first'))

  await client.modifyProcessInstance({
    processInstanceKey: first.processInstanceKey,
    activateInstructions: [
      activate('second', [
        { variables: { b: 2 }, scopeId: '' },
        { variables: { local: 3 }, scopeId: 'second' },
      ]),
    ],
    terminateInstructions: [{ elementInstanceKey: first.elementInstanceKey }],
  })

  await refused(Code.NOT_FOUND, complete(first))
  const second = await pollOne(model.jobType('second'))
  assert.deepEqual(plain(second.variables), { a: 1, b: 2, local: 3 })
  await complete(second)
  assert.deepEqual(plain((await result).variables), { a: 1, b: 2 })
})

test('nothing happens when one instruction is wrong', async () => {
  const model = await deploy('two-tasks')
  const instance = await model.create()
  const first = await pollOne(model.jobType('first'))
  const modify = (processInstanceKey, elementId) =>
    client.modifyProcessInstance({
      processInstanceKey,
      activateInstructions: [activate(elementId)],
      terminateInstructions: [{ elementInstanceKey: first.elementInstanceKey }],
    })

  const message = await refused(Code.INVALID_ARGUMENT, modify(instance, 'third'))
  assert.ok(message.includes('third'), message)
  await refused(Code.NOT_FOUND, modify(UNKNOWN_KEY, 'second'))

  await complete(first)
  await pollOne(model.jobType('second'))
})

test('an instance goes on in another definition', async () => {
  const source = await deploy('one-task')
  const target = await deploy('two-tasks')
  const instance = await source.create()
  const work = await pollOne(source.jobType('work'))
  const migrate = (sourceElementId, targetElementId) =>
    client.migrateProcessInstance({
      processInstanceKey: instance,
      migrationPlan: {
        targetProcessDefinitionKey: target.process.processDefinitionKey,
        mappingInstructions: [{ sourceElementId, targetElementId }],
      },
    })

  await refused(Code.FAILED_PRECONDITION, migrate('start', 'start'))
  await refused(Code.INVALID_ARGUMENT, migrate('work', 'third'))
  await migrate('work', 'first')

  await fail(work, 3)
  const again = await pollOne(source.jobType('work'))
  assert.deepEqual([again.key, again.bpmnProcessId, again.elementId], [work.key, target.id, 'first'])
  await complete(again)
  assert.equal((await pollOne(target.jobType('second'))).processInstanceKey, instance)
})

test('a process is deleted when no instance runs', needsFullGateway, async () => {
  const model = await deploy('one-task')
  const resourceKey = model.process.processDefinitionKey
  // The partition that decides, the first, knows the instances that run there.
  let instances = 1
  while (BigInt(await model.create()) >> 51n !== 1n) instances++

  const message = await refused(Code.FAILED_PRECONDITION, client.deleteResource({ resourceKey }))
  assert.ok(message.includes('still running instances'), message)
  for (const job of await poll(model.jobType('work'), instances)) await complete(job)
  await client.deleteResource({ resourceKey })

  await refused(Code.NOT_FOUND, model.create())
  await refused(Code.NOT_FOUND, client.deleteResource({ resourceKey }))
})
