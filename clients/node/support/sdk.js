// What tests of the REST client inside of the official SDK need. It does not check what it is answered; the checker does.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Camunda8 } from '@camunda8/sdk'
import { LOCK_MS, PATIENCE_MS, POLL_MS, modelText, uniqueId } from './server.js'

const address = process.env.OSMIA_HTTP_ADDRESS
const needsRest = { skip: address ? false : 'OSMIA_HTTP_ADDRESS is not set' }
export const client = address
  ? new Camunda8({
      ZEEBE_REST_ADDRESS: `http://${address}`,
      CAMUNDA_OAUTH_DISABLED: true,
      CAMUNDA_AUTH_STRATEGY: 'NONE',
      CAMUNDA_LOG_LEVEL: 'none',
    }).getCamundaRestClient()
  : undefined

export const check = (name, test_) => test(name, needsRest, test_)

export async function deploy(name, id = uniqueId(name), kinds = ['bpmn']) {
  const resources = kinds.map((kind) => ({ name: `${id}.${kind}`, content: modelText(name, id, kind) }))
  const deployed = await client.deployResources(resources)
  return { id, process: deployed.processes[0], deployed }
}

export const create = (processDefinitionId, variables = {}) =>
  client.createProcessInstance({ processDefinitionId, variables })

export async function poll(type) {
  const end = Date.now() + PATIENCE_MS
  while (Date.now() < end) {
    const request = { type, worker: 'suite', timeout: LOCK_MS, maxJobsToActivate: 1, requestTimeout: POLL_MS }
    const jobs = await client.activateJobs(request)
    if (jobs.length > 0) return jobs[0]
  }
  return assert.fail(`no job of type ${type}`)
}

export async function refused(status, title, call) {
  const problem = await call.then(
    () => assert.fail('the call was not refused'),
    (error) => error
  )
  assert.equal(problem.statusCode, status, String(problem.message))
  assert.equal(problem.title, title, String(problem.message))
  return problem.detail
}

// That an instance waits is told to another partition a moment after it was created.
export async function correlateSoon(message) {
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

export const firstPage = { from: 0, limit: 100 }

// For what the client has no method of its own.
export const call = (method, urlPath, body, json = true) => client.callApiEndpoint({ method, urlPath, body, json })
