package graph

import (
	"cmp"
	"fmt"
	"strings"
)

// Tree draws the graph as a tree for a terminal, with dependencies above what needs them:
//
//	config
//	│ · ConfigMap/web
//	db
//	└─ cache
//	   └─ web  (also after config)
//
// Each node is drawn once, below the dependency that comes last in the order: that is the one
// that it waits for. Its other dependencies follow its label, unless they are above it in the
// tree. text returns the label of a node and the lines below it, such as its objects; nil prints the node itself.
// Tree errors like [Graph.Order].
func (g *Graph[N, E]) Tree(text func(N) []string) (string, error) {
	order, err := g.sort()
	if err != nil {
		return "", err
	}
	t := &tree[N, E]{g: g, text: text, parent: make([]int, len(g.nodes)), children: make([][]int, len(g.nodes))}
	place := make([]int, len(order))
	for at, i := range order {
		place[i] = at
	}
	var roots []int
	for _, i := range order {
		t.parent[i] = -1
		for _, h := range g.out[i] {
			if p := t.parent[i]; p < 0 || place[h.node] > place[p] {
				t.parent[i] = h.node
			}
		}
		if p := t.parent[i]; p >= 0 {
			t.children[p] = append(t.children[p], i)
		} else {
			roots = append(roots, i)
		}
	}
	for _, i := range roots {
		t.draw(i, "", "")
	}
	return t.b.String(), nil
}

type tree[N cmp.Ordered, E any] struct {
	g        *Graph[N, E]
	text     func(N) []string
	parent   []int
	children [][]int
	b        strings.Builder
}

// draw writes a node with the prefix first, and everything below it with the prefix rest.
func (t *tree[N, E]) draw(i int, first, rest string) {
	text := linesOf(t.g.nodes[i], t.text)
	t.line(first, text[0]+t.otherDependencies(i))
	gutter := rest + "  "
	if len(t.children[i]) > 0 {
		gutter = rest + "│ "
	}
	for _, l := range text[1:] {
		t.line(gutter, "· "+l)
	}
	for at, child := range t.children[i] {
		if at < len(t.children[i])-1 {
			t.draw(child, rest+"├─ ", rest+"│  ")
		} else {
			t.draw(child, rest+"└─ ", rest+"   ")
		}
	}
}

func (t *tree[N, E]) line(prefix, text string) {
	t.b.WriteString(strings.TrimRight(prefix+text, " "))
	t.b.WriteByte('\n')
}

// otherDependencies returns the dependencies that the position in the tree does not show, as text.
func (t *tree[N, E]) otherDependencies(i int) string {
	above := map[N]bool{}
	for p := t.parent[i]; p >= 0; p = t.parent[p] {
		above[t.g.nodes[p]] = true
	}
	var names []string
	for _, n := range t.g.Dependencies(t.g.nodes[i]) {
		if !above[n] {
			names = append(names, fmt.Sprint(n))
		}
	}
	if names == nil {
		return ""
	}
	return "  (also after " + strings.Join(names, ", ") + ")"
}

// linesOf returns the label and the lines of a node. All but the first line of a label become lines
// of the node, so that no text can break the drawing.
func linesOf[N any](n N, text func(N) []string) []string {
	if text == nil {
		text = func(n N) []string { return []string{fmt.Sprint(n)} }
	}
	var out []string
	for _, t := range text(n) {
		t = strings.NewReplacer("\r\n", "\n", "\r", "\n").Replace(t)
		out = append(out, strings.Split(t, "\n")...)
	}
	return out
}
