// Package eval evaluates the reference package with custom resources and live
// objects, as a reconcile does, without a cluster.
//
// Each case is a txtar file in testdata: cr.yaml, live.yaml, and what comes of
// them. go test -update writes the latter.
package eval

import (
	"sync"
	"testing"

	"k8s.io/apimachinery/pkg/util/yaml"

	"operetta.dev/engine/program"
	"operetta.dev/engine/source"
	"operetta.dev/test/golden"
)

// reference is the program of the reference package: all cases share it, as all
// resources of an operator do.
var reference = sync.OnceValues(func() (*program.Program, error) {
	s, err := source.Folder("../../cue/webapp")
	if err != nil {
		return nil, err
	}
	return program.Load(s)
})

func TestEvaluation(t *testing.T) {
	t.Parallel()
	p, err := reference()
	if err != nil {
		t.Fatal(err)
	}
	golden.Run(t, "testdata/*.txtar", func(c *golden.Case) {
		var s program.Session
		decode(c, c.File("cr.yaml"), &s.CR)
		decode(c, c.File("live.yaml"), &s.Live)
		r, err := p.Evaluate(s)
		if err != nil {
			c.Fatal(err)
		}
		c.Want("rollout", golden.Rollout(r))
	})
}

func decode(t testing.TB, data []byte, into any) {
	t.Helper()
	if err := yaml.Unmarshal(data, into); err != nil {
		t.Fatal(err)
	}
}
