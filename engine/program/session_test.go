package program_test

import (
	"testing"

	"operetta.dev/engine/program"
)

// What does not enter an evaluation must not be missed in it: each row reads the
// same value in another way.
func TestWhateverThePackageRefersToIsThere(t *testing.T) {
	t.Parallel()
	// What the component holds, and what stands beside the components.
	cases := map[string][2]string{
		"by its path":             {`verify: it: live.web.d.status.ready == "yes"`},
		"by index":                {`verify: it: live["web"]["d"]["status"]["ready"] == "yes"`},
		"by a computed index":     {`verify: it: live["\("we")b"].d.status.ready == "yes"`},
		"by a let":                {`let l = live, verify: it: l.web.d.status.ready == "yes"`},
		"by a let at the root":    {`verify: it: l.d.status.ready == "yes"`, `let l = live.web`},
		"by a hidden field":       {`verify: it: _live.web.d.status.ready == "yes"`, `_live: live`},
		"by a hidden struct":      {`verify: it: _parts.status.ready == "yes"`, `_parts: {live.web.d}`},
		"by an alias":             {`verify: it: L.web.d.status.ready == "yes"`, `L=live: _`},
		"by an alias as a whole":  {`verify: it: _all.web.d.status.ready == "yes"`, "L=live: _\n_all: {L}"},
		"in a loop over objects":  {`verify: it: [for _, o in live.web {o.status.ready}] == ["yes"]`},
		"in a loop over all":      {`verify: it: [for _, c in live for _, o in c {o.status.ready}] == ["yes"]`},
		"as an argument":          {`verify: it: (#R & {object: live.web.d}).ready`, `#R: {object: _, ready: object.status.ready == "yes"}`},
		"in a comparison of all":  {`verify: it: live.web.d.status == {ready: "yes"}`},
		"as the presence of one":  {`verify: it: live.web.d != _|_`},
		"in an interpolation":     {`verify: it: "\(live.web.d.status.ready)!" == "yes!"`},
		"in a guard":              {`if live.web.d.status.ready == "yes" {verify: it: true}`},
		"in a guard at the root":  {`outputs: {}`, `if live.web.d.status.ready == "yes" {components: web: verify: it: true}`},
		"in a list":               {`verify: it: [for c in live.web.d.list if c.type == "A" {c.status}] == ["T"]`},
		"in a type of the author": {`verify: it: live.web.d.status.ready == "yes"`, `live: web: d: status: ready: string`},
	}
	for name, text := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := compile(t, text[1]+"\ncomponents: web: {"+text[0]+"}\n")
			r := evaluate(t, p, session(t, `{}`, `{web: {d: {status: {ready: "yes"}, list: [{type: A, status: "T"}]}}}`))
			if v := r.Components[0].Verify; len(v) != 1 || v[0].Verdict != program.True {
				t.Errorf("got %+v", v)
			}
		})
	}
}
