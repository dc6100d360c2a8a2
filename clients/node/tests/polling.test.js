import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import {
  Code,
  PATIENCE_MS,
  activate,
  connect,
  deploy,
  needsFullGateway,
  plain,
  pollOne,
  refused,
  uniqueId,
} from '../support/server.js'

test('a job carries all that a worker needs', async () => {
  const model = await deploy('one-task')
  const instance = await model.create({ name: 'Ada', list: [1, 2] })
  const before = Date.now()

  const job = await pollOne(model.jobType('work'))

  assert.equal(job.type, model.jobType('work'))
  assert.equal(job.processInstanceKey, instance)
  assert.equal(job.bpmnProcessId, model.id)
  assert.equal(job.processDefinitionVersion, 1)
  assert.equal(job.processDefinitionKey, model.process.processDefinitionKey)
  assert.equal(job.elementId, 'work')
  assert.ok(BigInt(job.elementInstanceKey) > BigInt(instance))
  assert.equal(job.worker, 'suite')
  assert.equal(job.retries, 3)
  assert.deepEqual(plain(job.customHeaders), { color: 'blue', note: 'a "quoted" text' })
  assert.deepEqual(plain(job.variables), { name: 'Ada', list: [1, 2] })
  // The lock of a minute began between the two looks at the clock.
  const [longest, shortest] = [Number(job.deadline) - before, Number(job.deadline) - Date.now()]
  assert.ok(longest >= 59_990 && shortest <= 60_010, `locked for ${shortest} to ${longest} ms`)
})

test('only the asked for variables are fetched', async () => {
  const model = await deploy('one-task')
  await model.create({ a: 1, b: 2 })

  const [job] = await activate(model.jobType('work'), { fetchVariable: ['b', 'missing'] })

  assert.deepEqual(plain(job.variables), { b: 2 })
})

test('a long poll wakes for a job that comes later', needsFullGateway, async () => {
  const model = await deploy('one-task')
  const polled = pollOne(model.jobType('work'))
  await sleep(500)

  const instance = await model.create()

  assert.equal((await polled).processInstanceKey, instance)
})

test('a poll without jobs ends empty at its timeout', needsFullGateway, async () => {
  const start = Date.now()

  assert.deepEqual(await activate(uniqueId('nobody'), { requestTimeout: 1000 }), [])

  const waited = Date.now() - start
  assert.ok(waited > 900, `waited ${waited} ms`)
})

test('a job goes to one worker only until its lock ends', async () => {
  const model = await deploy('one-task')
  await model.create()
  const type = model.jobType('work')
  const start = Date.now()

  const [first] = await activate(type, { timeout: 2000, requestTimeout: PATIENCE_MS })
  const again = await pollOne(type)

  assert.equal(again.key, first.key)
  assert.equal(again.retries, 3)
  assert.ok(Date.now() - start >= 1990)
})

test('a poll that makes no sense is invalid', async () => {
  await refused(Code.INVALID_ARGUMENT, activate('some-type', { timeout: 0 }))
})

test('the worker of the client completes, fails and completes again', needsFullGateway, async () => {
  const model = await deploy('two-tasks')
  const worker = connect()
  const attempts = []
  worker.createWorker({
    taskType: model.jobType('first'),
    taskHandler: (job) => {
      attempts.push(job.retries)
      return attempts.length < 3
        ? job.fail({ errorMessage: 'not yet', retries: job.retries - 1, retryBackOff: 300 })
        : job.complete({ attempts: attempts.length })
    },
  })
  worker.createWorker({
    taskType: model.jobType('second'),
    taskHandler: (job) => job.complete({ doubled: job.variables.attempts * 2 }),
  })

  const answer = await model.createWithResult()
  await worker.close()

  assert.deepEqual(attempts, [3, 2, 1])
  assert.deepEqual({ ...answer.variables }, { attempts: 3, doubled: 6 })
})
