import assert from 'node:assert/strict'
import { test } from 'node:test'
import { client } from '../support/server.js'

test('every partition has a healthy leader', async () => {
  const topology = await client.topology()

  assert.equal(topology.brokers.length, topology.clusterSize)
  const led = topology.brokers
    .flatMap((broker) => broker.partitions)
    .filter((partition) => partition.role === 'LEADER' && partition.health === 'HEALTHY')
    .map((partition) => partition.partitionId)
    .sort((a, b) => a - b)
  assert.deepEqual(led, Array.from({ length: topology.partitionsCount }, (_, n) => n + 1))
})

test('versions look like releases', async () => {
  const topology = await client.topology()

  assert.match(topology.gatewayVersion, /^\d+\.\d+\.\d+/)
  for (const broker of topology.brokers) assert.match(broker.version, /^\d+\.\d+\.\d+/)
})
