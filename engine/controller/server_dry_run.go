package controller

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	"operetta.dev/engine/cluster"
	"operetta.dev/engine/dryrun"
	"operetta.dev/engine/object"
	"operetta.dev/engine/program"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// NewServerDryRun returns a dry run of packages on a cluster, as a manager with these options
// would reconcile them there: as the ServiceAccount of the packages, if they have one. It errors if they have several, or
// the configuration of the client is wrong.
func NewServerDryRun(config *rest.Config, options Options, programs ...*program.Program) (*dryrun.Server, error) {
	account, err := oneAccount(options.Accounts, programs)
	if err != nil {
		return nil, err
	}
	as, err := Impersonating(config, account)
	if err != nil {
		return nil, err
	}
	person, err := serverDryRunOptions(config, options)
	if err != nil {
		return nil, err
	}
	on, err := serverDryRunOptions(as, options)
	if err != nil {
		return nil, err
	}
	on.Apply = person.Apply // custom resources are applied by people
	return dryrun.NewServer(on, programs...), nil
}

// oneAccount returns the account of some packages, or none. What one account has read must not serve another one, and a dry run
// reads for all of them.
func oneAccount(accounts map[string]object.Account, programs []*program.Program) (object.Account, error) {
	if len(programs) == 0 {
		return object.Account{}, nil
	}
	first := programs[0]
	for _, p := range programs {
		if a, b := accounts[first.Name()], accounts[p.Name()]; a != b {
			return object.Account{}, fmt.Errorf("packages %s and %s are served as %q and %q; dry-run them one by one", first.Name(), p.Name(), a, b)
		}
	}
	return accounts[first.Name()], nil
}

// serverDryRunOptions returns the cluster of a dry run, and what the operator on it is configured with. Several dry
// runs may share them. It errors if the configuration of the client is wrong.
func serverDryRunOptions(config *rest.Config, options Options) (dryrun.ServerOptions, error) {
	direct, err := client.New(config, client.Options{})
	if err != nil {
		return dryrun.ServerOptions{}, fmt.Errorf("connecting to the cluster: %w", err)
	}
	dry := client.NewDryRunClient(direct)
	others := newSubsystems(direct, options.Log, func(schema.GroupKind) bool { return false })
	return dryrun.ServerOptions{
		Cluster: (&cluster.Live{
			Direct: direct, Kinds: cluster.Kinds(config), Namespaces: options.Namespaces, Schemas: cluster.PublishedSchemas(config),
		}).DryRun(),
		Apply: func(ctx context.Context, resource *unstructured.Unstructured) (*unstructured.Unstructured, error) {
			out := resource.DeepCopy()
			return out, dry.Apply(ctx, client.ApplyConfigurationFromUnstructured(out), client.FieldOwner(cluster.DryRunFieldManager), client.ForceOwnership)
		},
		Namespaces: options.Namespaces, ConfigMap: options.ConfigMap, Allow: options.Allow, Subsystem: others.has,
	}, nil
}
