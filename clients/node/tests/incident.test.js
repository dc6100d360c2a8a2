import assert from 'node:assert/strict'
import { test } from 'node:test'
import { incident, needsRecords } from '../support/records.js'
import {
  Code,
  UNKNOWN_KEY,
  assertNone,
  client,
  complete,
  deploy,
  fail,
  pollOne,
  refused,
} from '../support/server.js'

test('a job without retries waits', async () => {
  const model = await deploy('one-task')
  await model.create()
  await fail(await pollOne(model.jobType('work')), 0, 'no')

  await assertNone(model.jobType('work'))

  const other = await model.create()
  assert.equal((await pollOne(model.jobType('work'))).processInstanceKey, other)
})

test('a resolved incident makes the job available again', needsRecords, async () => {
  const model = await deploy('one-task')
  const instance = await model.create()
  const job = await pollOne(model.jobType('work'))
  await fail(job, 0, 'the printer is on fire')

  const found = await incident(instance)
  assert.equal(found.errorType, 'JOB_NO_RETRIES')
  assert.equal(found.errorMessage, 'the printer is on fire')
  assert.equal(found.jobKey, job.key)

  await refused(Code.FAILED_PRECONDITION, client.resolveIncident({ incidentKey: found.key }))
  await client.updateJobRetries({ jobKey: job.key, retries: 2 })
  await client.resolveIncident({ incidentKey: found.key })
  const again = await pollOne(model.jobType('work'))
  assert.equal(again.key, job.key)
  assert.equal(again.retries, 2)
  await complete(again)
  await refused(Code.NOT_FOUND, client.resolveIncident({ incidentKey: found.key }))
})

test('an error that nobody catches holds the job', async () => {
  const model = await deploy('one-task')
  await model.create()
  const job = await pollOne(model.jobType('work'))

  await client.throwError({ jobKey: job.key, errorCode: 'OUT_OF_STOCK', errorMessage: 'no bees' })

  await assertNone(model.jobType('work'))
  await refused(Code.FAILED_PRECONDITION, complete(job))
})

test('an error that nobody catches can be resolved', needsRecords, async () => {
  const model = await deploy('one-task')
  const instance = await model.create()
  const job = await pollOne(model.jobType('work'))
  await client.throwError({ jobKey: job.key, errorCode: 'OUT_OF_STOCK', errorMessage: 'no bees' })

  const found = await incident(instance)
  assert.equal(found.errorType, 'UNHANDLED_ERROR_EVENT')
  assert.ok(found.errorMessage.includes('OUT_OF_STOCK'), found.errorMessage)
  await client.resolveIncident({ incidentKey: found.key })

  const again = await pollOne(model.jobType('work'))
  assert.equal(again.key, job.key)
  await complete(again)
})

test('a gateway without a true condition waits for other variables', needsRecords, async () => {
  const model = await deploy('no-default-flow')
  const instance = await model.create({ approved: 'perhaps' })

  const found = await incident(instance)
  assert.equal(found.elementId, 'choose')
  await client.setVariables({
    elementInstanceKey: instance,
    variables: { approved: true },
    local: false,
  })
  await client.resolveIncident({ incidentKey: found.key })

  assert.equal((await pollOne(model.jobType('approved'))).processInstanceKey, instance)
})

test('an unknown incident is not found', async () => {
  const message = await refused(
    Code.NOT_FOUND,
    client.resolveIncident({ incidentKey: UNKNOWN_KEY })
  )
  assert.ok(message.includes(UNKNOWN_KEY), message)
})
