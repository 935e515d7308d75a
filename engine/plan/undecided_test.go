package plan_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"operetta.dev/engine/cluster"
	"operetta.dev/engine/plan"
	"operetta.dev/engine/program"
	"operetta.dev/test/machine"
)

// pair is a package whose component web has a second object.
var pair = strings.Replace(body, "objects: deployment: {", `objects: extra: {apiVersion: "v1", kind: "ConfigMap", metadata: name: "\(cr.metadata.name)-extra"}, objects: deployment: {`, 1)

// smoke is a hook.
const smoke = `
hooks: afterDeploy: smoke: objects: job: {apiVersion: "batch/v1", kind: "Job", metadata: name: "smoke", spec: template: spec: {restartPolicy: "Never", containers: [{name: "x", image: "x:1"}]}}
`

// Bodies in which web waits for a value that is never there, and in which nobody can decide whether it should exist.
var (
	waits = func(body string) string {
		return strings.Replace(body, "replicas: cr.spec.size", "replicas: live.base.config.metadata.annotations.replicas", 1)
	}
	holds = func(body string) string {
		return strings.Replace(body, "web: {dependsOn", `web: {when: live.base.config.metadata.annotations.want == "yes", dependsOn`, 1)
	}
)

// orAway returns an error, or that the API server is away.
func orAway(err error) error {
	if err != nil {
		return err
	}
	return apierrors.NewServiceUnavailable("away")
}

// A failing package cannot be evaluated.
type failing struct {
	*program.Program

	err error
}

func (f failing) Evaluate(program.Session) (program.Rollout, error) { return program.Rollout{}, f.err }

// pause pauses the resource a.
func pause(t *testing.T, s served) {
	t.Helper()
	s.edit(t, "Shop", "a", func(u *unstructured.Unstructured) { u.SetAnnotations(map[string]string{"operetta.dev/paused": "true"}) })
}

// invalidBefore makes the status of the resource a say that it is invalid.
func invalidBefore(t *testing.T, s served) {
	t.Helper()
	s.edit(t, "Shop", "a", func(u *unstructured.Unstructured) {
		condition := map[string]any{"type": "Stalled", "status": "True", "reason": "InvalidSpec", "message": "it is", "lastTransitionTime": "2026-11-23T00:00:00Z"}
		if err := unstructured.SetNestedSlice(u.Object, []any{condition}, "status", "conditions"); err != nil {
			t.Fatal(err)
		}
	})
}

func TestAPlanSaysWhatItCannotDecide(t *testing.T) {
	t.Parallel()
	tooMuch, noWorker := &program.LimitError{Evaluated: true, Text: "it is too much"}, &program.UnavailableError{Err: context.DeadlineExceeded}
	for name, row := range map[string]struct {
		reason string
		// before is the package that has rolled the resource out, old the one of --old, or "" for none, and after the one that
		// is planned.
		before, old, after string
		// oldFails and fails are why their evaluations fail.
		oldFails, fails error
		edit            func(*testing.T, served)
		// unread is a kind that the API server does not return, and unreadBy why, if it is not away.
		unread   string
		unreadBy error
		cause    plan.Cause
		want     []string
	}{
		"an evaluation that is too much": {
			reason: "nobody knows what it would render", before: body, after: body, fails: tooMuch, cause: plan.EvaluationLimit,
			want: []string{"a failing", "  ! EvaluationLimit: ", "  undecided base: ConfigMap a-base", "  undecided web: Deployment a"},
		},
		"an evaluation that is too much for the running version as well": {
			reason: "what the status says of the running version is no matter of the new one", before: body, old: body, after: body, oldFails: tooMuch, fails: tooMuch,
			edit: func(t *testing.T, s served) {
				t.Helper()
				s.edit(t, "Shop", "a", func(u *unstructured.Unstructured) {
					conditions := []any{map[string]any{"type": "Stalled", "status": "True", "reason": "EvaluationLimit", "message": "x", "lastTransitionTime": "2026-11-23T11:00:00Z"}}
					_ = unstructured.SetNestedSlice(u.Object, conditions, "status", "conditions")
				})
			},
			want: []string{"a unchanged"},
		},
		"an evaluation that is too much for the running version in this plan alone": {
			reason: "the operator can evaluate it, so that the new version may be able to as well", before: body, old: body, after: body,
			oldFails: tooMuch, fails: tooMuch, cause: plan.EvaluationLimit,
			want: []string{"a changed", "  undecided base: ConfigMap a-base", "  undecided web: Deployment a"},
		},
		"no worker": {
			reason: "a later plan may say more", before: body, after: body, fails: noWorker, cause: plan.NoWorker,
			want: []string{"a failing", "  ! ", "  undecided base: ConfigMap a-base", "  undecided web: Deployment a"},
		},
		"no worker for the running version": {
			reason: "what it would do is not known", before: body, old: body, after: body, oldFails: noWorker, cause: plan.NoWorker,
			want: []string{"a failing", "  ! ", "  undecided base: ConfigMap a-base", "  undecided web: Deployment a"},
		},
		"a name that nobody can ask for": {
			reason: "a user who chooses it must not stop all plans", before: body, after: body, unread: "Deployment", unreadBy: errors.New("a/b is no name"), cause: plan.Blocked,
			want: []string{"a failing", "  ! ", "  undecided base: ConfigMap a-base", "  undecided web: Deployment a"},
		},
		"an API server that is away": {
			reason: "what is there is not known", before: body, after: body, unread: "Deployment", cause: plan.Unread,
			want: []string{"a failing", "  ! ", "  undecided base: ConfigMap a-base", "  undecided web: Deployment a"},
		},
		"a kind that may not be read takes the place of an object": {
			reason: "the object is deleted as soon as somebody grants the right", before: pair, old: pair, after: strings.Replace(pair, `kind: "ConfigMap", metadata: name: "\(cr.metadata.name)-extra"`, `kind: "Secret", metadata: name: "\(cr.metadata.name)-extra"`, 1),
			unread: "Secret", unreadBy: apierrors.NewForbidden(schema.GroupResource{Resource: "secrets"}, "", errors.New("no")),
			want: []string{"a failing", "  ! ", "  delayed web: ConfigMap a-extra"},
		},
		"a component whose existence is undecided": {
			reason: "it may be deleted once it is decided", before: body, after: holds(body), cause: plan.Held,
			want: []string{"a waiting", "  ! web: when: ", "  undecided web: Deployment a"},
		},
		"one that was undecided before": {
			reason: "the new version changes nothing about it", before: body, old: holds(body), after: holds(body), want: []string{"a unchanged"},
		},
		"a component that waits and renders an object no more": {
			reason: "the object is deleted once the component is applied", before: pair, after: waits(body), cause: plan.Blocked,
			want: []string{"a waiting", "  ! web: waiting for ", "  undecided web: ConfigMap a-extra"},
		},
		"a component that is behind a gate and renders an object no more": {
			reason: "the object is deleted once the gate opens", before: pair,
			after: strings.Replace(body, "web: {dependsOn", "web: {requires: never: cr.spec.size > 9, dependsOn", 1),
			want:  []string{"a waiting", "  ! web: waiting for ", "  delayed web: ConfigMap a-extra"},
		},
		"an object that the running version renders no more either": {
			reason: "it is deleted whatever the version", before: pair, after: strings.Replace(body, "web: {dependsOn", "web: {requires: never: cr.spec.size > 9, dependsOn", 1),
			old:  strings.Replace(body, "web: {dependsOn", "web: {requires: never: cr.spec.size > 8, dependsOn", 1),
			want: []string{"a unchanged"},
		},
		"an object of a waiting component that is left behind": {
			reason: "its policy says so", before: pair + "components: web: policy: extra: delete: \"orphan\"\n",
			after: strings.Replace(body, "web: {dependsOn", "web: {requires: never: cr.spec.size > 9, dependsOn", 1),
			want:  []string{"a waiting", "  ! web: waiting for "},
		},
		"a component that waits with an immutable field that differs": {
			reason: "the object may be recreated once the component is applied", before: body, old: body, cause: plan.Blocked,
			after: strings.ReplaceAll(strings.Replace(body, "web: {dependsOn", "web: {requires: never: cr.spec.size > 9, dependsOn", 1), `app: "web"`, `app: "shop"`) +
				"components: web: policy: deployment: apply: \"recreateOnImmutable\"\n",
			want: []string{"a waiting", "  ! web: waiting for ", "  undecided web: Deployment a"},
		},
		"an invalid resource": {
			reason: "its user may change it to anything", before: body, after: strings.Replace(body, "int & <=5 | *1", "int & >3", 1), cause: plan.NotValid,
			want: []string{"a invalid", "  ! spec.size: ", "  undecided base: ConfigMap a-base", "  undecided web: Deployment a"},
		},
		"a resource that is invalid as it was before": {
			reason: "its status says so, and nothing else is known of what runs", before: body, after: strings.Replace(body, "int & <=5 | *1", "int & >3", 1),
			edit: invalidBefore, want: []string{"a unchanged"},
		},
		"a resource that was invalid for the version that runs, with --old": {
			reason: "that version says that it is valid", before: body, old: body, after: strings.Replace(body, "int & <=5 | *1", "int & >3", 1),
			edit: invalidBefore, cause: plan.NotValid,
			want: []string{"a invalid", "  ! spec.size: ", "  undecided base: ConfigMap a-base", "  undecided web: Deployment a"},
		},
		"the jobs of hooks": {
			reason: "a hook that has run stays as it is", before: body + smoke, old: body + smoke, after: body + smoke, want: []string{"a unchanged"},
		},
		"the jobs of hooks that are there no more": {
			reason: "they are deleted with the hook", before: body + smoke, old: body + smoke, after: body, want: []string{"a changed", "  deleted hooks.afterDeploy.smoke: Job "},
		},
		"a paused resource": {
			reason: "it is deleted as soon as the pause ends", before: pair, after: body, edit: pause,
			want: []string{"a paused", "  deleted web: ConfigMap a-extra"},
		},
		"a paused resource of the running version": {
			reason: "the pause ends for both", before: pair, old: body, after: body, edit: pause, want: []string{"a paused"},
		},
		"an entry of the inventory that is somebody else's": {
			reason: "the object itself says whose it is", before: body, after: waits(body),
			edit: func(t *testing.T, s served) {
				t.Helper()
				if _, err := s.World.Put(object("ConfigMap", "taken", map[string]any{"data": map[string]any{"a": "b"}})); err != nil {
					t.Fatal(err)
				}
				forge(t, s, "a", map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "name": "taken", "object": "x"})
			},
			want: []string{"a waiting", "  ! web: waiting for ", "  orphaned base: ConfigMap taken"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			on := serve(t, load(t, row.before), shop("a", map[string]any{"size": int64(1)}))
			if row.edit != nil {
				row.edit(t, on)
			}
			o := plan.Options{Cluster: on, New: version(t, row.after, row.fails)}
			if row.old != "" {
				old := version(t, row.old, row.oldFails)
				o.Old = &old
			}
			if row.unread != "" {
				o.Cluster = refusing{on, row.unread, orAway(row.unreadBy)}
			}
			p := make1(t, o)
			if diff := cmp.Diff(row.want, shortened(said(p), row.want)); diff != "" {
				t.Errorf("%s (-want +got):\n%s", row.reason, diff)
			}
			if got := p.Resources[0].Undecided; got != row.cause {
				t.Errorf("%s: the cause is %q, want %q", row.reason, got, row.cause)
			}
		})
	}
}

// version returns a version of a package, whose evaluations fail if there is an error.
func version(t *testing.T, body string, err error) plan.Version {
	t.Helper()
	out := plan.Version{Program: load(t, body)}
	if err != nil {
		out.Evaluates = failing{out.Program, err}
	}
	return out
}

// A counted package counts how often it is evaluated, each time in vain.
type counted struct {
	failing

	n *atomic.Int64
}

func (c counted) Evaluate(s program.Session) (program.Rollout, error) {
	c.n.Add(1)
	return c.failing.Evaluate(s)
}

func TestWhatIsTooMuchIsEvaluatedOnceForAPlan(t *testing.T) {
	t.Parallel()
	p := load(t, body)
	tooMuch := &program.LimitError{Evaluated: true, TooSlow: true, Text: "it is too much"}
	for name, row := range map[string]struct {
		reason   string
		digest   string
		old, new int64
	}{
		"the resource says so of the old version":    {"a user may have many such resources", p.Digest(), 0, 1},
		"the resource says so of an earlier version": {"the old one may have corrected that", "sha256:x", 1, 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			on := serve(t, p, shop("a", map[string]any{}))
			on.edit(t, "Shop", "a", func(u *unstructured.Unstructured) {
				conditions := []any{map[string]any{"type": "Stalled", "status": "True", "reason": "EvaluationTooSlow", "message": "x", "lastTransitionTime": "2026-11-23T11:00:00Z"}}
				_ = unstructured.SetNestedSlice(u.Object, conditions, "status", "conditions")
				_ = unstructured.SetNestedField(u.Object, row.digest, "status", "package", "digest")
			})
			var before, after atomic.Int64
			make1(t, plan.Options{
				Cluster: on, New: plan.Version{Program: p, Evaluates: counted{failing{p, tooMuch}, &after}},
				Old: &plan.Version{Program: p, Evaluates: counted{failing{p, tooMuch}, &before}},
			})
			if before.Load() > row.old || after.Load() > row.new {
				t.Errorf("%s: %d and %d evaluations, %d and %d are the budget", row.reason, before.Load(), after.Load(), row.old, row.new)
			}
		})
	}
}

func TestAPlanThatHasToBeCompleteEndsWhereItIsNot(t *testing.T) {
	machine.Serial(t)
	t.Parallel()
	p := load(t, body)
	var all []*unstructured.Unstructured
	for i := range 20 {
		all = append(all, shop(fmt.Sprint("s", i), map[string]any{}))
	}
	on := serve(t, p, all...)
	for complete, want := range map[bool]int{true: 1, false: len(all)} {
		got := make1(t, plan.Options{Cluster: refusing{on, "Deployment", orAway(nil)}, New: plan.Version{Program: p}, Complete: complete})
		if len(got.Resources) != want || !got.Resources[0].Undecided.Passes() {
			t.Errorf("%t: %d resources are planned, want %d", complete, len(got.Resources), want)
		}
	}
}

// A panicking cluster panics when one kind is read.
type panicking struct{ served }

func (p panicking) Get(ctx context.Context, ref cluster.Ref) (*unstructured.Unstructured, error) {
	if ref.Kind == "Deployment" {
		panic("x")
	}
	return p.served.Get(ctx, ref)
}

func TestAPlanThatPanicsDecidesNothingOfTheResource(t *testing.T) {
	t.Parallel()
	p := load(t, body)
	got := make1(t, plan.Options{Cluster: panicking{serve(t, p, shop("a", map[string]any{}))}, New: plan.Version{Program: p}})
	if got.Resources[0].Undecided == "" || !got.Resources[0].Undecided.Passes() {
		t.Errorf("the plan is %v, which reads as if nothing were deleted", got.Resources)
	}
}
