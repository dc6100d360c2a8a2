// The REST client of Camunda 8, which checks every request and every answer against the API's schema here.

import assert from 'node:assert/strict'
import { File } from 'node:buffer'
import { readFileSync } from 'node:fs'
import { test } from 'node:test'
import { incident, needsRecords } from '../support/records.js'
import { client, deploy, needsRest, now, poll, refused } from '../support/rest.js'
import { LOCK_MS, PATIENCE_MS, UNKNOWN_KEY, modelText, uniqueId } from '../support/server.js'

test('the cluster says who it is and who one is', needsRest, async () => {
  const topology = await client.getTopology()
  assert.ok(topology.partitionsCount >= 1)
  await client.getStatus()
  assert.equal((await client.getLicense()).isCommercial, false)
  assert.equal((await client.getAuthentication()).username, 'anonymous')
})

test('an instance is created, worked on and ended', needsRest, async () => {
  const { id, process } = await deploy('one-task')
  assert.equal(process.processDefinitionId, id)
  const created = await client.createProcessInstance({ processDefinitionId: id, variables: { a: 1 }, tags: ['t'] })
  assert.equal(created.processDefinitionKey, process.processDefinitionKey)
  assert.deepEqual(created.tags, ['t'])
  const job = await poll(`${id}-work`)
  assert.equal(job.processInstanceKey, created.processInstanceKey)
  assert.deepEqual(job.variables, { a: 1 })
  assert.equal(job.kind, 'BPMN_ELEMENT')
  await client.completeJob({ jobKey: job.jobKey, variables: { b: 2 } })
  const detail = await refused(404, 'NOT_FOUND', client.completeJob({ jobKey: job.jobKey }))
  assert.match(detail, /^Command 'COMPLETE' rejected with code 'NOT_FOUND'/)
  await refused(
    404,
    'NOT_FOUND',
    client.cancelProcessInstance({ processInstanceKey: created.processInstanceKey })
  )
})

test('who waits for the end gets the variables', needsRest, async () => {
  const { id, process } = await deploy('one-task')
  const ended = client.createProcessInstance({
    processDefinitionKey: process.processDefinitionKey,
    variables: { a: 'ä', c: 3 },
    awaitCompletion: true,
    fetchVariables: ['a', 'b'],
    requestTimeout: PATIENCE_MS,
  })
  const job = await poll(`${id}-work`, { fetchVariable: ['c'] })
  assert.deepEqual(job.variables, { c: 3 })
  await client.completeJob({ jobKey: job.jobKey, variables: { b: [1.5] } })
  assert.deepEqual((await ended).variables, { a: 'ä', b: [1.5] })
})

test('who asks in vain waits and gets an empty list', needsRest, async () => {
  const begin = Date.now()
  const request = { type: uniqueId('none'), timeout: LOCK_MS, maxJobsToActivate: 5 }
  assert.deepEqual((await client.activateJobs({ ...request, requestTimeout: 300 })).jobs, [])
  assert.ok(Date.now() - begin >= 290)
  assert.deepEqual((await client.activateJobs({ ...request, requestTimeout: -1 })).jobs, [])
})

test('a job fails, is changed, and ends with an error that nobody catches', needsRest, async () => {
  const { id } = await deploy('one-task')
  const created = await client.createProcessInstance({ processDefinitionId: id })
  const type = `${id}-work`
  let job = await poll(type)
  await client.updateJob({ jobKey: job.jobKey, changeset: { retries: 5, timeout: LOCK_MS } })
  await client.failJob({ jobKey: job.jobKey, retries: 4, errorMessage: 'not now', retryBackOff: 1 })
  job = await poll(type)
  assert.equal(job.retries, 4)
  await client.throwJobError({ jobKey: job.jobKey, errorCode: 'E', errorMessage: 'm' })
  await refused(409, 'INVALID_STATE', client.completeJob({ jobKey: job.jobKey }))
  await refused(
    400,
    'INVALID_ARGUMENT',
    client.updateJob({ jobKey: job.jobKey, changeset: { retries: 0 } })
  )
  await client.cancelProcessInstance({ processInstanceKey: created.processInstanceKey })
})

test('an incident is resolved', { skip: needsRest.skip || needsRecords.skip }, async () => {
  const { id } = await deploy('one-task')
  const { processInstanceKey } = await client.createProcessInstance({ processDefinitionId: id })
  const type = `${id}-work`
  const { jobKey } = await poll(type)
  await client.failJob({ jobKey, retries: 0, errorMessage: 'broken' })
  const incidentKey = (await incident(processInstanceKey)).key
  await refused(409, 'INVALID_STATE', client.resolveIncident({ incidentKey }))
  await client.updateJob({ jobKey, changeset: { retries: 1 } })
  await client.resolveIncident({ incidentKey })
  assert.equal((await poll(type)).jobKey, jobKey)
  await refused(404, 'NOT_FOUND', client.resolveIncident({ incidentKey }))
})

test('variables are set on the instance and on a task', needsRest, async () => {
  const { id } = await deploy('two-tasks')
  const { processInstanceKey } = await client.createProcessInstance({
    processDefinitionId: id,
    variables: { a: 1 },
  })
  const first = await poll(`${id}-first`)
  await client.createElementInstanceVariables({
    elementInstanceKey: processInstanceKey,
    variables: { a: 2, b: 3 },
  })
  await client.createElementInstanceVariables({
    elementInstanceKey: first.elementInstanceKey,
    variables: { own: true },
    local: true,
  })
  await client.completeJob({ jobKey: first.jobKey })
  assert.deepEqual((await poll(`${id}-second`)).variables, { a: 2, b: 3 })
  await refused(
    404,
    'NOT_FOUND',
    client.createElementInstanceVariables({ elementInstanceKey: UNKNOWN_KEY, variables: {} })
  )
})

test('an instance is modified and migrated', needsRest, async () => {
  const { id } = await deploy('two-tasks')
  const target = await deploy('two-tasks')
  const { processInstanceKey } = await client.createProcessInstance({ processDefinitionId: id })
  const first = await poll(`${id}-first`)
  await client.modifyProcessInstance({
    processInstanceKey,
    activateInstructions: [
      { elementId: 'second', variableInstructions: [{ variables: { set: 1 }, scopeId: '' }] },
    ],
    terminateInstructions: [{ elementInstanceKey: first.elementInstanceKey }],
  })
  const second = await poll(`${id}-second`)
  assert.deepEqual(second.variables, { set: 1 })
  const plan = (sourceElementId) => ({
    processInstanceKey,
    targetProcessDefinitionKey: target.process.processDefinitionKey,
    mappingInstructions: [{ sourceElementId, targetElementId: 'second' }],
  })
  await refused(409, 'INVALID_STATE', client.migrateProcessInstance(plan('first')))
  await client.migrateProcessInstance(plan('second'))
  await client.completeJob({ jobKey: second.jobKey })
  await refused(
    404,
    'NOT_FOUND',
    client.modifyProcessInstance({ processInstanceKey, terminateInstructions: [] })
  )
})

test('a message reaches who waits for it, and the same one comes once', needsRest, async () => {
  const name = uniqueId('message')
  const message = { name, correlationKey: 'k', timeToLive: 60_000, messageId: '1', variables: { a: 1 } }
  const published = await client.publishMessage(message)
  assert.match(published.messageKey, /^\d+$/)
  await refused(409, 'ALREADY_EXISTS', client.publishMessage(message))
})

test('a message that nobody waits for is not correlated', needsRest, async () => {
  await refused(404, 'NOT_FOUND', client.correlateMessage({ name: uniqueId('message'), correlationKey: 'k' }))
})

test('a decision is evaluated', needsRest, async () => {
  const id = uniqueId('decision')
  const file = new File([modelText('decision', id, 'dmn')], `${id}.dmn`)
  const deployed = await client.createDeployment({ resources: [file] })
  assert.equal(deployed.decisions.length, 2)
  const found = await client.evaluateDecision({
    decisionDefinitionId: `${id}-discount`,
    variables: { orders: 20 },
  })
  assert.equal(found.output, '10')
  assert.equal(found.evaluatedDecisions.length, 2)
  const failed = await client.evaluateDecision({
    decisionDefinitionId: `${id}-discount`,
    variables: { orders: -1 },
  })
  assert.equal(failed.failedDecisionDefinitionId, `${id}-level`)
  await refused(404, 'NOT_FOUND', client.evaluateDecision({ decisionDefinitionId: uniqueId('none') }))
})

test('a resource is deployed twice as one, and deleted', needsRest, async () => {
  const { id, process } = await deploy('one-task')
  const again = await deploy('one-task', id)
  assert.equal(again.process.processDefinitionKey, process.processDefinitionKey)
  const resourceKey = process.processDefinitionKey
  // Instances begin on the partitions in turn. What runs on the first one, where definitions are decided about, counts at once.
  const running = []
  do {
    const { processInstanceKey } = await client.createProcessInstance({ processDefinitionId: id })
    running.push(processInstanceKey)
  } while (BigInt(running.at(-1)) >> 51n !== 1n)
  await refused(409, 'INVALID_STATE', client.deleteResource({ resourceKey }))
  for (const processInstanceKey of running) {
    await client.cancelProcessInstance({ processInstanceKey })
  }
  assert.equal((await client.deleteResource({ resourceKey })).resourceKey, resourceKey)
  await refused(404, 'NOT_FOUND', client.deleteResource({ resourceKey }))
  await refused(404, 'NOT_FOUND', client.createProcessInstance({ processDefinitionId: id }))
})

test('what cannot be deployed says why', needsRest, async () => {
  const broken = new File([modelText('broken', uniqueId('broken'))], 'broken.bpmn')
  const detail = await refused(400, 'INVALID_ARGUMENT', client.createDeployment({ resources: [broken] }))
  assert.match(detail, /broken\.bpmn/)
})

test('a worker takes jobs by polling', needsRest, async () => {
  const { id } = await deploy('one-task')
  const seen = new Set()
  const worker = client.createJobWorker({
    jobType: `${id}-work`,
    workerName: 'suite',
    jobTimeoutMs: LOCK_MS,
    maxParallelJobs: 4,
    jobHandler: (job) => {
      seen.add(job.processInstanceKey)
      return job.complete({ done: true })
    },
  })
  const waiting = Array.from({ length: 10 }, () =>
    client.createProcessInstance({
      processDefinitionId: id,
      awaitCompletion: true,
      requestTimeout: PATIENCE_MS,
    })
  )
  for (const ended of await Promise.all(waiting)) assert.deepEqual(ended.variables, { done: true })
  assert.equal(seen.size, 10)
  await worker.stop()
})

async function deployTask() {
  const id = uniqueId('user-task')
  const text = (kind) => readFileSync(new URL(`../../shared/user-task.${kind}`, import.meta.url), 'utf8')
  const file = (kind) => new File([text(kind).replaceAll('PROCESS_ID', id)], `${id}.${kind}`)
  const deployed = await client.createDeployment({ resources: [file('bpmn'), file('form')] })
  return { id, form: deployed.deployments.find((found) => found.form).form }
}

async function startTask(id, person) {
  const created = await client.createProcessInstance({ processDefinitionId: id, variables: { person } })
  const { processInstanceKey } = created
  const found = await client.searchUserTasks({ filter: { processInstanceKey } }, { consistency: { waitUpToMs: 0 } })
  assert.equal(found.items.length, 1)
  return found.items[0]
}

test('a user task is found, given, changed and completed', needsRest, async () => {
  const { id, form } = await deployTask()
  const task = await startTask(id, 'ann')
  const { userTaskKey } = task
  const now = { consistency: { waitUpToMs: 0 } }
  const get = () => client.getUserTask({ userTaskKey }, now)
  assert.deepEqual([task.name, task.assignee, task.state, task.priority], ['Decide', 'ann', 'CREATED', 60])
  await refused(409, 'INVALID_STATE', client.assignUserTask({ userTaskKey, assignee: 'bob', allowOverride: false }))
  await client.assignUserTask({ userTaskKey, assignee: 'bob' })
  assert.equal((await get()).assignee, 'bob')
  await client.unassignUserTask({ userTaskKey })
  assert.equal((await get()).assignee, null)
  await client.updateUserTask({ userTaskKey, changeset: { candidateGroups: [], priority: 80 } })
  assert.deepEqual([(await get()).candidateGroups, (await get()).priority], [[], 80])
  assert.equal((await client.getUserTaskForm({ userTaskKey }, now)).formKey, form.formKey)
  const seen = await client.searchUserTaskVariables({ userTaskKey }, now)
  assert.deepEqual(seen.items.map((variable) => variable.name).sort(), ['person', 'who'])
  await client.completeUserTask({ userTaskKey, variables: { answer: 'yes' }, action: 'approve' })
  assert.equal((await get()).state, 'COMPLETED')
  await refused(404, 'NOT_FOUND', client.completeUserTask({ userTaskKey }))
})

test('a user task is refused what does not fit', needsRest, async () => {
  const { id } = await deployTask()
  const { userTaskKey } = await startTask(id, 'ann')
  const unknown = UNKNOWN_KEY
  await refused(404, 'NOT_FOUND', client.assignUserTask({ userTaskKey: unknown, assignee: 'bob' }))
  await refused(404, 'NOT_FOUND', client.unassignUserTask({ userTaskKey: unknown }))
  await refused(404, 'NOT_FOUND', client.updateUserTask({ userTaskKey: unknown, changeset: { priority: 1 } }))
})

test('a signal starts an instance and reaches who waits for it', needsRest, async () => {
  const { id } = await deploy('signals')
  const opened = await client.broadcastSignal({ signalName: `${id}-open`, variables: { a: 1 } })
  assert.match(opened.signalKey, /^\d+$/)
  const find = () => client.searchProcessInstances({ filter: { processDefinitionId: id } }, now)
  assert.equal((await find()).items.length, 1)
  // It reaches other partitions a moment later.
  await client.broadcastSignal({ signalName: `${id}-close`, variables: { b: 2 } })
  assert.deepEqual((await poll(`${id}-tidy`)).variables, { a: 1, b: 2 })
  await refused(400, 'INVALID_ARGUMENT', client.broadcastSignal({ signalName: '' }))
})

test('the tasks of an ad-hoc sub-process are begun when asked for', needsRest, async () => {
  const { id } = await deploy('ad-hoc')
  const { processInstanceKey } = await client.createProcessInstance({
    processDefinitionId: id,
    variables: { done: false },
  })
  const filter = { processInstanceKey, type: 'AD_HOC_SUB_PROCESS' }
  const [scope] = (await client.searchElementInstances({ filter }, now)).items
  const activate = (elements) =>
    client.activateAdHocSubProcessActivities({
      adHocSubProcessInstanceKey: scope.elementInstanceKey,
      elements: elements.map((elementId) => ({ elementId })),
    })
  await activate(['wash', 'dry'])
  await client.completeJob({ jobKey: (await poll(`${id}-wash`)).jobKey })
  await refused(404, 'NOT_FOUND', activate(['iron']))
  await client.completeJob({ jobKey: (await poll(`${id}-dry`)).jobKey, variables: { done: true } })
  const ended = await client.getProcessInstance({ processInstanceKey }, now)
  assert.equal(ended.state, 'COMPLETED')
})

test('all incidents of an instance are resolved at once', needsRest, async () => {
  const { id } = await deploy('one-task')
  const { processInstanceKey } = await client.createProcessInstance({ processDefinitionId: id })
  const { jobKey } = await poll(`${id}-work`)
  await client.failJob({ jobKey, retries: 0, errorMessage: 'broken' })
  const resolved = await client.resolveProcessInstanceIncidents({ processInstanceKey })
  assert.equal(resolved.batchOperationType, 'RESOLVE_INCIDENT')
  assert.equal((await poll(`${id}-work`)).jobKey, jobKey)
})

test('an instance is begun in its middle and ended after an element', needsRest, async () => {
  const { id } = await deploy('two-tasks')
  const created = await client.createProcessInstance({
    processDefinitionId: id,
    startInstructions: [{ elementId: 'second' }],
    runtimeInstructions: [{ type: 'TERMINATE_PROCESS_INSTANCE', afterElementId: 'second' }],
  })
  await client.completeJob({ jobKey: (await poll(`${id}-second`)).jobKey })
  const { processInstanceKey } = created
  assert.equal((await client.getProcessInstance({ processInstanceKey }, now)).state, 'TERMINATED')
  await refused(
    400,
    'INVALID_ARGUMENT',
    client.createProcessInstance({ processDefinitionId: id, startInstructions: [{ elementId: 'nothing' }] })
  )
})

test('what is not there yet says so', needsRest, async () => {
  await refused(501, 'UNIMPLEMENTED', client.searchUsers({}, now))
})
