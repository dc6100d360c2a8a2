// User tasks, forms and listeners over the REST client inside of the official SDK.

import assert from 'node:assert/strict'
import { call, check, client, create, deploy, firstPage, poll, refused } from '../support/sdk.js'
import { UNKNOWN_KEY, plain, uniqueId } from '../support/server.js'

async function startTask() {
  const { id } = await deploy('user-task', undefined, ['bpmn', 'form'])
  const { processInstanceKey } = await create(id, { person: 'ann' })
  const found = await client.searchUserTasks({ filter: { processInstanceKey }, page: firstPage })
  assert.equal(found.items.length, 1)
  return found.items[0]
}

check('a user task is found and read', async () => {
  const task = await startTask()
  assert.deepEqual([task.name, task.assignee, task.state], ['Decide', 'ann', 'CREATED'])
  assert.deepEqual(await client.getUserTask(task.userTaskKey), task)
  const seen = await client.searchUserTaskVariables({ userTaskKey: task.userTaskKey, page: firstPage })
  assert.deepEqual(seen.items.map((variable) => variable.name).sort(), ['person', 'who'])
  await refused(404, 'NOT_FOUND', client.getUserTask(UNKNOWN_KEY))
})

check('a user task is given, taken away and completed', async () => {
  const { userTaskKey } = await startTask()
  const task = () => client.getUserTask(userTaskKey)
  await refused(409, 'INVALID_STATE', client.assignUserTask({ userTaskKey, assignee: 'bob', allowOverride: false }))
  await client.assignUserTask({ userTaskKey, assignee: 'bob' })
  assert.equal((await task()).assignee, 'bob')
  await client.unassignUserTask({ userTaskKey })
  assert.equal((await task()).assignee, null)
  // The client sends a change to a path that the API does not have.
  await refused(404, 'Not Found', client.updateUserTask({ userTaskKey, changeset: { priority: 80 } }))
  await client.completeUserTask({ userTaskKey, variables: { answer: 'yes' } })
  assert.equal((await task()).state, 'COMPLETED')
  await refused(404, 'NOT_FOUND', client.completeUserTask({ userTaskKey }))
})

check('tasks are found by who is to do them, in order', async () => {
  const person = uniqueId('ann')
  const { id } = await deploy('user-task', undefined, ['bpmn', 'form'])
  const created = []
  for (const who of [person, person, 'other']) created.push((await create(id, { person: who })).processInstanceKey)
  const search = (filter, more = {}) =>
    client.searchUserTasks({ filter: { processDefinitionId: id, ...filter }, page: firstPage, ...more })
  const sort = [{ field: 'creationDate', order: 'DESC' }]
  const found = await search({ assignee: person, state: 'CREATED' }, { sort })
  assert.deepEqual(found.items.map((task) => task.processInstanceKey), [created[1], created[0]])
  assert.equal((await search({ candidateGroup: 'sales' })).page.totalItems, 3)
  assert.equal((await search({ candidateGroup: 'nobody' })).page.totalItems, 0)
  assert.equal((await search({ priority: { $gt: 60 } })).page.totalItems, 0)
  const page = await search({}, { sort: [{ field: 'creationDate', order: 'ASC' }], page: { from: 2, limit: 2 } })
  assert.deepEqual(page.items.map((task) => task.processInstanceKey), [created[2]])
})

check('a task is changed at its path, and nothing is that does not fit', async () => {
  const { userTaskKey } = await startTask()
  const change = (changeset) => call('PATCH', `user-tasks/${userTaskKey}`, { changeset }, false)
  await change({ priority: 80, candidateGroups: ['legal'], followUpDate: '2098-01-31T09:00:00Z' })
  const changed = await client.getUserTask(userTaskKey)
  assert.deepEqual([changed.priority, plain(changed.candidateGroups)], [80, ['legal']])
  assert.equal(changed.followUpDate, '2098-01-31T09:00:00.000Z')
  assert.match(await refused(400, 'INVALID_ARGUMENT', change({ priority: 101 })), /priority/)
  await refused(400, 'INVALID_ARGUMENT', change({ dueDate: 'tomorrow' }))
  assert.equal((await client.getUserTask(userTaskKey)).priority, 80)
})

check('a task and a process have their forms', async () => {
  const task = await startTask()
  const form = await call('GET', `user-tasks/${task.userTaskKey}/form`)
  assert.deepEqual([form.formKey, form.version], [task.formKey, 1])
  assert.match(form.schema, /textfield/)
  const ofProcess = await call('GET', `process-definitions/${task.processDefinitionKey}/form`)
  assert.equal(ofProcess.formKey, form.formKey)
  await refused(404, 'NOT_FOUND', call('GET', `user-tasks/${UNKNOWN_KEY}/form`))
})

check('commands on a task that there is not are refused', async () => {
  const userTaskKey = UNKNOWN_KEY
  await refused(404, 'NOT_FOUND', client.assignUserTask({ userTaskKey, assignee: 'bob' }))
  await refused(404, 'NOT_FOUND', client.unassignUserTask({ userTaskKey }))
  const detail = await refused(404, 'NOT_FOUND', client.completeUserTask({ userTaskKey }))
  assert.match(detail, new RegExp(userTaskKey))
})

check('a listener denies a completion, and corrects an assignment', async () => {
  const { id } = await deploy('task-listeners')
  const { processInstanceKey } = await create(id)
  await (await poll(`${id}-creating`)).complete()
  const { items } = await client.searchUserTasks({ filter: { processInstanceKey }, page: firstPage })
  const { userTaskKey } = items[0]
  // The client itself cannot say what a listener decides.
  const hear = async (event, result) => {
    const job = await poll(`${id}-${event}`)
    assert.deepEqual([job.kind, job.listenerEventType], ['TASK_LISTENER', event.toUpperCase()])
    await call('POST', `jobs/${job.jobKey}/completion`, { result: { type: 'userTask', ...result } }, false)
  }
  const denied = refused(409, 'INVALID_STATE', client.completeUserTask({ userTaskKey }))
  await hear('completing', { denied: true, deniedReason: 'not now' })
  assert.match(await denied, /Reason to deny: 'not now'/)
  const asked = client.assignUserTask({ userTaskKey, assignee: 'ann' })
  await hear('assigning', { corrections: { assignee: 'bob', priority: 70 } })
  await asked
  const task = await client.getUserTask(userTaskKey)
  assert.deepEqual([task.assignee, task.priority, task.state], ['bob', 70, 'CREATED'])
})

check('listeners surround the work of an element', async () => {
  const { id } = await deploy('listeners')
  const { processInstanceKey } = await create(id)
  const before = await poll(`${id}-before`)
  assert.deepEqual([before.kind, before.listenerEventType], ['EXECUTION_LISTENER', 'START'])
  await before.complete({ own: 1 })
  const work = await poll(`${id}-work`)
  assert.deepEqual(plain(work.variables), { own: 1 })
  await work.complete()
  const after = await poll(`${id}-after`)
  assert.equal(after.listenerEventType, 'END')
  await after.complete()
  const ended = await client.searchProcessInstances({ filter: { processInstanceKey }, page: firstPage })
  assert.equal(ended.items[0].state, 'COMPLETED')
})
