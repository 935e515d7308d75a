package packages

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime"
	"operetta.dev/engine/status"
)

// Whoever applies a field that this version does not know has to read which, and nothing of the files: they may have passwords.
func TestAFieldOfASpecThatCannotBeReadIsNamedAndTheFilesBesideItAreNotServed(t *testing.T) {
	t.Parallel()
	in := func(spec map[string]any, value any, path ...string) map[string]any {
		spec = runtime.DeepCopyJSON(spec)
		at := spec
		for _, name := range path[:len(path)-1] {
			next, _ := at[name].(map[string]any)
			if next == nil {
				next = map[string]any{}
				at[name] = next
			}
			at = next
		}
		at[path[len(path)-1]] = value
		return spec
	}
	const secret = "hunter2"
	next := text("Thing", secret)
	for name, row := range map[string]struct {
		reason string
		spec   map[string]any
		want   string
	}{
		"beside the source":      {"a typo, or a newer version", in(next, true, "newer"), `strict decoding error: unknown field "newer"`},
		"two of them":            {"in one order, or the status would flap", in(in(next, true, "newer"), "x", "also"), `strict decoding error: unknown field "also", unknown field "newer"`},
		"in the source":          {"the files are not taken for the only source", in(next, map[string]any{"url": secret}, "source", "git"), `strict decoding error: unknown field "source.git"`},
		"in another source":      {"it is named by its path", in(next, "x", "source", "configMap", "key"), `strict decoding error: unknown field "source.configMap.key"`},
		"in the limits":          {"a limit that is not read would be none", in(next, int64(1), "limits", "maxChange"), `strict decoding error: unknown field "limits.maxChange"`},
		"a limit of a type":      {"it would be guessed", in(next, secret, "limits", "maxDelete"), "limits.maxDelete: unrecognized type: int64"},
		"a file that is no text": {"it would be another file", in(next, map[string]any{"password": secret}, "source", "inline", "main.cue"), "source.inline: unrecognized type: string"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newSite(t)
			step := func() {
				t.Helper()
				if err := s.step("p"); err != nil {
					t.Fatal(err)
				}
			}
			served := func() string { return s.states["p"].served.Digest() }
			s.apply("p", text("Thing", "a"))
			step()
			before := served()

			s.apply("p", row.spec)
			step()
			step()
			u, _ := s.get("p").Object["status"].(map[string]any)
			ready, stalled := status.Condition(u, status.ConditionReady), status.Condition(u, status.ConditionStalled)
			if want := "package p: reading the spec: " + row.want + "; " + before + " is served"; ready.Reason != string(ReasonInvalid) || ready.Message != want {
				t.Errorf("%s: Ready is %s: %q, want %q", row.reason, ready.Reason, ready.Message, want)
			}
			if stalled == nil || stalled.Message != "package p: reading the spec: "+row.want || strings.Contains(ready.Message, secret) {
				t.Errorf("%s: Stalled is %+v", row.reason, stalled)
			}
			if served() != before {
				t.Errorf("%s: another content is served", row.reason)
			}

			s.apply("p", next)
			step()
			if got := served(); got == before || s.ready("p") != "True Served" {
				t.Errorf("%s: without the field it is %s, and %s is served", row.reason, s.ready("p"), got)
			}
		})
	}
}
