// The server under test, reached only through the official clients: over gRPC here, over REST in rest.test.js.

import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { after } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { Camunda8 } from '@camunda8/sdk'

export const LOCK_MS = 60_000
export const UNKNOWN_KEY = (2n ** 51n + 4_000_000_000n).toString()
export const PATIENCE_MS = 120_000
export const POLL_MS = 3_000
const A_MOMENT_MS = 500

export const Code = Object.freeze({
  INVALID_ARGUMENT: 3,
  NOT_FOUND: 5,
  ALREADY_EXISTS: 6,
  FAILED_PRECONDITION: 9,
})

// False for an engine behind a reduced gateway: no job streams, no long polls, no status details.
export const hasFullGateway = process.env.OSMIA_NO_STREAM === undefined
export const needsFullGateway = { skip: hasFullGateway ? false : 'OSMIA_NO_STREAM is set' }

const run = `${Date.now().toString(36)}-${process.pid}`
let ids = 0

// A client of its own; the caller closes it.
export function connect() {
  const address = process.env.OSMIA_GRPC_ADDRESS
  if (!address) {
    throw new Error(
      'OSMIA_GRPC_ADDRESS is not set: name the gRPC address of the server, for example 127.0.0.1:26500.'
    )
  }
  return new Camunda8({
    ZEEBE_GRPC_ADDRESS: `grpc://${address}`,
    CAMUNDA_AUTH_STRATEGY: 'NONE',
    CAMUNDA_LOG_LEVEL: 'none',
    zeebeGrpcSettings: {
      ZEEBE_CLIENT_LOG_LEVEL: 'NONE',
      // Otherwise the client answers a time-out by trying again for ever.
      ZEEBE_GRPC_CLIENT_RETRY: false,
    },
  }).getZeebeGrpcApiClient()
}

// One client for all tests of a file.
export const client = connect()
after(() => client.close())

// A process id that no other test and no earlier run has used.
export function uniqueId(name) {
  return `${name}-node-${run}-${++ids}`
}

// The shared model with PROCESS_ID replaced, so that job types are unique too.
export function modelText(name, id, kind = 'bpmn') {
  const file = new URL(`../../shared/${name}.${kind}`, import.meta.url)
  return readFileSync(file, 'utf8').replaceAll('PROCESS_ID', id)
}

export function deployText(name, text) {
  return client.deployResource({ name, process: Buffer.from(text, 'utf8') })
}

// Deploys the shared model of this name under a unique process id.
export async function deploy(name) {
  const id = uniqueId(name)
  const deployed = await deployText(`${id}.bpmn`, modelText(name, id))
  return {
    id,
    process: deployed.deployments[0].process,
    jobType: (elementId) => `${id}-${elementId}`,
    create: async (variables = {}) =>
      (await client.createProcessInstance({ bpmnProcessId: id, variables })).processInstanceKey,
    createWithResult: (variables = {}, options = {}) =>
      client.createProcessInstanceWithResult({
        bpmnProcessId: id,
        variables,
        requestTimeout: PATIENCE_MS,
        ...options,
      }),
  }
}

// One poll, which may come back empty.
export function activate(type, options = {}) {
  return client.activateJobs({
    type,
    worker: 'suite',
    timeout: LOCK_MS,
    maxJobsToActivate: 1,
    requestTimeout: POLL_MS,
    ...options,
  })
}

// Waits for exactly this many jobs of the type; several polls may be needed.
export async function poll(type, count) {
  const jobs = []
  const end = Date.now() + PATIENCE_MS
  while (jobs.length < count && Date.now() < end) {
    jobs.push(...(await activate(type, { maxJobsToActivate: count - jobs.length })))
    if (!hasFullGateway) await sleep(20)
  }
  assert.equal(jobs.length, count, `jobs of type ${type} activated`)
  return jobs
}

export async function pollOne(type) {
  return (await poll(type, 1))[0]
}

// No job of the type is available now or in the next moment.
export async function assertNone(type) {
  assert.deepEqual(await activate(type, { requestTimeout: A_MOMENT_MS }), [])
}

export function complete(job, variables = {}) {
  return client.completeJob({ jobKey: job.key, variables })
}

export function fail(job, retries, errorMessage = '', retryBackOff = 0) {
  return client.failJob({ jobKey: job.key, retries, errorMessage, retryBackOff })
}

// Asserts that the call is refused with this code; answers the message.
export async function refused(code, call) {
  const refusal = await call.then(
    () => assert.fail('the call was not refused'),
    (error) => error
  )
  assert.equal(refusal.code, code, refusal.message)
  return refusal.details
}

// The client's variables are objects of a class of its own.
export function plain(value) {
  return JSON.parse(JSON.stringify(value))
}
