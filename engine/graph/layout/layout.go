// Package layout places the nodes of a graph in layers, for a drawing: what a node needs is above it.
//
//	rank --> order --> place
//
// Each node is put below all that it needs, as high as possible, in layers of a bounded width. Edges that pass
// layers get a place in each of them, which edges of one class from one node share. Within the layers, the
// order follows the mean of the neighbours as long as that makes fewer edges cross. Nodes then move as close
// to their neighbours as the order allows. The same graph always gets the same layout.
package layout

import (
	"cmp"
	"math"
	"slices"
)

// A Node is a box to be placed.
type Node struct{ Width, Height float64 }

// An Edge leads from a node to one that needs it. Edges of one class from one node are drawn together.
type Edge struct{ From, To, Class int }

// A Point is a place in the drawing; y grows downwards.
type Point struct{ X, Y float64 }

// A Layout has the places of the nodes and edges of a graph.
type Layout struct {
	Width, Height float64
	// Nodes are the upper left corners of the boxes.
	Nodes []Point
	// Edges are the points that each edge goes through, from the lower side of a box to the upper side of
	// another. Between two points it leaves and arrives vertically. An edge of a cycle that leads upwards has
	// none.
	Edges [][]Point
}

// The distances in a drawing.
const (
	nodeGap  = 28
	laneGap  = 14
	layerGap = 56
)

// sweeps is how often the layers are ordered and the nodes moved.
const sweeps = 8

// Place places the nodes of a graph. An edge to a node that does not exist is left out, and so are those that
// close a cycle.
func Place(nodes []Node, edges []Edge) Layout {
	d := newDrawing(nodes, edges)
	d.rank()
	d.addLanes()
	d.order()
	d.place()
	return d.result()
}

// drawing is a graph that is being placed. Its items are the nodes, followed by the lanes of edges that pass a
// layer.
type drawing struct {
	nodes []Node
	edges []Edge
	// used says which edges are drawn.
	used []bool
	// layer, x and width are those of each item.
	layer    []int
	x, width []float64
	layers   [][]int
	// above and below are the neighbours of each item in the next layers.
	above, below [][]int
	// paths are the items that each edge goes through.
	paths [][]int
	// reach is half of the widest layer.
	reach float64
}

func newDrawing(nodes []Node, edges []Edge) *drawing {
	d := &drawing{nodes: nodes, edges: edges, used: make([]bool, len(edges)), paths: make([][]int, len(edges))}
	d.layer, d.x = make([]int, len(nodes)), make([]float64, len(nodes))
	for _, n := range nodes {
		d.width = append(d.width, n.Width)
	}
	return d
}

// maxPerLayer returns how many nodes are side by side at most.
func (d *drawing) maxPerLayer() int {
	return max(8, int(math.Ceil(math.Sqrt(float64(len(d.nodes))))))
}

// rank puts each node into a layer, and leaves out the edges that close a cycle.
func (d *drawing) rank() {
	needs, waits := make([][]int, len(d.nodes)), make([]int, len(d.nodes))
	for i, e := range d.edges {
		if e.From >= 0 && e.To >= 0 && e.From < len(d.nodes) && e.To < len(d.nodes) && e.From != e.To {
			d.used[i] = true
			needs[e.From] = append(needs[e.From], i)
			waits[e.To]++
		}
	}
	placed, counts := make([]bool, len(d.nodes)), map[int]int{}
	for range d.nodes {
		n := next(placed, waits)
		placed[n] = true
		for counts[d.layer[n]] >= d.maxPerLayer() {
			d.layer[n]++
		}
		counts[d.layer[n]]++
		for _, i := range needs[n] {
			to := d.edges[i].To
			if placed[to] {
				d.used[i] = false // it closes a cycle
				continue
			}
			waits[to]--
			d.layer[to] = max(d.layer[to], d.layer[n]+1)
		}
	}
}

// next returns the first node that waits for none, or in a cycle for the fewest.
func next(placed []bool, waits []int) int {
	best := -1
	for i := range placed {
		if !placed[i] && (best < 0 || waits[i] < waits[best]) {
			best = i
		}
	}
	return best
}

// addLanes gives each edge a place in each layer that it passes.
func (d *drawing) addLanes() {
	type lane struct{ from, class, layer int }
	lanes := map[lane]int{}
	depth := 0
	for n := range d.nodes {
		depth = max(depth, d.layer[n]+1)
	}
	for i, e := range d.edges {
		if !d.used[i] {
			continue
		}
		path := []int{e.From}
		for l := d.layer[e.From] + 1; l < d.layer[e.To]; l++ {
			key := lane{e.From, e.Class, l}
			at, known := lanes[key]
			if !known {
				at = len(d.layer)
				lanes[key] = at
				d.layer, d.x, d.width = append(d.layer, l), append(d.x, 0), append(d.width, 0)
			}
			path = append(path, at)
		}
		d.paths[i] = append(path, e.To)
	}
	d.layers = make([][]int, depth)
	for i, l := range d.layer {
		d.layers[l] = append(d.layers[l], i)
	}
	d.above, d.below = make([][]int, len(d.layer)), make([][]int, len(d.layer))
	for _, path := range d.paths {
		for i := 1; i < len(path); i++ {
			if from, to := path[i-1], path[i]; !slices.Contains(d.below[from], to) {
				d.below[from], d.above[to] = append(d.below[from], to), append(d.above[to], from)
			}
		}
	}
}

// order orders the items of each layer by the mean of their neighbours, and keeps the order with the fewest
// crossings.
func (d *drawing) order() {
	best, fewest := d.copyLayers(), d.crossings()
	for sweep := 0; sweep < sweeps && fewest > 0; sweep++ {
		down := sweep%2 == 0
		for i := range d.layers {
			if down {
				d.sortLayer(i, d.above)
			} else {
				d.sortLayer(len(d.layers)-1-i, d.below)
			}
		}
		if n := d.crossings(); n < fewest {
			best, fewest = d.copyLayers(), n
		}
	}
	d.layers = best
}

func (d *drawing) copyLayers() [][]int {
	out := make([][]int, len(d.layers))
	for i, l := range d.layers {
		out[i] = slices.Clone(l)
	}
	return out
}

// positions returns the place of each item within its layer.
func (d *drawing) positions() []float64 {
	out := make([]float64, len(d.layer))
	for _, l := range d.layers {
		for i, item := range l {
			out[item] = float64(i)
		}
	}
	return out
}

// sortLayer orders a layer by the mean of the neighbours; what has none keeps its place.
func (d *drawing) sortLayer(layer int, neighbours [][]int) {
	at := d.positions()
	key := func(item int) float64 {
		if len(neighbours[item]) == 0 {
			return at[item]
		}
		sum := 0.0
		for _, n := range neighbours[item] {
			sum += at[n]
		}
		return sum / float64(len(neighbours[item]))
	}
	keys := map[int]float64{}
	for _, item := range d.layers[layer] {
		keys[item] = key(item)
	}
	slices.SortStableFunc(d.layers[layer], func(a, b int) int {
		return cmp.Compare(keys[a], keys[b])
	})
	d.centreLanes(layer, keys)
}

// centreLanes puts lanes into the middle of the items that want the same place, so that what goes on from them
// is below them.
func (d *drawing) centreLanes(layer int, keys map[int]float64) {
	items := d.layers[layer]
	for from := 0; from < len(items); {
		to := from + 1
		for to < len(items) && keys[items[to]] == keys[items[from]] {
			to++
		}
		var lanes, boxes []int
		for _, item := range items[from:to] {
			if item < len(d.nodes) {
				boxes = append(boxes, item)
			} else {
				lanes = append(lanes, item)
			}
		}
		half := len(boxes) / 2
		copy(items[from:to], slices.Concat(boxes[:half], lanes, boxes[half:]))
		from = to
	}
}

// crossings returns how many edges cross between neighbouring layers.
func (d *drawing) crossings() int {
	at, total := d.positions(), 0
	for _, layer := range d.layers {
		var ends []int
		for _, item := range layer {
			next := slices.Clone(d.below[item])
			slices.SortFunc(next, func(a, b int) int { return int(at[a] - at[b]) })
			for _, n := range next {
				ends = append(ends, int(at[n]))
			}
		}
		total += inversions(ends)
	}
	return total
}

// inversions counts the pairs that are in the wrong order, with a tree of partial sums.
func inversions(values []int) int {
	if len(values) == 0 {
		return 0
	}
	tree, total := make([]int, slices.Max(values)+2), 0
	for seen, v := range values {
		notAbove := 0
		for i := v + 1; i > 0; i -= i & -i {
			notAbove += tree[i]
		}
		total += seen - notAbove
		for i := v + 1; i < len(tree); i += i & -i {
			tree[i]++
		}
	}
	return total
}
