package evaluate_test

import (
	"testing"

	"operetta.dev/engine/program"
)

// TestWhatIsUnknownMayBeBroken evaluates resources of which one breaks what is not known yet by its values.
func TestWhatIsUnknownMayBeBroken(t *testing.T) {
	t.Parallel()
	const quotient = liveData + `.n >= div(100, cr.spec.zero)`
	for _, f := range []form{
		{"verify", "", "", `verify: ok: ` + quotient, ""},
		{"verify of a text", `import "strconv"`, "", `verify: ok: ` + liveData + `.n >= strconv.Atoi(cr.spec.digits)`, ""},
		{"verify of a conjunction", "", "", `verify: ok: ` + liveData + `.n > 3 && 3 > div(100, cr.spec.zero)`, ""},
		{"verify by a hidden field", "", "", `verify: ok: _ok`, `_ok: ` + quotient},
		{"failed", "", "", `failed: bad: ` + quotient, ""},
		{"when", "", "", `when: ` + quotient, ""},
		{"requires", "", "", `requires: r: ` + quotient, ""},
		{"check of an edge", "", "", `dependsOn: base: check: ` + quotient, `components: base: objects: b: {apiVersion: "v1", kind: "ConfigMap", metadata: name: "b"}`},
		{"status", "", "", "", `status: {x: ` + liveData + `.n + div(100, cr.spec.zero), y: 1}`},
		{"field of the status", "", "", "", `status: {x: {a: ` + liveData + `.n, b: div(100, cr.spec.zero)}, y: 1}`},
		{"object", "", `data: {a: ` + liveData + `.a, b: "\(div(100, cr.spec.zero))"}`, "", ""},
		{"component", "", "", "", `components: {if ` + quotient + ` {x: objects: b: {apiVersion: "v1", kind: "ConfigMap", metadata: name: "b"}}}`},
	} {
		t.Run(f.name, func(t *testing.T) {
			t.Parallel()
			f.root += "\n#Spec: {zero?: int, digits?: string}"
			sessions := []program.Session{formSession(1, 0), formSession(1, 0)}
			for i, s := range sessions {
				spec, _ := s.CR["spec"].(map[string]any)
				spec["zero"], spec["digits"] = int64(2), "80"
				if i == 1 {
					spec["zero"], spec["digits"] = int64(0), "http"
				}
			}
			p := f.load(t)
			f.compare(t, p, sessions, answersOfCUE(p, sessions))
		})
	}
}
