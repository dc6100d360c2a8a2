// Everything that only reads, with answers that are checked against the schema of the API.

import assert from 'node:assert/strict'
import { File } from 'node:buffer'
import { before, test } from 'node:test'
import { client, connect, deploy, needsRest, now, poll, refused, soon } from '../support/rest.js'
import { UNKNOWN_KEY, modelText, uniqueId } from '../support/server.js'

const strict = connect()
// The client drops cursors when it checks requests, because a page with a limit alone fits first.
const unchecked = connect('strict', 'none')
const of = {}

// A bit of everything: a worked-on job, an incident, a user task with its form, a decision, and what waits.
before(async () => {
  if (!client) return
  of.two = await deploy('two-tasks')
  const create = (id, variables) => client.createProcessInstance({ processDefinitionId: id, variables })
  of.done = (await create(of.two.id, { a: 'one', n: 5, o: { p: [1, 'x'] } })).processInstanceKey
  of.failed = (await create(of.two.id, { n: 7 })).processInstanceKey
  const jobs = [await poll(`${of.two.id}-first`), await poll(`${of.two.id}-first`)]
  const job = (instance) => jobs.find((found) => found.processInstanceKey === instance)
  of.failedJob = job(of.failed)
  await client.completeJob({ jobKey: job(of.done).jobKey, variables: { b: true } })
  await client.completeJob({ jobKey: (await poll(`${of.two.id}-second`)).jobKey })
  await client.failJob({ jobKey: of.failedJob.jobKey, retries: 0, errorMessage: 'no paper' })

  of.called = await deploy('call-activity')
  of.caller = (await create(of.called.id, { called: of.two.id })).processInstanceKey
  of.messages = await deploy('messages')
  of.waiting = (await create(of.messages.id, { orderId: 'k' })).processInstanceKey
  of.task = uniqueId('user-task')
  const file = (kind) => new File([modelText('user-task', of.task, kind)], `${of.task}.${kind}`)
  of.form = (await client.createDeployment({ resources: [file('bpmn'), file('form')] })).forms[0]
  of.instance = (await create(of.task, { person: 'ann' })).processInstanceKey
  of.graph = uniqueId('decision')
  const decisions = new File([modelText('decision', of.graph, 'dmn')], `${of.graph}.dmn`)
  of.decisions = (await client.createDeployment({ resources: [decisions] })).decisions
  of.evaluation = await client.evaluateDecision({
    decisionDefinitionId: `${of.graph}-discount`,
    variables: { orders: 20 },
  })
})

const check = (name, test_) => test(name, needsRest, test_)
const keys = (found, name) => found.items.map((item) => item[name])

check('instances are found by state, definition, date and variables', async () => {
  const search = (filter) => strict.searchProcessInstances({ filter }, now)
  const processDefinitionId = of.two.id
  assert.deepEqual(keys(await search({ processDefinitionId, state: 'COMPLETED' }), 'processInstanceKey'), [of.done])
  const active = { processDefinitionId, state: { $in: ['ACTIVE'] }, parentProcessInstanceKey: { $exists: false } }
  assert.deepEqual(keys(await search(active), 'processInstanceKey'), [of.failed])
  const withText = { processDefinitionId, variables: [{ name: 'a', value: '"one"' }] }
  assert.deepEqual(keys(await search(withText), 'processInstanceKey'), [of.done])
  const like = { processDefinitionId: { $like: `${of.two.id}*` }, hasIncident: true }
  assert.deepEqual(keys(await search(like), 'processInstanceKey'), [of.failed])
  const later = { processDefinitionId, startDate: { $gt: '2100-01-01T00:00:00Z' } }
  assert.deepEqual((await search(later)).items, [])
  const called = { parentProcessInstanceKey: of.caller }
  assert.deepEqual(keys(await search(called), 'processDefinitionId'), [of.two.id])
})

check('pages follow each other by cursor, by offset and backwards', async () => {
  const filter = { processInstanceKey: of.done }
  const sort = [{ field: 'elementInstanceKey', order: 'DESC' }]
  const page = (page) => unchecked.searchElementInstances({ filter, sort, page }, now)
  const all = await page({ limit: 50 })
  assert.equal(all.page.totalItems, all.items.length)
  const first = await page({ limit: 2 })
  const second = await page({ limit: 2, after: first.page.endCursor })
  assert.deepEqual([...first.items, ...second.items], all.items.slice(0, 4))
  assert.deepEqual((await page({ from: 1, limit: 2 })).items, all.items.slice(1, 3))
  const back = await page({ limit: 2, before: second.page.startCursor })
  assert.deepEqual(back.items, first.items)
})

check('a page of nothing is empty and has no cursors', async () => {
  const found = await strict.searchProcessInstances({ filter: { processInstanceKey: UNKNOWN_KEY } }, now)
  assert.deepEqual([found.items, found.page.totalItems, found.page.endCursor], [[], 0, null])
})

check('a process instance is read with its calls, flows and counts', async () => {
  const at = { processInstanceKey: of.done }
  const found = await strict.getProcessInstance(at, now)
  assert.deepEqual([found.state, found.processDefinitionId, found.hasIncident], ['COMPLETED', of.two.id, false])
  const flows = await strict.getProcessInstanceSequenceFlows(at, now)
  assert.deepEqual(keys(flows, 'elementId').length, 3)
  const counts = await strict.getProcessInstanceStatistics(at, now)
  assert.deepEqual(
    counts.items.map((count) => [count.elementId, count.completed]).sort(),
    [['end', 1], ['first', 1], ['second', 1], ['start', 1]]
  )
})

check('the calls of an instance lead from the root to it', async () => {
  const called = await strict.searchProcessInstances({ filter: { parentProcessInstanceKey: of.caller } }, now)
  const { processInstanceKey } = called.items[0]
  const calls = await strict.getProcessInstanceCallHierarchy({ processInstanceKey }, now)
  assert.deepEqual(calls.map((call) => call.processInstanceKey), [of.caller, processInstanceKey])
})

check('who asks for an instance that there is not is told so', async () => {
  const unknown = { processInstanceKey: UNKNOWN_KEY }
  await refused(404, 'NOT_FOUND', strict.getProcessInstance(unknown, now))
})

check('element instances are found by type and state, and read', async () => {
  const filter = { processInstanceKey: of.failed, type: 'SERVICE_TASK', state: 'ACTIVE', hasIncident: true }
  const found = await strict.searchElementInstances({ filter }, now)
  assert.deepEqual(keys(found, 'elementId'), ['first'])
  const { elementInstanceKey } = found.items[0]
  assert.deepEqual(await strict.getElementInstance({ elementInstanceKey }, now), found.items[0])
  await refused(404, 'NOT_FOUND', strict.getElementInstance({ elementInstanceKey: UNKNOWN_KEY }, now))
})

check('incidents are found, read, and listed of an instance and an element', async () => {
  const filter = { processInstanceKey: of.failed, state: 'ACTIVE', errorType: 'JOB_NO_RETRIES' }
  const found = await strict.searchIncidents({ filter }, now)
  const [incident] = found.items
  assert.deepEqual([incident.errorMessage, incident.jobKey], ['no paper', of.failedJob.jobKey])
  assert.deepEqual(await strict.getIncident({ incidentKey: incident.incidentKey }, now), incident)
  const { elementInstanceKey } = incident
  const ofInstance = await strict.searchProcessInstanceIncidents({ processInstanceKey: of.failed }, now)
  const ofElement = await strict.searchElementInstanceIncidents({ elementInstanceKey }, now)
  assert.deepEqual([ofInstance.items, ofElement.items], [[incident], [incident]])
  await refused(404, 'NOT_FOUND', strict.getIncident({ incidentKey: UNKNOWN_KEY }, now))
})

check('incidents are counted by error and by definition', async () => {
  const page = { limit: 1000 }
  const errors = await strict.getProcessInstanceStatisticsByError({ page }, now)
  const error = errors.items.find((item) => item.errorMessage === 'no paper')
  assert.ok(error.activeInstancesWithErrorCount >= 1)
  const definitions = await strict.getProcessInstanceStatisticsByDefinition(
    { filter: { errorHashCode: error.errorHashCode }, page },
    now
  )
  assert.ok(keys(definitions, 'processDefinitionId').includes(of.two.id))
})

check('jobs are found by type, state and worker', async () => {
  const search = (filter) => strict.searchJobs({ filter }, now)
  const failed = await search({ type: `${of.two.id}-first`, state: 'FAILED' })
  assert.deepEqual(keys(failed, 'jobKey'), [of.failedJob.jobKey])
  assert.equal(failed.items[0].errorMessage, 'no paper')
  const completed = await search({ processInstanceKey: of.done, worker: 'suite', state: 'COMPLETED' })
  assert.deepEqual(keys(completed, 'elementId'), ['first', 'second'])
})

check('jobs are counted: all, by type, by worker, by error, over time', async () => {
  const from = '2020-01-01T00:00:00Z'
  const to = '2100-01-01T00:00:00Z'
  const jobType = `${of.two.id}-first`
  const all = await strict.getGlobalJobStatistics({ from, to }, now)
  assert.ok(all.completed.count >= 2 && all.failed.count >= 1)
  const types = await strict.getJobTypeStatistics({ filter: { from, to, jobType } }, now)
  assert.deepEqual([keys(types, 'jobType'), types.items[0].completed.count], [[jobType], 1])
  const workers = await strict.getJobWorkerStatistics({ filter: { from, to, jobType } }, now)
  assert.deepEqual(keys(workers, 'worker'), ['suite'])
  const errors = await strict.getJobErrorStatistics({ filter: { from, to, jobType } }, now)
  assert.deepEqual(keys(errors, 'errorMessage'), ['no paper'])
  const series = await strict.getJobTimeSeriesStatistics({ filter: { from, to, jobType } }, now)
  assert.equal(series.items.reduce((sum, item) => sum + item.created.count, 0), 3)
})

check('variables are found by name, value and scope, and read whole', async () => {
  const search = (filter) => strict.searchVariables({ filter }, now)
  const found = await search({ processInstanceKey: of.done, name: { $in: ['a', 'o'] } })
  assert.deepEqual(keys(found, 'name').sort(), ['a', 'o'])
  const [variable] = (await search({ processInstanceKey: of.done, name: 'o', scopeKey: of.done })).items
  assert.equal(variable.value, '{"p":[1,"x"]}')
  const read = await strict.getVariable({ variableKey: variable.variableKey }, now)
  assert.equal(read.value, variable.value)
  assert.deepEqual(keys(await search({ processInstanceKey: of.failed, value: '7' }), 'name'), ['n'])
  await refused(404, 'NOT_FOUND', strict.getVariable({ variableKey: UNKNOWN_KEY }, now))
})

check('process definitions are found and read with their model', async () => {
  const { processDefinitionKey } = of.two.process
  const filter = { processDefinitionId: of.two.id, isLatestVersion: true }
  const found = await strict.searchProcessDefinitions({ filter }, now)
  assert.deepEqual(keys(found, 'processDefinitionKey'), [processDefinitionKey])
  assert.deepEqual(await strict.getProcessDefinition({ processDefinitionKey }, now), found.items[0])
  const xml = await strict.getProcessDefinitionXml({ processDefinitionKey }, now)
  assert.equal(xml, modelText('two-tasks', of.two.id))
  await refused(404, 'NOT_FOUND', strict.getProcessDefinition({ processDefinitionKey: UNKNOWN_KEY }, now))
})

check('instances and elements of a definition are counted', async () => {
  const { processDefinitionKey } = of.two.process
  const elements = await strict.getProcessDefinitionStatistics({ processDefinitionKey }, now)
  const first = elements.items.find((item) => item.elementId === 'first')
  assert.deepEqual([first.completed, first.incidents], [1, 1])
  const processDefinitionId = of.two.id
  const versions = await strict.getProcessDefinitionInstanceVersionStatistics({ filter: { processDefinitionId } }, now)
  assert.deepEqual(keys(versions, 'processDefinitionKey'), [processDefinitionKey])
  const all = await strict.getProcessDefinitionInstanceStatistics({ page: { limit: 1000 } }, now)
  assert.ok(keys(all, 'processDefinitionId').includes(processDefinitionId))
})

check('message subscriptions are found, counted, and what they correlated', async () => {
  const filter = { processInstanceKey: of.waiting }
  const found = await strict.searchMessageSubscriptions({ filter }, soon)
  assert.deepEqual([keys(found, 'elementId'), keys(found, 'correlationKey')], [['paid'], ['k']])
  const counts = await strict.getProcessDefinitionMessageSubscriptionStatistics(
    { filter: { processDefinitionId: of.messages.id } },
    now
  )
  assert.deepEqual(keys(counts, 'activeSubscriptions'), [1])
  const correlated = await client.correlateMessage({ name: `${of.messages.id}-paid`, correlationKey: 'k' })
  assert.equal(correlated.processInstanceKey, of.waiting)
  const reached = await strict.searchCorrelatedMessageSubscriptions({ filter }, soon)
  assert.deepEqual(keys(reached, 'messageKey'), [correlated.messageKey])
})

check('user tasks are found by who is to do them', async () => {
  const search = (filter) => strict.searchUserTasks({ filter: { processInstanceKey: of.instance, ...filter } }, now)
  const [task] = (await search({ assignee: 'ann' })).items
  assert.deepEqual(await strict.getUserTask({ userTaskKey: task.userTaskKey }, now), task)
  for (const filter of [{ candidateGroup: 'sales' }, { priority: { $gte: 60 } }, { state: 'CREATED' }, { name: 'Decide' }]) {
    assert.deepEqual(keys(await search(filter), 'userTaskKey'), [task.userTaskKey], JSON.stringify(filter))
  }
  assert.deepEqual((await search({ assignee: 'bob' })).items, [])
  await refused(404, 'NOT_FOUND', strict.getUserTask({ userTaskKey: UNKNOWN_KEY }, now))
})

check('the form and the variables of a user task are read', async () => {
  const filter = { processInstanceKey: of.instance }
  const [{ userTaskKey }] = (await strict.searchUserTasks({ filter }, now)).items
  const form = await strict.getUserTaskForm({ userTaskKey }, now)
  assert.deepEqual([form.formId, form.formKey], [of.form.formId, of.form.formKey])
  const seen = await strict.searchUserTaskVariables({ userTaskKey, filter: { name: 'who' } }, now)
  assert.deepEqual(keys(seen, 'value'), ['"ann"'])
  const effective = await strict.searchUserTaskEffectiveVariables({ userTaskKey }, now)
  assert.deepEqual(keys(effective, 'name').sort(), ['person', 'who'])
})

check('a process without a start form has none', async () => {
  const { processDefinitionKey } = of.two.process
  // The client takes 204 for an answer with content, which it would check in vain.
  const answers = connect('none')
  assert.equal(await answers.getStartProcessForm({ processDefinitionKey }, now), null)
})

check('decisions and their graph are found and read', async () => {
  const decisionDefinitionId = `${of.graph}-discount`
  const found = await strict.searchDecisionDefinitions({ filter: { decisionDefinitionId } }, now)
  const [{ decisionDefinitionKey, decisionRequirementsKey }] = found.items
  assert.deepEqual(await strict.getDecisionDefinition({ decisionDefinitionKey }, now), found.items[0])
  const xml = await strict.getDecisionDefinitionXml({ decisionDefinitionKey }, now)
  assert.equal(xml, modelText('decision', of.graph, 'dmn'))
  const graphs = await strict.searchDecisionRequirements({ filter: { decisionRequirementsKey } }, now)
  assert.deepEqual(await strict.getDecisionRequirements({ decisionRequirementsKey }, now), graphs.items[0])
  assert.equal(await strict.getDecisionRequirementsXml({ decisionRequirementsKey }, now), xml)
  await refused(404, 'NOT_FOUND', strict.getDecisionDefinition({ decisionDefinitionKey: UNKNOWN_KEY }, now))
})

check('what was decided is found and read with its rules', async () => {
  const { decisionEvaluationKey } = of.evaluation
  const found = await strict.searchDecisionInstances({ filter: { decisionEvaluationKey } }, now)
  assert.equal(found.items.length, 2)
  const discount = found.items.find((item) => item.decisionDefinitionId === `${of.graph}-discount`)
  const read = await strict.getDecisionInstance(
    { decisionEvaluationInstanceKey: discount.decisionEvaluationInstanceKey },
    now
  )
  assert.deepEqual([read.result, read.matchedRules[0].ruleId], ['10', 'gold'])
})

check('the cluster is described without a field too many', async () => {
  assert.ok((await strict.getTopology()).brokers.length >= 1)
  assert.equal((await strict.getLicense()).validLicense, true)
  assert.equal((await strict.getAuthentication()).username, 'anonymous')
  await strict.getSystemConfiguration()
})

check('an expression is evaluated, and a wrong one refused', async () => {
  const found = await strict.evaluateExpression({ expression: '=a + 1', variables: { a: 2 } })
  assert.equal(found.result, 3)
  await refused(400, 'INVALID_ARGUMENT', strict.evaluateExpression({ expression: '=a +' }))
})

for (const [name, body] of [
  ['a field that there is not', { sort: [{ field: 'colour' }] }],
  ['a filter that there is not', { filter: { colour: 'red' } }],
  ['a page of two kinds', { page: { from: 0, after: 'WzFd' } }],
  ['a limit below nothing', { page: { limit: -1 } }],
  ['a cursor that is none', { page: { after: 'colour' } }],
]) {
  test(`a search is refused for ${name}`, needsRest, async () => {
    const answer = await fetch(`http://${process.env.OSMIA_HTTP_ADDRESS}/v2/process-instances/search`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify(body),
    })
    const problem = await answer.json()
    assert.equal(answer.headers.get('content-type'), 'application/problem+json')
    assert.deepEqual([answer.status, problem.status], [400, 400], JSON.stringify(problem))
    assert.ok(problem.detail.length > 10)
  })
}
