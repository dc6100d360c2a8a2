// Searches over the REST client inside of the official SDK.

import assert from 'node:assert/strict'
import { before } from 'node:test'
import { call, check, client, create, deploy, firstPage, poll, refused } from '../support/sdk.js'
import { UNKNOWN_KEY, modelText, plain } from '../support/server.js'

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


check('an incident tells where it is from, and that it was resolved', async () => {
  const { id } = await deploy('no-default-flow')
  const { processInstanceKey } = await create(id, { approved: null })
  const search = async (filter) =>
    (await client.searchIncidents({ filter: { processInstanceKey, ...filter }, page: firstPage })).items
  const [incident] = await search({ state: 'ACTIVE' })
  assert.deepEqual([incident.errorType, incident.elementId, incident.jobKey], ['CONDITION_ERROR', 'choose', null])
  assert.deepEqual(await call('GET', `incidents/${incident.incidentKey}`), incident)
  const ofElement = `element-instances/${incident.elementInstanceKey}/incidents/search`
  assert.deepEqual((await call('POST', ofElement, {})).items, [incident])
  await client.resolveIncident(incident.incidentKey)
  assert.equal((await search({ state: 'ACTIVE' })).length, 1)
  const variables = { approved: true }
  await client.updateElementInstanceVariables({ elementInstanceKey: processInstanceKey, variables })
  await client.resolveIncident((await search({ state: 'ACTIVE' }))[0].incidentKey)
  assert.deepEqual((await search({})).map((found) => found.state), ['RESOLVED', 'RESOLVED'])
  assert.equal((await poll(`${id}-approved`)).processInstanceKey, processInstanceKey)
})

check('instances are found by conditions', async () => {
  const keys = async (filter) => {
    const request = { filter: { processDefinitionId: of.two.id, ...filter }, page: firstPage }
    return (await client.searchProcessInstances(request)).items.map((item) => item.processInstanceKey)
  }
  const both = [of.done, of.failed].sort()
  assert.deepEqual((await keys({ state: { $in: ['ACTIVE', 'COMPLETED'] } })).sort(), both)
  assert.deepEqual((await keys({ processInstanceKey: { $in: both } })).sort(), both)
  assert.deepEqual(await keys({ endDate: { $exists: true } }), [of.done])
  assert.deepEqual(await keys({ variables: [{ name: 'b', value: 'true' }] }), [of.done])
  assert.deepEqual(await keys({ $or: [{ state: 'TERMINATED' }, { state: 'COMPLETED' }] }), [of.done])
  assert.deepEqual(await keys({ startDate: { $lt: '2020-01-01T00:00:00Z' } }), [])
})

check('pages go backwards too, and have limits', async () => {
  const filter = { processInstanceKey: of.done }
  const sort = [{ field: 'elementInstanceKey', order: 'DESC' }]
  const search = (page) => client.searchElementInstances({ filter, sort, page })
  const first = await search({ limit: 2 })
  const second = await search({ limit: 2, after: first.page.endCursor })
  assert.deepEqual(second.items.map((item) => item.elementId), ['first', 'start'])
  assert.deepEqual((await search({ limit: 2, before: second.page.startCursor })).items, first.items)
  await refused(400, 'INVALID_ARGUMENT', search({ limit: 0, from: -1 }))
  await refused(400, 'INVALID_ARGUMENT', search({ limit: 2, after: 'nowhere' }))
  assert.match(await refused(400, 'INVALID_ARGUMENT', search({ limit: 10_001 })), /limit/)
})

check('a search is refused for a value that does not fit', async () => {
  const search = (filter) => client.searchProcessInstances({ filter, page: firstPage })
  assert.match(await refused(400, 'Bad Request', search({ state: 'ASLEEP' })), /ASLEEP/)
  assert.match(await refused(400, 'Bad Request', search({ colour: 'red' })), /colour/)
  assert.match(await refused(400, 'INVALID_ARGUMENT', search({ startDate: 'yesterday' })), /yesterday/)
  assert.match(await refused(400, 'INVALID_ARGUMENT', search({ processInstanceKey: 'abc' })), /'abc' is not a valid key/)
})

check('variables are found by name, value and scope', async () => {
  const names = async (filter) => {
    const found = await client.searchVariables({ filter: { processInstanceKey: of.done, ...filter }, page: firstPage })
    return found.items.map((item) => item.name).sort()
  }
  assert.deepEqual(await names({}), ['a', 'b', 'n'])
  assert.deepEqual(await names({ name: { $like: '?' }, value: { $neq: '5' } }), ['a', 'b'])
  assert.deepEqual(await names({ value: 'true', scopeKey: of.done }), ['b'])
})

check('a long value is shortened in a list and whole alone', async () => {
  const { id } = await deploy('one-task')
  const { processInstanceKey } = await create(id, { long: 'x'.repeat(9_000) })
  const [found] = (await client.searchVariables({ filter: { processInstanceKey }, page: firstPage })).items
  assert.deepEqual([found.isTruncated, found.value.length], [true, 8_191])
  // The client reads the value of one variable, so it has no quotation marks.
  assert.equal((await client.getVariable({ variableKey: found.variableKey })).value.length, 9_000)
})

check('jobs and sequence flows of an instance are found', async () => {
  const jobs = await call('POST', 'jobs/search', { filter: { processInstanceKey: of.done, state: 'COMPLETED' } })
  assert.deepEqual(jobs.items.map((job) => job.elementId).sort(), ['first', 'second'])
  const flows = await call('GET', `process-instances/${of.done}/sequence-flows`)
  assert.deepEqual(flows.items.map((flow) => flow.elementId).sort(), ['f1', 'f2', 'f3'])
  const counts = await call('GET', `process-instances/${of.done}/statistics/element-instances`)
  assert.deepEqual(counts.items.map((count) => count.completed), [1, 1, 1, 1])
})

check('decisions and their evaluations are found and read', async () => {
  const { id, deployed } = await deploy('decision', undefined, ['dmn'])
  const { decisionDefinitionKey, decisionRequirementsKey } = deployed.decisions[0]
  const decisionDefinitionId = `${id}-discount`
  const found = await call('POST', 'decision-definitions/search', { filter: { decisionDefinitionId } })
  assert.deepEqual(found.items.map((item) => item.decisionDefinitionKey), [decisionDefinitionKey])
  assert.deepEqual(await call('GET', `decision-definitions/${decisionDefinitionKey}`), found.items[0])
  const graph = await call('GET', `decision-requirements/${decisionRequirementsKey}`)
  assert.deepEqual([graph.decisionRequirementsName, graph.version], ['Discounts', 1])
  await client.evaluateDecision({ decisionDefinitionKey, variables: { orders: 20 } })
  const filter = { decisionDefinitionId, state: 'EVALUATED' }
  const [instance] = (await call('POST', 'decision-instances/search', { filter })).items
  assert.deepEqual([instance.result, instance.decisionDefinitionType], ['10', 'DECISION_TABLE'])
  const whole = await call('GET', `decision-instances/${instance.decisionEvaluationInstanceKey}`)
  assert.deepEqual(plain(whole.matchedRules.map((rule) => rule.ruleId)), ['gold'])
  await refused(404, 'NOT_FOUND', call('GET', `decision-definitions/${UNKNOWN_KEY}`))
})

check('versions of a process are told apart', async () => {
  const { id } = await deploy('one-task')
  const text = modelText('one-task', id).replace('id="work"', 'id="work" name="Work"')
  await client.deployResources([{ name: `${id}.bpmn`, content: text }])
  const search = (filter) =>
    client.searchProcessDefinitions({ filter: { processDefinitionId: id, ...filter }, page: firstPage })
  assert.equal((await search({})).page.totalItems, 2)
  assert.deepEqual((await search({ isLatestVersion: true })).items.map((item) => item.version), [2])
  assert.deepEqual((await search({ version: 1 })).items.map((item) => item.version), [1])
  const [latest] = (await search({ isLatestVersion: true })).items
  assert.equal(await client.getProcessDefinitionXML(latest.processDefinitionKey), text)
})
