package main

import (
	"context"
	"fmt"
	"io"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"operetta.dev/engine/cluster"
	"operetta.dev/engine/controller"
	"operetta.dev/engine/dryrun"
	"operetta.dev/engine/program"
	"operetta.dev/engine/render"
	"operetta.dev/engine/status"
)

// rehearseLive shows what the next reconcile of custom resources would do on a
// cluster, and writes nothing to it.
func rehearseLive(ctx context.Context, s streams, f runFlags, dirs []string) error {
	var err error
	if f.options.ConfigMap, err = f.configKey(); err != nil {
		return err
	}
	programs, err := loadAll(ctx, dirs)
	if err != nil {
		return err
	}
	on, err := findTarget(f)
	if err != nil {
		return err
	}
	printLinef(s.err, "note: this is about the cluster at %s (context: %s)", on.server(), on.chosenBy())
	live, err := controller.NewRehearsal(on.config, f.options, programs...)
	if err != nil {
		return err
	}
	given, err := liveResources(ctx, s, f, live, programs)
	if err != nil {
		return err
	}
	if f.dryRun.remove {
		now := metav1.Now()
		for _, u := range given {
			u.SetDeletionTimestamp(&now)
		}
	}
	r := &rehearsal{out: s.out, ink: newInk(s.out), mask: live.Mask(), inFull: []cluster.Verb{cluster.Created, cluster.Updated}}
	err = (&liveRehearsal{live: live, programs: programs, rehearsal: r, errs: s.err}).reconcile(ctx, given)
	if len(given) == 0 {
		printLinef(s.err, "note: the cluster has no custom resource of the packages; give one with -f")
	}
	return err
}

// maxRehearsed bounds how many custom resources are reconciled, as a guard against those
// that render each other for ever.
const maxRehearsed = 10_000

// liveRehearsal shows what reconciles on a cluster would do.
type liveRehearsal struct {
	*rehearsal

	live     *controller.Rehearsal
	programs []*program.Program
	errs     io.Writer
}

// reconcile reconciles custom resources, and after each those of the given packages that
// it would have written. It errors when one would not succeed, and then has shown why.
func (l *liveRehearsal) reconcile(ctx context.Context, queue []*unstructured.Unstructured) error {
	var failed error
	for number := 1; len(queue) > 0; number++ {
		if number > maxRehearsed {
			return fmt.Errorf("the dry run ends after %d custom resources: does a package render resources of its own kind?", maxRehearsed)
		}
		u := queue[0]
		what, failure := l.live.Reconcile(ctx, servedBy(l.programs, u.GroupVersionKind().GroupKind()), u)
		step := dryrun.Step{Number: number, Resource: cluster.RefOf(u), Changes: what.Changes, Err: failure}
		step.Status, _, _ = unstructured.NestedMap(what.Resource.Object, "status")
		l.show(step)
		if why := unsuccessful(step); why != "" {
			printLinef(l.errs, "operetta: %s would fail: %s", l.name(step.Resource), l.mask.Text(why))
			failed = errReported
		}
		below, err := l.subsystems(ctx, what.Changes)
		if err != nil {
			return err
		}
		queue = slices.Concat(below, without(queue[1:], below))
	}
	return failed
}

// unsuccessful returns why a reconcile does not get a resource further without somebody
// doing something, or "". To wait for what was just written is no failure.
func unsuccessful(step dryrun.Step) string {
	if step.Err != nil {
		return step.Err.Error()
	}
	components, _ := step.Status["components"].([]any)
	for _, c := range components {
		m, _ := c.(map[string]any)
		switch state, _ := m["state"].(string); status.State(state) {
		case status.Failed, status.Retrying:
			return fmt.Sprintf("%v: %v", m["name"], m["message"])
		case status.Verified, status.Applied, status.Waiting, status.Excluded, status.Held, status.Deleting:
		}
	}
	conditions, _ := step.Status["conditions"].([]any)
	for _, c := range conditions {
		m, _ := c.(map[string]any)
		if m["type"] == status.ConditionStalled && m["status"] == "True" {
			return fmt.Sprintf("%v: %v", m["reason"], m["message"])
		}
	}
	return ""
}

// subsystems returns the resources of the given packages among what would have changed.
func (l *liveRehearsal) subsystems(ctx context.Context, changes []cluster.Event) ([]*unstructured.Unstructured, error) {
	var out []*unstructured.Unstructured
	for _, c := range changes {
		if servedBy(l.programs, c.Ref.GroupKind()) == nil {
			continue
		}
		u, err := l.live.Written(ctx, c.Change)
		if err != nil {
			return nil, err
		}
		if u != nil {
			out = append(without(out, []*unstructured.Unstructured{u}), u)
		}
	}
	return out, nil
}

// without returns the resources that are not among others.
func without(list, others []*unstructured.Unstructured) []*unstructured.Unstructured {
	return slices.DeleteFunc(list, func(u *unstructured.Unstructured) bool {
		return slices.ContainsFunc(others, func(o *unstructured.Unstructured) bool { return cluster.RefOf(o) == cluster.RefOf(u) })
	})
}

// liveResources are the custom resources of the files as the API server would keep
// them, or all that it has.
func liveResources(ctx context.Context, s streams, f runFlags, live *controller.Rehearsal, programs []*program.Program) ([]*unstructured.Unstructured, error) {
	var out []*unstructured.Unstructured
	if len(f.dryRun.files) == 0 {
		for _, p := range programs {
			there, err := live.Resources(ctx, p)
			if err != nil {
				return nil, err
			}
			out = append(out, there...)
		}
		return out, nil
	}
	given, _, err := readGiven(ctx, s.in, f, programs)
	if err != nil {
		return nil, err
	}
	for _, u := range given {
		p := servedBy(programs, u.GroupVersionKind().GroupKind())
		switch {
		case p.Meta().ClusterScoped || u.GetNamespace() != "":
		case f.options.CustomResourceNamespace != "":
			u.SetNamespace(f.options.CustomResourceNamespace)
		default:
			u.SetNamespace(render.DefaultNamespace)
		}
		applied, err := live.Applied(ctx, u)
		if err != nil {
			return nil, err
		}
		out = append(out, applied)
	}
	return out, nil
}
