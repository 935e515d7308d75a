package program_test

import (
	"fmt"
	"path"
	"strings"
	"testing"

	"operetta.dev/engine/program"
	"operetta.dev/engine/source"
	"operetta.dev/test/golden"
)

// TestLoad loads the package of each golden file, and compares what it says of
// its kind, or what is wrong with it.
func TestLoad(t *testing.T) {
	t.Parallel()
	golden.Run(t, "testdata/load/*.txtar", func(c *golden.Case) {
		dir := strings.TrimSpace(string(c.File("dir")))
		s, err := source.Loader{}.Module(path.Base(path.Join("shop", dir)), "", dir, c.FS("module")) // the root is the folder shop
		if err != nil {
			c.Want("want", "source: "+err.Error())
			return
		}
		p, err := program.Load(s)
		if err != nil {
			c.Want("want", err.Error())
			return
		}
		c.Want("want", metaText(p))
	})
}

func metaText(p *program.Program) string {
	m := p.Meta()
	var b strings.Builder
	fmt.Fprintf(&b, "package %s is %v, stored\n", p.Name(), p.GroupVersionKind())
	fmt.Fprintf(&b, "names %s %s %v %v, clusterScoped %v\n", m.Plural, m.Singular, m.ShortNames, m.Categories, m.ClusterScoped)
	if m.Description != "" {
		fmt.Fprintf(&b, "description %q\n", m.Description)
	}
	for _, v := range m.Versions {
		fmt.Fprintf(&b, "version %s served %v storage %v deprecated %q\n", v.Name, v.Served, v.Storage, v.Deprecated)
		for _, c := range v.Columns {
			fmt.Fprintf(&b, "  column %+v\n", c)
		}
	}
	return b.String()
}
