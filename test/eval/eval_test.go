// Package eval evaluates the reference package with custom resources and live
// objects, as a reconcile does, without a cluster.
//
// Each case is a txtar file in testdata: cr.yaml, live.yaml, and what comes of
// them. go test -update writes the latter.
package eval

import (
	"sync"
	"testing"

	"operetta.dev/engine/program"
	"operetta.dev/engine/source"
	"operetta.dev/test/golden"
	"operetta.dev/test/inline"
)

// reference is the program of the reference package: all cases share it, as all
// resources of an operator do.
var reference = sync.OnceValues(func() (*program.Program, error) {
	s, err := source.Loader{}.Folder("../../cue/webapp")
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
		inline.Decode(c, c.File("cr.yaml"), &s.CR)
		inline.Decode(c, c.File("live.yaml"), &s.Live)
		r, err := p.Evaluate(s)
		if err != nil {
			c.Fatal(err)
		}
		c.Want("rollout", golden.Rollout(r))
	})
}
