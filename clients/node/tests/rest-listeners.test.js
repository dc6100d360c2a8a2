// Jobs that listen to elements and user tasks, and conditions, over REST.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { client, deploy, needsRest, now, poll, refused } from '../support/rest.js'
import { UNKNOWN_KEY } from '../support/server.js'

const check = (name, test_) => test(name, needsRest, test_)

check('jobs of listeners say what they are, and are found by it', async () => {
  const { id } = await deploy('listeners')
  const { processInstanceKey } = await client.createProcessInstance({ processDefinitionId: id })
  const before = await poll(`${id}-before`)
  assert.deepEqual([before.kind, before.listenerEventType, before.retries], ['EXECUTION_LISTENER', 'START', 2])
  await refused(409, 'INVALID_STATE', client.throwJobError({ jobKey: before.jobKey, errorCode: 'E' }))
  await client.completeJob({ jobKey: before.jobKey, variables: { own: 1 } })
  const work = await poll(`${id}-work`)
  assert.deepEqual([work.kind, work.listenerEventType], ['BPMN_ELEMENT', 'UNSPECIFIED'])
  assert.deepEqual(work.variables, { own: 1 })
  await client.completeJob({ jobKey: work.jobKey })
  const after = await poll(`${id}-after`)
  const search = async (filter) =>
    (await client.searchJobs({ filter: { processInstanceKey, ...filter } }, now)).items.map((job) => job.jobKey)
  assert.deepEqual((await search({ kind: 'EXECUTION_LISTENER' })).sort(), [before.jobKey, after.jobKey].sort())
  assert.deepEqual(await search({ listenerEventType: 'END' }), [after.jobKey])
  await client.completeJob({ jobKey: after.jobKey })
  assert.equal((await client.getProcessInstance({ processInstanceKey }, now)).state, 'COMPLETED')
})

// A user task whose listeners have let it begin.
async function start() {
  const { id } = await deploy('task-listeners')
  const { processInstanceKey } = await client.createProcessInstance({ processDefinitionId: id })
  await client.completeJob({ jobKey: (await poll(`${id}-creating`)).jobKey, result: { type: 'userTask' } })
  const { items } = await client.searchUserTasks({ filter: { processInstanceKey } }, now)
  assert.deepEqual(items.map((task) => task.state), ['CREATED'])
  const { userTaskKey } = items[0]
  const task = async () => client.getUserTask({ userTaskKey }, now)
  // What a listener answers to what was asked.
  const hear = async (event, result) => {
    const job = await poll(`${id}-${event}`)
    assert.deepEqual([job.kind, job.listenerEventType], ['TASK_LISTENER', event.toUpperCase()])
    await client.completeJob({ jobKey: job.jobKey, result: { type: 'userTask', ...result } })
    return job
  }
  return { processInstanceKey, userTaskKey, task, hear }
}

const denial = { denied: true, deniedReason: 'not now' }
const denied = async (call) => assert.match(await refused(409, 'INVALID_STATE', call), /Reason to deny: 'not now'/)

check('an assignment is denied, and corrected', async () => {
  const { userTaskKey, task, hear } = await start()
  let asked = client.assignUserTask({ userTaskKey, assignee: 'ann', action: 'claim' })
  const [job] = await Promise.all([hear('assigning', denial), denied(asked)])
  assert.deepEqual([job.userTask.assignee, job.userTask.action], ['ann', 'claim'])
  assert.deepEqual(job.userTask.changedAttributes, ['assignee'])
  assert.equal((await task()).assignee, null)
  asked = client.assignUserTask({ userTaskKey, assignee: 'ann' })
  const corrections = {
    ...{ assignee: 'bob', candidateUsers: ['eve'], candidateGroups: ['legal'], priority: 70 },
    ...{ dueDate: '2098-01-31T09:00:00Z', followUpDate: null },
  }
  await Promise.all([asked, hear('assigning', { corrections })])
  const { assignee, candidateUsers, candidateGroups, priority, dueDate, followUpDate } = await task()
  const corrected = { assignee, candidateUsers, candidateGroups, priority, dueDate, followUpDate }
  assert.deepEqual(corrected, { ...corrections, dueDate: '2098-01-31T09:00:00.000Z' })
})

check('an update and a completion are denied, and accepted', async () => {
  const { processInstanceKey, userTaskKey, task, hear } = await start()
  const update = () => client.updateUserTask({ userTaskKey, changeset: { priority: 80 } })
  await Promise.all([hear('updating', denial), denied(update())])
  assert.equal((await task()).priority, 50)
  await Promise.all([hear('updating', { corrections: { priority: 81 } }), update()])
  assert.equal((await task()).priority, 81)
  const complete = () => client.completeUserTask({ userTaskKey, variables: { answer: 'yes' } })
  const [job] = await Promise.all([hear('completing', denial), denied(complete())])
  assert.deepEqual(job.variables, { answer: 'yes' })
  assert.equal((await task()).state, 'CREATED')
  await Promise.all([hear('completing', { denied: false }), complete()])
  assert.equal((await task()).state, 'COMPLETED')
  const filter = { processInstanceKey, isDenied: true, deniedReason: 'not now' }
  assert.equal((await client.searchJobs({ filter }, now)).page.totalItems, 2)
})

check('a listener cannot deny and correct at once', async () => {
  const { processInstanceKey, userTaskKey, task, hear } = await start()
  const asked = client.assignUserTask({ userTaskKey, assignee: 'ann' })
  const wrong = hear('assigning', { ...denial, corrections: { priority: 3 } })
  assert.match(await refused(400, 'INVALID_ARGUMENT', wrong), /give one of the two/)
  const filter = { processInstanceKey, listenerEventType: 'ASSIGNING', state: 'CREATED' }
  const [job] = (await client.searchJobs({ filter }, now)).items
  await client.completeJob({ jobKey: job.jobKey })
  await asked
  assert.equal((await task()).assignee, 'ann')
})

check('conditions start instances and are waited for', async () => {
  const { id, process } = await deploy('conditions')
  const variables = { place: id, stock: 10 }
  assert.deepEqual((await client.evaluateConditionals({ variables })).processInstances, [])
  const evaluated = await client.evaluateConditionals({ variables: { ...variables, stock: 11 } })
  const [started] = evaluated.processInstances
  assert.equal(started.processDefinitionKey, process.processDefinitionKey)
  const elementInstanceKey = started.processInstanceKey
  await client.createElementInstanceVariables({ elementInstanceKey, variables: { weight: 6 } })
  assert.deepEqual((await poll(`${id}-send`)).variables, { place: id, stock: 11, weight: 6 })
  await client.createElementInstanceVariables({ elementInstanceKey, variables: { address: 'elsewhere' } })
  await client.completeJob({ jobKey: (await poll(`${id}-redirect`)).jobKey })
  const { state } = await client.getProcessInstance({ processInstanceKey: started.processInstanceKey }, now)
  assert.equal(state, 'COMPLETED')
  const unknown = { processDefinitionKey: UNKNOWN_KEY, variables }
  await refused(404, 'NOT_FOUND', client.evaluateConditionals(unknown))
})
