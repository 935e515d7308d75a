package plan_test

import (
	"context"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"operetta.dev/engine/explain"
	"operetta.dev/engine/patch"
	"operetta.dev/engine/plan"
)

// body is the package of most of these tests.
const body = `
#Spec: size: int & <=5 | *1
components: base: objects: config: {apiVersion: "v1", kind: "ConfigMap", metadata: name: "\(cr.metadata.name)-base", data: mode: "fast"}
components: web: {dependsOn: base: {}, objects: deployment: {
	apiVersion: "apps/v1", kind: "Deployment", metadata: name: cr.metadata.name
	spec: {replicas: cr.spec.size, selector: matchLabels: app: "web", template: {metadata: labels: app: "web", spec: containers: [{name: "web", image: "web:1"}]}}
}}
`

func TestAPlanSaysWhatAChangeOfAPackageDoes(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		reason string
		// before is the package that has rolled the resource out, and after the one that is planned.
		before, after string
		// edit is what somebody does to the cluster in between.
		edit func(*testing.T, served)
		want []string
	}{
		"the same package": {
			reason: "nothing changes", before: body, after: body, want: []string{"a unchanged"},
		},
		"another value": {
			reason: "the object is updated, field by field", before: body, after: strings.Replace(body, "web:1", "web:2", 1),
			want: []string{"a changed", "  updated web: Deployment a", `    spec.template.spec.containers[name=web].image: "web:1" → "web:2"`},
		},
		"a value that waits for a dependency": {
			reason: "the plan shows the whole way, not its first step", before: body,
			after: strings.NewReplacer("web:1", "web:2", "fast", "safe").Replace(body),
			want: []string{
				"a changed", "  updated base: ConfigMap a-base", `    data.mode: "fast" → "safe"`,
				"  updated web: Deployment a", `    spec.template.spec.containers[name=web].image: "web:1" → "web:2"`,
			},
		},
		"an immutable field": {
			reason: "the policy of the object says that it may be recreated",
			before: body, after: strings.ReplaceAll(body, `app: "web"`, `app: "shop"`) + "components: web: policy: deployment: apply: \"recreateOnImmutable\"\n",
			want: []string{
				"a changed", "  recreated web: Deployment a",
				`    spec.selector.matchLabels.app: "web" → "shop"`, `    spec.template.metadata.labels.app: "web" → "shop"`,
			},
		},
		"an immutable field without that policy": {
			reason: "the API server would refuse it", before: body, after: strings.ReplaceAll(body, `app: "web"`, `app: "shop"`),
			want: []string{"a failing", "  ! web: Deployment default/a: applying: spec.selector: Invalid value: {\"matchLabels\":{\"app\":\"shop\"}}: field is immutable (shop/b.cue:7)"},
		},
		"one more component": {
			reason: "its objects are created", before: body,
			after: body + `components: more: objects: config: {apiVersion: "v1", kind: "ConfigMap", metadata: name: "\(cr.metadata.name)-more"}` + "\n",
			want:  []string{"a changed", "  created more: ConfigMap a-more"},
		},
		"one component less": {
			reason: "its objects are pruned",
			before: body + `components: more: objects: config: {apiVersion: "v1", kind: "ConfigMap", metadata: name: "\(cr.metadata.name)-more"}` + "\n", after: body,
			want: []string{"a changed", "  deleted more: ConfigMap a-more"},
		},
		"an object that is left behind": {
			reason: "the policy keeps it, and so it is no deletion",
			before: body + `components: more: {objects: config: {apiVersion: "v1", kind: "ConfigMap", metadata: name: "\(cr.metadata.name)-more"}, policy: config: delete: "orphan"}` + "\n",
			after:  body,
			want:   []string{"a changed", "  orphaned more: ConfigMap a-more"},
		},
		"a bound": {
			reason: "the resource becomes invalid, with the field, the bound and the line", before: body, after: strings.Replace(body, "<=5", "<=2", 1),
			edit: func(t *testing.T, s served) {
				t.Helper()
				s.edit(t, "Shop", "a", func(u *unstructured.Unstructured) { u.Object["spec"] = map[string]any{"size": int64(4)} })
				s.edit(t, "Deployment", "a", func(*unstructured.Unstructured) {})
			},
			want: []string{
				"a invalid", "  ! spec.size: invalid value 4 (out of bound <=2) (shop/b.cue:3)", "  undecided base: ConfigMap a-base", "  undecided web: Deployment a",
			},
		},
		"another order": {
			reason: "a dependency is new, and the other is gone", before: body,
			after: strings.Replace(body, "web: {dependsOn: base: {}, objects", "web: {objects", 1) + "components: base: dependsOn: web: {}\n",
			want:  []string{"a changed", "  order base: behind web now", "  order web: no longer behind base"},
		},
		"a paused resource": {
			reason: "what happens once the pause ends is planned", before: body, after: strings.Replace(body, "fast", "safe", 1),
			edit: func(t *testing.T, s served) {
				t.Helper()
				s.edit(t, "Shop", "a", func(u *unstructured.Unstructured) { u.SetAnnotations(map[string]string{"operetta.dev/paused": "true"}) })
			},
			want: []string{"a paused", "  updated base: ConfigMap a-base", `    data.mode: "fast" → "safe"`},
		},
		"what somebody has edited": {
			reason: "the operator puts it right, whatever the package", before: body, after: body,
			edit: func(t *testing.T, s served) {
				t.Helper()
				s.edit(t, "ConfigMap", "a-base", func(u *unstructured.Unstructured) { u.Object["data"] = map[string]any{"mode": "slow"} })
			},
			want: []string{"a changed", "  updated base: ConfigMap a-base", `    data.mode: "slow" → "fast"`},
		},
		"a field that somebody has added": {
			reason: "the operator does not own it", before: body, after: body,
			edit: func(t *testing.T, s served) {
				t.Helper()
				s.edit(t, "ConfigMap", "a-base", func(u *unstructured.Unstructured) {
					u.Object["data"] = map[string]any{"mode": "fast", "note": "mine"}
				})
			},
			want: []string{"a unchanged"},
		},
		"an object that somebody else has": {
			reason: "the component is refused, and names the owner", before: body,
			after: body + `components: more: objects: config: {apiVersion: "v1", kind: "ConfigMap", metadata: name: "taken"}` + "\n",
			edit: func(t *testing.T, s served) {
				t.Helper()
				if _, err := s.World.Put(object("ConfigMap", "taken", map[string]any{"data": map[string]any{"x": "y"}})); err != nil {
					t.Fatal(err)
				}
			},
			want: []string{"a failing", "  ! more: "},
		},
		"a package that renders nothing": {
			reason: "an empty rollout prunes nothing without an explicit word", before: body, after: "#Spec: size: int & <=5 | *1\n",
			want: []string{"a failing", "  ! ", "  undecided base: ConfigMap a-base", "  undecided web: Deployment a"},
		},
		"a component that waits": {
			reason: "its objects stay as they are, and what it waits for is said", before: body,
			after: strings.Replace(body, "replicas: cr.spec.size", `replicas: live.base.config.metadata.annotations.replicas`, 1),
			want:  []string{"a waiting", "  ! web: waiting for "},
		},
		"a component that is invalid": {
			reason: "the line that says so is named, and the other component goes on", before: body,
			after: strings.NewReplacer("fast", "safe", "replicas: cr.spec.size", `replicas: cr.spec.size & >3`).Replace(body),
			want: []string{
				"a invalid", "  ! web: components.web.objects.deployment.spec.replicas: ", "  updated base: ConfigMap a-base", `    data.mode: "fast" → "safe"`,
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			on := serve(t, load(t, row.before), shop("a", map[string]any{"size": int64(1)}))
			if row.edit != nil {
				row.edit(t, on)
			}
			writes := len(on.World.Cluster.Changes())
			got := said(make1(t, plan.Options{Cluster: on, New: plan.Version{Program: load(t, row.after)}}))
			if diff := cmp.Diff(row.want, shortened(got, row.want)); diff != "" {
				t.Errorf("%s (-want +got):\n%s", row.reason, diff)
			}
			if n := len(on.World.Cluster.Changes()); n != writes {
				t.Errorf("%d writes to the cluster", n-writes)
			}
		})
	}
}

// shortened cuts each line to the length of the wanted one, if it begins so.
func shortened(got, want []string) []string {
	for i := range min(len(got), len(want)) {
		if strings.HasPrefix(got[i], want[i]) {
			got[i] = want[i]
		}
	}
	return got
}

func TestAPlanCountsWhatElseDecides(t *testing.T) {
	t.Parallel()
	const configured = `
#Spec: size: int | *1
config: mode: string | *"fast"
components: base: objects: settings: {apiVersion: "v1", kind: "ConfigMap", metadata: name: "base", data: mode: config.mode}
`
	patched := object("Patch", "hotfix", map[string]any{"spec": map[string]any{
		"target":  map[string]any{"apiVersion": "example.com/v1", "kind": "Shop", "name": "a"},
		"patches": []any{map[string]any{"address": "base.settings", "strategicMerge": map[string]any{"data": map[string]any{"extra": "yes"}}}},
	}})
	patched.SetGroupVersionKind(patch.Kind)
	p := load(t, configured)
	on := serve(t, p, patched, shop("a", map[string]any{}))
	for name, row := range map[string]struct {
		reason string
		o      plan.Options
		want   []string
	}{
		"a Patch stays": {
			"what it adds is no difference", plan.Options{New: plan.Version{Program: load(t, strings.Replace(configured, `"fast"`, `"safe"`, 1))}},
			[]string{"a changed", "  updated base: ConfigMap base", `    data.mode: "fast" → "safe"`},
		},
		"a hook": {
			"it runs once for its content", plan.Options{New: plan.Version{Program: load(t, configured+`
hooks: afterDeploy: smoke: objects: job: {apiVersion: "batch/v1", kind: "Job", metadata: name: "smoke", spec: template: spec: {restartPolicy: "Never", containers: [{name: "x", image: "x:1"}]}}
`)}},
			[]string{"a changed", "  created hooks.afterDeploy.smoke: Job smoke-"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			row.o.Cluster = on
			got := said(make1(t, row.o))
			if diff := cmp.Diff(row.want, shortened(got, row.want)); diff != "" {
				t.Errorf("%s (-want +got):\n%s", row.reason, diff)
			}
		})
	}
}

func TestAResourceThatIsBeingDeletedIsNotPlanned(t *testing.T) {
	t.Parallel()
	on := serve(t, load(t, body), shop("a", map[string]any{}))
	leaving := deleting{on}
	got := said(make1(t, plan.Options{Cluster: leaving, New: plan.Version{Program: load(t, strings.Replace(body, "fast", "safe", 1))}}))
	if diff := cmp.Diff([]string{"a deleting"}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// deleting is a cluster whose resources are being deleted.
type deleting struct{ served }

func (d deleting) Resources(ctx context.Context, kind schema.GroupVersionKind) ([]*unstructured.Unstructured, error) {
	all, err := d.served.Resources(ctx, kind)
	for _, u := range all {
		at := metav1.NewTime(now)
		u.SetDeletionTimestamp(&at)
	}
	return all, err
}

// What somebody writes into a status or onto an object must not make a plan hang, crash, or show what is not so.
func TestAForgedResourceIsPlannedAsItIsReconciled(t *testing.T) {
	t.Parallel()
	for name, forge := range map[string]func(*unstructured.Unstructured){
		"an inventory that is none": func(u *unstructured.Unstructured) {
			u.Object["status"] = map[string]any{"inventory": "x", "observedGeneration": int64(1)}
		},
		"an object of somebody else in the inventory": func(u *unstructured.Unstructured) {
			u.Object["status"] = map[string]any{"observedGeneration": int64(1), "inventory": []any{map[string]any{"component": "gone", "objects": []any{
				map[string]any{"object": "x", "apiVersion": "v1", "kind": "ConfigMap", "name": "taken"},
			}}}}
		},
		"a status that is no map": func(u *unstructured.Unstructured) { u.Object["status"] = "x" },
		"a spec that is no map":   func(u *unstructured.Unstructured) { u.Object["spec"] = "x" },
		"a name in the status a million times as long": func(u *unstructured.Unstructured) {
			u.Object["status"] = map[string]any{"components": []any{map[string]any{"name": strings.Repeat("x", 1<<20), "state": "Failed"}}}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			on := serve(t, load(t, body), object("ConfigMap", "taken", map[string]any{"data": map[string]any{"a": "b"}}), shop("a", map[string]any{}))
			on.edit(t, "Shop", "a", forge)
			p := make1(t, plan.Options{Cluster: on, New: plan.Version{Program: load(t, body)}})
			for _, o := range p.Resources[0].Objects {
				if o.Name == "taken" && o.Outcome != plan.Orphaned {
					t.Errorf("an object of somebody else is %s", o.Outcome)
				}
			}
			if n := len(p.Text(explain.Plain)); n > 10_000 {
				t.Errorf("the text has %d bytes", n)
			}
		})
	}
}
