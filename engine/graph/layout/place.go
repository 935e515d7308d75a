package layout

import (
	"cmp"
	"slices"
)

// place gives each item its x: as close to the mean of its neighbours as the order and the gaps allow.
func (d *drawing) place() {
	for _, layer := range d.layers {
		x := 0.0
		for i, item := range layer {
			if i > 0 {
				x += d.distance(layer[i-1], item)
			}
			d.x[item] = x
		}
		shift := x / 2
		d.reach = max(d.reach, shift)
		for _, item := range layer {
			d.x[item] -= shift
		}
	}
	for range sweeps {
		for i := range d.layers {
			d.move(i, d.above)
		}
		for i := range slices.Backward(d.layers) {
			d.move(i, d.below)
		}
	}
	for i := range d.layers {
		d.move(i, d.above)
	}
}

// distance returns how far the middles of two neighbouring items are apart at least.
func (d *drawing) distance(a, b int) float64 {
	gap := float64(nodeGap)
	if d.width[a] == 0 || d.width[b] == 0 {
		gap = laneGap
	}
	return d.width[a]/2 + gap + d.width[b]/2
}

// A block is a run of items that stand as close as they may. Their offset is the mean of what each wants.
type block struct {
	sum   float64
	count int
}

func (b block) mean() float64 { return b.sum / float64(b.count) }

// move moves the items of a layer to the means of their neighbours. It is a regression: blocks of items that
// would overlap are merged, and share the mean of what they want.
func (d *drawing) move(layer int, neighbours [][]int) {
	items := d.layers[layer]
	var blocks []block
	offsets, offset := make([]float64, len(items)), 0.0
	for i, item := range items {
		if i > 0 {
			offset += d.distance(items[i-1], item)
		}
		offsets[i] = offset
		blocks = append(blocks, block{d.wanted(item, neighbours[item]) - offset, 1})
		for n := len(blocks); n > 1 && blocks[n-2].mean() > blocks[n-1].mean(); n-- {
			blocks[n-2] = block{blocks[n-2].sum + blocks[n-1].sum, blocks[n-2].count + blocks[n-1].count}
			blocks = blocks[:n-1]
		}
	}
	at := 0
	for _, b := range blocks {
		for range b.count {
			d.x[items[at]] = b.mean() + offsets[at]
			at++
		}
	}
}

// wanted returns the mean of the neighbours, or the present place of an item without any.
func (d *drawing) wanted(item int, neighbours []int) float64 {
	if len(neighbours) == 0 {
		return d.x[item]
	}
	sum := 0.0
	for _, n := range neighbours {
		sum += d.x[n]
	}
	// What is beyond the widest layer would make the next one go still further.
	return min(max(sum/float64(len(neighbours)), -d.reach), d.reach)
}

// result returns the places, from the upper left corner of the drawing.
func (d *drawing) result() Layout {
	out := Layout{Nodes: make([]Point, len(d.nodes)), Edges: make([][]Point, len(d.edges))}
	if len(d.nodes) == 0 {
		return out
	}
	left, right := d.x[0]-d.width[0]/2, d.x[0]+d.width[0]/2
	for i := range d.x {
		left, right = min(left, d.x[i]-d.width[i]/2), max(right, d.x[i]+d.width[i]/2)
	}
	tops, heights := make([]float64, len(d.layers)), make([]float64, len(d.layers))
	for l, items := range d.layers {
		for _, item := range items {
			if item < len(d.nodes) {
				heights[l] = max(heights[l], d.nodes[item].Height)
			}
		}
		if l > 0 {
			tops[l] = tops[l-1] + heights[l-1] + layerGap
		}
	}
	last := len(d.layers) - 1
	out.Width, out.Height = right-left, tops[last]+heights[last]
	for i, n := range d.nodes {
		out.Nodes[i] = Point{d.x[i] - n.Width/2 - left, tops[d.layer[i]]}
	}
	d.points(&out, left, tops, heights)
	return out
}

// points adds the points of the edges. Those that end in one node arrive side by side.
func (d *drawing) points(out *Layout, left float64, tops, heights []float64) {
	arriving := make([][]int, len(d.nodes))
	for i, path := range d.paths {
		if len(path) > 0 {
			to := path[len(path)-1]
			arriving[to] = append(arriving[to], i)
		}
	}
	for to, edges := range arriving {
		from := func(e int) float64 { p := d.paths[e]; return d.x[p[len(p)-2]] }
		slices.SortStableFunc(edges, func(a, b int) int {
			return cmp.Compare(from(a), from(b))
		})
		for i, e := range edges {
			path := d.paths[e]
			start := path[0]
			points := []Point{{d.x[start] - left, tops[d.layer[start]] + d.nodes[start].Height}}
			if low := tops[d.layer[start]] + heights[d.layer[start]]; low > points[0].Y {
				points = append(points, Point{points[0].X, low})
			}
			for _, lane := range path[1 : len(path)-1] {
				l := d.layer[lane]
				points = append(points, Point{d.x[lane] - left, tops[l]}, Point{d.x[lane] - left, tops[l] + heights[l]})
			}
			x := out.Nodes[to].X + d.nodes[to].Width*float64(i+1)/float64(len(edges)+1)
			out.Edges[e] = append(points, Point{x, tops[d.layer[to]]})
		}
	}
}
