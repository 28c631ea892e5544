/**
 * A worker as its primary sees it. Its one argument says how it takes the order to end: `obedient`, `orderly` (not before
 * it is ordered to leave everything), or `deaf`. It counts on order, and reports until it is ordered to be silent.
 */
const [manner] = process.argv.slice(2)
const tell = (news) => process.send(news)
let counted = 0
let isSilent = false

const metric = (type, name) => ({ name, help: 'h', type, aggregator: 'sum', values: [{ value: counted, labels: {} }] })

process.on('message', ({ order, config, by, id }) => {
  if (order === 'begin') tell({ news: 'listening', address: `http://port-of-${config.server.port}` })
  if (order === 'drain' && manner === 'obedient') {
    process.stdout.write('{"msg":"last words"}\n')
    process.exit(0)
  }
  if (order === 'exit' && manner === 'orderly') {
    process.stdout.write('{"msg":"kept"}\n')
    process.exit(1)
  }
  if (order === 'count') counted += by
  if (order === 'be-silent') isSilent = true
  if (order === 'metrics' && !isSilent) {
    tell({ news: 'metrics', id, snapshot: [metric('counter', 'counted_total'), metric('gauge', 'held')] })
  }
})
process.on('disconnect', () => process.exit(3))
tell({ news: 'here' })
