package graph_test

import (
	"fmt"

	"operetta.dev/engine/graph"
)

func Example() {
	g := graph.New[string, string]()
	g.AddNode("web", "config", "db")
	for _, e := range [][3]string{{"web", "config", "web.cue:3"}, {"web", "db", "web.cue:4"}} {
		if err := g.AddEdge(e[0], e[1], e[2]); err != nil {
			fmt.Println(err)
		}
	}
	tree, err := g.Tree(func(n string) []string { return []string{n, "ConfigMap/" + n} })
	fmt.Print(tree, err)
	// Output:
	// config
	//   · ConfigMap/config
	// db
	// │ · ConfigMap/db
	// └─ web  (also after config)
	//      · ConfigMap/web
	// <nil>
}
