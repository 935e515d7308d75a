package plan_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"operetta.dev/engine/dryrun"
	"operetta.dev/engine/dryrun/diff"
	"operetta.dev/engine/explain"
	"operetta.dev/engine/plan"
)

func TestTheTextOfAPlanSaysOfWhomItIsAndWhatIsWritten(t *testing.T) {
	t.Parallel()
	resource := func(name string, class plan.Class, objects []plan.Object, problems ...plan.Problem) plan.Resource {
		return plan.Resource{Kind: "Shop", Namespace: "default", Name: name, Class: class, Objects: objects, Problems: problems}
	}
	updated := func(component, name string, fields ...diff.Field) []plan.Object {
		return []plan.Object{{Component: component, Outcome: dryrun.Updated, Kind: "ConfigMap", Namespace: "default", Name: name, Fields: fields}}
	}
	outOfBound := plan.Problem{Path: "spec.size", Message: "invalid value 9 (out of bound <=5)", File: "shop/spec.cue", Line: 3}
	for name, row := range map[string]struct {
		reason    string
		resources []plan.Resource
		want      []string
	}{
		"an invalid resource": {
			"all of it stays as it is", []plan.Resource{resource("north", plan.Invalid, nil, outOfBound)},
			[]string{"1 resource: Shop default/north", "  invalid: nothing of it is written", "  ! spec.size: invalid value 9 (out of bound <=5) (shop/spec.cue:3)"},
		},
		"an invalid component": {
			"the others are written, and so the text does not say that nothing is",
			[]plan.Resource{resource("north", plan.Invalid, updated("base", "north-base", diff.Field{Path: "data.mode", Before: `"fast"`, After: `"safe"`}), plan.Problem{Component: "web", Message: "it conflicts"})},
			[]string{
				"1 resource: Shop default/north", "  invalid in part: what has a ! is not written, and the rest is", "  ! web: it conflicts",
				"  ~ base: ConfigMap north-base updated", `      data.mode: "fast" → "safe"`,
			},
		},
		"one resource": {
			"its problems have its name, and no placeholder for it",
			[]plan.Resource{resource("north", plan.Failing, nil, plan.Problem{Component: "web", Message: "Deployment default/north: applying: refused"})},
			[]string{"1 resource: Shop default/north", "  ! web: Deployment default/north: applying: refused"},
		},
		"a text that looks like a placeholder": {
			"it is what the object has",
			[]plan.Resource{resource("north", plan.Changed, updated("base", "north-base", diff.Field{Path: "data.route", After: `"/users/{name}"`}))},
			[]string{"1 resource: Shop default/north", "  ~ base: ConfigMap north-base updated", `      data.route: (none) → "/users/{name}"`},
		},
		"several resources": {
			"the name of each is in its place",
			[]plan.Resource{
				resource("north", plan.Failing, nil, plan.Problem{Component: "web", Message: "Deployment default/north: applying: refused"}),
				resource("south", plan.Failing, nil, plan.Problem{Component: "web", Message: "Deployment default/south: applying: refused"}),
			},
			[]string{"2 resources: Shop default/north, Shop default/south", "  ! web: Deployment default/{name}: applying: refused"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			text := plan.Plan{Package: "shop", Resources: row.resources}.Text(explain.Plain)
			_, group, _ := strings.Cut(text, "\n\n") // the summary is above and below
			group, _, _ = strings.Cut(group, "\n\n")
			if diff := cmp.Diff(row.want, strings.Split(group, "\n")); diff != "" {
				t.Errorf("%s (-want +got):\n%s", row.reason, diff)
			}
		})
	}
}
