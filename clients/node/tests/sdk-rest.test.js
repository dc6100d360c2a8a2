// The REST client inside of the official SDK, which does not check what it is answered.

import assert from 'node:assert/strict'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { before, test } from 'node:test'
import { Camunda8 } from '@camunda8/sdk'
import { LOCK_MS, PATIENCE_MS, POLL_MS, UNKNOWN_KEY, modelText, plain, uniqueId } from '../support/server.js'

const address = process.env.OSMIA_HTTP_ADDRESS
const needsRest = { skip: address ? false : 'OSMIA_HTTP_ADDRESS is not set' }
const client = address
  ? new Camunda8({
      ZEEBE_REST_ADDRESS: `http://${address}`,
      CAMUNDA_OAUTH_DISABLED: true,
      CAMUNDA_AUTH_STRATEGY: 'NONE',
      CAMUNDA_LOG_LEVEL: 'none',
    }).getCamundaRestClient()
  : undefined

const check = (name, test_) => test(name, needsRest, test_)

async function deploy(name, id = uniqueId(name), kinds = ['bpmn']) {
  const resources = kinds.map((kind) => ({ name: `${id}.${kind}`, content: modelText(name, id, kind) }))
  const deployed = await client.deployResources(resources)
  return { id, process: deployed.processes[0], deployed }
}

const create = (processDefinitionId, variables = {}) =>
  client.createProcessInstance({ processDefinitionId, variables })

async function poll(type) {
  const end = Date.now() + PATIENCE_MS
  while (Date.now() < end) {
    const request = { type, worker: 'suite', timeout: LOCK_MS, maxJobsToActivate: 1, requestTimeout: POLL_MS }
    const jobs = await client.activateJobs(request)
    if (jobs.length > 0) return jobs[0]
  }
  return assert.fail(`no job of type ${type}`)
}

async function refused(status, title, call) {
  const problem = await call.then(
    () => assert.fail('the call was not refused'),
    (error) => error
  )
  assert.equal(problem.statusCode, status, String(problem.message))
  assert.equal(problem.title, title, String(problem.message))
  return problem.detail
}

const firstPage = { from: 0, limit: 100 }

// Two instances: one that has ended, one with an incident.
const of = {}
before(async () => {
  if (!client) return
  of.two = await deploy('two-tasks')
  of.done = (await create(of.two.id, { a: 'one', n: 5 })).processInstanceKey
  of.failed = (await create(of.two.id, { n: 7 })).processInstanceKey
  const jobs = [await poll(`${of.two.id}-first`), await poll(`${of.two.id}-first`)]
  for (const job of jobs) {
    if (job.processInstanceKey === of.done) await client.completeJob({ jobKey: job.jobKey, variables: { b: true } })
    else of.job = job
  }
  await client.failJob({ jobKey: of.job.jobKey, retries: 0, errorMessage: 'no paper' })
  await client.completeJob({ jobKey: (await poll(`${of.two.id}-second`)).jobKey, variables: {} })
})

check('the cluster says who it is', async () => {
  const topology = await client.getTopology()
  assert.ok(topology.brokers[0].partitions[0].partitionId >= 1)
})

check('files are deployed by their paths', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'osmia-'))
  const id = uniqueId('one-task')
  const path = join(folder, `${id}.bpmn`)
  writeFileSync(path, modelText('one-task', id))
  const deployed = await client.deployResourcesFromFiles([path])
  rmSync(folder, { recursive: true })
  assert.deepEqual([deployed.processes[0].processDefinitionId, deployed.tenantId], [id, '<default>'])
})

check('decisions, forms and processes are told apart', async () => {
  const { deployed } = await deploy('user-task', undefined, ['bpmn', 'form'])
  assert.deepEqual([deployed.processes.length, deployed.forms.length], [1, 1])
  const graph = (await deploy('decision', undefined, ['dmn'])).deployed
  assert.deepEqual([graph.decisions.length, graph.decisionRequirements.length], [2, 1])
})

check('what cannot be deployed says why', async () => {
  const detail = await refused(400, 'INVALID_ARGUMENT', deploy('broken'))
  assert.match(detail, /\.bpmn/)
})

check('who waits for the end gets the variables', async () => {
  const { id } = await deploy('straight-through')
  const ended = await client.createProcessInstanceWithResult({
    processDefinitionId: id,
    variables: { a: 'ä' },
    requestTimeout: PATIENCE_MS,
  })
  assert.deepEqual(plain(ended.variables), { a: 'ä' })
})

check('there is no instance of what is not deployed', async () => {
  await refused(404, 'NOT_FOUND', create(uniqueId('none')))
})

check('a job knows where it is from', async () => {
  const { id, process } = await deploy('one-task')
  const { processInstanceKey } = await create(id, { a: 1 })
  const job = await poll(`${id}-work`)
  assert.deepEqual(
    [job.processInstanceKey, job.processDefinitionKey, job.elementId, plain(job.variables)],
    [processInstanceKey, process.processDefinitionKey, 'work', { a: 1 }]
  )
  await job.complete({ b: 2 })
  await refused(404, 'NOT_FOUND', client.completeJob({ jobKey: job.jobKey, variables: {} }))
})

check('a job fails and comes again', async () => {
  const { id } = await deploy('one-task')
  await create(id)
  const job = await poll(`${id}-work`)
  await client.updateJob({ jobKey: job.jobKey, retries: 5, timeout: LOCK_MS })
  await client.failJob({ jobKey: job.jobKey, retries: 4, errorMessage: 'not now', retryBackOff: 1 })
  assert.equal((await poll(`${id}-work`)).retries, 4)
})

check('an error is thrown once', async () => {
  const { id } = await deploy('one-task')
  await create(id)
  const job = await poll(`${id}-work`)
  await client.errorJob({ jobKey: job.jobKey, errorCode: 'nobody', errorMessage: 'm', variables: {} })
  const again = client.errorJob({ jobKey: job.jobKey, errorCode: 'nobody', errorMessage: 'm', variables: {} })
  await refused(409, 'INVALID_STATE', again)
})

check('who asks in vain gets an empty list', async () => {
  const request = { type: uniqueId('none'), timeout: LOCK_MS, maxJobsToActivate: 5, worker: 'suite' }
  assert.deepEqual(plain(await client.activateJobs({ ...request, requestTimeout: 300 })), [])
})

check('a worker takes jobs by polling', async () => {
  const { id } = await deploy('one-task')
  const worker = client.createJobWorker({
    type: `${id}-work`,
    worker: 'suite',
    timeout: LOCK_MS,
    maxJobsToActivate: 4,
    jobHandler: (job) => job.complete({ done: true }),
  })
  const request = { processDefinitionId: id, variables: {}, requestTimeout: PATIENCE_MS }
  const ended = await Promise.all([1, 2, 3].map(() => client.createProcessInstanceWithResult(request)))
  for (const end of ended) assert.deepEqual(plain(end.variables), { done: true })
  await worker.stop()
})

check('variables are set on the instance', async () => {
  const { id } = await deploy('one-task')
  const { processInstanceKey } = await create(id, { a: 1 })
  await client.updateElementInstanceVariables({ elementInstanceKey: processInstanceKey, variables: { a: 2 } })
  assert.deepEqual(plain((await poll(`${id}-work`)).variables), { a: 2 })
  const unknown = { elementInstanceKey: UNKNOWN_KEY, variables: { a: 2 } }
  await refused(404, 'NOT_FOUND', client.updateElementInstanceVariables(unknown))
})

check('an instance is modified, migrated and cancelled', async () => {
  const { id } = await deploy('two-tasks')
  const target = await deploy('two-tasks')
  const { processInstanceKey } = await create(id)
  const first = await poll(`${id}-first`)
  await client.modifyProcessInstance({
    processInstanceKey,
    activateInstructions: [{ elementId: 'second', variableInstructions: [{ variables: { set: 1 }, scopeId: '' }] }],
    terminateInstructions: [{ elementInstanceKey: first.elementInstanceKey }],
  })
  assert.deepEqual(plain((await poll(`${id}-second`)).variables), { set: 1 })
  await client.migrateProcessInstance({
    processInstanceKey,
    targetProcessDefinitionKey: target.process.processDefinitionKey,
    mappingInstructions: [{ sourceElementId: 'second', targetElementId: 'second' }],
  })
  await client.cancelProcessInstance({ processInstanceKey })
  await refused(404, 'NOT_FOUND', client.cancelProcessInstance({ processInstanceKey }))
})

// That an instance waits is told to another partition a moment after it was created.
async function correlateSoon(message) {
  const end = Date.now() + PATIENCE_MS
  while (Date.now() < end) {
    try {
      return await client.correlateMessage(message)
    } catch (problem) {
      if (problem.statusCode !== 404) throw problem
    }
  }
  return assert.fail(`nobody waits for ${message.name}`)
}

check('messages are published once, and correlated to who waits', async () => {
  const { id } = await deploy('messages')
  const { processInstanceKey } = await create(id, { orderId: 'k' })
  const message = { name: `${id}-paid`, correlationKey: 'k', variables: { a: 1 } }
  const correlated = await correlateSoon(message)
  assert.equal(correlated.processInstanceKey, processInstanceKey)
  assert.deepEqual(plain((await poll(`${id}-ship`)).variables), { orderId: 'k', a: 1 })
  await refused(404, 'NOT_FOUND', client.correlateMessage(message))
  const other = { ...message, correlationKey: 'other', timeToLive: 60_000, messageId: '1' }
  assert.match((await client.publishMessage(other)).messageKey, /^\d+$/)
  await refused(409, 'ALREADY_EXISTS', client.publishMessage(other))
})

check('a signal starts an instance and reaches who waits', async () => {
  const { id } = await deploy('signals')
  const opened = await client.broadcastSignal({ signalName: `${id}-open`, variables: { a: 1 } })
  assert.equal(opened.tenantId, '<default>')
  await client.broadcastSignal({ signalName: `${id}-close`, variables: { b: 2 } })
  assert.deepEqual(plain((await poll(`${id}-tidy`)).variables), { a: 1, b: 2 })
})

check('a decision is evaluated and says which rules matched', async () => {
  const { id } = await deploy('decision', undefined, ['dmn'])
  const decisionDefinitionId = `${id}-discount`
  const found = await client.evaluateDecision({ decisionDefinitionId, variables: { orders: 20 } })
  assert.deepEqual([found.output, found.evaluatedDecisions.length], ['10', 2])
  await refused(404, 'NOT_FOUND', client.evaluateDecision({ decisionDefinitionId: uniqueId('none'), variables: {} }))
})

check('a resource is deleted', async () => {
  const { process } = await deploy('one-task')
  const resourceKey = process.processDefinitionKey
  await client.deleteResource({ resourceKey })
  await refused(404, 'NOT_FOUND', client.deleteResource({ resourceKey }))
})

check('instances are found', async () => {
  const filter = { processDefinitionId: of.two.id, state: 'COMPLETED' }
  const found = await client.searchProcessInstances({ filter, page: firstPage })
  assert.deepEqual([found.items[0].processInstanceKey, found.page.totalItems], [of.done, 1])
})

check('pages follow each other', async () => {
  const filter = { processInstanceKey: of.done }
  const sort = [{ field: 'elementInstanceKey', order: 'ASC' }]
  const page = async (page) => (await client.searchElementInstances({ filter, sort, page })).items
  const all = await page(firstPage)
  assert.deepEqual(all.map((item) => item.elementId), ['start', 'first', 'second', 'end'])
  assert.deepEqual(await page({ from: 1, limit: 2 }), all.slice(1, 3))
  assert.deepEqual(await page({ from: 4, limit: 2 }), [])
  const { page: at } = await client.searchElementInstances({ filter, sort, page: { limit: 3 } })
  assert.deepEqual(await page({ limit: 3, after: at.endCursor }), all.slice(3))
})

check('element instances are found and read', async () => {
  const filter = { processInstanceKey: of.failed, state: 'ACTIVE' }
  const [found] = (await client.searchElementInstances({ filter, page: firstPage })).items
  assert.deepEqual(await client.getElementInstance(found.elementInstanceKey), found)
  await refused(404, 'NOT_FOUND', client.getElementInstance(UNKNOWN_KEY))
})

check('incidents are found and resolved', async () => {
  const filter = { processInstanceKey: of.failed, state: 'ACTIVE' }
  const [incident] = (await client.searchIncidents({ filter, page: firstPage })).items
  assert.deepEqual([incident.errorType, incident.errorMessage], ['JOB_NO_RETRIES', 'no paper'])
  await refused(409, 'INVALID_STATE', client.resolveIncident(incident.incidentKey))
  await client.updateJob({ jobKey: of.job.jobKey, retries: 1 })
  await client.resolveIncident(incident.incidentKey)
  await refused(404, 'NOT_FOUND', client.resolveIncident(incident.incidentKey))
})

check('variables are found and read', async () => {
  const filter = { processInstanceKey: of.done, name: 'a' }
  const [found] = (await client.searchVariables({ filter, page: firstPage })).items
  assert.deepEqual([found.value, found.scopeKey], ['"one"', of.done])
  assert.equal((await client.getVariable({ variableKey: found.variableKey })).name, 'a')
  await refused(404, 'NOT_FOUND', client.getVariable({ variableKey: UNKNOWN_KEY }))
})

check('process definitions are found and read with their model', async () => {
  const { processDefinitionKey } = of.two.process
  const filter = { processDefinitionId: of.two.id }
  const found = await client.searchProcessDefinitions({ filter, page: firstPage })
  assert.equal(found.items[0].processDefinitionKey, processDefinitionKey)
  assert.equal((await client.getProcessDefinition(processDefinitionKey)).version, 1)
  assert.equal(await client.getProcessDefinitionXML(processDefinitionKey), modelText('two-tasks', of.two.id))
  await refused(404, 'NOT_FOUND', client.getProcessDefinition(UNKNOWN_KEY))
})

check('a search is refused for a field that there is not', async () => {
  const request = { sort: [{ field: 'colour' }], filter: {}, page: firstPage }
  assert.match(await refused(400, 'INVALID_ARGUMENT', client.searchProcessInstances(request)), /colour/)
})

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
