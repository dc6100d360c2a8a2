import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Code, client, deployText, modelText, refused, uniqueId } from '../support/server.js'

test('the answer describes what was deployed', async () => {
  const id = uniqueId('deploy')

  const deployment = await deployText(`${id}.bpmn`, modelText('one-task', id))

  assert.ok(BigInt(deployment.key) > 0n)
  assert.equal(deployment.deployments.length, 1)
  const { process } = deployment.deployments[0]
  assert.equal(process.bpmnProcessId, id)
  assert.equal(process.version, 1)
  assert.equal(process.resourceName, `${id}.bpmn`)
  assert.ok(BigInt(process.processDefinitionKey) > 0n)
})

test('a changed model is the next version and the same model is not', async () => {
  const id = uniqueId('versions')
  const deployed = async (name) =>
    (await deployText(`${id}.bpmn`, modelText(name, id))).deployments[0].process

  const first = await deployed('one-task')
  const same = await deployed('one-task')
  const second = await deployed('two-tasks')

  assert.equal(same.version, 1)
  assert.equal(same.processDefinitionKey, first.processDefinitionKey)
  assert.equal(second.version, 2)
  assert.notEqual(second.processDefinitionKey, first.processDefinitionKey)
})

test('a broken model is refused by name', async () => {
  const id = uniqueId('broken')

  const message = await refused(
    Code.INVALID_ARGUMENT,
    deployText(`${id}.bpmn`, modelText('broken', id))
  )

  assert.ok(message.includes(`${id}.bpmn`), message)
  assert.ok(message.includes('nameless'), message)
  await refused(Code.NOT_FOUND, client.createProcessInstance({ bpmnProcessId: id, variables: {} }))
})

test('text that is no XML is refused', async () => {
  await refused(Code.INVALID_ARGUMENT, deployText('garbled.bpmn', '<definitions><oops'))
})
