package program_test

import (
	"path"
	"strings"
	"testing"

	"operetta.dev/engine/program"
	"operetta.dev/engine/source"
	"operetta.dev/test/golden"
	"operetta.dev/test/inline"
)

// TestEvaluation evaluates the package of each golden file with its cr.yaml and
// live.yaml, and compares the whole rollout.
func TestEvaluation(t *testing.T) {
	t.Parallel()
	golden.Run(t, "testdata/eval/*.txtar", func(c *golden.Case) {
		dir := strings.TrimSpace(string(c.File("dir")))
		s, err := source.Loader{}.Module(path.Base(dir), "", dir, c.FS("module"))
		if err != nil {
			c.Fatal(err)
		}
		p, err := program.Load(s)
		if err != nil {
			c.Want("want", "load: "+err.Error())
			return
		}
		var session program.Session
		inline.Decode(c, c.File("cr.yaml"), &session.CR)
		inline.Decode(c, c.File("live.yaml"), &session.Live)
		inline.Decode(c, c.File("inputs.yaml"), &session.Inputs)
		inline.Decode(c, c.File("config.yaml"), &session.Config)
		r, err := p.Evaluate(session)
		if err != nil {
			c.Want("want", "error: "+err.Error())
			return
		}
		c.Want("want", golden.Rollout(r))
	})
}
