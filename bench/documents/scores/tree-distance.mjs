/** Nodes in postorder with the leftmost leaf under each, and the nodes at which a subtree has to be compared anew. */
function indexed(root) {
  const nodes = []
  const leftmost = []
  const visit = (node) => {
    let first
    for (const child of node.children) {
      const leaf = visit(child)
      first ??= leaf
    }
    nodes.push(node)
    leftmost.push(first ?? nodes.length - 1)
    return leftmost.at(-1)
  }
  visit(root)
  const roots = leftmost.flatMap((leaf, at) => (leftmost.lastIndexOf(leaf) === at ? [at] : []))
  return { nodes, leftmost, roots }
}

/** Fills `distances` for the subtrees that end at `i` and `j`, from the distances of smaller ones. */
function compare(one, other, i, j, distances, costOf) {
  const [fromOne, fromOther] = [one.leftmost[i], other.leftmost[j]]
  const width = j - fromOther + 2
  const forest = new Float64Array((i - fromOne + 2) * width)
  for (let x = 1; x <= i - fromOne + 1; x += 1) forest[x * width] = x
  for (let y = 1; y < width; y += 1) forest[y] = y
  for (let x = 1; x <= i - fromOne + 1; x += 1) {
    for (let y = 1; y < width; y += 1) {
      const [a, b] = [fromOne + x - 1, fromOther + y - 1]
      const removed = Math.min(forest[(x - 1) * width + y], forest[x * width + y - 1]) + 1
      const areTrees = one.leftmost[a] === fromOne && other.leftmost[b] === fromOther
      const kept = areTrees
        ? forest[(x - 1) * width + y - 1] + costOf(one.nodes[a], other.nodes[b])
        : forest[(one.leftmost[a] - fromOne) * width + other.leftmost[b] - fromOther] + distances[a][b]
      forest[x * width + y] = Math.min(removed, kept)
      if (areTrees) distances[a][b] = forest[x * width + y]
    }
  }
}

/**
 * The least cost of turning one ordered tree of {children} into another (Zhang and Shasha, 1989): 1 for every node taken
 * out or put in, `costOf(one, other)` for a node that stands for another.
 */
export function treeDistance(first, second, costOf) {
  const [one, other] = [indexed(first), indexed(second)]
  const distances = one.nodes.map(() => new Float64Array(other.nodes.length))
  for (const i of one.roots) for (const j of other.roots) compare(one, other, i, j, distances, costOf)
  return distances.at(-1).at(-1)
}
