// Package graph is a small generic DAG: nodes in author order, edges that mean
// "from needs to", and the questions an engine asks of them.
//
//	g := graph.New[string, string]()
//	g.AddNode("config", "db", "cache", "web")
//	err := g.AddEdge("web", "db", "web.cue:12")
//	order, err := g.Order() // config, db, cache, web
//
// What it is: a data structure and pure functions of it. Every answer is a
// function of the node order and of the set of edges alone; the order in which
// edges were added never shows. Where more than one answer is right, the nodes
// added first come first.
//
// What it is not: it knows no component, runs nothing, and decides nothing about
// readiness. It may be queried from many goroutines once it is built, but not
// while it is being built.
//
// Use: New, AddNode for every node, AddEdge for every edge, then any query. Order
// is the only query that fails, and it fails only for cycles, with a
// [*CycleError] that names the whole path and the origin of each edge.
package graph
