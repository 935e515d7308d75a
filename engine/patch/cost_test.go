package patch_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"operetta.dev/engine/patch"
	"operetta.dev/engine/program"
)

// listed returns a list of so many items as JSON.
func listed(n int, item string) json.RawMessage {
	return json.RawMessage("[" + strings.TrimSuffix(strings.Repeat(item+",", n), ",") + "]")
}

// environment returns a merge patch of a container that has so many variables.
func environment(prefix string, n int) map[string]any {
	env := make([]any, n)
	for i := range env {
		env[i] = map[string]any{"name": fmt.Sprint(prefix, i)}
	}
	container := map[string]any{"name": "web", "env": env}
	return map[string]any{"spec": map[string]any{"template": map[string]any{"spec": map[string]any{"containers": []any{container}}}}}
}

// A user who may write patches of one resource must not be able to keep the operator busy.
func TestPatchesThatAreWithinTheirSizesCostLittle(t *testing.T) {
	t.Parallel()
	const pod = "/spec/template/spec"
	for name, c := range map[string]struct {
		// last is the reason of the last patch: what all may cost was used up before.
		last   patch.Reason
		change func(i int) patch.Change
	}{
		"lists whose items have no names": {patch.TooMany, func(i int) patch.Change {
			at := pod + []string{"/containers", "/initContainers", "/ephemeralContainers"}[i%3]
			return patch.Change{Operations: []patch.Operation{{Op: "add", Path: at, Value: listed(21_000, "{}")}}}
		}},
		"lists that are merged": {patch.TooMany, func(i int) patch.Change {
			return patch.Change{StrategicMerge: environment(fmt.Sprint("e", i%3, "-"), 3900)}
		}},
		"short lists that are merged": {patch.TooMany, func(i int) patch.Change {
			return patch.Change{StrategicMerge: environment(fmt.Sprint("e", i, "-"), 200)}
		}},
		"many operations": {"", func(int) patch.Change {
			out := patch.Change{}
			for range 1000 {
				out.Operations = append(out.Operations, patch.Operation{Op: "add", Path: pod + "/tolerations", Value: listed(3, "{}")})
			}
			return out
		}},
		"what is nested": {patch.Invalid, func(int) patch.Change {
			deep := strings.Repeat("[", 9000) + strings.Repeat("]", 9000)
			return patch.Change{Operations: []patch.Operation{{Op: "add", Path: "/metadata/annotations", Value: json.RawMessage(deep)}}}
		}},
	} {
		for kind, manifest := range map[string]string{"known": bare, "unknown": strings.NewReplacer("apps/v1", "example.com/v1").Replace(bare)} {
			t.Run(name+" of a kind that is "+kind, func(t *testing.T) {
				t.Parallel()
				rendered := []program.Component{{Name: "web", When: program.WhenResult{Verdict: program.True}, Objects: []program.Object{objectOf(t, "it", manifest)}}}
				var patches []patch.Patch
				for i := range 64 {
					change := c.change(i)
					change.Address = "web.it"
					patches = append(patches, patch.Patch{Name: fmt.Sprintf("p%02d", i), Changes: []patch.Change{change}})
				}
				begun := time.Now()
				_, reports := patch.Apply(rendered, patches, nil)
				t.Logf("it took %s", time.Since(begun))
				var last patch.Reason
				for _, u := range reports[63].Unmatched {
					last = u.Reason
				}
				if last != c.last {
					t.Errorf("the last is %v, want %q", reports[63].Unmatched, c.last)
				}
			})
		}
	}
}

func TestManyHonestPatchesAreNotTooMuch(t *testing.T) {
	t.Parallel()
	o := objectOf(t, "it", confined)
	o.Manifest["metadata"].(map[string]any)["annotations"] = map[string]any{"text": strings.Repeat("x", 8<<10)}
	rendered := []program.Component{{Name: "web", When: program.WhenResult{Verdict: program.True}, Objects: []program.Object{o}}}
	var patches []patch.Patch
	for i := range 64 {
		c := patch.Change{Address: "web.it", StrategicMerge: environment(fmt.Sprint("e", i, "-"), 5)}
		patches = append(patches, patch.Patch{Name: fmt.Sprintf("p%02d", i), Changes: []patch.Change{c}})
	}
	_, reports := patch.Apply(rendered, patches, nil)
	for _, r := range reports {
		if len(r.Unmatched) > 0 {
			t.Fatalf("%s: %v", r.Patch.Name, r.Unmatched)
		}
	}
}
