package main

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"operetta.dev/engine/cluster"
	"operetta.dev/engine/controller"
	"operetta.dev/engine/lifecycle/simulate"
	"operetta.dev/engine/program"
	"operetta.dev/engine/render"
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
	config, err := clusterConfig(f)
	if err != nil {
		return err
	}
	live, err := controller.NewRehearsal(config, f.options)
	if err != nil {
		return err
	}
	given, err := liveResources(ctx, s, f, live, programs)
	if err != nil {
		return err
	}
	r := &rehearsal{out: s.out, ink: newInk(s.out)}
	for i, u := range given {
		if f.dryRun.remove {
			now := metav1.Now()
			u.SetDeletionTimestamp(&now)
		}
		what, failure := live.Reconcile(ctx, servedBy(programs, u.GroupVersionKind().GroupKind()), u)
		step := simulate.Step{Number: i + 1, Resource: cluster.RefOf(u), Changes: what.Changes, Err: failure}
		step.Status, _, _ = unstructured.NestedMap(what.Resource.Object, "status")
		r.show(step)
		if failure != nil {
			err = errReported
		}
	}
	if len(given) == 0 {
		fmt.Fprintln(s.err, "note: the cluster has no custom resource of the packages; give one with -f")
	}
	return err
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
	given, _, err := readGiven(s.in, f, programs)
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
