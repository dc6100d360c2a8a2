import assert from 'node:assert/strict'
import { test } from 'node:test'
import {
  Code,
  client,
  complete,
  deploy,
  deployText,
  modelText,
  poll,
  pollOne,
  refused,
  uniqueId,
} from '../support/server.js'

async function twoVersions() {
  const id = uniqueId('two-versions')
  await deployText('one.bpmn', modelText('one-task', id))
  await deployText('two.bpmn', modelText('two-tasks', id))
  return id
}

test('by id takes the latest version', async () => {
  const id = await twoVersions()

  const created = await client.createProcessInstance({ bpmnProcessId: id, variables: {} })

  assert.equal(created.bpmnProcessId, id)
  assert.equal(created.version, 2)
  assert.equal((await pollOne(`${id}-first`)).processInstanceKey, created.processInstanceKey)
})

test('by version takes that version', async () => {
  const id = await twoVersions()

  const created = await client.createProcessInstance({ bpmnProcessId: id, version: 1, variables: {} })

  assert.equal(created.version, 1)
  assert.equal((await pollOne(`${id}-work`)).processInstanceKey, created.processInstanceKey)
})

test('every instance has its own key and its own job', async () => {
  const model = await deploy('one-task')
  const created = new Set()
  for (let n = 0; n < 30; n++) created.add(await model.create({ n }))

  const worked = await poll(model.jobType('work'), 30)

  assert.equal(created.size, 30)
  assert.deepEqual(new Set(worked.map((job) => job.processInstanceKey)), created)
})

test('unknown ids and versions are not found', async () => {
  const model = await deploy('one-task')

  const message = await refused(
    Code.NOT_FOUND,
    client.createProcessInstance({ bpmnProcessId: 'no-such-process', variables: {} })
  )
  assert.ok(message.includes('no-such-process'), message)
  await refused(
    Code.NOT_FOUND,
    client.createProcessInstance({ bpmnProcessId: model.id, version: 99, variables: {} })
  )
})

test('the result holds what the workers wrote', async () => {
  const model = await deploy('two-tasks')
  const result = model.createWithResult({ a: 1, b: 1 })

  await complete(await pollOne(model.jobType('first')), { b: 2 })
  const second = await pollOne(model.jobType('second'))
  await complete(second, { c: { deep: 'ü "quoted"' } })

  const answer = await result
  assert.equal(answer.processInstanceKey, second.processInstanceKey)
  assert.deepEqual({ ...answer.variables }, { a: 1, b: 2, c: { deep: 'ü "quoted"' } })
})

test('only the asked for variables are in the result', async () => {
  const model = await deploy('straight-through')

  const answer = await model.createWithResult(
    { a: 1, b: 2, c: 3 },
    { fetchVariables: ['a', 'c', 'missing'] }
  )

  assert.deepEqual({ ...answer.variables }, { a: 1, c: 3 })
})
