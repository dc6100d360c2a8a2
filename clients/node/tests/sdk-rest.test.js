// Commands over the REST client inside of the official SDK.

import assert from 'node:assert/strict'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { call, check, client, correlateSoon, create, deploy, firstPage, poll, refused } from '../support/sdk.js'
import { LOCK_MS, PATIENCE_MS, UNKNOWN_KEY, modelText, plain, uniqueId } from '../support/server.js'

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

check('the licence is said, and what is not there is refused', async () => {
  assert.equal((await client.getLicenseStatus()).isCommercial, false)
  await refused(501, 'UNIMPLEMENTED', client.searchUsers({ filter: {}, page: firstPage }))
  await refused(404, 'Not Found', call('GET', 'bees'))
})

check('an instance begins where it is told to, of the version that is named', async () => {
  const { id } = await deploy('two-tasks')
  const begin = (processDefinitionVersion, elementId) =>
    client.createProcessInstance({
      ...{ processDefinitionId: id, processDefinitionVersion, variables: { a: 1 } },
      ...{ startInstructions: [{ elementId }], tags: ['sdk'] },
    })
  const created = await begin(1, 'second')
  const job = await poll(`${id}-second`)
  assert.deepEqual([job.processInstanceKey, job.elementId], [created.processInstanceKey, 'second'])
  assert.deepEqual([plain(job.variables), job.tags], [{ a: 1 }, ['sdk']])
  await refused(404, 'NOT_FOUND', begin(2, 'second'))
  assert.match(await refused(400, 'INVALID_ARGUMENT', begin(1, 'third')), /third/)
})

check('only the variables that are asked for are told of the end', async () => {
  const { id } = await deploy('straight-through')
  const ended = await client.createProcessInstanceWithResult({
    ...{ processDefinitionId: id, variables: { a: 1, b: 2 } },
    ...{ fetchVariables: ['b'], requestTimeout: PATIENCE_MS },
  })
  assert.deepEqual(plain(ended.variables), { b: 2 })
})

check('only the variables that are asked for come with a job', async () => {
  const { id } = await deploy('one-task')
  await create(id, { a: 1, b: 2 })
  const [job] = await client.activateJobs({
    ...{ type: `${id}-work`, worker: 'suite', timeout: LOCK_MS, maxJobsToActivate: 1, fetchVariable: ['b'] },
    ...{ requestTimeout: PATIENCE_MS },
  })
  assert.deepEqual(plain(job.variables), { b: 2 })
  const none = { type: `${id}-work`, worker: 'suite', timeout: LOCK_MS, maxJobsToActivate: 0 }
  assert.match(await refused(400, 'INVALID_ARGUMENT', client.activateJobs(none)), /maxJobsToActivate/)
})

check('an error is caught by its event', async () => {
  const { id } = await deploy('error-boundary')
  await create(id)
  const job = await poll(`${id}-work`)
  await job.error({ errorCode: 'OUT_OF_STOCK', errorMessage: 'no honey', variables: { item: 'honey' } })
  assert.deepEqual(plain((await poll(`${id}-reorder`)).variables), { missing: 'honey' })
  await refused(404, 'NOT_FOUND', job.complete())
})

check('commands on what there is not are refused', async () => {
  const jobKey = UNKNOWN_KEY
  await refused(404, 'NOT_FOUND', client.completeJob({ jobKey, variables: {} }))
  await refused(404, 'NOT_FOUND', client.failJob({ jobKey, retries: 1, errorMessage: 'm', retryBackOff: 0 }))
  await refused(404, 'NOT_FOUND', client.errorJob({ jobKey, errorCode: 'E', errorMessage: 'm', variables: {} }))
  await refused(404, 'NOT_FOUND', client.updateJob({ jobKey, retries: 1 }))
  await refused(404, 'NOT_FOUND', client.resolveIncident(UNKNOWN_KEY))
  await refused(404, 'NOT_FOUND', client.deleteResource({ resourceKey: UNKNOWN_KEY }))
  const detail = await refused(404, 'NOT_FOUND', client.cancelProcessInstance({ processInstanceKey: UNKNOWN_KEY }))
  assert.match(detail, new RegExp(UNKNOWN_KEY))
})

check('a modification that does not fit changes nothing', async () => {
  const { id } = await deploy('two-tasks')
  const { processInstanceKey } = await create(id)
  const first = await poll(`${id}-first`)
  const modify = (changes, key = processInstanceKey) => client.modifyProcessInstance({ processInstanceKey: key, ...changes })
  const activate = (elementId) => ({ activateInstructions: [{ elementId }] })
  assert.match(await refused(400, 'INVALID_ARGUMENT', modify(activate('third'))), /third/)
  await refused(404, 'NOT_FOUND', modify(activate('second'), UNKNOWN_KEY))
  const foreign = { terminateInstructions: [{ elementInstanceKey: UNKNOWN_KEY }] }
  await refused(400, 'INVALID_ARGUMENT', modify({ ...activate('second'), ...foreign }))
  await first.complete()
  await (await poll(`${id}-second`)).complete()
})

check('an element is begun inside of a sub-process, with variables of its own', async () => {
  const { id } = await deploy('sub-process')
  const { processInstanceKey } = await create(id, { order: { items: [1, 2, 3] } })
  const box = await poll(`${id}-box`)
  await client.modifyProcessInstance({
    processInstanceKey,
    activateInstructions: [
      { elementId: 'envelope', variableInstructions: [{ variables: { own: 1 }, scopeId: 'envelope' }] },
    ],
  })
  const envelope = await poll(`${id}-envelope`)
  assert.deepEqual(plain(envelope.variables), { order: { items: [1, 2, 3] }, own: 1, parcel: { items: [1, 2, 3] } })
  await envelope.complete({ parcel: { weight: 3 } })
  await box.complete({ parcel: { weight: 4 } })
  assert.equal(plain((await poll(`${id}-ship`)).variables).parcelWeight, 4)
})

check('a migration that does not fit is refused', async () => {
  const { id } = await deploy('two-tasks')
  const target = await deploy('one-task')
  const { processInstanceKey } = await create(id)
  await poll(`${id}-first`)
  const migrate = (targetElementId, targetProcessDefinitionKey = target.process.processDefinitionKey) =>
    client.migrateProcessInstance({
      ...{ processInstanceKey, targetProcessDefinitionKey },
      mappingInstructions: [{ sourceElementId: 'first', targetElementId }],
    })
  assert.match(await refused(400, 'INVALID_ARGUMENT', migrate('nothing')), /nothing/)
  await refused(404, 'NOT_FOUND', migrate('work', UNKNOWN_KEY))
  await migrate('work')
  const found = await client.searchElementInstances({ filter: { processInstanceKey, state: 'ACTIVE' }, page: firstPage })
  const task = found.items.find((item) => item.type === 'SERVICE_TASK')
  assert.deepEqual([task.elementId, task.processDefinitionId], ['work', target.id])
})

check('a message starts an instance', async () => {
  const { id } = await deploy('message-start')
  await client.publishMessage({ name: `${id}-ordered`, correlationKey: '', variables: { a: 1 } })
  assert.deepEqual(plain((await poll(`${id}-work`)).variables), { a: 1 })
  await refused(400, 'INVALID_ARGUMENT', client.publishMessage({ name: '', correlationKey: 'k' }))
})

check('a signal without a name is refused, and one that nobody knows reaches nobody', async () => {
  await refused(400, 'INVALID_ARGUMENT', client.broadcastSignal({ signalName: '', variables: {} }))
  const { signalKey } = await client.broadcastSignal({ signalName: uniqueId('signal'), variables: {} })
  assert.match(signalKey, /^\d+$/)
})

check('a decision is evaluated by its key, and says why it failed', async () => {
  const { deployed } = await deploy('decision', undefined, ['dmn'])
  const { decisionDefinitionKey, decisionDefinitionId } = deployed.decisions[0]
  const evaluate = (orders) => client.evaluateDecision({ decisionDefinitionKey, variables: { orders } })
  assert.deepEqual([(await evaluate(5)).output, (await evaluate(5)).decisionDefinitionId], ['5', decisionDefinitionId])
  const failed = await evaluate(-1)
  assert.match(failed.failureMessage, new RegExp(decisionDefinitionId))
  assert.equal(failed.output, 'null')
})

check('a condition starts an instance', async () => {
  const { id } = await deploy('conditions')
  const evaluate = (stock) => call('POST', 'conditionals/evaluation', { variables: { place: id, stock, weight: 9 } })
  assert.deepEqual(plain((await evaluate(1)).processInstances), [])
  const [{ processInstanceKey }] = (await evaluate(11)).processInstances
  assert.equal((await poll(`${id}-send`)).processInstanceKey, processInstanceKey)
})
