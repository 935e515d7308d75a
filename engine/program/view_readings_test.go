package program_test

import (
	"testing"

	"operetta.dev/engine/program"
	"operetta.dev/test/inline"
)

// A package has many ways to refer to what the engine fills, and none of them may see less than there is.
func TestWhatAPackageReadsByDetoursIsPartOfTheView(t *testing.T) {
	t.Parallel()
	const d = "d: {apiVersion: v1, kind: ConfigMap, metadata: {name: d}, "
	for name, row := range map[string]struct {
		text, label, live string
		want              any
	}{
		"a hidden field beside one that is anything": {
			text: "cr: {metadata: _, _t: metadata.labels.t}\nstatus: n: cr._t", label: "A", want: "A",
		},
		"an alias of the resource": {
			text: "cr: C={_t: C.metadata.labels.t}\nstatus: n: cr._t", label: "B", want: "B",
		},
		"a loop whose key and value have one name": {
			text: "status: n: [for c, c in live.web.d.x {c.type}][0]", live: d + "x: [{type: A}]}", want: "A",
		},
		"a struct that is embedded at the root": {
			text: "{live: _, status: n: [for c in live.web.d.x {c.type}][0]}", live: d + "x: [{type: A}]}", want: "A",
		},
		"annotations that nobody but the engine has made": {
			text: "status: {n: live.web.d.metadata.annotations != _|_, m: *live.web.e.metadata.annotations.\"operetta.dev/digest\" | \"\"}",
			live: d + "x: 1}", want: true,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := compile(t, row.text)
			other := session(t, `{}`, `{}`)
			s := session(t, `{}`, `{}`)
			if row.live != "" {
				inline.Decode(t, "web: {"+row.live+"}", &s.Live)
			}
			if row.label != "" {
				s.CR["metadata"].(map[string]any)["labels"] = map[string]any{"t": row.label}
			}
			if got := statusOf(t, p, s); got != row.want {
				t.Errorf("it says %v, want %v", got, row.want)
			}
			if p.Views().Of(s).Whole() == p.Views().Of(other).Whole() {
				t.Error("the view is that of a session without it")
			}
		})
	}
}

func statusOf(t *testing.T, p *program.Program, s program.Session) any {
	t.Helper()
	r, err := p.Evaluate(s)
	if err != nil {
		t.Fatal(err)
	}
	return r.Status["n"]
}

func TestAPackageThatRefersToInputsByTheirNamesSeesThem(t *testing.T) {
	t.Parallel()
	for name, text := range map[string]string{
		"a sibling":  `inputs: {a: {apiVersion: "v1", kind: "ConfigMap", name: "a"}, b: {apiVersion: "v1", kind: "ConfigMap", name: a.object.data.next}}`,
		"an alias":   `inputs: {A=a: {apiVersion: "v1", kind: "ConfigMap", name: "a"}, b: {apiVersion: "v1", kind: "ConfigMap", name: A.object.data.next}}`,
		"the inputs": `inputs: I={a: {apiVersion: "v1", kind: "ConfigMap", name: "a"}, b: {apiVersion: "v1", kind: "ConfigMap", name: I.a.object.data.next}}`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := compile(t, text)
			s := session(t, `{}`, `{}`)
			inline.Decode(t, `a: {objects: [{apiVersion: v1, kind: ConfigMap, metadata: {name: a}, data: {next: b}}]}`, &s.Inputs)
			r, err := p.Evaluate(s)
			if err != nil {
				t.Fatal(err)
			}
			if len(r.Inputs) != 2 || r.Inputs[1].Object != "b" {
				t.Errorf("the inputs are %+v", r.Inputs)
			}
		})
	}
}
