package main

import (
	"cmp"
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"operetta.dev/engine/cluster"
	"operetta.dev/engine/controller"
	"operetta.dev/engine/dryrun"
	"operetta.dev/engine/program"
	"operetta.dev/engine/render"
	"operetta.dev/engine/status"
)

// runServerDryRun shows what the next reconcile of custom resources would do on a cluster, and
// writes nothing to it.
func runServerDryRun(ctx context.Context, s streams, f runFlags, dirs []string) error {
	for _, name := range f.unusedAccounts(dirs) {
		printLinef(s.err, "warning: %s %s=%s", unusedAccount, name, f.accounts[name])
	}
	var err error
	if f.options.ConfigMap, err = parseConfigKey(f.configMap); err != nil {
		return err
	}
	programs, err := loadAll(ctx, dirs)
	if err != nil {
		return err
	}
	on, err := findTarget(f.cluster)
	if err != nil {
		return err
	}
	printLinef(s.err, "note: this is about the cluster at %s (context: %s)", on.server(), on.contextName())
	f.options.Accounts = f.accounts
	server, err := controller.NewServerDryRun(on.config, f.options, programs...)
	if err != nil {
		return err
	}
	given, err := serverResources(ctx, s, f, server, programs)
	if err != nil {
		return err
	}
	if len(given) == 0 {
		printLinef(s.err, "note: the cluster has no custom resource of the packages; give one with -f")
		return nil
	}
	if f.dryRun.remove {
		now := metav1.Now()
		for _, u := range given {
			u.SetDeletionTimestamp(&now)
		}
	}
	p := newStepPrinter(s.out, f.output, server.Mask(), cluster.Created, cluster.Updated)
	var failed error
	err = server.Run(ctx, given, func(step dryrun.Step) {
		p.show(step)
		if why := unsuccessful(step); why != "" {
			printLinef(s.err, "operetta: %s would fail: %s", p.name(step.Resource), p.mask.Text(why))
			failed = errReported
		}
	})
	return cmp.Or(err, failed)
}

// unsuccessful returns why a reconcile makes no progress unless somebody intervenes, or "". To
// wait for what was just written is no failure.
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
	if reason, message := status.StalledBy(step.Status); reason != "" {
		return string(reason) + ": " + message
	}
	return ""
}

// serverResources returns the custom resources of the files as the API server would store them,
// or all that it has.
func serverResources(ctx context.Context, s streams, f runFlags, server *dryrun.Server, programs []*program.Program) ([]*unstructured.Unstructured, error) {
	var out []*unstructured.Unstructured
	if len(f.dryRun.files) == 0 {
		for _, p := range programs {
			existing, err := server.Resources(ctx, p)
			if err != nil {
				return nil, err
			}
			out = append(out, existing...)
		}
		return out, nil
	}
	given, _, err := readGiven(ctx, s.in, f, programs)
	if err != nil {
		return nil, err
	}
	for _, u := range given {
		if u.GetNamespace() == "" && !servedBy(programs, u.GroupVersionKind().GroupKind()).Meta().ClusterScoped {
			u.SetNamespace(f.defaultNamespace())
		}
		applied, err := server.Applied(ctx, u)
		if err != nil {
			return nil, err
		}
		out = append(out, applied)
	}
	return out, nil
}

// defaultNamespace returns the namespace of objects that name none.
func (f runFlags) defaultNamespace() string {
	return cmp.Or(f.options.Namespaces.Only(), render.DefaultNamespace)
}
