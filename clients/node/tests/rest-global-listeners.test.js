// Listeners of the user tasks of all processes, over REST.

import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { client, deploy, needsRest, now, poll, refused } from '../support/rest.js'
import { uniqueId } from '../support/server.js'

const check = (name, test_) => test(name, needsRest, test_)

// Tasks of other tests meet these listeners too, but only where they are canceled, and go on soon.
const eventTypes = ['canceling']
const defined = []

async function define(more = {}) {
  const id = uniqueId('global')
  const listener = await client.createGlobalTaskListener({ id, type: `${id}-job`, eventTypes, ...more })
  defined.push(listener)
  return listener
}

async function complete(type) {
  const { jobs } = await client.activateJobs({ type, timeout: 60_000, maxJobsToActivate: 100, requestTimeout: -1 })
  for (const { jobKey } of jobs) await client.completeJob({ jobKey, result: { type: 'userTask' } })
  return jobs.length
}

after(async () => {
  for (const { id, type } of defined) {
    await client.deleteGlobalTaskListener({ id }).catch(() => undefined)
    while ((await complete(type)) > 0);
  }
})

check('a listener is defined, found, changed and deleted', async () => {
  const listener = await define({ retries: 2, afterNonGlobal: true, priority: 70 })
  const { id, type } = listener
  const expected = { id, source: 'API', eventTypes, type, retries: 2, afterNonGlobal: true, priority: 70 }
  assert.deepEqual({ ...listener }, expected)
  assert.deepEqual({ ...(await client.getGlobalTaskListener({ id }, now)) }, expected)
  const search = async (filter) =>
    (await client.searchGlobalTaskListeners({ filter: { type, ...filter } }, now)).items.map((found) => found.id)
  assert.deepEqual(await search({ eventTypes, priority: { $gt: 60 }, source: 'API' }), [id])
  assert.deepEqual(await search({ afterNonGlobal: false }), [])
  await refused(409, 'ALREADY_EXISTS', client.createGlobalTaskListener({ id, type, eventTypes }))
  const changed = await client.updateGlobalTaskListener({ id, type, eventTypes })
  assert.deepEqual({ ...changed }, { ...expected, retries: 3, afterNonGlobal: false, priority: 50 })
  await client.deleteGlobalTaskListener({ id })
  await refused(404, 'NOT_FOUND', client.getGlobalTaskListener({ id }, now))
  await refused(404, 'NOT_FOUND', client.deleteGlobalTaskListener({ id }))
})

check('a task that is canceled asks it before the listener of its model', async () => {
  const { id } = await deploy('task-listeners')
  const { processInstanceKey } = await client.createProcessInstance({ processDefinitionId: id })
  const listener = await define()
  await client.cancelProcessInstance({ processInstanceKey })
  let job
  do {
    job = await poll(listener.type)
    await client.completeJob({ jobKey: job.jobKey, result: { type: 'userTask' } })
  } while (job.processInstanceKey !== processInstanceKey)
  assert.deepEqual([job.kind, job.listenerEventType, job.retries], ['TASK_LISTENER', 'CANCELING', 3])
  // Behind it, that of the model.
  const own = await poll(`${id}-canceling`)
  await client.completeJob({ jobKey: own.jobKey, result: { type: 'userTask' } })
  const ended = await client.getProcessInstance({ processInstanceKey }, now)
  assert.equal(ended.state, 'TERMINATED')
})
