/** A worker as its primary sees it. Its one argument says how it takes the order to end: `obedient` or `deaf`. */
const [manner] = process.argv.slice(2)
const tell = (news) => process.send(news)

process.on('message', ({ order, config }) => {
  if (order === 'begin') tell({ news: 'listening', address: `http://port-of-${config.server.port}` })
  if (order === 'drain' && manner === 'obedient') {
    process.stdout.write('{"msg":"last words"}\n')
    process.exit(0)
  }
})
process.on('disconnect', () => process.exit(3))
tell({ news: 'here' })
