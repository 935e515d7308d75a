package controller

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	"operetta.dev/engine/dryrun"
	"operetta.dev/engine/packages"
	"operetta.dev/engine/plan"
)

func TestThePlanOfARevisionCountsWhatItMayDelete(t *testing.T) {
	t.Parallel()
	object := func(name string, outcome dryrun.Outcome) plan.Object {
		return plan.Object{Kind: "ConfigMap", Namespace: "ns", Name: name, Outcome: outcome}
	}
	listed := func(name, outcome string) packages.ImpactObject {
		return packages.ImpactObject{Object: "ConfigMap ns/" + name, Resource: "Shop ns/a", Outcome: outcome}
	}
	shop := func(cause plan.Cause, objects ...plan.Object) plan.Resource {
		return plan.Resource{Kind: "Shop", Namespace: "ns", Name: "a", Undecided: cause, Objects: objects, Problems: []plan.Problem{{Message: "it is away"}}}
	}
	for name, row := range map[string]struct {
		reason string
		given  []plan.Resource
		want   packages.Impact
	}{
		"nothing": {"no resource is no object", nil, packages.Impact{}},
		"each outcome": {
			"what is created, updated or left behind harms nobody",
			[]plan.Resource{shop(
				"", object("a", dryrun.Created), object("b", dryrun.Updated), object("c", plan.Orphaned), object("d", dryrun.Deleted), object("e", plan.Delayed),
				object("f", dryrun.Recreated), object("g", plan.Undecided),
			)},
			packages.Impact{
				Resources: 1, Deleted: 2, Recreated: 1, Undecided: 1,
				Objects: []packages.ImpactObject{listed("d", "deleted"), listed("e", "delayed"), listed("f", "recreated"), listed("g", "undecided")},
			},
		},
		"a cause that is about the revision": {"the plan is complete", []plan.Resource{shop(plan.Held)}, packages.Impact{Resources: 1}},
		"a cause that passes":                {"there may be more", []plan.Resource{shop(plan.Unread), shop(plan.NoWorker)}, packages.Impact{Resources: 2, Incomplete: "Shop ns/a: it is away"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if diff := cmp.Diff(row.want, impactOf(plan.Plan{Resources: row.given})); diff != "" {
				t.Errorf("%s (-want +got):\n%s", row.reason, diff)
			}
		})
	}
}

func TestTheListOfAPlanIsBoundedAndItsCountsAreNot(t *testing.T) {
	t.Parallel()
	var r plan.Resource
	for i := range 100_000 {
		r.Objects = append(r.Objects, plan.Object{Kind: "ConfigMap", Name: fmt.Sprint(i), Outcome: dryrun.Deleted})
	}
	got := impactOf(plan.Plan{Resources: []plan.Resource{r}})
	if got.Deleted != 100_000 || len(got.Objects) != packages.MaxImpactObjects {
		t.Errorf("%d are counted, and %d listed", got.Deleted, len(got.Objects))
	}
}

func TestAVersionIsServedByTheEvaluatorThatHasPlannedIt(t *testing.T) {
	t.Parallel()
	m, err := New(away, Options{InProcess: true})
	if err != nil {
		t.Fatal(err)
	}
	p := load(t, "planned", "Planned")
	by := m.prepare(p)
	if m.prepare(p) != by {
		t.Error("a second plan makes the templates anew")
	}
	if err := m.Serve(p); err != nil {
		t.Fatal(err)
	}
	if m.controllers[p.GroupVersionKind().GroupKind()].program.Load() != by {
		t.Error("the version makes its templates anew when it is served")
	}
	if m.evaluatorOf(p) != by {
		t.Error("a plan of the next version does not use the templates of the one that is served")
	}
	if next := load(t, "planned", "Planned"); m.takePrepared(next) == by {
		t.Error("another version is served by the evaluator")
	}
}
