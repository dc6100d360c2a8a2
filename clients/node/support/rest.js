// What tests of the REST client need. It checks every request and every answer against the schema of the API here.

import assert from 'node:assert/strict'
import { File } from 'node:buffer'
import { createCamundaClient } from '@camunda8/orchestration-cluster-api'
import { LOCK_MS, PATIENCE_MS, POLL_MS, modelText, uniqueId } from './server.js'

const address = process.env.OSMIA_HTTP_ADDRESS
export const needsRest = { skip: address ? false : 'OSMIA_HTTP_ADDRESS is not set' }

export function connect(answers = 'strict', requests = 'strict') {
  if (!address) return undefined
  return createCamundaClient({
    config: {
      CAMUNDA_REST_ADDRESS: `http://${address}`,
      CAMUNDA_AUTH_STRATEGY: 'NONE',
      CAMUNDA_SDK_VALIDATION: `req:${requests},res:${answers}`,
      CAMUNDA_SDK_LOG_LEVEL: 'silent',
    },
  })
}

export const client = connect()
// What was acknowledged is found at once, so nothing is asked twice.
export const now = { consistency: { waitUpToMs: 0 } }
// Except for what other partitions do for it.
export const soon = { consistency: { waitUpToMs: PATIENCE_MS, pollIntervalMs: 50 } }

export async function deploy(name, id = uniqueId(name)) {
  const resources = [new File([modelText(name, id)], `${id}.bpmn`)]
  const deployed = await client.createDeployment({ resources })
  return { id, process: deployed.processes[0], deployed }
}

export async function poll(type, options = {}) {
  const end = Date.now() + PATIENCE_MS
  while (Date.now() < end) {
    const request = { type, worker: 'suite', timeout: LOCK_MS, maxJobsToActivate: 1, requestTimeout: POLL_MS }
    const { jobs } = await client.activateJobs({ ...request, ...options })
    if (jobs.length > 0) return jobs[0]
  }
  return assert.fail(`no job of type ${type}`)
}

export async function refused(status, title, call) {
  const problem = await call.then(
    () => assert.fail('the call was not refused'),
    (error) => error
  )
  assert.equal(problem.status, status, String(problem.message))
  assert.equal(problem.title, title, String(problem.message))
  return problem.detail
}
