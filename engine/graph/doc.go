// Package graph is a small generic DAG: nodes in author order, edges that mean "from needs to",
// and the questions that the engine asks about them.
//
//	g := graph.New[string, string]()
//	g.AddNode("config", "db", "cache", "web")
//	err := g.AddEdge("web", "db", "web.cue:12")
//	order, err := g.Order() // config, db, cache, web
//
// Add every node, then every edge, then query. A query depends only on the order of the nodes and
// on the set of edges, not on the order in which edges were added. Where several answers are
// right, nodes that were added first come first. Only Order and Tree can fail, and only because
// of cycles: a [*CycleError] has the path, and the origin of each of its edges.
//
// The package knows nothing of components or readiness. A graph is safe for concurrent queries
// once it is built.
package graph
